/* SPDX-License-Identifier: MIT */
/* While the driver takes its time, other threads and snapshots do not wait for it. */
#include "support/heap_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "snapshot/capture.h"

enum { CALL_MS = 30, THREADS = 2, HITS = 60000, HIT_P99_NS = 100 * 1000 };
#define SNAPSHOT_NS UINT64_C(500000000)

static struct fixture fix;
static atomic_bool is_over;
static atomic_int calls, hits_meanwhile;
static atomic_bool is_in_call;
static uint64_t took_ns[THREADS][HITS];

static void be_slow(void)
{
    struct timespec time = {.tv_nsec = CALL_MS * 1000000L};
    atomic_fetch_add(&calls, 1);
    atomic_store(&is_in_call, true);
    nanosleep(&time, NULL);
    atomic_store(&is_in_call, false);
}

static void be_slow_too(void *user)
{
    (void)user;
    be_slow();
}

static uint64_t get(size_t bytes, cca_key key)
{
    struct cca_request request = {
        .api = CCA_API_MALLOC_ASYNC, .bytes = bytes, .key = key, .thread = (uint32_t)key};
    uint64_t addr = 0;
    if (cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind != CCA_OK) {
        abort();
    }
    return addr;
}

static void put(uint64_t addr, cca_key key)
{
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = key, .thread = (uint32_t)key};
    if (cca_allocator_free(fix.allocator, addr, &request) != CCA_FREE_DONE) {
        abort();
    }
}

/* Misses and releases, one slow call after the other. */
static void *ask_the_driver(void *unused)
{
    while (!atomic_load(&is_over)) {
        put(get(MIB(100), 9), 9);
        cca_allocator_empty_cache(fix.allocator);
    }
    return unused;
}

static void *hit(void *arg)
{
    uintptr_t thread = (uintptr_t)arg;
    cca_key key = 1 + thread;
    for (int i = 0; i < HITS; i++) {
        bool was_in_call = atomic_load(&is_in_call);
        uint64_t began_ns = cca_clock_ns();
        uint64_t addr = get(KIB(4), key);
        took_ns[thread][i] = cca_clock_ns() - began_ns;
        atomic_fetch_add(&hits_meanwhile, was_in_call && atomic_load(&is_in_call));
        put(addr, key);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void snapshot(void)
{
    struct cca_model model;
    struct cca_capture_options options = {.lock_ms = 10000};
    uint64_t began_ns = cca_clock_ns();
    assert_int_equal(cca_capture_model(&model, fix.allocator, &fix.config, &options), 0);
    assert_true(cca_clock_ns() - began_ns < SNAPSHOT_NS);
    assert_true(model.segment_count > 0);
    cca_model_fini(&model);
}

static void set(struct cca_config *config)
{
    config->verify = false;
    config->max_entries = 1000;
}

static void set_expandable(struct cca_config *config)
{
    set(config);
    config->expandable_segments = true;
}

static void run(void (*configure)(struct cca_config *config))
{
    pthread_t slow, fast[THREADS];
    uint64_t live[THREADS];
    fixture_open_with(&fix, 1, configure);
    for (cca_key key = 1; key <= THREADS; key++) {
        live[key - 1] = get(KIB(4), key); /* keeps a segment of the stream's own */
    }
    atomic_store(&is_over, false);
    atomic_store(&calls, 0);
    atomic_store(&hits_meanwhile, 0);
    fix.scripts[0]->on_alloc = be_slow_too;
    fix.scripts[0]->on_free = be_slow;
    pthread_create(&slow, NULL, ask_the_driver, NULL);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&fast[i], NULL, hit, (void *)i);
    }
    snapshot();
    for (int i = 0; i < THREADS; i++) {
        pthread_join(fast[i], NULL);
    }
    snapshot();
    atomic_store(&is_over, true);
    pthread_join(slow, NULL);
    qsort(took_ns, THREADS * HITS, sizeof(took_ns[0][0]), compare);
    uint64_t p99 = (&took_ns[0][0])[THREADS * HITS / 100 * 99];
    print_message("# hits: median %" PRIu64 " ns, 99th percentile %" PRIu64 " ns, %d slow calls\n",
                  (&took_ns[0][0])[THREADS * HITS / 2], p99, atomic_load(&calls));
    /* Behind a lock that is held over the call there would be one a thread and call. */
    assert_true(atomic_load(&calls) > 0);
    assert_true(atomic_load(&hits_meanwhile) > 100 * atomic_load(&calls));
    assert_true(p99 < HIT_P99_NS);
    fix.scripts[0]->on_alloc = NULL;
    fix.scripts[0]->on_free = NULL;
    for (cca_key key = 1; key <= THREADS; key++) {
        put(live[key - 1], key);
    }
    fix_verify(&fix);
    fixture_close(&fix);
}

static void hits_and_snapshots_do_not_wait_for_the_driver(void **state)
{
    (void)state;
    run(set);
}

static void nor_while_pages_are_mapped(void **state)
{
    (void)state;
    run(set_expandable);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_and_snapshots_do_not_wait_for_the_driver),
    cmocka_unit_test(nor_while_pages_are_mapped),
};

CCA_TEST_MAIN(tests)
