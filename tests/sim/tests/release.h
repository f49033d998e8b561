/* SPDX-License-Identifier: MIT */
/* An older runtime, loaded by its name, for tests that have no headers of that release. */
#ifndef SIM_RELEASE_H
#define SIM_RELEASE_H

#include <stdbool.h>

typedef void (*release_function)(void);

/* A function of the library with the types of its arguments. */
#define F(name, ...) ((int (*)(__VA_ARGS__))release_find(name))

/* The test's own: the library, which is also the version of its symbols. */
extern const char *const release_soname;

/* A function with that version; there must be one. */
release_function release_find(const char *name);
bool release_has(const char *name);
/* Registers a kernel by hand, launches it through cudaLaunchKernel and looks at its result. */
void release_launch(void);

#endif
