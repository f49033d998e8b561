/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <stdbool.h>
#include <stddef.h>

static uint32_t next_priority(void)
{
    static uint32_t state = 2463534242u;

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static bool is_before(const struct sim_node *node, uint64_t key, uint64_t tie)
{
    return node->key < key || (node->key == key && node->tie < tie);
}

static void update(struct sim_node *node)
{
    node->max_end = node->end;
    if (node->left != NULL && node->left->max_end > node->max_end) {
        node->max_end = node->left->max_end;
    }
    if (node->right != NULL && node->right->max_end > node->max_end) {
        node->max_end = node->right->max_end;
    }
}

/* Splits into the nodes before (key, tie) and the rest. */
static void split(struct sim_node *node, uint64_t key, uint64_t tie, struct sim_node **low_out,
                  struct sim_node **high_out)
{
    if (node == NULL) {
        *low_out = NULL;
        *high_out = NULL;
    } else if (is_before(node, key, tie)) {
        split(node->right, key, tie, &node->right, high_out);
        update(node);
        *low_out = node;
    } else {
        split(node->left, key, tie, low_out, &node->left);
        update(node);
        *high_out = node;
    }
}

static struct sim_node *merge(struct sim_node *low, struct sim_node *high)
{
    if (low == NULL) {
        return high;
    }
    if (high == NULL) {
        return low;
    }
    if (low->priority > high->priority) {
        low->right = merge(low->right, high);
        update(low);
        return low;
    }
    high->left = merge(low, high->left);
    update(high);
    return high;
}

static struct sim_node *insert(struct sim_node *at, struct sim_node *node)
{
    if (at == NULL || node->priority > at->priority) {
        split(at, node->key, node->tie, &node->left, &node->right);
        update(node);
        return node;
    }
    if (is_before(at, node->key, node->tie)) {
        at->right = insert(at->right, node);
    } else {
        at->left = insert(at->left, node);
    }
    update(at);
    return at;
}

static struct sim_node *take_out(struct sim_node *at, struct sim_node *node)
{
    if (at == NULL) {
        return NULL;
    }
    if (at == node) {
        return merge(at->left, at->right);
    }
    if (is_before(at, node->key, node->tie)) {
        at->right = take_out(at->right, node);
    } else {
        at->left = take_out(at->left, node);
    }
    update(at);
    return at;
}

void sim_tree_insert(struct sim_node **root, struct sim_node *node)
{
    node->left = NULL;
    node->right = NULL;
    node->priority = next_priority();
    *root = insert(*root, node);
}

void sim_tree_remove(struct sim_node **root, struct sim_node *node)
{
    *root = take_out(*root, node);
}

struct sim_node *sim_tree_floor(struct sim_node *root, uint64_t key)
{
    struct sim_node *best = NULL;

    while (root != NULL) {
        if (root->key <= key) {
            best = root;
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return best;
}

struct sim_node *sim_tree_ceiling(struct sim_node *root, uint64_t key, uint64_t tie)
{
    struct sim_node *best = NULL;

    while (root != NULL) {
        if (is_before(root, key, tie)) {
            root = root->right;
        } else {
            best = root;
            root = root->left;
        }
    }
    return best;
}

/* The first overlap in order whose (key, tie) is not before the given place. */
static struct sim_node *overlap_from(struct sim_node *node, uint64_t key, uint64_t tie,
                                     uint64_t start, uint64_t end)
{
    while (node != NULL && node->max_end > start) {
        if (is_before(node, key, tie)) {
            node = node->right;
            continue;
        }
        struct sim_node *found = overlap_from(node->left, key, tie, start, end);
        if (found != NULL) {
            return found;
        }
        if (node->key >= end) {
            return NULL;
        }
        if (node->end > start) {
            return node;
        }
        node = node->right;
    }
    return NULL;
}

struct sim_node *sim_tree_overlap(struct sim_node *root, uint64_t start, uint64_t end)
{
    return overlap_from(root, 0, 0, start, end);
}

struct sim_node *sim_tree_overlap_next(struct sim_node *root, const struct sim_node *after,
                                       uint64_t start, uint64_t end)
{
    return overlap_from(root, after->key, after->tie + 1, start, end);
}
