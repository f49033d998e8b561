/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include <pthread.h>

#include "alloc/fence.h"
#include "base/clock.h"

static void set_fence(struct cca_config *config)
{
    config->free_sync = CCA_FREE_FENCE;
}

static size_t pending(struct fixture *fix)
{
    return (size_t)(fix_stat(fix, "active_bytes.all.current") -
                    fix_stat(fix, "allocated_bytes.all.current"));
}

static void strict_waits_in_the_free_and_the_block_is_ready(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->waits, 1);
    assert_int_equal(fix.scripts[0]->done, fix.scripts[0]->submitted);
    assert_int_equal(pending(&fix), 0);
    assert_int_equal(fix_malloc(&fix, KIB(4)), a);
    assert_int_equal(fix.scripts[0]->allocs_made, 1);
    fixture_close(&fix);
}

static void fence_does_not_wait_and_does_not_reuse_before_the_work_is_over(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    uint64_t a = fix_malloc(&fix, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->waits, 0);
    assert_int_equal(pending(&fix), KIB(4));
    uint64_t b = fix_malloc(&fix, KIB(4));
    assert_int_not_equal(b, a);
    scripted_finish(fix.scripts[0]);
    assert_int_equal(fix_malloc(&fix, KIB(4)), a);
    assert_int_equal(pending(&fix), 0);
    fixture_close(&fix);
}

static void frees_that_follow_closely_share_a_fence(void **state)
{
    (void)state;
    struct fixture fix;
    uint64_t blocks[100];
    fixture_open_with(&fix, 1, set_fence);
    for (int i = 0; i < 100; i++) {
        blocks[i] = fix_malloc(&fix, KIB(1));
    }
    scripted_submit(fix.scripts[0]);
    for (int i = 0; i < 100; i++) {
        fix_free(&fix, blocks[i]);
    }
    assert_int_equal(fix.heaps[0]->observer.counters.fences, 2);
    assert_int_equal(fix.heaps[0]->observer.counters.fence_joins, 98);
    assert_int_equal(fix.scripts[0]->records, 100);
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(pending(&fix), 0);
    fixture_close(&fix);
}

static void a_later_free_moves_the_shared_fence_behind_its_own_work(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    uint64_t a = fix_malloc(&fix, KIB(4)), b = fix_malloc(&fix, KIB(4));
    fix_free(&fix, a); /* nothing submitted: its fence would be over at once */
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, b);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(pending(&fix), KIB(8));
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(pending(&fix), 0);
    fixture_close(&fix);
}

static void a_queried_fence_takes_no_more_blocks(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    uint64_t a = fix_malloc(&fix, KIB(4)), b = fix_malloc(&fix, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    cca_allocator_poll(fix.allocator, fix.heaps[0]); /* closes it */
    fix_free(&fix, b);
    assert_int_equal(fix.heaps[0]->observer.counters.fences, 2);
    fixture_close(&fix);
}

static void reuse_waits_for_every_device_in_use(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 2); /* strict: waits on its own device only */
    uint64_t a = fix_malloc(&fix, KIB(4));
    scripted_submit(fix.scripts[0]);
    scripted_submit(fix.scripts[1]);
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->waits, 1);
    assert_int_equal(fix.scripts[1]->waits, 0);
    assert_int_equal(pending(&fix), KIB(4));
    assert_int_not_equal(fix_malloc(&fix, KIB(4)), a);
    scripted_finish(fix.scripts[1]);
    assert_int_equal(fix_malloc(&fix, KIB(4)), a);
    fixture_close(&fix);
}

