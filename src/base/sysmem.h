/* SPDX-License-Identifier: MIT */
/* Metadata memory straight from the kernel: never malloc, so that it can be used inside a hook.
 * None of these functions takes a lock; an arena or pool belongs to whoever's lock guards it. */
#ifndef CCA_BASE_SYSMEM_H
#define CCA_BASE_SYSMEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/compiler.h"

/* Zeroed pages, at least `bytes`; NULL when the kernel refuses. Thread-safe. */
CCA_MUST_CHECK void *cca_sysmem_map(size_t bytes);

/* Address space whose pages exist once touched and count against nothing before (NORESERVE). */
CCA_MUST_CHECK void *cca_sysmem_reserve(size_t bytes);

/* Undoes either; NULL is accepted. `bytes` as given to map or reserve. Thread-safe. */
void cca_sysmem_unmap(void *ptr, size_t bytes);

/* Bytes mapped now by cca_sysmem_map, rounded to pages. Reservations do not count, but for those
 * beyond the first few hundred at a time. Thread-safe. */
size_t cca_sysmem_mapped_bytes(void);

/* For tests: the n-th call of map or reserve from now on fails (1 = the next); 0 = none. */
void cca_sysmem_fail_nth(long n);

/* A pool of equal items, cut from mapped chunks that are given back only by fini.
 * Identity: every item ever cut is either taken or on the free list. */
struct cca_pool {
    size_t item_bytes;
    size_t chunk_bytes;
    void *free_items; /* singly linked through the first word */
    char *bump, *bump_end;
    void *chunks; /* singly linked through the first word of each chunk */
    size_t items_taken;
};

/* `item_bytes` is rounded up to 8, to which items are aligned. No memory is taken before the first
 * item. */
void cca_pool_init(struct cca_pool *pool, size_t item_bytes);

/* A zeroed item, or NULL when the kernel refuses memory. */
CCA_MUST_CHECK void *cca_pool_take(struct cca_pool *pool);

/* The same with any content, for owners that set all of it. */
CCA_MUST_CHECK static inline void *cca_pool_take_uncleared(struct cca_pool *pool)
{
    void *item = pool->free_items;

    if (CCA_UNLIKELY(item == NULL)) {
        return cca_pool_take(pool);
    }
    pool->free_items = *(void **)item;
    pool->items_taken++;
    return item;
}

/* Gives an item back; NULL is accepted. */
static inline void cca_pool_give(struct cca_pool *pool, void *item)
{
    if (item == NULL) {
        return;
    }
    CCA_ASSERT(pool->items_taken > 0);
    *(void **)item = pool->free_items;
    pool->free_items = item;
    pool->items_taken--;
}

/* Unmaps every chunk; items still taken become invalid. */
void cca_pool_fini(struct cca_pool *pool);

/* A bump arena inside one reservation: for tables that only grow. Not thread-safe by itself. */
struct cca_arena {
    char *base;
    size_t used_bytes, reserved_bytes;
};

int cca_arena_init(struct cca_arena *arena, size_t reserve_bytes) CCA_MUST_CHECK;

/* `bytes` zeroed bytes aligned to 16, or NULL when the reservation is full. */
CCA_MUST_CHECK void *cca_arena_take(struct cca_arena *arena, size_t bytes);

/* Forgets all content; touched pages go back to the kernel. */
void cca_arena_reset(struct cca_arena *arena);
void cca_arena_fini(struct cca_arena *arena);

#endif
