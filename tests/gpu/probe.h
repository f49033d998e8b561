/* SPDX-License-Identifier: MIT */
/* What the probes of a device share. A probe prints lines "name value"; a name has parts with dots
 * between them, a value is JSON. What could not be measured has the value of the error instead. */
#ifndef GPU_PROBE_H
#define GPU_PROBE_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Keeps the stream busy for that long. In spin.cu for devices, in spin.c for the simulator. */
cudaError_t spin(unsigned us, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

/* Ends the program with a line on stderr when the call fails. */
#define MUST(call) must((int)(call), #call, __FILE__, __LINE__)
void must(int result, const char *text, const char *file, int line);

long long now_ns(void);
int is_busy(cudaStream_t stream);
/* The median of values, which are sorted. */
long long median(long long *values, size_t count);
/* true, false */
const char *word(int condition);

/* Streams of all kinds, in the current context. */
struct kind {
    const char *name;
    cudaStream_t stream;
};
enum { KINDS = 5 };
void make_kinds(struct kind kinds[KINDS]);

void probe_context_event(void);
void probe_coverage(void);
void probe_waits(void);
void probe_lookup(void);
void probe_capture(void);
void probe_errors(void);
void probe_memory(void);
void probe_streams(void);
/* Time of a pair of allocation and free; kind: malloc, async. */
void probe_pairs(const char *kind, unsigned count, size_t bytes);

#endif
