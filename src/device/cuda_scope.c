/* SPDX-License-Identifier: MIT */
#include "device/cuda_scope.h"

#include "base/compiler.h"
#include "device/cuda_error.h"

static CUresult push_where_needed(struct cca_cuda_scope *scope, CUcontext ctx,
                                  enum cca_cuda_need need)
{
    CUcontext current = NULL;
    CUresult result = scope->table->ctx_get_current(&current);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (current == ctx || (need == CCA_NEED_ANY && current != NULL)) {
        return CUDA_SUCCESS;
    }
    result = scope->table->ctx_push(ctx);
    scope->is_pushed = result == CUDA_SUCCESS;
    return result;
}

void cca_cuda_scope_leave(struct cca_cuda_scope *scope)
{
    if (scope->is_relaxed) {
        (void)scope->table->exchange_capture_mode(&scope->mode);
    }
    if (scope->is_pushed) {
        CUcontext popped = NULL;
        (void)scope->table->ctx_pop(&popped);
    }
}

CUresult cca_cuda_scope_enter(struct cca_cuda_scope *scope, const struct cca_cuda_table *table,
                              CUcontext ctx, enum cca_cuda_need need,
                              enum cca_cuda_capture_mode mode)
{
    *scope = (struct cca_cuda_scope){.table = table, .mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    CUresult result = push_where_needed(scope, ctx, need);
    if (result == CUDA_SUCCESS && mode == CCA_MODE_RELAXED) {
        result = table->exchange_capture_mode(&scope->mode);
        scope->is_relaxed = result == CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS) {
        cca_cuda_scope_leave(scope);
    }
    return result;
}

CUresult cca_cuda_scope_enter_context(struct cca_cuda_scope *scope,
                                      const struct cca_cuda_context *self, enum cca_cuda_need need,
                                      enum cca_cuda_capture_mode mode)
{
    return cca_cuda_scope_enter(scope, self->table, self->ctx, need, mode);
}

/* A question that changes nothing, is allowed during captures and waits for no work. */
static bool is_lost(const struct cca_cuda_context *self)
{
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        size_t free_bytes, total_bytes;
        result = self->table->mem_get_info(&free_bytes, &total_bytes);
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status((int)result).kind == CCA_FATAL;
}

struct cca_status cca_cuda_status_in(const struct cca_cuda_context *self, CUresult result)
{
    struct cca_status status = cca_cuda_status((int)result);
    if (CCA_UNLIKELY(status.kind == CCA_FATAL) && !is_lost(self)) {
        status.kind = CCA_UNSUPPORTED;
    }
    return status;
}
