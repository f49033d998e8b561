/* SPDX-License-Identifier: MIT */
/* All heaps and the address map: what the hooks call.
 *
 * allocator.c holds allocation and free, contexts.c the coming and going of contexts, notices.c all
 * else.
 *
 * A heap serves one context: the primary one of a device, or one that the program has made. All
 * heaps of a device share its accounts. Every function may be called from any thread with no lock
 * held; none changes the CUDA runtime's last error or the thread's current context. Functions that
 * may wait for the device say so. */
#ifndef CCA_ALLOC_ALLOCATOR_H
#define CCA_ALLOC_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "config/config.h"
#include "device/device.h"
#include "observe/event.h"

/* Heaps stand in slots: that of a device's primary context in the slot of its ordinal, those of
 * contexts that the program made in slots from the top down. */
enum { CCA_DEVICES_MAX = 64, CCA_HEAPS_MAX = 64 };

struct cca_allocator;
struct cca_heap;

/* Who may use a free block: a stream's id (in that stream's order), or anyone. Stream ids come from
 * cuStreamGetId and are never 0 or recycled; unit tests number their own. */
typedef uint64_t cca_key;
#define CCA_KEY_READY ((cca_key)UINT64_MAX)

struct cca_private_pool;

struct cca_request {
    enum cca_api api;
    size_t bytes; /* alloc only */
    cca_key key;  /* the stream, or CCA_KEY_READY for the calls without one */
    uint32_t stack;
    uint32_t thread;
    uint32_t metadata;             /* id of the thread's text, 0 = none */
    struct cca_private_pool *pool; /* set by the allocator */
    uint64_t capture;              /* set by the allocator: what the stream takes part in, or 0 */
};

enum cca_free_result {
    CCA_FREE_DONE,    /* ours, and taken back */
    CCA_FREE_FORWARD, /* not ours, or made by the driver itself: call the real function */
    CCA_FREE_INVALID  /* inside our memory but not a live block: must fail as an invalid value */
};

/* The allocator of this process. `config` must outlive it. -ENOMEM. */
int cca_allocator_create(const struct cca_config *config,
                         struct cca_allocator **allocator_out) CCA_MUST_CHECK;
void cca_allocator_destroy(struct cca_allocator *allocator); /* unit tests only; NULL accepted */

/* A context is up: its heap, a new one or the one attached before with the same `context`. `device`
 * is copied. A different primary context on the same device means the old one is gone: its heap is
 * dropped first. NULL when there is no memory for it or the ordinal is out of range, or when too
 * many contexts are up: that ends caching, since fences could not cover its work. On drivers
 * without context events the second context ends caching. */
struct cca_heap *cca_allocator_attach(struct cca_allocator *allocator,
                                      const struct cca_device *device, uint64_t context);

/* The ordinal of a heap's device, and the heap's slot. */
int cca_allocator_ordinal(const struct cca_heap *heap);
int cca_heap_slot(const struct cca_heap *heap);
/* Whether its context is one that the program made. */
bool cca_heap_is_own(const struct cca_heap *heap);

/* The heap of a context that was attached and not detached since, or NULL. Lock-free. */
struct cca_heap *cca_allocator_heap(struct cca_allocator *allocator, uint64_t context);

/* The context of this device is about to go away with all its memory (device reset): everything of
 * it is forgotten and nothing is freed, but for mapped memory, which a reset may leave behind: that
 * is unmapped when all work is over within 2 s. */
void cca_allocator_detach(struct cca_allocator *allocator, int ordinal);

/* While contexts that came up elsewhere cannot be looked for no free is complete: what is freed is
 * set aside, and a free that waits has waited. Counted; ends when they have been looked for. */
void cca_allocator_blind(struct cca_allocator *allocator, bool is_blind);

/* Around a call that ends a context, whose addresses may be somebody else's before it returns:
 * nothing of its heap is known in between, and everything is again where the context lives on
 * (mapped memory excepted, as above). withdraw: the heap, or NULL when it has none. withdrawn is
 * for that heap; true when no thread is inside a call of the context any more. */
