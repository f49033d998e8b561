/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "process/unmanaged.h"

static struct cca_unmanaged unmanaged;
static struct cca_unmanaged_row rows[CCA_UNMANAGED_ROWS_MAX];

static int setup(void **state)
{
    (void)state;
    memset(&unmanaged, 0, sizeof(unmanaged));
    cca_unmanaged_init(&unmanaged);
    return 0;
}

static size_t read_rows(void)
{
    return cca_unmanaged_read(&unmanaged, rows, CCA_UNMANAGED_ROWS_MAX);
}

static void memory_is_summed_by_device_call_and_library(void **state)
{
    (void)state;
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x1000, 0, "cuMemAllocManaged", "liba", 10);
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x2000, 0, "cuMemAllocManaged", "liba", 20);
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x3000, 0, "cuMemAllocManaged", "libb", 40);
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x4000, 1, "cuMemAllocManaged", "liba", 80);
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x5000, 0, "cuMemAllocPitch", "liba", 5);
    assert_int_equal(read_rows(), 4);
    assert_int_equal(rows[0].bytes, 30);
    assert_int_equal(rows[0].count, 2);
    assert_string_equal(rows[0].api, "cuMemAllocManaged");
    assert_string_equal(rows[1].library, "libb");
    assert_int_equal(rows[2].device, 1);
    cca_unmanaged_remove(&unmanaged, CCA_UNMANAGED_DEVICE, 0x1000);
    cca_unmanaged_remove(&unmanaged, CCA_UNMANAGED_DEVICE, 0x1000);
    cca_unmanaged_remove(&unmanaged, CCA_UNMANAGED_DEVICE, 0x3000);
    assert_int_equal(read_rows(), 3);
    assert_int_equal(rows[0].bytes, 20);
    assert_int_equal(rows[0].count, 1);
}

static void equal_numbers_of_different_kinds_differ(void **state)
{
    (void)state;
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x10, 0, "a", "lib", 1);
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_ARRAY, 0x10, 0, "b", "lib", 2);
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_PINNED, 0x10, CCA_UNMANAGED_HOST, "c", "lib", 4);
    cca_unmanaged_remove(&unmanaged, CCA_UNMANAGED_PHYSICAL, 0x10);
    assert_int_equal(read_rows(), 3);
    cca_unmanaged_remove(&unmanaged, CCA_UNMANAGED_ARRAY, 0x10);
    assert_int_equal(read_rows(), 2);
    assert_string_equal(rows[1].api, "c");
}

static void an_address_that_comes_back_was_freed_unseen(void **state)
{
    (void)state;
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x10, 0, "a", "lib", 100);
    cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x10, 0, "a", "lib", 7);
    assert_int_equal(read_rows(), 1);
    assert_int_equal(rows[0].bytes, 7);
    assert_int_equal(rows[0].count, 1);
}

static void what_finds_no_row_is_counted(void **state)
{
    char library[16];

    (void)state;
    for (uint64_t i = 0; i < CCA_UNMANAGED_ROWS_MAX + 5; i++) {
        snprintf(library, sizeof(library), "lib%d", (int)i);
        cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 16 + i, 0, "a", library, 1);
    }
    assert_int_equal(read_rows(), CCA_UNMANAGED_ROWS_MAX);
    assert_int_equal(unmanaged.left_out, 5);
}

static void refused_memory_leaves_the_sums_right(void **state)
{
    (void)state;
    for (int n = 1; n < 6; n++) {
        setup(NULL);
        cca_sysmem_fail_nth(n);
        cca_unmanaged_add(&unmanaged, CCA_UNMANAGED_DEVICE, 0x10, 0, "a", "lib", 9);
        cca_sysmem_fail_nth(0);
        if (read_rows() == 1) {
            assert_int_equal(rows[0].bytes, 9);
        }
        cca_unmanaged_remove(&unmanaged, CCA_UNMANAGED_DEVICE, 0x10);
        assert_int_equal(read_rows(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(memory_is_summed_by_device_call_and_library, setup),
        cmocka_unit_test_setup(equal_numbers_of_different_kinds_differ, setup),
        cmocka_unit_test_setup(an_address_that_comes_back_was_freed_unseen, setup),
        cmocka_unit_test_setup(what_finds_no_row_is_counted, setup),
        cmocka_unit_test_setup(refused_memory_leaves_the_sums_right, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
