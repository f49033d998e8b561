/* SPDX-License-Identifier: MIT */
/* A mutex with a rank. A thread takes locks in ascending rank only; debug builds check it. Heaps
 * have consecutive ranks (CCA_RANK_HEAP + device), so that a snapshot can hold them all.
 *
 * One word and a futex: locks here are held for some tens of nanoseconds, several are taken in
 * each allocation, and without a waiter each costs one atomic exchange on either side. Not fair:
 * see cca_lock_take_urgent. */
#ifndef CCA_BASE_LOCK_H
#define CCA_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"

/* The order of all locks in the library, lowest first. */
enum cca_lock_rank {
    CCA_RANK_PROCESS = 10,     /* start and stop */
    CCA_RANK_DUMP = 20,        /* one snapshot at a time */
    CCA_RANK_ALLOCATOR = 30,   /* the list of heaps, contexts coming up and going down */
    CCA_RANK_HEAP = 100,       /* + device ordinal, up to 63 */
    CCA_RANK_SEGMENTS = 180,   /* the address map of segments */
    CCA_RANK_PTRMAP = 200,     /* + shard, up to 63 */
    CCA_RANK_MODULES = 310,    /* accounts of memory that is not ours */
    CCA_RANK_MODULE_LOG = 320, /* the modules of call stacks */
    CCA_RANK_LEAF = 400
};

enum cca_lock_word { CCA_LOCK_FREE, CCA_LOCK_TAKEN, CCA_LOCK_AWAITED };

struct cca_lock {
    atomic_uint word;  /* enum cca_lock_word */
    atomic_int urgent; /* threads in cca_lock_take_urgent */
    int rank;
};

void cca_lock_init(struct cca_lock *lock, int rank);
/* For the rare taker (a snapshot, a fork) beside threads that take and drop the lock without a
 * pause: they give way to it, which otherwise nothing would make them do. */
void cca_lock_take_urgent(struct cca_lock *lock);
/* The same for at most `wait_ms`; false when whoever holds the lock kept it. */
bool cca_lock_take_urgent_within(struct cca_lock *lock, unsigned wait_ms);
bool cca_lock_try(struct cca_lock *lock);
/* Debug builds: whether this thread holds it; release builds: true. */
bool cca_lock_is_mine(const struct cca_lock *lock);
/* In a forked child: free again, whoever held it in the parent. */
void cca_lock_reset(struct cca_lock *lock);

/* The rarer halves of take and drop. */
CCA_COLD void cca_lock_take_slowly(struct cca_lock *lock);
CCA_COLD void cca_lock_wake(struct cca_lock *lock);

#ifdef NDEBUG

static inline void cca_lock_take(struct cca_lock *lock)
{
    unsigned expected = CCA_LOCK_FREE;
    if (CCA_UNLIKELY(atomic_load_explicit(&lock->urgent, memory_order_relaxed) != 0 ||
                     !atomic_compare_exchange_strong_explicit(&lock->word, &expected,
                                                              CCA_LOCK_TAKEN, memory_order_acquire,
                                                              memory_order_relaxed))) {
        cca_lock_take_slowly(lock);
    }
}

static inline void cca_lock_drop(struct cca_lock *lock)
{
    if (CCA_UNLIKELY(atomic_exchange_explicit(&lock->word, CCA_LOCK_FREE, memory_order_release) ==
                     CCA_LOCK_AWAITED)) {
        cca_lock_wake(lock);
    }
}

#else

void cca_lock_take(struct cca_lock *lock);
void cca_lock_drop(struct cca_lock *lock);

#endif

#endif
