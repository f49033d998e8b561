/* SPDX-License-Identifier: MIT */
#include "preload/driver_index.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "preload/lookup.h"
#include "preload/original.h"

enum { SLOTS = 1024, BASE_BYTES = 64 };
_Static_assert((int)CCA_ROW_HOOKS * 3 < (int)SLOTS, "the tables stay half empty");

/* Part of a name before the suffixes of variant and form. */
static size_t base_length(const char *name)
{
    size_t length = strlen(name);
    if (length > 5 &&
        (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0)) {
        length -= 5;
    }
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' &&
        name[length - 1] >= '0' && name[length - 1] <= '9') {
        length -= 3;
    }
    return length;
}

int cca_index_form(const char *name)
{
    size_t length = base_length(name);
    return name[length] == '_' && name[length + 1] == 'v' ? name[length + 2] - '0' : 1;
}

static uint32_t hash_name(const char *name, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    }
    return hash;
}

/* Open addressing; a slot holds row + 1 and never changes once it is taken. Several threads that
 * insert the same rows in the same order end with the same table. */
static _Atomic uint16_t names[SLOTS], bases[SLOTS];
static _Atomic bool names_are_ready;

static bool is_same(const char *one, size_t length, const char *other, size_t other_length)
{
    return length == other_length && memcmp(one, other, length) == 0;
}

static void insert_name(_Atomic uint16_t *slots, int row, size_t length)
{
    uint32_t at = hash_name(cca_rows[row].name, length) % SLOTS;
    for (;; at = (at + 1) % SLOTS) {
        uint16_t none = 0;
        if (atomic_compare_exchange_strong(&slots[at], &none, (uint16_t)(row + 1)) ||
            none == row + 1) {
            return;
        }
    }
}

/* Bases: of the forms of one entry point the newest is met first. */
static CCA_COLD void fill_names(void)
{
    for (int row = CCA_ROW_HOOKS - 1; row >= 0; row--) {
        insert_name(names, row, strlen(cca_rows[row].name));
        if (cca_rows[row].door == CCA_DOOR_DRIVER) {
            insert_name(bases, row, base_length(cca_rows[row].name));
        }
    }
    atomic_store_explicit(&names_are_ready, true, memory_order_release);
}

static void need_names(void)
{
    if (CCA_UNLIKELY(!atomic_load_explicit(&names_are_ready, memory_order_acquire))) {
        fill_names();
    }
}

int cca_index_of_name(const char *name)
{
    size_t length = strlen(name);
    need_names();
    uint32_t at = hash_name(name, length) % SLOTS;
    for (int row; (row = (int)atomic_load(&names[at]) - 1) >= 0; at = (at + 1) % SLOTS) {
        if (strcmp(cca_rows[row].name, name) == 0) {
            return row;
        }
    }
    return -1;
}

int cca_index_of_base(const char *name)
{
    size_t length = base_length(name);
    int newest = -1;
    need_names();
    uint32_t at = hash_name(name, length) % SLOTS;
    for (int row; (row = (int)atomic_load(&bases[at]) - 1) >= 0; at = (at + 1) % SLOTS) {
        const char *other = cca_rows[row].name;
        if (is_same(name, length, other, base_length(other)) &&
            (newest < 0 || cca_rows[row].since > cca_rows[newest].since)) {
            newest = row;
        }
    }
    return newest;
}

/* Where the loaded driver has the function of a row: as exported, and as its resolver names it. */
static struct {
    _Atomic uintptr_t exported, resolved;
} addresses[CCA_ROW_HOOKS];
static _Atomic bool addresses_are_ready;

typedef int (*resolver_fn)(const char *name, void **found, int version, uint64_t flags,
                           int *status);
typedef int (*old_resolver_fn)(const char *name, void **found, int version, uint64_t flags);

struct resolver {
    resolver_fn now;
    old_resolver_fn old; /* of CUDA 11 */
    int release;         /* of the driver: what came later is an error to ask for */
};

static int release_of(void *driver)
{
    int (*get_version)(int *) = NULL;
    int version = 0;
    *(void **)&get_version = cca_lookup_real(driver, "cuDriverGetVersion");
    return get_version != NULL && get_version(&version) == 0 ? version : 0;
}

static struct resolver find_resolver(void *driver)
{
    struct resolver resolver = {.release = release_of(driver)};
    *(void **)&resolver.now = cca_lookup_real(driver, "cuGetProcAddress_v2");
    if (resolver.now == NULL) {
        *(void **)&resolver.old = cca_lookup_real(driver, "cuGetProcAddress");
    }
    return resolver;
}

/* The same function as the driver's resolver names it: asked with the release that brought this
 * very form. Should a driver give another address there than by its export, both are known. */
static void *resolve(const struct resolver *resolver, int row)
{
    enum { FLAG_LEGACY = 1, FLAG_PER_THREAD = 2 };
    const struct cca_row_info *info = &cca_rows[row];
    char base[BASE_BYTES];
    size_t length = base_length(info->name);
    void *found = NULL;
    int status = 0, result = -1;
    if (length >= sizeof(base) || info->since > resolver->release) {
        return NULL;
    }
    memcpy(base, info->name, length);
    base[length] = '\0';
    uint64_t flags = info->is_per_thread ? FLAG_PER_THREAD : FLAG_LEGACY;
    if (resolver->now != NULL) {
        result = resolver->now(base, &found, info->since, flags, &status);
    } else if (resolver->old != NULL) {
        result = resolver->old(base, &found, info->since, flags);
    }
    return result == 0 ? found : NULL;
}

static CCA_COLD void fill_addresses(void)
{
    void *driver = cca_original_driver_handle(false);
    if (driver == NULL) {
        return;
    }
    struct resolver resolver = find_resolver(driver);
    for (int row = 0; row < CCA_ROW_HOOKS; row++) {
        if (cca_rows[row].door == CCA_DOOR_DRIVER) {
            void *exported = cca_lookup_real(driver, cca_rows[row].name);
            atomic_store(&addresses[row].exported, (uintptr_t)exported);
            atomic_store(&addresses[row].resolved, (uintptr_t)resolve(&resolver, row));
        }
    }
    (void)dlerror(); /* what a driver lacks is no error of the program's */
    atomic_store_explicit(&addresses_are_ready, true, memory_order_release);
}

static bool is_at(int row, uintptr_t address)
{
    return address == atomic_load_explicit(&addresses[row].exported, memory_order_relaxed) ||
           address == atomic_load_explicit(&addresses[row].resolved, memory_order_relaxed);
}

int cca_index_of_function(const char *name, const void *found)
{
    size_t length = base_length(name);
    need_names();
    if (CCA_UNLIKELY(!atomic_load_explicit(&addresses_are_ready, memory_order_acquire))) {
        fill_addresses();
    }
    uint32_t at = hash_name(name, length) % SLOTS;
    for (int row; (row = (int)atomic_load(&bases[at]) - 1) >= 0; at = (at + 1) % SLOTS) {
        const char *other = cca_rows[row].name;
        if (is_same(name, length, other, base_length(other)) && is_at(row, (uintptr_t)found)) {
            return row;
        }
    }
    return -1;
}
