/* SPDX-License-Identifier: MIT */
#include "observe/trace_ring.h"

#include <errno.h>

#include "base/sysmem.h"
#include "support/test.h"

static void record(struct cca_trace_ring *ring, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        struct cca_event event = {.kind = CCA_EVENT_ALLOC, .addr = i};
        cca_trace_ring_record(ring, &event);
    }
}

static void expect(const struct cca_trace_ring *ring, size_t max, uint64_t first, size_t count)
{
    struct cca_trace_entry out[32];

    assert_int_equal(cca_trace_ring_copy(ring, out, max), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(out[i].addr, first + i);
        assert_int_equal(out[i].seq, first + i);
    }
}

static void entry_keeps_every_field(void **state)
{
    struct cca_trace_ring ring;
    struct cca_trace_entry entry;
    const struct cca_event event = {
        .kind = CCA_EVENT_FREE_COMPLETED,
        .api = CCA_API_OWN,
        .flags = CCA_EVENT_SMALL | CCA_EVENT_EXPANDABLE | CCA_EVENT_PASSED,
        .addr = 1,
        .requested_bytes = 2,
        .block_bytes = 3,
        .stream = 4,
        .time_ns = 5,
        .stack = 6,
        .metadata = 7,
        .thread = 8,
        .pool = 9,
    };

    (void)state;
    cca_trace_ring_init(&ring, 4);
    cca_trace_ring_record(&ring, &event);
    assert_int_equal(cca_trace_ring_copy(&ring, &entry, 1), 1);
    assert_int_equal(entry.seq, 1);
    assert_int_equal(entry.kind, CCA_EVENT_FREE_COMPLETED);
    assert_int_equal(cca_trace_entry_api(&entry), CCA_API_OWN);
    assert_int_equal(cca_trace_entry_flags(&entry), CCA_EVENT_SMALL | CCA_EVENT_EXPANDABLE);
    assert_int_equal(entry.addr, 1);
    assert_int_equal(entry.requested_bytes, 2);
    assert_int_equal(entry.block_bytes, 3);
    assert_int_equal(entry.stream, 4);
    assert_int_equal(entry.time_ns, 5);
    assert_int_equal(entry.stack, 6);
    assert_int_equal(entry.metadata, 7);
    assert_int_equal(entry.thread, 8);
    assert_int_equal(entry.pool, 9);
    cca_trace_ring_fini(&ring);
}

static void oldest_are_overwritten_and_counted(void **state)
{
    struct cca_trace_ring ring;

    (void)state;
    cca_trace_ring_init(&ring, 5);
    expect(&ring, 32, 0, 0);
    record(&ring, 1, 3);
    expect(&ring, 32, 1, 3);
    assert_int_equal(cca_trace_ring_lost(&ring), 0);
    record(&ring, 4, 9);
    assert_int_equal(cca_trace_ring_count(&ring), 5);
    assert_int_equal(cca_trace_ring_lost(&ring), 7);
    expect(&ring, 32, 8, 5);
    for (size_t max = 0; max <= 5; max++) {
        expect(&ring, max, 13 - max, max);
    }
    cca_trace_ring_fini(&ring);
}

static void resize_keeps_the_newest(void **state)
{
    struct cca_trace_ring ring;

    (void)state;
    cca_trace_ring_init(&ring, 4);
    record(&ring, 1, 6);
    assert_int_equal(cca_trace_ring_resize(&ring, 8), 0);
    expect(&ring, 32, 3, 4);
    record(&ring, 7, 6);
    expect(&ring, 32, 5, 8);
    assert_int_equal(cca_trace_ring_resize(&ring, 3), 0);
    expect(&ring, 32, 10, 3);
    assert_int_equal(cca_trace_ring_lost(&ring), 9);
    record(&ring, 13, 1);
    expect(&ring, 32, 11, 3);
    assert_int_equal(cca_trace_ring_resize(&ring, 3), 0);
    assert_int_equal(cca_trace_ring_resize(&ring, 0), 0);
    record(&ring, 14, 1);
    expect(&ring, 32, 0, 0);
    assert_int_equal(cca_trace_ring_resize(&ring, 2), 0);
    record(&ring, 14, 1);
    expect(&ring, 32, 14, 1);
    cca_trace_ring_fini(&ring);
}

static void refused_memory_is_counted_and_tried_again(void **state)
{
    struct cca_trace_ring ring;

    (void)state;
    cca_trace_ring_init(&ring, 4);
    cca_sysmem_fail_nth(1);
    record(&ring, 1, 1);
    assert_int_equal(cca_trace_ring_count(&ring), 0);
    assert_int_equal(cca_trace_ring_lost(&ring), 1);
    record(&ring, 2, 2);
    expect(&ring, 32, 2, 2);
    cca_sysmem_fail_nth(1);
    assert_int_equal(cca_trace_ring_resize(&ring, 9), -ENOMEM);
    cca_sysmem_fail_nth(0);
    assert_int_equal(ring.capacity, 4);
    expect(&ring, 32, 2, 2);
    cca_trace_ring_fini(&ring);
    cca_trace_ring_init(&ring, SIZE_MAX);
    record(&ring, 1, 1);
    assert_int_equal(cca_trace_ring_lost(&ring), 1);
    cca_trace_ring_fini(&ring);
}

static void clear_forgets_entries_and_losses(void **state)
{
    struct cca_trace_ring ring;

    (void)state;
    cca_trace_ring_init(&ring, 2);
    record(&ring, 1, 5);
    cca_trace_ring_clear(&ring);
    assert_int_equal(cca_trace_ring_count(&ring), 0);
    assert_int_equal(cca_trace_ring_lost(&ring), 0);
    record(&ring, 6, 3);
    expect(&ring, 32, 7, 2);
    assert_int_equal(cca_trace_ring_lost(&ring), 1);
    cca_trace_ring_fini(&ring);
}

static void slotless_kinds_and_zero_capacity_record_nothing(void **state)
{
    struct cca_trace_ring ring;
    const struct cca_event event = {.kind = CCA_EVENT_FENCE};

    (void)state;
    cca_trace_ring_init(&ring, 2);
    cca_trace_ring_record(&ring, &event);
    assert_null(ring.entries);
    assert_int_equal(ring.recorded, 0);
    cca_trace_ring_fini(&ring);
    cca_trace_ring_init(&ring, 0);
    record(&ring, 1, 2);
    assert_int_equal(cca_trace_ring_lost(&ring), 0);
    cca_trace_ring_fini(&ring);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(entry_keeps_every_field),
    cmocka_unit_test(oldest_are_overwritten_and_counted),
    cmocka_unit_test(resize_keeps_the_newest),
    cmocka_unit_test(refused_memory_is_counted_and_tried_again),
    cmocka_unit_test(clear_forgets_entries_and_losses),
    cmocka_unit_test(slotless_kinds_and_zero_capacity_record_nothing),
};
CCA_TEST_MAIN(tests)
