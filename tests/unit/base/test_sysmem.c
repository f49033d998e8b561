/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sysmem.h"
#include "unit/base/child.h"

enum { MIB = 1 << 20 };

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static bool is_zero(const void *ptr, size_t bytes)
{
    const unsigned char *at = ptr;

    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != 0) {
            return false;
        }
    }
    return true;
}

static void map_gives_zeroed_writable_pages(void **state)
{
    unsigned char *ptr = cca_sysmem_map(5000);

    (void)state;
    assert_non_null(ptr);
    assert_true((uintptr_t)ptr % page() == 0);
    assert_true(is_zero(ptr, 5000));
    memset(ptr, 0xff, 5000);
    cca_sysmem_unmap(ptr, 5000);
}

static void map_refuses_zero_and_absurd_sizes(void **state)
{
    (void)state;
    errno = 17;
    assert_null(cca_sysmem_map(0));
    assert_null(cca_sysmem_map(SIZE_MAX));
    assert_null(cca_sysmem_map((size_t)1 << 62));
    assert_null(cca_sysmem_reserve(0));
    assert_null(cca_sysmem_reserve(SIZE_MAX - 1));
    assert_int_equal(errno, 17);
}

static void mapped_bytes_counts_whole_pages_of_map_only(void **state)
{
    size_t before = cca_sysmem_mapped_bytes();
    void *a = cca_sysmem_map(1), *b = cca_sysmem_map(page() + 1);
    void *reserved = cca_sysmem_reserve((size_t)64 << 20);

    (void)state;
    assert_non_null(reserved);
    assert_int_equal(cca_sysmem_mapped_bytes() - before, 3 * page());
    cca_sysmem_unmap(a, 1);
    cca_sysmem_unmap(reserved, (size_t)64 << 20);
    assert_int_equal(cca_sysmem_mapped_bytes() - before, 2 * page());
    cca_sysmem_unmap(b, page() + 1);
    assert_int_equal(cca_sysmem_mapped_bytes(), before);
}

static void reserve_is_usable_to_its_end(void **state)
{
    const size_t bytes = (size_t)16 << 30;
    char *ptr = cca_sysmem_reserve(bytes);

    (void)state;
    assert_non_null(ptr);
    ptr[0] = 1;
    ptr[bytes - 1] = 1;
    cca_sysmem_unmap(ptr, bytes);
}

static int reserve_where_all_is_locked(void)
{
    enum { PAGES = 256 };
    unsigned char resident[PAGES];
    size_t bytes = PAGES * page();

    if (mlockall(MCL_FUTURE) != 0) {
        return 0; /* not allowed here, nor to a program */
    }
    char *ptr = cca_sysmem_reserve(bytes);
    CHILD_EXPECT(ptr != NULL);
    ptr[0] = ptr[bytes - 1] = 1;
    CHILD_EXPECT(mincore(ptr, bytes, resident) == 0);
    for (int i = 0; i < PAGES; i++) {
        CHILD_EXPECT((resident[i] & 1) == (i == 0 || i == PAGES - 1));
    }
    return 0;
}

static void a_reservation_takes_no_pages_where_all_is_locked(void **state)
{
    static struct child_result result;

    (void)state;
    child_run(reserve_where_all_is_locked, &result);
    assert_true(child_exited_with(&result, 0));
}

static void reservations_without_number_keep_the_count_balanced(void **state)
{
    enum { RESERVATIONS = 1000 };
    static void *ptrs[RESERVATIONS];
    size_t before = cca_sysmem_mapped_bytes();

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < RESERVATIONS; i++) {
            ptrs[i] = cca_sysmem_reserve(page());
            assert_non_null(ptrs[i]);
        }
        assert_true(cca_sysmem_mapped_bytes() - before < RESERVATIONS * page());
        for (int i = 0; i < RESERVATIONS; i++) {
            cca_sysmem_unmap(ptrs[(i * 7) % RESERVATIONS], page());
        }
        assert_int_equal(cca_sysmem_mapped_bytes(), before);
    }
}

static void unmap_accepts_null(void **state)
{
    size_t before = cca_sysmem_mapped_bytes();

    (void)state;
    cca_sysmem_unmap(NULL, 4096);
    assert_int_equal(cca_sysmem_mapped_bytes(), before);
}

static void fail_nth_fails_exactly_that_call(void **state)
{
    void *a, *b;

    (void)state;
    cca_sysmem_fail_nth(2);
    a = cca_sysmem_map(1);
    assert_non_null(a);
    assert_null(cca_sysmem_reserve(1));
    b = cca_sysmem_map(1);
    assert_non_null(b);
    cca_sysmem_unmap(a, 1);
    cca_sysmem_unmap(b, 1);
    cca_sysmem_fail_nth(1);
    cca_sysmem_fail_nth(0);
    a = cca_sysmem_map(1);
    assert_non_null(a);
    cca_sysmem_unmap(a, 1);
}

static void pool_items_are_zeroed_aligned_and_apart(void **state)
{
    enum { ITEMS = 10000, BYTES = 40 };
    static unsigned char *items[ITEMS];
    struct cca_pool pool;
    size_t before = cca_sysmem_mapped_bytes();

    (void)state;
    cca_pool_init(&pool, BYTES);
    assert_int_equal(pool.item_bytes, BYTES);
    assert_int_equal(cca_sysmem_mapped_bytes(), before);
    for (int i = 0; i < ITEMS; i++) {
        items[i] = cca_pool_take(&pool);
        assert_non_null(items[i]);
        assert_true((uintptr_t)items[i] % 8 == 0);
        assert_true(is_zero(items[i], BYTES));
        memset(items[i], i & 0xff, BYTES);
    }
    for (int i = 0; i < ITEMS; i++) {
        assert_int_equal(items[i][0], i & 0xff);
        assert_int_equal(items[i][BYTES - 1], i & 0xff);
    }
    assert_int_equal(pool.items_taken, ITEMS);
    cca_pool_fini(&pool);
    assert_int_equal(pool.items_taken, 0);
    assert_int_equal(cca_sysmem_mapped_bytes(), before);
}

