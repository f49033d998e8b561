/* SPDX-License-Identifier: MIT */
/* An interposer behind the library, by which a program gets called in the middle of a hook. */
#include <dlfcn.h>
#include <stddef.h>

int cudaGetDevice(int *device);
void callback_set(void (*fn)(void));

static void (*callback)(void);

void callback_set(void (*fn)(void))
{
    callback = fn;
}

int cudaGetDevice(int *device)
{
    int (*real)(int *) = NULL;
    void (*once)(void) = callback;
    *(void **)&real = dlsym(RTLD_NEXT, "cudaGetDevice");
    callback = NULL;
    if (once != NULL) {
        once();
    }
    return real(device);
}
