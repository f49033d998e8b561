/* SPDX-License-Identifier: MIT */
/* The program's look-ups of functions: what dlsym (see dlsym.S) and the driver's resolver hand out.
 *
 * The genuine look-up is always made, and a wrapper takes the place of its answer only where that
 * is, by its address, a driver function of hooks.def. So no rule of names, forms and releases is
 * repeated here; what is not known passes by. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "preload/driver_index.h"
#include "preload/hook.h"
#include "preload/loader.h"
#include "preload/lookup.h"
#include "preload/unseen.h"
#include "preload/valve.h"

static _Atomic bool is_off;

void cca_lookup_turn_off(void)
{
    atomic_store(&is_off, true);
}

/* Nowhere to look: what is asked for is not found. */
static void *find_nothing(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return NULL;
}

cca_dlsym_fn cca_lookup_next;

/* dlsym has had two homes: the C library since glibc 2.34, libdl before. */
static CCA_COLD cca_dlsym_fn find_real(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    static const char *const homes[] = {"libc.so.6", "libdl.so.2"};
    void *found = NULL;
    for (size_t i = 0; found == NULL && i < CCA_ARRAY_LEN(versions); i++) {
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    for (size_t home = 0; found == NULL && home < CCA_ARRAY_LEN(homes); home++) {
        void *handle = dlopen(homes[home], RTLD_LAZY | RTLD_NOLOAD);
        for (size_t i = 0; handle != NULL && found == NULL && i < CCA_ARRAY_LEN(versions); i++) {
            found = dlvsym(handle, "dlsym", versions[i]);
        }
    }
    (void)dlerror();
    cca_dlsym_fn real = find_nothing;
    if (found != NULL) {
        memcpy(&real, &found, sizeof(real));
    }
    return real;
}

static cca_dlsym_fn real_dlsym(void)
{
    static _Atomic(cca_dlsym_fn) real;
    cca_dlsym_fn found = atomic_load_explicit(&real, memory_order_acquire);
    if (CCA_UNLIKELY(found == NULL)) {
        found = find_real();
        atomic_store_explicit(&real, found, memory_order_release);
    }
    return found;
}

void *cca_lookup_real(void *handle, const char *name)
{
    return real_dlsym()(handle, name);
}

/* Another interposer of dlsym behind this one keeps its turn. */
cca_dlsym_fn cca_lookup_start(void)
{
    cca_dlsym_fn next = real_dlsym();
    void *found = cca_lookup_real(RTLD_NEXT, "dlsym");
    if (found != NULL) {
        memcpy(&next, &found, sizeof(next));
    }
    __atomic_store_n(&cca_lookup_next, next, __ATOMIC_RELEASE);
    return next;
}

/* CUDA's own parts find their functions as they are, and so does whoever wraps this function
 * itself: it asks for what lies behind it. */
static bool is_excluded(const void *caller, int row)
{
    struct cca_loader_object object;
    if (!cca_loader_object_at(caller, &object)) {
        return false;
    }
    const char *slash = strrchr(object.path, '/');
    const char *name = slash != NULL ? slash + 1 : object.path;
    return strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libnvidia", 9) == 0 ||
           cca_loader_is_ours(caller) || cca_loader_defines(&object, cca_rows[row].name);
}

static bool is_unsafe_unseen(int row)
{
    return cca_rows[row].action == CCA_ACTION_CAPTURE || cca_rows[row].action == CCA_ACTION_VALVE;
}

/* A form that came after this library was written. What it does is not accounted for; where that
 * could make reuse unsafe, caching ends. */
static CCA_COLD void note_missed(int row, const char *asked)
{
    static _Atomic bool is_told[CCA_ROW_HOOKS];
    cca_hook_count((enum cca_row)row, CCA_COVERAGE_MISSED);
    if (!cca_process_is_active() || atomic_exchange(&is_told[row], true)) {
        return;
    }
    if (is_unsafe_unseen(row)) {
        cca_valve_stop_because("a form of a driver function was looked up that is not known here "
                               "and cannot be followed");
    }
    cca_log(CCA_LOG_WARN, "the driver has a newer form of %s than %s: such calls pass by", asked,
            cca_rows[row].name);
}

/* The wrapper in place of the genuine function, to which its calls go on from now on: another
 * interposer behind this library would not have been met by a look-up from the driver itself. What
 * our own calls need of the driver is looked up now, while the loader is the program's to wait for:
 * later calls must not wait for it. */
static void hand_out(int row, void **found)
{
    cca_original_is_at((enum cca_row)row, *found);
    cca_original_prepare();
    *found = cca_rows[row].wrapper;
}

/* Another way to begin a capture, which came after this library: it could not be followed. */
static bool begins_unknown_capture(const char *name)
{
    return strncmp(name, "cuStreamBegin", 13) == 0 && strstr(name, "apture") != NULL &&
           cca_index_of_base(name) < 0;
}

static CCA_COLD void note_unknown_capture(const char *name)
{
    static atomic_bool is_told;
    if (cca_process_is_active() && !atomic_exchange(&is_told, true)) {
        cca_valve_stop_because("a driver function was looked up that begins captures and is not "
                               "known here");
        cca_log(CCA_LOG_WARN, "%s is not known here, but begins captures: nothing is cached", name);
    }
}

void cca_lookup_resolved(const char *base, int version, void **found, const void *caller)
{
    if (atomic_load_explicit(&is_off, memory_order_relaxed)) {
        return;
    }
    if (cca_index_of_base(base) < 0) {
        if (CCA_UNLIKELY(begins_unknown_capture(base))) {
            note_unknown_capture(base);
        }
        return;
    }
    int row = cca_index_of_function(base, *found);
    if (row < 0) {
        int newest = cca_index_of_base(base);
        if (version >= cca_rows[newest].since && !is_excluded(caller, newest)) {
            note_missed(newest, base);
        }
    } else if (!is_excluded(caller, row)) {
        hand_out(row, found);
    }
}

/* Our exports are in every process. One that asks whether CUDA is there must not find them where,
 * without this library, the search would find nothing. */
static bool would_be_found(void *handle, const char *name, const void *caller)
{
    struct cca_loader_object object;
    if (cca_lookup_real(RTLD_NEXT, name) != NULL) {
        return true;
    }
    if (handle != RTLD_DEFAULT && handle != RTLD_NEXT) {
        return false;
    }
    /* Objects that came with dlopen search their own dependencies, too. */
    void *found = NULL;
    if (cca_loader_object_at(caller, &object) && object.path[0] != '\0') {
        void *own = dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD);
        found = own != NULL ? cca_lookup_real(own, name) : NULL;
        if (own != NULL) {
            (void)dlclose(own);
        }
    }
    if (found == NULL) {
        /* An interposer in front of us? */
        found = cca_lookup_real(RTLD_DEFAULT, name);
        found = cca_loader_is_ours(found) ? NULL : found;
    }
    return found != NULL;
}

