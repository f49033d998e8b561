/* SPDX-License-Identifier: MIT */
/* A thread that is to be cancelled must not end inside a call of ours: CUDA's calls are no
 * cancellation points, and what a call of ours has begun would never be finished. */
#ifndef CCA_BASE_CANCEL_H
#define CCA_BASE_CANCEL_H

#include <pthread.h>

/* Around system calls that are cancellation points. Returns what cca_cancel_restore takes. */
static inline int cca_cancel_hold(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cca_cancel_restore(int before)
{
    pthread_setcancelstate(before, &(int){0});
}

#endif
