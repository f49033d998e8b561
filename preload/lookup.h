/* SPDX-License-Identifier: MIT */
/* Symbol look-up, both ways: the program's, in which wrappers are handed out, and our own. Any
 * thread; takes no lock of ours. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_LOOKUP_H
#define CCA_PRELOAD_LOOKUP_H

#include "base/compiler.h"

typedef void *(*cca_dlsym_fn)(void *handle, const char *name);

/* The C library's own dlsym, for everything the library looks up itself: `dlsym` is ours. What it
 * finds for RTLD_NEXT lies behind this library. */
void *cca_lookup_real(void *handle, const char *name);

/* Where the stub in dlsym.S jumps to: the next dlsym behind ours. NULL until cca_lookup_start,
 * which returns it, was called. */
extern cca_dlsym_fn cca_lookup_next;
cca_dlsym_fn cca_lookup_start(void);

/* What the stub asks for names that begin with "cu". Not answered: the real dlsym answers. */
struct cca_picked {
    void *found;
    long is_answered;
};
struct cca_picked cca_lookup_pick(void *handle, const char *name, const void *caller);

/* The program asked the driver's resolver for a function by its base name: *found becomes our
 * wrapper where the driver's answer is a function that has one. Pointer identity decides; names
 * only tell what was missed. `version` is the one asked with. */
void cca_lookup_resolved(const char *base, int version, void **found, const void *caller);

/* From the constructor, when the library does nothing in this process: no wrapper is handed out. */
void cca_lookup_turn_off(void);

#endif
