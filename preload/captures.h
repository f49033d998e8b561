/* SPDX-License-Identifier: MIT */
/* Which stream captures are under way, so that the allocator is told once when one begins and once
 * when it has ended: in between it records nothing, waits for nothing and gives nothing back. To be
 * called inside a hook's enter and leave. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_CAPTURES_H
#define CCA_PRELOAD_CAPTURES_H

#include <stdbool.h>

/* Before the real call that begins one, and after it. `is_counted` is what before returned: whether
 * there was an allocator to be told. A begin that failed leaves nothing behind. */
bool cca_captures_before(void);
void cca_captures_began(void *stream, bool is_per_thread, bool is_counted, bool has_begun);

/* The stream's capture was ended. Nothing when none is known. */
void cca_captures_ended(void *stream, bool is_per_thread);

/* Around the real call that destroys a stream: before it returns, the handle may be that of a new
 * stream, which another thread captures. Take returns the place of the stream's capture, or -1;
 * taken is for such a place: the capture has ended with its stream, or goes on. */
int cca_captures_take(void *stream);
void cca_captures_taken(int place, bool has_ended);

/* The same for all streams of a context that is gone. */
void cca_captures_context_gone(const void *context);

/* Whether any is under way, or may be. */
bool cca_captures_any(void);

/* When a context comes up and the allocator exists: captures that began before are counted. */
void cca_captures_replay(void);

#endif
