/* SPDX-License-Identifier: MIT */
#include "alloc/recording.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/look_up.h"
#include "base/clock.h"

_Static_assert(CCA_SKIP_REPLAY == (1u << CCA_EVENT_SNAPSHOT) - 1 &&
                   CCA_SKIP_SNAPSHOT == 1u << CCA_EVENT_SNAPSHOT &&
                   CCA_SKIP_OOM == 1u << CCA_EVENT_OOM &&
                   CCA_SKIP_ANNOTATE == 1u << CCA_EVENT_ANNOTATE,
               "the words of CCA_SKIP_ACTIONS come in the order of the kinds");

void cca_recording_init(struct cca_allocator *allocator, const struct cca_config *config)
{
    allocator->recorded = (struct cca_recording_state){
        .recording =
            {
                .ring_entries = config->history == CCA_HISTORY_ALL     ? config->max_entries
                                : config->history == CCA_HISTORY_STATE ? 1
                                                                       : 0,
                .skips = config->skip_actions,
            },
        .stacks_in_trace = config->context >= CCA_CONTEXT_ALLOC,
    };
}

void cca_recording_apply(struct cca_heap *heap)
{
    const struct cca_recording_state *state = &heap->allocator->recorded;
    cca_observer_init(&heap->observer, heap->slot, &state->recording);
    heap->stacks_in_trace = state->stacks_in_trace;
}

int cca_allocator_set_recording(struct cca_allocator *allocator,
                                const struct cca_recording *recording, bool stacks_in_trace,
                                bool clears)
{
    int rc = 0;
    cca_lock_take(&allocator->lock);
    allocator->recorded.recording = *recording;
    allocator->recorded.stacks_in_trace = stacks_in_trace;
    CCA_EACH_HEAP (heap, allocator) {
        cca_lock_take_urgent(&heap->lock);
        bool has_accounts = heap->accounts == heap;
        if (clears && has_accounts) {
            cca_observer_clear_history(&heap->observer);
        }
        int error = has_accounts ? cca_observer_set_recording(&heap->observer, recording) : 0;
        rc = rc == 0 ? error : rc;
        heap->stacks_in_trace = stacks_in_trace;
        cca_lock_drop(&heap->lock);
    }
    cca_lock_drop(&allocator->lock);
    return rc;
}

struct cca_recording cca_allocator_recording(struct cca_allocator *allocator)
{
    cca_lock_take(&allocator->lock);
    struct cca_recording recording = allocator->recorded.recording;
    cca_lock_drop(&allocator->lock);
    return recording;
}

void cca_allocator_mark(struct cca_allocator *allocator, uint32_t thread, uint32_t metadata,
                        uint64_t time_ns)
{
    struct cca_request request = {
        .key = CCA_KEY_READY, .thread = thread, .metadata = metadata, .api = CCA_API_NONE};
    CCA_EACH_HEAP (heap, allocator) {
        if (heap->accounts != heap) {
            continue;
        }
        struct cca_event event = cca_heap_event(CCA_EVENT_SNAPSHOT, &request, time_ns);
        cca_lock_take(&heap->lock);
        event.requested_bytes = (uint64_t)heap->observer.stats.active_bytes[CCA_STAT_ALL].current;
        event.block_bytes = event.requested_bytes;
        cca_heap_report(heap, &event);
        cca_lock_drop(&heap->lock);
    }
}

int cca_allocator_annotate(struct cca_allocator *allocator, uint64_t addr,
                           const struct cca_request *request)
{
    struct cca_heap *heap;
    struct cca_block *block = cca_look_up_block(allocator, addr, &heap);
    if (block == NULL) {
        return -ENOENT;
    }
    struct cca_event event = cca_heap_event(CCA_EVENT_ANNOTATE, request, cca_clock_ns());
    event.addr = addr;
    event.requested_bytes = block->requested_bytes;
    event.block_bytes = block->bytes;
    cca_heap_report(heap, &event);
    cca_lock_drop(&heap->lock);
    return 0;
}

int cca_allocator_stack_of(struct cca_allocator *allocator, uint64_t addr, uint32_t *stack_out)
{
    struct cca_heap *heap;
    struct cca_block *block = cca_look_up_block(allocator, addr, &heap);
    if (block == NULL) {
        return -ENOENT;
    }
    *stack_out = block->stack;
    cca_lock_drop(&heap->lock);
    return 0;
}
