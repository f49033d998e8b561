/* SPDX-License-Identifier: MIT */
/* The state of the process, shared by the files of this folder and by nobody else. One instance, in
 * process.c. Fields say who writes them; what is not atomic is written by cca_process_load or under
 * `lock` before `start` becomes CCA_START_DONE, and only read afterwards. */
#ifndef CCA_PROCESS_STATE_H
#define CCA_PROCESS_STATE_H

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "config/config.h"
#include "observe/annotations.h"
#include "observe/module_log.h"
#include "observe/stack_table.h"
#include "observe/texts.h"
#include "process/estimate.h"
#include "process/exported.h"
#include "process/process.h"
#include "process/unmanaged.h"
#include "snapshot/lines.h"

enum {
    CCA_COMPLAINTS_MAX = 16,
    CCA_COMPLAINT_BYTES = 256,
    CCA_IDENTITY_BYTES = 4096,
    CCA_COVERAGE_STRIPES = 8 /* threads are spread over these, so that counting does not contend */
};

/* What the dump thread does by the clock; touched by that thread alone. */
struct cca_timers {
    uint64_t next_dump_ns, next_metrics_ns, next_trim_ns; /* 0 = never */
    int64_t allocs;                                       /* at the last look */
    uint64_t quiet_since_ns;                              /* no allocation since */
};

enum cca_start_state { CCA_START_NEVER, CCA_START_RUNNING, CCA_START_DONE };

/* Bad variables, kept until CUDA is used: a child without CUDA prints nothing. */
struct cca_complaints {
    char lines[CCA_COMPLAINTS_MAX][CCA_COMPLAINT_BYTES];
    int count, dropped;
};

/* Who the process is; as it was at load, but for the command line. */
struct cca_identity {
    pid_t pid;
    int64_t start_time_us;                  /* unix */
    uint64_t start_ns;                      /* cca_clock_ns */
    int rank;                               /* from the launcher's variables; -1 = none */
    char directory[CCA_IDENTITY_BYTES];     /* working directory; "" = not known */
    char tmp_directory[CCA_IDENTITY_BYTES]; /* $TMPDIR; "" = none */
    char program[CCA_IDENTITY_BYTES];       /* path of the executable */
    char command_line[CCA_IDENTITY_BYTES];  /* arguments, each ended by NUL; read at the first
                                               context */
    size_t command_line_bytes;
};

struct cca_coverage_row {
    _Atomic uint64_t counts[CCA_COVERAGE_KINDS];
};

/* A snapshot whose model is copied already; see dump.h. */
struct cca_dump_job;
struct cca_memory_report;

/* What handlers and hooks want of the dump thread; bits of cca_dumps.wanted. */
enum {
    CCA_WANT_DUMP = 1,
    CCA_WANT_TERM_DUMP = 2,  /* then the process ends by SIGTERM */
    CCA_WANT_ABORT_DUMP = 4, /* a handler waits for it */
    CCA_WANT_OOM = 8,        /* the copy in `pending` */
    CCA_WANT_TRIM = 16,
    CCA_WANT_RESET_PEAKS = 32
};

enum { CCA_SIGNALS_MAX = 4 };

/* A handler of ours. */
struct cca_installed_signal {
    int number; /* 0 = none */
    struct sigaction before;
};

struct cca_dumps {
    sem_t wake;              /* posted by the handler; the dump thread waits on it */
    atomic_bool has_thread;  /* the dump thread runs */
    atomic_uint wanted;      /* set before `wake` is posted */
    atomic_uint aborts_done; /* snapshots made for a handler that waits */
    atomic_uint ooms_done;   /* out-of-memory copies that have been reported */
    atomic_bool is_stopping; /* exit has begun: no new dump starts */
    atomic_bool is_busy;     /* someone makes a dump: cca_dump_claim */
    struct cca_lock lock;    /* held while the loader's list is walked; a fork waits for it */
    _Atomic(struct cca_dump_job *) pending; /* out-of-memory copy; who takes it owns it */
    _Atomic uint64_t last_oom_ns;           /* when the last one was copied, 0 = never */
    _Atomic uint64_t quiet_ooms;            /* failures since that were not reported */
    unsigned sequence;                      /* of the next name; guarded by is_busy */
    char last_path[CCA_IDENTITY_BYTES];     /* newest complete file; guarded by is_busy */
    struct cca_installed_signal signals[CCA_SIGNALS_MAX];
};

/* What the program attached by the public interface, per kind; guarded by cca_process.lock. Slots
 * are never given back. */
enum { CCA_API_OBSERVERS_MAX = 4 };
enum cca_api_observer_kind { CCA_ON_OOM, CCA_ON_TRACE, CCA_ON_FREE_MEMORY, CCA_API_OBSERVER_KINDS };
struct cca_api_observer {
    void (*fn)(void); /* of the type that the kind says */
    void *user;
    bool is_attached; /* the allocator knows of it */
};
struct cca_api_observers {
    struct cca_api_observer slots[CCA_API_OBSERVER_KINDS][CCA_API_OBSERVERS_MAX];
    int counts[CCA_API_OBSERVER_KINDS];
};

