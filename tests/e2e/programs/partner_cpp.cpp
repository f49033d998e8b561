// SPDX-License-Identifier: MIT
// The C interface from C++: what a program of that language does with it, with each answer checked.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "cca/cca.h"

static int failures;

#define EXPECT(condition) expect(condition, #condition)

static void expect(bool holds, const char *what)
{
    if (!holds) {
        std::printf("WRONG: %s\n", what);
        failures++;
    }
}

static void keep(void *user, const char *key, int64_t value)
{
    (*static_cast<std::map<std::string, int64_t> *>(user))[key] = value;
}

static void count_event(void *user, const cca_trace_notice *notice)
{
    *static_cast<int *>(user) += std::strcmp(notice->api, "cca_my_malloc") == 0;
}

static void take_part()
{
    cudaStream_t stream;
    std::map<std::string, int64_t> stats;
    cca_pool_options options{};
    cca_sums_info sums{};
    uint64_t pool = 0;
    int events = 0;
    options.struct_bytes = sizeof(options);
    sums.struct_bytes = sizeof(sums);
    EXPECT(cca_attach_trace_tracker(count_event, &events) == 0);
    EXPECT(cudaStreamCreate(&stream) == cudaSuccess);
    void *own = cca_my_malloc(3 << 20, 0, stream);
    EXPECT(own != nullptr && cca_memory_allocated(0) == 3 << 20);
    EXPECT(events == 2); // the segment and the block
    EXPECT(cca_pool_create(0, &options, &pool) == 0);
    EXPECT(cca_pool_use_begin(0, pool, CCA_POOL_USE_STREAM, stream) == 0);
    void *pooled = cca_my_malloc(1 << 20, 0, stream);
    EXPECT(pooled != nullptr && cca_pool_stats(0, pool, &sums, nullptr) == 0);
    EXPECT(sums.live_bytes == 1 << 20 && sums.reserved_bytes == 2 << 20);
    EXPECT(cca_pool_use_end(0, pool) == 0);
    EXPECT(cca_each_stat(0, keep, &stats) == 0);
    EXPECT(stats["allocation.all.current"] == 2 && stats["reserved_bytes.all.peak"] == 22 << 20);
    EXPECT(stats["reserved_bytes_by_private_pools.0_1.all.current"] == 2 << 20);
    cca_my_free(own, 3 << 20, 0, stream);
    cca_my_free(pooled, 1 << 20, 0, stream);
    EXPECT(cca_pool_destroy(0, pool) == 0);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess && cca_empty_cache() == 0);
    EXPECT(cca_memory_reserved(0) == 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "absent";
    if (std::strcmp(how, "absent") == 0) {
        EXPECT(!cca_loaded() && cca_my_malloc(100, 0, nullptr) == nullptr);
        EXPECT(cca_memory_allocated(0) == 0);
    } else {
        take_part();
    }
    std::printf("%s: %d wrong\n", how, failures);
    return failures != 0;
}
