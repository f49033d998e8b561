/* SPDX-License-Identifier: MIT */
/* Loads a plug-in whose constructor allocates from a thread of its own and waits for it,
 * while this thread is inside dlopen. The argument is the plug-in; with a second one the thread is
 * the first of the process to allocate. */
#include <dlfcn.h>

#include "program.h"
#include "watchdog.h"

int main(int argc, char **argv)
{
    void *p = NULL;
    watchdog(8);
    if (argc <= 2) {
        MUST(cudaMalloc(&p, 1 << 20));
    }
    MUST(cudaFree(p));
    void *handle = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_GLOBAL);
    printf("loaded: %s\n", handle != NULL ? "yes" : dlerror());
    if (handle == NULL) {
        return 1;
    }
    int *code = (int *)dlsym(handle, "plug_code");
    printf("allocated and freed: %d\n", code != NULL ? *code : -1);
    MUST(cudaMalloc(&p, 1 << 20));
    MUST(cudaFree(p));
    return 0;
}
