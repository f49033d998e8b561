/* SPDX-License-Identifier: MIT */
#include "base/object_at.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* struct dl_find_object, which older headers lack; the rest of it is of no interest here. */
struct found_object {
    unsigned long long flags;
    void *start, *end;
    struct link_map *map;
    void *rest[16];
};
typedef int (*find_object_fn)(void *addr, struct found_object *found_out);

static _Atomic(find_object_fn) find_object;

void cca_object_at_use(void *function)
{
    find_object_fn find = NULL;

    memcpy(&find, &function, sizeof(find));
    atomic_store_explicit(&find_object, find, memory_order_release);
}

bool cca_object_at_works(void)
{
    return atomic_load_explicit(&find_object, memory_order_acquire) != NULL;
}

bool cca_object_at(const void *addr, struct cca_object_place *place_out)
{
    find_object_fn find = atomic_load_explicit(&find_object, memory_order_acquire);
    struct found_object found;

    if (find == NULL || find((void *)(uintptr_t)addr, &found) != 0) {
        return false;
    }
    *place_out = (struct cca_object_place){
        .map = found.map,
        .start = (uintptr_t)found.start,
        .end = (uintptr_t)found.end,
    };
    return true;
}
