/* SPDX-License-Identifier: MIT */
/* The history: what is kept of it, marks and texts in it, who allocated what, and snapshots.
 * Included by cca.h, which says what holds for every function. */
#ifndef CCA_CCA_HISTORY_H
#define CCA_CCA_HISTORY_H

#include "cca_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes what is kept of the events of all devices, from now on; see struct cca_history_options
 * for what each member means. The newest entries stay when the size changes; turning the history
 * off empties it. Statistics count on in any case. -EINVAL  NULL, a struct without a size, or a
 * word that is none -ENODEV  no device has been used -ENOMEM  a history could not be made anew and
 * keeps its size -EBUSY, -ENOSYS as everywhere As torch.cuda.memory._record_memory_history. */
static inline int cca_record_memory_history(const struct cca_history_options *options)
{
    CCA_API_1_CALL_(record_memory_history, -ENOSYS, (options));
}

/* A `snapshot` entry with this text in the history of every device, to be looked for later; what is
 * live at exit is also counted from the last mark on. NULL: without a text. -ENODEV, -EBUSY,
 * -ENOSYS. */
static inline int cca_mark(const char *text)
{
    CCA_API_1_CALL_(mark, -ENOSYS, (text));
}

/* The text that every later event of the calling thread carries, on all devices; NULL or "": none.
 * Copied, and cut after 4095 bytes. Each distinct text is kept for the life of the process.
 * -ENOSPC: too many different ones, the thread has none now; -EBUSY, -ENOSYS. As
 * torch.cuda.memory._set_memory_metadata. */
static inline int cca_set_user_metadata(const char *text)
{
    CCA_API_1_CALL_(set_user_metadata, -ENOSYS, (text));
}

/* The text of the calling thread, "" when it has none or the library is absent. Stays valid. As
 * torch.cuda.memory._get_memory_metadata. */
static inline const char *cca_get_user_metadata(void)
{
    CCA_API_1_CALL_(get_user_metadata, "", ());
}

/* An `annotate` entry with this text for the live block that begins at `ptr`, with the call stack
 * of this call where stacks are taken. -EINVAL: no text; -ENOENT: no live block of ours begins
 * there; -ENODEV, -EBUSY, -ENOSYS. As torch.cuda.memory._annotate_memory. */
static inline int cca_annotate(const void *ptr, const char *text)
{
    CCA_API_1_CALL_(annotate, -ENOSYS, (ptr, text));
}

/* A region of the program begins and ends, as a profiler knows it: `external_annotations` of a
 * snapshot. Kept while the history is on, the newest thousands. -EINVAL, -EBUSY, -ENOSYS. */
static inline int cca_annotation_begin(int device, const char *name)
{
    CCA_API_1_CALL_(annotation, -ENOSYS, (device, name, 0));
}

static inline int cca_annotation_end(int device, const char *name)
{
    CCA_API_1_CALL_(annotation, -ENOSYS, (device, name, 1));
}

/* Calls `fn` with each frame of the call stack that allocated the live block which begins at `ptr`,
 * innermost first, with no lock held; texts are valid during the call. Reads symbol tables: takes
 * milliseconds. The number of frames, 0 when no stack was kept; -EINVAL, -ENOENT, -ENODEV, -ENOMEM,
 * -EBUSY, -ENOSYS. As torch.cuda.memory._allocation_traceback. */
static inline int cca_allocation_traceback(const void *ptr, cca_frame_fn fn, void *user)
{
    CCA_API_1_CALL_(allocation_traceback, -ENOSYS, (ptr, fn, user));
}

/* Writes a snapshot to an open descriptor, which stays open: "pickle", "json" or "text"; NULL:
 * pickle. -EINVAL, -ENODEV, -EBUSY, -ENOMEM, -ENOSYS, or the error of writing. */
static inline int cca_snapshot_to_fd(int fd, const char *format)
{
    CCA_API_1_CALL_(snapshot_to_fd, -ENOSYS, (fd, format));
}

#ifdef __cplusplus
}
#endif

#endif
