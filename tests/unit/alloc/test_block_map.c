/* SPDX-License-Identifier: MIT */
/* The map of live blocks against an array that says which are in. */
#include "support/test.h"

#include <errno.h>

#include "alloc/block_map.h"
#include "base/sysmem.h"
#include "unit/base/random.h"

enum { BLOCKS = 5000, STEPS = 300000 };

static struct cca_block blocks[BLOCKS];
static bool is_in[BLOCKS];
static struct cca_block_map map;

static void agrees_with_an_array(void **state)
{
    (void)state;
    uint64_t random = random_seed(1);
    size_t count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].addr = UINT64_C(0x7f0000000000) + 512 * (uint64_t)i;
    }
    for (int step = 0; step < STEPS; step++) {
        int i = (int)(random_next(&random) % BLOCKS);
        bool wants_in = random_next(&random) % 4 != (uint64_t)(step / (STEPS / 8) % 2 ? 3 : 0);
        struct cca_block *expected = is_in[i] ? &blocks[i] : NULL;
        assert_ptr_equal(cca_block_map_find(&map, blocks[i].addr), expected);
        assert_null(cca_block_map_find(&map, blocks[i].addr + 8));
        if (wants_in) {
            assert_int_equal(cca_block_map_insert(&map, &blocks[i]), is_in[i] ? -EEXIST : 0);
            count += !is_in[i];
        } else {
            assert_ptr_equal(cca_block_map_remove(&map, blocks[i].addr), expected);
            count -= is_in[i];
        }
        is_in[i] = wants_in;
        assert_int_equal(map.used, count);
    }
    for (int i = 0; i < BLOCKS; i++) {
        assert_ptr_equal(cca_block_map_remove(&map, blocks[i].addr), is_in[i] ? &blocks[i] : NULL);
    }
    assert_int_equal(map.used, 0);
    for (size_t i = 0; i < map.capacity; i++) {
        assert_int_equal(map.slots[i], 0);
    }
    cca_block_map_fini(&map);
}

/* Blocks of one size stand at equal steps; none of these may make long searches. */
static void no_step_between_addresses_makes_long_searches(void **state)
{
    (void)state;
    for (size_t units = 1; units <= 4096; units += units < 64 ? 1 : units / 8) {
        uint64_t worst = 0;
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i].addr = UINT64_C(0x7f0000000000) + 512 * units * (uint64_t)i;
            assert_int_equal(cca_block_map_insert(&map, &blocks[i]), 0);
        }
        for (size_t i = 0; i < map.capacity; i++) {
            worst = map.slots[i] >> 48 > worst ? map.slots[i] >> 48 : worst;
        }
        assert_in_range(worst, 1, 64);
        cca_block_map_fini(&map);
    }
}

static void without_memory_it_stays_as_it_is(void **state)
{
    (void)state;
    blocks[0].addr = 512;
    cca_sysmem_fail_nth(1);
    assert_int_equal(cca_block_map_insert(&map, &blocks[0]), -ENOMEM);
    assert_null(cca_block_map_find(&map, 512));
    assert_null(cca_block_map_remove(&map, 512));
    assert_int_equal(cca_block_map_insert(&map, &blocks[0]), 0);
    assert_ptr_equal(cca_block_map_find(&map, 512), &blocks[0]);
    cca_block_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_array),
        cmocka_unit_test(no_step_between_addresses_makes_long_searches),
        cmocka_unit_test(without_memory_it_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
