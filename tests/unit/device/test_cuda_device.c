/* SPDX-License-Identifier: MIT */
#include "device/cuda_device.h"

#include <errno.h>
#include <string.h>

#include "support/test.h"
#include "unit/device/fake_driver.h"

static struct cca_cuda_contexts contexts;
static struct cca_device device;

static int setup(void **state)
{
    (void)state;
    fake_driver_reset();
    memset(&contexts, 0, sizeof(contexts));
    int rc = cca_cuda_device_open(&contexts, fake_driver_table(), FAKE_CTX(1), 3, &device);
    fake.calls = 0;
    return rc;
}

/* Every operation as a function of nothing, with the driver function it ends in. */
static struct cca_status do_alloc(void)
{
    uint64_t addr;
    return device.ops->mem_alloc(device.self, 512, &addr);
}

static struct cca_status do_free(void)
{
    return device.ops->mem_free(device.self, 1);
}

static struct cca_status do_info(void)
{
    size_t free_bytes, total_bytes;
    return device.ops->mem_info(device.self, &free_bytes, &total_bytes);
}

static struct cca_status do_create(void)
{
    cca_device_event event;
    return device.ops->event_create(device.self, &event);
}

static const cca_device_event the_event = (cca_device_event)(uintptr_t)FAKE_EVENT(1);

static struct cca_status do_destroy(void)
{
    device.ops->event_destroy(device.self, the_event);
    return cca_status_ok();
}

static struct cca_status do_record(void)
{
    return device.ops->event_record(device.self, the_event);
}

static struct cca_status do_query(void)
{
    return device.ops->event_query(device.self, the_event);
}

static struct cca_status do_wait(void)
{
    return device.ops->event_wait(device.self, the_event);
}

static struct cca_status do_synchronize(void)
{
    return device.ops->synchronize(device.self);
}

static struct cca_status do_reserve(void)
{
    uint64_t addr;
    return device.ops->address_reserve(device.self, FAKE_PAGE, &addr);
}

static struct cca_status do_unreserve(void)
{
    return device.ops->address_free(device.self, FAKE_PAGE, FAKE_PAGE);
}

static struct cca_status do_map_three(void)
{
    return device.ops->map(device.self, FAKE_PAGE, FAKE_PAGE, 3, 1 << 1);
}

static struct cca_status do_unmap(void)
{
    return device.ops->unmap(device.self, FAKE_PAGE, FAKE_PAGE, 1);
}

static struct cca_status do_allow(void)
{
    return device.ops->allow_access(device.self, FAKE_PAGE, FAKE_PAGE, 1, 7);
}

static struct cca_status do_identify(void)
{
    struct cca_cuda_identity identity;
    return cca_cuda_identify(fake_driver_table(), FAKE_CTX(1), &identity);
}

static const struct operation {
    const char *name;
    struct cca_status (*run)(void);
    bool needs_this_context, is_relaxed;
} operations[] = {
    {"cuMemAlloc_v2", do_alloc, true, false},
    {"cuMemFree_v2", do_free, true, true},
    {"cuMemGetInfo_v2", do_info, true, true},
    {"cuEventCreate", do_create, true, true},
    {"cuEventDestroy_v2", do_destroy, false, true},
    {"cuCtxRecordEvent", do_record, false, true},
    {"cuEventQuery", do_query, false, true},
    {"cuEventSynchronize", do_wait, false, true},
    {"cuCtxSynchronize", do_synchronize, true, true},
    {"cuDevicePrimaryCtxRetain", do_identify, true, true},
    {"cuMemAddressReserve", do_reserve, true, true},
    {"cuMemAddressFree", do_unreserve, true, true},
    {"cuMemUnmap", do_unmap, true, true},
    {"cuMemSetAccess", do_allow, true, true},
};

static const size_t operation_count = sizeof(operations) / sizeof(operations[0]);

static void make_current(CUcontext ctx)
{
    fake.depth = 0;
    if (ctx != NULL) {
        fake.stack[fake.depth++] = ctx;
    }
}

