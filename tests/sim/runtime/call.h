/* SPDX-License-Identifier: MIT */
/* What happens around every exported function of the runtime: the per-thread flag of _ptsz and
 * _ptds forms, the thread's last error, and the list of functions nobody wrote. */
#ifndef RT_CALL_H
#define RT_CALL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* In the static archive the functions are global, but no other object of the process sees them. */
#ifdef RT_STATIC
#define RT_EXPORT __attribute__((visibility("hidden")))
#else
#define RT_EXPORT __attribute__((visibility("default")))
#endif

struct rt_error_name {
    int code;
    const char *name;
    const char *text;
};

struct rt_call {
    bool was_per_thread;
};

extern const char *const rt_names[];
extern const unsigned rt_name_count;
extern bool rt_is_unwritten[];
extern const struct rt_error_name rt_error_names[];

void rt_call_begin(struct rt_call *call, unsigned index, bool is_per_thread);
/* Ends a call; an error becomes the thread's last one. leave: it does not. */
cudaError_t rt_call_end(struct rt_call *call, cudaError_t result);
cudaError_t rt_call_leave(struct rt_call *call, cudaError_t result);
cudaError_t rt_call_unwritten(unsigned index);
/* Does the running call mean the per-thread default stream by 0? */
bool rt_is_per_thread(void);

#endif
