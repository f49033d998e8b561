/* SPDX-License-Identifier: MIT */
#include "observe/observer.h"

#include <errno.h>

#include "support/test.h"

enum { HEARD_MAX = 4096 };

struct listener {
    struct cca_event heard[HEARD_MAX];
    size_t count;
    int device;
};

static struct listener first, second;

static void hear(void *user, int device, const struct cca_event *event)
{
    struct listener *listener = user;

    assert_true(listener->count < HEARD_MAX);
    listener->heard[listener->count++] = *event;
    listener->device = device;
}

static struct cca_event random_event(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (struct cca_event){
        .kind = (enum cca_event_kind)((*seed >> 33) % CCA_EVENT_KIND_COUNT),
        .flags = (unsigned)(*seed >> 40) & 31,
        .requested_bytes = (*seed >> 20) & 0xfffff,
        .block_bytes = (*seed >> 18) & 0xfffff,
        .duration_ns = *seed >> 41,
        .split_count_delta = (int32_t)(*seed >> 62) - 2,
        .split_bytes_delta = (int64_t)(*seed >> 44) - 524288,
    };
}

static void replay_gives_the_live_counters(void **state)
{
    struct cca_observer observer;
    struct cca_stats stats = {.max_split_size = -1};
    struct cca_counters counters = {0};
    uint64_t seed = 42;
    size_t slots = 0;

    (void)state;
    first.count = 0;
    cca_observer_init(&observer, 3, &(struct cca_recording){.ring_entries = 100});
    assert_int_equal(cca_observer_add_tracker(&observer, hear, &first), 0);
    for (int i = 0; i < 2000; i++) {
        struct cca_event event = random_event(&seed);
        slots += cca_event_takes_slot(event.kind);
        cca_observer_report(&observer, &event);
    }
    assert_int_equal(first.count, 2000);
    assert_int_equal(first.device, 3);
    for (size_t i = 0; i < first.count; i++) {
        cca_stats_apply(&stats, &first.heard[i]);
        cca_counters_apply(&counters, &first.heard[i]);
    }
    assert_memory_equal(&stats, &observer.stats, sizeof(stats));
    assert_memory_equal(&counters, &observer.counters, sizeof(counters));
    assert_int_equal(cca_trace_ring_count(&observer.ring), 100);
    assert_int_equal(cca_trace_ring_lost(&observer.ring), slots - 100);
    cca_observer_fini(&observer);
}

static void trackers_come_and_go(void **state)
{
    struct cca_observer observer;
    const struct cca_event event = {.kind = CCA_EVENT_OOM};

    (void)state;
    first.count = second.count = 0;
    cca_observer_init(&observer, 0, &(struct cca_recording){.ring_entries = 0});
    assert_int_equal(cca_observer_add_tracker(&observer, hear, &first), 0);
    for (int i = 1; i < CCA_TRACKERS_MAX; i++) {
        assert_int_equal(cca_observer_add_tracker(&observer, hear, &second), 0);
    }
    assert_int_equal(cca_observer_add_tracker(&observer, hear, &second), -ENOSPC);
    cca_observer_report(&observer, &event);
    assert_int_equal(first.count, 1);
    assert_int_equal(second.count, CCA_TRACKERS_MAX - 1);
    cca_observer_remove_tracker(&observer, hear, &first);
    cca_observer_remove_tracker(&observer, hear, &first);
    cca_observer_report(&observer, &event);
    assert_int_equal(first.count, 1);
    assert_int_equal(second.count, 2 * (CCA_TRACKERS_MAX - 1));
    assert_int_equal(observer.stats.num_ooms, 2);
    cca_observer_fini(&observer);
}

static void history_can_be_off(void **state)
{
    struct cca_observer observer;
    const struct cca_event event = {.kind = CCA_EVENT_ALLOC, .block_bytes = 512};

    (void)state;
    cca_observer_init(&observer, 0, &(struct cca_recording){.ring_entries = 0});
    assert_false(observer.is_recording);
    assert_int_equal(observer.stats.max_split_size, -1);
    cca_observer_report(&observer, &event);
    assert_int_equal(cca_trace_ring_count(&observer.ring), 0);
    cca_observer_fini(&observer);

    cca_observer_init(&observer, 0, &(struct cca_recording){.ring_entries = 4});
    assert_true(observer.is_recording);
    cca_observer_report(&observer, &event);
    observer.is_recording = false;
    cca_observer_report(&observer, &event);
    assert_int_equal(cca_trace_ring_count(&observer.ring), 1);
    assert_int_equal(observer.stats.allocated_bytes[CCA_STAT_LARGE].current, 1024);
    cca_observer_fini(&observer);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(replay_gives_the_live_counters),
    cmocka_unit_test(trackers_come_and_go),
    cmocka_unit_test(history_can_be_off),
};
CCA_TEST_MAIN(tests)
