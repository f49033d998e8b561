/* SPDX-License-Identifier: MIT */
/* A program that links nothing of CUDA and finds its functions at run time: doors WAY [FLAG].
 *   local       a runtime opened with RTLD_LOCAL, functions by dlsym of the handle
 *   several     runtimes of all releases that are there; what one gives, the next one frees
 *   driver      the driver alone, by dlsym
 *   resolver    the driver alone, by its resolver
 *   old         the same by the resolver of CUDA 11
 *   entry       driver functions out of the runtime's cudaGetDriverEntryPointByVersion
 *   mixed       each of these gives memory that the next one frees
 *   other       a context of the program's own beside the primary one
 * FLAG deepbind opens the libraries with RTLD_DEEPBIND. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 100 };
#define MIB ((size_t)1 << 20)

static int open_flags = RTLD_NOW | RTLD_LOCAL;

/* One way to reach memory. */
struct way {
    const char *name;
    int (*runtime_alloc)(void **ptr, size_t bytes);
    int (*runtime_free)(void *ptr);
    int (*peek)(void);
    int (*last)(void);
    int (*driver_alloc)(uint64_t *addr, size_t bytes);
    int (*driver_free)(uint64_t addr);
    int (*set)(uint64_t addr, unsigned char value, size_t count);
    int (*copy)(void *host, uint64_t addr, size_t bytes);
};

static int allocate(const struct way *way, uint64_t *addr, size_t bytes)
{
    void *ptr = NULL;
    int result;
    if (way->driver_alloc != NULL) {
        return way->driver_alloc(addr, bytes);
    }
    result = way->runtime_alloc(&ptr, bytes);
    *addr = (uint64_t)(uintptr_t)ptr;
    return result;
}

static int release(const struct way *way, uint64_t addr)
{
    return way->driver_free != NULL ? way->driver_free(addr)
                                    : way->runtime_free((void *)(uintptr_t)addr);
}

static void show(const struct way *way, const char *what, int result)
{
    printf("%s: %s -> %d", way->name, what, result);
    if (way->last != NULL) {
        int peeked = way->peek();
        printf(", last error %d %d", peeked, way->last());
    }
    printf("\n");
}

static void *must_open(const char *name)
{
    void *handle = dlopen(name, open_flags);
    if (handle == NULL) {
        printf("%s\n", dlerror());
        exit(3);
    }
    return handle;
}

static void must_find(void *handle, const char *name, void *function)
{
    void *found = dlsym(handle, name);
    if (found == NULL) {
        printf("no %s\n", name);
        exit(3);
    }
    memcpy(function, &found, sizeof(found));
}

static void fill_checks(struct way *way, void *driver)
{
    must_find(driver, "cuMemsetD8_v2", &way->set);
    must_find(driver, "cuMemcpyDtoH_v2", &way->copy);
}

static struct way runtime_way(const char *name)
{
    struct way way = {.name = name};
    void *handle = must_open(name);
    must_find(handle, "cudaMalloc", &way.runtime_alloc);
    must_find(handle, "cudaFree", &way.runtime_free);
    must_find(handle, "cudaPeekAtLastError", &way.peek);
    must_find(handle, "cudaGetLastError", &way.last);
    fill_checks(&way, must_open("libcuda.so.1"));
    return way;
}

/* The primary context becomes current. */
static void start_driver(void *driver)
{
    int (*init)(unsigned), (*retain)(CUcontext *, int), (*make_current)(CUcontext);
    CUcontext context = NULL;
    must_find(driver, "cuInit", &init);
    must_find(driver, "cuDevicePrimaryCtxRetain", &retain);
    must_find(driver, "cuCtxSetCurrent", &make_current);
    int results[] = {init(0), retain(&context, 0), make_current(context)};
    printf("started %d %d %d\n", results[0], results[1], results[2]);
}

static struct way driver_way(void)
{
    struct way way = {.name = "driver"};
    void *driver = must_open("libcuda.so.1");
    must_find(driver, "cuMemAlloc_v2", &way.driver_alloc);
    must_find(driver, "cuMemFree_v2", &way.driver_free);
    fill_checks(&way, driver);
    start_driver(driver);
    return way;
}

typedef int (*resolver_fn)(const char *, void **, int, uint64_t, int *);
typedef int (*old_resolver_fn)(const char *, void **, int, uint64_t);

static struct way resolver_way(void)
{
    struct way way = {.name = "resolver"};
    void *driver = must_open("libcuda.so.1"), *found = NULL;
    resolver_fn resolver, itself;
    int statuses[5] = {-1, -1, -1, -1, -1}, results[5];
    start_driver(driver);
    must_find(driver, "cuGetProcAddress_v2", &resolver);
    results[0] = resolver("cuGetProcAddress", &found, 12000, 0, &statuses[0]);
    memcpy(&itself, &found, sizeof(itself));
    results[1] = itself("cuMemAlloc", (void **)&way.driver_alloc, 13000, 1, &statuses[1]);
    results[2] = itself("cuMemFree", (void **)&way.driver_free, 12000, 0, &statuses[2]);
    results[3] = itself("cuMemFree", &found, 99000, 0, &statuses[3]);
    results[4] = itself("cuNoSuchThing", &found, 12000, 0, &statuses[4]);
    printf("%d\n", itself("cuMemFree", (void **)&way.driver_free, 12000, 0, NULL));
    printf("%d %d\n", itself("cuMemFree", NULL, 12000, 0, NULL),
           itself(NULL, &found, 12000, 0, NULL));
    for (int i = 0; i < 5; i++) {
        printf("resolver %d: %d %d\n", i, results[i], statuses[i]);
    }
    fill_checks(&way, driver);
    return way;
}

