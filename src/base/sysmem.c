/* SPDX-License-Identifier: MIT */
#include "base/sysmem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

enum {
    ITEM_ALIGNMENT = 8,
    ALIGNMENT = 16,
    CHUNK_BYTES = 64 << 10,
    ITEMS_PER_CHUNK_MIN = 8,
    RESERVATIONS_MAX = 256
};

static atomic_size_t mapped_bytes;
static atomic_long fail_countdown;

/* The addresses of live reservations, which mapped_bytes leaves out; 0 = free. */
static atomic_uintptr_t reservations[RESERVATIONS_MAX];

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static bool must_fail(void)
{
    return CCA_UNLIKELY(atomic_load_explicit(&fail_countdown, memory_order_relaxed) > 0) &&
           atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) == 1;
}

static void *map_pages(size_t bytes, int protection, int extra_flags)
{
    int saved_errno = errno;
    void *ptr;

    if (bytes == 0 || bytes > PTRDIFF_MAX || must_fail()) {
        return NULL;
    }
    ptr = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
    errno = saved_errno;
    return ptr == MAP_FAILED ? NULL : ptr;
}

/* Pages come when they are touched, also in a program that has called mlockall for all that will
 * be mapped: what it has locked gets its pages when it becomes writable. */
static bool open_lazily(void *ptr, size_t bytes)
{
    int saved_errno = errno;
    bool is_open = munlock(ptr, bytes) == 0 && mprotect(ptr, bytes, PROT_READ | PROT_WRITE) == 0;

    if (!is_open) {
        CCA_EXPECT(munmap(ptr, bytes) == 0);
    }
    errno = saved_errno;
    return is_open;
}

/* False when the table is full: the reservation then counts as mapped. */
static bool remember_reservation(const void *ptr)
{
    for (int i = 0; i < RESERVATIONS_MAX; i++) {
        uintptr_t empty = 0;

        if (atomic_compare_exchange_strong(&reservations[i], &empty, (uintptr_t)ptr)) {
            return true;
        }
    }
    return false;
}

static bool forget_reservation(const void *ptr)
{
    for (int i = 0; i < RESERVATIONS_MAX; i++) {
        if (atomic_load_explicit(&reservations[i], memory_order_relaxed) == (uintptr_t)ptr) {
            atomic_store(&reservations[i], 0);
            return true;
        }
    }
    return false;
}

static void count_mapped(size_t bytes)
{
    atomic_fetch_add_explicit(&mapped_bytes, round_up(bytes, page_bytes()), memory_order_relaxed);
}

void *cca_sysmem_map(size_t bytes)
{
    void *ptr = map_pages(bytes, PROT_READ | PROT_WRITE, 0);

    if (ptr != NULL) {
        count_mapped(bytes);
    }
    return ptr;
}

void *cca_sysmem_reserve(size_t bytes)
{
    void *ptr = map_pages(bytes, PROT_NONE, MAP_NORESERVE);

    if (ptr == NULL || !open_lazily(ptr, bytes)) {
        return NULL;
    }
    if (!remember_reservation(ptr)) {
        count_mapped(bytes);
    }
    return ptr;
}

void cca_sysmem_unmap(void *ptr, size_t bytes)
{
    int saved_errno = errno;

    if (ptr == NULL) {
        return;
    }
    /* Before the kernel can hand the address out again. */
    if (!forget_reservation(ptr)) {
        atomic_fetch_sub_explicit(&mapped_bytes, round_up(bytes, page_bytes()),
                                  memory_order_relaxed);
    }
    CCA_EXPECT(munmap(ptr, bytes) == 0);
    errno = saved_errno;
}

size_t cca_sysmem_mapped_bytes(void)
{
    return atomic_load_explicit(&mapped_bytes, memory_order_relaxed);
}

void cca_sysmem_fail_nth(long n)
{
    atomic_store_explicit(&fail_countdown, n, memory_order_relaxed);
}

void cca_pool_init(struct cca_pool *pool, size_t item_bytes)
{
    size_t rounded = round_up(item_bytes == 0 ? 1 : item_bytes, ITEM_ALIGNMENT);
    size_t wanted = ALIGNMENT + rounded * ITEMS_PER_CHUNK_MIN;

    *pool = (struct cca_pool){
        .item_bytes = rounded,
        .chunk_bytes = wanted <= CHUNK_BYTES ? CHUNK_BYTES : round_up(wanted, page_bytes()),
    };
}

static bool add_chunk(struct cca_pool *pool)
{
    char *chunk = cca_sysmem_map(pool->chunk_bytes);

    if (chunk == NULL) {
        return false;
    }
    *(void **)chunk = pool->chunks;
    pool->chunks = chunk;
    pool->bump = chunk + ALIGNMENT;
    pool->bump_end = chunk + pool->chunk_bytes;
    return true;
}

void *cca_pool_take(struct cca_pool *pool)
{
    void *item = pool->free_items;

    if (item != NULL) {
        pool->free_items = *(void **)item;
        memset(item, 0, pool->item_bytes);
    } else {
        if ((size_t)(pool->bump_end - pool->bump) < pool->item_bytes && !add_chunk(pool)) {
            return NULL;
        }
        item = pool->bump;
        pool->bump += pool->item_bytes;
    }
    pool->items_taken++;
    return item;
}

void cca_pool_fini(struct cca_pool *pool)
{
    void *chunk = pool->chunks;

    while (chunk != NULL) {
        void *next = *(void **)chunk;

        cca_sysmem_unmap(chunk, pool->chunk_bytes);
        chunk = next;
    }
    cca_pool_init(pool, pool->item_bytes);
}

int cca_arena_init(struct cca_arena *arena, size_t reserve_bytes)
{
    char *base = cca_sysmem_reserve(reserve_bytes);

    if (base == NULL) {
        return -ENOMEM;
    }
    *arena = (struct cca_arena){.base = base, .reserved_bytes = reserve_bytes};
    return 0;
}

void *cca_arena_take(struct cca_arena *arena, size_t bytes)
{
    size_t left = arena->reserved_bytes - arena->used_bytes;
    void *ptr;

    if (bytes > left || round_up(bytes, ALIGNMENT) > left) {
        return NULL;
    }
    ptr = arena->base + arena->used_bytes;
    arena->used_bytes += round_up(bytes, ALIGNMENT);
    return ptr;
}

void cca_arena_reset(struct cca_arena *arena)
{
    int saved_errno = errno;

    if (arena->used_bytes == 0) {
        return;
    }
    /* On private anonymous pages this also makes the next touch read zeros. */
    if (madvise(arena->base, arena->used_bytes, MADV_DONTNEED) != 0) {
        memset(arena->base, 0, arena->used_bytes);
    }
    arena->used_bytes = 0;
    errno = saved_errno;
}

void cca_arena_fini(struct cca_arena *arena)
{
    cca_sysmem_unmap(arena->base, arena->reserved_bytes);
    *arena = (struct cca_arena){0};
}
