/* SPDX-License-Identifier: MIT */
#include "device/cuda_error.h"

#include <cuda.h>

#include "support/test.h"

static void assert_kind(int raw, enum cca_status_kind kind)
{
    struct cca_status status = cca_cuda_status(raw);
    assert_int_equal(status.kind, kind);
    assert_int_equal(status.raw, raw);
}

static void success_memory_and_readiness_have_their_own_kinds(void **state)
{
    (void)state;
    assert_kind(CUDA_SUCCESS, CCA_OK);
    assert_kind(CUDA_ERROR_OUT_OF_MEMORY, CCA_NO_MEMORY);
    assert_kind(CUDA_ERROR_NOT_READY, CCA_NOT_READY);
}

static void a_call_that_failed_by_itself_leaves_the_context_usable(void **state)
{
    (void)state;
    static const int raws[] = {
        CUDA_ERROR_INVALID_VALUE,
        CUDA_ERROR_INVALID_CONTEXT,
        CUDA_ERROR_INVALID_HANDLE,
        CUDA_ERROR_NOT_FOUND,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        CUDA_ERROR_NOT_PERMITTED,
        CUDA_ERROR_NOT_SUPPORTED,
        CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
        123456, /* a code of a later release */
    };
    for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++) {
        assert_kind(raws[i], CCA_UNSUPPORTED);
    }
    for (int raw = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; raw <= 908; raw++) {
        assert_kind(raw, CCA_UNSUPPORTED);
    }
}

static void a_sticky_error_or_a_lost_context_is_fatal(void **state)
{
    (void)state;
    static const int raws[] = {
        CUDA_ERROR_NOT_INITIALIZED,
        CUDA_ERROR_DEINITIALIZED,
        46,
        CUDA_ERROR_INVALID_DEVICE,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        226,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        721,
        805,
        810,
        CUDA_ERROR_UNKNOWN,
    };
    for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++) {
        assert_kind(raws[i], CCA_FATAL);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(success_memory_and_readiness_have_their_own_kinds),
    cmocka_unit_test(a_call_that_failed_by_itself_leaves_the_context_usable),
    cmocka_unit_test(a_sticky_error_or_a_lost_context_is_fatal),
};

CCA_TEST_MAIN(tests)
