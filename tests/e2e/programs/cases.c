/* SPDX-License-Identifier: MIT */
/* Ways in which programs come to hold too much device memory, one for each argument:
 *   growing   every request is a little larger than all before it; each is freed at once
 *   crumbs    small buffers out of one large freed one stay here and there
 *   keeping   a loop that keeps one buffer of every round
 *   training  weights that stay, activations that come and go */
#include "program.h"

#define MIB ((size_t)1 << 20)

static void *buffer(size_t bytes)
{
    void *p = NULL;
    MUST(cudaMalloc(&p, bytes));
    return p;
}

static void *load_weights(size_t bytes)
{
    return buffer(bytes);
}

static void *keep_result(size_t bytes)
{
    return buffer(bytes);
}

static void *activation(size_t bytes)
{
    return buffer(bytes);
}

static void larger_workspace(size_t bytes)
{
    MUST(cudaFree(buffer(bytes)));
}

static void growing(void)
{
    larger_workspace(481 * MIB);
    larger_workspace(538 * MIB);
    larger_workspace(600 * MIB);
}

static void crumbs(void)
{
    void *pieces[64];
    MUST(cudaFree(buffer(1164 * MIB)));
    for (int i = 0; i < 64; i++) {
        pieces[i] = keep_result(18 * MIB);
    }
    for (int i = 0; i < 64; i++) {
        if (i % 23 != 0) {
            MUST(cudaFree(pieces[i]));
        }
    }
}

static void keeping(void)
{
    for (int round = 0; round < 40; round++) {
        void *scratch = activation(3 * MIB);
        keep_result(MIB / 2);
        MUST(cudaFree(scratch));
    }
}

static void training(void)
{
    void *layers[6];
    void *weights = load_weights(96 * MIB);
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < 6; i++) {
            layers[i] = activation((size_t)(4 + 3 * i) * MIB);
        }
        for (int i = 5; i >= 0; i--) {
            MUST(cudaFree(layers[i]));
        }
    }
    MUST(cudaFree(weights));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "growing") == 0) {
        growing();
    } else if (strcmp(name, "crumbs") == 0) {
        crumbs();
    } else if (strcmp(name, "keeping") == 0) {
        keeping();
    } else if (strcmp(name, "training") == 0) {
        training();
    } else {
        printf("usage: cases growing|crumbs|keeping|training\n");
        return 2;
    }
    printf("%s: done\n", name);
    return 0;
}
