/* SPDX-License-Identifier: MIT */
#include "base/loader_gate.h"

#include <stdatomic.h>

#include "base/clock.h"

enum { SHARDS = 16, WAIT_US = 2000000, STEP_US = 200 };

/* Threads count in different cache lines. */
struct shard {
    _Atomic long inside;
} __attribute__((aligned(64)));

static struct shard shards[SHARDS];
static _Atomic int closers; /* forks under way */
static _Atomic unsigned next_shard;

static CCA_THREAD_LOCAL struct {
    unsigned shard; /* 1 + index; 0 = none yet */
    int depth;      /* entries of this thread */
    int closed;     /* times this thread has closed the gate */
} self;

static struct shard *my_shard(void)
{
    if (CCA_UNLIKELY(self.shard == 0)) {
        self.shard = 1 + atomic_fetch_add_explicit(&next_shard, 1, memory_order_relaxed) % SHARDS;
    }
    return &shards[self.shard - 1];
}

/* Either this thread sees the closed gate or the closing thread sees the count. */
bool cca_loader_gate_enter(void)
{
    struct shard *shard = my_shard();

    self.depth++;
    atomic_fetch_add(&shard->inside, 1);
    if (CCA_LIKELY(atomic_load(&closers) == 0) || self.closed != 0 || self.depth > 1) {
        return true;
    }
    cca_loader_gate_leave();
    return false;
}

void cca_loader_gate_leave(void)
{
    atomic_fetch_sub_explicit(&my_shard()->inside, 1, memory_order_release);
    self.depth--;
}

bool cca_loader_gate_enter_late(void)
{
    for (int waited = 0; waited < WAIT_US; waited += STEP_US) {
        if (cca_loader_gate_enter()) {
            return true;
        }
        cca_clock_sleep_us(STEP_US);
    }
    return false;
}

static bool others_are_inside(void)
{
    long count = 0;

    for (int i = 0; i < SHARDS; i++) {
        count += atomic_load(&shards[i].inside);
    }
    return count > self.depth;
}

bool cca_loader_gate_close(void)
{
    self.closed++;
    atomic_fetch_add(&closers, 1);
    for (int waited = 0; waited < WAIT_US; waited += STEP_US) {
        if (!others_are_inside()) {
            return true;
        }
        cca_clock_sleep_us(STEP_US);
    }
    return false;
}

void cca_loader_gate_open(void)
{
    atomic_fetch_sub(&closers, 1);
    self.closed--;
}

/* Only the thread that forked is left. */
void cca_loader_gate_reset(void)
{
    atomic_store(&closers, 0);
    self.closed = 0;
    for (int i = 0; i < SHARDS; i++) {
        atomic_store(&shards[i].inside, 0);
    }
    atomic_store(&my_shard()->inside, self.depth);
}