static void assert_thread_is_as_before(CUcontext ctx)
{
    assert_int_equal(fake.depth, ctx != NULL ? 1 : 0);
    if (ctx != NULL) {
        assert_ptr_equal(fake.stack[0], ctx);
    }
    assert_int_equal(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_int_equal(fake.references, 0);
}

static void each_call_meets_the_right_context_and_mode(void **state)
{
    (void)state;
    for (size_t i = 0; i < operation_count; i++) {
        const struct operation *op = &operations[i];
        CUcontext before[] = {NULL, FAKE_CTX(1), FAKE_CTX(2)};
        for (size_t k = 0; k < 3; k++) {
            make_current(before[k]);
            assert_int_equal(op->run().kind, CCA_OK);
            assert_string_equal(fake.called, op->name);
            CUcontext wanted = op->needs_this_context || before[k] == NULL ? FAKE_CTX(1)
                                                                           : before[k];
            assert_ptr_equal(fake.current_then, wanted);
            assert_int_equal(fake.mode_then, op->is_relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED
                                                            : CU_STREAM_CAPTURE_MODE_GLOBAL);
            assert_thread_is_as_before(before[k]);
        }
    }
}

static void each_failing_call_puts_everything_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < operation_count; i++) {
        CUcontext before[] = {NULL, FAKE_CTX(1), FAKE_CTX(2)};
        for (size_t k = 0; k < 3; k++) {
            make_current(before[k]);
            fake.calls = fake.fail_at = 0;
            (void)operations[i].run();
            int calls = fake.calls;
            /* The last one may be the exchange back, which nothing can be done about. */
            int last = operations[i].is_relaxed ? calls - 1 : calls;
            for (int n = 1; n <= last; n++) {
                make_current(before[k]);
                fake.calls = 0;
                fake.fail_at = n;
                fake.error = CUDA_ERROR_LAUNCH_FAILED;
                enum cca_status_kind kind = operations[i].run().kind;
                /* The context answers well after it: it is not lost. (An identity is asked for
                 * before anybody serves the context.) */
                assert_true(kind != CCA_FATAL || operations[i].run == do_identify);
                assert_thread_is_as_before(before[k]);
            }
        }
    }
}

static void a_lost_context_is_told_from_a_call_that_failed(void **state)
{
    (void)state;
    fake.error = CUDA_ERROR_UNKNOWN;
    for (size_t i = 0; i < operation_count; i++) {
        if (operations[i].run == do_destroy) {
            continue;
        }
        make_current(FAKE_CTX(1));
        fake.lost = FAKE_CTX(1);
        struct cca_status status = operations[i].run();
        assert_int_equal(status.kind, CCA_FATAL);
        assert_int_equal(status.raw, CUDA_ERROR_UNKNOWN);
        assert_thread_is_as_before(FAKE_CTX(1));
        /* Another one that is lost is current. */
        make_current(FAKE_CTX(2));
        fake.lost = FAKE_CTX(2);
        assert_int_equal(operations[i].run().kind, CCA_OK);
        assert_thread_is_as_before(FAKE_CTX(2));
    }
}

static void outputs_are_written_on_success_only(void **state)
{
    (void)state;
    make_current(FAKE_CTX(1));
    uint64_t addr = 7;
    size_t free_bytes = 7, total_bytes = 7;
    cca_device_event event = 7;
    fake.error = CUDA_ERROR_OUT_OF_MEMORY;
    fake.fail_at = 2;
    assert_int_equal(device.ops->mem_alloc(device.self, 512, &addr).kind, CCA_NO_MEMORY);
    assert_int_equal(addr, 7);
    fake.calls = 0;
    fake.fail_at = 3;
    assert_int_equal(device.ops->event_create(device.self, &event).kind, CCA_NO_MEMORY);
    assert_int_equal(event, 7);
    fake.calls = 0;
    assert_int_equal(device.ops->mem_info(device.self, &free_bytes, &total_bytes).kind,
                     CCA_NO_MEMORY);
    assert_int_equal(free_bytes, 7);

    fake.fail_at = 0;
    assert_int_equal(device.ops->mem_alloc(device.self, 512, &addr).kind, CCA_OK);
    assert_int_equal(addr, 0x700000000000 + 512);
    assert_int_equal(device.ops->event_create(device.self, &event).kind, CCA_OK);
    assert_int_equal(event, the_event);
    assert_int_equal(fake.event_flags, CU_EVENT_DISABLE_TIMING);
    assert_int_equal(device.ops->mem_info(device.self, &free_bytes, &total_bytes).kind, CCA_OK);
    assert_int_equal(free_bytes, 10);
    assert_int_equal(total_bytes, 20);
}

