/* SPDX-License-Identifier: MIT */
/* Which heap a call belongs to: that of the thread's current context, or of a stream's, when it is
 * a primary context or one that the program was seen to make. Heaps come into being here. To be
 * called inside a hook's enter and leave. No CUDA header is needed here.
 *
 * `caller` is where the program called the runtime door from, NULL at the driver door: there the
 * current context is the right one without asking a runtime. */
#ifndef CCA_PRELOAD_CONTEXT_H
#define CCA_PRELOAD_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/rows.h"
#include "process/process.h"

/* The thread's current device was changed through a runtime, and runtimes before 12.0 make it
 * current only in their next call: the next look asks the caller's runtime. */
void cca_context_ask(void);

/* The heap that an allocation of this caller belongs to. NULL: not served at this door; forward the
 * call. */
struct cca_heap *cca_context_for_alloc(const void *caller);

/* Of the caller's runtime, as CUDA counts; 0 = not known. */
int cca_context_runtime_version(const void *caller);

/* The heap of a context, of the current one when it is NULL; or NULL. Starts nothing. */
struct cca_heap *cca_context_known_heap(const void *context);

/* A thread that frees has a context afterwards, as natively: 0, or the error with which the
 * caller's runtime failed to bring one up. */
int cca_context_for_free(const void *caller);

/* The program has made a context, which is current: it gets a heap before any work of it can be
 * submitted. False when work of it could not be followed. */
bool cca_context_made(const void *context);

/* Whether it is such a one, and that it is gone: no thread is inside a call of it any more. */
bool cca_context_is_own(const void *context);
void cca_context_gone(const void *context);

enum cca_stream_kind {
    CCA_STREAM_SERVED,    /* heap and key are valid */
    CCA_STREAM_CAPTURING, /* memory of a graph: the driver's */
    CCA_STREAM_OTHER      /* no heap, or the driver cannot tell streams apart */
};

struct cca_stream_place {
    enum cca_stream_kind kind;
    struct cca_heap *heap;
    cca_key key; /* CCA_KEY_READY where streams cannot be told apart */
};

/* Where work on a stream belongs. `is_per_thread`: a null handle means the thread's own default
 * stream (the _ptsz names). */
struct cca_stream_place cca_context_for_stream(const void *caller, void *stream,
                                               bool is_per_thread);

/* A stream that is about to be waited for or destroyed: only what is known already, nothing is
 * started. */
struct cca_stream_place cca_context_of_known_stream(void *stream, bool is_per_thread);

/* Whether the driver can tell streams apart. */
bool cca_context_has_stream_ids(void);

/* The key of a default stream of the heap's context, whichever is current. */
bool cca_context_key_of_default(const struct cca_heap *heap, void *stream, cca_key *key_out);

/* A created stream of this key can be asked about its captures until it is destroyed. */
void cca_context_note_stream(cca_key key, void *stream);

/* Not one of the handles that stand for default streams. */
bool cca_context_is_created(const void *stream);

/* The calling thread's default stream, by either name. */
bool cca_context_is_own_stream(const void *stream, bool is_per_thread);

/* True also when the driver does not say. */
bool cca_context_still_captures(void *stream, bool is_per_thread);

/* The context that a stream belongs to, the current one for default streams; or NULL. */
const void *cca_context_of_stream(void *stream);

/* The primary context of a device while it is up, or NULL. */
const void *cca_context_primary(int device);

/* The device of the thread's current context, or -1. */
int cca_context_driver_device(void);

/* Before a free: the primary contexts that others have made in the meantime get their heaps, since
 * work in them may use the memory, too, and only what is known is covered by fences. How they were
 * made cannot be seen: NVIDIA's runtime has ways of its own. Costs nothing with one device, as long
 * as the program makes no contexts itself. */
void cca_context_find_others(void);

/* Whether the primary context of a device is up; true when the driver does not say. */
bool cca_context_primary_is_up(int device);

/* Total memory of the current context's device, 0 when the driver does not say. */
size_t cca_context_total_bytes(void);

/* The thread's capture mode becomes relaxed; returns what unrelax puts back. */
int cca_context_relax(void);
void cca_context_unrelax(int mode);

#endif
