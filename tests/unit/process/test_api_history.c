/* SPDX-License-Identifier: MIT */
/* The history in the public interface: this program exports its table. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "alloc/allocator_internal.h"
#include "base/reentry.h"
#include "cca/cca.h"
#include "process/state.h"
#include "scenario.h"

extern const struct cca_api_1_table cca_api_1;

static const struct cca_history_options everything = {
    .struct_bytes = sizeof(everything), .enabled = "all", .context = "alloc"};

static struct cca_trace_ring *ring_of(struct cca_heap *heap)
{
    return &heap->observer.ring;
}

/* The newest entry. */
static struct cca_trace_entry last_entry(struct cca_heap *heap)
{
    struct cca_trace_entry entry = {0};

    CHECK(cca_trace_ring_copy(ring_of(heap), &entry, 1) == 1);
    return entry;
}

static void ask_before_context(void)
{
    cca_process_load();
    CHECK(cca_api_1_find_() == &cca_api_1);
    CHECK(cca_record_memory_history(&everything) == -ENODEV);
    CHECK(cca_mark("x") == -ENODEV && cca_annotate((void *)8, "x") == -ENODEV);
    CHECK(cca_annotation_begin(0, "x") == -ENODEV && cca_snapshot_to_fd(1, NULL) == -ENODEV);
    CHECK(cca_set_user_metadata("early") == 0);
    CHECK(strcmp(cca_get_user_metadata(), "early") == 0);
}

static void nothing_but_metadata_comes_before_the_first_context(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_before_context, NULL).status, 0);
}

static void change_history(void)
{
    struct cca_heap *heap = load_with_context();
    struct cca_history_options options = everything;

    for (int i = 0; i < 10; i++) {
        hook_free(hook_alloc(heap, 4096));
    }
    CHECK(cca_trace_ring_count(ring_of(heap)) == 31);
    uint64_t newest = last_entry(heap).seq;
    options.max_entries = 8;
    CHECK(cca_record_memory_history(&options) == 0);
    CHECK(cca_trace_ring_count(ring_of(heap)) == 8 && cca_trace_ring_lost(ring_of(heap)) == 23);
    CHECK(last_entry(heap).seq == newest);
    options.enabled = "state";
    CHECK(cca_record_memory_history(&options) == 0 && cca_trace_ring_count(ring_of(heap)) == 1);
    options.enabled = NULL;
    CHECK(cca_record_memory_history(&options) == 0 && cca_trace_ring_count(ring_of(heap)) == 0);
    hook_free(hook_alloc(heap, 4096));
    CHECK(cca_trace_ring_count(ring_of(heap)) == 0);
    CHECK(heap->observer.stats.allocation[CCA_STAT_ALL].allocated == 11);
    options = everything;
    options.skip_actions = "oom";
    CHECK(cca_record_memory_history(&options) == 0);
    hook_free(hook_alloc(heap, 4096));
    CHECK(cca_trace_ring_count(ring_of(heap)) == 3);
    options.clear_history = 1;
    CHECK(cca_record_memory_history(&options) == 0 && cca_trace_ring_count(ring_of(heap)) == 0);
    CHECK(cca_trace_ring_lost(ring_of(heap)) == 0);
}

static void refuse_history(void)
{
    struct cca_history_options options = everything;

    (void)load_with_context();
    CHECK(cca_record_memory_history(NULL) == -EINVAL);
    options.struct_bytes = 0;
    CHECK(cca_record_memory_history(&options) == -EINVAL);
    options = everything;
    options.enabled = "some";
    CHECK(cca_record_memory_history(&options) == -EINVAL);
    options = everything;
    options.context = "deep";
    CHECK(cca_record_memory_history(&options) == -EINVAL);
    options = everything;
    options.skip_actions = "alloc";
    CHECK(cca_record_memory_history(&options) == -EINVAL);
    options.skip_actions = "oom,nothing";
    CHECK(cca_record_memory_history(&options) == -EINVAL);
    CHECK(cca_reentry_enter());
    CHECK(cca_record_memory_history(&everything) == -EBUSY);
    cca_reentry_leave();
}

static void history_changes_while_the_program_runs(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(change_history, NULL).status, 0);
    assert_int_equal(run_scenario(refuse_history, NULL).status, 0);
}