static void a_device_that_comes_up_later_opens_a_new_fence(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    uint64_t a = fix_malloc(&fix, KIB(4)), b = fix_malloc(&fix, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    fix.scripts[1] = calloc(1, sizeof(*fix.scripts[1]));
    scripted_device_init(fix.scripts[1], GIB(1));
    struct cca_device second = scripted_device(fix.scripts[1], 1);
    assert_non_null(cca_allocator_attach(fix.allocator, &second, 0xc1));
    scripted_submit(fix.scripts[1]);
    fix_free(&fix, b);
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(pending(&fix), KIB(4)); /* b: the second device is still at work */
    scripted_finish(fix.scripts[1]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(pending(&fix), 0);
    fixture_close(&fix);
}

static void an_async_free_is_reused_on_its_stream_at_once_and_elsewhere_never(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(12), 5);
    scripted_submit(fix.scripts[0]);
    fix_free_async(&fix, a, 5);
    assert_int_equal(fix.scripts[0]->records, 0);
    assert_int_not_equal(fix_malloc_async(&fix, MIB(12), 6), a);
    assert_int_not_equal(fix_malloc(&fix, MIB(12)), a);
    assert_int_equal(fix_malloc_async(&fix, MIB(12), 5), a);
    fixture_close(&fix);
}

static void a_stream_takes_the_better_of_its_own_and_the_ready_blocks(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t own = fix_malloc_async(&fix, MIB(12), 5), ready = fix_malloc(&fix, MIB(14));
    fix_free_async(&fix, own, 5);
    fix_free(&fix, ready);
    assert_int_equal(fix_malloc_async(&fix, MIB(13), 5), ready);
    assert_int_equal(fix_malloc_async(&fix, MIB(11), 5), own);
    fixture_close(&fix);
}

static void a_destroyed_stream_leaves_ready_blocks_once_its_work_is_over(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(12), 5);
    scripted_submit(fix.scripts[0]);
    fix_free_async(&fix, a, 5);
    cca_allocator_stream_ends(fix.allocator, fix.heaps[0], 5);
    uint64_t b = fix_malloc(&fix, MIB(12));
    assert_int_not_equal(b, a);
    scripted_finish(fix.scripts[0]);
    assert_int_equal(fix_malloc(&fix, MIB(12)), a);
    fixture_close(&fix);
}

static void blocks_freed_after_the_stream_ended_are_not_covered(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(12), 5), b = fix_malloc_async(&fix, MIB(12), 5);
    fix_free_async(&fix, a, 5);
    cca_allocator_stream_ends(fix.allocator, fix.heaps[0], 5);
    scripted_submit(fix.scripts[0]);
    fix_free_async(&fix, b, 5);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(fix_malloc(&fix, MIB(12)), a);
    assert_int_not_equal(fix_malloc(&fix, MIB(12)), b);
    fixture_close(&fix);
}

static void a_miss_reclaims_what_streams_hold_once_their_work_is_over(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(12), 5);
    scripted_submit(fix.scripts[0]);
    fix_free_async(&fix, a, 5);
    assert_int_not_equal(fix_malloc(&fix, MIB(12)), a); /* at work: grows, and marks this moment */
    scripted_finish(fix.scripts[0]);
    assert_int_equal(fix_malloc(&fix, MIB(12)), a);
    fixture_close(&fix);
}

static void streams_do_not_drain_the_ready_memory(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    for (cca_key round = 0; round < 2000; round++) {
        static const size_t sizes[] = {512, KIB(4), KIB(64), KIB(256), MIB(1) + 512};
        size_t bytes = sizes[round * 7 % 5];
        uint64_t ready = fix_malloc(&fix, bytes),
                 own = fix_malloc_async(&fix, bytes, 1 + round % 16);
        scripted_submit(fix.scripts[0]);
        fix_free_async(&fix, own, 1 + round % 16);
        fix_free(&fix, ready);
    }
    assert_true(fix_stat(&fix, "reserved_bytes.all.peak") <= (int64_t)MIB(100));
    fixture_close(&fix);
}

