/* SPDX-License-Identifier: MIT */
/* Note "no descriptor". libunwind proves that an address is readable by writing one byte from there
 * into a pipe of its own, and reads it back first; the two descriptors stay open for good. A
 * program that closes all descriptors and opens files again would find our bytes in its files, and
 * bytes missing from its sockets. All such reads go through the access_mem accessor of the local
 * address space, so that accessor is replaced by read_memory below, which asks the kernel without
 * any descriptor. The pipe is then never used again and is closed. The self-test sees to it that
 * the replacement is what libunwind calls; else there is no unwinding at all. */
#include "observe/unwind.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "base/clock.h"
#include "base/loader_gate.h"

#define NAME_OF_(symbol) #symbol
#define NAME_OF(symbol)  NAME_OF_(symbol)

/* Memory of others is read as it is: no redzones, no alignment. */
#define AS_IT_IS \
    __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

typedef int (*backtrace_fn)(void **, int);

enum {
    FRAMES_MAX = 128,
    SKIP_MAX = 31,
    OWN_FRAMES = 1, /* cca_unwind_capture itself */
    STRIPES = 16,
    WARM_CAPTURES = 64, /* a thread's captures before slow ones are counted */
    SLOW_NS = 5000,
    PIPE_SPOTS_MAX = 8,
    FIRST_PAGES = 4096, /* no code lies there */
    FRAME_BYTES_MAX = 1 << 20
};

/* Threads count in different cache lines. */
struct stripe {
    _Atomic uint64_t captures, missing, truncated, slow;
} __attribute__((aligned(64)));

struct thread_state {
    bool is_inside;
    unsigned stripe;      /* 1 + index; 0 = none yet */
    unsigned captures;    /* up to WARM_CAPTURES */
    uintptr_t frame;      /* of the capture: the stack below it is in use */
    uintptr_t known_page; /* found readable during this capture */
};

static CCA_THREAD_LOCAL struct thread_state thread_state;

/* Guarded by the caller of cca_unwind_start, but for the atomics. */
static struct {
    _Atomic(backtrace_fn) backtrace; /* NULL = captures return 0 */
    atomic_bool is_stopped;
    _Atomic unsigned next_stripe;
    _Atomic uint64_t reads; /* calls of read_memory during the self-test */
    uint64_t slow_ticks;    /* 0 = not counted */
    uintptr_t page_bytes;
    _Atomic(const char *) name;
    atomic_bool is_fallback;          /* not the one that was wanted first */
    _Atomic uint64_t before_fallback; /* captures until then */
    atomic_bool has_foreseen, is_distrusted;
    _Atomic(backtrace_fn) replacement; /* ready for cca_unwind_distrust */
    int (*gcc_walk)(int (*step)(void *context, void *user), void *user);
    uintptr_t (*gcc_ip)(void *context);
    struct stripe stripes[STRIPES];
} unwinder;

static const char libunwind_name[] = "libunwind";

static uint64_t ticks(void)
{
#ifdef __x86_64__
    return __rdtsc();
#else
    return 0;
#endif
}

/* The kernel copies the eight bytes of the mask before it refuses the operation: EFAULT when they
 * cannot be read, EINVAL when they can. Nothing is changed. */
static bool is_readable(uintptr_t addr)
{
    return syscall(SYS_rt_sigprocmask, ~0L, addr, NULL, sizeof(uint64_t)) == 0 || errno != EFAULT;
}

static bool is_known_readable(uintptr_t addr)
{
    struct thread_state *self = &thread_state;
    uintptr_t page = addr & ~(unwinder.page_bytes - 1);
    bool is_one_page = ((addr + sizeof(unw_word_t) - 1) & ~(unwinder.page_bytes - 1)) == page;

    if (self->is_inside) {
        uintptr_t here = (uintptr_t)__builtin_frame_address(0);
        /* libunwind's own copy of the registers lies there: read at every capture. */
        if ((addr >= here && addr + sizeof(unw_word_t) <= self->frame) ||
            (is_one_page && page == self->known_page)) {
            return true;
        }
    }
    if (!is_readable(addr)) {
        return false;
    }
    if (is_one_page) {
        self->known_page = page;
    }
    return true;
}

