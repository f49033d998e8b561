/* SPDX-License-Identifier: MIT */
#include "builtin.h"

#include "access.h"
#include "conditional.h"
#include "stand_in.h"

#include <stdlib.h>
#include <string.h>

static uint64_t word(const void *argument)
{
    uint64_t value;

    memcpy(&value, argument, sizeof(value));
    return value;
}

static unsigned half(const void *argument)
{
    unsigned value;

    memcpy(&value, argument, sizeof(value));
    return value;
}

static void declare_fill(struct sim_op *op, const void *const *arguments)
{
    sim_op_reach(op, word(arguments[0]), word(arguments[1]), true);
    op->value = half(arguments[2]);
}

static void declare_fill_slow(struct sim_op *op, const void *const *arguments)
{
    declare_fill(op, arguments);
    op->delay_ns += (uint64_t)half(arguments[3]) * 1000;
}

static void run_fill(struct sim_op *op)
{
    if (op->range_count > 0) {
        memset(op->ranges[0].payload, (int)op->value, op->ranges[0].size_bytes);
    }
}

static void declare_copy(struct sim_op *op, const void *const *arguments)
{
    sim_op_reach(op, word(arguments[0]), word(arguments[2]), true);
    sim_op_reach(op, word(arguments[1]), word(arguments[2]), false);
}

static void run_copy(struct sim_op *op)
{
    if (op->range_count > 1) {
        memmove(op->ranges[0].payload, op->ranges[1].payload, op->ranges[0].size_bytes);
    }
}

static void declare_add(struct sim_op *op, const void *const *arguments)
{
    sim_op_reach(op, word(arguments[0]), word(arguments[1]) * sizeof(int), true);
    op->value = half(arguments[2]);
}

static void run_add(struct sim_op *op)
{
    if (op->range_count == 0) {
        return;
    }
    int *values = (int *)op->ranges[0].payload;
    size_t count = op->ranges[0].size_bytes / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        values[i] = (int)((unsigned)values[i] + (unsigned)op->value);
    }
}

static void declare_spin(struct sim_op *op, const void *const *arguments)
{
    op->delay_ns += (uint64_t)half(arguments[0]) * 1000;
}

static void declare_condition(struct sim_op *op, const void *const *arguments)
{
    op->data = sim_condition_of(word(arguments[0]));
    op->value = half(arguments[1]);
}

static void run_condition(struct sim_op *op)
{
    struct sim_condition *condition = op->data;

    if (condition != NULL) {
        condition->value = (unsigned)op->value;
        condition->set_count++;
    }
}

static void declare_loop(struct sim_op *op, const void *const *arguments)
{
    sim_op_reach(op, word(arguments[1]), sizeof(unsigned), true);
    op->data = sim_condition_of(word(arguments[0]));
}

static void run_loop(struct sim_op *op)
{
    struct sim_condition *condition = op->data;

    if (condition != NULL && op->range_count > 0) {
        condition->value = --*(unsigned *)op->ranges[0].payload;
        condition->set_count++;
    }
}

static const struct sim_builtin builtins[] = {
    {"sim_fill", 3, {8, 8, 4}, false, declare_fill, run_fill},
    {"sim_fill_slow", 4, {8, 8, 4, 4}, false, declare_fill_slow, run_fill},
    {"sim_copy", 3, {8, 8, 8}, false, declare_copy, run_copy},
    {"sim_add", 3, {8, 8, 4}, false, declare_add, run_add},
    {"sim_spin", 1, {4}, false, declare_spin, NULL},
    {"sim_set_condition", 2, {8, 4}, false, declare_condition, run_condition},
    {"sim_loop", 2, {8, 8}, false, declare_loop, run_loop},
};

/* Is it the name itself, or "_Z", its length, the name and the types of parameters? */
bool sim_builtin_is_named(const char *symbol, const char *name)
{
    size_t length = strlen(name);
    char *end;

    if (strcmp(symbol, name) == 0) {
        return true;
    }
    return strncmp(symbol, "_Z", 2) == 0 && strtoul(symbol + 2, &end, 10) == length &&
           strncmp(end, name, length) == 0;
}

const struct sim_builtin *sim_builtin_find(const char *name)
{
    const struct sim_builtin *stand_in = sim_stand_in_find(name);

    if (stand_in != NULL) {
        return stand_in;
    }
    for (size_t i = 0; i < sizeof(builtins) / sizeof(*builtins); i++) {
        if (sim_builtin_is_named(name, builtins[i].name)) {
            return &builtins[i];
        }
    }
    return NULL;
}

int sim_builtin_parameters(const struct sim_builtin *builtin,
                           struct sim_parameter parameters[SIM_MAX_PARAMETERS])
{
    unsigned offset = 0;

    for (int i = 0; i < builtin->parameter_count; i++) {
        unsigned size = builtin->sizes[i];
        offset = (offset + size - 1) / size * size;
        parameters[i].offset = (uint16_t)offset;
        parameters[i].size_bytes = (uint16_t)size;
        offset += size;
    }
    return builtin->parameter_count;
}
