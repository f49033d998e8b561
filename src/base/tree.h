/* SPDX-License-Identifier: MIT */
/* Intrusive ordered tree (a treap: the shape depends on node addresses only, so runs repeat). The
 * owner supplies the order as a function over nodes; equal nodes are not allowed. Insert, erase and
 * look-ups cost O(log n) expected. No allocation, no lock. */
#ifndef CCA_BASE_TREE_H
#define CCA_BASE_TREE_H

#include <stddef.h>

struct cca_tree_node {
    struct cca_tree_node *left, *right, *parent;
};

/* Negative, 0 or positive as `a` stands before, at or after `b`. */
typedef int (*cca_tree_cmp_fn)(const struct cca_tree_node *a, const struct cca_tree_node *b);

struct cca_tree {
    struct cca_tree_node *root;
    cca_tree_cmp_fn cmp;
    size_t count;
};

void cca_tree_init(struct cca_tree *tree, cca_tree_cmp_fn cmp);
void cca_tree_insert(struct cca_tree *tree, struct cca_tree_node *node);
void cca_tree_erase(struct cca_tree *tree, struct cca_tree_node *node);
/* First node not before `key`, or NULL. `key` need not be in the tree. */
struct cca_tree_node *cca_tree_lower_bound(const struct cca_tree *tree,
                                           const struct cca_tree_node *key);
/* Last node not after `key`, or NULL. */
struct cca_tree_node *cca_tree_floor(const struct cca_tree *tree, const struct cca_tree_node *key);
struct cca_tree_node *cca_tree_first(const struct cca_tree *tree);
struct cca_tree_node *cca_tree_last(const struct cca_tree *tree);
struct cca_tree_node *cca_tree_next(const struct cca_tree_node *node);
struct cca_tree_node *cca_tree_prev(const struct cca_tree_node *node);

#endif
