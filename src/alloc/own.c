/* SPDX-License-Identifier: MIT */
/* Requests of callers that say on which stream they are: cca_my_malloc and cca_my_free. They are
 * the allocator's usual ones, and end at the driver where the cache does not serve. */
#include "alloc/allocator.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/look_up.h"

/* Outside of the library meanwhile, as the driver may wait. */
static struct cca_status ask_driver(struct cca_heap *heap, size_t bytes, uint64_t *addr_out)
{
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    int depth = cca_reentry_suspend();
    if (cca_device_call_begin(heap)) {
        status = heap->device.ops->mem_alloc(heap->device.self, bytes, addr_out);
        cca_device_call_end(heap);
    }
    cca_reentry_resume(depth);
    return status;
}

static void give_to_driver(struct cca_heap *heap, uint64_t addr)
{
    int depth = cca_reentry_suspend();
    if (cca_device_call_begin(heap)) {
        (void)heap->device.ops->mem_free(heap->device.self, addr);
        cca_device_call_end(heap);
    }
    cca_reentry_resume(depth);
}

struct cca_status cca_allocator_own_alloc(struct cca_allocator *allocator, struct cca_heap *heap,
                                          const struct cca_request *request, uint64_t *addr_out)
{
    struct cca_status status = cca_allocator_alloc(allocator, heap, request, addr_out);
    if (status.kind != CCA_UNSUPPORTED) {
        return status;
    }
    status = ask_driver(heap, request->bytes, addr_out);
    if (status.kind == CCA_OK) {
        cca_allocator_note_passed(allocator, heap, request, *addr_out);
    }
    return status;
}

enum cca_free_result cca_allocator_own_free(struct cca_allocator *allocator, uint64_t addr,
                                            const struct cca_request *request)
{
    /* Before the free, after which the block's record is another's. */
    struct cca_heap *heap = NULL;
    struct cca_block *block = cca_look_up_block(allocator, addr, &heap);
    bool is_passed = block != NULL && block->segment->is_passed;
    if (block != NULL) {
        cca_lock_drop(&heap->lock);
    }
    enum cca_free_result result = cca_allocator_free(allocator, addr, request);
    if (result != CCA_FREE_FORWARD) {
        return result;
    }
    if (heap == NULL) {
        return CCA_FREE_INVALID;
    }
    if (is_passed) {
        give_to_driver(heap, addr);
    }
    return CCA_FREE_DONE; /* else it went with its context */
}
