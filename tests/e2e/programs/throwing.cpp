// SPDX-License-Identifier: MIT
// A C++ library whose stacks unwind: exceptions, pthread_exit and cancellation pass through frames
// that hold memory of the device and free it as they go.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

namespace
{

std::atomic<int> live{0}, wrong{0};

struct Memory {
    void *p = nullptr;
    explicit Memory(size_t bytes)
    {
        wrong += cudaMalloc(&p, bytes) != cudaSuccess;
        live++;
    }
    ~Memory()
    {
        wrong += cudaFree(p) != cudaSuccess;
        live--;
    }
};

__attribute__((noinline)) int deeper(int depth, void (*at_the_end)())
{
    Memory memory(static_cast<size_t>(depth + 1) * 1000);
    if (depth == 0) {
        at_the_end();
        return 0;
    }
    return deeper(depth - 1, at_the_end) + 1;
}

void throw_it()
{
    throw std::runtime_error("thrown");
}

void end_thread()
{
    pthread_exit(&live);
}

void wait_for_cancel()
{
    for (;;) {
        usleep(1000); // a cancellation point
    }
}

void *run(void *at_the_end)
{
    deeper(10, reinterpret_cast<void (*)()>(at_the_end));
    return nullptr;
}

bool ends_as(void (*at_the_end)(), bool is_cancelled, void *result)
{
    pthread_t thread;
    void *got = nullptr;
    if (pthread_create(&thread, nullptr, run, reinterpret_cast<void *>(at_the_end)) != 0) {
        return false;
    }
    while (is_cancelled && live.load() < 11) {
        usleep(100);
    }
    if (is_cancelled) {
        pthread_cancel(thread);
    }
    pthread_join(thread, &got);
    return got == result && live == 0;
}

} // namespace

extern "C" {

// Throws so often through eleven frames; how many went wrong.
__attribute__((visibility("default"))) int throw_often(int times)
{
    int missed = 0;
    for (int i = 0; i < times; i++) {
        try {
            deeper(10, throw_it);
            missed++;
        } catch (const std::runtime_error &error) {
            missed += error.what()[0] != 't';
        }
    }
    return missed + wrong;
}

__attribute__((visibility("default"))) int end_threads(int times)
{
    int missed = 0;
    for (int i = 0; i < times; i++) {
        missed += !ends_as(end_thread, false, &live);
        missed += !ends_as(wait_for_cancel, true, PTHREAD_CANCELED);
    }
    return missed + wrong;
}
}
