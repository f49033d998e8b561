/* SPDX-License-Identifier: MIT */
#include "snapshot/write_pickle.h"

#include "fixture.h"

#include "support/test.h"

static int remove_folder(void **state)
{
    (void)state;
    fixture_remove_folder();
    return 0;
}

static void integers_at_every_width(void **state)
{
    enum { COUNT = 14 };
    static const uint64_t values[COUNT] = {0,
                                           1,
                                           255,
                                           256,
                                           65535,
                                           65536,
                                           INT32_MAX,
                                           (uint64_t)INT32_MAX + 1,
                                           UINT32_MAX,
                                           (uint64_t)1 << 53,
                                           ((uint64_t)1 << 53) + 1,
                                           INT64_MAX,
                                           (uint64_t)INT64_MAX + 1,
                                           UINT64_MAX};
    static const char *const expressions[] = {
        "[b['thread'] for b in s['segments'][0]['blocks']][:9] == [0, 1, 255, 256, 65535, 65536,"
        " 2**31 - 1, 2**31, 2**32 - 1]",
        "[e['addr'] for e in s['device_traces'][0]] == [0, 1, 255, 256, 65535, 65536, 2**31 - 1,"
        " 2**31, 2**32 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 1, 2**63 - 1]",
        "[e['addr'] for e in t['device_traces'][0]][-3:] == [2**63 - 1, 2**63, 2**64 - 1]",
        "s['cca']['start_time_us'] == -2**63 and s['cca']['dump_time_us'] == -2**31 - 1",
        "s['cca']['driver_version'] == -2**31 and s['cca']['runtime_version'] == -1",
        "s['cca']['counters'][0]['allocs'] == -129",
        NULL,
    };
    struct cca_trace_entry entries[COUNT] = {{0}};
    struct cca_model model;

    (void)state;
    fixture_small(&model);
    for (size_t i = 0; i < COUNT; i++) {
        entries[i].addr = values[i];
    }
    model.devices[0].entries = entries;
    model.devices[0].entry_count = COUNT;
    model.start_time_us = INT64_MIN;
    model.dump_time_us = (int64_t)INT32_MIN - 1;
    model.driver_version = INT32_MIN;
    model.runtime_version = -1;
    model.devices[0].counters.allocs = -129;
    model.blocks = cca_model_array(&model, 9, sizeof(*model.blocks));
    for (size_t i = 0; i < 9; i++) {
        model.blocks[i].thread = (uint32_t)values[i];
        model.blocks[i].address = model.segments[0].address + i;
        model.blocks[i].size = 1;
    }
    model.segments[0].total_size = 9;
    model.segments[0].block_count = model.block_count = 9;
    fixture_check(&model, expressions);
    cca_model_fini(&model);
}

static void batches_end_at_a_thousand_items(void **state)
{
    static const size_t counts[] = {999, 1000, 1001, 2001};
    const char *argv[2001];
    char count_text[64], keys_text[64];
    const char *const expressions[] = {
        count_text, keys_text, "all(word == 'word' for word in s['cca']['command_line'])", NULL};
    struct cca_model_setting *settings;
    struct cca_model model;

    (void)state;
    fixture_empty(&model);
    settings = cca_model_array(&model, 2001, sizeof(*settings));
    for (size_t i = 0; i < 2001; i++) {
        char name[16];

        snprintf(name, sizeof(name), "NAME_%zu", i);
        settings[i].name = cca_model_text(&model, name);
        argv[i] = "word";
    }
    model.command_line = argv;
    model.settings = settings;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        model.command_line_count = model.setting_count = counts[i];
        snprintf(count_text, sizeof(count_text), "len(s['cca']['command_line']) == %zu", counts[i]);
        snprintf(keys_text, sizeof(keys_text), "len(s['cca']['settings']) == %zu", counts[i]);
        fixture_check(&model, expressions);
    }
    cca_model_fini(&model);
}

static void doubles_are_exact(void **state)
{
    static const double values[] = {-0.5, 1.0 / 3.0};
    static const char *const expressions[] = {
        "s['allocator_settings']['garbage_collection_threshold'] in"
        " (-0.5, 1 / 3)",
        NULL};
    struct cca_model model;

    (void)state;
    fixture_empty(&model);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        model.allocator_settings.garbage_collection_threshold = values[i];
        fixture_check(&model, expressions);
    }
    cca_model_fini(&model);
}

/* Without memory for the memo every text and stack is written out; the content is the same. */
static void full_arena_costs_only_size(void **state)
{
    static const char *const expressions[] = {
        "s['device_traces'][0][1]['frames'] == s['segments'][0]['frames']",
        "s['device_traces'][0][1]['frames'] is not s['segments'][0]['frames']",
        NULL,
    };
    struct cca_model model;
    uint64_t shared_bytes;

    (void)state;
    fixture_small(&model);
    shared_bytes = fixture_write(&model, cca_write_pickle, "shared.pickle");
    model.arena.used_bytes = model.arena.reserved_bytes;
    assert_true(fixture_write(&model, cca_write_pickle, "whole.pickle") > shared_bytes);
    fixture_check(&model, expressions);
    cca_model_fini(&model);
}

static void big_model_shares_its_stacks(void **state)
{
    static const char *const expressions[] = {
        "len(s['device_traces'][0]) == 3000 and len(s['segments'][0]['blocks']) == 500",
        "len({id(e['frames']) for e in s['device_traces'][0]}) == 200",
        "len({id(f) for e in s['device_traces'][0] for f in e['frames']}) == 200 * 4 + 18",
        "file_bytes < 400000",
        NULL,
    };
    struct cca_model model;

    (void)state;
    fixture_big(&model, 3000, 500, 200);
    fixture_check(&model, expressions);
    cca_model_fini(&model);
}

struct failing_sink {
    size_t writes_left;
};

static int fail_later(void *user, const void *data, size_t len)
{
    struct failing_sink *failing = user;

    (void)data;
    (void)len;
    return failing->writes_left-- == 0 ? -28 : 0;
}

static void sink_errors_end_in_the_sink(void **state)
{
    struct cca_model model;

    (void)state;
    fixture_big(&model, 3000, 100, 50);
    for (size_t n = 0; n < 10; n++) {
        struct failing_sink failing = {n};
        struct cca_sink sink;

        cca_sink_init_fn(&sink, fail_later, &failing);
        cca_write_pickle(&model, &sink);
        assert_int_equal(cca_sink_finish(&sink), -28);
    }
    cca_model_fini(&model);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(integers_at_every_width, remove_folder),
    cmocka_unit_test_teardown(batches_end_at_a_thousand_items, remove_folder),
    cmocka_unit_test_teardown(doubles_are_exact, remove_folder),
    cmocka_unit_test_teardown(full_arena_costs_only_size, remove_folder),
    cmocka_unit_test_teardown(big_model_shares_its_stacks, remove_folder),
    cmocka_unit_test(sink_errors_end_in_the_sink),
};

CCA_TEST_MAIN(tests)