static void an_event_is_recorded_on_its_own_context(void **state)
{
    (void)state;
    make_current(FAKE_CTX(2));
    assert_int_equal(do_record().kind, CCA_OK);
    assert_ptr_equal(fake.recorded_ctx, FAKE_CTX(1));
}

static void an_unfinished_event_is_not_ready(void **state)
{
    (void)state;
    make_current(FAKE_CTX(1));
    fake.answer = CUDA_ERROR_NOT_READY;
    assert_int_equal(do_query().kind, CCA_NOT_READY);
}

static void without_context_events_a_record_is_unsupported(void **state)
{
    (void)state;
    fake.version = 12040;
    assert_int_equal(cca_cuda_device_open(&contexts, fake_driver_table(), FAKE_CTX(1), 3, &device),
                     0);
    assert_false(device.has_context_events);
    int calls = fake.calls;
    assert_int_equal(do_record().kind, CCA_UNSUPPORTED);
    assert_int_equal(fake.calls, calls);
}

static void a_context_is_opened_once_and_the_table_of_them_is_bounded(void **state)
{
    (void)state;
    struct cca_device again, other;
    const struct cca_cuda_table *table = fake_driver_table();
    assert_true(device.has_context_events);
    assert_int_equal(device.ordinal, 3);
    assert_int_equal(cca_cuda_device_open(&contexts, table, FAKE_CTX(1), 3, &again), 0);
    assert_ptr_equal(again.self, device.self);
    assert_int_equal(cca_cuda_device_open(&contexts, table, FAKE_CTX(1), 4, &other), 0);
    assert_ptr_not_equal(other.self, device.self);
    for (int i = 2; i < CCA_CUDA_CONTEXTS_MAX; i++) {
        assert_int_equal(cca_cuda_device_open(&contexts, table, FAKE_CTX(i), 3, &other), 0);
    }
    assert_int_equal(
        cca_cuda_device_open(&contexts, table, FAKE_CTX(CCA_CUDA_CONTEXTS_MAX), 3, &other),
        -ENOSPC);
    assert_int_equal(cca_cuda_device_open(&contexts, table, FAKE_CTX(1), 3, &again), 0);
    assert_ptr_equal(again.self, device.self);
}

static void a_context_is_identified_by_its_devices_primary_one(void **state)
{
    (void)state;
    struct cca_cuda_identity identity = {0};
    make_current(NULL);
    assert_int_equal(cca_cuda_identify(fake_driver_table(), FAKE_CTX(1), &identity).kind, CCA_OK);
    assert_true(identity.is_primary);
    assert_true(identity.is_primary_active);
    assert_int_equal(identity.ordinal, 3);
    assert_int_equal(cca_cuda_identify(fake_driver_table(), FAKE_CTX(2), &identity).kind, CCA_OK);
    assert_false(identity.is_primary);
    assert_thread_is_as_before(NULL);
}

static void a_device_says_whether_it_is_integrated(void **state)
{
    (void)state;
    fake.integrated_device = 2;
    assert_true(cca_cuda_is_integrated(fake_driver_table(), 2));
    assert_false(cca_cuda_is_integrated(fake_driver_table(), 1));
    fake.lacks = "cuDeviceGetAttribute";
    assert_false(cca_cuda_is_integrated(fake_driver_table(), 2));
}

static void an_inactive_primary_context_is_not_created(void **state)
{
    (void)state;
    struct cca_cuda_identity identity = {0};
    fake.is_active = 0;
    assert_int_equal(cca_cuda_identify(fake_driver_table(), FAKE_CTX(1), &identity).kind, CCA_OK);
    assert_false(identity.is_primary);
    assert_false(identity.is_primary_active);
    assert_string_equal(fake.called, "cuDevicePrimaryCtxGetState");
}

