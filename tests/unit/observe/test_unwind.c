/* SPDX-License-Identifier: MIT */
#include "observe/unwind.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loader_gate.h"
#include "support/test.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OTHER_MALLOC
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OTHER_MALLOC
#endif

#ifndef HAS_OTHER_MALLOC
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *ptr, size_t size);

static atomic_int malloc_calls;

CCA_EXPORT void *malloc(size_t size)
{
    atomic_fetch_add(&malloc_calls, 1);
    return __libc_malloc(size);
}

CCA_EXPORT void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&malloc_calls, 1);
    return __libc_calloc(count, size);
}

CCA_EXPORT void *realloc(void *ptr, size_t size)
{
    atomic_fetch_add(&malloc_calls, 1);
    return __libc_realloc(ptr, size);
}
#endif

enum { CHAIN = 3, THREADS = 8 };

/* What a chain of calls knows of itself, innermost first. */
struct chain {
    uintptr_t returns[CHAIN + 1];
    uintptr_t pcs[128];
    int max, skip, count;
};

static bool is_on; /* libunwind is installed */

#define RETURN_ADDRESS() (uintptr_t) __builtin_extract_return_addr(__builtin_return_address(0))

CCA_NOINLINE static void inner(struct chain *chain)
{
    chain->returns[0] = RETURN_ADDRESS();
    chain->count = cca_unwind_capture(chain->pcs, chain->max, chain->skip);
    __asm__ volatile("" ::: "memory");
}

CCA_NOINLINE static void middle(struct chain *chain)
{
    chain->returns[1] = RETURN_ADDRESS();
    inner(chain);
    __asm__ volatile("" ::: "memory");
}

CCA_NOINLINE static void outer(struct chain *chain)
{
    chain->returns[2] = RETURN_ADDRESS();
    middle(chain);
    __asm__ volatile("" ::: "memory");
}

CCA_NOINLINE static int capture_below(int depth, uintptr_t *pcs, int max)
{
    int count = depth == 0 ? cca_unwind_capture(pcs, max, 0) : capture_below(depth - 1, pcs, max);

    __asm__ volatile("" ::: "memory");
    return count;
}

static void nothing_is_captured_before_the_start(void **state)
{
    struct chain chain = {.max = 64};

    (void)state;
    outer(&chain);
    assert_int_equal(chain.count, 0);
    assert_int_equal(cca_unwind_counts().captures, 0);
}

static void need_unwinder(void)
{
    if (!is_on) {
        skip();
    }
}

static int open_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static void start_leaves_no_descriptor_open(void **state)
{
    const char *why = NULL;
    int before = open_descriptors();

    (void)state;
    errno = 77;
    is_on = cca_unwind_start(CCA_UNWIND_AUTO, &why);
    assert_int_equal(errno, 77);
    assert_non_null(why);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(is_on, dlopen("libunwind.so.8", RTLD_NOW | RTLD_NOLOAD) != NULL);
    assert_int_equal(cca_unwind_start(CCA_UNWIND_AUTO, &why), is_on);
}

static void frames_are_the_callers(void **state)
{
    struct chain chain = {.max = 64};

    (void)state;
    need_unwinder();
    errno = 77;
    outer(&chain);
    assert_int_equal(errno, 77);
    assert_true(chain.count > CHAIN);
    assert_in_range(chain.pcs[0], (uintptr_t)inner, (uintptr_t)inner + 1000);
    for (int i = 0; i < CHAIN; i++) {
        assert_int_equal(chain.pcs[i + 1], chain.returns[i]);
    }
}

static void innermost_frames_are_skipped(void **state)
{
    struct chain whole = {.max = 64};

    (void)state;
    need_unwinder();
    outer(&whole);
    for (int skip = 1; skip <= CHAIN; skip++) {
        struct chain part = {.max = 64, .skip = skip};
        outer(&part);
        assert_int_equal(part.count, whole.count - skip);
        for (int i = 0; i + skip <= CHAIN; i++) {
            assert_int_equal(part.pcs[i], part.returns[i + skip - 1]);
        }
    }
    uint64_t missing = cca_unwind_counts().missing;
    struct chain none = {.max = 64, .skip = 31};
    outer(&none);
    assert_int_equal(none.count, 0);
    assert_int_equal(cca_unwind_counts().missing, missing + 1);
}

