/* SPDX-License-Identifier: MIT */
/* Calls that need memory of the device beside what is served. They must not fail because the cache
 * holds memory idle: when the driver is out of it, what is idle goes back and the driver is asked
 * once more. Memory that the program gets so is accounted for, by call and by the object that
 * asked.
 *
 * Rows of action RETRY, TRACK and UNTRACK; the real calls are made outside enter and leave. */
#include "preload/hook_track.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "observe/unwind.h"
#include "preload/context.h"
#include "preload/devices.h"
#include "preload/hook.h"
#include "preload/loader.h"
#include "process/process.h"

enum { FRAMES_MAX = 24, JIT_OPTIONS_MAX = 64 };

/* Which device a call needs memory of: that of a pool, a device, or -1 the current context's. */
struct place {
    int device;
    const void *pool;
};

/* The driver writes to the values of some options, the bytes that it filled for example. */
struct jit_options {
    void **values;
    unsigned count;
};

static inline struct place place_of(const struct cca_physical_shape *shape)
{
    return (struct place){.device = shape->location_type == 1 ? shape->location : -1};
}

/* What a pool of the program's own belongs to cannot be asked. */
static struct cca_heap *heap_at(struct place place)
{
    int device = place.pool != NULL ? cca_device_of_default_pool((void *)place.pool) : place.device;
    return device >= 0 ? cca_device_heap(device) : cca_context_known_heap(NULL);
}

