/* SPDX-License-Identifier: MIT */
#include "snapshot/size.h"

#include <string.h>

/* What one takes, without texts, as measured: see test_size.c. */
enum {
    PICKLE_REST = 16000,
    PICKLE_ENTRY = 73,
    PICKLE_BLOCK = 60,
    PICKLE_FRAME = 70,
    PICKLE_FRAME_USE = 3,
    PICKLE_MODULE = 120,
    JSON_REST = 19000,
    JSON_ENTRY = 201,
    JSON_BLOCK = 155,
    JSON_SEGMENT = 330,
    JSON_FRAME = 56,
    JSON_MODULE = 190,
    TEXT_DEVICE = 8000
};

static uint64_t texts_of(const struct cca_model_frame *frame)
{
    return (frame->name != NULL ? strlen(frame->name) : 0) +
           (frame->filename != NULL ? strlen(frame->filename) : 0);
}

static uint64_t count_entries(const struct cca_model *model)
{
    uint64_t entries = 0;

    for (size_t i = 0; i < model->device_count; i++) {
        entries += model->devices[i].entry_count;
    }
    return entries;
}

uint64_t cca_size_of_pickle(const struct cca_model *model)
{
    uint64_t bytes = PICKLE_REST + count_entries(model) * PICKLE_ENTRY +
                     (model->block_count + model->segment_count * 3) * PICKLE_BLOCK +
                     model->modules.count * PICKLE_MODULE +
                     model->stack_frame_count * PICKLE_FRAME_USE;

    for (size_t i = 0; i < model->frame_count; i++) {
        bytes += PICKLE_FRAME + texts_of(&model->frames[i]);
    }
    return bytes;
}

static uint64_t json_of_stack(const struct cca_model *model, uint32_t number)
{
    const struct cca_model_stack *stack = cca_model_stack_of(model, number);
    uint64_t bytes = 0;

    for (size_t i = 0; stack != NULL && i < stack->count; i++) {
        bytes += JSON_FRAME + texts_of(&model->frames[model->stack_frames[stack->first + i]]);
    }
    return bytes;
}

uint64_t cca_size_of_json(const struct cca_model *model)
{
    uint64_t bytes = JSON_REST + model->modules.count * JSON_MODULE;

    for (size_t d = 0; d < model->device_count; d++) {
        const struct cca_model_device *device = &model->devices[d];

        for (size_t i = 0; i < device->entry_count; i++) {
            bytes += JSON_ENTRY + json_of_stack(model, device->entries[i].stack);
        }
    }
    for (size_t i = 0; i < model->segment_count; i++) {
        bytes += JSON_SEGMENT + json_of_stack(model, model->segments[i].stack);
    }
    for (size_t i = 0; i < model->block_count; i++) {
        bytes += JSON_BLOCK + json_of_stack(model, model->blocks[i].stack);
    }
    return bytes;
}

uint64_t cca_size_of_text(const struct cca_model *model)
{
    return model->device_count * TEXT_DEVICE;
}
