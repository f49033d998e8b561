/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "base/cancel.h"
#include "base/compiler.h"

static _Atomic(const struct cca_clock_source *) replacement;

/* Wall time minus monotonic time, taken once: values of one process then keep their order when the
 * wall clock is set. 0 = not taken yet. */
static _Atomic(int64_t) wall_offset_ns;

static uint64_t read_ns(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t cca_clock_ns(void)
{
    const struct cca_clock_source *source = atomic_load_explicit(&replacement,
                                                                 memory_order_acquire);

    if (CCA_UNLIKELY(source != NULL)) {
        return source->now_ns();
    }
    return read_ns(CLOCK_MONOTONIC);
}

int64_t cca_clock_wall_us(uint64_t mono_ns)
{
    int64_t offset = atomic_load_explicit(&wall_offset_ns, memory_order_relaxed);

    if (atomic_load_explicit(&replacement, memory_order_acquire) != NULL) {
        return (int64_t)(mono_ns / 1000);
    }
    if (offset == 0) {
        int64_t fresh = (int64_t)(read_ns(CLOCK_REALTIME) - read_ns(CLOCK_MONOTONIC));

        if (atomic_compare_exchange_strong(&wall_offset_ns, &offset, fresh)) {
            offset = fresh;
        }
    }
    return ((int64_t)mono_ns + offset) / 1000;
}

void cca_clock_sleep_us(uint64_t us)
{
    const struct cca_clock_source *source = atomic_load_explicit(&replacement,
                                                                 memory_order_acquire);
    struct timespec left = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};
    int saved_errno = errno;

    if (source != NULL) {
        source->sleep_us(us);
        return;
    }
    int cancel = cca_cancel_hold();
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    cca_cancel_restore(cancel);
    errno = saved_errno;
}

void cca_clock_replace(const struct cca_clock_source *source)
{
    atomic_store_explicit(&replacement, source, memory_order_release);
}