static void a_failed_record_sets_the_block_aside_until_one_succeeds(void **state)
{
    (void)state;
    struct fixture fix;
    for (int what = 0; what < 2; what++) {
        fixture_open_with(&fix, 1, set_fence);
        uint64_t a = fix_malloc(&fix, KIB(4));
        scripted_submit(fix.scripts[0]);
        fix.scripts[0]->fail_kind = CCA_UNSUPPORTED;
        *(what == 0 ? &fix.scripts[0]->fail_event_record : &fix.scripts[0]->fail_event_create) = 1;
        fix_free(&fix, a);
        assert_int_equal(pending(&fix), KIB(4));
        assert_int_not_equal(fix_malloc(&fix, KIB(4)), a); /* records it meanwhile */
        scripted_finish(fix.scripts[0]);
        assert_int_equal(fix_malloc(&fix, KIB(4)), a);
        fixture_close(&fix);
    }
}

static void a_strict_free_waits_even_when_nothing_can_be_recorded(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 2);
    uint64_t a = fix_malloc(&fix, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix.scripts[0]->fail_kind = CCA_UNSUPPORTED;
    fix.scripts[0]->fail_event_create = 1;
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->synchronizes, 1);
    assert_int_equal(pending(&fix), KIB(4)); /* the other device may still use it */
    assert_int_equal(fix_malloc(&fix, KIB(4)), a);
    fixture_close(&fix);
}

static void a_free_waits_only_where_the_native_call_does(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t async = fix_malloc_async(&fix, MIB(12), 5), plain = fix_malloc(&fix, MIB(14));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, async); /* cudaFree of memory from cudaMallocAsync */
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = CCA_KEY_READY};
    assert_int_equal(cca_allocator_free(fix.allocator, plain, &request), CCA_FREE_DONE);
    assert_int_equal(fix.scripts[0]->waits + fix.scripts[0]->synchronizes, 0);
    assert_int_equal(pending(&fix), MIB(26));
    assert_int_not_equal(fix_malloc(&fix, MIB(12)), async);
    scripted_finish(fix.scripts[0]);
    assert_int_equal(fix_malloc(&fix, MIB(12)), async);
    assert_int_equal(fix_malloc(&fix, MIB(14)), plain);
    fixture_close(&fix);
}

static void a_wait_of_the_program_proves_what_was_freed_before_it(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(12), 5), b = fix_malloc_async(&fix, MIB(13), 5),
             c = fix_malloc_async(&fix, MIB(14), 6);
    fix_free_async(&fix, a, 5);
    fix_free_async(&fix, c, 6);
    uint64_t mark = cca_allocator_sync_mark(fix.allocator, fix.heaps[0]);
    fix_free_async(&fix, b, 5); /* after the wait began */
    scripted_submit(fix.scripts[0]);
    cca_allocator_synchronized(fix.allocator, fix.heaps[0], 5, mark);
    assert_int_equal(fix_malloc(&fix, MIB(12)), a);
    assert_int_not_equal(fix_malloc(&fix, MIB(13)), b);
    assert_int_not_equal(fix_malloc(&fix, MIB(14)), c);
    cca_allocator_synchronized(fix.allocator, fix.heaps[0], CCA_KEY_READY, mark);
    assert_int_equal(fix_malloc(&fix, MIB(14)), c);
    fixture_close(&fix);
}

/* The block was freed in the order of a stream of the other device: a wait for this one is silent
 * about it. */
static void a_wait_for_one_device_proves_nothing_beside_another(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 2);
    uint64_t a = fix_malloc_async(&fix, MIB(12), 5);
    fix_free_async(&fix, a, 9);
    scripted_submit(fix.scripts[1]);
    uint64_t mark = cca_allocator_sync_mark(fix.allocator, fix.heaps[0]);
    cca_allocator_synchronized(fix.allocator, fix.heaps[0], CCA_KEY_READY, mark);
    assert_int_not_equal(fix_malloc(&fix, MIB(12)), a);
    scripted_finish(fix.scripts[1]);
    assert_int_equal(fix_malloc(&fix, MIB(12)), a);
    fixture_close(&fix);
}

/* Without an event to mark it, the wait itself is the proof where no other device is up. */
static void a_free_that_waits_without_an_event_is_complete(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, MIB(12));
    fix.scripts[0]->fail_event_create = 1;
    fix.scripts[0]->fail_kind = CCA_NO_MEMORY;
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->synchronizes, 1);
    assert_int_equal(pending(&fix), 0);
    assert_int_equal(fix_malloc(&fix, MIB(12)), a);
    fixture_close(&fix);
}

