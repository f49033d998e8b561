/* SPDX-License-Identifier: MIT */
/* Stands before the driver: the first load of a module finds no memory. As documented, the size of
 * the log becomes the bytes that were filled. */
#include <stdint.h>
#include <stdio.h>

__attribute__((visibility("default"))) int
cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values);

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                       void **values)
{
    enum { ERROR_LOG_SIZE = 6, OUT_OF_MEMORY = 2 };
    static int calls;
    (void)module;
    (void)image;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == ERROR_LOG_SIZE) {
            printf("call %d: room for %u bytes\n", calls, (unsigned)(uintptr_t)values[i]);
            values[i] = (void *)(uintptr_t)calls;
        }
    }
    return calls++ == 0 ? OUT_OF_MEMORY : 0;
}
