// SPDX-License-Identifier: MIT
// Allocates from a template, a lambda and a method of C++; each names its line.
#include <cstdio>
#include <cuda_runtime_api.h>

namespace shapes {

struct Store {
    void *take(size_t bytes) __attribute__((noinline))
    {
        void *p = nullptr;
        cudaMalloc(&p, bytes);
        return p;
    }
};

template <typename T> __attribute__((noinline)) void *make(size_t count)
{
    Store store;
    void *p = store.take(count * sizeof(T));
    std::puts("made");
    return p;
}

} // namespace shapes

int main()
{
    auto lambda = [](size_t count) __attribute__((noinline))
    {
        void *p = shapes::make<double>(count);
        std::puts("called");
        return p;
    };
    return lambda(1000) == nullptr;
}