static void a_capture_suspends_and_its_end_resumes(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, MIB(12));
    cca_allocator_capture_begins(fix.allocator);
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->waits + fix.scripts[0]->synchronizes, 0);
    assert_int_equal(fix.scripts[0]->records, 0);
    assert_int_not_equal(fix_malloc(&fix, MIB(12)), a);
    cca_allocator_capture_ends(fix.allocator);
    scripted_finish(fix.scripts[0]);
    assert_int_equal(fix_malloc(&fix, MIB(12)), a);
    fixture_close(&fix);
}

static void after_a_stop_the_driver_gets_room_before_it_is_asked(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(200);
    fix_free(&fix, fix_malloc(&fix, MIB(80)));
    uint64_t a = fix_malloc_async(&fix, MIB(70), 5);
    fix_free_async(&fix, a, 5);
    cca_allocator_stop(fix.allocator);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    cca_allocator_make_room(fix.allocator, fix.heaps[0], MIB(10));
    assert_int_equal(fix.scripts[0]->frees_made, 0); /* there is room */
    cca_allocator_make_room(fix.allocator, fix.heaps[0], MIB(180));
    assert_int_equal(fix.scripts[0]->live_bytes, 0);
    fixture_close(&fix);
}

static void a_context_that_comes_back_makes_its_events_anew(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 2, set_fence);
    fix_free(&fix, fix_malloc(&fix, KIB(4)));
    unsigned events = fix.scripts[1]->event_count;
    assert_int_equal(events, 1);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    cca_allocator_detach(fix.allocator, 1);
    fix_free(&fix, fix_malloc(&fix, KIB(4)));
    assert_int_equal(fix.scripts[1]->event_count, events); /* it is gone: not asked */
    struct cca_device device = scripted_device(fix.scripts[1], 1);
    cca_allocator_attach(fix.allocator, &device, 0xd1);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    fix_free(&fix, fix_malloc(&fix, KIB(4)));
    assert_int_equal(fix.scripts[1]->event_count, events + 1);
    fixture_close(&fix);
}

static void a_broken_context_ends_service_and_never_waits(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    uint64_t a = fix_malloc(&fix, KIB(4));
    fix_free(&fix, a);
    fix.scripts[0]->is_broken = true;
    struct cca_request request = {.bytes = KIB(4), .key = CCA_KEY_READY};
    uint64_t addr = 0;
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_FATAL);
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_FATAL);
    fixture_close(&fix);
}

static void a_free_that_meets_a_broken_context_is_left_to_the_driver(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, KIB(4)), b = fix_malloc(&fix, KIB(4));
    fix.scripts[0]->is_broken = true;
    assert_int_equal(fix_try_free(&fix, a), CCA_FREE_FORWARD);
    assert_int_equal(fix_try_free(&fix, b), CCA_FREE_FORWARD);
    fixture_close(&fix);
}

static void during_a_capture_nothing_is_recorded_waited_for_or_given_back(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, KIB(4));
    assert_true(cca_allocator_stop(fix.allocator));
    assert_false(cca_allocator_stop(fix.allocator));
    cca_allocator_capture_begins(fix.allocator);
    unsigned calls = fix.scripts[0]->records + fix.scripts[0]->waits + fix.scripts[0]->queries +
                     fix.scripts[0]->frees_made;
    fix_free(&fix, a);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(calls, fix.scripts[0]->records + fix.scripts[0]->waits +
                                fix.scripts[0]->queries + fix.scripts[0]->frees_made);
    assert_int_equal(pending(&fix), KIB(4));
    assert_int_equal(fix_try_free(&fix, a), CCA_FREE_INVALID);
    fixture_close(&fix);
}

