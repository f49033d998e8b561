/* SPDX-License-Identifier: MIT */
/* C++ names as people write them. */
#ifndef CCA_SNAPSHOT_DEMANGLE_H
#define CCA_SNAPSHOT_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes what `name` means to `buf`, cut to fit. False: it is no mangled name, or the library was
 * built without a demangler. No malloc; wants some tens of kilobytes of stack for long names. */
bool cca_demangle(const char *name, char *buf, size_t cap);

/* Whether there is a demangler. */
bool cca_can_demangle(void);

#endif
