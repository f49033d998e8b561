/* SPDX-License-Identifier: MIT */
#include "snapshot/symbolize.h"

#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "snapshot/demangle.h"
#include "snapshot/elf_symbols.h"
#include "snapshot/idmap.h"
#include "snapshot/sort.h"

enum { NAME_BYTES = 2048 };

typedef int (*stack_fn)(void *user, uint32_t *stack);

/* Calls `each` for every non-zero `stack` field until it fails. */
static int for_each_stack(struct cca_model *model, stack_fn each, void *user)
{
    int rc = 0;

    for (size_t d = 0; d < model->device_count; d++) {
        struct cca_model_device *device = &model->devices[d];

        for (size_t i = 0; i < device->entry_count && rc == 0; i++) {
            rc = device->entries[i].stack != 0 ? each(user, &device->entries[i].stack) : 0;
        }
    }
    for (size_t i = 0; i < model->segment_count && rc == 0; i++) {
        rc = model->segments[i].stack != 0 ? each(user, &model->segments[i].stack) : 0;
    }
    for (size_t i = 0; i < model->block_count && rc == 0; i++) {
        rc = model->blocks[i].stack != 0 ? each(user, &model->blocks[i].stack) : 0;
    }
    return rc;
}

struct collection {
    struct cca_model *model;
    const struct cca_stack_table *table;
    struct cca_idmap numbers; /* table id -> final number */
    struct cca_idmap frames;  /* frame_key -> 1 + index of the frame */
    uint32_t stack_count;
};

/* First pass: numbers the stacks, counts their frames. */
static int count_stack(void *user, uint32_t *stack)
{
    struct collection *all = user;
    uint32_t *number = cca_idmap_at(&all->numbers, *stack);
    int depth;

    if (number == NULL) {
        return -ENOMEM;
    }
    if (*number == 0) {
        (void)cca_stack_table_get(all->table, *stack, &depth);
        *number = ++all->stack_count;
        all->model->stack_frame_count += (size_t)depth;
    }
    return 0;
}

/* User addresses leave the upper bits free. */
enum { LIFE_SHIFT = 48 };

static uint64_t frame_key(const struct cca_places *places, uint64_t pc, uint32_t stack)
{
    if (pc == 0) {
        return UINT64_MAX;
    }
    return cca_places_are_unsure(places, pc)
               ? pc | (uint64_t)(cca_places_find(places, pc, stack) + 1) << LIFE_SHIFT
               : pc;
}

static int add_frames(struct collection *all, struct cca_model_stack *stack, uint32_t id)
{
    struct cca_model *model = all->model;
    int depth;
    const uintptr_t *pcs = cca_stack_table_get(all->table, id, &depth);

    stack->first = model->stack_frame_count;
    for (int i = 0; i < depth; i++) {
        uint32_t *frame = cca_idmap_at(&all->frames, frame_key(&model->places, pcs[i], id));

        if (frame == NULL) {
            return -ENOMEM;
        }
        if (*frame == 0) {
            model->frames[model->frame_count].address = pcs[i];
            model->frames[model->frame_count].life = cca_places_find(&model->places, pcs[i], id);
            *frame = (uint32_t)++model->frame_count;
        }
        model->stack_frames[model->stack_frame_count++] = *frame - 1;
        stack->count++;
    }
    return 0;
}

/* Second pass: fills the stacks and puts the final numbers. */
static int number_stack(void *user, uint32_t *stack)
{
    struct collection *all = user;
    uint32_t *number = cca_idmap_at(&all->numbers, *stack);

    if (number == NULL) {
        return -ENOMEM;
    }
    if (*number > all->model->stack_count) {
        /* Numbers were given in this same order. */
        int rc = add_frames(all, &all->model->stacks[all->model->stack_count], *stack);

        if (rc != 0) {
            return rc;
        }
        all->model->stack_count++;
    }
    *stack = *number;
    return 0;
}

static int forget_stack(void *user, uint32_t *stack)
{
    (void)user;
    *stack = 0;
    return 0;
}

static int collect(struct cca_model *model, const struct cca_stack_table *table)
{
    struct collection all = {.model = model, .table = table};
    int rc;

    cca_idmap_init(&all.numbers, &model->arena);
    cca_idmap_init(&all.frames, &model->arena);
    rc = for_each_stack(model, count_stack, &all);
    if (rc != 0) {
        return rc;
    }
    model->stacks = cca_model_array(model, all.stack_count, sizeof(*model->stacks));
    model->stack_frames = cca_model_array(model, model->stack_frame_count,
                                          sizeof(*model->stack_frames));
    model->frames = cca_model_array(model, model->stack_frame_count, sizeof(*model->frames));
    if (model->stacks == NULL || model->stack_frames == NULL || model->frames == NULL) {
        return -ENOMEM;
    }
    model->stack_frame_count = 0;
    return for_each_stack(model, number_stack, &all);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* "0x7f..." or "library.so+0x12"; a frame without a name of its own. */
static const char *offset_name(struct cca_model *model, const struct cca_module *module,
                               uint64_t address)
{
    char buf[320];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf));
    if (module != NULL) {
        cca_text_str(&text, file_name(module->path));
        cca_text_char(&text, '+');
        address -= module->base;
    }
    cca_text_hex(&text, address);
    return cca_model_text(model, buf);
}

