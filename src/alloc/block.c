/* SPDX-License-Identifier: MIT */
#include "alloc/block.h"

#include "base/check.h"

size_t cca_block_releasable_bytes(const struct cca_block *block)
{
    const struct cca_segment *segment = block->segment;
    size_t page = segment->page_bytes;
    if (page == 0) {
        return cca_block_is_split(block) ? 0 : block->bytes;
    }
    size_t begin = (size_t)(block->addr - segment->addr), end = begin + block->bytes;
    size_t first = (begin + page - 1) / page, last = end / page;
    return first < last ? (last - first) * page : 0;
}

void cca_block_split(struct cca_block *block, struct cca_block *rest, size_t bytes)
{
    CCA_ASSERT(bytes > 0 && bytes < block->bytes);
    rest->segment = block->segment;
    rest->addr = block->addr + bytes;
    rest->bytes = block->bytes - bytes;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != NULL) {
        rest->next->prev = rest;
    }
    block->next = rest;
    block->bytes = bytes;
}

void cca_block_merge(struct cca_block *lower, struct cca_block *upper)
{
    CCA_ASSERT(lower->next == upper && lower->addr + lower->bytes == upper->addr);
    lower->bytes += upper->bytes;
    lower->next = upper->next;
    if (lower->next != NULL) {
        lower->next->prev = lower;
    }
}
