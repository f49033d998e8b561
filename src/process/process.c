/* SPDX-License-Identifier: MIT */
#include "process/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/reentry.h"
#include "cca/cca_version.h"
#include "config/conf.h"
#include "observe/unwind.h"
#include "process/last_thread.h"
#include "process/selection.h"
#include "process/state.h"
#include "process/timers.h"

/* Distinct stacks expected at most, and the address space for their frames; pages exist once used.
 */
enum { STACK_SLOTS = 1 << 18, REASON_BYTES = 160, UNWINDER_WAIT_MS = 200 };
#define STACK_ARENA_BYTES ((size_t)256 << 20)

/* The same for the texts of the program, and how many profiler regions are kept. */
enum { TEXT_SLOTS = 1 << 16, ANNOTATIONS_MAX = 10000 };
#define TEXT_ARENA_BYTES ((size_t)64 << 20)

static struct cca_process the_process;

struct cca_process *cca_process_state(void)
{
    return &the_process;
}

/* A program that is left out keeps its environment: a shell in between must not take the library
 * from the program that is meant. */
static void apply_selection(struct cca_process *process)
{
    char *preload = getenv("LD_PRELOAD");
    Dl_info info;

    cca_identity_take(&process->identity);
    if (!cca_selection_matches(process->config.programs, process->identity.program,
                               program_invocation_short_name)) {
        process->config.mode = CCA_MODE_OFF;
    } else if (!process->config.children && preload != NULL && dladdr(&the_process, &info) != 0 &&
               cca_selection_remove_entry(preload, info.dli_fname) && preload[0] == '\0') {
        unsetenv("LD_PRELOAD");
    }
}

void cca_process_load(void)
{
    struct cca_process *process = &the_process;

    cca_config_init(&process->config);
    process->identity.rank = -1;
    if (getauxval(AT_SECURE) != 0) {
        process->config.mode = CCA_MODE_OFF;
        return;
    }
    cca_log_init();
    cca_config_read(&process->config, (const char *const *)environ, cca_complaints_add,
                    &process->complaints);
    apply_selection(process);
    if (process->config.mode == CCA_MODE_OFF) {
        return;
    }
    if (process->config.ipc == CCA_IPC_AUTO && process->identity.rank >= 0) {
        process->config.ipc = CCA_IPC_DEDICATED; /* ranks on one machine share memory like this */
    }
    cca_log_set_level((enum cca_log_level)process->config.log_level);
    atomic_store_explicit(&process->context_level, process->config.context, memory_order_relaxed);
    cca_lock_init(&process->lock, CCA_RANK_PROCESS);
    cca_lock_init(&process->dumps.lock, CCA_RANK_DUMP);
    cca_annotations_init(&process->annotations, ANNOTATIONS_MAX);
    sem_init(&process->dumps.wake, 0, 0);
    cca_last_thread_watch(&process->dumps.wake);
    cca_unmanaged_init(&process->unmanaged);
    cca_fork_register();
    atomic_store_explicit(&process->is_active, true, memory_order_release);
}

bool cca_process_is_active(void)
{
    return atomic_load_explicit(&the_process.is_active, memory_order_acquire);
}

void cca_process_set_place(cca_place_fn place)
{
    the_process.place = place;
}

int cca_process_place(const void *caller, int device, void *stream, struct cca_heap **heap_out,
                      cca_key *key_out)
{
    return the_process.place == NULL ? -ENODEV
                                     : the_process.place(caller, device, stream, heap_out, key_out);
}

const struct cca_config *cca_process_config(void)
{
    return &the_process.config;
}

struct cca_allocator *cca_process_allocator(void)
{
    if (!cca_process_is_active()) {
        return NULL;
    }
    return atomic_load_explicit(&the_process.allocator, memory_order_acquire);
}

/* False: there is an allocator, which has settings of its own. */
static bool set_conf_to_come(struct cca_process *process, const char *text,
                             cca_config_complaint_fn complain, int *rc_out)
{
    cca_lock_take(&process->lock);
    bool is_to_come = atomic_load_explicit(&process->allocator, memory_order_relaxed) == NULL;
    if (is_to_come) {
        *rc_out = cca_conf_change(&process->config, text, complain, NULL);
    }
    cca_lock_drop(&process->lock);
    return is_to_come;
}

int cca_process_set_conf(const char *text, cca_config_complaint_fn complain)
{
    int rc = 0;

    return set_conf_to_come(&the_process, text, complain, &rc)
               ? rc
               : cca_allocator_set_conf(cca_process_allocator(), text, complain, NULL);
}

/* Before the allocator appears: from then on hooks look for it. */
static void make_estimate(struct cca_process *process)
{
    struct cca_estimate *estimate = NULL;

    if (process->config.mode == CCA_MODE_COUNT &&
        cca_estimate_create(&process->config, &estimate) == 0) {
        atomic_store_explicit(&process->estimate, estimate, memory_order_release);
    }
}

