/* SPDX-License-Identifier: MIT */
#include "access.h"

#include "call.h"
#include "config.h"
#include "context.h"
#include "defect.h"
#include "space.h"
#include "suspicion.h"
#include "timeline.h"
#include "word.h"

#include <stdlib.h>

#define MAX_ROWS 65536

/* By what the checks call the bytes; node.tie makes equal ones distinct. The suspect's clock is
 * NULL, or open's: what comes before the operation was not all known when it was enqueued. */
struct access {
    struct sim_node node;
    struct sim_suspect suspect;
    struct sim_clock open;
    bool is_write;
    bool is_birth;
};

static struct sim_node *accesses;
static size_t access_count;
static size_t sweep_at = 4096;

static struct sim_party party_of(const struct sim_op *op, uint64_t start, uint64_t end,
                                 bool is_write)
{
    struct sim_party party = {.name = op->name,
                              .site = op->site,
                              .stream_id = op->queue != NULL ? op->queue->id : 0,
                              .start = start,
                              .end = end,
                              .is_write = is_write};

    return party;
}

struct sim_party sim_op_party(const struct sim_op *op, const struct sim_range *range)
{
    uint64_t end = range->address + (range->rows - 1) * range->pitch_bytes + range->size_bytes;

    return party_of(op, range->address, end, range->is_write);
}

void sim_op_add_range(struct sim_op *op, struct sim_range range)
{
    /* Grows at powers of two, so the count alone tells the room. */
    if ((op->range_count & (op->range_count - 1)) == 0) {
        op->ranges = realloc(op->ranges, (op->range_count == 0 ? 1 : op->range_count * 2) *
                                             sizeof(*op->ranges));
    }
    if (range.block != NULL) {
        sim_block_hold(range.block);
    }
    op->ranges[op->range_count++] = range;
}

static void report_dead(struct sim_op *op, uint64_t start, uint64_t end, bool is_write,
                        const char *why)
{
    struct sim_party party = party_of(op, start, end, is_write);

    op->is_broken = true;
    if (!op->is_silent) {
        sim_violation(op->queue != NULL ? op->queue->context : NULL, why, &party,
                      sim_timeline_end_of(start));
    }
}

/* Where the memory that begins with the block ends: mappings that lie side by side are as one. */
static uint64_t end_of_memory(const struct sim_block *block, uint64_t wanted)
{
    uint64_t end = block->node.end;
    while (block != NULL && block->kind == SIM_BLOCK_MAPPED && end < wanted) {
        block = sim_block_find(end);
        bool goes_on = block != NULL && block->kind == SIM_BLOCK_MAPPED && block->accessors != 0;
        end = goes_on ? block->node.end : end;
        block = goes_on ? block : NULL;
    }
    return end;
}

/* Memory that is mapped is open to the devices it was opened to, whatever peers a context has. */
static bool may_use(const struct sim_op *op, const struct sim_block *block)
{
    if (block->kind != SIM_BLOCK_MAPPED) {
        return true;
    }
    return op->is_by_processors && !SIM_DEFECT(access_is_for_all_devices) && op->queue != NULL
               ? (block->accessors & (1u << op->queue->context->device)) != 0
               : block->accessors != 0;
}

void sim_op_reach_rows(struct sim_op *op, uint64_t address, size_t size_bytes, size_t pitch_bytes,
                       size_t rows, bool is_write)
{
    uint64_t end = address + (rows - 1) * pitch_bytes + size_bytes;
    struct sim_block *block = sim_block_find(address);
    struct sim_range range = {.address = address,
                              .size_bytes = size_bytes,
                              .pitch_bytes = pitch_bytes,
                              .rows = rows,
                              .is_write = is_write,
                              .payload = (char *)address,
                              .block = block};

    if (size_bytes == 0 || rows == 0) {
        return;
    }
    if (block == NULL && sim_space_device_of(address) < 0) {
        sim_op_add_range(op, range);
        return;
    }
    if (block == NULL || (sim_block_is_on_device(block) && end > end_of_memory(block, end) &&
                          !SIM_DEFECT(blocks_have_no_end))) {
        report_dead(op, address, end, is_write,
                    block == NULL ? "memory is not live" : "reaches over the end of a block");
        return;
    }
    if (!may_use(op, block)) {
        report_dead(op, address, end, is_write, "memory is mapped without access");
        return;
    }
    if (block->is_freeing && !SIM_DEFECT(freed_memory_is_used_on)) {
        report_dead(op, address, end, is_write, "memory was given to a free");
        return;
    }
    range.payload = block->payload + (address - block->node.key);
    sim_op_add_range(op, range);
}

void sim_op_reach(struct sim_op *op, uint64_t address, size_t size_bytes, bool is_write)
{
    sim_op_reach_rows(op, address, size_bytes, size_bytes, 1, is_write);
}

