/* SPDX-License-Identifier: MIT */
/* Segments that grow (PyTorch's expandable segments): more addresses than the device has memory, in
 * which memory is put behind pages as it is needed, and taken away again where whole pages are
 * free. One such segment serves one pool, small or large blocks, and in a core driven in stream
 * order one stream; otherwise all streams share it, as addresses without memory are nobody's.
 *
 * Blocks without memory are UNMAPPED and joined with each other. Those that a thread is about to
 * give memory, or has taken out of the books to take it away, are MOVING; free blocks that it will
 * join with new memory are CLAIMED: other threads leave both alone while the lock is dropped for
 * the device calls. When the heap is dropped meanwhile their records are left to that thread.
 *
 * The segment counts once for its private pool, from the reservation of its addresses to their
 * return; PyTorch counts allocations that had to grow against blocks unmapped, which need not be
 * as many. All functions are called with the heap lock held. */
#ifndef CCA_ALLOC_EXPANDABLE_H
#define CCA_ALLOC_EXPANDABLE_H

#include "alloc/heap.h"
#include "device/device.h"

void cca_expandable_init(struct cca_heap *heap);

/* Maps what is missing for a block of `rounded` bytes, which is then LIVE. Drops the lock; the heap
 * may have been dropped meanwhile (CCA_UNSUPPORTED then). CCA_NO_MEMORY also when the limit forbids
 * it; CCA_UNSUPPORTED: nothing could be mapped here now. */
struct cca_status cca_expandable_grow(struct cca_heap *heap, const struct cca_request *request,
                                      size_t rounded, struct cca_block **block_out);

/* Takes whole pages of a FREE block out of all books (segment_unmap), at most `most_bytes` rounded
 * up to pages, the highest ones; they become a MOVING block on `out`, linked by `wait`. False where
 * the block holds no whole page, or memory for records is refused. */
bool cca_expandable_detach(struct cca_heap *heap, struct cca_block *block, size_t most_bytes,
                           uint64_t now_ns, struct cca_list *out);

/* Unmaps what was detached, with the lock dropped. Every use of it must be over. Returns the bytes
 * given back. */
size_t cca_expandable_unmap(struct cca_heap *heap, struct cca_list *detached);

/* The device has come to the peers of the heap's: it may use what is mapped already. Drops the
 * lock. */
void cca_expandable_open_to(struct cca_heap *heap, int accessor);

/* Called for a block of a segment whose memory is gone: whether its record is free now. */
bool cca_expandable_drop_block(struct cca_heap *heap, struct cca_block *block);

/* The context is about to go, all work on it is over, and nobody else changes the heap: gives the
 * memory and the addresses of all segments back, whoever holds blocks in them. The books stay as
 * they are. Called without the lock. */
void cca_expandable_abandon(struct cca_heap *heap);

#endif