struct cca_heap *cca_allocator_withdraw(struct cca_allocator *allocator, uint64_t context);
bool cca_allocator_withdrawn(struct cca_allocator *allocator, struct cca_heap *heap,
                             uint64_t context, bool is_gone);

/* Serves a request of at least 1 byte. Waits for the device only when it would otherwise fail, at
 * most CCA_OOM_WAIT_MS.
 *
 * CCA_OK: memory is at *addr_out.
 *
 * CCA_NO_MEMORY: every step failed; the program's call must fail as out of memory.
 *
 * CCA_UNSUPPORTED: not served, since caching is off or has ended, or the driver refused in another
 * way; call the real function, and on success cca_allocator_note_passed.
 *
 * CCA_FATAL: the context is unusable; let the real function tell the program. */
struct cca_status cca_allocator_alloc(struct cca_allocator *allocator, struct cca_heap *heap,
                                      const struct cca_request *request, uint64_t *addr_out);

/* The program frees `addr` (not 0). With key CCA_KEY_READY as cudaFree (waits for the device in
 * strict mode); with a stream's id as cudaFreeAsync on that stream. FORWARD has done the
 * accounting: the address is forgotten before the real free, since it may come back at once. */
enum cca_free_result cca_allocator_free(struct cca_allocator *allocator, uint64_t addr,
                                        const struct cca_request *request);

/* Accounts for memory that the driver itself gave the program: a segment with one block. */
void cca_allocator_note_passed(struct cca_allocator *allocator, struct cca_heap *heap,
                               const struct cca_request *request, uint64_t addr);

/* Ends caching for this process. Live blocks stay ours; a free of one waits where it natively would
 * and its memory is not handed out again; wholly free segments go back to the driver in later
 * frees, waits and make_room. Does not wait. Idempotent; true for the call that ended it. */
bool cca_allocator_stop(struct cca_allocator *allocator);
bool cca_allocator_is_stopped(const struct cca_allocator *allocator);

/* A stream capture is about to begin (before the real call), and has ended or did not begin. In
 * between no event of ours is recorded, no free waits, and nothing is given back to the driver:
 * what is freed is set aside. begins returns after the last record of ours is over. */
void cca_allocator_capture_begins(struct cca_allocator *allocator);
void cca_allocator_capture_ends(struct cca_allocator *allocator);

/* torch.Tensor.record_stream: the live block at `addr` is used on `stream`, so a free in the order
 * of another stream (or the free of a block of cca_my_malloc) is not complete before what that
 * stream was given until the free. Memory that is not ours is ignored. */
void cca_allocator_record_stream(struct cca_allocator *allocator, uint64_t addr, cca_key stream);

/* Private pools. A pool is known by its id, of which one part is 0: a graph capture's, or a
 * handle's of the user. It lives while it is retained or holds memory; once nobody retains it, its
 * idle segments go back with all others. */
struct cca_pool_id {
    uint64_t capture, handle;
};

enum cca_pool_flags {
    CCA_POOL_USE_ON_OOM = 1, /* others may borrow its free blocks before they fail */
    CCA_POOL_NO_SPLIT = 2    /* blocks are handed out whole */
};

/* Which requests a scope takes: those on a stream that is being captured and, of CCA_API_OWN, those
 * on streams that have joined its capture; on a stream; or of a thread. While a capture is open on
 * a heap nothing of it waits, records or asks the device about events, nothing goes back to the
 * driver, and frees of blocks used on other streams are put off.
 */
struct cca_pool_scope {
    enum { CCA_SCOPE_CAPTURE, CCA_SCOPE_STREAM, CCA_SCOPE_THREAD } kind;
    cca_key stream;
    uint32_t thread;
};

/* One more who needs the pool, which is made when there is none of that id. -EINVAL, -ENOMEM. */
int cca_allocator_pool_retain(struct cca_allocator *allocator, struct cca_heap *heap,
                              struct cca_pool_id id, unsigned flags) CCA_MUST_CHECK;
