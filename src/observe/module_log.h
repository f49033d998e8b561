/* SPDX-License-Identifier: MIT */
/* The modules that call stacks passed through, so that a return address keeps its meaning when the
 * module is unloaded and another one is loaded in its place.
 *
 * A *life* is one module, from before the first stack that passes through it was stored until it
 * was unloaded. The ids of the stack table tell time: a stack whose id lies in [first_stack,
 * end_stack) and that has a return address there belongs to that life. Lives of unloaded modules
 * with the same file at the same place go on when it comes back, unless something else was there in
 * between.
 *
 * What dlclose is not seen to unload (a call by dlvsym, or from an object with a scope of its own)
 * is noticed at the next stack that is new. Only another library with the very same layout, loaded
 * in its place meanwhile, is taken for the first one then.
 *
 * Any thread. The lock is a leaf and is never held while the loader is asked; the loader is asked
 * (dl_iterate_phdr) only for stacks that were not seen before, and around dlclose. */
#ifndef CCA_OBSERVE_MODULE_LOG_H
#define CCA_OBSERVE_MODULE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/sysmem.h"
#include "observe/modules.h"
#include "observe/stack_table.h"

enum { CCA_MODULE_LIVES_MAX = 4096 };

/* A function, as the linker calls it, by a return address in it. */
struct cca_module_name {
    uint64_t address;
    const char *name;
};

struct cca_module_life {
    struct cca_module module; /* is_unloaded: has ended */
    const void *map;          /* what dlopen returned for it; NULL = not known */
    uint32_t first_stack, end_stack;
    struct cca_module_name *names; /* ascending by address; taken when it was unloaded */
    size_t name_count;
    uint32_t named_until; /* the table's next id when its calls were named */
    uint64_t seen;        /* the last walk of the loader's list that found it */
    int closing;          /* calls of dlclose for it that have not returned */
    bool is_covered;      /* something else has been found at its place since it ended */
    bool is_pinned;
};

struct cca_module_log {
    struct cca_lock lock;
    struct cca_arena arena;
    struct cca_module_life *lives;
    size_t count;
    uint16_t *loaded; /* indices of lives that have not ended, ascending by start */
    size_t loaded_count;
    uint64_t walks;
    _Atomic uint64_t unloads; /* as the loader counted them at the last look */
    /* [low, high) holds the places where the unwinder may remember what is gone; high 0: none. */
    _Atomic uintptr_t low, high;
    _Atomic uint64_t refused; /* modules and names for which there was no room */
};

/* -ENOMEM. */
int cca_module_log_init(struct cca_module_log *log) CCA_MUST_CHECK;
void cca_module_log_fini(struct cca_module_log *log);

/* Before a stack is stored that the table does not hold yet. The calling thread is in the middle of
 * these calls, so that their modules stay loaded meanwhile. True: as cca_module_log_is_stale. */
bool cca_module_log_note(struct cca_module_log *log, struct cca_stack_table *table,
                         const uintptr_t *pcs, int depth);

/* Slower half of cca_module_log_is_stale. */
bool cca_module_log_settle(struct cca_module_log *log, struct cca_stack_table *table,
                           const uintptr_t *pcs, int depth);

/* Whether a call of the stack, which was just taken, lies where something that was unloaded had
 * been, and something else is now: an unwinder that remembers how it walked there walks wrong.
 * Stacks that passed through the former are retired then. */
static inline bool cca_module_log_is_stale(struct cca_module_log *log,
                                           struct cca_stack_table *table, const uintptr_t *pcs,
                                           int depth)
{
    uintptr_t high = atomic_load_explicit(&log->high, memory_order_acquire);

    if (CCA_LIKELY(high == 0)) {
        return false;
    }
    uintptr_t low = atomic_load_explicit(&log->low, memory_order_relaxed);
    for (int i = 0; i < depth; i++) {
        if (pcs[i] > low && pcs[i] <= high) {
            return cca_module_log_settle(log, table, pcs, depth);
        }
    }
    return false;
}

/* Around dlclose(handle). Begin: the index of the life that the handle stands for, or -1. */
int cca_module_log_close_begin(struct cca_module_log *log, const void *handle);
void cca_module_log_close_end(struct cca_module_log *log, int life);

/* Ends the lives whose modules are no longer loaded. Their indices, at most `max`, to `ended_out`;
 * returns how many. Cheap when nothing was unloaded since the last look. */
size_t cca_module_log_look(struct cca_module_log *log, struct cca_stack_table *table,
                           int *ended_out, size_t max);

/* A copy of one life, or of those that have something to do with snapshots: all, ascending by
 * start. Texts and names belong to the log and stay. False, -ENOMEM: nothing was copied. */
bool cca_module_log_get(struct cca_module_log *log, int life, struct cca_module_life *copy_out);
int cca_module_log_copy(struct cca_module_log *log, struct cca_arena *arena,
                        struct cca_module_life **lives_out, size_t *count_out) CCA_MUST_CHECK;

/* Adds names, ascending by address. The texts are copied. `until`: see named_until. */
void cca_module_log_add_names(struct cca_module_log *log, int life, uint32_t until,
                              const struct cca_module_name *names, size_t count);

/* The name that was taken for a return address, or NULL. */
const char *cca_module_life_name(const struct cca_module_life *life, uint64_t address);

/* The next loaded life that was not pinned yet, which then counts as pinned; false: none. */
bool cca_module_log_next_unpinned(struct cca_module_log *log, struct cca_module_life *copy_out);

#endif
