/* SPDX-License-Identifier: MIT */
#include "snapshot/idmap.h"

#include "support/test.h"

static void keeps_every_number(void **state)
{
    enum { COUNT = 100000 };
    struct cca_arena arena;
    struct cca_idmap map;

    (void)state;
    assert_int_equal(cca_arena_init(&arena, (size_t)64 << 20), 0);
    cca_idmap_init(&map, &arena);
    for (uint32_t i = 1; i <= COUNT; i++) {
        uint32_t *value = cca_idmap_at(&map, UINT64_C(0x7f0000000000) + 16 * (uint64_t)i);

        assert_non_null(value);
        assert_int_equal(*value, 0);
        *value = i;
    }
    for (uint32_t i = 1; i <= COUNT; i++) {
        assert_int_equal(*cca_idmap_at(&map, UINT64_C(0x7f0000000000) + 16 * (uint64_t)i), i);
    }
    assert_int_equal(map.used, COUNT);
    cca_arena_fini(&arena);
}

static void full_arena_keeps_what_is_there(void **state)
{
    struct cca_arena arena;
    struct cca_idmap map;
    uint64_t key = 1;

    (void)state;
    assert_int_equal(cca_arena_init(&arena, 1024 * sizeof(struct cca_idmap_slot)), 0);
    cca_idmap_init(&map, &arena);
    for (;; key++) {
        uint32_t *value = cca_idmap_at(&map, key);

        if (value == NULL) {
            break;
        }
        *value = (uint32_t)key;
    }
    assert_int_equal(key, 513);
    assert_int_equal(*cca_idmap_at(&map, 512), 512);
    assert_null(cca_idmap_at(&map, 513));
    cca_arena_fini(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keeps_every_number),
    cmocka_unit_test(full_arena_keeps_what_is_there),
};

CCA_TEST_MAIN(tests)
