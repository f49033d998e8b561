/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include "access.h"
#include "block.h"
#include "call.h"
#include "config.h"
#include "context.h"
#include "defect.h"
#include "run.h"
#include "timeline.h"

#include <stdlib.h>

static struct sim_op *pending_head;
static unsigned pending_count;
static struct sim_queue **slots;
static unsigned slot_count;
static uint64_t *slot_numbers;

static void append(struct sim_op ***list, unsigned *count, struct sim_op *op)
{
    /* Grows at powers of two, so the count alone tells the room. */
    if ((*count & (*count - 1)) == 0) {
        *list = realloc(*list, (*count == 0 ? 1 : *count * 2) * sizeof(**list));
    }
    (*list)[(*count)++] = op;
}

struct sim_queue *sim_queue_create(struct CUctx_st *context, bool is_nonblocking, bool is_legacy)
{
    static unsigned long long next_id = 1;
    struct sim_queue *queue = calloc(1, sizeof(*queue));
    unsigned slot = 0;

    while (slot < slot_count && slots[slot] != NULL) {
        slot++;
    }
    if (slot == slot_count) {
        slots = realloc(slots, (slot_count + 1) * sizeof(struct sim_queue *));
        slot_numbers = realloc(slot_numbers, (slot_count + 1) * sizeof(*slot_numbers));
        slot_numbers[slot] = 0;
        slot_count++;
    }
    slots[slot] = queue;
    queue->slot = slot;
    queue->last_number = slot_numbers[slot];
    queue->id = SIM_DEFECT(stream_ids_come_again) ? next_id++ % 2 + 1 : next_id++;
    queue->context = context;
    queue->is_nonblocking = is_nonblocking;
    queue->is_legacy = is_legacy;
    queue->next = context->queues;
    context->queues = queue;
    sim_clock_join(&queue->clock, &context->floor_clock);
    if (context->floor != NULL) {
        queue->tail = context->floor;
        sim_op_hold(queue->tail);
    }
    return queue;
}

void sim_queue_orphan(struct sim_queue *queue)
{
    queue->is_orphan = true;
    sim_queue_reap(queue->context);
}

void sim_queue_reap(struct CUctx_st *context)
{
    struct sim_queue **link = &context->queues;

    while (*link != NULL) {
        struct sim_queue *queue = *link;
        if (!queue->is_orphan || !sim_queue_is_done(queue) ||
            !sim_clock_has(&sim_host_clock, queue->slot, queue->last_number)) {
            link = &queue->next;
            continue;
        }
        *link = queue->next;
        slots[queue->slot] = NULL;
        slot_numbers[queue->slot] = queue->last_number;
        sim_op_drop(queue->tail);
        sim_clock_fini(&queue->clock);
        free(queue->capture_nodes);
        free(queue);
    }
}

struct sim_op *sim_op_create(struct sim_queue *queue, const char *name)
{
    struct sim_op *op = calloc(1, sizeof(*op));

    op->references = 1;
    op->name = name;
    op->queue = queue;
    sim_site_take(&op->site);
    return op;
}

void sim_op_hold(struct sim_op *op)
{
    op->references++;
}

static void release_waits(struct sim_op *op)
{
    for (unsigned i = 0; i < op->waits_for_count; i++) {
        sim_op_drop(op->waits_for[i]);
    }
    free(op->waits_for);
    op->waits_for = NULL;
    op->waits_for_count = 0;
}

void sim_op_drop(struct sim_op *op)
{
    if (op == NULL || --op->references != 0) {
        return;
    }
    release_waits(op);
    for (unsigned i = 0; i < op->range_count; i++) {
        if (op->ranges[i].block != NULL) {
            sim_block_drop(op->ranges[i].block);
        }
    }
    if (op->drop != NULL) {
        op->drop(op);
    }
    free(op->ranges);
    free(op->followers);
    sim_clock_fini(&op->clock);
    free(op);
}

void sim_op_wait_for(struct sim_op *op, struct sim_op *other)
{
    if (other == NULL) {
        return;
    }
    if (other->state == SIM_OP_DONE) {
        if (op->start_ns < other->end_ns) {
            op->start_ns = other->end_ns;
        }
        return;
    }
    append(&op->waits_for, &op->waits_for_count, other);
    sim_op_hold(other);
    append(&other->followers, &other->follower_count, op);
    sim_op_hold(op);
    op->unmet++;
}

/* The order among streams: the legacy stream waits for all blocking ones and they wait for it. */
static void order_with_others(struct sim_queue *queue, struct sim_op *op)
{
    if (queue->is_legacy) {
        for (struct sim_queue *other = queue->context->queues; other != NULL; other = other->next) {
            if (other != queue && !other->is_nonblocking && !SIM_DEFECT(legacy_does_not_wait)) {
                sim_op_wait_for(op, other->tail);
                sim_clock_join(&queue->clock, &other->clock);
            }
        }
    } else if (!queue->is_nonblocking && queue->context->legacy != NULL &&
               !SIM_DEFECT(nobody_waits_for_legacy)) {
        sim_op_wait_for(op, queue->context->legacy->tail);
        sim_clock_join(&queue->clock, &queue->context->legacy->clock);
    }
}

static void link_pending(struct sim_op *op)
{
    op->next_pending = pending_head;
    if (pending_head != NULL) {
        pending_head->previous_pending = op;
    }
    pending_head = op;
    pending_count++;
}

static void unlink_pending(struct sim_op *op)
{
    if (op->previous_pending != NULL) {
        op->previous_pending->next_pending = op->next_pending;
    } else {
        pending_head = op->next_pending;
    }
    if (op->next_pending != NULL) {
        op->next_pending->previous_pending = op->previous_pending;
    }
    op->previous_pending = NULL;
    op->next_pending = NULL;
    pending_count--;
}

