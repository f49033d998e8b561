/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/list.h"

struct item {
    int value;
    struct cca_list link;
};

static void assert_values(struct cca_list *head, const int *values, size_t count)
{
    size_t i = 0;

    CCA_LIST_EACH (node, head) {
        assert_true(i < count);
        assert_int_equal(CCA_LIST_ENTRY(node, struct item, link)->value, values[i]);
        i++;
    }
    assert_int_equal(i, count);
}

static void pushed_nodes_keep_their_order(void **state)
{
    struct item items[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
    struct cca_list head;

    (void)state;
    cca_list_init(&head);
    assert_true(cca_list_is_empty(&head));
    assert_false(cca_list_is_linked(&items[0].link));
    for (int i = 0; i < 3; i++) {
        cca_list_push_back(&head, &items[i].link);
    }
    assert_false(cca_list_is_empty(&head));
    assert_true(cca_list_is_linked(&items[0].link));
    assert_values(&head, (const int[]){1, 2, 3}, 3);
    cca_list_remove(&items[1].link);
    assert_false(cca_list_is_linked(&items[1].link));
    assert_values(&head, (const int[]){1, 3}, 2);
}

static void loop_may_remove_its_node(void **state)
{
    struct item items[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
    struct cca_list head;

    (void)state;
    cca_list_init(&head);
    for (int i = 0; i < 3; i++) {
        cca_list_push_back(&head, &items[i].link);
    }
    CCA_LIST_EACH (node, &head) {
        cca_list_remove(node);
    }
    assert_true(cca_list_is_empty(&head));
}

static void splice_moves_everything_to_the_end(void **state)
{
    struct item items[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
    struct cca_list head, from;

    (void)state;
    cca_list_init(&head);
    cca_list_init(&from);
    cca_list_splice(&head, &from);
    assert_true(cca_list_is_empty(&head));
    cca_list_push_back(&head, &items[0].link);
    cca_list_push_back(&from, &items[1].link);
    cca_list_push_back(&from, &items[2].link);
    cca_list_splice(&head, &from);
    assert_true(cca_list_is_empty(&from));
    assert_values(&head, (const int[]){1, 2, 3}, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pushed_nodes_keep_their_order),
    cmocka_unit_test(loop_may_remove_its_node),
    cmocka_unit_test(splice_moves_everything_to_the_end),
};

CCA_TEST_MAIN(tests)