static void write_texts(void)
{
    struct cca_heap *heap = load_with_context();
    uint64_t block;

    CHECK(cca_set_user_metadata("step 1") == 0);
    block = hook_alloc(heap, 4096);
    CHECK(strcmp(cca_texts_get(&cca_process_state()->texts, last_entry(heap).metadata), "step 1") ==
          0);
    CHECK(cca_annotate((void *)(uintptr_t)block, "weights") == 0);
    CHECK(last_entry(heap).kind == CCA_EVENT_ANNOTATE && last_entry(heap).addr == block);
    CHECK(strcmp(cca_texts_get(&cca_process_state()->texts, last_entry(heap).metadata),
                 "weights") == 0);
    CHECK(cca_annotate((void *)(uintptr_t)(block + 512), "inside") == -ENOENT);
    CHECK(cca_annotate((void *)(uintptr_t)block, "") == -EINVAL);
    CHECK(cca_set_user_metadata(NULL) == 0 && strcmp(cca_get_user_metadata(), "") == 0);
    hook_free(block);
    CHECK(last_entry(heap).metadata == 0);
    CHECK(cca_annotate((void *)(uintptr_t)block, "freed") == -ENOENT);
    CHECK(cca_mark("epoch 2") == 0);
    CHECK(last_entry(heap).kind == CCA_EVENT_SNAPSHOT);
    CHECK(cca_annotation_begin(0, "forward") == 0 && cca_annotation_end(0, "forward") == 0);
    CHECK(cca_annotation_begin(0, NULL) == -EINVAL && cca_annotation_begin(-1, "x") == -EINVAL);
    CHECK(cca_annotations_count(&cca_process_state()->annotations) == 2);
}

static void texts_reach_the_history(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(write_texts, NULL).status, 0);
}

struct frames {
    int count;
    bool has_caller;
};

static void take_frame(void *user, uint64_t address, const char *name, const char *filename,
                       int line)
{
    struct frames *frames = user;

    CHECK(address != 0 && filename != NULL && line >= 0);
    frames->count++;
    frames->has_caller |= strcmp(name, "trace_back") == 0;
}

CCA_NOINLINE static void trace_back(void)
{
    struct cca_heap *heap = load_with_context();
    uint64_t block = hook_alloc(heap, 4096);
    struct frames frames = {0};
    int count = cca_allocation_traceback((void *)(uintptr_t)block, take_frame, &frames);

    CHECK(count == frames.count);
#ifndef __SANITIZE_THREAD__ /* its frames stop the unwinder */
    CHECK(count > 2 && frames.has_caller);
#endif
    CHECK(cca_allocation_traceback((void *)8, take_frame, &frames) == -ENOENT);
    CHECK(cca_allocation_traceback((void *)(uintptr_t)block, NULL, NULL) == -EINVAL);
}

static void an_allocation_tells_its_stack(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(trace_back, NULL).status, 0);
}

static void write_to_descriptor(void)
{
    char head[2] = "";
    int fd;

    (void)hook_alloc(load_with_context(), 4096);
    fd = open("own", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && cca_snapshot_to_fd(fd, "json") == 0);
    CHECK(pread(fd, head, 1, 0) == 1 && head[0] == '{');
    CHECK(cca_snapshot_to_fd(fd, "xml") == -EINVAL && cca_snapshot_to_fd(-1, NULL) == -EINVAL);
    close(fd);
    fd = open("/dev/full", O_WRONLY);
    CHECK(fd >= 0 && cca_snapshot_to_fd(fd, NULL) == -ENOSPC);
}

static void a_snapshot_goes_to_a_descriptor(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(write_to_descriptor, NULL).status, 0);
}

enum { THREADS = 8, SWITCHES = 200 };

static atomic_bool is_over;

static void *allocate_on(void *heap)
{
    while (!atomic_load(&is_over)) {
        hook_free(hook_alloc(heap, 4096));
    }
    return NULL;
}

static void switch_under_load(void)
{
    static const char *const levels[] = {"all", "state", NULL};
    struct cca_heap *heap = load_with_context();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, allocate_on, heap) == 0);
    }
    for (int i = 0; i < SWITCHES; i++) {
        struct cca_history_options options = everything;

        options.enabled = levels[i % 3];
        options.max_entries = 1 + (uint64_t)(i * 37 % 1000);
        options.clear_history = i % 4 == 0;
        CHECK(cca_record_memory_history(&options) == 0);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(heap->observer.stats.allocation[CCA_STAT_ALL].current == 0);
    CHECK(cca_record_memory_history(&everything) == 0);
    hook_free(hook_alloc(heap, 4096));
    CHECK(last_entry(heap).kind == CCA_EVENT_FREE_COMPLETED);
}

static void history_is_switched_under_eight_threads(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(switch_under_load, NULL).status, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_but_metadata_comes_before_the_first_context),
    cmocka_unit_test(history_changes_while_the_program_runs),
    cmocka_unit_test(texts_reach_the_history),
    cmocka_unit_test(an_allocation_tells_its_stack),
    cmocka_unit_test(a_snapshot_goes_to_a_descriptor),
    cmocka_unit_test(history_is_switched_under_eight_threads),
};

CCA_TEST_MAIN(tests)
