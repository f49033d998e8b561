/* SPDX-License-Identifier: MIT */
/* A program that links nothing of CUDA and loads it later, in the way of the first argument: as a
 * plug-in (the second argument), or the runtime itself by its soname. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*work_fn)(int rounds);
typedef int (*malloc_fn)(void **ptr, size_t bytes);
typedef int (*free_fn)(void *ptr);

static void *symbol(void *handle, const char *name)
{
    void *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (found == NULL) {
        printf("no %s: %s\n", name, dlerror());
        exit(4);
    }
    return found;
}

static void work(void *plugin)
{
    printf("worked: %d\n", ((work_fn)symbol(plugin, "work"))(20));
}

/* Functions of the runtime by hand. */
static void use(void *runtime)
{
    malloc_fn allocate = (malloc_fn)symbol(runtime, "cudaMalloc");
    free_fn give_back = (free_fn)symbol(runtime, "cudaFree");
    for (int i = 0; i < 20; i++) {
        void *p = NULL;
        int code = allocate(&p, 1 << 20);
        if (code != 0 || (code = give_back(p)) != 0) {
            printf("failed: %d\n", code);
            return;
        }
    }
    printf("used\n");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";
    const char *runtime = "libcudart.so.13";
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(how, "local") == 0) {
        work(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    } else if (strcmp(how, "global") == 0) {
        work(dlopen(path, RTLD_NOW | RTLD_GLOBAL));
    } else if (strcmp(how, "deepbind") == 0) {
        work(dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
    } else if (strcmp(how, "namespace") == 0) {
        work(dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL));
    } else if (strcmp(how, "again") == 0) {
        for (int i = 0; i < 5; i++) {
            void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            work(plugin);
            dlclose(plugin);
        }
    } else if (strcmp(how, "runtime") == 0) {
        use(dlopen(runtime, RTLD_NOW | RTLD_LOCAL));
    } else if (strcmp(how, "runtime_again") == 0) {
        for (int i = 0; i < 3; i++) {
            void *handle = dlopen(runtime, RTLD_NOW | RTLD_LOCAL);
            use(handle);
            dlclose(handle);
        }
    }
    return 0;
}
