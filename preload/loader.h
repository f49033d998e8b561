/* SPDX-License-Identifier: MIT */
/* What the loader knows of the objects in the process, without entering it: no call here waits for
 * another thread's dlopen, its constructors included, and none leaves a lock of the loader taken in
 * a forked child. Any thread. */
#ifndef CCA_PRELOAD_LOADER_H
#define CCA_PRELOAD_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CCA_LOADER_PATH_BYTES = 1024 };

/* A loaded object. `map` is the loader's own entry, NULL where the C library does not tell (glibc
 * before 2.35, others); then `unloads` counts the objects that the process had unloaded. */
struct cca_loader_object {
    const void *map;
    uintptr_t start, end;
    uint64_t unloads;
    char path[CCA_LOADER_PATH_BYTES]; /* empty for the main program */
};

/* From the constructor; before it the slower ways are taken. */
void cca_loader_start(void);

/* The object around an address; false when there is none, or its path is too long. */
bool cca_loader_object_at(const void *addr, struct cca_loader_object *object_out);

/* The n-th object whose file name holds `part`. */
bool cca_loader_object_named(const char *part, int position, struct cca_loader_object *object_out);

/* Whether an address lies in this library. */
bool cca_loader_is_ours(const void *addr);

/* Whether the object came before this library: the main program, and what is preloaded in front. */
bool cca_loader_is_in_front(const struct cca_loader_object *object);

/* Whether the object itself, not what it needs, defines this name. */
bool cca_loader_defines(const struct cca_loader_object *object, const char *name);

/* What tells, at every call, whether an object seen before is still the one around an address.
 * `path` stays valid as long as the object around the address stays. */
struct cca_loader_glance {
    const void *map;
    uintptr_t start, end;
    const char *path;
    uint64_t unloads;
};

/* False: no object is there. Without `map` only `unloads` is filled. */
bool cca_loader_glance_at(const void *addr, struct cca_loader_glance *glance_out);

/* The function of this name when exactly one object but ours defines it, or NULL: then whoever
 * refers to the name means that one, whatever its scope, and no other interposer is passed over. */
void *cca_loader_sole_definition(const char *name, uintptr_t *owner_out);

/* The version by which the object refers to a name that another one defines, as "libcudart.so.12";
 * false when it does not refer to it by itself, or without a version. */
bool cca_loader_needed_version(const struct cca_loader_object *object, const char *name,
                               char *version_out, size_t bytes);

/* Whether the object gives versions to what it defines. */
bool cca_loader_has_versions(const struct cca_loader_object *object);

/* An object that refers to one of these names (NULL behind the last): which one, or NULL. What is
 * only looked up at run time does not count. */
const char *cca_loader_importer(const char *const *names, struct cca_loader_object *object_out);

#endif
