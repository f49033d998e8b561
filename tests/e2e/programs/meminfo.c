/* SPDX-License-Identifier: MIT */
/* What cudaMemGetInfo says while a large block lives and after it was freed in stream order, to
 * within the memory that one small request may take. The argument names the call that waits. */
#include "program.h"

static const size_t slack = 40 << 20, large = (size_t)1 << 30;
static size_t first_free;

static void show(const char *when, size_t expected)
{
    size_t free_bytes, total;
    MUST(cudaMemGetInfo(&free_bytes, &total));
    size_t used = first_free - free_bytes;
    fprintf(stderr, "%s: %zu MiB used\n", when, used >> 20);
    printf("%s: %s\n", when,
           used + slack < expected   ? "LESS than allocated"
           : used > expected + slack ? "MORE than allocated"
                                     : "as allocated");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "stream";
    cudaStream_t stream;
    size_t total;
    void *p = NULL;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMemGetInfo(&first_free, &total));
    for (int round = 0; round < 3; round++) {
        MUST(cudaMallocAsync(&p, large, stream));
        MUST(cudaMemsetAsync(p, round, 4096, stream));
        show("allocated", large);
        MUST(cudaFreeAsync(p, stream));
        if (strcmp(how, "stream") == 0) {
            MUST(cudaStreamSynchronize(stream));
        } else if (strcmp(how, "device") == 0) {
            MUST(cudaDeviceSynchronize());
        }
        show("freed", 0);
    }
    return 0;
}