static void pool_hands_a_given_item_out_again_zeroed(void **state)
{
    struct cca_pool pool;
    void *a, *b;

    (void)state;
    cca_pool_init(&pool, 100);
    a = cca_pool_take(&pool);
    b = cca_pool_take(&pool);
    assert_ptr_not_equal(a, b);
    memset(a, 0xff, 100);
    cca_pool_give(&pool, a);
    cca_pool_give(&pool, NULL);
    assert_int_equal(pool.items_taken, 1);
    assert_ptr_equal(cca_pool_take(&pool), a);
    assert_true(is_zero(a, 100));
    assert_int_equal(pool.items_taken, 2);
    cca_pool_fini(&pool);
}

static void pool_survives_a_refused_chunk(void **state)
{
    struct cca_pool pool;

    (void)state;
    cca_pool_init(&pool, 64);
    cca_sysmem_fail_nth(1);
    assert_null(cca_pool_take(&pool));
    assert_int_equal(pool.items_taken, 0);
    assert_non_null(cca_pool_take(&pool));
    cca_pool_fini(&pool);
}

static void pool_cuts_items_larger_than_a_usual_chunk(void **state)
{
    struct cca_pool pool;

    (void)state;
    cca_pool_init(&pool, MIB);
    for (int i = 0; i < 20; i++) {
        char *item = cca_pool_take(&pool);

        assert_non_null(item);
        item[MIB - 1] = 1;
    }
    cca_pool_fini(&pool);
}

static void pool_works_again_after_fini(void **state)
{
    struct cca_pool pool;

    (void)state;
    cca_pool_init(&pool, 0);
    cca_pool_fini(&pool);
    assert_non_null(cca_pool_take(&pool));
    cca_pool_fini(&pool);
    assert_non_null(cca_pool_take(&pool));
    cca_pool_fini(&pool);
}

static void arena_cuts_zeroed_aligned_pieces_until_full(void **state)
{
    struct cca_arena arena;
    char *a, *b;

    (void)state;
    assert_int_equal(cca_arena_init(&arena, 4096), 0);
    a = cca_arena_take(&arena, 1);
    b = cca_arena_take(&arena, 17);
    assert_ptr_equal(b, a + 16);
    assert_true(is_zero(b, 17));
    assert_int_equal(arena.used_bytes, 48);
    assert_null(cca_arena_take(&arena, 4096));
    assert_null(cca_arena_take(&arena, SIZE_MAX));
    assert_null(cca_arena_take(&arena, SIZE_MAX - 8));
    assert_non_null(cca_arena_take(&arena, 4096 - 48));
    assert_null(cca_arena_take(&arena, 1));
    cca_arena_fini(&arena);
    assert_null(arena.base);
    cca_arena_fini(&arena);
}

static void arena_never_passes_a_reservation_of_odd_size(void **state)
{
    struct cca_arena arena;

    (void)state;
    assert_int_equal(cca_arena_init(&arena, 40), 0);
    assert_non_null(cca_arena_take(&arena, 32));
    assert_null(cca_arena_take(&arena, 8));
    cca_arena_fini(&arena);
}

static void arena_reset_forgets_and_zeroes(void **state)
{
    struct cca_arena arena;
    char *a;

    (void)state;
    assert_int_equal(cca_arena_init(&arena, MIB), 0);
    cca_arena_reset(&arena);
    a = cca_arena_take(&arena, MIB / 2 + 100);
    memset(a, 0xff, MIB / 2 + 100);
    errno = 17;
    cca_arena_reset(&arena);
    assert_int_equal(errno, 17);
    assert_int_equal(arena.used_bytes, 0);
    assert_ptr_equal(cca_arena_take(&arena, MIB), a);
    assert_true(is_zero(a, MIB));
    cca_arena_fini(&arena);
}

static void arena_init_reports_a_refused_reservation(void **state)
{
    struct cca_arena arena = {.used_bytes = 7};

    (void)state;
    cca_sysmem_fail_nth(1);
    assert_int_equal(cca_arena_init(&arena, 4096), -ENOMEM);
    assert_int_equal(arena.used_bytes, 7);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(map_gives_zeroed_writable_pages),
    cmocka_unit_test(map_refuses_zero_and_absurd_sizes),
    cmocka_unit_test(mapped_bytes_counts_whole_pages_of_map_only),
    cmocka_unit_test(reserve_is_usable_to_its_end),
    cmocka_unit_test(a_reservation_takes_no_pages_where_all_is_locked),
    cmocka_unit_test(reservations_without_number_keep_the_count_balanced),
    cmocka_unit_test(unmap_accepts_null),
    cmocka_unit_test(fail_nth_fails_exactly_that_call),
    cmocka_unit_test(pool_items_are_zeroed_aligned_and_apart),
    cmocka_unit_test(pool_hands_a_given_item_out_again_zeroed),
    cmocka_unit_test(pool_survives_a_refused_chunk),
    cmocka_unit_test(pool_cuts_items_larger_than_a_usual_chunk),
    cmocka_unit_test(pool_works_again_after_fini),
    cmocka_unit_test(arena_cuts_zeroed_aligned_pieces_until_full),
    cmocka_unit_test(arena_never_passes_a_reservation_of_odd_size),
    cmocka_unit_test(arena_reset_forgets_and_zeroes),
    cmocka_unit_test(arena_init_reports_a_refused_reservation),
};

CCA_TEST_MAIN(tests)