static void note(const struct sim_op *op)
{
    for (unsigned i = 0; i < op->range_count; i++) {
        const struct sim_range *range = &op->ranges[i];
        enum sim_happening what = range->is_birth   ? SIM_HAPPENS_BIRTH
                                  : range->is_end   ? SIM_HAPPENS_END
                                  : range->is_write ? SIM_HAPPENS_WRITE
                                                    : SIM_HAPPENS_READ;
        sim_timeline_add(what, op->name, op->queue->id, range->address,
                         range->address + range->size_bytes +
                             (range->rows - 1) * range->pitch_bytes + (range->size_bytes == 0));
    }
    if (op->range_count == 0) {
        sim_timeline_add(SIM_HAPPENS_STEP, op->name, op->queue->id, 0, 0);
    }
}

void sim_enqueue(struct sim_op *op)
{
    struct sim_queue *queue = op->queue;

    sim_op_wait_for(op, queue->tail);
    order_with_others(queue, op);
    sim_clock_join(&queue->clock, &sim_host_clock);
    op->number = ++queue->last_number;
    note(op);
    sim_access_check(op);
    sim_clock_set(&queue->clock, queue->slot, op->number);
    if (op->is_host_function) {
        sim_clock_join(&op->clock, &queue->clock);
    }
    sim_op_drop(queue->tail);
    queue->tail = op;
    sim_op_hold(op);
    link_pending(op);
    if (op->start_ns < sim_now_ns()) {
        op->start_ns = sim_now_ns();
    }
    if (op->unmet == 0) {
        sim_run_ready(op, true);
    }
}

void sim_op_finish(struct sim_op *op)
{
    op->state = SIM_OP_DONE;
    unlink_pending(op);
    if (op->is_host_function) {
        sim_clock_join(&sim_host_clock, &op->clock);
    }
    for (unsigned i = 0; i < op->follower_count; i++) {
        struct sim_op *follower = op->followers[i];
        if (follower->start_ns < op->end_ns) {
            follower->start_ns = op->end_ns;
        }
        if (--follower->unmet == 0 && follower->number != 0) {
            sim_run_ready(follower, false);
        }
        sim_op_drop(follower);
    }
    op->follower_count = 0;
    release_waits(op);
    sim_op_drop(op);
}

bool sim_queue_is_done(const struct sim_queue *queue)
{
    return queue->tail == NULL || queue->tail->state == SIM_OP_DONE;
}

bool sim_queue_is_idle(const struct sim_queue *queue)
{
    if (!sim_queue_is_done(queue)) {
        return false;
    }
    if (queue->is_legacy) {
        for (struct sim_queue *other = queue->context->queues; other != NULL; other = other->next) {
            if (!other->is_nonblocking && !sim_queue_is_done(other)) {
                return false;
            }
        }
    } else if (!queue->is_nonblocking && queue->context->legacy != NULL) {
        return sim_queue_is_done(queue->context->legacy);
    }
    return true;
}

void sim_queue_join(const struct sim_queue *queue, struct sim_clock *clock)
{
    sim_clock_join(clock, &queue->clock);
    if (queue->is_legacy) {
        for (struct sim_queue *other = queue->context->queues; other != NULL; other = other->next) {
            if (!other->is_nonblocking) {
                sim_clock_join(clock, &other->clock);
            }
        }
    }
}

/* Waits for the tails of some queues of a context: all, those of a green one, or those the legacy
 * stream stands for. */
static void wait_tails(struct CUctx_st *context, bool is_all, const struct CUgreenCtx_st *green)
{
    struct sim_clock seen = {0};
    struct sim_op **tails = NULL;
    unsigned count = 0;

    for (struct sim_queue *queue = context->queues; queue != NULL; queue = queue->next) {
        if ((!is_all && queue->is_nonblocking) || (green != NULL && queue->green != green)) {
            continue;
        }
        sim_clock_join(&seen, &queue->clock);
        if (!sim_queue_is_done(queue)) {
            append(&tails, &count, queue->tail);
            sim_op_hold(queue->tail);
        }
    }
    sim_wait_many(tails, count);
    sim_timeline_add(SIM_HAPPENS_WAIT, sim_call_name(), 0, 0, 0);
    for (unsigned i = 0; i < count; i++) {
        sim_op_drop(tails[i]);
    }
    free(tails);
    sim_clock_join(&sim_host_clock, &seen);
    sim_clock_fini(&seen);
    sim_queue_reap(context);
}

void sim_wait_queue(struct sim_queue *queue)
{
    struct sim_clock seen = {0};
    unsigned long long id = queue->id;

    if (queue->is_legacy) {
        wait_tails(queue->context, false, NULL);
        return;
    }
    sim_clock_join(&seen, &queue->clock);
    struct sim_op *tail = queue->tail;
    if (tail != NULL) {
        sim_op_hold(tail);
        sim_wait(tail);
        sim_op_drop(tail);
    }
    if (!SIM_DEFECT(synchronising_does_not_order)) {
        sim_clock_join(&sim_host_clock, &seen);
    }
    sim_timeline_add(SIM_HAPPENS_WAIT, sim_call_name(), id, 0, 0);
    sim_clock_fini(&seen);
}

void sim_wait_context(struct CUctx_st *context)
{
    wait_tails(context, true, NULL);
}

void sim_wait_green(struct CUctx_st *context, const struct CUgreenCtx_st *green)
{
    wait_tails(context, true, green);
}

struct sim_op *sim_pending_first(void)
{
    return pending_head;
}

unsigned sim_pending(void)
{
    return pending_count;
}
