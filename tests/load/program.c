/* SPDX-License-Identifier: MIT */
/* Prints which runtime each kind of reference reaches: program [PLUGIN...]. Built with a runtime
 * (LINKED) and without. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef LINKED
int cudaFree(void *ptr);
int cudaMalloc(void **ptr, size_t bytes);
int cudaSetDevice(int device);
int cudaThreadExit(void);
int cudaThreadSynchronize(void);

static void answer_main(void)
{
    int (*volatile by_address)(void *) = cudaFree;
    printf("main %d %d %d %d\n", cudaFree(NULL), cudaMalloc(NULL, 0), cudaSetDevice(0),
           by_address(NULL));
    printf("old %d %d\n", cudaThreadExit(), cudaThreadSynchronize());
}
#else
static void answer_main(void)
{
}
#endif

static int is_mapped(const char *path)
{
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        found |= strstr(line, path) != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

static int answer_plugin(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*answers)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "plugin_answers") : NULL;
    if (answers == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("%s %d %d", strrchr(path, '/'), answers(), answers());
    dlclose(plugin);
    printf(" %s\n", is_mapped(path) ? "stays" : "goes");
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    answer_main();
    for (int i = 1; i < argc; i++) {
        status |= answer_plugin(argv[i]);
    }
    answer_main();
    return status;
}
