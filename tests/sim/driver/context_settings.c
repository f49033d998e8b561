/* SPDX-License-Identifier: MIT */
/* What a context is asked and told besides its life: limits, priorities, caches. */
#include "call.h"
#include "context.h"
#include "sim_api.h"

CUresult sim_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (leastPriority != NULL) {
        *leastPriority = 0;
    }
    if (greatestPriority != NULL) {
        *greatestPriority = -5;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS && (unsigned)limit >= 16) {
        result = CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    if (result == CUDA_SUCCESS) {
        context->limits[limit] = value;
    }
    return result;
}

CUresult sim_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS && (pvalue == NULL || (unsigned)limit >= 16)) {
        result = pvalue == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    if (result == CUDA_SUCCESS) {
        *pvalue = context->limits[limit];
    }
    return result;
}

CUresult sim_cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        *pconfig = (CUfunc_cache)context->cache_config;
    }
    return result;
}

CUresult sim_cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        context->cache_config = (int)config;
    }
    return result;
}

CUresult sim_cuCtxResetPersistingL2Cache(void)
{
    struct CUctx_st *context;

    return sim_enter(&context);
}

/* Only 0 and 4-byte banks mean anything, and neither does here. */
CUresult sim_cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS && pConfig == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    }
    return result;
}

CUresult sim_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct CUctx_st *context;

    (void)config;
    return sim_enter(&context);
}