/* As the failed search would have ended; its error is there for dlerror. */
static struct cca_picked not_there(const char *name)
{
    return (struct cca_picked){cca_lookup_real(RTLD_NEXT, name), true};
}

/* Explicit handles do not depend on who asks. */
static struct cca_picked pick_from_handle(void *handle, const char *name, int row,
                                          const void *caller)
{
    struct cca_picked picked = {cca_lookup_real(handle, name), true};
    if (picked.found == NULL) {
        picked.is_answered = false; /* the real one fails again, and says why */
    } else if (picked.found == cca_rows[row].wrapper) {
        return would_be_found(handle, name, caller) ? picked : not_there(name);
    } else if (cca_rows[row].door == CCA_DOOR_DRIVER &&
               !atomic_load_explicit(&is_off, memory_order_relaxed)) {
        int known = cca_index_of_function(name, picked.found);
        if (known >= 0 && !is_excluded(caller, known)) {
            hand_out(known, &picked.found);
        }
    }
    return picked;
}

/* A name that is no row, and may be a form that came later. */
static void watch_for_missed(void *handle, const char *name, const void *caller)
{
    int newest = cca_index_of_base(name);
    if (CCA_UNLIKELY(newest < 0 && begins_unknown_capture(name)) &&
        cca_lookup_real(handle == RTLD_DEFAULT ? RTLD_NEXT : handle, name) != NULL) {
        note_unknown_capture(name);
    }
    if (CCA_LIKELY(newest < 0 || cca_index_form(name) <= cca_index_form(cca_rows[newest].name))) {
        return;
    }
    void *from = handle == RTLD_DEFAULT ? RTLD_NEXT : handle;
    if (cca_lookup_real(from, name) != NULL && !is_excluded(caller, newest)) {
        note_missed(newest, name);
    }
}

struct cca_picked cca_lookup_pick(void *handle, const char *name, const void *caller)
{
    struct cca_picked unanswered = {NULL, false};
    if (name[2] >= 'A' && name[2] <= 'Z') {
        cca_unseen_note_look_up();
    }
    int row = cca_index_of_name(name);
    if (CCA_LIKELY(row < 0)) {
        watch_for_missed(handle, name, caller);
        return unanswered;
    }
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
        return would_be_found(handle, name, caller) ? unanswered : not_there(name);
    }
    return pick_from_handle(handle, name, row, caller);
}

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
    int result = CCA_FORWARD_DRIVER(cuGetProcAddress, name, found, version, flags);
    if (result == CCA_CUDA_SUCCESS && name != NULL && found != NULL && *found != NULL) {
        cca_hook_count(CCA_ROW_cuGetProcAddress, CCA_COVERAGE_SEEN);
        cca_lookup_resolved(name, version, found, CCA_CALLER());
    }
    return result;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    int result = CCA_FORWARD_DRIVER(cuGetProcAddress_v2, name, found, version, flags, status);
    if (result == CCA_CUDA_SUCCESS && name != NULL && found != NULL && *found != NULL) {
        cca_hook_count(CCA_ROW_cuGetProcAddress_v2, CCA_COVERAGE_SEEN);
        cca_lookup_resolved(name, version, found, CCA_CALLER());
    }
    return result;
}
