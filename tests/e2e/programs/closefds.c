/* SPDX-License-Identifier: MIT */
/* Closes every descriptor after its first allocation, opens two files (arguments 1 and 2),
 * allocates from deep stacks, is asked for a dump by its own hand, and writes one line into each
 * file. */
#include <fcntl.h>
#include <signal.h>

#include "program.h"

__attribute__((noinline)) static void allocate_deeply(int depth, int seed)
{
    char pad[64 + 32 * 7];
    memset(pad, seed, sizeof(pad));
    if (depth > 0) {
        allocate_deeply(depth - 1, seed + pad[depth % 64]);
    } else {
        void *p = NULL;
        MUST(cudaMalloc(&p, 1024 + (size_t)(seed & 7) * 512));
        MUST(cudaFree(p));
    }
    __asm__ volatile("" ::"r"(pad) : "memory");
}

int main(int argc, char **argv)
{
    void *first = NULL;
    MUST(cudaMalloc(&first, 1 << 20));
    allocate_deeply(5, 1);
    for (int fd = 0; fd < 1024; fd++) {
        close(fd);
    }
    int a = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    int b = open(argv[argc > 2 ? 2 : 1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (int fd = b + 1; fd < 12; fd++) {
        if (dup2(b, fd) < 0) {
            return 4;
        }
    }
    for (int i = 0; i < 50; i++) {
        allocate_deeply(i % 40, i);
    }
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 20; i++) {
        usleep(50000);
        allocate_deeply(i, i);
    }
    if (write(a, "first\n", 6) != 6 || write(b, "second\n", 7) != 7) {
        return 5;
    }
    return 0;
}
