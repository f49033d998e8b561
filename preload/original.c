/* SPDX-License-Identifier: MIT */
#include "preload/original.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "device/cuda_table.h"

enum { MODULES_MAX = 64, PATH_BYTES = 1024 };

const char *const cca_hook_names[CCA_ROW_HOOKS] = {
#define HOOK(name, door, action, since, params, args) [CCA_ROW_##name] = #name,
#include "preload/hooks.def"
#undef HOOK
};

const char *cca_original_name(enum cca_row row)
{
    switch (row) {
    case CCA_ROW_cudaGetDevice: return "cudaGetDevice";
    case CCA_ROW_cudaRuntimeGetVersion: return "cudaRuntimeGetVersion";
    default: return cca_hook_names[row];
    }
}

/* A loaded object; `path` is empty for the main program. `unloads`: how many objects the process
 * had unloaded when this one was seen. */
struct object {
    uintptr_t start, end;
    uint64_t unloads;
    char path[PATH_BYTES];
};

/* Which object to look for: the one around an address, or the n-th whose file name holds a text. */
struct search {
    uintptr_t addr;
    const char *part;
    int skip;
    struct object *object;
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int match_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct search *search = user;
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD) {
            uintptr_t from = info->dlpi_addr + segment->p_vaddr;
            start = from < start ? from : start;
            end = from + segment->p_memsz > end ? from + segment->p_memsz : end;
        }
    }
    const char *path = info->dlpi_name != NULL ? info->dlpi_name : "";
    size_t length = strlen(path);
    bool matches = search->part != NULL ? strstr(file_name(path), search->part) != NULL
                                        : search->addr >= start && search->addr < end;
    if (!matches || length >= PATH_BYTES || search->skip-- > 0) {
        return 0;
    }
    search->object->start = start;
    search->object->end = end;
    search->object->unloads = info->dlpi_subs;
    memcpy(search->object->path, path, length + 1);
    return 1;
}

/* dl_iterate_phdr takes a lock that is held while the list of objects changes and never while an
 * object's constructors run, unlike that of dladdr. */
static bool find_object_at(const void *addr, struct object *object_out)
{
    struct search search = {.addr = (uintptr_t)addr, .object = object_out};
    return dl_iterate_phdr(match_object, &search) != 0;
}

static bool find_object_named(const char *part, int position, struct object *object_out)
{
    struct search search = {.part = part, .skip = position, .object = object_out};
    return dl_iterate_phdr(match_object, &search) != 0;
}

/* The main program's own address for a function may be a jump slot that leads to us. */
static bool is_genuine(void *found, struct object *owner_out)
{
    static const char here;
    return found != NULL && find_object_at(found, owner_out) && owner_out->path[0] != '\0' &&
           !((uintptr_t)&here >= owner_out->start && (uintptr_t)&here < owner_out->end);
}

/* Our pointers outlive a dlclose by the program. */
static void keep_loaded(const struct object *owner)
{
    (void)dlopen(owner->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void *look_up_in(const struct object *object, const char *name, struct object *owner_out)
{
    void *handle = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return NULL;
    }
    void *found = dlsym(handle, name);
    bool is_good = is_genuine(found, owner_out);
    if (is_good) {
        keep_loaded(owner_out);
    }
    (void)dlclose(handle);
    return is_good ? found : NULL;
}

static void *look_up_next(const char *name, struct object *owner_out)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!is_genuine(found, owner_out)) {
        return NULL;
    }
    keep_loaded(owner_out);
    return found;
}

/* As the dynamic linker would have bound the caller's reference without us: what is loaded at
 * program start meets the definitions behind ours, another interposer's included; a library that
 * came in later with a runtime of its own meets that one. */
static CCA_NOINLINE void *look_up_runtime(const struct object *caller, const char *name)
{
    struct object owner;
    void *found = NULL;
    if (caller->path[0] != '\0') {
        found = look_up_in(caller, name, &owner);
    }
    if (found == NULL) {
        found = look_up_next(name, &owner);
    }
    struct object runtime;
    for (int i = 0; found == NULL && find_object_named("libcudart.so", i, &runtime); i++) {
        found = look_up_in(&runtime, name, &owner);
    }
    return found;
}

/* An object that called us; `start`, `end` and `path_hash` are written once, before `module_count`
 * covers the entry. */
struct module {
    uintptr_t start, end;
    uint64_t path_hash;
    _Atomic uint64_t unloads; /* seen at its place when the process had unloaded so many objects */
    _Atomic(void *) functions[CCA_ROWS];
};

static struct module modules[MODULES_MAX];
static _Atomic int module_count;
static pthread_mutex_t module_lock = PTHREAD_MUTEX_INITIALIZER;

static int read_unloads(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(uint64_t *)user = info->dlpi_subs;
    return 1;
}

/* A plug-in that replaces another is often mapped at the same place: an entry holds only as long as
 * nothing was unloaded since its object was seen there. */
