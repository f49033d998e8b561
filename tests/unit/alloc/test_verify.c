/* SPDX-License-Identifier: MIT */
#include "alloc/verify.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc/private_pool.h"
#include "support/heap_fixture.h"

/* A heap with a block of every kind: live, free, pending, of a private pool. */
static struct fixture fix;
static struct cca_block *live, *rest;
static struct cca_private_pool *pool;

static int setup(void **state)
{
    const struct cca_pool_id id = {0, 3};
    const struct cca_pool_scope scope = {.kind = CCA_SCOPE_STREAM, .stream = 9};
    (void)state;
    fixture_open(&fix, 1);
    uint64_t addr = fix_malloc_async(&fix, MIB(3), 1), used = fix_malloc_async(&fix, 512, 1);
    live = cca_block_map_find(&fix.heaps[0]->live, addr);
    rest = live->next;
    cca_allocator_record_stream(fix.allocator, used, 2);
    fix_free_async(&fix, used, 1);
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], id, &scope), 0);
    fix_malloc_async(&fix, MIB(3), 9);
    pool = cca_private_pool_find(fix.heaps[0], id);
    fix_verify(&fix);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&fix);
    return 0;
}

static const char *verdict(void)
{
    cca_lock_take(&fix.heaps[0]->lock);
    const char *broken = cca_verify_heap(fix.heaps[0]);
    cca_lock_drop(&fix.heaps[0]->lock);
    return broken;
}

/* Whatever is changed alone is noticed, and all is well again once it is put back. */
#define NOTICED(lvalue, change)                                  \
    do {                                                         \
        __typeof__(lvalue) kept_ = (lvalue);                     \
        lvalue change;                                           \
        if (verdict() == NULL) {                                 \
            fail_msg("%s %s was not noticed", #lvalue, #change); \
        }                                                        \
        (lvalue) = kept_;                                        \
        assert_null(verdict());                                  \
    } while (0)

static void a_changed_block_is_noticed(void **state)
{
    (void)state;
    NOTICED(live->bytes, += 512);
    NOTICED(live->addr, += 512);
    NOTICED(live->requested_bytes, = live->bytes + 1);
    NOTICED(live->state, = CCA_BLOCK_PENDING);
    NOTICED(live->segment, = NULL);
    NOTICED(live->next, = NULL);
    NOTICED(rest->state, = CCA_BLOCK_LIVE);
    NOTICED(rest->prev, = NULL);
    NOTICED(rest->bin, += 1);
}

static void a_changed_account_is_noticed(void **state)
{
    struct cca_heap *heap = fix.heaps[0];
    struct cca_stats *stats = &heap->observer.stats;
    (void)state;
    NOTICED(heap->reserved_bytes, += 1);
    NOTICED(heap->pending_bytes, += 1);
    NOTICED(heap->pools[0].whole_bytes, += 1);
    NOTICED(stats->allocated_bytes[0].current, += 1);
    NOTICED(stats->active[0].current, -= 1);
    NOTICED(stats->requested_bytes[0].current, += 1);
    NOTICED(stats->segment[0].current, += 1);
    NOTICED(stats->reserved_bytes[0].peak, = 0);
    NOTICED(stats->inactive_split[0].current, += 1);
    NOTICED(stats->inactive_split_bytes[0].current, += 1);
}

static void a_changed_pool_is_noticed(void **state)
{
    struct cca_heap *heap = fix.heaps[0];
    (void)state;
    NOTICED(pool->segments, += 1);
    NOTICED(pool->number, += 1);
    NOTICED(pool->id.handle, += 1);
    NOTICED(pool->pools[0].whole_bytes, += 1);
    NOTICED(heap->observer.pools.rows[pool->number].is_live, = false);
    NOTICED(
        heap->observer.pools.rows[pool->number].stats.reserved_bytes_by_private_pools[0].current,
        += 1);
}

static void a_changed_wait_is_noticed(void **state)
{
    struct cca_block *pending = NULL;
    (void)state;
    CCA_LIST_EACH (link, &fix.heaps[0]->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        pending = segment->first->state == CCA_BLOCK_PENDING ? segment->first : pending;
    }
    assert_non_null(pending);
    NOTICED(pending->use_events, += 1);
    NOTICED(pending->use_events, = 0);
    NOTICED(pending->state, = CCA_BLOCK_LIVE);
}

static void a_changed_capture_is_noticed(void **state)
{
    const struct cca_pool_id id = {7, 0};
    const struct cca_pool_scope scope = {.kind = CCA_SCOPE_CAPTURE, .stream = 5};
    (void)state;
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], id, &scope), 0);
    uint64_t addr = fix_malloc_async(&fix, MIB(3), 5);
    struct cca_block *block = cca_block_map_find(&fix.heaps[0]->live, addr);
    cca_allocator_record_stream(fix.allocator, addr, 6);
    fix_free_async(&fix, addr, 5);
    assert_null(verdict());
    NOTICED(fix.heaps[0]->captures, += 1);
    NOTICED(cca_private_pool_find(fix.heaps[0], id)->uses, = 0);
    NOTICED(block->uses, = NULL);
    NOTICED(fix.heaps[0]->marker_records.items_taken, += 1);
}

/* With CCA_VERIFY=1 the next operation of a debug build ends the process; others do not look. */
static void the_next_operation_looks_in_debug_builds(void **state)
{
    int status = 0;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        fix.heaps[0]->observer.stats.allocation[0].current += 1;
        fix_malloc_async(&fix, 512, 4);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
#ifdef NDEBUG
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#endif
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_changed_block_is_noticed, setup, teardown),
    cmocka_unit_test_setup_teardown(a_changed_account_is_noticed, setup, teardown),
    cmocka_unit_test_setup_teardown(a_changed_pool_is_noticed, setup, teardown),
    cmocka_unit_test_setup_teardown(a_changed_wait_is_noticed, setup, teardown),
    cmocka_unit_test_setup_teardown(a_changed_capture_is_noticed, setup, teardown),
    cmocka_unit_test_setup_teardown(the_next_operation_looks_in_debug_builds, setup, teardown),
};

CCA_TEST_MAIN(tests)
