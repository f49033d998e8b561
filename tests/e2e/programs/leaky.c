/* SPDX-License-Identifier: MIT */
/* Allocates ten blocks in a loop and frees nine; waits at the end when asked to (argument:
 * seconds), exits with status 7. */
#include "program.h"

__attribute__((noinline)) static void *keep_one_block(size_t bytes)
{
    void *p = NULL;
    MUST(cudaMalloc(&p, bytes));
    return p;
}

__attribute__((noinline)) static void leak_in_a_loop(void)
{
    for (int i = 0; i < 30; i++) {
        void *p = keep_one_block(64 << 10);
        if (i % 10 != 0) {
            MUST(cudaFree(p));
        }
    }
}

int main(int argc, char **argv)
{
    leak_in_a_loop();
    printf("ready\n");
    fflush(stdout);
    if (argc > 1) {
        for (int tenths = atoi(argv[1]) * 10; tenths > 0; tenths--) {
            usleep(100000);
        }
    }
    return 7;
}