bool cca_process_make_texts(void)
{
    struct cca_process *process = &the_process;

    if (!atomic_load_explicit(&process->has_texts, memory_order_acquire)) {
        cca_lock_take(&process->lock);
        if (!atomic_load_explicit(&process->has_texts, memory_order_relaxed) &&
            cca_texts_init(&process->texts, TEXT_SLOTS, TEXT_ARENA_BYTES) == 0) {
            atomic_store_explicit(&process->has_texts, true, memory_order_release);
        }
        cca_lock_drop(&process->lock);
    }
    return atomic_load_explicit(&process->has_texts, memory_order_acquire);
}

/* Mapped memory only: nothing here may wait for the loader, whose lock another thread can hold
 * while it waits for this one. */
static void make_allocator(struct cca_process *process)
{
    struct cca_allocator *allocator = NULL;

    cca_lock_take(&process->lock);
    if (atomic_load_explicit(&process->allocator, memory_order_relaxed) == NULL &&
        cca_allocator_create(&process->config, &allocator) == 0) {
        make_estimate(process);
        (void)!cca_allocator_add_oom_observer(allocator, cca_oom_note, process);
        cca_api_observers_attach(process, allocator);
        atomic_store_explicit(&process->allocator, allocator, memory_order_release);
    }
    if (process->config.context != CCA_CONTEXT_NONE &&
        !atomic_load_explicit(&process->has_stacks, memory_order_relaxed) &&
        cca_module_log_init(&process->modules) == 0 &&
        cca_stack_table_init(&process->stacks, STACK_SLOTS, STACK_ARENA_BYTES) == 0) {
        atomic_store_explicit(&process->has_stacks, true, memory_order_release);
    }
    cca_lock_drop(&process->lock);
}

_Static_assert((int)CCA_UNWINDER_NONE == CCA_UNWIND_NONE &&
                   (int)CCA_UNWINDER_LIBGCC == CCA_UNWIND_LIBGCC,
               "the setting is the method");

static void *load_unwinder(void *user)
{
    struct cca_process *process = user;
    const char *why = "";

    (void)cca_reentry_enter();
    if (!cca_unwind_start((enum cca_unwind_method)process->config.unwinder, &why)) {
        cca_log(CCA_LOG_WARN, "no call stacks: %s", why);
    }
    atomic_store_explicit(&process->has_unwinder, true, memory_order_release);
    cca_reentry_leave();
    return NULL;
}

/* The name of what takes call stacks, for the banner. Loading enters the loader, whose lock another
 * thread can hold while it waits for this one, which only makes its first allocation (a constructor
 * does so): so another thread loads, and this one waits for a bounded time. */
static const char *start_unwinder(struct cca_process *process)
{
    if (process->config.unwinder == CCA_UNWINDER_NONE ||
        process->config.context == CCA_CONTEXT_NONE) {
        return "none";
    }
    if (cca_helper_thread_start(load_unwinder, process) != 0) {
        cca_log(CCA_LOG_WARN, "no call stacks: no thread to load the unwinder");
        return "none";
    }
    for (int waited = 0; waited < UNWINDER_WAIT_MS; waited++) {
        if (atomic_load_explicit(&process->has_unwinder, memory_order_acquire)) {
            return cca_unwind_name();
        }
        cca_clock_sleep_us(1000);
    }
    return "an unwinder that is still being loaded";
}

/* Without the thread there is no handler either: the signal then keeps its default action. */
static void start_dumps(struct cca_process *process)
{
    int rc;

    if ((process->config.dump_on & ~(unsigned)CCA_DUMP_ON_EXIT) == 0 &&
        process->config.control_signal == 0 && !cca_timers_are_wanted(process)) {
        return;
    }
    rc = cca_dump_thread_start(process);
    if (rc != 0) {
        cca_log(CCA_LOG_WARN, "no snapshots on request: no thread, error %d", -rc);
    } else if (!cca_signals_install(process)) {
        cca_log(CCA_LOG_INFO, "the program handles signal %d itself: no snapshots on it",
                process->config.dump_signal);
    }
}

/* At the first context, since a child without CUDA opens and creates nothing. */
static void open_log(const struct cca_process *process)
{
    const char *name = process->config.log_file;
    char path[2 * CCA_IDENTITY_BYTES];

    if (name[0] == '\0') {
        return;
    }
    cca_format(path, sizeof(path), "%s%s%s", name[0] != '/' ? process->identity.directory : "",
               name[0] != '/' ? "/" : "", name);
    if (!cca_log_set_file(path)) {
        cca_log(CCA_LOG_WARN, "CCA_LOG_FILE '%s': not writable, using stderr", path);
    }
}

static void print_banner(const struct cca_process *process, const char *unwinder)
{
    int driver = process->driver_version, runtime = process->runtime_version;

    cca_log(CCA_LOG_INFO, "version %s, mode %s, driver %d.%d, runtime %d.%d, call stacks by %s",
            CCA_VERSION_STRING, process->config.mode == CCA_MODE_COUNT ? "count" : "cache",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, unwinder);
}

