/* SPDX-License-Identifier: MIT */
/* An intrusive ordered tree over (key, tie) whose nodes span [key, end); the lock of call.h guards
 * it. Used for blocks, for free address ranges and for the accesses the race check remembers. */
#ifndef SIM_TREE_H
#define SIM_TREE_H

#include <stdint.h>

/* max_end is the greatest end in the subtree; priorities form a heap. */
struct sim_node {
    struct sim_node *left;
    struct sim_node *right;
    uint64_t key;
    uint64_t tie;
    uint64_t end;
    uint64_t max_end;
    uint32_t priority;
};

void sim_tree_insert(struct sim_node **root, struct sim_node *node);
void sim_tree_remove(struct sim_node **root, struct sim_node *node);
/* The greatest node with node->key <= key, and the least with (node->key, node->tie) >= (key, tie);
 * NULL when there is none. */
struct sim_node *sim_tree_floor(struct sim_node *root, uint64_t key);
struct sim_node *sim_tree_ceiling(struct sim_node *root, uint64_t key, uint64_t tie);
/* The first node that overlaps [start, end), and the next one after node. */
struct sim_node *sim_tree_overlap(struct sim_node *root, uint64_t start, uint64_t end);
struct sim_node *sim_tree_overlap_next(struct sim_node *root, const struct sim_node *after,
                                       uint64_t start, uint64_t end);

#endif