static void after_a_plain_stop_frees_wait_and_whole_segments_go_back(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    uint64_t a = fix_malloc(&fix, MIB(12)), b = fix_malloc(&fix, MIB(14));
    fix_free(&fix, b);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    cca_allocator_stop(fix.allocator);
    assert_int_equal(fix.scripts[0]->frees_made, 0); /* the call that ends caching does not wait */
    struct cca_request request = {.bytes = MIB(12), .key = CCA_KEY_READY};
    uint64_t addr = 0;
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_UNSUPPORTED);
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->waits, 1);
    assert_int_equal(fix.scripts[0]->frees_made, 2);
    assert_int_equal(fix.scripts[0]->live_bytes, 0);
    fixture_close(&fix);
}

static void set_small_cap(struct cca_config *config)
{
    config->free_sync = CCA_FREE_FENCE;
    config->pending_max = MIB(10);
}

static uint64_t fake_now_ns = 1;

static uint64_t fake_now(void)
{
    return fake_now_ns;
}

static void fake_sleep(uint64_t us)
{
    fake_now_ns += us * 1000;
}

static void over_the_cap_a_free_waits_a_bounded_time(void **state)
{
    (void)state;
    struct fixture fix;
    const struct cca_clock_source source = {fake_now, fake_sleep};
    fixture_open_with(&fix, 1, set_small_cap);
    cca_clock_replace(&source);
    scripted_submit(fix.scripts[0]);
    uint64_t began = fake_now_ns;
    for (int i = 0; i < 100; i++) {
        fix_free(&fix, fix_malloc(&fix, MIB(11)));
    }
    uint64_t waited_ms = (fake_now_ns - began) / 1000000;
    assert_in_range(waited_ms, 900, 1200); /* a hundred frees, one second at most in ten */
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    cca_clock_replace(NULL);
    assert_int_equal(pending(&fix), 0);
    fixture_close(&fix);
}

static void an_old_driver_waits_for_the_context(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    fix.heaps[0]->device.has_context_events = false;
    uint64_t a = fix_malloc(&fix, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->synchronizes, 1);
    assert_int_equal(fix.scripts[0]->records, 0);
    assert_int_equal(fix_malloc(&fix, KIB(4)), a);
    uint64_t b = fix_malloc_async(&fix, MIB(12), 5);
    fix_free_async(&fix, b, 5);
    cca_allocator_stream_ends(fix.allocator, fix.heaps[0], 5);
    assert_int_equal(fix.scripts[0]->synchronizes, 1); /* neither call waits natively */
    uint64_t c = fix_malloc(&fix, MIB(12));
    assert_int_not_equal(c, b);
    fix_free(&fix, c);
    assert_int_equal(fix.scripts[0]->synchronizes, 2);
    assert_int_equal(fix_malloc(&fix, MIB(12)), b); /* READY by that wait */
    fixture_close(&fix);
}

static void a_second_device_on_an_old_driver_ends_caching(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.heaps[0]->device.has_context_events = false;
    fix.scripts[1] = calloc(1, sizeof(*fix.scripts[1]));
    scripted_device_init(fix.scripts[1], GIB(1));
    struct cca_device second = scripted_device(fix.scripts[1], 1);
    second.has_context_events = false;
    cca_allocator_attach(fix.allocator, &second, 0xc1);
    assert_true(cca_allocator_is_stopped(fix.allocator));
    fixture_close(&fix);
}

struct worker {
    struct fixture *fix;
    unsigned seed;
};

/* Each thread writes its mark into its blocks' slots: a block that two threads hold at once, or
 * that is handed out while the work of its last owner is not over, shows. */
enum { SLOTS = 1 << 16 };
static _Atomic(void *) owner[SLOTS];
static _Atomic uint64_t busy_until[SLOTS];

static unsigned slot_of(uint64_t addr)
{
    return (unsigned)((addr - SCRIPTED_BASE) / 512 % SLOTS);
}

