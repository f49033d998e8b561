/* SPDX-License-Identifier: MIT */
/* probe NAME [ARGUMENTS]: measures one thing about a device, its driver and its runtime. */
#include "probe.h"

#include <stdlib.h>
#include <string.h>

void make_kinds(struct kind kinds[KINDS])
{
    int least;
    int greatest;

    kinds[0] = (struct kind){"legacy", cudaStreamLegacy};
    kinds[1] = (struct kind){"per_thread", cudaStreamPerThread};
    kinds[2] = (struct kind){"blocking", NULL};
    kinds[3] = (struct kind){"non_blocking", NULL};
    kinds[4] = (struct kind){"high_priority", NULL};
    MUST(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    MUST(cudaStreamCreate(&kinds[2].stream));
    MUST(cudaStreamCreateWithFlags(&kinds[3].stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithPriority(&kinds[4].stream, cudaStreamNonBlocking, greatest));
}

static void probe_device(void)
{
    struct cudaDeviceProp prop;
    int driver;
    int runtime;

    MUST(cudaGetDeviceProperties(&prop, 0));
    MUST(cudaDriverGetVersion(&driver));
    MUST(cudaRuntimeGetVersion(&runtime));
    printf("name \"%s\"\n", prop.name);
    printf("compute_capability %d.%d\n", prop.major, prop.minor);
    printf("driver %d\n", driver);
    printf("runtime %d\n", runtime);
    printf("integrated %s\n", word(prop.integrated));
}

static const struct {
    const char *name;
    void (*probe)(void);
} probes[] = {
    {"device", probe_device},     {"context_event", probe_context_event},
    {"coverage", probe_coverage}, {"waits", probe_waits},
    {"lookup", probe_lookup},     {"capture", probe_capture},
    {"errors", probe_errors},     {"memory", probe_memory},
    {"streams", probe_streams},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (strcmp(name, "pairs") == 0 && argc == 5) {
        probe_pairs(argv[2], (unsigned)atoi(argv[3]), (size_t)atoll(argv[4]));
        return 0;
    }
    for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++) {
        if (strcmp(name, probes[i].name) == 0) {
            MUST(cudaFree(NULL));
            probes[i].probe();
            return 0;
        }
    }
    fprintf(stderr, "probe pairs malloc|async COUNT BYTES, or probe with one of:");
    for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++) {
        fprintf(stderr, " %s", probes[i].name);
    }
    fputc('\n', stderr);
    return 2;
}
