/* SPDX-License-Identifier: MIT */
#include "snapshot/model.h"

#include "support/test.h"

#include <errno.h>

static void sort_orders_devices_segments_and_blocks(void **state)
{
    struct cca_model_device devices[] = {{.ordinal = 2}, {.ordinal = 0}};
    struct cca_model_block blocks[] = {{.address = 0x900}, {.address = 0x800}, {.address = 0x100},
                                       {.address = 0x300}, {.address = 0x200}, {.address = 0x500}};
    struct cca_model_segment segments[] = {
        {.device = 2, .address = 0x100, .first_block = 2, .block_count = 3},
        {.device = 0, .address = 0x800, .first_block = 0, .block_count = 2},
        {.device = 0, .address = 0x500, .first_block = 5, .block_count = 1},
    };
    struct cca_model model = {.devices = devices,
                              .device_count = 2,
                              .segments = segments,
                              .segment_count = 3,
                              .blocks = blocks,
                              .block_count = 6};

    (void)state;
    cca_model_sort(&model);
    assert_int_equal(devices[0].ordinal, 0);
    assert_int_equal(segments[0].address, 0x500);
    assert_int_equal(segments[1].address, 0x800);
    assert_int_equal(segments[2].address, 0x100);
    assert_int_equal(blocks[0].address, 0x800);
    assert_int_equal(blocks[1].address, 0x900);
    assert_int_equal(blocks[2].address, 0x100);
    assert_int_equal(blocks[3].address, 0x200);
    assert_int_equal(blocks[4].address, 0x300);
    assert_int_equal(blocks[5].address, 0x500);
}

static void arena_bounds_arrays_and_texts(void **state)
{
    struct cca_model model;
    char original[] = "text";
    const char *copy;

    (void)state;
    assert_int_equal(cca_model_init(&model, 4096), 0);
    assert_int_equal(model.rank, -1);
    assert_non_null(cca_model_array(&model, 0, 64));
    assert_null(cca_model_array(&model, SIZE_MAX / 2, 16));
    copy = cca_model_text(&model, original);
    original[0] = 'n';
    assert_string_equal(copy, "text");
    assert_string_equal(cca_model_text(&model, NULL), "");
    assert_null(cca_model_array(&model, 1, 5000));
    assert_non_null(cca_model_array(&model, 4000, 1));
    assert_string_equal(cca_model_text(&model, "does not fit any more, since it is long and the "
                                               "arena is nearly full"),
                        "");
    cca_model_fini(&model);
}

static void init_reports_refused_memory(void **state)
{
    struct cca_model model;

    (void)state;
    cca_sysmem_fail_nth(1);
    assert_int_equal(cca_model_init(&model, 4096), -ENOMEM);
    cca_model_fini(&model);
}

static void time_is_unix_microseconds(void **state)
{
    struct cca_model model = {.wall_base_us = 1600000000000000};

    (void)state;
    assert_int_equal(cca_model_wall_us(&model, 2500999), 1600000000002500);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sort_orders_devices_segments_and_blocks),
    cmocka_unit_test(arena_bounds_arrays_and_texts),
    cmocka_unit_test(init_reports_refused_memory),
    cmocka_unit_test(time_is_unix_microseconds),
};

CCA_TEST_MAIN(tests)
