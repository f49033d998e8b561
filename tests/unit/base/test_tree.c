/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <signal.h>

#include "base/compiler.h"
#include "base/tree.h"
#include "unit/base/child.h"
#include "unit/base/random.h"

struct item {
    uint64_t key;
    struct cca_tree_node node;
};

enum { KEYS = 500, STEPS = 20000, MANY = 1 << 16 };

static const struct item *item_of(const struct cca_tree_node *node)
{
    return CCA_CONTAINER_OF(node, const struct item, node);
}

static int by_key(const struct cca_tree_node *a, const struct cca_tree_node *b)
{
    uint64_t x = item_of(a)->key, y = item_of(b)->key;

    return (x > y) - (x < y);
}

/* The height, or -1 when a link or the order is broken. */
static int height_of(const struct cca_tree_node *node, const struct cca_tree_node *parent)
{
    int left, right;

    if (node == NULL) {
        return 0;
    }
    left = height_of(node->left, node);
    right = height_of(node->right, node);
    if (left < 0 || right < 0 || node->parent != parent ||
        (node->left != NULL && by_key(node->left, node) >= 0) ||
        (node->right != NULL && by_key(node->right, node) <= 0)) {
        return -1;
    }
    return 1 + (left > right ? left : right);
}

/* The naive twin: which of the keys 0 .. KEYS-1 are in. */
static bool is_in[KEYS];

static const struct cca_tree_node *expected_from(const struct item *items, int key, int step)
{
    for (; key >= 0 && key < KEYS; key += step) {
        if (is_in[key]) {
            return &items[key].node;
        }
    }
    return NULL;
}

static void check_against_twin(const struct cca_tree *tree, const struct item *items, int key)
{
    const struct cca_tree_node *node = &items[key].node;

    assert_ptr_equal(cca_tree_lower_bound(tree, node), expected_from(items, key, 1));
    assert_ptr_equal(cca_tree_floor(tree, node), expected_from(items, key, -1));
    assert_ptr_equal(cca_tree_first(tree), expected_from(items, 0, 1));
    assert_ptr_equal(cca_tree_last(tree), expected_from(items, KEYS - 1, -1));
    if (is_in[key]) {
        assert_ptr_equal(cca_tree_next(node), expected_from(items, key + 1, 1));
        assert_ptr_equal(cca_tree_prev(node), expected_from(items, key - 1, -1));
    }
}

static void random_operations_agree_with_a_sorted_array(void **state)
{
    static struct item items[KEYS];
    uint64_t rng = random_seed(1);
    struct cca_tree tree;
    size_t count = 0;

    (void)state;
    cca_tree_init(&tree, by_key);
    for (int i = 0; i < KEYS; i++) {
        items[i].key = (uint64_t)i;
    }
    for (int step = 0; step < STEPS; step++) {
        int key = (int)(random_next(&rng) % KEYS);

        if (is_in[key]) {
            cca_tree_erase(&tree, &items[key].node);
            assert_null(items[key].node.parent);
            count--;
        } else {
            cca_tree_insert(&tree, &items[key].node);
            count++;
        }
        is_in[key] = !is_in[key];
        assert_int_equal(tree.count, count);
        check_against_twin(&tree, items, key);
        check_against_twin(&tree, items, (int)(random_next(&rng) % KEYS));
        if (step % 100 == 0) {
            assert_true(height_of(tree.root, NULL) >= 0);
        }
    }
}

static void ascending_keys_do_not_make_a_list(void **state)
{
    struct item *items = calloc(MANY, sizeof(*items));
    struct cca_tree tree;
    uint64_t key = 0;

    (void)state;
    assert_non_null(items);
    cca_tree_init(&tree, by_key);
    for (int i = 0; i < MANY; i++) {
        items[i].key = (uint64_t)i;
        cca_tree_insert(&tree, &items[i].node);
    }
    assert_in_range(height_of(tree.root, NULL), 16, 64);
    for (struct cca_tree_node *node = cca_tree_first(&tree); node != NULL;
         node = cca_tree_next(node)) {
        assert_int_equal(item_of(node)->key, key++);
    }
    assert_int_equal(key, MANY);
    for (struct cca_tree_node *node = cca_tree_last(&tree); node != NULL;
         node = cca_tree_prev(node)) {
        assert_int_equal(item_of(node)->key, --key);
    }
    free(items);
}

static void empty_tree_has_no_nodes(void **state)
{
    struct item key = {.key = 1};
    struct cca_tree tree;

    (void)state;
    cca_tree_init(&tree, by_key);
    assert_null(cca_tree_first(&tree));
    assert_null(cca_tree_last(&tree));
    assert_null(cca_tree_lower_bound(&tree, &key.node));
    assert_null(cca_tree_floor(&tree, &key.node));
}

static void tree_becomes_empty_again(void **state)
{
    struct item items[3] = {{.key = 2}, {.key = 1}, {.key = 3}};
    struct cca_tree tree;

    (void)state;
    cca_tree_init(&tree, by_key);
    for (int i = 0; i < 3; i++) {
        cca_tree_insert(&tree, &items[i].node);
    }
    for (int i = 0; i < 3; i++) {
        cca_tree_erase(&tree, &items[i].node);
    }
    assert_null(tree.root);
    assert_int_equal(tree.count, 0);
    cca_tree_insert(&tree, &items[0].node);
    assert_ptr_equal(cca_tree_first(&tree), &items[0].node);
}

#ifndef NDEBUG

static int insert_equal(void)
{
    struct item a = {.key = 1}, b = {.key = 1};
    struct cca_tree tree;

    cca_tree_init(&tree, by_key);
    cca_tree_insert(&tree, &a.node);
    cca_tree_insert(&tree, &b.node);
    return 0;
}

static void debug_build_stops_at_equal_nodes(void **state)
{
    static struct child_result result;

    (void)state;
    child_run(insert_equal, &result);
    assert_true(child_was_killed_by(&result, SIGABRT));
    assert_non_null(strstr(result.text, "order != 0"));
}

#endif

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_operations_agree_with_a_sorted_array),
    cmocka_unit_test(ascending_keys_do_not_make_a_list),
    cmocka_unit_test(empty_tree_has_no_nodes),
    cmocka_unit_test(tree_becomes_empty_again),
#ifndef NDEBUG
    cmocka_unit_test(debug_build_stops_at_equal_nodes),
#endif
};

CCA_TEST_MAIN(tests)