/* One less. -ENOENT; -EBUSY: a scope is open, which needs it. */
int cca_allocator_pool_release(struct cca_allocator *allocator, struct cca_heap *heap,
                               struct cca_pool_id id) CCA_MUST_CHECK;

/* The idle memory of one pool that nobody retains goes back to the driver, after at most `wait_ms`
 * for what was freed in it. The other pools keep theirs. Nothing where there is no such pool, or
 * while a capture is open. */
void cca_allocator_pool_empty(struct cca_allocator *allocator, struct cca_heap *heap,
                              struct cca_pool_id id, uint64_t wait_ms);

/* Opens a scope, which retains the pool: the end of the scope does not release it, the destruction
 * of the graph does. Of open scopes the newest that takes a request counts. A second one for the
 * same pool is refused: -EEXIST. -EINVAL, -ENOMEM. */
int cca_allocator_pool_begin(struct cca_allocator *allocator, struct cca_heap *heap,
                             struct cca_pool_id id,
                             const struct cca_pool_scope *scope) CCA_MUST_CHECK;
/* The same for a pool that must be there: -ENOENT. */
int cca_allocator_pool_use(struct cca_allocator *allocator, struct cca_heap *heap,
                           struct cca_pool_id id,
                           const struct cca_pool_scope *scope) CCA_MUST_CHECK;
/* -ENOENT: none is open. */
int cca_allocator_pool_end(struct cca_allocator *allocator, struct cca_heap *heap,
                           struct cca_pool_id id) CCA_MUST_CHECK;

/* Two devices have access to each other's memory, in one direction at least: from now on a free
 * that waits for one waits for both, as natively, and both may use mapped memory, to which the
 * driver opens none by itself. Never taken back. */
void cca_allocator_note_peers(struct cca_allocator *allocator, int ordinal, int other);

/* From now on, as with CCA_IPC=dedicated: every block of 64 KiB or more of a call without a stream
 * is alone in its segment, so that it can be given to other processes. False: it was so already. */
bool cca_allocator_dedicate(struct cca_allocator *allocator);

/* The stream is about to be destroyed: what is keyed to it becomes READY once its work is over. */
void cca_allocator_stream_ends(struct cca_allocator *allocator, struct cca_heap *heap,
                               cca_key stream);

/* The program is about to wait for a stream or for its whole context, and has waited: what was
 * freed before the mark, in that stream's order (or, with CCA_KEY_READY, in that of any stream), is
 * over. synchronized looks at fences, too, and gives idle memory back once caching has ended. */
uint64_t cca_allocator_sync_mark(struct cca_allocator *allocator, struct cca_heap *heap);
void cca_allocator_synchronized(struct cca_allocator *allocator, struct cca_heap *heap, cca_key key,
                                uint64_t mark);

/* The driver itself is about to be asked for `bytes`, for memory that is not served (any more):
 * idle memory goes back to it first where it may be missed. Waits at most CCA_OOM_WAIT_MS. */
void cca_allocator_make_room(struct cca_allocator *allocator, struct cca_heap *heap, size_t bytes);

/* The driver was out of memory for something that is not served: all that is idle on the heap's
 * device goes back to it. Waits for fences, at most CCA_OOM_WAIT_MS a heap; while the program
 * captures, for the device, as its own frees would have. Bytes given back: 0 while a capture is
 * open on the heap. */
size_t cca_allocator_release_idle(struct cca_allocator *allocator, struct cca_heap *heap);

/* Whether the address lies in the cache's memory: 1 or 0, or -1 when that cannot be told without
 * waiting for a lock. For calls that interrupt one of ours on the same thread. */
int cca_allocator_owns_try(struct cca_allocator *allocator, uint64_t addr);

/* The program waited for something: a cheap moment to look at fences. */
void cca_allocator_poll(struct cca_allocator *allocator, struct cca_heap *heap);

/* Corrects the driver's figures for the program: wholly free segments count as free, the limit is
 * the total's bound; never more than the device has. */
