/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "alloc/heap.h"
#include "process/estimate.h"

#define MIB ((size_t)1 << 20)

static struct cca_config config;
static struct cca_estimate *estimate;
static struct cca_heap heap;

static void begin(size_t device_bytes)
{
    cca_config_init(&config);
    config.mode = CCA_MODE_COUNT;
    assert_int_equal(cca_estimate_create(&config, &estimate), 0);
    memset(&heap, 0, sizeof(heap));
    heap.accounts = &heap;
    heap.device.ordinal = 3;
    heap.device_bytes = device_bytes;
    atomic_store(&heap.generation, 1);
}

static void alloc(uint64_t addr, size_t bytes, cca_key key)
{
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = bytes, .key = key, .stack = 99};

    cca_estimate_alloc(estimate, &heap, &request, addr, 2000);
}

static int free_one(uint64_t addr)
{
    struct cca_request request = {.api = CCA_API_FREE, .key = CCA_KEY_READY};
    int ordinal = cca_estimate_free(estimate, addr, &request);

    cca_estimate_freed(estimate, ordinal, 500);
    return ordinal;
}

static struct cca_estimate_figures figures(void)
{
    struct cca_estimate_figures read;

    cca_estimate_read(estimate, 3, &read);
    return read;
}

static void a_loop_would_be_served_from_one_segment(void **state)
{
    (void)state;
    begin((size_t)16 << 30);
    for (int i = 0; i < 100; i++) {
        alloc(0x1000, 6 * MIB, CCA_KEY_READY);
        assert_int_equal(free_one(0x1000), 3);
    }
    struct cca_estimate_figures read = figures();
    assert_int_equal(read.allocs, 100);
    assert_int_equal(read.frees, 100);
    assert_int_equal(read.alloc_ns, 200000);
    assert_int_equal(read.free_ns, 50000);
    assert_in_range(read.alloc_median_ns, 1024, 2048);
    assert_int_equal(read.hits, 99);
    assert_int_equal(read.driver_allocs, 1);
    assert_int_equal(read.driver_frees, 0);
    assert_int_equal(read.reserved_peak, 20 * MIB);
}

static void memory_that_is_kept_is_not_reused(void **state)
{
    (void)state;
    begin((size_t)16 << 30);
    for (uint64_t i = 1; i <= 8; i++) {
        alloc(i << 24, 20 * MIB, CCA_KEY_READY);
    }
    assert_int_equal(figures().hits, 0);
    assert_int_equal(figures().reserved_peak, 160 * MIB);
    assert_int_equal(free_one(0x99), -1);
    assert_int_equal(figures().frees, 0);
}

static void a_paper_device_is_as_small_as_the_real_one(void **state)
{
    (void)state;
    begin(64 * MIB);
    for (uint64_t i = 1; i <= 3; i++) {
        alloc(i << 24, 20 * MIB, CCA_KEY_READY);
        free_one(i << 24);
        alloc(i << 24, 20 * MIB, CCA_KEY_READY);
    }
    assert_int_equal(figures().driver_allocs, 3);
    free_one(1 << 24);
    free_one(2 << 24);
    alloc(5 << 24, 40 * MIB, CCA_KEY_READY); /* fits only after the idle segments went back */
    assert_int_equal(figures().driver_frees, 2);
    assert_int_equal(figures().driver_allocs, 4);
}

static void a_reset_begins_a_new_life(void **state)
{
    (void)state;
    begin(64 * MIB);
    alloc(0x1000, 60 * MIB, CCA_KEY_READY);
    atomic_fetch_add(&heap.generation, 1);
    alloc(0x1000, 60 * MIB, CCA_KEY_READY);
    assert_int_equal(figures().driver_allocs, 2);
    assert_int_equal(free_one(0x1000), 3);
    assert_int_equal(free_one(0x1000), -1);
}

static void streams_are_told_apart(void **state)
{
    (void)state;
    begin((size_t)1 << 30);
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = 7};
    alloc(0x1000, MIB, 7);
    assert_int_equal(cca_estimate_free(estimate, 0x1000, &request), 3);
    alloc(0x1000, MIB, 7);
    assert_int_equal(figures().hits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_would_be_served_from_one_segment),
        cmocka_unit_test(memory_that_is_kept_is_not_reused),
        cmocka_unit_test(a_paper_device_is_as_small_as_the_real_one),
        cmocka_unit_test(a_reset_begins_a_new_life),
        cmocka_unit_test(streams_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
