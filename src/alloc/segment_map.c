/* SPDX-License-Identifier: MIT */
#include "alloc/segment_map.h"

static const struct cca_segment *segment_of(const struct cca_tree_node *node)
{
    return CCA_CONTAINER_OF(node, struct cca_segment, node);
}

static int compare(const struct cca_tree_node *a, const struct cca_tree_node *b)
{
    uint64_t x = segment_of(a)->addr, y = segment_of(b)->addr;
    return (x > y) - (x < y);
}

void cca_segment_map_init(struct cca_segment_map *map)
{
    cca_lock_init(&map->lock, CCA_RANK_SEGMENTS);
    cca_tree_init(&map->tree, compare);
}

void cca_segment_map_insert(struct cca_segment_map *map, struct cca_segment *segment)
{
    cca_lock_take(&map->lock);
    cca_tree_insert(&map->tree, &segment->node);
    cca_lock_drop(&map->lock);
}

void cca_segment_map_remove(struct cca_segment_map *map, struct cca_segment *segment)
{
    cca_lock_take(&map->lock);
    cca_tree_erase(&map->tree, &segment->node);
    cca_lock_drop(&map->lock);
}

bool cca_segment_map_find_locked(const struct cca_segment_map *map, uint64_t addr,
                                 uint64_t *start_out, size_t *bytes_out)
{
    struct cca_segment wanted = {.addr = addr};
    struct cca_tree_node *node = cca_tree_floor(&map->tree, &wanted.node);
    if (node == NULL || addr - segment_of(node)->addr >= segment_of(node)->bytes) {
        return false;
    }
    *start_out = segment_of(node)->addr;
    *bytes_out = segment_of(node)->bytes;
    return true;
}

bool cca_segment_map_find(struct cca_segment_map *map, uint64_t addr, uint64_t *start_out,
                          size_t *bytes_out)
{
    cca_lock_take(&map->lock);
    bool found = cca_segment_map_find_locked(map, addr, start_out, bytes_out);
    cca_lock_drop(&map->lock);
    return found;
}
