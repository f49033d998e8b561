/* SPDX-License-Identifier: MIT */
/* Variables in device code: one block per variable and context, zero at first. The start values are
 * in the code and are not read. */
#include "block.h"
#include "call.h"
#include "context.h"
#include "module.h"
#include "sim_api.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>

struct sim_variable {
    struct sim_variable *next;
    char *name;
    size_t size_bytes;
    struct CUctx_st *context;
    unsigned long long context_id;
    uint64_t address;
};

static CUresult place(struct sim_variable *variable, struct CUctx_st *context)
{
    size_t rounded;

    if (!sim_space_take(context->device, variable->size_bytes, &variable->address, &rounded)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_block *block = sim_block_add(variable->address, variable->size_bytes,
                                            SIM_BLOCK_DEVICE);
    block->device = context->device;
    block->context = context;
    block->rounded_bytes = rounded;
    block->payload = sim_space_payload(variable->address);
    memset(block->payload, 0, block->size_bytes);
    variable->context = context;
    variable->context_id = context->id;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    struct CUctx_st *context;
    struct CUmod_st *module = sim_module_of(hmod);
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS || module == NULL || name == NULL) {
        return result != CUDA_SUCCESS ? result
               : module == NULL       ? CUDA_ERROR_INVALID_HANDLE
                                      : CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_variable *variable = module->variables;
    while (variable != NULL && (strcmp(variable->name, name) != 0 || variable->context != context ||
                                variable->context_id != context->id)) {
        variable = variable->next;
    }
    if (variable == NULL) {
        size_t size = sim_image_variable_bytes(&module->image, name);
        if (size == 0) {
            return CUDA_ERROR_NOT_FOUND;
        }
        variable = calloc(1, sizeof(*variable));
        variable->name = strdup(name);
        variable->size_bytes = size;
        result = place(variable, context);
        if (result != CUDA_SUCCESS) {
            free(variable->name);
            free(variable);
            return result;
        }
        variable->next = module->variables;
        module->variables = variable;
    }
    if (dptr != NULL) {
        *dptr = variable->address;
    }
    if (bytes != NULL) {
        *bytes = variable->size_bytes;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library,
                                const char *name)
{
    return sim_cuModuleGetGlobal_v2(dptr, bytes, (CUmodule)library, name);
}
