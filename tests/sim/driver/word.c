/* SPDX-License-Identifier: MIT */
#include "word.h"

#include "access.h"
#include "defect.h"
#include "suspicion.h"
#include "tree.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WRITES 64

/* clock: what comes before it, itself included. */
struct write {
    uint64_t value;
    unsigned slot;
    uint64_t number;
    struct sim_clock clock;
};

/* A wait that no write has ended yet; op->data points to it. */
struct sim_word_wait {
    struct sim_word_wait *next;
    uint64_t address;
    uint64_t wanted;
    unsigned bytes;
    unsigned flags;
    unsigned slot;
    uint64_t number;
    struct sim_promise *promise;
};

/* Writes in the order in which they were enqueued. */
struct word {
    struct sim_node node;
    struct write writes[MAX_WRITES];
    unsigned write_count;
};

static struct sim_node *words;
static struct sim_word_wait *waits;

static uint64_t address_of(const struct sim_op *op)
{
    return sim_block_identity(op->ranges[0].block, op->ranges[0].address);
}

static struct word *word_at(uint64_t address)
{
    struct sim_node *node = sim_tree_floor(words, address);

    return node != NULL && node->key == address ? (struct word *)node : NULL;
}

bool sim_word_satisfies(uint64_t word, uint64_t wanted, unsigned bytes, unsigned flags)
{
    uint64_t mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;

    switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_EQ: return (word & mask) == (wanted & mask);
    case CU_STREAM_WAIT_VALUE_AND: return (word & wanted & mask) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return (~(word | wanted) & mask) != 0;
    default:
        return bytes == 8 ? (int64_t)(word - wanted) >= 0
                          : (int32_t)((uint32_t)word - (uint32_t)wanted) >= 0;
    }
}

static void remove_write(struct word *word, unsigned index)
{
    sim_clock_fini(&word->writes[index].clock);
    memmove(&word->writes[index], &word->writes[index + 1],
            (word->write_count - index - 1) * sizeof(word->writes[0]));
    word->write_count--;
}

/* What the host has seen to be over can end no later wait, but for the last of it. */
static void prune(struct word *word)
{
    while (word->write_count > 1 &&
           sim_clock_has(&sim_host_clock, word->writes[1].slot, word->writes[1].number)) {
        remove_write(word, 0);
    }
    if (word->write_count == MAX_WRITES) {
        remove_write(word, 0);
    }
}

static void unlink_wait(struct sim_word_wait *wait)
{
    struct sim_word_wait **link = &waits;

    while (*link != NULL && *link != wait) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = wait->next;
    }
}

/* Waits that this write is the first to end. One that it comes after is not among them. */
static void end_waits(uint64_t address, const struct write *write)
{
    bool is_any = false;

    for (struct sim_word_wait *wait = waits; wait != NULL; wait = wait->next) {
        if (wait->address == address && !sim_promise_is_kept(wait->promise) &&
            !sim_clock_has(&write->clock, wait->slot, wait->number) &&
            sim_word_satisfies(write->value, wait->wanted, wait->bytes, wait->flags)) {
            sim_promise_keep(wait->promise, &write->clock);
            is_any = true;
        }
    }
    if (is_any) {
        sim_suspicions_review();
    }
}

void sim_word_write(struct sim_op *op, bool has_barrier)
{
    uint64_t address = address_of(op);
    struct word *word = word_at(address);
    struct write write = {.value = op->value, .slot = op->queue->slot, .number = op->number};

    if (word == NULL) {
        word = calloc(1, sizeof(*word));
        word->node.key = address;
        word->node.end = address + 1;
        sim_tree_insert(&words, &word->node);
    }
    if (has_barrier || SIM_DEFECT(words_need_no_barrier)) {
        sim_clock_join(&write.clock, &op->queue->clock);
    }
    prune(word);
    word->writes[word->write_count++] = write;
    end_waits(address, &write);
    if (op->ranges[0].block == NULL || !sim_block_is_on_device(op->ranges[0].block)) {
        sim_clock_join(&op->clock, &write.clock);
    }
    if (op->state == SIM_OP_DONE) {
        sim_word_is_written(op);
    }
}

/* The clock is empty for a word that the host cannot read. */
void sim_word_is_written(struct sim_op *op)
{
    sim_clock_join(&sim_host_clock, &op->clock);
}

/* What comes before the wait whichever write ends it; false when none is known that may. */
static bool order_of_writes(const struct word *word, const struct sim_op *op,
                            struct sim_clock *order)
{
    const struct sim_clock *own = &op->queue->clock;
    bool is_any = false;

    for (unsigned i = word->write_count; i-- > 0;) {
        const struct write *write = &word->writes[i];
        bool is_before = sim_clock_has(own, write->slot, write->number);
        if (!sim_word_satisfies(write->value, op->value, op->value_bytes, op->extra)) {
            if (is_before) {
                break;
            }
            continue;
        }
        if (is_before) {
            /* The word may be so already: no write need come first. */
            sim_clock_fini(order);
            return true;
        }
        if (is_any && !SIM_DEFECT(any_write_orders)) {
            sim_clock_meet(order, &write->clock);
        } else {
            sim_clock_join(order, &write->clock);
        }
        is_any = true;
    }
    return is_any;
}

void sim_word_wait(struct sim_op *op)
{
    uint64_t address = address_of(op);
    const struct word *word = word_at(address);
    struct sim_clock order = {0};

    if (word != NULL && order_of_writes(word, op, &order)) {
        sim_clock_join_by_word(&op->queue->clock, &order);
        sim_clock_fini(&order);
        return;
    }
    struct sim_word_wait *wait = calloc(1, sizeof(*wait));
    *wait = (struct sim_word_wait){.next = waits,
                                   .address = address,
                                   .wanted = op->value,
                                   .bytes = op->value_bytes,
                                   .flags = op->extra,
                                   .slot = op->queue->slot,
                                   .number = op->number,
                                   .promise = sim_promise_create()};
    waits = wait;
    op->data = wait;
    sim_clock_promise(&op->queue->clock, wait->promise);
    if (op->state == SIM_OP_DONE) {
        sim_word_wait_is_over(op);
    }
}

void sim_word_wait_is_over(struct sim_op *op)
{
    struct sim_word_wait *wait = op->data;

    if (wait == NULL || sim_promise_is_kept(wait->promise)) {
        return;
    }
    struct sim_clock order = {0};
    sim_clock_join(&order, &sim_host_clock);
    sim_access_join_writers(wait->address, wait->address + wait->bytes, &order);
    sim_promise_keep(wait->promise, &order);
    sim_clock_fini(&order);
    sim_suspicions_review();
}

void sim_word_wait_drop(struct sim_op *op)
{
    struct sim_word_wait *wait = op->data;

    if (wait != NULL) {
        unlink_wait(wait);
        sim_promise_drop(wait->promise);
        free(wait);
    }
}

void sim_words_forget(uint64_t start, uint64_t end)
{
    struct sim_node *node = sim_tree_overlap(words, start, end);

    while (node != NULL) {
        struct sim_node *next = sim_tree_overlap_next(words, node, start, end);
        struct word *word = (struct word *)node;
        while (word->write_count != 0) {
            remove_write(word, word->write_count - 1);
        }
        sim_tree_remove(&words, node);
        free(word);
        node = next;
    }
}
