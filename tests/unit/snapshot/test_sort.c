/* SPDX-License-Identifier: MIT */
#include "snapshot/sort.h"

#include "support/test.h"

struct item {
    uint64_t key;
    char filler[90]; /* more than is swapped at once */
    unsigned char check;
};

static int comparisons;

static int compare_items(const void *a, const void *b)
{
    const struct item *left = a, *right = b;

    comparisons++;
    return (left->key > right->key) - (left->key < right->key);
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void sorts_every_small_permutation(void **state)
{
    enum { DIGITS = 6, BASE = 4 };

    (void)state;
    for (size_t count = 0; count <= DIGITS; count++) {
        for (unsigned code = 0; code < 4096; code++) {
            int values[DIGITS], sums[BASE] = {0};
            unsigned rest = code;

            for (size_t i = 0; i < count; i++, rest /= BASE) {
                values[i] = (int)(rest % BASE);
                sums[values[i]]++;
            }
            cca_sort(values, count, sizeof(values[0]), compare_ints);
            for (size_t i = 0; i < count; i++) {
                sums[values[i]]--;
                assert_true(i == 0 || values[i - 1] <= values[i]);
            }
            for (int i = 0; i < BASE; i++) {
                assert_int_equal(sums[i], 0);
            }
        }
    }
}

static void moves_large_items_whole(void **state)
{
    enum { COUNT = 5000 };
    struct item *items = calloc(COUNT, sizeof(*items));
    uint64_t seed = 42;

    (void)state;
    assert_non_null(items);
    for (size_t i = 0; i < COUNT; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        items[i].key = seed >> 40;
        memset(items[i].filler, (int)(items[i].key & 0xff), sizeof(items[i].filler));
        items[i].check = (unsigned char)(items[i].key & 0xff);
    }
    cca_sort(items, COUNT, sizeof(*items), compare_items);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(i == 0 || items[i - 1].key <= items[i].key);
        assert_int_equal(items[i].check, items[i].key & 0xff);
        assert_int_equal((unsigned char)items[i].filler[89], items[i].key & 0xff);
    }
    comparisons = 0;
    cca_sort(items, COUNT, sizeof(*items), compare_items);
    assert_int_equal(comparisons, COUNT - 1);
    free(items);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sorts_every_small_permutation),
    cmocka_unit_test(moves_large_items_whole),
};

CCA_TEST_MAIN(tests)