/* An argument that points just behind a block is the end of a range, not a use. */
void sim_op_mention(struct sim_op *op, uint64_t address)
{
    struct sim_block *block = sim_block_find(address);
    struct sim_range range = {.address = address, .rows = 1, .block = block};

    if (block == NULL) {
        if (sim_space_device_of(address) >= 0 && sim_block_find(address - 1) == NULL) {
            report_dead(op, address, address + 1, false, "argument points to memory not live");
        }
        return;
    }
    if (!sim_block_is_on_device(block)) {
        return;
    }
    if (block->is_freeing && sim_block_find(address - 1) == block) {
        report_dead(op, address, address + 1, false, "argument points to memory given to a free");
        return;
    }
    if (sim_config.is_args_checked) {
        range.size_bytes = 1;
        range.is_write = true;
    }
    range.payload = block->payload + (address - block->node.key);
    sim_op_add_range(op, range);
}

void sim_op_word(struct sim_op *op, uint64_t address, size_t size_bytes)
{
    sim_op_reach(op, address, size_bytes, true);
    if (op->range_count != 0) {
        op->ranges[op->range_count - 1].size_bytes = 0;
    }
}

void sim_op_own(struct sim_op *op, struct sim_block *block, bool is_birth)
{
    struct sim_range range = {.address = block->node.key,
                              .size_bytes = block->size_bytes,
                              .pitch_bytes = block->size_bytes,
                              .rows = 1,
                              .is_write = true,
                              .is_birth = is_birth,
                              .is_end = !is_birth,
                              .payload = block->payload,
                              .block = block};

    sim_op_add_range(op, range);
}

static void forget(struct access *access)
{
    sim_tree_remove(&accesses, &access->node);
    access_count--;
    sim_clock_fini(&access->open);
    free(access);
}

static bool is_over(const struct access *access)
{
    return sim_clock_has(&sim_host_clock, access->suspect.slot, access->suspect.number);
}

/* Drops what the host knows to be over. */
static void sweep(void)
{
    struct sim_node *node = sim_tree_ceiling(accesses, 0, 0);

    while (node != NULL) {
        struct access *access = (struct access *)node;
        struct sim_node *next = sim_tree_ceiling(accesses, node->key, node->tie + 1);
        if (is_over(access)) {
            forget(access);
        }
        node = next;
    }
    sweep_at = 2 * access_count + 4096;
}

static struct sim_suspect suspect_of(const struct sim_op *op, uint64_t start, uint64_t end,
                                     bool is_write)
{
    return (struct sim_suspect){.slot = op->queue->slot,
                                .number = op->number,
                                .clock = &op->queue->clock,
                                .party = party_of(op, start, end, is_write)};
}

static struct access *remember(const struct sim_op *op, uint64_t start, uint64_t size_bytes,
                               const struct sim_suspect *own)
{
    static uint64_t next_tie;
    struct access *access = calloc(1, sizeof(*access));

    access->node.key = start;
    access->node.end = start + size_bytes;
    access->node.tie = ++next_tie;
    access->suspect = *own;
    access->suspect.clock = NULL;
    if (sim_clock_is_open(&op->queue->clock)) {
        sim_clock_join(&access->open, &op->queue->clock);
        access->suspect.clock = &access->open;
    }
    access->is_write = own->party.is_write;
    sim_tree_insert(&accesses, &access->node);
    if (++access_count > sweep_at) {
        sweep();
    }
    return access;
}

/* What it is that two unordered operations do wrong; access is the earlier one. */
static const char *what_is_wrong(const struct access *access, const struct sim_range *range)
{
    if (range->is_birth) {
        return "two owners at once";
    }
    if (access->is_birth) {
        return "used in a stream that is not ordered after the allocation";
    }
    return range->is_end ? "freed in a stream that is not ordered after the use"
                         : "unordered overlap";
}

/* The operation and an access that it meets are not known to be ordered. If they may be found to be
 * yet, that is for later. */
static void suspect(const struct sim_op *op, struct access *access, const struct sim_suspect *own,
                    const char *what)
{
    struct CUctx_st *context = op->queue->context;

    if (sim_clock_is_open(own->clock) || sim_clock_is_open(&access->open)) {
        sim_suspicion_add(context, what, own, &access->suspect);
    } else {
        sim_violation(context, what, &own->party, &access->suspect.party);
        forget(access);
    }
}

/* [address, address + size_bytes) lies in one block; start is what the checks call its first byte.
 */
