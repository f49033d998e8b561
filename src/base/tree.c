/* SPDX-License-Identifier: MIT */
#include "base/tree.h"

#include <stdint.h>

#include "base/check.h"

/* A bijection, so that no two nodes tie. */
static uint64_t priority(const struct cca_tree_node *node)
{
    uint64_t x = (uint64_t)(uintptr_t)node;

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Puts `to` (may be NULL) where `from` hangs below its parent. */
static void replace_child(struct cca_tree *tree, struct cca_tree_node *from,
                          struct cca_tree_node *to)
{
    struct cca_tree_node *parent = from->parent;

    if (parent == NULL) {
        tree->root = to;
    } else if (parent->left == from) {
        parent->left = to;
    } else {
        parent->right = to;
    }
    if (to != NULL) {
        to->parent = parent;
    }
}

static void rotate_above_parent(struct cca_tree *tree, struct cca_tree_node *node)
{
    struct cca_tree_node *parent = node->parent;
    struct cca_tree_node *moved;

    replace_child(tree, parent, node);
    if (parent->left == node) {
        moved = node->right;
        parent->left = moved;
        node->right = parent;
    } else {
        moved = node->left;
        parent->right = moved;
        node->left = parent;
    }
    if (moved != NULL) {
        moved->parent = parent;
    }
    parent->parent = node;
}

void cca_tree_init(struct cca_tree *tree, cca_tree_cmp_fn cmp)
{
    *tree = (struct cca_tree){.cmp = cmp};
}

void cca_tree_insert(struct cca_tree *tree, struct cca_tree_node *node)
{
    struct cca_tree_node *parent = NULL;
    struct cca_tree_node **place = &tree->root;

    while (*place != NULL) {
        int order = tree->cmp(node, *place);

        CCA_ASSERT(order != 0);
        parent = *place;
        place = order < 0 ? &parent->left : &parent->right;
    }
    *node = (struct cca_tree_node){.parent = parent};
    *place = node;
    while (node->parent != NULL && priority(node) > priority(node->parent)) {
        rotate_above_parent(tree, node);
    }
    tree->count++;
}

void cca_tree_erase(struct cca_tree *tree, struct cca_tree_node *node)
{
    CCA_ASSERT(tree->count > 0);
    while (node->left != NULL && node->right != NULL) {
        bool left_wins = priority(node->left) > priority(node->right);

        rotate_above_parent(tree, left_wins ? node->left : node->right);
    }
    replace_child(tree, node, node->left != NULL ? node->left : node->right);
    *node = (struct cca_tree_node){0};
    tree->count--;
}

struct cca_tree_node *cca_tree_lower_bound(const struct cca_tree *tree,
                                           const struct cca_tree_node *key)
{
    struct cca_tree_node *best = NULL;

    for (struct cca_tree_node *node = tree->root; node != NULL;) {
        if (tree->cmp(node, key) < 0) {
            node = node->right;
        } else {
            best = node;
            node = node->left;
        }
    }
    return best;
}

struct cca_tree_node *cca_tree_floor(const struct cca_tree *tree, const struct cca_tree_node *key)
{
    struct cca_tree_node *best = NULL;

    for (struct cca_tree_node *node = tree->root; node != NULL;) {
        if (tree->cmp(node, key) > 0) {
            node = node->left;
        } else {
            best = node;
            node = node->right;
        }
    }
    return best;
}

static struct cca_tree_node *leftmost(struct cca_tree_node *node)
{
    while (node != NULL && node->left != NULL) {
        node = node->left;
    }
    return node;
}

static struct cca_tree_node *rightmost(struct cca_tree_node *node)
{
    while (node != NULL && node->right != NULL) {
        node = node->right;
    }
    return node;
}

struct cca_tree_node *cca_tree_first(const struct cca_tree *tree)
{
    return leftmost(tree->root);
}

struct cca_tree_node *cca_tree_last(const struct cca_tree *tree)
{
    return rightmost(tree->root);
}

struct cca_tree_node *cca_tree_next(const struct cca_tree_node *node)
{
    if (node->right != NULL) {
        return leftmost(node->right);
    }
    while (node->parent != NULL && node->parent->right == node) {
        node = node->parent;
    }
    return node->parent;
}

struct cca_tree_node *cca_tree_prev(const struct cca_tree_node *node)
{
    if (node->left != NULL) {
        return rightmost(node->left);
    }
    while (node->parent != NULL && node->parent->left == node) {
        node = node->parent;
    }
    return node->parent;
}
