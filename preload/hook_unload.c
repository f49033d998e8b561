/* SPDX-License-Identifier: MIT */
/* dlclose: forwarded; what call stacks passed through is remembered before it goes. What it does
 * depends on nobody's return address, so that a plain call may stand in front of it. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "preload/lookup.h"
#include "process/process.h"

typedef int (*dlclose_fn)(void *handle);

/* Entering the loader is no matter here: the call itself does. */
static dlclose_fn real_dlclose(void)
{
    static _Atomic(dlclose_fn) real;
    dlclose_fn found = atomic_load_explicit(&real, memory_order_acquire);

    if (CCA_UNLIKELY(found == NULL)) {
        void *next = cca_lookup_real(RTLD_NEXT, "dlclose");

        memcpy(&found, &next, sizeof(found));
        atomic_store_explicit(&real, found, memory_order_release);
    }
    return found;
}

CCA_EXPORT int dlclose(void *handle)
{
    dlclose_fn real = real_dlclose();

    if (CCA_UNLIKELY(real == NULL)) {
        return -1;
    }
    int token = cca_process_unload_begin(handle, real);
    int result = real(handle);
    cca_process_unload_end(token);
    return result;
}
