/* SPDX-License-Identifier: MIT */
#include "preload/original.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "device/cuda_table.h"
#include "preload/loader.h"
#include "preload/lookup.h"

enum { MODULES_MAX = 64, KEPT_MAX = 32, VERSION_BYTES = 64 };

/* The main program's own address for a function may be a jump slot that leads to us. */
static bool is_genuine(void *found, struct cca_loader_object *owner_out)
{
    return found != NULL && cca_loader_object_at(found, owner_out) && owner_out->path[0] != '\0' &&
           !cca_loader_is_ours(found);
}

/* Where objects start that will never be unloaded. */
static _Atomic uintptr_t kept[KEPT_MAX];

static bool is_kept(uintptr_t owner)
{
    for (int i = 0; i < KEPT_MAX; i++) {
        uintptr_t start = atomic_load_explicit(&kept[i], memory_order_acquire);
        if (start == owner || start == 0) {
            return start == owner;
        }
    }
    return false;
}

/* Our pointers outlive a dlclose by the program. */
static void keep_loaded(const struct cca_loader_object *owner)
{
    if (dlopen(owner->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
        return;
    }
    for (int i = 0; i < KEPT_MAX; i++) {
        uintptr_t none = 0;
        if (atomic_compare_exchange_strong(&kept[i], &none, owner->start) || none == owner->start) {
            return;
        }
    }
}

/* Where only one object defines the name, and stays loaded: the loader need not be asked. It may be
 * waited for in vain, since a thread that loads a plug-in holds its lock, too, while a constructor
 * there waits for this thread. */
static void *look_up_sole(const char *name)
{
    uintptr_t owner = 0;
    void *found = cca_loader_sole_definition(name, &owner);
    return found != NULL && is_kept(owner) ? found : NULL;
}

static void *look_up_in(const struct cca_loader_object *object, const char *name,
                        struct cca_loader_object *owner_out)
{
    void *handle = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return NULL;
    }
    void *found = cca_lookup_real(handle, name);
    bool is_good = is_genuine(found, owner_out);
    if (is_good) {
        keep_loaded(owner_out);
    }
    (void)dlclose(handle);
    return is_good ? found : NULL;
}

static void *look_up_next(const char *name, struct cca_loader_object *owner_out)
{
    void *found = cca_lookup_real(RTLD_NEXT, name);
    if (!is_genuine(found, owner_out)) {
        return NULL;
    }
    keep_loaded(owner_out);
    return found;
}

/* The caller names the runtime that it was linked to by a version: of several, only that one will
 * do. An interposer's definition without a version fits, too. */
static void *look_up_needed(const struct cca_loader_object *caller, const char *name,
                            struct cca_loader_object *owner_out)
{
    char version[VERSION_BYTES];
    if (!cca_loader_needed_version(caller, name, version, sizeof(version))) {
        return NULL;
    }
    void *found = cca_lookup_real(RTLD_NEXT, name);
    if (!is_genuine(found, owner_out) || cca_loader_has_versions(owner_out)) {
        found = dlvsym(RTLD_NEXT, name, version);
    }
    if (!is_genuine(found, owner_out)) {
        return NULL;
    }
    keep_loaded(owner_out);
    return found;
}

/* As the dynamic linker would have bound the caller's reference without us: what is loaded at
 * program start meets the definitions behind ours, another interposer's included; a library that
 * came in later with a runtime of its own meets that one. A caller that defines the name itself is
 * an interposer that goes on to the next definition, or holds its own runtime: that one counts only
 * where nothing else comes behind us. */
static CCA_NOINLINE void *look_up_runtime(const struct cca_loader_object *caller, const char *name)
{
    struct cca_loader_object owner;
    void *own = NULL, *found = look_up_needed(caller, name, &owner);
    bool is_interposer = false;
    if (found == NULL && caller->path[0] != '\0') {
        found = look_up_in(caller, name, &owner);
    }
    if (found != NULL && owner.start == caller->start) {
        own = found;
        found = NULL;
        is_interposer = cca_loader_is_in_front(caller);
    }
    if (found == NULL) {
        found = look_up_next(name, &owner);
    }
    if (found != NULL && owner.start == caller->start) {
        found = NULL;
        is_interposer = true;
    }
    if (found == NULL && !is_interposer) {
        found = own;
    }
    struct cca_loader_object runtime;
    for (int i = 0; found == NULL && cca_loader_object_named("libcudart.so", i, &runtime); i++) {
        found = look_up_in(&runtime, name, &owner);
    }
    return found;
}

/* An object that called us; all but the atomics is written once, before `module_count` covers the
 * entry. */
struct module {
    struct cca_loader_object object;
    _Atomic uint64_t unloads; /* seen at its place when the process had unloaded so many objects */
    _Atomic bool is_reached;  /* its runtime's calls come back through the driver door */
    _Atomic(void *) functions[CCA_ROWS];
};

static struct module modules[MODULES_MAX];
static _Atomic int module_count;
static pthread_mutex_t module_lock = PTHREAD_MUTEX_INITIALIZER;

/* A plug-in that replaces another is often mapped at the same place: its entry in the loader may
 * even be the same memory, but not its name. Where the loader does not show its entry, ours holds
 * only as long as nothing was unloaded since the object was seen there. */