/* Whether memory went back to the driver that is out of it. During a capture nothing does. */
static CCA_COLD bool has_made_room(enum cca_row row, struct place place)
{
    bool has_released = false;
    if (!cca_hook_enter(row)) {
        return false;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    struct cca_heap *heap = heap_at(place);
    if (heap != NULL) {
        has_released = cca_allocator_release_idle(cca_process_allocator(), heap) > 0;
    }
    cca_hook_leave();
    return has_released;
}

/* False when there are more than can be kept: then the call is made once. */
static inline bool has_kept_options(struct jit_options options, void **kept_out)
{
    if (options.values == NULL || options.count == 0) {
        return true;
    }
    if (options.count > JIT_OPTIONS_MAX) {
        return false;
    }
    memcpy(kept_out, options.values, options.count * sizeof(*kept_out));
    return true;
}

static inline void put_options_back(struct jit_options options, void *const *kept)
{
    if (options.values != NULL && options.count != 0) {
        memcpy(options.values, kept, options.count * sizeof(*kept));
    }
}

/* What differs from row to row, in terms of its parameters; a row that is not named here has the
 * default. A definition begins with a comma, by which it takes the place of the default. */
#define PLACE_cuMemCreate                  , place_of(shape)
#define PLACE_cuMemPoolCreate              , place_of(props)
#define PLACE_cuMemAllocFromPoolAsync      , ((struct place){.device = -1, .pool = pool})
#define PLACE_cuMemAllocFromPoolAsync_ptsz , ((struct place){.device = -1, .pool = pool})
#define JIT_cuModuleLoadDataEx             , ((struct jit_options){values, count})
#define JIT_cuLibraryLoadData              , ((struct jit_options){jit_values, jit_count})
#define JIT_cuLibraryLoadFromFile          , ((struct jit_options){jit_values, jit_count})
#define JIT_cuLinkCreate                   , ((struct jit_options){values, count})
#define JIT_cuLinkCreate_v2                , ((struct jit_options){values, count})
#define SECOND_OF(first, second, ...)      second
#define SECOND(...)                        SECOND_OF(__VA_ARGS__)
#define PLACE(name)                        SECOND(PLACE_##name, ((struct place){.device = -1}), )
#define JIT(name)                          SECOND(JIT_##name, ((struct jit_options){NULL, 0}), )

#define FORWARD_WITH_RETRY(name, ...)                                      \
    __extension__({                                                        \
        void *kept_[JIT_OPTIONS_MAX];                                      \
        bool is_kept_ = has_kept_options(JIT(name), kept_);                \
        int answer_ = CCA_FORWARD_DRIVER(name, __VA_ARGS__);               \
        if (CCA_UNLIKELY(answer_ == CCA_CUDA_OUT_OF_MEMORY) && is_kept_ && \
            has_made_room(CCA_ROW_##name, PLACE(name))) {                  \
            put_options_back(JIT(name), kept_);                            \
            answer_ = CCA_FORWARD_DRIVER(name, __VA_ARGS__);               \
        }                                                                  \
        answer_;                                                           \
    })

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_between(const struct cca_loader_object *object)
{
    static const char here;
    const char *name = file_name(object->path);
    return ((uintptr_t)&here >= object->start && (uintptr_t)&here < object->end) ||
           strncmp(name, "libcudart.so", 12) == 0 || strncmp(name, "libcuda.so", 10) == 0;
}

/* Who asked: the innermost object that is neither CUDA's own nor this library. */
static void name_caller(const void *caller, char *name_out, size_t bytes)
{
    struct cca_loader_object object;
    uintptr_t pcs[FRAMES_MAX];
    int count = cca_unwind_capture(pcs, FRAMES_MAX, 0);
    const char *found = "";
    bool is_found = false;
    for (int i = 0; i < count && !is_found; i++) {
        is_found = cca_loader_object_at((const void *)pcs[i], &object) && !is_between(&object);
    }
    if (is_found || (cca_loader_object_at(caller, &object) && !is_between(&object))) {
        found = object.path[0] != '\0' ? file_name(object.path) : program_invocation_short_name;
    }
    strncpy(name_out, found, bytes - 1);
    name_out[bytes - 1] = '\0';
}

static CCA_NOINLINE void track(enum cca_row row, const void *caller, enum cca_unmanaged_kind kind,
                               uint64_t address, int device, uint64_t bytes)
{
    char library[CCA_UNMANAGED_NAME_BYTES];
    if (address == 0 || bytes == 0 || !cca_hook_enter(row)) {
        return;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    name_caller(caller, library, sizeof(library));
    cca_process_unmanaged_add(kind, address, device, cca_row_name(row), library, bytes);
    cca_hook_leave();
}

static void untrack(enum cca_row row, enum cca_unmanaged_kind kind, uint64_t address)
{
    if (cca_hook_enter(row)) {
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_process_unmanaged_remove(kind, address);
        cca_hook_leave();
    }
}

/* Bytes of an element's channel; compressed and planar formats count as one. */
static size_t channel_bytes(int format)
{
    switch (format) {
    case 0x02: /* 16 bits */
    case 0x09:
    case 0x10: return 2;
    case 0x03: /* 32 bits */
    case 0x0a:
    case 0x20: return 4;
    default: return 1;
    }
}

static size_t or_one(size_t extent)
{
    return extent != 0 ? extent : 1;
}

static uint64_t array_bytes(size_t width, size_t height, size_t depth, int format,
                            unsigned channels)
{
    return (uint64_t)width * or_one(height) * or_one(depth) * or_one(channels) *
           channel_bytes(format);
}

/* Every level has half the extents of the one before. */
static uint64_t mipmap_bytes(const struct cca_array3d_shape *shape, unsigned levels)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < levels && i < 32; i++) {
        bytes += array_bytes(or_one(shape->width >> i), shape->height >> i, shape->depth >> i,
                             shape->format, shape->channels);
    }
    return bytes;
}

/* One line for each TRACK row: what it is, where, and how much. Only after a success, so that every
 * argument may be read. */
#define HERE                               cca_context_driver_device()
#define HANDLE(of)                         ((uint64_t)(uintptr_t)(of))
#define DEVICE_MEMORY(n)                   CCA_UNMANAGED_DEVICE, *addr, HERE, n
#define ARRAY_MEMORY(n)                    CCA_UNMANAGED_ARRAY, HANDLE(*array), HERE, n
#define HOST_MEMORY(of, n)                 CCA_UNMANAGED_PINNED, HANDLE(of), CCA_UNMANAGED_HOST, n
#define TRACK_cuMemAllocPitch_v2           DEVICE_MEMORY(*pitch *height)
#define TRACK_cuMemAllocManaged            DEVICE_MEMORY(bytes)
#define TRACK_cuMemAllocFromPoolAsync      DEVICE_MEMORY(bytes)
#define TRACK_cuMemAllocFromPoolAsync_ptsz DEVICE_MEMORY(bytes)
#define TRACK_cuArrayCreate_v2 \
    ARRAY_MEMORY(array_bytes(shape->width, shape->height, 0, shape->format, shape->channels))
#define TRACK_cuArray3DCreate_v2     ARRAY_MEMORY(mipmap_bytes(shape, 1))
#define TRACK_cuMipmappedArrayCreate ARRAY_MEMORY(mipmap_bytes(shape, levels))
#define TRACK_cuMemAllocHost_v2      HOST_MEMORY(*ptr, bytes)
#define TRACK_cuMemHostAlloc         HOST_MEMORY(*ptr, bytes)
#define TRACK_cuMemHostRegister      HOST_MEMORY(ptr, bytes)
#define TRACK_cuMemHostRegister_v2   HOST_MEMORY(ptr, bytes)
#define TRACK_cuMemCreate            \
    CCA_UNMANAGED_PHYSICAL, *handle, \
        shape->location_type == 1 ? shape->location : CCA_UNMANAGED_HOST, bytes

#define UNTRACK_cuArrayDestroy          CCA_UNMANAGED_ARRAY, HANDLE(array)
#define UNTRACK_cuMipmappedArrayDestroy CCA_UNMANAGED_ARRAY, HANDLE(array)
#define UNTRACK_cuMemFreeHost           CCA_UNMANAGED_PINNED, HANDLE(ptr)
#define UNTRACK_cuMemHostUnregister     CCA_UNMANAGED_PINNED, HANDLE(ptr)
#define UNTRACK_cuMemRelease            CCA_UNMANAGED_PHYSICAL, handle

#define ARGS(...)                       __VA_ARGS__
#define DEFINE_RETRY(name, door, is_per_thread, params, args) \
    int name params                                           \
    {                                                         \
        return FORWARD_WITH_RETRY(name, ARGS args);           \
    }
#define DEFINE_TRACK(name, door, is_per_thread, params, args)  \
    int name params                                            \
    {                                                          \
        int result = FORWARD_WITH_RETRY(name, ARGS args);      \
        if (result == CCA_CUDA_SUCCESS) {                      \
            track(CCA_ROW_##name, CCA_CALLER(), TRACK_##name); \
        }                                                      \
        return result;                                         \
    }
/* Forgotten before the real call: the address may come back at once. */
#define DEFINE_UNTRACK(name, door, is_per_thread, params, args) \
    int name params                                             \
    {                                                           \
        untrack(CCA_ROW_##name, UNTRACK_##name);                \
        return CCA_FORWARD_DRIVER(name, ARGS args);             \
    }
#define DEFINE_SERVE(name, door, is_per_thread, params, args)
#define DEFINE_STATE(name, door, is_per_thread, params, args)
#define DEFINE_CAPTURE(name, door, is_per_thread, params, args)
#define DEFINE_LOOKUP(name, door, is_per_thread, params, args)
#define DEFINE_VALVE(name, door, is_per_thread, params, args)
#define ROW(name, door, action, since, is_per_thread, params, args) \
    DEFINE_##action(name, door, is_per_thread, params, args)
#include "preload/hooks.def"