/* An accessor of libunwind (see its documentation of access_mem). Other users of the same library
 * in this process get it too. */
AS_IT_IS static int read_memory(unw_addr_space_t as, unw_word_t addr, unw_word_t *value, int write,
                                void *arg)
{
    typedef unw_word_t any_word __attribute__((aligned(1), may_alias));

    (void)as;
    (void)arg;
    if (write) {
        *(any_word *)addr = *value;
        return 0;
    }
    if (CCA_UNLIKELY(atomic_load_explicit(&unwinder.backtrace, memory_order_relaxed) == NULL)) {
        atomic_fetch_add_explicit(&unwinder.reads, 1, memory_order_relaxed);
    }
    int saved_errno = errno;
    bool is_ok = is_known_readable(addr);
    errno = saved_errno;
    if (!is_ok) {
        return -UNW_EINVAL;
    }
    *value = *(const any_word *)addr;
    return 0;
}

/* The one place that looks symbols up. */
static void *look_up(void *library, const char *name)
{
    return dlsym(library, name);
}

/* Where libunwind may keep the numbers of its pipe: pairs of -1 in its data before it starts. */
struct pipe_spots {
    uintptr_t inside; /* an address in the library */
    int *spots[PIPE_SPOTS_MAX];
    int count;
};

static void scan_data(struct pipe_spots *found, uintptr_t start, uintptr_t end)
{
    start = (start + sizeof(int) - 1) & ~(uintptr_t)(sizeof(int) - 1);
    for (uintptr_t at = start; at + 2 * sizeof(int) <= end; at += sizeof(int)) {
        int *pair = (int *)at;
        if (pair[0] == -1 && pair[1] == -1 && found->count < PIPE_SPOTS_MAX) {
            found->spots[found->count++] = pair;
        }
    }
}

static int find_spots(struct dl_phdr_info *info, size_t size, void *user)
{
    struct pipe_spots *found = user;
    bool is_it = false;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        is_it |= part->p_type == PT_LOAD && found->inside - start < part->p_memsz;
    }
    for (int i = 0; is_it && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) != 0) {
            scan_data(found, start, start + part->p_filesz);
        }
    }
    return is_it;
}

static bool is_pipe_end(int fd, int mode, struct stat *info)
{
    int flags = fcntl(fd, F_GETFL);

    return flags != -1 && (flags & O_ACCMODE) == mode && fstat(fd, info) == 0 &&
           S_ISFIFO(info->st_mode);
}

/* Closes the pipe that libunwind opened since the spots were found, and makes it forget the
 * numbers. A library that was in use before has no such spot: its pipe belongs to its first user.
 */
static void close_pipe(const struct pipe_spots *found)
{
    for (int i = 0; i < found->count; i++) {
        int *pair = found->spots[i];
        struct stat in, out;
        if (pair[0] < 0 || pair[1] < 0) {
            continue;
        }
        if (is_pipe_end(pair[0], O_RDONLY, &in) && is_pipe_end(pair[1], O_WRONLY, &out) &&
            in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
            (void)close(pair[0]);
            (void)close(pair[1]);
            pair[0] = -1;
            pair[1] = -1;
        }
    }
}