static void pages_are_mapped_for_the_owner_and_its_peers(void **state)
{
    (void)state;
    make_current(NULL);
    assert_int_equal(device.map_granularity, FAKE_PAGE);
    assert_int_equal(device.ops->map(device.self, 0, FAKE_PAGE, 5, 1 << 1 | 1 << 6).kind, CCA_OK);
    assert_int_equal(fake.pages, 5);
    assert_int_equal(fake.handles, 0);
    assert_int_equal(fake.devices_allowed, 1 << 1 | 1 << 3 | 1 << 6);
    assert_int_equal(fake.mode_then, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_ptr_equal(fake.current_then, FAKE_CTX(1));
    assert_int_equal(device.ops->allow_access(device.self, 0, FAKE_PAGE, 5, 7).kind, CCA_OK);
    assert_int_equal(fake.devices_allowed, 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7);
    assert_int_equal(device.ops->unmap(device.self, 0, FAKE_PAGE, 5).kind, CCA_OK);
    assert_int_equal(fake.pages, 0);
    assert_thread_is_as_before(NULL);
}

static void a_map_that_fails_leaves_nothing(void **state)
{
    (void)state;
    make_current(FAKE_CTX(2));
    fake.calls = 0;
    assert_int_equal(device.ops->map(device.self, 0, FAKE_PAGE, 3, 1 << 1).kind, CCA_OK);
    assert_int_equal(fake.pages, 3);
    int calls = fake.calls - 1; /* the last one puts the mode back */
    for (int n = 1; n <= calls; n++) {
        fake.calls = fake.pages = 0;
        fake.fail_at = n;
        fake.error = CUDA_ERROR_OUT_OF_MEMORY;
        enum cca_status_kind kind = do_map_three().kind;
        /* The device's word about RDMA may fail without harm. */
        assert_int_equal(fake.pages, kind == CCA_OK ? 3 : 0);
        assert_true(kind == CCA_NO_MEMORY || kind == CCA_OK);
        assert_int_equal(fake.handles, 0);
        assert_thread_is_as_before(FAKE_CTX(2));
    }
}

static void without_support_memory_cannot_be_mapped(void **state)
{
    static const char *const names[] = {"cuDeviceGetAttribute",
                                        "cuMemGetAllocationGranularity",
                                        "cuMemAddressReserve",
                                        "cuMemAddressFree",
                                        "cuMemCreate",
                                        "cuMemRelease",
                                        "cuMemMap",
                                        "cuMemUnmap",
                                        "cuMemSetAccess"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        fake.lacks = names[i];
        assert_int_equal(
            cca_cuda_device_open(&contexts, fake_driver_table(), FAKE_CTX(1), 3, &device), 0);
        assert_int_equal(device.map_granularity, 0);
    }
    fake.lacks = NULL;
    fake.cannot_map = 1;
    assert_int_equal(cca_cuda_device_open(&contexts, fake_driver_table(), FAKE_CTX(1), 3, &device),
                     0);
    assert_int_equal(device.map_granularity, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(each_call_meets_the_right_context_and_mode, setup),
    cmocka_unit_test_setup(each_failing_call_puts_everything_back, setup),
    cmocka_unit_test_setup(a_lost_context_is_told_from_a_call_that_failed, setup),
    cmocka_unit_test_setup(outputs_are_written_on_success_only, setup),
    cmocka_unit_test_setup(an_event_is_recorded_on_its_own_context, setup),
    cmocka_unit_test_setup(an_unfinished_event_is_not_ready, setup),
    cmocka_unit_test_setup(without_context_events_a_record_is_unsupported, setup),
    cmocka_unit_test_setup(a_context_is_opened_once_and_the_table_of_them_is_bounded, setup),
    cmocka_unit_test_setup(a_context_is_identified_by_its_devices_primary_one, setup),
    cmocka_unit_test_setup(a_device_says_whether_it_is_integrated, setup),
    cmocka_unit_test_setup(an_inactive_primary_context_is_not_created, setup),
    cmocka_unit_test_setup(pages_are_mapped_for_the_owner_and_its_peers, setup),
    cmocka_unit_test_setup(a_map_that_fails_leaves_nothing, setup),
    cmocka_unit_test_setup(without_support_memory_cannot_be_mapped, setup),
};

CCA_TEST_MAIN(tests)
