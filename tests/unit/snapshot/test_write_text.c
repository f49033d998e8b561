/* SPDX-License-Identifier: MIT */
#include "snapshot/write_text.h"

#include "fixture.h"

#include "support/test.h"

static int remove_folder(void **state)
{
    (void)state;
    fixture_remove_folder();
    return 0;
}

static char *text_of(struct cca_model *model)
{
    fixture_write(model, cca_write_text, "document.txt");
    return fixture_read("document.txt");
}

static void table_is_framed_and_75_columns_wide(void **state)
{
    struct cca_model model;
    char *text, *rest = NULL;
    size_t rows = 0;

    (void)state;
    fixture_small(&model);
    model.devices[0].stats.allocated_bytes[CCA_STAT_ALL] = (struct cca_stat){INT64_MAX, INT64_MAX,
                                                                             INT64_MAX, INT64_MIN};
    text = text_of(&model);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '|' && strstr(line, "Allocated memory") == NULL) {
            assert_int_equal(strlen(line), 77);
            assert_int_equal(line[76], '|');
            rows++;
        }
    }
    assert_int_equal(rows, 6 + 9 * 4 - 1 + 2 * 2 + 1);
    free(text);
    cca_model_fini(&model);
}

static void units_follow_the_value_of_all(void **state)
{
    struct cca_model model;
    struct cca_stats *stats;
    char *text;

    (void)state;
    fixture_small(&model);
    stats = &model.devices[0].stats;
    stats->num_ooms = 3;
    stats->num_alloc_retries = 12;
    stats->active_bytes[CCA_STAT_ALL] = (struct cca_stat){767 << 10, 768 << 10, 768 << 20, 1023};
    stats->active_bytes[CCA_STAT_LARGE] = (struct cca_stat){767 << 10, 700 << 10, 768 << 20, 1023};
    stats->active[CCA_STAT_ALL] = (struct cca_stat){749999, 750000, 750000000, 7};
    text = text_of(&model);
    assert_non_null(strstr(
        text, "|                     CUDA memory summary, device ID 0                      |\n"
              "|-----"));
    assert_non_null(strstr(
        text, "|            CUDA OOMs: 3            |        cudaMalloc retries: 12        |\n"));
    assert_non_null(strstr(
        text, "| Active memory         | 785408 B   |    768 KiB |    768 MiB |   1023 B   |\n"
              "|       from large pool | 785408 B   |    700 KiB |    768 MiB |   1023 B   |\n"
              "|       from small pool |      0 B   |      0 KiB |      0 MiB |      0 B   |\n"));
    assert_non_null(strstr(
        text, "| Active allocs         |  749999    |     750 K  |     750 M  |       7    |\n"));
    free(text);
    cca_model_fini(&model);
}

static void stacks_are_listed_by_live_bytes(void **state)
{
    struct cca_model model;
    char *text;

    (void)state;
    fixture_small(&model);
    text = text_of(&model);
    assert_non_null(strstr(text, "program /opt/app/bin/app, pid 4321, host host, cause signal\n"));
    assert_non_null(strstr(text, "driver allocations 0 (1.235 ms), driver frees 0 (0.000 ms)\n"));
    assert_non_null(strstr(text, "events kept 6, lost 7\n"));
    assert_non_null(strstr(text, "  1. 1.00 KiB in 1 block\n"
                                 "       function_number_1  /usr/lib/libtwo.so.2\n"));
    assert_null(strstr(text, "  2. "));
    assert_non_null(strstr(text, "\ndevice total "));
    assert_null(strstr(text, "out of memory"));
    free(text);

    static struct cca_model_unmanaged others[] = {{0, "cuMemAllocPitch_v2", "libown.so", 2048, 2},
                                                  {7, "cuMemCreate", "libelse.so", 512, 1}};
    model.unmanaged = others;
    model.unmanaged_count = 2;
    model.oom = (struct cca_model_oom){
        .requested_bytes = 4096, .largest_free_bytes = 1024, .advice = "CCA_ADVICE=1"};
    text = text_of(&model);
    assert_non_null(strstr(text, "), unmanaged 2.00 KiB, other "));
    assert_non_null(strstr(text, "  unmanaged 2.00 KiB in 2 by cuMemAllocPitch_v2 of libown.so\n"));
    assert_null(strstr(text, "libelse.so"));
    assert_non_null(strstr(text, "\nout of memory on device 0: asked for 4.00 KiB, of the driver 0 "
                                 "B; largest free block 1.00 KiB, lost to fragmentation 0 B; try "
                                 "CCA_ADVICE=1\n"));
    model.oom.device = -1;
    free(text);

    model.blocks[0].stack = 0;
    model.blocks[1].state = CCA_MODEL_ALLOCATED;
    model.frames[3].line = 42;
    text = text_of(&model);
    assert_non_null(strstr(text, "  1. 1.00 KiB in 1 block\n       (no call stack)\n"
                                 "  2. 512 B in 1 block\n"
                                 "       function_number_3  /usr/lib/libtwo.so.2:42\n"));
    free(text);

    model.block_count = 0;
    model.segment_count = 0;
    text = text_of(&model);
    assert_non_null(strstr(text, "innermost frame first\n  none\n"));
    free(text);
    cca_model_fini(&model);
}

static void ten_stacks_are_listed(void **state)
{
    struct cca_model model;
    char *text;

    (void)state;
    fixture_big(&model, 0, 400, 40);
    text = text_of(&model);
    assert_non_null(strstr(text, "\n 10. 40.00 KiB in 10 blocks\n"));
    assert_null(strstr(text, "\n 11. "));
    free(text);
    cca_model_fini(&model);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(table_is_framed_and_75_columns_wide, remove_folder),
    cmocka_unit_test_teardown(units_follow_the_value_of_all, remove_folder),
    cmocka_unit_test_teardown(stacks_are_listed_by_live_bytes, remove_folder),
    cmocka_unit_test_teardown(ten_stacks_are_listed, remove_folder),
};

CCA_TEST_MAIN(tests)