static void depth_is_limited_and_counted(void **state)
{
    uintptr_t pcs[130] = {0};
    struct cca_unwind_counts before = cca_unwind_counts();

    (void)state;
    need_unwinder();
    assert_int_equal(capture_below(300, pcs, 20), 20);
    assert_int_equal(pcs[20], 0);
    assert_int_equal(capture_below(300, pcs, 1000), 128);
    assert_int_equal(pcs[128], 0);
    assert_int_equal(capture_below(300, pcs, 0), 0);
    assert_true(capture_below(1, pcs, 128) < 128);
    struct cca_unwind_counts after = cca_unwind_counts();
    assert_int_equal(after.truncated, before.truncated + 2);
    assert_int_equal(after.captures, before.captures + 3);
}

#ifndef HAS_OTHER_MALLOC
static void warm_captures_do_not_allocate(void **state)
{
    (void)state;
    uintptr_t pcs[128];
    need_unwinder();
    int warm = capture_below(5, pcs, 64);
    int before = atomic_load(&malloc_calls);
    for (int i = 0; i < 1000; i++) {
        if (capture_below(5 + i % 3, pcs, 64) < warm) {
            fail();
        }
    }
    assert_int_equal(atomic_load(&malloc_calls), before);
    void *volatile block = malloc(1);
    free(block);
    assert_true(atomic_load(&malloc_calls) > before);
}
#endif

/* libunwind frees a thread's cache in the last round of key destructors, under a lock, and gcc's
 * ThreadSanitizer has taken the thread's state down in that round already: threads that captured
 * must not end there. */
#ifdef __SANITIZE_THREAD__
enum { THREADS_MAY_END = 0 };
#else
enum { THREADS_MAY_END = 1 };
#endif

struct worker {
    pthread_t thread;
    pthread_barrier_t *done;
    int wrong;
};

static void *capture_often(void *user)
{
    uintptr_t pcs[128];
    struct worker *worker = user;
    int first = capture_below(0, pcs, 128);

    for (int i = 0; i < 2000; i++) {
        int depth = i % 60;
        worker->wrong += capture_below(depth, pcs, 128) != first + depth;
    }
    pthread_barrier_wait(worker->done);
    while (!THREADS_MAY_END) {
        pause();
    }
    return NULL;
}

static void threads_capture_at_once(void **state)
{
    static struct worker workers[THREADS];
    static pthread_barrier_t done;
    uint64_t before = cca_unwind_counts().captures;

    (void)state;
    need_unwinder();
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        workers[i].done = &done;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, capture_often, &workers[i]), 0);
    }
    pthread_barrier_wait(&done);
    for (int i = 0; i < THREADS; i++) {
        if (THREADS_MAY_END) {
            pthread_join(workers[i].thread, NULL);
        }
        assert_int_equal(workers[i].wrong, 0);
    }
    assert_int_equal(cca_unwind_counts().captures, before + THREADS * 2001);
}

static void *capture_once(void *user)
{
    uintptr_t pcs[128];

    *(int *)user = capture_below(0, pcs, 128);
    return NULL;
}

static void other_threads_capture_nothing_while_one_forks(void **state)
{
    pthread_t thread;
    uintptr_t pcs[128];
    int count = -1;

    (void)state;
    need_unwinder();
    assert_true(cca_loader_gate_close());
    assert_int_equal(pthread_create(&thread, NULL, capture_once, &count), 0);
    pthread_join(thread, NULL);
    assert_int_equal(count, 0);
    assert_true(capture_below(0, pcs, 128) > 0);
    cca_loader_gate_open();
}

#ifdef __x86_64__

/* Code without unwind information: each piece calls the function in its first argument. */
static const unsigned char with_frame_pointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static const unsigned char without_frame_pointer[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
                                                      0x48, 0x83, 0xc4, 0x08, 0xc3};
/* rbp points nowhere while the function runs. */
static const unsigned char with_bad_frame_pointer[] = {0x55, 0x48, 0xbd, 0x00, 0x10, 0,    0,   0,
                                                       0x12, 0,    0,    0xff, 0xd7, 0x5d, 0xc3};

enum { PIECES = 240, PIECE_BYTES = 64, FILES_MAX = 200, FILE_BYTES = 100 };

