/* SPDX-License-Identifier: MIT */
/* The settings of the process: one struct generated from options.def, filled from text. Reads no
 * global state; the caller supplies the environment. Not thread-safe; built once at start. */
#ifndef CCA_CONFIG_CONFIG_H
#define CCA_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/divisions.h"

/* The default of CCA_CONTROL_SIGNAL: RTMAX-3, as the C library numbers it on Linux. */
#define CCA_SIGNAL_CONTROL    61

#define CCA_NO_LIMIT          ((size_t)INT64_MAX)
#define CCA_LARGE_SEGMENT_MIN ((size_t)10486272) /* 10 MiB and one block more */
#define CCA_LARGE_SEGMENT_MAX ((size_t)1 << 40)

enum cca_mode { CCA_MODE_CACHE, CCA_MODE_COUNT, CCA_MODE_OFF };
enum cca_free_sync { CCA_FREE_STRICT, CCA_FREE_FENCE, CCA_FREE_NATIVE };
enum cca_async_mode { CCA_ASYNC_AUTO, CCA_ASYNC_FORWARD };
enum cca_ipc_mode { CCA_IPC_AUTO, CCA_IPC_FORWARD, CCA_IPC_REFUSE, CCA_IPC_DEDICATED };
enum cca_info_mode { CCA_INFO_ADJUSTED, CCA_INFO_RAW };
enum cca_history { CCA_HISTORY_OFF, CCA_HISTORY_STATE, CCA_HISTORY_ALL };
enum cca_context { CCA_CONTEXT_NONE, CCA_CONTEXT_STATE, CCA_CONTEXT_ALLOC, CCA_CONTEXT_ALL };
enum cca_unwinder {
    CCA_UNWINDER_AUTO,
    CCA_UNWINDER_LIBUNWIND,
    CCA_UNWINDER_LIBGCC,
    CCA_UNWINDER_FP,
    CCA_UNWINDER_NONE
};
enum cca_symbolize { CCA_SYMBOLIZE_NONE, CCA_SYMBOLIZE_NAMES, CCA_SYMBOLIZE_LINES };
enum {
    CCA_DUMP_ON_SIGNAL = 1,
    CCA_DUMP_ON_EXIT = 2,
    CCA_DUMP_ON_OOM = 4,
    CCA_DUMP_ON_TERM = 8,
    CCA_DUMP_ON_ABORT = 16,
    CCA_DUMP_ON_INTERVAL = 32
};
/* Bits of skip_actions. The last three may be left out alone; the others belong together. */
enum {
    CCA_SKIP_REPLAY = 0x7f,
    CCA_SKIP_SNAPSHOT = 0x80,
    CCA_SKIP_OOM = 0x100,
    CCA_SKIP_ANNOTATE = 0x200
};
enum { CCA_FORMAT_PICKLE = 1, CCA_FORMAT_JSON = 2, CCA_FORMAT_TEXT = 4 };
enum { CCA_CONFIG_TEXT_MAX = 1024 };

struct cca_config {
#define BOOL(field, name, def, help)           bool field;
#define SIZE(field, name, def, min, max, help) size_t field;
#define UINT(field, name, def, min, max, help) uint64_t field;
#define RATIO(field, name, def, help)          double field;
#define ENUM(field, name, def, words, help)    int field;
#define FLAGS(field, name, def, words, help)   unsigned field;
#define TEXT(field, name, def, help)           char field[CCA_CONFIG_TEXT_MAX];
#define SIGNAL(field, name, def, help)         int field;
#include "config/options.def"
#undef BOOL
#undef SIZE
#undef UINT
#undef RATIO
#undef ENUM
#undef FLAGS
#undef TEXT
#undef SIGNAL
    struct cca_divisions divisions; /* what roundup_power2_divisions says */
    uint64_t dump_interval_s;       /* what CCA_DUMP_ON_INTERVAL in dump_on means */
};

/* Called once for each bad or unknown variable: its name, its text, and a remark that completes the
 * message: "out of range (1 to 128), using 64", "unknown, ignored". */
typedef void (*cca_config_complaint_fn)(void *user, const char *name, const char *value,
                                        const char *used);

/* What of a skip list can be left out with the history still consistent: see CCA_SKIP_REPLAY. */
unsigned cca_config_usable_skips(unsigned skip_actions);

/* Every default. */
void cca_config_init(struct cca_config *config);

/* Reads all `CCA_` entries of an environment block ("NAME=value" strings, NULL at the end). Empty
 * means unset, but for CCA_DUMP_ON; of entries with one name the first counts. A bad or
 * out-of-range value leaves the field as it is and complains; so does an unknown CCA_ name.
 * CCA_CONF is read first, so that a variable of its own wins over it. CCA_FREE_SYNC=native makes
 * mode `cache` mode `count`; CCA_DISABLE=1 makes it `off`. */
void cca_config_read(struct cca_config *config, const char *const *environment,
                     cca_config_complaint_fn complain, void *user);

/* The effective values, in the order of the rows, as text that would be read back to the same. */
typedef void (*cca_config_value_fn)(void *user, const char *name, const char *value);
void cca_config_each(const struct cca_config *config, cca_config_value_fn each, void *user);

#endif