static bool is_there(struct module *module, uintptr_t at, const struct cca_loader_glance *glance)
{
    const struct cca_loader_object *object = &module->object;
    if (glance->map == NULL) {
        return at >= object->start && at < object->end &&
               atomic_load_explicit(&module->unloads, memory_order_acquire) == glance->unloads;
    }
    return object->map == glance->map && object->start == glance->start &&
           object->end == glance->end && strcmp(object->path, glance->path) == 0;
}

static struct module *find_module(const void *addr)
{
    struct cca_loader_glance glance;
    if (!cca_loader_glance_at(addr, &glance)) {
        return NULL;
    }
    for (int i = atomic_load_explicit(&module_count, memory_order_acquire) - 1; i >= 0; i--) {
        if (is_there(&modules[i], (uintptr_t)addr, &glance)) {
            return &modules[i];
        }
    }
    return NULL;
}

/* Under the lock. */
static struct module *find_or_add_module(const struct cca_loader_object *object)
{
    int count = atomic_load_explicit(&module_count, memory_order_relaxed);
    for (int i = 0; i < count; i++) {
        const struct cca_loader_object *known = &modules[i].object;
        if (known->map == object->map && known->start == object->start &&
            known->end == object->end && strcmp(known->path, object->path) == 0) {
            return &modules[i];
        }
    }
    if (count == MODULES_MAX) {
        return NULL;
    }
    modules[count].object = *object;
    atomic_store_explicit(&module_count, count + 1, memory_order_release);
    return &modules[count];
}

static void remember(const struct cca_loader_object *caller, enum cca_row row, void *found)
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
    struct cca_loader_object object;
    bool is_known = cca_loader_object_at(caller, &object);
    if (!is_known) {
        object.path[0] = '\0';
    }
    void *found = look_up_sole(cca_row_name(row));
    if (found == NULL) {
        found = look_up_runtime(&object, cca_row_name(row));
    }
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

bool cca_original_is_reached(const void *caller)
{
    struct module *module = find_module(caller);
    return module != NULL && atomic_load_explicit(&module->is_reached, memory_order_relaxed);
}

void cca_original_set_reached(const void *caller)
{
    struct module *module = find_module(caller);
    if (module != NULL) {
        atomic_store_explicit(&module->is_reached, true, memory_order_relaxed);
    }
}

/* Never "libcuda.so" (a link-time stub), never a fixed path. */
void *cca_original_driver_handle(bool may_load)
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
    struct cca_loader_object owner;
    void *found = look_up_sole(name);
    if (found == NULL) {
        found = look_up_next(name, &owner);
    }
    if (found == NULL) {
        void *handle = cca_original_driver_handle(true);
        found = handle != NULL ? cca_lookup_real(handle, name) : NULL;
        if (is_genuine(found, &owner)) {
            keep_loaded(&owner);
        }
    }
    return found;
}

static _Atomic(void *) driver_functions[CCA_ROWS];

/* Whether somebody refers to the name, and means an export behind ours that is not the driver's. */
static bool is_interposed(const char *name, const void *function)
{
    const char *const names[] = {name, NULL};
    struct cca_loader_object owner, importer;
    const void *next = look_up_next(name, &owner);
    (void)dlerror(); /* not the program's to see */
    return next != NULL && next != function && cca_loader_importer(names, &importer) != NULL;
}

void cca_original_is_at(enum cca_row row, void *function)
{
    if (atomic_load_explicit(&driver_functions[row], memory_order_relaxed) != function &&
        !is_interposed(cca_row_name(row), function)) {
        atomic_store_explicit(&driver_functions[row], function, memory_order_release);
    }
}

void *cca_original_driver(enum cca_row row)
{
    void *found = atomic_load_explicit(&driver_functions[row], memory_order_acquire);
    if (CCA_UNLIKELY(found == NULL)) {
        found = resolve_driver(cca_row_name(row));
        atomic_store_explicit(&driver_functions[row], found, memory_order_release);
    }
    return found;
}

/* An explicit handle never leads to our own exports. */
static void *look_up_driver(void *handle, const char *name)
{
    return cca_lookup_real(handle, name);
}

enum table_state { TABLE_EMPTY, TABLE_BUSY, TABLE_READY, TABLE_UNUSABLE };

/* Two threads may fill a copy each; one of them publishes. */
static CCA_COLD const struct cca_cuda_table *fill_table(struct cca_cuda_table *table,
                                                        _Atomic int *state, bool is_needed)
{
    void *handle = cca_original_driver_handle(false);
    if (handle == NULL) {
        return NULL;
    }
    const char *missing = NULL;
    struct cca_cuda_table mine;
    int rc = cca_cuda_table_fill(&mine, look_up_driver, handle, &missing);
    int expected = TABLE_EMPTY;
    if (rc != 0 && !is_needed) {
        return NULL;
    }
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

static struct cca_cuda_table the_table;
static _Atomic int table_state;

const struct cca_cuda_table *cca_original_table(void)
{
    int now = atomic_load_explicit(&table_state, memory_order_acquire);
    if (CCA_LIKELY(now == TABLE_READY)) {
        return &the_table;
    }
    return now == TABLE_EMPTY ? fill_table(&the_table, &table_state, true) : NULL;
}

void cca_original_prepare(void)
{
    static atomic_bool is_tried;
    if (CCA_UNLIKELY(atomic_load_explicit(&table_state, memory_order_relaxed) == TABLE_EMPTY) &&
        !atomic_exchange(&is_tried, true)) {
        (void)fill_table(&the_table, &table_state, false);
        (void)dlerror();
    }
}
