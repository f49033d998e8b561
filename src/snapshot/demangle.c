/* SPDX-License-Identifier: MIT */
#include "snapshot/demangle.h"

#include <string.h>

#include "base/format.h"

#ifdef CCA_HAVE_DEMANGLER

/* From libiberty's demangle.h, whose place differs between distributions. */
typedef void (*demangle_callback)(const char *part, size_t len, void *user);
extern int cplus_demangle_v3_callback(const char *mangled, int options, demangle_callback callback,
                                      void *user);

/* In the place of malloc in the parts of libiberty that are not used: see meson.build. */
void *cca_demangler_malloc(size_t size);
void *cca_demangler_realloc(void *ptr, size_t size);
void cca_demangler_free(void *ptr);

void *cca_demangler_malloc(size_t size)
{
    (void)size;
    return NULL;
}

void *cca_demangler_realloc(void *ptr, size_t size)
{
    (void)ptr, (void)size;
    return NULL;
}

void cca_demangler_free(void *ptr)
{
    (void)ptr;
}

enum {
    PARAMETERS = 1,     /* DMGL_PARAMS */
    QUALIFIERS = 2,     /* DMGL_ANSI */
    NAME_MAX_LEN = 1024 /* the demangler's use of the stack grows with the name */
};

static void append(const char *part, size_t len, void *user)
{
    cca_text_bytes(user, part, len);
}

bool cca_demangle(const char *name, char *buf, size_t cap)
{
    struct cca_text text;

    if (strncmp(name, "_Z", 2) != 0 || strnlen(name, NAME_MAX_LEN) == NAME_MAX_LEN) {
        return false;
    }
    cca_text_init(&text, buf, cap);
    return cplus_demangle_v3_callback(name, PARAMETERS | QUALIFIERS, append, &text) != 0 &&
           text.len > 0;
}

bool cca_can_demangle(void)
{
    return true;
}

#else

bool cca_demangle(const char *name, char *buf, size_t cap)
{
    (void)name, (void)buf, (void)cap;
    return false;
}

bool cca_can_demangle(void)
{
    return false;
}

#endif
