/* SPDX-License-Identifier: MIT */
/* Stands between the library and the driver: a program that links it runs code of its own when the
 * driver has destroyed a stream, before anybody else learns of it. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) void (*cca_test_stream_destroyed)(void);

__attribute__((visibility("default"))) int cuStreamDestroy_v2(void *stream);

int cuStreamDestroy_v2(void *stream)
{
    int (*real)(void *) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *found = driver != NULL ? dlsym(driver, "cuStreamDestroy_v2") : NULL;
    memcpy(&real, &found, sizeof(real));
    int result = real != NULL ? real(stream) : 999;
    if (cca_test_stream_destroyed != NULL) {
        cca_test_stream_destroyed();
    }
    return result;
}