static bool can_tell_readable(void)
{
    uint64_t word = 0;
    void *closed = mmap(NULL, unwinder.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool is_ok = closed != MAP_FAILED && is_readable((uintptr_t)&word) &&
                 !is_readable((uintptr_t)closed);

    if (closed != MAP_FAILED) {
        (void)munmap(closed, unwinder.page_bytes);
    }
    return is_ok;
}

/* The first call fills the thread's cache, and so reads memory through the accessor. */
CCA_NOINLINE static bool passes_self_test(backtrace_fn backtrace, const char **why_out)
{
    void *frames[FRAMES_MAX];
    if (!cca_loader_gate_enter_late()) {
        *why_out = "a fork takes too long";
        return false;
    }
    int cold = backtrace(frames, FRAMES_MAX);
    int warm = backtrace(frames, FRAMES_MAX);
    cca_loader_gate_leave();

    if (atomic_load_explicit(&unwinder.reads, memory_order_relaxed) == 0) {
        *why_out = "libunwind.so.8 does not let its memory check be replaced";
        return false;
    }
    if (cold <= 2 || warm != cold) {
        *why_out = "libunwind.so.8 finds too few frames";
        return false;
    }
    return true;
}

static backtrace_fn load_unwinder(const char **why_out)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        *why_out = "libunwind.so.8 is not there";
        return NULL;
    }
    int (*backtrace)(void **, int);
    int (*set_policy)(unw_addr_space_t, unw_caching_policy_t);
    unw_accessors_t *(*get_accessors)(unw_addr_space_t);
    unw_addr_space_t *space = look_up(library, NAME_OF(unw_local_addr_space));
    *(void **)&backtrace = look_up(library, "unw_backtrace");
    *(void **)&set_policy = look_up(library, NAME_OF(unw_set_caching_policy));
    *(void **)&get_accessors = look_up(library, NAME_OF(unw_get_accessors));
    if (space == NULL || backtrace == NULL || set_policy == NULL || get_accessors == NULL) {
        *why_out = "libunwind.so.8 lacks a function";
        return NULL;
    }
    struct pipe_spots found = {.inside = (uintptr_t)space};
    if (cca_loader_gate_enter_late()) {
        (void)dl_iterate_phdr(find_spots, &found);
        cca_loader_gate_leave();
    }
    unw_accessors_t *accessors = get_accessors(*space); /* starts the library up */
    if (accessors == NULL || set_policy(*space, UNW_CACHE_NONE) != 0) {
        *why_out = "libunwind.so.8 does not let its cache be switched off";
        return NULL;
    }
    accessors->access_mem = read_memory;
    close_pipe(&found);
    if (!passes_self_test(backtrace, why_out)) {
        return NULL;
    }
    *why_out = "libunwind.so.8 is in use";
    return backtrace;
}

/* libgcc walks without a cache: some microseconds for each stack, right after every dlclose. */
struct gcc_walk {
    void **frames;
    int max, count;
};

static int take_gcc_frame(void *context, void *user)
{
    enum { GO_ON = 0, END = 5 /* _URC_END_OF_STACK */ };
    struct gcc_walk *walk = user;
    uintptr_t ip = unwinder.gcc_ip(context);

    if (walk->count == walk->max || ip == 0) {
        return END;
    }
    walk->frames[walk->count++] = (void *)ip;
    return GO_ON;
}

/* Its first frame is this function; callers count from their own. */
CCA_NOINLINE static int gcc_backtrace(void **frames, int max)
{
    struct gcc_walk walk = {.frames = frames, .max = max + 1};
    void *with_own[FRAMES_MAX + SKIP_MAX + OWN_FRAMES + 1];

    walk.frames = with_own;
    (void)unwinder.gcc_walk(take_gcc_frame, &walk);
    if (walk.count <= 1) {
        return 0;
    }
    memcpy(frames, with_own + 1, (size_t)(walk.count - 1) * sizeof(*frames));
    return walk.count - 1;
}

/* Follows the chain of frame pointers upwards as far as it is readable; each frame lies above the
 * one before, at most a megabyte. */
AS_IT_IS CCA_NOINLINE static int pointer_backtrace(void **frames, int max)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    int count = 0;

    while (count < max) {
        uintptr_t at = (uintptr_t)frame;

        if (at % sizeof(uintptr_t) != 0 || !is_known_readable(at) ||
            !is_known_readable(at + sizeof(uintptr_t)) || frame[1] < FIRST_PAGES) {
            break;
        }
        frames[count++] = (void *)frame[1];
        if (frame[0] <= at || frame[0] - at > FRAME_BYTES_MAX) {
            break;
        }
        frame = (const uintptr_t *)frame[0];
    }
    return count;
}