static const char *readable_name(struct cca_model *model, const char *name)
{
    char buf[NAME_BYTES];

    return cca_demangle(name, buf, sizeof(buf)) ? cca_model_text(model, buf) : name;
}

static int compare_queries(const void *a, const void *b)
{
    const struct cca_symbol_query *left = a, *right = b;

    if (left->module != right->module) {
        return (left->module > right->module) - (left->module < right->module);
    }
    return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* What was taken down when the module was unloaded. */
static void use_taken_names(const struct cca_model *model, struct cca_symbol_query *queries,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct cca_model_frame *frame = &model->frames[queries[i].frame];

        queries[i].name = cca_module_life_name(&model->places.lives[frame->life], frame->address);
    }
}

/* A file whose build is not known may be another one by now. */
static bool may_read_file(const struct cca_module *module)
{
    return !module->is_unloaded || module->build_id_len != 0;
}

/* Names the frames of `count` queries that lie in one module, or in none. */
static void name_frames(struct cca_model *model, const struct cca_module *module,
                        struct cca_symbol_query *queries, size_t count, bool with_names)
{
    if (module != NULL && with_names) {
        for (size_t i = 0; i < count; i++) {
            queries[i].vaddr -= module->base;
        }
        if (module->is_unloaded) {
            use_taken_names(model, queries, count);
        }
        if (may_read_file(module)) {
            cca_elf_symbols_find(module, queries, count, &model->arena);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct cca_model_frame *frame = &model->frames[queries[i].frame];

        frame->filename = module != NULL ? module->path : "[unknown]";
        frame->name = queries[i].name != NULL
                          ? readable_name(model, queries[i].name)
                          : offset_name(model, with_names ? module : NULL, frame->address);
    }
}

/* The module a frame was in. What no log tells of is where it is now. */
static const struct cca_module *module_of(const struct cca_model *model,
                                          const struct cca_model_frame *frame)
{
    if (frame->life >= 0) {
        return &model->places.lives[frame->life].module;
    }
    return model->places.is_complete ? NULL : cca_modules_find(&model->modules, frame->address - 1);
}

static int keep_gone(struct cca_model *model, const struct cca_module *module)
{
    if (module == NULL || !module->is_unloaded) {
        return 0;
    }
    if (model->gone == NULL) {
        model->gone = cca_model_array(model, model->places.count, sizeof(*model->gone));
    }
    if (model->gone == NULL) {
        return -ENOMEM;
    }
    model->gone[model->gone_count++] = module;
    return 0;
}

static int resolve(struct cca_model *model, bool with_names)
{
    struct cca_symbol_query *queries = cca_model_array(model, model->frame_count, sizeof(*queries));
    size_t first = 0;

    if (queries == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < model->frame_count; i++) {
        /* A return address may lie behind a call that ends its function. */
        queries[i].vaddr = model->frames[i].address - 1;
        queries[i].frame = (uint32_t)i;
        queries[i].module = module_of(model, &model->frames[i]);
    }
    cca_sort(queries, model->frame_count, sizeof(*queries), compare_queries);
    while (first < model->frame_count) {
        const struct cca_module *module = queries[first].module;
        size_t next = first + 1;

        while (next < model->frame_count && queries[next].module == module) {
            next++;
        }
        if (keep_gone(model, module) != 0) {
            return -ENOMEM;
        }
        name_frames(model, module, queries + first, next - first, with_names);
        first = next;
    }
    return 0;
}

int cca_symbolize_model(struct cca_model *model, const struct cca_stack_table *table,
                        struct cca_module_log *log, bool with_names)
{
    int rc = model->modules.list != NULL ? 0 : cca_modules_list(&model->modules, &model->arena);

    model->symbolized = with_names ? "names" : "none";
    if (rc != 0) {
        model->modules = (struct cca_modules){0};
    }
    if (rc == 0) {
        rc = cca_places_init(&model->places, log, &model->arena);
    }
    if (rc == 0) {
        rc = collect(model, table);
    }
    if (rc == 0) {
        rc = resolve(model, with_names);
    }
    if (rc != 0) {
        (void)for_each_stack(model, forget_stack, NULL);
        model->stack_count = model->frame_count = model->stack_frame_count = 0;
        model->gone_count = 0;
    }
    return rc;
}
