/* SPDX-License-Identifier: MIT */
/* What tests ask of the simulated driver. libcuda.so.1 exports these; link with it or use dlsym. */
#ifndef SIMCUDA_SIM_H
#define SIMCUDA_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Violations so far; reset also takes back the sticky error of the current context. */
uint64_t simcuda_violations(void);
void simcuda_violations_reset(void);
/* Calls of one exported driver function by its full name ("cuMemAlloc_v2"); 0 for unknown names. */
uint64_t simcuda_call_count(const char *name);
/* Calls of functions that nobody wrote. */
unsigned simcuda_unwritten(void);
/* Is there more than a stub behind the name? */
bool simcuda_is_written(const char *name);

/* Runs all work that waits, or that of one stream (NULL: the legacy stream of the current context)
 * with what it depends on. pending counts operations not yet done. */
void simcuda_advance_all(void);
void simcuda_advance_stream(void *stream);
unsigned simcuda_pending(void);
/* Changes between virtual and real time; finishes all work first. */
void simcuda_set_virtual(bool is_virtual);
void simcuda_set_seed(uint64_t seed);

/* As SIMCUDA_FAIL and SIMCUDA_SLOW; "" takes all back. n counts from now. */
void simcuda_set_fail(const char *text);
void simcuda_set_slow(const char *text);
/* How long an operation takes from now on. */
void simcuda_set_delays(uint64_t kernel_us, uint64_t copy_us);

/* A host function that stands in for the kernel of a name, plain or as C++ has it. ranges says what
 * a launch touches (at most room; the number is returned) and run does it; both get pointers to the
 * arguments, as cuLaunchKernel does, and run may be NULL. Device addresses are turned into memory
 * by simcuda_payload; other calls of CUDA are not permitted in either. parameter_sizes may be NULL
 * where the code itself tells them. Set it before the kernel is first looked up; the texts and the
 * functions must stay. */
struct simcuda_range {
    uint64_t address;
    size_t size_bytes;
    bool is_write;
};
struct simcuda_kernel {
    const char *name;
    unsigned parameter_count;
    const unsigned char *parameter_sizes;
    unsigned (*ranges)(void *const *arguments, struct simcuda_range *ranges_out, unsigned room);
    void (*run)(void *const *arguments, const unsigned grid[3], const unsigned block[3]);
};
void simcuda_set_kernel(const struct simcuda_kernel *kernel);

/* Bytes and number of live blocks on a device, chunks in use, and the payload behind an address. */
uint64_t simcuda_live_bytes(int device);
uint64_t simcuda_live_blocks(int device);
uint64_t simcuda_used_bytes(int device);
void *simcuda_payload(uint64_t address);

#ifdef __cplusplus
}
#endif

#endif