static struct way old_resolver_way(void)
{
    struct way way = {.name = "resolver of 11"};
    void *driver = must_open("libcuda.so.1");
    old_resolver_fn resolver;
    start_driver(driver);
    must_find(driver, "cuGetProcAddress", &resolver);
    int results[] = {resolver("cuMemAlloc", (void **)&way.driver_alloc, 11030, 0),
                     resolver("cuMemFree", (void **)&way.driver_free, 11030, 0)};
    printf("resolver of 11: %d %d\n", results[0], results[1]);
    fill_checks(&way, driver);
    return way;
}

static struct way entry_way(void)
{
    struct way way = {.name = "entry point"};
    void *runtime = must_open("libcudart.so.13");
    int (*entry)(const char *, void **, unsigned, unsigned long long, int *);
    int (*start)(void *), statuses[2] = {-1, -1};
    must_find(runtime, "cudaFree", &start);
    must_find(runtime, "cudaGetDriverEntryPointByVersion", &entry);
    int results[] = {start(NULL),
                     entry("cuMemAlloc", (void **)&way.driver_alloc, 12000, 0, &statuses[0]),
                     entry("cuMemFree", (void **)&way.driver_free, 12000, 0, &statuses[1])};
    printf("entry points: %d %d %d, %d %d\n", results[0], results[1], results[2], statuses[0],
           statuses[1]);
    fill_checks(&way, must_open("libcuda.so.1"));
    return way;
}

/* The bytes of a buffer, all of which are `value`. */
static int is_filled(const struct way *way, uint64_t addr, size_t bytes, int value)
{
    unsigned char *host = malloc(bytes);
    int result = way->copy(host, addr, bytes);
    size_t i = 0;
    while (i < bytes && host[i] == (unsigned char)value) {
        i++;
    }
    free(host);
    return result == 0 && i == bytes;
}

/* Memory from one way, given back through another. */
static void work(const struct way *from, const struct way *to)
{
    uint64_t addr = 0, kept = 0, second = 0;
    int failures = 0;
    show(from, "first", allocate(from, &kept, MIB));
    from->set(kept, 5, MIB);
    for (int i = 0; i < ROUNDS; i++) {
        failures += allocate(from, &addr, MIB + (size_t)(i % 7) * 4096) != 0;
        failures += from->set(addr, (unsigned char)i, MIB) != 0;
        failures += !is_filled(from, addr, MIB, i);
        failures += release(to, addr) != 0;
    }
    printf("%d failures, kept is %s\n", failures,
           is_filled(from, kept, MIB, 5) ? "right" : "WRONG");
    show(to, "freed again", release(to, addr));
    show(from, "too much", allocate(from, &second, (size_t)1 << 50));
    show(from, "much too much", allocate(from, &second, SIZE_MAX));
    show(from, "no bytes", allocate(from, &second, 0));
    show(to, "in the middle", release(to, kept + 4096));
    show(to, "nobody's", release(to, 12345));
    show(to, "null", release(to, 0));
    show(from, "after all that", allocate(from, &second, MIB));
    show(to, "free", release(to, second));
    show(to, "free", release(to, kept));
}

static void other_context(const struct way *way)
{
    void *driver = must_open("libcuda.so.1");
    int (*create)(CUcontext *, unsigned, int), (*destroy)(CUcontext), (*pop)(CUcontext *);
    CUcontext context = NULL;
    uint64_t addr = 0;
    must_find(driver, "cuCtxCreate_v2", &create);
    must_find(driver, "cuCtxDestroy_v2", &destroy);
    must_find(driver, "cuCtxPopCurrent_v2", &pop);
    show(way, "create", create(&context, 0, 0));
    show(way, "allocate there", allocate(way, &addr, MIB));
    show(way, "free there", release(way, addr));
    show(way, "allocate there", allocate(way, &addr, MIB));
    show(way, "pop", pop(&context));
    show(way, "destroy", destroy(context));
    show(way, "free what went with it", release(way, addr));
    work(way, way);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (argc > 2 && strcmp(argv[2], "deepbind") == 0) {
        open_flags |= RTLD_DEEPBIND;
    }
    if (strcmp(what, "local") == 0) {
        struct way way = runtime_way("libcudart.so.13");
        work(&way, &way);
    } else if (strcmp(what, "several") == 0) {
        static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
                                            "libcudart.so.11.0"};
        struct way ways[3];
        int count = 0;
        for (int i = 0; i < 3; i++) {
            if (dlopen(names[i], open_flags) != NULL) {
                ways[count++] = runtime_way(names[i]);
            }
        }
        for (int i = 0; i < count; i++) {
            work(&ways[i], &ways[(i + 1) % count]);
        }
    } else if (strcmp(what, "driver") == 0) {
        struct way way = driver_way();
        work(&way, &way);
    } else if (strcmp(what, "resolver") == 0) {
        struct way way = resolver_way();
        work(&way, &way);
    } else if (strcmp(what, "old") == 0) {
        struct way way = old_resolver_way();
        work(&way, &way);
    } else if (strcmp(what, "entry") == 0) {
        struct way way = entry_way();
        work(&way, &way);
    } else if (strcmp(what, "mixed") == 0) {
        struct way ways[] = {driver_way(), runtime_way("libcudart.so.13"), resolver_way(),
                             entry_way()};
        for (int i = 0; i < 4; i++) {
            work(&ways[i], &ways[(i + 1) % 4]);
        }
    } else if (strcmp(what, "other") == 0) {
        struct way way = driver_way();
        other_context(&way);
    }
    return 0;
}
