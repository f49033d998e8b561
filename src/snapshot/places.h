/* SPDX-License-Identifier: MIT */
/* Which module a return address of a stack lay in, when the stack was taken. */
#ifndef CCA_SNAPSHOT_PLACES_H
#define CCA_SNAPSHOT_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/sysmem.h"
#include "observe/module_log.h"
#include "observe/modules.h"

struct cca_places {
    struct cca_module_life *lives; /* ascending by start */
    uint64_t *ends;                /* [i]: the highest end among lives[0..i] */
    size_t count;
    uint64_t unsure_start, unsure_end; /* outside, the address alone tells the module */
    bool is_complete;                  /* every module of a stack is among the lives */
};

/* Copies what the log knows into the arena; NULL: nothing is known. -ENOMEM. */
int cca_places_init(struct cca_places *places, struct cca_module_log *log,
                    struct cca_arena *arena) CCA_MUST_CHECK;

/* Whether something that was unloaded had been at this return address. */
static inline bool cca_places_are_unsure(const struct cca_places *places, uint64_t pc)
{
    return pc > places->unsure_start && pc <= places->unsure_end;
}

/* The life that a return address of the stack is in, by its index; -1: none. */
int cca_places_find(const struct cca_places *places, uint64_t pc, uint32_t stack);

#endif