typedef void (*call_fn)(void (*fn)(void));

static unsigned char *pieces;
static int piece_at, piece_end;

CCA_NOINLINE static void hop(void)
{
    uintptr_t pcs[128];

    (void)cca_unwind_capture(pcs, 128, 0);
    if (piece_at < piece_end) {
        call_fn next;
        void *code = &pieces[piece_at++ * PIECE_BYTES];
        *(void **)&next = code;
        next(hop);
    }
    __asm__ volatile("" ::: "memory");
}

static void make_pieces(void)
{
    static const struct {
        const unsigned char *code;
        size_t size;
    } kinds[] = {{with_frame_pointer, sizeof(with_frame_pointer)},
                 {with_frame_pointer, sizeof(with_frame_pointer)},
                 {without_frame_pointer, sizeof(without_frame_pointer)},
                 {with_bad_frame_pointer, sizeof(with_bad_frame_pointer)}};

    pieces = mmap(NULL, PIECES * PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
    assert_ptr_not_equal(pieces, MAP_FAILED);
    for (int i = 0; i < PIECES; i++) {
        memcpy(&pieces[i * PIECE_BYTES], kinds[i % 4].code, kinds[i % 4].size);
    }
    assert_int_equal(mprotect(pieces, PIECES * PIECE_BYTES, PROT_READ | PROT_EXEC), 0);
}

/* Every number a library may remember becomes a file of ours. */
static int reopen_all(void)
{
    static const char text[FILE_BYTES];
    int last = 0;

    for (int fd = 3; fd < 1024; fd++) {
        (void)close(fd);
    }
    for (int i = 0; i < FILES_MAX; i++) {
        last = memfd_create("other", 0);
        if (last < 3 || write(last, text, sizeof(text)) != (ssize_t)sizeof(text) ||
            lseek(last, 0, SEEK_SET) != 0) {
            _exit(10);
        }
    }
    return last;
}

static void capture_among_files(void)
{
    int last = reopen_all();

    for (int start = 0; start < PIECES; start += 40) {
        piece_at = start;
        piece_end = start + 40;
        hop();
    }
    for (int fd = 3; fd <= last; fd++) {
        struct stat info;
        if (fstat(fd, &info) != 0 || info.st_size != FILE_BYTES) {
            _exit(12);
        }
        if (lseek(fd, 0, SEEK_CUR) != 0) {
            _exit(13);
        }
    }
    _exit(0);
}

static void files_of_the_program_stay_untouched(void **state)
{
    int status = -1;

    (void)state;
    need_unwinder();
    make_pieces();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        capture_among_files();
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void unreadable_frames_end_the_stack(void **state)
{
    (void)state;
    need_unwinder();
    piece_at = 0;
    piece_end = PIECES;
    hop();
    assert_int_equal(piece_at, PIECES);
}

#else

static void files_of_the_program_stay_untouched(void **state)
{
    (void)state;
    skip();
}

static void unreadable_frames_end_the_stack(void **state)
{
    (void)state;
    skip();
}

#endif

static void nothing_is_captured_after_the_stop(void **state)
{
    struct chain chain = {.max = 64};
    const char *why = NULL;

    (void)state;
    need_unwinder();
    cca_unwind_stop();
    outer(&chain);
    assert_int_equal(chain.count, 0);
    assert_false(cca_unwind_start(CCA_UNWIND_AUTO, &why));
    assert_non_null(why);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_captured_before_the_start),
    cmocka_unit_test(start_leaves_no_descriptor_open),
    cmocka_unit_test(frames_are_the_callers),
    cmocka_unit_test(innermost_frames_are_skipped),
    cmocka_unit_test(depth_is_limited_and_counted),
#ifndef HAS_OTHER_MALLOC
    cmocka_unit_test(warm_captures_do_not_allocate),
#endif
    cmocka_unit_test(files_of_the_program_stay_untouched),
    cmocka_unit_test(unreadable_frames_end_the_stack),
    cmocka_unit_test(threads_capture_at_once),
    cmocka_unit_test(other_threads_capture_nothing_while_one_forks),
    cmocka_unit_test(nothing_is_captured_after_the_stop),
};
CCA_TEST_MAIN(tests)
