/* SPDX-License-Identifier: MIT */
/* Looks the same name up again and again: many COUNT. */
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *handle = dlopen("libc.so.6", RTLD_NOW);
    int count = argc > 1 ? atoi(argv[1]) : 0;
    void *found = dlsym(handle, "qsort");
    for (int i = 0; i < count; i++) {
        found = dlsym(handle, "qsort");
    }
    return found == NULL;
}
