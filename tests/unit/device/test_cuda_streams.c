/* SPDX-License-Identifier: MIT */
#include "device/cuda_streams.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/test.h"
#include "unit/device/fake_driver.h"

static struct cca_cuda_streams streams;

static int setup(void **state)
{
    (void)state;
    fake_driver_reset();
    memset(&streams, 0, sizeof(streams));
    return 0;
}

static CUstream handle(uint64_t n)
{
    return (CUstream)(uintptr_t)(0x1000 + n * 16);
}

static CUstream look_up(uint64_t id)
{
    CUstream found = cca_cuda_streams_hold(&streams, id);
    if (found != NULL) {
        cca_cuda_streams_release(&streams, id);
    }
    return found;
}

static void a_stream_is_found_by_its_key_until_it_is_forgotten(void **state)
{
    (void)state;
    assert_null(look_up(5));
    for (uint64_t id = 1; id <= 200; id++) {
        cca_cuda_streams_note(&streams, id, handle(id));
    }
    for (uint64_t id = 1; id <= 200; id++) {
        assert_ptr_equal(look_up(id), handle(id));
    }
    cca_cuda_streams_note(&streams, 7, handle(7));
    cca_cuda_streams_forget(&streams, 7);
    assert_null(look_up(7));
    cca_cuda_streams_forget(&streams, 7);
    assert_ptr_equal(look_up(8), handle(8));
}

static void a_full_table_forgets_others_and_never_mixes_them_up(void **state)
{
    (void)state;
    size_t known = 0;
    for (uint64_t id = 1; id <= 3 * CCA_CUDA_STREAMS_MAX; id++) {
        cca_cuda_streams_note(&streams, id, handle(id));
        assert_ptr_equal(look_up(id), handle(id));
    }
    for (uint64_t id = 1; id <= 3 * CCA_CUDA_STREAMS_MAX; id++) {
        CUstream found = look_up(id);
        assert_true(found == NULL || found == handle(id));
        known += found != NULL;
    }
    assert_true(known > CCA_CUDA_STREAMS_MAX / 2 && known <= CCA_CUDA_STREAMS_MAX);
}

static void *forget(void *is_forgotten)
{
    cca_cuda_streams_forget(&streams, 5);
    atomic_store((atomic_bool *)is_forgotten, true);
    return NULL;
}

static bool is_ending(void)
{
    CUstream found = look_up(5);
    return found == NULL;
}

static void a_stream_that_is_held_is_not_destroyed(void **state)
{
    pthread_t thread;
    atomic_bool is_forgotten = false;
    (void)state;
    cca_cuda_streams_note(&streams, 5, handle(5));
    assert_ptr_equal(cca_cuda_streams_hold(&streams, 5), handle(5));
    assert_int_equal(pthread_create(&thread, NULL, forget, &is_forgotten), 0);
    while (!is_ending()) {
        sched_yield();
    }
    assert_false(atomic_load(&is_forgotten));
    for (uint64_t id = 6; id <= 3 * CCA_CUDA_STREAMS_MAX; id++) {
        cca_cuda_streams_note(&streams, id, handle(id)); /* none takes its place */
    }
    assert_false(atomic_load(&is_forgotten));
    cca_cuda_streams_release(&streams, 5);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&is_forgotten));
    assert_null(look_up(5));
}

static enum cca_status_kind record(const struct cca_cuda_table *table)
{
    return cca_cuda_record_on_stream(&streams, table, (uintptr_t)FAKE_EVENT(1), 5).kind;
}

static void an_event_is_recorded_on_a_known_stream_outside_captures(void **state)
{
    (void)state;
    const struct cca_cuda_table *table = fake_driver_table();
    assert_int_equal(record(table), CCA_UNSUPPORTED);
    cca_cuda_streams_note(&streams, 5, handle(5));
    assert_int_equal(record(table), CCA_OK);
    assert_ptr_equal(fake.recorded_stream, handle(5));
    fake.recorded_stream = NULL;
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    assert_int_equal(record(table), CCA_UNSUPPORTED);
    assert_null(fake.recorded_stream);
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
    fake.error = CUDA_ERROR_INVALID_HANDLE;
    for (int n = 1; n <= 2; n++) {
        fake.fail_at = fake.calls + n;
        assert_int_equal(record(table), CCA_UNSUPPORTED);
    }
    struct cca_cuda_table old = *table;
    old.event_record = NULL;
    assert_int_equal(record(&old), CCA_UNSUPPORTED);
    cca_cuda_streams_forget(&streams, 5); /* nobody holds it */
    assert_int_equal(record(table), CCA_UNSUPPORTED);
}

