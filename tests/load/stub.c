/* SPDX-License-Identifier: MIT */
/* What stands behind the stub of dlsym when it is tested alone, on processors that the library is
 * not built for here. With MAIN: a program that asks for the one name that is answered. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef MAIN

int main(void)
{
    int (*answer)(void) = NULL;
    void *volatile found = dlsym(RTLD_DEFAULT, "cuAnswered");
    void *copy = found;
    memcpy(&answer, &copy, sizeof(answer));
    printf("answered %d, ", answer != NULL ? answer() : 0);
    printf("other %s\n", dlsym(RTLD_DEFAULT, "cuOther") != NULL ? "there" : "absent");
    return 0;
}

#else

typedef void *(*dlsym_fn)(void *handle, const char *name);
struct picked {
    void *found;
    long is_answered;
};

dlsym_fn cca_lookup_next;
dlsym_fn cca_lookup_start(void);
struct picked cca_lookup_pick(void *handle, const char *name, const void *caller);

dlsym_fn cca_lookup_start(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (int i = 0; i < 3 && cca_lookup_next == NULL; i++) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&cca_lookup_next, &found, sizeof(found));
    }
    return cca_lookup_next;
}

static int answer(void)
{
    return 42;
}

struct picked cca_lookup_pick(void *handle, const char *name, const void *caller)
{
    Dl_info where;
    int knows_caller = dladdr(caller, &where) != 0 && where.dli_fname != NULL;
    if (handle == RTLD_DEFAULT && knows_caller && strcmp(name, "cuAnswered") == 0) {
        return (struct picked){(void *)answer, 1};
    }
    return (struct picked){NULL, 0};
}

#endif