static backtrace_fn load_libgcc(const char **why_out)
{
    void *frames[FRAMES_MAX];
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        *why_out = "libgcc_s.so.1 is not there";
        return NULL;
    }
    *(void **)&unwinder.gcc_walk = look_up(library, "_Unwind_Backtrace");
    *(void **)&unwinder.gcc_ip = look_up(library, "_Unwind_GetIP");
    if (unwinder.gcc_walk == NULL || unwinder.gcc_ip == NULL) {
        *why_out = "libgcc_s.so.1 lacks a function";
        return NULL;
    }
    if (!cca_loader_gate_enter_late()) {
        *why_out = "a fork takes too long";
        return NULL;
    }
    int count = gcc_backtrace(frames, FRAMES_MAX);
    cca_loader_gate_leave();
    if (count <= 2) {
        *why_out = "libgcc_s.so.1 finds too few frames";
        return NULL;
    }
    *why_out = "libgcc_s.so.1 is in use";
    return gcc_backtrace;
}

static backtrace_fn choose(enum cca_unwind_method method, const char **why_out)
{
    backtrace_fn backtrace = NULL;

    if (method == CCA_UNWIND_FRAME_POINTERS) {
        unwinder.name = "fp";
        *why_out = "frame pointers are in use";
        return pointer_backtrace;
    }
    if (method == CCA_UNWIND_AUTO || method == CCA_UNWIND_LIBUNWIND) {
        backtrace = load_unwinder(why_out);
        unwinder.name = backtrace != NULL ? libunwind_name : "none";
    }
    if (method == CCA_UNWIND_LIBGCC || (method == CCA_UNWIND_AUTO && backtrace == NULL)) {
        backtrace = load_libgcc(why_out);
        unwinder.name = backtrace != NULL ? "libgcc" : "none";
        unwinder.is_fallback = method == CCA_UNWIND_AUTO;
    }
    return backtrace;
}

const char *cca_unwind_name(void)
{
    return atomic_load(&unwinder.backtrace) != NULL ? atomic_load(&unwinder.name) : "none";
}

bool cca_unwind_start(enum cca_unwind_method method, const char **why_out)
{
    uint64_t start_ns = cca_clock_ns();
    uint64_t start_ticks = ticks();
    int saved_errno = errno;

    if (atomic_load(&unwinder.is_stopped)) {
        *why_out = "unwinding was stopped";
        return false;
    }
    if (atomic_load(&unwinder.backtrace) != NULL) {
        *why_out = "an unwinder is in use";
        return true;
    }
    unwinder.page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    backtrace_fn backtrace = NULL;
    if (can_tell_readable()) {
        backtrace = choose(method, why_out);
    } else {
        *why_out = "the kernel does not tell which memory is readable";
    }
    errno = saved_errno;
    if (backtrace == NULL) {
        return false;
    }
    uint64_t took_ns = cca_clock_ns() - start_ns;
    if (took_ns > 0) {
        unwinder.slow_ticks = (uint64_t)((double)(ticks() - start_ticks) / (double)took_ns *
                                         SLOW_NS);
    }
    atomic_store_explicit(&unwinder.backtrace, backtrace, memory_order_release);
    return true;
}

