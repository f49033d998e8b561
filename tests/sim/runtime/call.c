/* SPDX-License-Identifier: MIT */
#include "call.h"

#include "driver.h"
#include "rt_api.h"

#include <stdio.h>

static _Thread_local bool is_per_thread_call;
static _Thread_local cudaError_t last_error;

void rt_call_begin(struct rt_call *call, unsigned index, bool is_per_thread)
{
    (void)index;
    call->was_per_thread = is_per_thread_call;
    is_per_thread_call = is_per_thread;
}

cudaError_t rt_call_leave(struct rt_call *call, cudaError_t result)
{
    is_per_thread_call = call->was_per_thread;
    return result;
}

cudaError_t rt_call_end(struct rt_call *call, cudaError_t result)
{
    if (result != cudaSuccess) {
        last_error = result;
    }
    return rt_call_leave(call, result);
}

cudaError_t rt_call_unwritten(unsigned index)
{
    rt_is_unwritten[index] = true;
    return cudaErrorNotSupported;
}

bool rt_is_per_thread(void)
{
    return is_per_thread_call;
}

/* The sticky error of the context is not taken back: the next call reports it again. */
cudaError_t rt_cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

cudaError_t rt_cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct rt_error_name *find(cudaError_t error)
{
    for (const struct rt_error_name *row = rt_error_names; row->name != NULL; row++) {
        if (row->code == (int)error) {
            return row;
        }
    }
    return NULL;
}

RT_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
    const struct rt_error_name *row = find(error);

    return row != NULL ? row->name : "unrecognized error code";
}

RT_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
    const struct rt_error_name *row = find(error);

    return row != NULL ? row->text : "unrecognized error code";
}

__attribute__((destructor)) static void print_unwritten(void)
{
    bool is_first = true;

    for (unsigned i = 0; i < rt_name_count; i++) {
        if (rt_is_unwritten[i]) {
            fprintf(stderr, "%s%s", is_first ? "simcudart: not written: " : " ", rt_names[i]);
            is_first = false;
        }
    }
    if (!is_first) {
        fputc('\n', stderr);
    }
}
