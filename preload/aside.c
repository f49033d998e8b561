/* SPDX-License-Identifier: MIT */
#include "preload/aside.h"

#include <stddef.h>

#include "preload/loader.h"
#include "process/process.h"

/* Parts of file names that only the tool's own libraries have. */
static const struct {
    const char *part, *why;
} tools[] = {
    {"libsanitizer-", "compute-sanitizer is in the process"},
    {"libcuda-memcheck", "cuda-memcheck is in the process"},
    {"libcudadebugger.so", "a CUDA debugger is in the process"},
};

bool cca_aside_allows(bool is_integrated)
{
    struct cca_loader_object object;

    if (is_integrated &&
        !cca_process_stand_aside("the device shares the host's memory (integrated GPU)")) {
        return false;
    }
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (cca_loader_object_named(tools[i].part, 0, &object)) {
            (void)cca_process_stand_aside(tools[i].why);
            break;
        }
    }
    return true;
}
