/* SPDX-License-Identifier: MIT */
/* Asks dlsym in all the ways that depend on who asks, and prints what came. With WHO it is a part:
 * the parts are chained by RTLD_NEXT, each asking for the names that it defines itself. Without it,
 * the program: it prints the chain, and what a search for CUDA finds. Knows nothing of CUDA. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef int (*number_fn)(void);

static number_fn as_number(void *found)
{
    number_fn fn = NULL;
    memcpy(&fn, &found, sizeof(fn));
    return fn;
}

#ifdef WHO

int plain_chain(void);
int cuda_like_chain(void);

/* The result is kept, so that the look-up is a call and not a jump, however it is compiled. */
static int ask_next(const char *name)
{
    void *volatile found = dlsym(RTLD_NEXT, name);
    number_fn next = as_number(found);
    return next != NULL ? next() * 10 + WHO : WHO;
}

int plain_chain(void)
{
    return ask_next("plain_chain");
}

int cuda_like_chain(void)
{
    return ask_next("cuda_like_chain");
}

#else

static const char *const names[] = {"cuMemAlloc_v2",
                                    "cuMemFree_v2",
                                    "cuGetProcAddress_v2",
                                    "cuStreamBeginCapture_v2_ptsz",
                                    "cudaMalloc",
                                    "cudaFree",
                                    "cuInit",
                                    "cu",
                                    "c",
                                    "",
                                    "cuMemAlloc_v9",
                                    "cca_no_such"};

static void print_found(const char *how, void *handle)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)dlerror();
        void *found = dlsym(handle, names[i]);
        const char *error = dlerror();
        printf("%s %s %s, %s\n", how, names[i], found != NULL ? "there" : "absent",
               error != NULL ? "an error" : "no error");
    }
}

int main(int argc, char **argv)
{
    number_fn plain = as_number(dlsym(RTLD_DEFAULT, "plain_chain"));
    number_fn cuda_like = as_number(dlsym(RTLD_DEFAULT, "cuda_like_chain"));
    void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    printf("chains %d %d\n", plain != NULL ? plain() : 0, cuda_like != NULL ? cuda_like() : 0);
    print_found("default", RTLD_DEFAULT);
    print_found("next", RTLD_NEXT);
    print_found("program", dlopen(NULL, RTLD_NOW));
    if (argc > 1) {
        printf("opened %s\n", handle != NULL ? "yes" : dlerror());
        if (handle != NULL) {
            print_found("handle", handle);
        }
    }
    return 0;
}

#endif
