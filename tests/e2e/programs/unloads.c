/* SPDX-License-Identifier: MIT */
/* Libraries that come and go. Each argument is one step:
 *   load:PATH   dlopen, and call its allocating function for 1 MiB, which is kept
 *   close       dlclose the library loaded last
 *   hidden      the same by a dlclose that nobody can stand in front of
 *   remove:PATH
 *   again:N:PATH  N times load, allocate, free, close
 *   many:N:BYTES  N blocks, which are kept
 * Prints where each library lay, by number: 0 for the first place, 1 for the next... */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "program.h"

enum { PLACES_MAX = 64 };

static void *library;
static uintptr_t places[PLACES_MAX];
static int place_count;

static int number_of(uintptr_t place)
{
    for (int i = 0; i < place_count; i++) {
        if (places[i] == place) {
            return i;
        }
    }
    places[place_count++] = place;
    return place_count - 1;
}

__attribute__((noinline)) static void *load_and_allocate(const char *path)
{
    void *(*allocate)(size_t);
    struct link_map *map = NULL;

    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("WRONG: %s\n", dlerror());
        exit(1);
    }
    *(void **)&allocate = dlsym(library, "plugged_allocate");
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    number_of(map->l_addr);
    return allocate(1 << 20);
}

static void close_hidden(void)
{
    int (*closer)(void *);
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

    *(void **)&closer = dlvsym(libc, "dlclose", "GLIBC_2.34");
    if (closer == NULL) {
        *(void **)&closer = dlvsym(libc, "dlclose", "GLIBC_2.2.5");
    }
    printf("hidden %d\n", closer != NULL && closer != (int (*)(void *))dlclose);
    closer(library);
}

static void obey(const char *step)
{
    if (strncmp(step, "load:", 5) == 0) {
        if (load_and_allocate(step + 5) == NULL) {
            printf("WRONG: no memory\n");
        }
    } else if (strcmp(step, "close") == 0) {
        MUST((cudaError_t)dlclose(library));
    } else if (strcmp(step, "hidden") == 0) {
        close_hidden();
    } else if (strncmp(step, "remove:", 7) == 0) {
        unlink(step + 7);
    } else if (strncmp(step, "many:", 5) == 0) {
        char *bytes = NULL;
        for (long n = strtol(step + 5, &bytes, 10); n > 0; n--) {
            void *p = NULL;
            MUST(cudaMalloc(&p, strtoull(bytes + 1, NULL, 10)));
        }
    } else if (strncmp(step, "again:", 6) == 0) {
        char *path = NULL;
        for (long n = strtol(step + 6, &path, 10); n > 0; n--) {
            MUST(cudaFree(load_and_allocate(path + 1)));
            dlclose(library);
        }
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        obey(argv[i]);
    }
    printf("places %d\n", place_count);
    return 0;
}
