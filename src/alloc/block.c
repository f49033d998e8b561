/* SPDX-License-Identifier: MIT */
#include "alloc/block.h"

size_t cca_block_whole_page_bytes(const struct cca_block *block)
{
    size_t page = block->segment->page_bytes;
    size_t begin = (size_t)(block->addr - block->segment->addr), end = begin + block->bytes;
    size_t first = (begin + page - 1) / page, last = end / page;
    return first < last ? (last - first) * page : 0;
}