static enum cca_status_kind ask(struct cca_capture_info *info)
{
    return cca_cuda_capture_info(&streams, fake_driver_table(), 5, info).kind;
}

static void a_capture_tells_its_id_and_terminals(void **state)
{
    (void)state;
    struct cca_capture_info info = {.id = 1};
    assert_int_equal(ask(&info), CCA_UNSUPPORTED); /* nobody knows the stream */
    cca_cuda_streams_note(&streams, 5, handle(5));
    assert_int_equal(ask(&info), CCA_OK);
    assert_int_equal(info.id, 0);
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    fake.node_count = 2;
    fake.nodes[0] = (CUgraphNode)0x10;
    fake.nodes[1] = (CUgraphNode)0x20;
    assert_int_equal(ask(&info), CCA_OK);
    assert_int_equal(info.id, 77);
    assert_int_equal(info.terminal_count, 2);
    assert_int_equal(info.terminals[1], 0x20);
    fake.node_count = CCA_TERMINALS_MAX + 1;
    assert_int_equal(ask(&info), CCA_OK);
    assert_int_equal(info.terminal_count, CCA_TERMINALS_MAX + 1);
    fake.capture_status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    assert_int_equal(ask(&info), CCA_OK);
    assert_int_equal(info.id, 77);
    assert_int_equal(info.terminal_count, 0);
}

static void trouble_is_no_more_than_no_answer(void **state)
{
    (void)state;
    struct cca_capture_info info = {.id = 1};
    uint64_t nodes[4];
    size_t count = 9;
    const struct cca_cuda_table *table = fake_driver_table();
    cca_cuda_streams_note(&streams, 5, handle(5));
    fake.error = CUDA_ERROR_LAUNCH_FAILED;
    fake.fail_at = fake.calls + 1;
    assert_int_equal(cca_cuda_capture_info(&streams, table, 5, &info).kind, CCA_UNSUPPORTED);
    assert_int_equal(info.id, 1);
    fake.node_count = 2;
    for (int n = 1; n <= 2; n++) {
        fake.fail_at = fake.calls + n;
        assert_int_equal(cca_cuda_node_dependencies(table, 3, nodes, 4, &count).kind,
                         CCA_UNSUPPORTED);
        assert_int_equal(count, 9);
    }
    struct cca_cuda_table old = *table;
    old.stream_get_capture_info = NULL;
    old.graph_node_get_dependencies = NULL;
    assert_int_equal(cca_cuda_capture_info(&streams, &old, 5, &info).kind, CCA_UNSUPPORTED);
    assert_int_equal(cca_cuda_node_dependencies(&old, 3, nodes, 4, &count).kind, CCA_UNSUPPORTED);
}

static void a_node_tells_what_it_depends_on(void **state)
{
    (void)state;
    uint64_t nodes[2] = {0, 0};
    size_t count = 9;
    const struct cca_cuda_table *table = fake_driver_table();
    assert_int_equal(cca_cuda_node_dependencies(table, 3, nodes, 2, &count).kind, CCA_OK);
    assert_int_equal(count, 0);
    fake.node_count = 3;
    for (size_t i = 0; i < 3; i++) {
        fake.nodes[i] = (CUgraphNode)(0x10 * (i + 1));
    }
    assert_int_equal(cca_cuda_node_dependencies(table, 3, nodes, 2, &count).kind, CCA_OK);
    assert_int_equal(count, 3);
    assert_int_equal(nodes[1], 0x20);
    fake.node_count = FAKE_NODES_MAX;
    assert_int_equal(cca_cuda_node_dependencies(table, 3, nodes, 2, &count).kind, CCA_UNSUPPORTED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_stream_that_is_held_is_not_destroyed, setup),
    cmocka_unit_test_setup(an_event_is_recorded_on_a_known_stream_outside_captures, setup),
    cmocka_unit_test_setup(a_stream_is_found_by_its_key_until_it_is_forgotten, setup),
    cmocka_unit_test_setup(a_full_table_forgets_others_and_never_mixes_them_up, setup),
    cmocka_unit_test_setup(a_capture_tells_its_id_and_terminals, setup),
    cmocka_unit_test_setup(trouble_is_no_more_than_no_answer, setup),
    cmocka_unit_test_setup(a_node_tells_what_it_depends_on, setup),
};

CCA_TEST_MAIN(tests)
