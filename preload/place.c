/* SPDX-License-Identifier: MIT */
#include "preload/place.h"

#include <errno.h>

#include "preload/context.h"

/* Of the device whose memory the program asks for; one that is current comes up. */
static struct cca_heap *heap_of(const void *caller, int device)
{
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_heap *heap = NULL;
    if (allocator != NULL) {
        heap = cca_allocator_heap_of_device(allocator, device);
    }
    if (heap == NULL) {
        heap = cca_context_for_alloc(caller);
    }
    return heap != NULL && cca_allocator_ordinal(heap) == device ? heap : NULL;
}

static int place_default(const void *caller, int device, void *stream, struct cca_heap **heap_out,
                         cca_key *key_out)
{
    struct cca_heap *heap = heap_of(caller, device);
    if (heap == NULL) {
        return -ENODEV;
    }
    if (!cca_context_key_of_default(heap, stream, key_out)) {
        return -ENOSYS;
    }
    *heap_out = heap;
    return 0;
}

/* The context of a created stream may be one that nobody has used yet. */
static int place_created(const void *caller, int device, void *stream, struct cca_heap **heap_out,
                         cca_key *key_out)
{
    struct cca_stream_place place = cca_context_of_known_stream(stream, false);
    if (place.kind != CCA_STREAM_SERVED) {
        (void)cca_context_for_stream(caller, stream, false);
        place = cca_context_of_known_stream(stream, false);
    }
    if (place.kind != CCA_STREAM_SERVED) {
        return cca_context_has_stream_ids() ? -EINVAL : -ENOSYS;
    }
    if (device >= 0 && cca_allocator_ordinal(place.heap) != device) {
        return -EINVAL;
    }
    cca_context_note_stream(place.key, stream);
    *heap_out = place.heap;
    *key_out = place.key;
    return 0;
}

int cca_place(const void *caller, int device, void *stream, struct cca_heap **heap_out,
              cca_key *key_out)
{
    return cca_context_is_created(stream)
               ? place_created(caller, device, stream, heap_out, key_out)
               : place_default(caller, device, stream, heap_out, key_out);
}