/* The program's profiler; changed under cca_process.lock. */
struct cca_reporter {
    _Atomic(void (*)(void *, const struct cca_memory_report *)) fn; /* NULL = none */
    _Atomic(void *) user;
    bool is_wanted, is_attached; /* was ever set; the allocator knows of it */
};

struct cca_process {
    struct cca_lock lock;
    struct cca_config config;
    struct cca_complaints complaints;
    struct cca_identity identity;

    atomic_bool is_active;
    atomic_int start; /* enum cca_start_state */
    atomic_bool is_unloaded;

    _Atomic(struct cca_allocator *) allocator; /* NULL before the first context */
    _Atomic(struct cca_estimate *) estimate;   /* of CCA_MODE=count, with the allocator */
    struct cca_unmanaged unmanaged;
    struct cca_exported exported;
    struct cca_stack_table stacks;
    struct cca_module_log modules; /* that the stacks passed through */
    atomic_bool has_stacks;
    atomic_bool has_unwinder; /* it was loaded, or cannot be */
    atomic_int context_level; /* enum cca_context: which call stacks are taken */
    struct cca_texts texts;
    atomic_bool has_texts;
    struct cca_annotations annotations;
    _Atomic uint64_t mark_ns; /* of the last cca_mark; 0 = none */
    struct cca_timers timers;
    struct cca_lines lines; /* guarded by dumps.is_busy */
    int driver_version, runtime_version;

    struct cca_dumps dumps;

    struct cca_coverage_row coverage[CCA_COVERAGE_STRIPES][CCA_COVERAGE_ROWS_MAX];
    cca_place_fn place; /* NULL: nobody knows CUDA */
    struct cca_api_observers observers;
    struct cca_reporter reporter;
    _Atomic uint64_t last_pool; /* of the public interface */

    const struct cca_coverage_name *coverage_names;
    int coverage_name_count;
};

/* The one instance. */
struct cca_process *cca_process_state(void);

/* complaints.c */
void cca_complaints_add(void *complaints, const char *name, const char *value, const char *used);
void cca_complaints_print(const struct cca_complaints *complaints);

/* identity.c: no descriptor is open between calls. */
void cca_identity_take(struct cca_identity *identity);
/* After a fork: only what differs in the child. */
void cca_identity_renew(struct cca_identity *identity);
void cca_identity_read_command_line(struct cca_identity *identity);

/* api_history.c: the id of the calling thread's text, 0 = none. */
uint32_t cca_process_metadata(void);

/* process.c: the table of texts, made at the first need. */
bool cca_process_make_texts(void);

/* describe.c: a forked child has another kernel thread id. */
void cca_process_forget_thread(void);
/* A line of level info for every row that was seen or missed. */
void cca_process_log_coverage(void);
/* Sum over the stripes. */
uint64_t cca_process_coverage(const struct cca_process *process, int row, enum cca_coverage what);

/* unload.c: takes down what is known of libraries that were unloaded since the last look. Reads
 * their files; no lock held. */
void cca_process_look_for_unloads(struct cca_process *process);

/* fork.c: once, at load. */
void cca_fork_register(void);

/* signals.c. Installs the handlers that the settings ask for, only over the default action; the
 * dump signal's also over others where that is forced. False when something else keeps the dump
 * signal. */
bool cca_signals_install(struct cca_process *process);
/* Puts back what was there where our handlers still stand; async-signal-safe. */
void cca_signals_remove(struct cca_process *process);
/* Whether the handler of the dump signal is still ours, where it was installed. */
bool cca_signals_are_ours(const struct cca_process *process);

/* Blocks nothing and waits for nothing. Whether the dump thread will see it. */
bool cca_dump_thread_ask(struct cca_process *process, unsigned wanted);

/* helper_thread.c: a detached thread of ours, all signals blocked; a negative errno. */
int cca_helper_thread_start(void *(*body)(void *), void *user) CCA_MUST_CHECK;

/* dump_thread.c: starts the thread; a negative errno. */
int cca_dump_thread_start(struct cca_process *process) CCA_MUST_CHECK;

/* exit.c: the snapshot and the summary, once. */
void cca_exit_finish(struct cca_process *process);

/* api_observers.c: those that came before there was an allocator. `lock` is held. */
void cca_api_observers_attach(struct cca_process *process, struct cca_allocator *allocator);

/* summary.c. `names_snapshot`: the caller holds the claim, so that the newest path can be read.
 * `model`: the last copy, with names, or NULL. */
struct cca_model;
void cca_summary_print(const struct cca_process *process, bool names_snapshot,
                       struct cca_model *model);

/* out_of_memory.c: remembers the figures of this thread's last failure. An observer of the
 * allocator. */
void cca_oom_note(void *user, const struct cca_oom_info *info);

#endif
