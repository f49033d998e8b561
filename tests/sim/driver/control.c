/* SPDX-License-Identifier: MIT */
/* The control interface of sim.h. */
#include "../sim.h"

#include "block.h"
#include "call.h"
#include "config.h"
#include "context.h"
#include "engine.h"
#include "sim_written.h"
#include "space.h"
#include "stand_in.h"
#include "stream.h"
#include "violation.h"

#define CONTROL __attribute__((visibility("default")))

/* A function that stands in for a kernel has the lock already. */
static void lock(void)
{
    if (!sim_call_is_in_kernel()) {
        pthread_mutex_lock(&sim_mutex);
    }
}

static void unlock(void)
{
    if (!sim_call_is_in_kernel()) {
        pthread_mutex_unlock(&sim_mutex);
    }
}

CONTROL void simcuda_set_kernel(const struct simcuda_kernel *kernel)
{
    lock();
    sim_stand_in_set(kernel);
    unlock();
}

CONTROL uint64_t simcuda_violations(void)
{
    lock();
    uint64_t count = sim_violation_count();
    unlock();
    return count;
}

CONTROL void simcuda_violations_reset(void)
{
    lock();
    sim_violation_reset();
    if (sim_context_current() != NULL) {
        sim_context_current()->sticky = CUDA_SUCCESS;
    }
    unlock();
}

CONTROL uint64_t simcuda_call_count(const char *name)
{
    struct sim_function *function = sim_function_find(name);

    return function != NULL ? __atomic_load_n(&function->calls, __ATOMIC_RELAXED) : 0;
}

CONTROL unsigned simcuda_unwritten(void)
{
    unsigned count = 0;

    lock();
    for (unsigned i = 0; i < sim_function_count; i++) {
        count += sim_functions[i].is_unwritten_called;
    }
    unlock();
    return count;
}

CONTROL bool simcuda_is_written(const char *name)
{
    struct sim_function *function = sim_function_find(name);

    return function != NULL && sim_is_written((unsigned)(function - sim_functions));
}

CONTROL void simcuda_advance_all(void)
{
    lock();
    sim_advance_all();
    unlock();
}

CONTROL void simcuda_advance_stream(void *stream)
{
    struct sim_queue *queue;

    lock();
    if (sim_enter_stream(stream, &queue) == CUDA_SUCCESS && queue->tail != NULL) {
        struct sim_op *tail = queue->tail;
        sim_op_hold(tail);
        sim_wait(tail);
        sim_op_drop(tail);
    }
    unlock();
}

CONTROL unsigned simcuda_pending(void)
{
    lock();
    unsigned count = sim_pending();
    unlock();
    return count;
}

CONTROL void simcuda_set_virtual(bool is_virtual)
{
    lock();
    sim_set_virtual(is_virtual);
    unlock();
}

CONTROL void simcuda_set_seed(uint64_t seed)
{
    lock();
    sim_seed(seed);
    unlock();
}

CONTROL void simcuda_set_fail(const char *text)
{
    lock();
    sim_set_failures(text);
    unlock();
}

CONTROL void simcuda_set_slow(const char *text)
{
    lock();
    sim_set_slow(text);
    unlock();
}

CONTROL void simcuda_set_delays(uint64_t kernel_us, uint64_t copy_us)
{
    lock();
    sim_config.kernel_ns = kernel_us * 1000;
    sim_config.copy_ns = copy_us * 1000;
    unlock();
}

static void count_blocks(int device, uint64_t *bytes_out, uint64_t *blocks_out)
{
    *bytes_out = 0;
    *blocks_out = 0;
    for (struct sim_block *block = sim_block_first(); block != NULL; block = block->next) {
        if (sim_block_is_on_device(block) && block->device == device && !block->is_freeing) {
            *bytes_out += block->size_bytes;
            ++*blocks_out;
        }
    }
}

CONTROL uint64_t simcuda_live_bytes(int device)
{
    uint64_t bytes;
    uint64_t blocks;

    lock();
    count_blocks(device, &bytes, &blocks);
    unlock();
    return bytes;
}

CONTROL uint64_t simcuda_live_blocks(int device)
{
    uint64_t bytes;
    uint64_t blocks;

    lock();
    count_blocks(device, &bytes, &blocks);
    unlock();
    return blocks;
}

CONTROL uint64_t simcuda_used_bytes(int device)
{
    lock();
    uint64_t used = sim_space_total_bytes(device) - sim_space_free_bytes(device);
    unlock();
    return used;
}

CONTROL void *simcuda_payload(uint64_t address)
{
    lock();
    struct sim_block *block = sim_block_find(address);
    void *payload = block != NULL ? block->payload + (address - block->node.key) : NULL;
    unlock();
    return payload;
}