void cca_process_context_is_up(int driver_version, int runtime_version)
{
    struct cca_process *process = &the_process;
    int state = atomic_load_explicit(&process->start, memory_order_acquire);
    const char *unwinder;

    if (CCA_LIKELY(state == CCA_START_DONE) || !cca_process_is_active()) {
        return;
    }
    make_allocator(process);
    state = CCA_START_NEVER;
    /* The others go on without call stacks for a moment instead of waiting: this thread may need
     * the loader's lock, and one of them may hold it. */
    if (!atomic_compare_exchange_strong(&process->start, &state, CCA_START_RUNNING)) {
        return;
    }
    process->driver_version = driver_version;
    process->runtime_version = runtime_version;
    cca_identity_read_command_line(&process->identity);
    open_log(process);
    cca_complaints_print(&process->complaints);
    unwinder = start_unwinder(process);
    start_dumps(process);
    if (process->config.symbolize == CCA_SYMBOLIZE_LINES && !cca_can_find_lines()) {
        cca_log(CCA_LOG_WARN, "CCA_SYMBOLIZE 'lines': this library was built without "
                              "libbacktrace, using names");
    }
    print_banner(process, unwinder);
    atomic_store_explicit(&process->start, CCA_START_DONE, memory_order_release);
}

void cca_process_unload(void)
{
    struct cca_process *process = &the_process;
    int saved_errno = errno;

    /* The process id tells a vfork child, which runs in its parent's memory. */
    if (cca_process_is_active() && getpid() == process->identity.pid &&
        atomic_load_explicit(&process->start, memory_order_acquire) == CCA_START_DONE &&
        !atomic_exchange_explicit(&process->is_unloaded, true, memory_order_acq_rel)) {
        cca_exit_finish(process);
    }
    errno = saved_errno;
}

bool cca_process_stand_aside(const char *why)
{
    struct cca_process *process = &the_process;
    bool is_first;

    cca_lock_take(&process->lock);
    is_first = atomic_load_explicit(&process->allocator, memory_order_relaxed) == NULL &&
               process->config.mode == CCA_MODE_CACHE;
    if (is_first) {
        process->config.mode = CCA_MODE_COUNT;
    }
    cca_lock_drop(&process->lock);
    if (is_first) {
        cca_log(CCA_LOG_WARN, "%s: nothing is cached, as with CCA_MODE=count", why);
    }
    return is_first || process->config.mode != CCA_MODE_CACHE;
}

static struct cca_estimate *current_estimate(void)
{
    return cca_process_is_active()
               ? atomic_load_explicit(&the_process.estimate, memory_order_acquire)
               : NULL;
}

void cca_process_passed_alloc(struct cca_heap *heap, const struct cca_request *request,
                              uint64_t addr, uint64_t took_ns)
{
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_estimate *estimate = current_estimate();

    if (allocator != NULL) {
        cca_allocator_note_passed(allocator, heap, request, addr);
    }
    if (estimate != NULL) {
        cca_estimate_alloc(estimate, heap, request, addr, took_ns);
    }
}

void cca_process_unmanaged_add(enum cca_unmanaged_kind kind, uint64_t address, int device,
                               const char *api, const char *library, uint64_t bytes)
{
    cca_unmanaged_add(&the_process.unmanaged, kind, address, device, api, library, bytes);
}

void cca_process_exported(uint64_t addr)
{
    struct cca_allocator *allocator = cca_process_allocator();

    if (allocator != NULL) {
        struct cca_address_info info = cca_allocator_look_up(allocator, addr);

        if (info.is_live_block) {
            cca_exported_add(&the_process.exported, addr, info.alloc_time_ns);
        }
    }
}

void cca_process_unmanaged_remove(enum cca_unmanaged_kind kind, uint64_t address)
{
    cca_unmanaged_remove(&the_process.unmanaged, kind, address);
}

int cca_process_passed_free(uint64_t addr, const struct cca_request *request)
{
    struct cca_estimate *estimate = current_estimate();

    cca_unmanaged_remove(&the_process.unmanaged, CCA_UNMANAGED_DEVICE, addr);

    return estimate != NULL ? cca_estimate_free(estimate, addr, request) : -1;
}

void cca_process_passed_free_took(int token, uint64_t took_ns)
{
    struct cca_estimate *estimate = current_estimate();

    if (estimate != NULL) {
        cca_estimate_freed(estimate, token, took_ns);
    }
}

void cca_process_stop_caching_because(const char *reason)
{
    struct cca_allocator *allocator = cca_process_allocator();

    if (allocator != NULL && cca_allocator_stop(allocator) &&
        the_process.config.mode == CCA_MODE_CACHE) {
        cca_log(CCA_LOG_WARN, "caching ends: %s; live memory stays valid", reason);
    }
}

void cca_process_stop_caching(const char *api)
{
    char reason[REASON_BYTES];

    cca_format(reason, sizeof(reason), "the program called %s, which is not handled yet", api);
    cca_process_stop_caching_because(reason);
}
