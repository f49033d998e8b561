/* SPDX-License-Identifier: MIT */
/* The pool of free blocks against a sorted array of the same blocks. */
#include "support/test.h"

#include "alloc/block_pool.h"
#include "unit/base/random.h"

enum { BLOCKS = 400, STEPS = 20000, KEYS = 6, SEARCHES = 8 };

/* Two pairs of streams share a shelf, one of them by a thread's number. */
static const cca_key keys[KEYS] = {
    CCA_KEY_READY, 1, 17, 3, (cca_key)1 << 63 | (cca_key)2 << 29 | 1, (cca_key)1 << 48 | 7};

static struct cca_segment segment = {.bytes = SIZE_MAX};
static struct cca_block blocks[BLOCKS];
static struct cca_block_pool pool;
static struct cca_block *sorted[BLOCKS];
static int count;

static int by_place(const struct cca_block *a, const struct cca_block *b)
{
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? -1 : 1;
    }
    return (a->addr > b->addr) - (a->addr < b->addr);
}

static void put(struct cca_block *block)
{
    int at = count++;
    for (; at > 0 && by_place(block, sorted[at - 1]) < 0; at--) {
        sorted[at] = sorted[at - 1];
    }
    sorted[at] = block;
    cca_block_pool_insert(&pool, block);
}

static void take_out(int at)
{
    cca_block_pool_remove(&pool, sorted[at]);
    sorted[at]->state = CCA_BLOCK_LIVE;
    for (count--; at < count; at++) {
        sorted[at] = sorted[at + 1];
    }
}

static struct cca_block *neighbour(int at, int step, cca_key key)
{
    at += step;
    return at >= 0 && at < count && sorted[at]->key == key ? sorted[at] : NULL;
}

static struct cca_block *naive_lower_bound(cca_key key, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        if (sorted[i]->key == key && sorted[i]->bytes >= bytes) {
            return sorted[i];
        }
    }
    return NULL;
}

static struct cca_block *naive_largest(cca_key key)
{
    for (int i = count; i-- > 0;) {
        if (sorted[i]->key == key) {
            return sorted[i];
        }
    }
    return NULL;
}

/* Many equal ones, and all orders of magnitude up to what shares the last bin. */
static size_t some_bytes(uint64_t *random)
{
    uint64_t draw = random_next(random);
    uint64_t units = draw % 3 == 0 ? 1 + (draw >> 8) % 12
                                   : ((draw >> 8 & 0xffff) | 1) << (draw >> 32) % 16;
    return (size_t)units * CCA_MIN_BLOCK;
}

static void check_walk(void)
{
    const struct cca_block *block = cca_block_pool_first(&pool);
    for (int i = 0; i < count; i++) {
        assert_ptr_equal(block, sorted[i]);
        assert_ptr_equal(cca_block_pool_next_of_key(&pool, block), neighbour(i, 1, block->key));
        assert_ptr_equal(cca_block_pool_previous_of_key(&pool, block),
                         neighbour(i, -1, block->key));
        block = cca_block_pool_next(&pool, block);
    }
    assert_null(block);
}

static void check_searches(uint64_t *random)
{
    for (int i = 0; i < SEARCHES; i++) {
        cca_key key = keys[random_next(random) % KEYS];
        size_t bytes = some_bytes(random);
        assert_ptr_equal(cca_block_pool_lower_bound(&pool, key, bytes),
                         naive_lower_bound(key, bytes));
        assert_ptr_equal(cca_block_pool_largest(&pool, key), naive_largest(key));
    }
}

static void order_is_that_of_a_sorted_list(void **state)
{
    (void)state;
    uint64_t random = random_seed(1);
    cca_block_pool_init(&pool);
    for (int step = 0; step < STEPS; step++) {
        struct cca_block *block = &blocks[random_next(&random) % BLOCKS];
        /* Grows in one half of the run, shrinks in the other. */
        bool wants_in = random_next(&random) % 4 != (uint64_t)(step / (STEPS / 8) % 2 ? 3 : 0);
        if (block->state != CCA_BLOCK_FREE && wants_in) {
            *block = (struct cca_block){.segment = &segment,
                                        .addr = (uint64_t)(block - blocks + 1) << 40,
                                        .bytes = some_bytes(&random),
                                        .key = keys[random_next(&random) % KEYS]};
            put(block);
        } else if (count > 0 && !wants_in) {
            take_out((int)(random_next(&random) % (uint64_t)count));
        }
        if (step % 64 == 0) {
            check_walk();
            check_searches(&random);
        }
    }
    while (count > 0) {
        take_out(0);
    }
    assert_null(cca_block_pool_first(&pool));
    assert_int_equal(pool.whole_bytes, 0);
}

static int make_all_live(void **state)
{
    (void)state;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].state = CCA_BLOCK_LIVE;
    }
    return 0;
}

static void bins_come_in_the_order_of_sizes(void **state)
{
    (void)state;
    unsigned last = 0;
    for (size_t units = 1; units < (size_t)1 << 20; units++) {
        unsigned bin = cca_block_pool_bin(units * CCA_MIN_BLOCK);
        assert_true(bin == last || bin == last + 1);
        last = bin;
    }
    assert_int_equal(last, CCA_BINS - 1);
    assert_int_equal(cca_block_pool_bin(SIZE_MAX), CCA_BINS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(order_is_that_of_a_sorted_list, make_all_live),
        cmocka_unit_test(bins_come_in_the_order_of_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