static void check_bytes(struct sim_op *op, uint64_t address, size_t size_bytes, uint64_t start,
                        const struct sim_range *range)
{
    bool is_write = range->is_write;
    uint64_t end = start + size_bytes;
    struct sim_suspect own = suspect_of(op, address, address + size_bytes, is_write);
    struct sim_node *node = sim_tree_overlap(accesses, start, end);

    while (node != NULL) {
        struct access *access = (struct access *)node;
        struct sim_node *next = sim_tree_overlap_next(accesses, node, start, end);
        bool is_own = access->suspect.slot == own.slot && access->suspect.number == own.number;
        bool is_ordered = sim_clock_has(own.clock, access->suspect.slot, access->suspect.number);
        bool is_inside = access->node.key >= start && access->node.end <= end;
        if (!is_own && !is_ordered &&
            (SIM_DEFECT(only_two_writes_meet) ? access->is_write && is_write
                                              : access->is_write || is_write)) {
            suspect(op, access, &own, what_is_wrong(access, range));
        } else if (is_ordered && is_inside && (is_write || !access->is_write)) {
            /* Whoever is unordered with that one is unordered with this one too. */
            forget(access);
        }
        node = next;
    }
    remember(op, start, size_bytes, &own)->is_birth = range->is_birth;
}

/* Mappings that lie side by side may show memory that does not. */
static void check_row(struct sim_op *op, uint64_t address, const struct sim_range *range)
{
    uint64_t end = address + range->size_bytes;
    const struct sim_block *block = range->block;

    while (block->kind == SIM_BLOCK_MAPPED && address < end) {
        const struct sim_block *at = sim_block_find(address);
        if (at == NULL) {
            return;
        }
        uint64_t part_end = at->node.end < end ? at->node.end : end;
        check_bytes(op, address, part_end - address, sim_block_identity(at, address), range);
        address = part_end;
    }
    if (address < end) {
        check_bytes(op, address, range->size_bytes, sim_block_identity(block, address), range);
    }
}

void sim_access_check(struct sim_op *op)
{
    for (unsigned i = 0; i < op->range_count; i++) {
        const struct sim_range *range = &op->ranges[i];
        if (range->block == NULL || range->size_bytes == 0 || range->rows > MAX_ROWS ||
            (range->block->kind != SIM_BLOCK_MANAGED && !sim_block_is_on_device(range->block))) {
            continue;
        }
        for (size_t row = 0; row < range->rows; row++) {
            check_row(op, range->address + row * range->pitch_bytes, range);
        }
    }
}

bool sim_access_is_live(struct sim_op *op)
{
    for (unsigned i = 0; i < op->range_count; i++) {
        const struct sim_range *range = &op->ranges[i];
        if (range->block != NULL && range->block->is_dead) {
            report_dead(op, range->address, range->address + range->size_bytes, range->is_write,
                        "memory was freed before the operation ran");
            return false;
        }
    }
    return true;
}

bool sim_access_has_died(const struct sim_op *op)
{
    for (unsigned i = 0; i < op->range_count; i++) {
        if (op->ranges[i].block != NULL && op->ranges[i].block->is_dead) {
            return true;
        }
    }
    return false;
}

static void report_in_use(const struct sim_block *block, const struct access *access)
{
    struct sim_party party = sim_party_of_call(block->node.key, block->node.end);

    sim_violation(block->context, "freed while in use", &party, &access->suspect.party);
}

/* Of a mapped block only what was done through its own addresses: the memory may go on. */
static bool is_by(const struct access *access, const struct sim_block *block)
{
    const struct sim_party *party = &access->suspect.party;

    return block->kind != SIM_BLOCK_MAPPED ||
           (party->start >= block->node.key && party->end <= block->node.end);
}

/* owner NULL: all of the bytes, and nothing is judged. */
static void forget_all(uint64_t start, uint64_t end, const struct sim_block *owner, bool is_checked)
{
    struct sim_node *node = sim_tree_overlap(accesses, start, end);

    while (node != NULL) {
        struct access *access = (struct access *)node;
        struct sim_node *next = sim_tree_overlap_next(accesses, node, start, end);
        if (owner == NULL || is_by(access, owner)) {
            if (is_checked && !access->is_birth && !is_over(access)) {
                report_in_use(owner, access);
            }
            forget(access);
        }
        node = next;
    }
    if (owner == NULL || owner->kind != SIM_BLOCK_MAPPED) {
        sim_words_forget(start, end);
    }
}

void sim_access_join_writers(uint64_t start, uint64_t end, struct sim_clock *clock)
{
    struct sim_node *node = sim_tree_overlap(accesses, start, end);

    for (; node != NULL; node = sim_tree_overlap_next(accesses, node, start, end)) {
        const struct access *access = (const struct access *)node;
        if (access->is_write) {
            sim_clock_set(clock, access->suspect.slot, access->suspect.number);
        }
    }
}

void sim_access_forget(struct sim_block *block, bool is_checked)
{
    uint64_t start = sim_block_identity(block, block->node.key);

    forget_all(start, start + block->size_bytes, block, is_checked);
}

void sim_access_forget_bytes(uint64_t start, uint64_t end)
{
    forget_all(start, end, NULL, false);
}
