/* SPDX-License-Identifier: MIT */
/* Arrays: device memory that programs reach by a handle. Elements lie row after row; the layout a
 * device would choose is nobody's business. */
#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include "block.h"

/* Heights and depths of 0 count as 1 in the numbers here, not in the description. */
struct CUarray_st {
    unsigned magic;
    CUDA_ARRAY3D_DESCRIPTOR description;
    size_t element_bytes;
    size_t row_bytes;
    size_t height;
    size_t depth;
    struct sim_block *block;
    /* One level of a mipmapped array: it ends with that alone. */
    bool is_level;
    struct CUarray_st *older;
};

/* Ends the array as cuMemFree ends memory: waits for its context, and for nothing twice. */
void sim_array_end(struct CUarray_st *array);
/* NULL: not an array, or none that lives. */
struct CUarray_st *sim_array_of(CUarray handle);

#endif
