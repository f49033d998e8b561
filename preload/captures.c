/* SPDX-License-Identifier: MIT */
#include "preload/captures.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "preload/context.h"
#include "preload/stream_key.h"
#include "process/process.h"

/* One that finds no place is never ended: the safe side. */
enum { CAPTURES_MAX = 1024 };

static struct capture {
    bool is_open;
    bool is_ending;  /* its stream is being destroyed, and its handle means nothing any more */
    bool is_counted; /* the allocator, which a later context may make, knows of it */
    void *stream;
    uint32_t thread; /* of a thread's own stream, whose handle is that of other threads', too */
    const void *context;
} captures[CAPTURES_MAX];
static int captures_used;         /* places ever taken: those behind them are free */
static int lost_captures;         /* found no place and were not counted */
static _Atomic int capture_count; /* open ones in the table, and all that were lost */
static pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t thread_of(void *stream, bool is_per_thread)
{
    return cca_context_is_own_stream(stream, is_per_thread) ? cca_stream_thread() : 0;
}

/* Under the lock: what began before there was an allocator. */
static void count_early(struct cca_allocator *allocator)
{
    for (int i = 0; i < captures_used; i++) {
        if (captures[i].is_open && !captures[i].is_counted) {
            captures[i].is_counted = true;
            cca_allocator_capture_begins(allocator);
        }
    }
    for (; lost_captures > 0; lost_captures--) {
        cca_allocator_capture_begins(allocator);
    }
}

bool cca_captures_before(void)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL) {
        cca_allocator_capture_begins(allocator);
    }
    return allocator != NULL;
}

static void remember(const struct capture *capture)
{
    int place = 0;
    pthread_mutex_lock(&captures_lock);
    while (place < captures_used && captures[place].is_open) {
        place++;
    }
    if (place < CAPTURES_MAX) {
        captures[place] = *capture;
        captures_used = place == captures_used ? captures_used + 1 : captures_used;
    } else if (!capture->is_counted) {
        lost_captures++;
    }
    atomic_fetch_add(&capture_count, 1);
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL) {
        count_early(allocator);
    }
    pthread_mutex_unlock(&captures_lock);
}

void cca_captures_began(void *stream, bool is_per_thread, bool is_counted, bool has_begun)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (has_begun) {
        struct capture capture = {.is_open = true,
                                  .is_counted = is_counted,
                                  .stream = stream,
                                  .thread = thread_of(stream, is_per_thread),
                                  .context = cca_context_of_stream(stream)};
        remember(&capture);
    } else if (is_counted && allocator != NULL) {
        cca_allocator_capture_ends(allocator);
    }
}

/* Under the lock: one less. True when the allocator must be told. */
static bool close_capture(struct capture *capture)
{
    capture->is_open = false;
    atomic_fetch_sub(&capture_count, 1);
    return capture->is_counted;
}

static void tell_ended(int count)
{
    struct cca_allocator *allocator = cca_process_allocator();
    for (; allocator != NULL && count > 0; count--) {
        cca_allocator_capture_ends(allocator);
    }
}

/* Under the lock: the place of the stream's capture, or -1. */
static int find(const void *stream, uint32_t thread)
{
    for (int i = 0; i < captures_used; i++) {
        if (captures[i].is_open && !captures[i].is_ending && captures[i].stream == stream &&
            captures[i].thread == thread) {
            return i;
        }
    }
    return -1;
}

void cca_captures_ended(void *stream, bool is_per_thread)
{
    uint32_t thread = thread_of(stream, is_per_thread);
    int ended = 0;
    pthread_mutex_lock(&captures_lock);
    int place = find(stream, thread);
    if (place >= 0) {
        ended += close_capture(&captures[place]);
    }
    pthread_mutex_unlock(&captures_lock);
    tell_ended(ended);
}

int cca_captures_take(void *stream)
{
    uint32_t thread = thread_of(stream, false);
    pthread_mutex_lock(&captures_lock);
    int place = find(stream, thread);
    if (place >= 0) {
        captures[place].is_ending = true;
    }
    pthread_mutex_unlock(&captures_lock);
    return place;
}

void cca_captures_taken(int place, bool has_ended)
{
    int ended = 0;
    pthread_mutex_lock(&captures_lock);
    captures[place].is_ending = false;
    if (has_ended) {
        ended += close_capture(&captures[place]);
    }
    pthread_mutex_unlock(&captures_lock);
    tell_ended(ended);
}

void cca_captures_context_gone(const void *context)
{
    int ended = 0;
    if (context == NULL || !cca_captures_any()) {
        return;
    }
    pthread_mutex_lock(&captures_lock);
    for (int i = 0; i < captures_used; i++) {
        /* One that was taken is closed by who took it. */
        if (captures[i].is_open && !captures[i].is_ending && captures[i].context == context) {
            ended += close_capture(&captures[i]);
        }
    }
    pthread_mutex_unlock(&captures_lock);
    tell_ended(ended);
}

bool cca_captures_any(void)
{
    return atomic_load(&capture_count) != 0;
}

void cca_captures_replay(void)
{
    pthread_mutex_lock(&captures_lock);
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL) {
        count_early(allocator);
    }
    pthread_mutex_unlock(&captures_lock);
}