static void *churn(void *arg)
{
    struct worker *worker = arg;
    struct scripted_device *script = worker->fix->scripts[0];
    for (int i = 0; i < 2000; i++) {
        uint64_t addr = fix_malloc(worker->fix, 512);
        void *nobody = NULL;
        if (!atomic_compare_exchange_strong(&owner[slot_of(addr)], &nobody, worker)) {
            abort();
        }
        pthread_mutex_lock(&script->mutex);
        if (busy_until[slot_of(addr)] > script->done) {
            abort();
        }
        busy_until[slot_of(addr)] = ++script->submitted;
        if (rand_r(&worker->seed) % 4 == 0) {
            script->done = script->submitted;
        }
        pthread_mutex_unlock(&script->mutex);
        atomic_store(&owner[slot_of(addr)], NULL);
        fix_free(worker->fix, addr);
    }
    return NULL;
}

static void no_block_is_reused_early_with_eight_threads(void **state)
{
    (void)state;
    struct fixture fix;
    for (int mode = 0; mode < 2; mode++) {
        pthread_t threads[8];
        struct worker workers[8];
        fixture_open_with(&fix, 1, mode == 0 ? set_fence : NULL);
        fix.config.verify = false;
        memset((void *)busy_until, 0, sizeof(busy_until));
        for (unsigned i = 0; i < 8; i++) {
            workers[i] = (struct worker){&fix, i + 1};
            pthread_create(&threads[i], NULL, churn, &workers[i]);
        }
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
        }
        scripted_finish(fix.scripts[0]);
        cca_allocator_poll(fix.allocator, fix.heaps[0]);
        fix_verify(&fix);
        assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
        fixture_close(&fix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict_waits_in_the_free_and_the_block_is_ready),
        cmocka_unit_test(fence_does_not_wait_and_does_not_reuse_before_the_work_is_over),
        cmocka_unit_test(frees_that_follow_closely_share_a_fence),
        cmocka_unit_test(a_later_free_moves_the_shared_fence_behind_its_own_work),
        cmocka_unit_test(a_queried_fence_takes_no_more_blocks),
        cmocka_unit_test(reuse_waits_for_every_device_in_use),
        cmocka_unit_test(a_device_that_comes_up_later_opens_a_new_fence),
        cmocka_unit_test(an_async_free_is_reused_on_its_stream_at_once_and_elsewhere_never),
        cmocka_unit_test(a_stream_takes_the_better_of_its_own_and_the_ready_blocks),
        cmocka_unit_test(a_destroyed_stream_leaves_ready_blocks_once_its_work_is_over),
        cmocka_unit_test(blocks_freed_after_the_stream_ended_are_not_covered),
        cmocka_unit_test(a_miss_reclaims_what_streams_hold_once_their_work_is_over),
        cmocka_unit_test(streams_do_not_drain_the_ready_memory),
        cmocka_unit_test(a_failed_record_sets_the_block_aside_until_one_succeeds),
        cmocka_unit_test(a_strict_free_waits_even_when_nothing_can_be_recorded),
        cmocka_unit_test(a_free_waits_only_where_the_native_call_does),
        cmocka_unit_test(a_wait_of_the_program_proves_what_was_freed_before_it),
        cmocka_unit_test(a_wait_for_one_device_proves_nothing_beside_another),
        cmocka_unit_test(a_free_that_waits_without_an_event_is_complete),
        cmocka_unit_test(a_capture_suspends_and_its_end_resumes),
        cmocka_unit_test(after_a_stop_the_driver_gets_room_before_it_is_asked),
        cmocka_unit_test(a_context_that_comes_back_makes_its_events_anew),
        cmocka_unit_test(a_broken_context_ends_service_and_never_waits),
        cmocka_unit_test(a_free_that_meets_a_broken_context_is_left_to_the_driver),
        cmocka_unit_test(during_a_capture_nothing_is_recorded_waited_for_or_given_back),
        cmocka_unit_test(after_a_plain_stop_frees_wait_and_whole_segments_go_back),
        cmocka_unit_test(over_the_cap_a_free_waits_a_bounded_time),
        cmocka_unit_test(an_old_driver_waits_for_the_context),
        cmocka_unit_test(a_second_device_on_an_old_driver_ends_caching),
        cmocka_unit_test(no_block_is_reused_early_with_eight_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
