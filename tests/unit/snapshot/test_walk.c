/* SPDX-License-Identifier: MIT */
/* The content of documents, as Python reads it back. */
#include "snapshot/walk.h"

#include "fixture.h"

#include "support/test.h"

static int remove_folder(void **state)
{
    (void)state;
    fixture_remove_folder();
    return 0;
}

static void small_model_comes_back(void **state)
{
    static const char *const expressions[] = {
        "s['cca']['version'] == '0.1.0' and s['cca']['rank'] is None",
        "s['cca']['command_line'] == ['./app', '--size', '\"1\" \\\\ \\t\\ufffd']",
        "s['cca']['hook_coverage'] == {'cudaMalloc': {'door': 'runtime', 'seen': 5, 'served': 4,"
        " 'passed': 1, 'missed': 0}, 'cuMemFree_v2': {'door': 'driver', 'seen': 2, 'served': 2,"
        " 'passed': 0, 'missed': 3}}",
        "s['cca']['settings'] == {'CCA_MODE': 'cache', 'CCA_DUMP_ON': ''}",
        "s['cca']['messages'] == ['caching ends: the program called caf\\ufffd']",
        "s['cca']['counters'][0]['driver_alloc_time_us'] == 1234",
        "s['cca']['counters'][0]['lost_entries'] == 7",
        "s['cca']['counters'][0]['slow_stacks'] == 3",
        "s['cca']['stats'][0]['reserved_bytes.all.current'] == 2 << 20",
        "list(s['cca']['stats'][0]) == sorted(s['cca']['stats'][0])",
        "[s['cca']['devices'][0][k] for k in ('device', 'total', 'free', 'reserved', 'other')] =="
        " [0, 24 << 30, 10 << 30, 2 << 20, (14 << 30) - (2 << 20)]",
        "s['cca']['oom'] is None and s['cca']['unmanaged'] == [] and not s['cca']['is_partial']",
        "s['allocator_settings']['trace_alloc_overflowed'] is True",
        "s['allocator_settings']['max_split_size'] == -1",
        "s['allocator_settings']['garbage_collection_threshold'] == 0.8",
        "s['allocator_settings']['roundup_power2_divisions']['32768'] == 4",
        "len(s['allocator_settings']['roundup_power2_divisions']) == 16",
        "s['external_annotations'] == []",
        NULL,
    };
    static const char *const state_expressions[] = {
        "[e['action'] for e in s['device_traces'][0]] == ['segment_alloc', 'alloc', 'alloc',"
        " 'free_requested', 'oom', 'snapshot']",
        "s['device_traces'][0][4]['device_free'] == 123456789",
        "['frames' in e for e in s['device_traces'][0]] == [True] * 4 + [False] * 2",
        "s['device_traces'][0][2]['stream'] == 2**63 - 1",
        "t['device_traces'][0][2]['stream'] == 2**63 + 1",
        "s['device_traces'][0][2]['pool_id'] == (0, 3)",
        "s['device_traces'][0][1]['pool_id'] == (0, 0)",
        "s['cca']['stats'][0]['reserved_bytes_by_private_pools.0_3.all.current'] == 2 << 20",
        "[k for k in s['cca']['stats'][0] if '.8_0.' in k] == []",
        "s['device_traces'][0][1]['time_us'] == 1600000000005000",
        "s['device_traces'][0][1]['api'] == 'cudaMalloc'",
        "s['device_traces'][0][1]['thread'] == 77",
        "s['device_traces'][0][1]['frames'] is s['segments'][0]['frames']",
        "s['segments'][0]['frames'][2] is s['segments'][0]['blocks'][1]['frames'][2]",
        "s['segments'][0]['segment_pool_id'] == (0, 3)",
        "s['segments'][0]['segment_type'] == 'small' and s['segments'][0]['context'] == 9",
        "[b['state'] for b in s['segments'][0]['blocks']] =="
        " ['active_allocated', 'active_pending_free', 'inactive']",
        "s['segments'][0]['blocks'][0]['alloc_time_us'] == 1600000000005000",
        "s['segments'][0]['blocks'][2]['alloc_time_us'] == 0",
        "s['segments'][0]['blocks'][2]['frames'] == []",
        "[b.get('exported') for b in s['segments'][0]['blocks']] == [True, None, None]",
        "s['segments'][0]['frames'][2]['name'] == 'caf\\xe9 \\ufffd\\ufffd \"quoted\" \\\\ \\x01'",
        "s['segments'][0]['frames'][2]['filename'] == '/opt/\\ufffdt\\ufffd/lib.so'",
        "s['segments'][0]['frames'][0]['address'] == 0x7f0000001010",
        NULL,
    };
    struct cca_model model;

    (void)state;
    fixture_small(&model);
    fixture_check(&model, expressions);
    fixture_check(&model, state_expressions);
    cca_model_fini(&model);
}

