/* SPDX-License-Identifier: MIT */
#include "alloc/block.h"

#include "base/check.h"

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
