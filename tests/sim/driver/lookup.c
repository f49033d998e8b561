/* SPDX-License-Identifier: MIT */
/* Finding functions and error texts: cuGetProcAddress in both forms, and no private tables. */
#include "call.h"
#include "config.h"
#include "defect.h"
#include "sim_api.h"

#include <string.h>

/* The newest form of a base name that the version allows; a per-thread form when that is wanted and
 * there is one. is_known_out: the driver has some form of it. */
static struct sim_function *look_up(const char *base, int version, int per_thread,
                                    bool *is_known_out)
{
    struct sim_function *best = NULL;

    *is_known_out = false;
    for (unsigned i = 0; i < sim_function_count; i++) {
        struct sim_function *function = &sim_functions[i];
        if (function->per_thread != per_thread || strcmp(function->base, base) != 0 ||
            sim_function_is_absent(function)) {
            continue;
        }
        *is_known_out = true;
        if ((function->version <= version || SIM_DEFECT(every_version_is_enough)) &&
            (best == NULL || function->version > best->version)) {
            best = function;
        }
    }
    return best;
}

CUresult sim_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *symbolStatus)
{
    bool is_known = false;
    bool is_known_per_thread = false;
    struct sim_function *found = NULL;

    if (symbol == NULL || pfn == NULL || flags > 2 || cudaVersion > sim_config.driver_version) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 &&
        !SIM_DEFECT(flags_are_ignored)) {
        found = look_up(symbol, cudaVersion, 1, &is_known_per_thread);
    }
    if (found == NULL) {
        found = look_up(symbol, cudaVersion, 0, &is_known);
    }
    *pfn = found != NULL ? (void *)found->entry : NULL;
    sim_call_note("look-up %s %d %llu: %s\n", symbol, cudaVersion, (unsigned long long)flags,
                  found != NULL ? found->name : "none");
    if (symbolStatus != NULL) {
        *symbolStatus = found != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
                        : is_known || is_known_per_thread
                            ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return CUDA_SUCCESS;
}

/* The form of 11.3 has no status, so it says in its result that it found nothing. */
CUresult sim_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult result = sim_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);

    return result == CUDA_SUCCESS && *pfn == NULL ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult sim_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    (void)pExportTableId;
    if (ppExportTable == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ppExportTable = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

static const struct sim_error_name *find_error(CUresult error)
{
    for (const struct sim_error_name *row = sim_error_names; row->name != NULL; row++) {
        if (row->code == (int)error) {
            return row;
        }
    }
    return NULL;
}

CUresult sim_cuGetErrorName(CUresult error, const char **pStr)
{
    const struct sim_error_name *row = find_error(error);

    *pStr = row != NULL ? row->name : NULL;
    return row != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorString(CUresult error, const char **pStr)
{
    const struct sim_error_name *row = find_error(error);

    *pStr = row != NULL ? row->text : NULL;
    return row != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
