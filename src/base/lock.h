/* SPDX-License-Identifier: MIT */
/* A mutex with a rank. A thread takes locks in ascending rank only; debug builds check it. Heaps
 * have consecutive ranks (CCA_RANK_HEAP + device), so that a snapshot can hold them all. */
#ifndef CCA_BASE_LOCK_H
#define CCA_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The order of all locks in the library, lowest first. */
enum cca_lock_rank {
    CCA_RANK_PROCESS = 10,   /* start and stop */
    CCA_RANK_DUMP = 20,      /* one snapshot at a time */
    CCA_RANK_ALLOCATOR = 30, /* the list of heaps, contexts coming up and going down */
    CCA_RANK_HEAP = 100,     /* + device ordinal, up to 63 */
    CCA_RANK_STREAMS = 170,  /* stream handle table */
    CCA_RANK_SEGMENTS = 180, /* the address map of segments */
    CCA_RANK_PTRMAP = 200,   /* + shard, up to 63 */
    CCA_RANK_EVENTS = 300,   /* pool of device events */
    CCA_RANK_MODULES = 310,  /* list of loaded objects */
    CCA_RANK_LEAF = 400
};

struct cca_lock {
    pthread_mutex_t mutex;
    int rank;
    atomic_int urgent; /* threads in cca_lock_take_urgent */
};

void cca_lock_init(struct cca_lock *lock, int rank);
void cca_lock_take(struct cca_lock *lock);
/* For the rare taker (a snapshot, a fork) beside threads that take and drop the lock without a
 * pause: they give way to it, which a plain mutex would not make them do. */
void cca_lock_take_urgent(struct cca_lock *lock);
bool cca_lock_try(struct cca_lock *lock);
void cca_lock_drop(struct cca_lock *lock);
/* Debug builds: whether this thread holds it; release builds: true. */
bool cca_lock_is_mine(const struct cca_lock *lock);
/* In a forked child: free again, whoever held it in the parent. */
void cca_lock_reset(struct cca_lock *lock);

#endif
