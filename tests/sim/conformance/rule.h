/* SPDX-License-Identifier: MIT */
/* Rules of CUDA that the simulator claims to follow. A rule is a short program: it has an id, says
 * where the rule comes from, and checks it with public functions alone, so that the same source
 * judges NVIDIA's driver. Every rule runs in a process of its own.
 *
 * Sources: "cuda.h, F": the text of the header at function F (or cuda_runtime_api.h for cudaF);
 * "guide, S" and "api, S": a section of the programming guide or of the driver API's reference;
 * "assumed": nobody has written it down; what the simulator does until a device says otherwise. */
#ifndef SIM_RULE_H
#define SIM_RULE_H

#include "../tests/check.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <semaphore.h>

enum rule_flag {
    /* The program is wrong: the simulator must report a violation, in real, virtual and slow time.
     * On a device the outcome is undefined, so nothing is measured there. */
    RULE_WRONG = 1,
    /* The program is right, and the simulator must not report one in any of the three times. */
    RULE_RIGHT = 2,
    /* A property of the simulator's own device. */
    RULE_SIMULATED = 4
};

struct rule {
    const char *area;
    const char *name;
    const char *source;
    void (*check)(void);
    const char *variables;
    int flags;
    struct rule *next;
};

void rule_add(struct rule *rule);
/* The first version of the driver that has what the rule speaks of, as 12050; 0: any. In needs.c.
 */
int rule_driver_needed(const struct rule *rule);

/* RULE(area, name, source[, flags[, variables]]) { body }. Rules come in the order of the file. */
#define RULE(area_, name_, ...)                                                  \
    static void area_##_##name_(void);                                           \
    __attribute__((constructor)) static void add_##area_##_##name_(void)         \
    {                                                                            \
        static struct rule rule = {#area_, #name_, RULE_FIELDS(__VA_ARGS__, 0)}; \
        rule.check = area_##_##name_;                                            \
        rule_add(&rule);                                                         \
    }                                                                            \
    static void area_##_##name_(void)
#define RULE_FIELDS(source_, ...)                             \
    .source = (source_), .flags = RULE_FIRST(__VA_ARGS__, 0), \
    .variables = RULE_SECOND(__VA_ARGS__, NULL, NULL)
#define RULE_FIRST(first, ...)          (first)
#define RULE_SECOND(first, second, ...) ((const char *)(second))

/* The place cannot tell: ends the process; the rule counts as not measured. */
void rule_needs(int condition);
/* The primary context of a device, current on this thread. */
CUcontext rule_start(int device);

/* Holds a stream: what is put into it after rule_close waits until the gate opens. */
struct rule_gate {
    sem_t key;
    int is_open;
};
void rule_close(struct rule_gate *gate, cudaStream_t stream);
void rule_open(struct rule_gate *gate);
/* Another thread opens it in a moment. */
void rule_open_soon(struct rule_gate *gate);
int rule_is_open(struct rule_gate *gate);

/* Is the stream not ready, and stays so for a while? */
int rule_is_held(cudaStream_t stream);

/* The first byte of device memory, through a copy that waits for nothing but itself. */
int rule_first_byte(const void *p);

/* Kernels, in kernels.cu for devices and in kernels.c for the simulator. */
#ifdef __cplusplus
extern "C" {
#endif
cudaError_t launch_fill(void *p, size_t bytes, int value, cudaStream_t stream);
cudaError_t launch_copy(void *dst, const void *src, size_t bytes, cudaStream_t stream);
cudaError_t launch_add(int *p, size_t n, int value, cudaStream_t stream);
cudaError_t launch_shape(dim3 grid, dim3 block, cudaStream_t stream);
/* Sets the condition of a conditional node, or counts down and sets it to what is left. */
cudaError_t launch_set_condition(unsigned long long handle, unsigned value, cudaStream_t stream);
cudaError_t launch_loop(unsigned long long handle, unsigned *left, cudaStream_t stream);
const void *kernel_fill(void);
const void *kernel_add(void);
#ifdef __cplusplus
}
#endif

#endif
