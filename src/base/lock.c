/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/compiler.h"

/* Yields before a lock is taken although an urgent taker still waits: no one waits for ever. */
enum { GIVE_WAY_MAX = 100 };
/* Looks at a taken lock before the thread sleeps: about as long as a lock is held. */
enum { SPINS = 60 };

#ifdef __SANITIZE_THREAD__
#define IS_TSAN 1
#elif defined(__has_feature)
#define IS_TSAN __has_feature(thread_sanitizer)
#else
#define IS_TSAN 0
#endif

#if IS_TSAN
/* The sanitizer's own deadlock detector gives up at 64 locks held at once, which a fork exceeds;
 * the order is checked by rank instead. */
CCA_EXPORT const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}
#endif

#ifndef NDEBUG

/* Every heap and every shard at once, and room for the others. */
enum { HELD_MAX = 192 };

static CCA_THREAD_LOCAL const struct cca_lock *held[HELD_MAX];
static CCA_THREAD_LOCAL int held_count;

static bool rank_is_above_held(int rank)
{
    for (int i = 0; i < held_count; i++) {
        if (held[i]->rank >= rank) {
            return false;
        }
    }
    return true;
}

static int held_index(const struct cca_lock *lock)
{
    for (int i = held_count - 1; i >= 0; i--) {
        if (held[i] == lock) {
            return i;
        }
    }
    return -1;
}

static void note_taken(const struct cca_lock *lock)
{
    CCA_ASSERT(held_count < HELD_MAX);
    held[held_count++] = lock;
}

static void forget(int index)
{
    held[index] = held[--held_count];
}

#endif

void cca_lock_init(struct cca_lock *lock, int rank)
{
    atomic_init(&lock->word, CCA_LOCK_FREE);
    atomic_init(&lock->urgent, 0);
    lock->rank = rank;
}

static bool grab(struct cca_lock *lock)
{
    unsigned expected = CCA_LOCK_FREE;
    return atomic_compare_exchange_strong_explicit(&lock->word, &expected, CCA_LOCK_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps until the lock is free. A thread that has slept takes it as awaited: others may sleep. */
static void wait_and_take(struct cca_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == CCA_LOCK_FREE &&
            grab(lock)) {
            return;
        }
        pause_briefly();
    }
    while (atomic_exchange_explicit(&lock->word, CCA_LOCK_AWAITED, memory_order_acquire) !=
           CCA_LOCK_FREE) {
        int saved = errno;
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, CCA_LOCK_AWAITED, NULL, NULL, 0);
        errno = saved;
    }
}

static void take(struct cca_lock *lock)
{
#ifndef NDEBUG
    CCA_ASSERT(rank_is_above_held(lock->rank));
#endif
    if (!grab(lock)) {
        wait_and_take(lock);
    }
#ifndef NDEBUG
    note_taken(lock);
#endif
}

void cca_lock_take_slowly(struct cca_lock *lock)
{
    for (int i = 0; i < GIVE_WAY_MAX; i++) {
        if (CCA_LIKELY(atomic_load_explicit(&lock->urgent, memory_order_relaxed) == 0)) {
            break;
        }
        sched_yield();
    }
    take(lock);
}

void cca_lock_wake(struct cca_lock *lock)
{
    int saved = errno;
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

void cca_lock_take_urgent(struct cca_lock *lock)
{
    atomic_fetch_add_explicit(&lock->urgent, 1, memory_order_relaxed);
    take(lock);
    atomic_fetch_sub_explicit(&lock->urgent, 1, memory_order_relaxed);
}

bool cca_lock_take_urgent_within(struct cca_lock *lock, unsigned wait_ms)
{
    uint64_t deadline_ns = 0;
    bool is_taken = cca_lock_try(lock);

    if (is_taken) {
        return true;
    }
    atomic_fetch_add_explicit(&lock->urgent, 1, memory_order_relaxed);
    for (int i = 0; !(is_taken = cca_lock_try(lock)); i++) {
        uint64_t now_ns = cca_clock_ns();

        deadline_ns = deadline_ns != 0 ? deadline_ns : now_ns + wait_ms * UINT64_C(1000000);
        if (now_ns >= deadline_ns) {
            break;
        }
        if (i < GIVE_WAY_MAX) {
            sched_yield();
        } else {
            cca_clock_sleep_us(100);
        }
    }
    atomic_fetch_sub_explicit(&lock->urgent, 1, memory_order_relaxed);
    return is_taken;
}

bool cca_lock_try(struct cca_lock *lock)
{
    if (!grab(lock)) {
        return false;
    }
#ifndef NDEBUG
    note_taken(lock);
#endif
    return true;
}

#ifndef NDEBUG

void cca_lock_take(struct cca_lock *lock)
{
    cca_lock_take_slowly(lock);
}

void cca_lock_drop(struct cca_lock *lock)
{
    int index = held_index(lock);
    CCA_ASSERT(index >= 0);
    forget(index);
    if (atomic_exchange_explicit(&lock->word, CCA_LOCK_FREE, memory_order_release) ==
        CCA_LOCK_AWAITED) {
        cca_lock_wake(lock);
    }
}

#endif

bool cca_lock_is_mine(const struct cca_lock *lock)
{
#ifndef NDEBUG
    return held_index(lock) >= 0;
#else
    (void)lock;
    return true;
#endif
}

void cca_lock_reset(struct cca_lock *lock)
{
#ifndef NDEBUG
    int index = held_index(lock);

    if (index >= 0) {
        forget(index);
    }
#endif
    atomic_store_explicit(&lock->word, CCA_LOCK_FREE, memory_order_relaxed);
    atomic_store_explicit(&lock->urgent, 0, memory_order_relaxed);
}