/* Viewers fail on a file in which no device has anything. */
static void empty_model_can_be_opened(void **state)
{
    static const char *const expressions[] = {
        "s['segments'] == [] and len(s['device_traces']) == 1",
        "s['device_traces'][0][0]['action'] == 'snapshot'",
        "s['device_traces'][0][0]['time_us'] == 1700000005000000",
        "s['device_traces'][0][0]['addr'] == 0",
        "s['cca']['stats'] == [] and s['cca']['devices'] == []",
        "s['allocator_settings']['trace_alloc_overflowed'] is False",
        NULL,
    };
    struct cca_model model;

    (void)state;
    fixture_empty(&model);
    fixture_check(&model, expressions);
    cca_model_fini(&model);
}

static void document_suits_the_viewer(void **state)
{
    static const char *const expressions[] = {
        "len(s['segments']) == 2 and len(s['segments'][0]['blocks']) == 3000",
        "s['segments'][0]['address'] == 0x800000000000",
        "s['segments'][1]['blocks'][0]['size'] == 6 << 30",
        "s['segments'][1]['blocks'][0]['requested_size'] == (6 << 30) - 1",
        "len(s['device_traces']) == 2",
        "s['device_traces'][0] == []",
        "[e['action'] for e in s['device_traces'][1]] == ['snapshot']",
        "'\\ufffd(' in s['segments'][0]['blocks'][0]['frames'][1]['name']",
        NULL,
    };
    struct cca_model model;

    (void)state;
    fixture_viewer(&model);
    fixture_check(&model, expressions);
    cca_model_fini(&model);
}

static void unused_ordinals_get_empty_lists(void **state)
{
    static const char *const expressions[] = {
        "[len(t) for t in s['device_traces']] == [1, 1, 1, 1, 0]",
        "[bool(x) for x in s['cca']['stats']] == [True, False, True]",
        "[bool(x) for x in s['cca']['counters']] == [True, False, True]",
        "[d['device'] for d in s['cca']['devices']] == [0, 2]",
        "s['cca']['rank'] == 3",
        NULL,
    };
    struct cca_model model;

    (void)state;
    fixture_viewer(&model);
    model.block_count = 0;
    model.segment_count = 1;
    model.segments[0] = (struct cca_model_segment){.device = 4};
    model.devices[1].ordinal = 2;
    model.devices[0].free_bytes = model.devices[0].total_bytes + 1;
    model.rank = 3;
    fixture_check(&model, expressions);
    cca_model_fini(&model);
}

/* An id that no stack has is a stack that could not be named. */
static void unknown_stacks_are_left_out(void **state)
{
    static const char *const expressions[] = {
        "not any('frames' in e for e in s['device_traces'][0])",
        "all(b['frames'] == [] for b in s['segments'][0]['blocks'])",
        NULL,
    };
    struct cca_model model;

    (void)state;
    fixture_small(&model);
    model.stack_count = 0;
    fixture_check(&model, expressions);
    cca_model_fini(&model);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(small_model_comes_back, remove_folder),
    cmocka_unit_test_teardown(empty_model_can_be_opened, remove_folder),
    cmocka_unit_test_teardown(document_suits_the_viewer, remove_folder),
    cmocka_unit_test_teardown(unused_ordinals_get_empty_lists, remove_folder),
    cmocka_unit_test_teardown(unknown_stacks_are_left_out, remove_folder),
};

CCA_TEST_MAIN(tests)