void cca_allocator_adjust_mem_info(struct cca_allocator *allocator, struct cca_heap *heap,
                                   size_t *free_bytes, size_t total_bytes);

/* New settings in PyTorch's grammar for the running program: see config/conf.h for what a string
 * resets and what it keeps; what single variables gave is treated alike. Memory that is there stays
 * as it was cut; `max_split_size` of the statistics stays what it was at the start. -EINVAL: an
 * item was wrong or unknown, nothing has changed. -E2BIG. */
int cca_allocator_set_conf(struct cca_allocator *allocator, const char *text,
                           cca_config_complaint_fn complain, void *user) CCA_MUST_CHECK;

/* torch.cuda.set_per_process_memory_fraction: the most of the device's memory, as large as it is
 * now, that may be held; 1: no limit. What is above it already stays. -EINVAL, -ENODEV. */
int cca_allocator_set_memory_fraction(struct cca_allocator *allocator, int ordinal,
                                      double fraction) CCA_MUST_CHECK;
double cca_allocator_memory_fraction(struct cca_allocator *allocator, int ordinal);

/* Asked on every miss, before the driver is: gives memory of its own back to the cache if it can,
 * and says whether it did. `bytes`: the rounded request. Called with no lock held; may free. It
 * must not allocate from the cache. -ENOSPC: no room for another one. */
typedef bool (*cca_free_memory_fn)(void *user, int ordinal, size_t bytes);
int cca_allocator_add_free_callback(struct cca_allocator *allocator, cca_free_memory_fn fn,
                                    void *user) CCA_MUST_CHECK;

/* Told when a request fails for want of memory, before the call returns; no lock held. */
struct cca_oom_info {
    int ordinal;
    bool is_rejection;     /* refused by CCA_OOM_REJECT: nothing was released or asked for */
    size_t bytes;          /* of the segment that could not be had */
    size_t limit_bytes;    /* or the device's memory where there is none */
    size_t reserved_bytes; /* held by the cache */
    size_t free_bytes, total_bytes; /* of the device; a rejection does not ask for the free ones */
};
typedef void (*cca_oom_fn)(void *user, const struct cca_oom_info *info);
int cca_allocator_add_oom_observer(struct cca_allocator *allocator, cca_oom_fn fn,
                                   void *user) CCA_MUST_CHECK;

/* Ordinal of the device whose live block starts at the address, or -1. */
int cca_allocator_device_of(struct cca_allocator *allocator, uint64_t addr);

/* Id of the pool that an event names; {0, 0}: the default one. Only inside a tracker. */
void cca_allocator_event_pool(struct cca_allocator *allocator, int ordinal,
                              const struct cca_event *event, uint64_t id_out[2]);

/* The same: bytes held by the program, and from the driver, after the event. */
void cca_allocator_event_totals(struct cca_allocator *allocator, int ordinal,
                                uint64_t *allocated_out, uint64_t *reserved_out);

/* Where an address lies in our memory. */
struct cca_address_info {
    bool is_ours;           /* inside a segment of the cache */
    bool is_live_block;     /* exactly the start of one */
    bool fills_segment;     /* that block is its whole segment */
    uint64_t alloc_time_ns; /* of that block */
    uint64_t segment_addr;
    size_t segment_bytes;
};
struct cca_address_info cca_allocator_look_up(struct cca_allocator *allocator, uint64_t addr);

/* torch.cuda.empty_cache: every wholly free segment goes back to the driver. Waits for fences, at
 * most CCA_OOM_WAIT_MS. Does nothing during a capture. */
void cca_allocator_empty_cache(struct cca_allocator *allocator);

/* cca_my_malloc and cca_my_free: the calls above for CCA_API_OWN, with key the stream of the
 * request or of its last use. While caching is off memory comes straight from the driver, and goes
 * back to it. FORWARD is not among the results of own_free: what is not ours is INVALID. */
struct cca_status cca_allocator_own_alloc(struct cca_allocator *allocator, struct cca_heap *heap,
                                          const struct cca_request *request, uint64_t *addr_out);
