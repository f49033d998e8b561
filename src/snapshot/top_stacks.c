/* SPDX-License-Identifier: MIT */
#include "snapshot/top_stacks.h"

#include <string.h>

#include "base/format.h"
#include "snapshot/sort.h"

static int compare_holders(const void *a, const void *b)
{
    const struct cca_holder *left = a, *right = b;

    if (left->bytes != right->bytes) {
        return left->bytes > right->bytes ? -1 : 1;
    }
    return (left->stack > right->stack) - (left->stack < right->stack);
}

static void add_block(struct cca_holder *holder, const struct cca_model_block *block,
                      uint64_t mark_ns)
{
    holder->bytes += block->size;
    holder->blocks++;
    if (mark_ns != 0 && block->alloc_time_ns >= mark_ns) {
        holder->marked_bytes += block->size;
        holder->marked_blocks++;
    }
    if (holder->oldest_ns == 0 || block->alloc_time_ns < holder->oldest_ns) {
        holder->oldest_ns = block->alloc_time_ns;
    }
}

static void sum_segment(const struct cca_model *model, const struct cca_model_segment *segment,
                        struct cca_holder *holders)
{
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct cca_model_block *block = &model->blocks[segment->first_block + i];
        bool is_known = cca_model_stack_of(model, block->stack) != NULL;

        if (block->state == CCA_MODEL_ALLOCATED) {
            add_block(&holders[is_known ? block->stack : 0], block, model->mark_ns);
        }
    }
}

struct cca_holder *cca_top_stacks(struct cca_model *model, int device, size_t *count_out)
{
    size_t count = model->stack_count + 1, used = 0;
    struct cca_holder *holders = cca_model_array(model, count, sizeof(*holders));

    if (holders == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        holders[i].stack = (uint32_t)i;
    }
    for (size_t i = 0; i < model->segment_count; i++) {
        if (device < 0 || model->segments[i].device == device) {
            sum_segment(model, &model->segments[i], holders);
        }
    }
    cca_sort(holders, count, sizeof(*holders), compare_holders);
    while (used < count && holders[used].blocks > 0) {
        used++;
    }
    *count_out = used;
    return holders;
}

void cca_top_stacks_describe(const struct cca_model *model, uint32_t number, size_t max,
                             struct cca_text *text)
{
    const struct cca_model_stack *stack = cca_model_stack_of(model, number);

    if (stack == NULL || stack->count == 0) {
        cca_text_str(text, "(no call stack)");
        return;
    }
    for (size_t i = 0; i < stack->count && i < max; i++) {
        const struct cca_model_frame *frame = &model->frames[model->stack_frames[stack->first + i]];

        cca_text_str(text, i > 0 ? " < " : "");
        cca_text_str(text, frame->name);
        if (frame->line > 0) {
            const char *slash = strrchr(frame->filename, '/');

            cca_text_str(text, " (");
            cca_text_str(text, slash != NULL ? slash + 1 : frame->filename);
            cca_text_char(text, ':');
            cca_text_i64(text, frame->line);
            cca_text_char(text, ')');
        }
    }
    if (stack->count > max) {
        cca_text_str(text, " < ...");
    }
}
