/* SPDX-License-Identifier: MIT */
/* Has a handler of its own for SIGUSR1, installed before or after its first allocation (argument).
 */
#include <signal.h>

#include "program.h"

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled++;
}

int main(int argc, char **argv)
{
    int before = argc > 1 && strcmp(argv[1], "before") == 0;
    void *p = NULL;
    if (before) {
        signal(SIGUSR1, handle);
    }
    MUST(cudaMalloc(&p, 4096));
    if (!before) {
        signal(SIGUSR1, handle);
    }
    raise(SIGUSR1);
    usleep(200000);
    printf("handled %d\n", (int)handled);
    MUST(cudaFree(p));
    return 0;
}