enum cca_free_result cca_allocator_own_free(struct cca_allocator *allocator, uint64_t addr,
                                            const struct cca_request *request);

/* The heap of a device whose primary context is up, or NULL; and any heap of the device. Lock-free.
 */
struct cca_heap *cca_allocator_heap_of_device(struct cca_allocator *allocator, int ordinal);
struct cca_heap *cca_allocator_some_heap_of_device(struct cca_allocator *allocator, int ordinal);
/* Handle of the context served, 0: none any more. */
uint64_t cca_heap_context(const struct cca_heap *heap);

/* Sums over the blocks of a device, which are walked under its lock: what belongs to a stream, or
 * to a pool together with its figures (-ENOENT), and the largest free block. */
struct cca_sums;
struct cca_pool_stats;
void cca_allocator_stream_sums(struct cca_allocator *allocator, struct cca_heap *heap,
                               cca_key stream, struct cca_sums *sums_out);
int cca_allocator_pool_sums(struct cca_allocator *allocator, struct cca_heap *heap,
                            struct cca_pool_id id, struct cca_sums *sums_out,
                            struct cca_pool_stats *stats_out) CCA_MUST_CHECK;
size_t cca_allocator_largest_free(struct cca_allocator *allocator, struct cca_heap *heap);

/* The settings as they are now. False: the lock could not be had in `wait_ms`, as where a thread
 * died under it. `out` is large: not on a small stack. */
bool cca_allocator_copy_settings(struct cca_allocator *allocator, unsigned wait_ms,
                                 struct cca_config *out) CCA_MUST_CHECK;

/* Told of every event of every device, those that come later included; under the heap lock, see
 * observe/observer.h. -ENOSPC. */
int cca_allocator_add_tracker(struct cca_allocator *allocator,
                              void (*fn)(void *user, int device, const struct cca_event *event),
                              void *user) CCA_MUST_CHECK;

/* Calls `fn` with the accounts of one device, under its heap lock: it must not wait or allocate.
 * -ENODEV when the device never had a heap. */
struct cca_observer;
typedef void (*cca_observer_fn)(void *user, struct cca_observer *observer);
int cca_allocator_with_observer(struct cca_allocator *allocator, int ordinal, cca_observer_fn fn,
                                void *user);

/* A `snapshot` entry in the history of every device: a mark to look for later. */
void cca_allocator_mark(struct cca_allocator *allocator, uint32_t thread, uint32_t metadata,
                        uint64_t time_ns);

/* torch.cuda.memory._annotate_memory: an `annotate` entry for the live block that begins at `addr`,
 * with the request's metadata, stack and thread. -ENOENT: there is no such block. */
int cca_allocator_annotate(struct cca_allocator *allocator, uint64_t addr,
                           const struct cca_request *request) CCA_MUST_CHECK;

/* The stack table's id of that block's allocation; -ENOENT likewise. */
int cca_allocator_stack_of(struct cca_allocator *allocator, uint64_t addr,
                           uint32_t *stack_out) CCA_MUST_CHECK;

/* The driver's own figures of a device, now. Makes a driver call, with no lock held. -ENODEV: its
 * context is not up; -EBUSY: the heap's lock was not free within `wait_ms`; -EIO. */
int cca_allocator_device_memory(struct cca_allocator *allocator, int ordinal, unsigned wait_ms,
                                size_t *free_out, size_t *total_out) CCA_MUST_CHECK;

/* Bit i: device i has or had a heap. */
uint64_t cca_allocator_device_mask(const struct cca_allocator *allocator);

/* Bit i: the context in slot i is up. Lock-free. */
uint64_t cca_allocator_up_mask(const struct cca_allocator *allocator);

/* Around fork: every lock in rank order, and back. In the child nothing is served any more; child
 * makes all locks free. */
void cca_allocator_fork_prepare(struct cca_allocator *allocator);
void cca_allocator_fork_parent(struct cca_allocator *allocator);
void cca_allocator_fork_child(struct cca_allocator *allocator);

#endif