static void add_one(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static struct stripe *stripe_of(struct thread_state *self)
{
    if (CCA_UNLIKELY(self->stripe == 0)) {
        unsigned turn = atomic_fetch_add_explicit(&unwinder.next_stripe, 1, memory_order_relaxed);
        self->stripe = 1 + turn % STRIPES;
    }
    return &unwinder.stripes[self->stripe - 1];
}

int cca_unwind_capture(uintptr_t *pcs, int max, int skip)
{
    struct thread_state *self = &thread_state;
    backtrace_fn backtrace = atomic_load_explicit(&unwinder.backtrace, memory_order_acquire);
    void *frames[FRAMES_MAX + SKIP_MAX + OWN_FRAMES];

    if (CCA_UNLIKELY(backtrace == NULL || self->is_inside || max <= 0) ||
        CCA_UNLIKELY(!cca_loader_gate_enter())) {
        return 0;
    }
    int dropped = OWN_FRAMES + (skip < 0 ? 0 : skip < SKIP_MAX ? skip : SKIP_MAX);
    int wanted = dropped + (max < FRAMES_MAX ? max : FRAMES_MAX);
    int saved_errno = errno;
    struct stripe *stripe = stripe_of(self);

    self->is_inside = true;
    self->frame = (uintptr_t)__builtin_frame_address(0);
    self->known_page = 0;
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t start = ticks();
    int count = backtrace(frames, wanted);
    uint64_t took = ticks() - start;
    atomic_signal_fence(memory_order_seq_cst);
    self->is_inside = false;
    cca_loader_gate_leave();
    errno = saved_errno;

    add_one(&stripe->captures);
    if (count == wanted) {
        add_one(&stripe->truncated);
    }
    if (self->captures < WARM_CAPTURES) {
        self->captures++;
    } else if (CCA_UNLIKELY(took > unwinder.slow_ticks && unwinder.slow_ticks != 0)) {
        add_one(&stripe->slow);
    }
    if (CCA_UNLIKELY(count <= dropped)) {
        add_one(&stripe->missing);
        return 0;
    }
    count -= dropped;
    memcpy(pcs, &frames[dropped], (size_t)count * sizeof(frames[0]));
    return count;
}

void cca_unwind_stop(void)
{
    atomic_store(&unwinder.is_stopped, true);
    atomic_store(&unwinder.backtrace, NULL);
}

static struct cca_unwind_counts sum_stripes(void)
{
    struct cca_unwind_counts counts = {0};

    for (int i = 0; i < STRIPES; i++) {
        const struct stripe *stripe = &unwinder.stripes[i];
        counts.captures += atomic_load_explicit(&stripe->captures, memory_order_relaxed);
        counts.missing += atomic_load_explicit(&stripe->missing, memory_order_relaxed);
        counts.truncated += atomic_load_explicit(&stripe->truncated, memory_order_relaxed);
        counts.slow += atomic_load_explicit(&stripe->slow, memory_order_relaxed);
    }
    return counts;
}

struct cca_unwind_counts cca_unwind_counts(void)
{
    struct cca_unwind_counts counts = sum_stripes();
    uint64_t before = atomic_load(&unwinder.before_fallback);

    if (atomic_load(&unwinder.is_fallback) && counts.captures > before) {
        counts.fallback = counts.captures - before;
    }
    return counts;
}

/* From here on by libgcc, or not at all where it is not ready. */
static void use_replacement(void)
{
    backtrace_fn replacement = atomic_load(&unwinder.replacement);

    if (!atomic_load(&unwinder.is_stopped)) {
        atomic_store_explicit(&unwinder.backtrace, replacement, memory_order_release);
    }
    if (!atomic_exchange(&unwinder.is_fallback, true)) {
        atomic_store(&unwinder.before_fallback, sum_stripes().captures);
    }
    atomic_store(&unwinder.name, replacement != NULL ? "libgcc" : "none");
}

void cca_unwind_foresee_unload(void)
{
    const char *why;

    if ((atomic_load(&unwinder.name) != libunwind_name && !atomic_load(&unwinder.is_distrusted)) ||
        atomic_exchange(&unwinder.has_foreseen, true)) {
        return;
    }
    atomic_store(&unwinder.replacement, load_libgcc(&why));
    if (atomic_load(&unwinder.is_distrusted)) {
        use_replacement(); /* a capture could not wait for it */
    }
}

void cca_unwind_distrust(void)
{
    if (atomic_load(&unwinder.name) == libunwind_name) {
        atomic_store(&unwinder.is_distrusted, true);
        use_replacement();
    }
}

void cca_unwind_repair(void)
{
    if (atomic_load(&unwinder.is_distrusted)) {
        cca_unwind_foresee_unload();
    }
}
