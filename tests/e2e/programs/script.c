/* SPDX-License-Identifier: MIT */
/* Does what its arguments say, one after the other:
 *   m:NAME:SIZE   NAME = cudaMalloc(SIZE); "NAME fails CODE" when it does not succeed
 *   x:N:SIZE      N blocks x1, x2, ... of that size; stops at the first that fails
 *   f:NAME        cudaFree; f:x:EVERY frees all x but every EVERY-th
 *   loop:N:SIZE   N times allocate and free
 *   sleep:MS      ready   abort   exit:STATUS
 * Sizes take Ki, Mi, Gi. */
#include <signal.h>

#include "program.h"

enum { BLOCKS_MAX = 4096 };

static struct {
    char name[24];
    void *pointer;
} blocks[BLOCKS_MAX];
static int block_count;

static size_t size_of(const char *text)
{
    char *end;
    size_t size = strtoull(text, &end, 0);

    return *end == 'K' ? size << 10 : *end == 'M' ? size << 20 : *end == 'G' ? size << 30 : size;
}

__attribute__((noinline)) static int allocate(const char *name, size_t bytes)
{
    void *p = NULL;
    cudaError_t error = cudaMalloc(&p, bytes);

    if (error != cudaSuccess) {
        printf("%s fails %d\n", name, (int)error);
        (void)cudaGetLastError();
        return 0;
    }
    snprintf(blocks[block_count].name, sizeof(blocks[0].name), "%s", name);
    blocks[block_count++].pointer = p;
    return 1;
}

static void allocate_many(int count, size_t bytes)
{
    char name[24];

    for (int i = 1; i <= count; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        if (!allocate(name, bytes)) {
            return;
        }
    }
}

static void release(const char *name)
{
    for (int i = block_count - 1; i >= 0; i--) {
        if (blocks[i].pointer != NULL && strcmp(blocks[i].name, name) == 0) {
            MUST(cudaFree(blocks[i].pointer));
            blocks[i].pointer = NULL;
            return;
        }
    }
}

static void release_but_every(int every)
{
    for (int i = 0; i < block_count; i++) {
        if (blocks[i].pointer != NULL && blocks[i].name[0] == 'x' &&
            atoi(blocks[i].name + 1) % every != 0) {
            MUST(cudaFree(blocks[i].pointer));
            blocks[i].pointer = NULL;
        }
    }
}

static void allocate_and_free(int rounds, size_t bytes)
{
    for (int i = 0; i < rounds; i++) {
        void *p = NULL;
        MUST(cudaMalloc(&p, bytes));
        MUST(cudaFree(p));
    }
}

static void pause_ms(int ms)
{
    for (; ms > 0; ms -= 10) {
        usleep(10000);
    }
}

static void obey(char *command)
{
    char *first = strchr(command, ':'), *second = first != NULL ? strchr(first + 1, ':') : NULL;

    if (first != NULL) {
        *first++ = '\0';
    }
    if (second != NULL) {
        *second++ = '\0';
    }
    if (strcmp(command, "m") == 0) {
        (void)allocate(first, size_of(second));
    } else if (strcmp(command, "x") == 0) {
        allocate_many(atoi(first), size_of(second));
    } else if (strcmp(command, "f") == 0 && second != NULL) {
        release_but_every(atoi(second));
    } else if (strcmp(command, "f") == 0) {
        release(first);
    } else if (strcmp(command, "loop") == 0) {
        allocate_and_free(atoi(first), size_of(second));
    } else if (strcmp(command, "sleep") == 0) {
        pause_ms(atoi(first));
    } else if (strcmp(command, "ready") == 0) {
        printf("ready\n");
    } else if (strcmp(command, "abort") == 0) {
        abort();
    } else if (strcmp(command, "exit") == 0) {
        exit(atoi(first));
    } else {
        printf("no command %s\n", command);
        exit(3);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char command[256];
        snprintf(command, sizeof(command), "%s", argv[i]);
        obey(command);
    }
    return 0;
}
