/* SPDX-License-Identifier: MIT */
/* Another library that hooks dlsym, and calls the C library's own. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
    void *(*real)(void *, const char *) = NULL;
    void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (found == NULL) {
        found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    }
    memcpy(&real, &found, sizeof(real));
    return real != NULL ? real(handle, name) : NULL;
}
