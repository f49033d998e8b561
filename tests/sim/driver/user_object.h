/* SPDX-License-Identifier: MIT */
/* User objects: counted things of the program that graphs keep alive. When the last reference goes,
 * the program's function is called on the thread of host functions. */
#ifndef SIM_USER_OBJECT_H
#define SIM_USER_OBJECT_H

#include <cuda.h>

/* References that a graph owns, one element for each object. */
struct sim_user_reference {
    struct sim_user_reference *next;
    CUuserObject object;
    unsigned count;
};

/* The copy owns as many. */
struct sim_user_reference *sim_user_references_copy(const struct sim_user_reference *from);
void sim_user_references_drop(struct sim_user_reference *references);

#endif
