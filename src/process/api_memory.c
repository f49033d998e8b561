/* SPDX-License-Identifier: MIT */
/* The cache, its settings and the uses of memory, for the public interface. */
#include <errno.h>

#include "base/log.h"
#include "base/reentry.h"
#include "process/api.h"
#include "process/process.h"

/* Handles from here on are those of created streams. */
enum { FIRST_CREATED = 3 };

int cca_api_empty_cache(void)
{
    struct cca_allocator *allocator = cca_process_allocator();
    int saved_errno = errno;

    if (allocator == NULL) {
        return -ENODEV;
    }
    if (!cca_reentry_enter()) {
        return -EBUSY;
    }
    cca_allocator_empty_cache(allocator);
    cca_reentry_leave();
    errno = saved_errno;
    return 0;
}

static void complain(void *user, const char *name, const char *value, const char *used)
{
    (void)user, (void)name;
    cca_log(CCA_LOG_WARN, "cca_set_settings '%s': %s", value, used);
}

int cca_api_set_settings(const char *text)
{
    int saved_errno = errno, rc;

    if (text == NULL) {
        return -EINVAL;
    }
    if (!cca_process_is_active()) {
        return -ENODEV;
    }
    if (!cca_reentry_enter()) {
        return -EBUSY;
    }
    rc = cca_process_set_conf(text, complain);
    cca_reentry_leave();
    errno = saved_errno;
    return rc;
}

int cca_api_set_memory_fraction(int device, double fraction)
{
    struct cca_api_scope scope;
    int rc = cca_api_enter(&scope, device);

    if (rc == 0) {
        rc = cca_allocator_set_memory_fraction(scope.allocator, device, fraction);
        cca_api_leave(&scope);
    }
    return rc;
}

double cca_api_get_memory_fraction(int device)
{
    struct cca_api_scope scope;
    double fraction = 1;

    if (cca_api_enter(&scope, device) == 0) {
        fraction = cca_allocator_memory_fraction(scope.allocator, device);
        cca_api_leave(&scope);
    }
    return fraction;
}

int cca_api_record_stream(void *ptr, void *stream)
{
    const void *caller = __builtin_return_address(0);
    struct cca_allocator *allocator = cca_process_allocator();
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    struct cca_heap *heap = NULL;
    cca_key key = CCA_KEY_READY;
    int saved_errno = errno, rc = 0, device;

    if (ptr == NULL) {
        return -EINVAL;
    }
    if (allocator == NULL) {
        return -ENODEV;
    }
    if (!cca_reentry_enter()) {
        return -EBUSY;
    }
    device = cca_allocator_device_of(allocator, addr);
    if (device >= 0) {
        /* A created stream may be another device's, a default one is of the memory's own. */
        rc = cca_process_place(caller, (uintptr_t)stream < FIRST_CREATED ? device : -1, stream,
                               &heap, &key);
        if (rc == 0) {
            cca_allocator_record_stream(allocator, addr, key);
        }
    }
    cca_reentry_leave();
    errno = saved_errno;
    return rc;
}
