/* SPDX-License-Identifier: MIT */
/* A C program that loads a C++ library (argument), whose exceptions then fly through it. */
#include <dlfcn.h>

#include "program.h"

int main(int argc, char **argv)
{
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
    int (*throw_often)(int), (*end_threads)(int);

    if (library == NULL) {
        printf("WRONG: %s\n", dlerror());
        return 1;
    }
    *(void **)&throw_often = dlsym(library, "throw_often");
    *(void **)&end_threads = dlsym(library, "end_threads");
    printf("thrown %d\n", throw_often(200));
    printf("ended %d\n", end_threads(20));
    printf("thrown %d\n", throw_often(200));
    return 3;
}
