/* SPDX-License-Identifier: MIT */
/* Time: queues of operations, what each waits for, and when it runs. All under the lock of call.h.
 *
 * Real time: an operation runs when its delay after the last thing it waited for is over, on the
 * one executor thread; one that waits for nothing and takes no time runs in the caller at once.
 * Host functions run on a thread of their own, one at a time, and hold up nothing else.
 * Virtual time: an operation runs when somebody waits for it or for one after it, in an order drawn
 * from a seed; no thread, no sleeping. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "clock.h"
#include "site.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUgraphNode_st;
struct sim_block;

/* size_bytes of each of rows rows, pitch_bytes apart. payload is where the bytes are, for blocks
 * and for host memory alike; block is NULL for memory CUDA does not know. With no bytes, all that
 * matters is that the block lives. */
struct sim_range {
    uint64_t address;
    size_t size_bytes;
    size_t pitch_bytes;
    size_t rows;
    bool is_write;
    bool is_birth;
    bool is_end;
    char *payload;
    struct sim_block *block;
};

enum sim_op_state { SIM_OP_WAITING, SIM_OP_READY, SIM_OP_RUNNING, SIM_OP_DONE };

/* unmet counts the operations in waits_for that are not done. An operation is in the list of
 * pending ones from enqueue to done. */
struct sim_op {
    unsigned references;
    enum sim_op_state state;
    const char *name;
    struct sim_site site;
    struct sim_queue *queue;
    uint64_t number;
    uint64_t delay_ns;
    uint64_t start_ns;
    uint64_t end_ns;
    bool is_host_function;
    /* The context's own device reads and writes, not a copy engine. */
    bool is_by_processors;
    bool is_marked;
    bool is_broken;
    /* Only its ranges are wanted; what is wrong with them is not reported. */
    bool is_silent;
    unsigned unmet;
    struct sim_op **waits_for;
    unsigned waits_for_count;
    struct sim_op **followers;
    unsigned follower_count;
    struct sim_op *previous_pending;
    struct sim_op *next_pending;
    unsigned heap_index;
    struct sim_op *next_host;
    struct sim_clock clock;
    struct sim_range *ranges;
    unsigned range_count;
    /* Nothing runs when is_broken: a range was not live. run does the work; drop releases data. A
     * host function's run goes without the lock. When run has set is_unfinished, it is called again
     * after another delay_ns. */
    void (*run)(struct sim_op *op);
    bool is_unfinished;
    /* May it run yet? Asked again and again; NULL: it may. */
    bool (*is_due)(const struct sim_op *op);
    void (*drop)(struct sim_op *op);
    void *data;
    uint64_t value;
    unsigned value_bytes;
    unsigned extra;
};

/* One stream's work, or a context's marks. It outlives the stream's handle until its work is over
 * and known to be: its slot may not stand for other work before that. */
struct sim_queue {
    struct CUctx_st *context;
    struct CUgreenCtx_st *green;
    struct sim_queue *next;
    unsigned slot;
    unsigned long long id;
    bool is_nonblocking;
    bool is_legacy;
    bool is_orphan;
    struct sim_capture *capture;
    /* In a capture: what the next node comes after. */
    struct CUgraphNode_st **capture_nodes;
    size_t capture_node_count;
    uint64_t last_number;
    struct sim_op *tail;
    struct sim_clock clock;
};

struct sim_queue *sim_queue_create(struct CUctx_st *context, bool is_nonblocking, bool is_legacy);
/* The stream is gone; the queue goes when it may. */
void sim_queue_orphan(struct sim_queue *queue);
/* Frees the orphans of a context whose work is known to be over. */
void sim_queue_reap(struct CUctx_st *context);

/* A new operation for a queue, held once by the caller; enqueue passes that on to the engine. */
struct sim_op *sim_op_create(struct sim_queue *queue, const char *name);
void sim_op_wait_for(struct sim_op *op, struct sim_op *other);
void sim_op_hold(struct sim_op *op);
void sim_op_drop(struct sim_op *op);
/* Puts it at the end of a queue, with the order that streams keep among each other, checks its
 * ranges against what is unordered with it, and runs it if it can run at once. */
void sim_enqueue(struct sim_op *op);
/* Would an operation put into the queue now run before enqueue returns? */
bool sim_queue_is_idle(const struct sim_queue *queue);

/* Waits until the operations are done; the caller holds them. Lets go of the lock. */
void sim_wait(struct sim_op *op);
void sim_wait_many(struct sim_op *const *ops, unsigned count);
/* Waits for all work so far, and takes its end for known. */
void sim_wait_queue(struct sim_queue *queue);
void sim_wait_context(struct CUctx_st *context);
/* That of one green context alone; NULL: of all of the context. */
void sim_wait_green(struct CUctx_st *context, const struct CUgreenCtx_st *green);
bool sim_queue_is_done(const struct sim_queue *queue);
/* Joins what the queue holds now into a clock. A legacy queue stands for all blocking ones of its
 * context. */
void sim_queue_join(const struct sim_queue *queue, struct sim_clock *clock);
/* A query was made: in virtual time this may run one operation, if SIMCUDA_VIRTUAL_PROGRESS. */
void sim_query_progress(void);

void sim_set_virtual(bool is_virtual);
void sim_advance_all(void);
unsigned sim_pending(void);
uint64_t sim_now_ns(void);
/* The same seed gives the same numbers from then on. */
void sim_seed(uint64_t seed);
uint64_t sim_random(void);

#endif