static struct module *find_module(const void *addr)
{
    uintptr_t at = (uintptr_t)addr;
    uint64_t unloads = 0;
    (void)dl_iterate_phdr(read_unloads, &unloads);
    for (int i = atomic_load_explicit(&module_count, memory_order_acquire) - 1; i >= 0; i--) {
        struct module *module = &modules[i];
        if (at >= module->start && at < module->end &&
            atomic_load_explicit(&module->unloads, memory_order_acquire) == unloads) {
            return module;
        }
    }
    return NULL;
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    }
    return hash;
}

/* Under the lock. */
static struct module *find_or_add_module(const struct object *object)
{
    uint64_t hash = hash_text(object->path);
    int count = atomic_load_explicit(&module_count, memory_order_relaxed);
    for (int i = 0; i < count; i++) {
        if (modules[i].start == object->start && modules[i].end == object->end &&
            modules[i].path_hash == hash) {
            return &modules[i];
        }
    }
    if (count == MODULES_MAX) {
        return NULL;
    }
    modules[count].start = object->start;
    modules[count].end = object->end;
    modules[count].path_hash = hash;
    atomic_store_explicit(&module_count, count + 1, memory_order_release);
    return &modules[count];
}

static void remember(const struct object *caller, enum cca_row row, void *found)
{
    /* Tried only: a forked child may inherit the lock taken, and then does without the cache. */
    if (pthread_mutex_trylock(&module_lock) != 0) {
        return;
    }
    struct module *module = find_or_add_module(caller);
    if (module != NULL) {
        atomic_store_explicit(&module->functions[row], found, memory_order_release);
        atomic_store_explicit(&module->unloads, caller->unloads, memory_order_release);
    }
    pthread_mutex_unlock(&module_lock);
}

static CCA_COLD void *resolve_runtime(enum cca_row row, const void *caller)
{
    struct object object;
    bool is_known = find_object_at(caller, &object);
    if (!is_known) {
        object.path[0] = '\0';
    }
    void *found = look_up_runtime(&object, cca_original_name(row));
    if (found != NULL && is_known) {
        remember(&object, row, found);
    }
    return found;
}

void *cca_original_runtime(enum cca_row row, const void *caller)
{
    struct module *module = find_module(caller);
    void *found = module != NULL
                      ? atomic_load_explicit(&module->functions[row], memory_order_acquire)
                      : NULL;
    return CCA_LIKELY(found != NULL) ? found : resolve_runtime(row, caller);
}

/* Never "libcuda.so" (a link-time stub), never a fixed path. */
static void *driver_handle(bool may_load)
{
    static _Atomic(void *) cached;
    void *handle = atomic_load_explicit(&cached, memory_order_acquire);
    if (handle == NULL) {
        handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (handle == NULL && may_load) {
            handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NODELETE);
        }
        atomic_store_explicit(&cached, handle, memory_order_release);
    }
    return handle;
}

static CCA_COLD void *resolve_driver(const char *name)
{
    struct object owner;
    void *found = look_up_next(name, &owner);
    if (found == NULL) {
        void *handle = driver_handle(true);
        found = handle != NULL ? dlsym(handle, name) : NULL;
    }
    return found;
}

void *cca_original_driver(enum cca_row row)
{
    static _Atomic(void *) functions[CCA_ROWS];
    void *found = atomic_load_explicit(&functions[row], memory_order_acquire);
    if (CCA_UNLIKELY(found == NULL)) {
        found = resolve_driver(cca_original_name(row));
        atomic_store_explicit(&functions[row], found, memory_order_release);
    }
    return found;
}

/* An explicit handle never leads to our own exports. */
static void *look_up_driver(void *handle, const char *name)
{
    return dlsym(handle, name);
}

enum table_state { TABLE_EMPTY, TABLE_BUSY, TABLE_READY, TABLE_UNUSABLE };

/* Two threads may fill a copy each; one of them publishes. */
static CCA_COLD const struct cca_cuda_table *fill_table(struct cca_cuda_table *table,
                                                        _Atomic int *state)
{
    void *handle = driver_handle(false);
    if (handle == NULL) {
        return NULL;
    }
    const char *missing = NULL;
    struct cca_cuda_table mine;
    int rc = cca_cuda_table_fill(&mine, look_up_driver, handle, &missing);
    int expected = TABLE_EMPTY;
    if (!atomic_compare_exchange_strong(state, &expected, TABLE_BUSY)) {
        return expected == TABLE_READY ? table : NULL;
    }
    if (rc != 0) {
        cca_log(CCA_LOG_WARN, "no caching: this CUDA driver lacks %s", missing);
        atomic_store_explicit(state, TABLE_UNUSABLE, memory_order_release);
        return NULL;
    }
    *table = mine;
    atomic_store_explicit(state, TABLE_READY, memory_order_release);
    return table;
}

const struct cca_cuda_table *cca_original_table(void)
{
    static struct cca_cuda_table table;
    static _Atomic int state;
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (CCA_LIKELY(now == TABLE_READY)) {
        return &table;
    }
    return now == TABLE_EMPTY ? fill_table(&table, &state) : NULL;
}
