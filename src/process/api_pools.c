/* SPDX-License-Identifier: MIT */
/* Private pools for the public interface: each has a number of its own, which is the second part of
 * its id. */
#include <errno.h>

#include "observe/stats.h"
#include "process/api.h"
#include "process/dump.h"

enum { CLAIM_WAIT_MS = 5000 };

static struct cca_pool_id id_of(uint64_t pool)
{
    return (struct cca_pool_id){0, pool};
}

static unsigned flags_of(const struct cca_pool_options *options)
{
    return (options->use_on_oom ? CCA_POOL_USE_ON_OOM : 0u) |
           (options->no_split ? CCA_POOL_NO_SPLIT : 0u);
}

int cca_api_pool_create(int device, const struct cca_pool_options *options, uint64_t *pool_out)
{
    struct cca_api_scope scope;
    int rc;

    if (pool_out == NULL || (options != NULL && options->struct_bytes < sizeof(*options))) {
        return -EINVAL;
    }
    rc = cca_api_enter(&scope, device);
    if (rc == 0) {
        uint64_t pool = atomic_fetch_add(&cca_process_state()->last_pool, 1) + 1;

        rc = cca_allocator_pool_retain(scope.allocator, scope.heap, id_of(pool),
                                       options == NULL ? 0 : flags_of(options));
        if (rc == 0) {
            *pool_out = pool;
        }
        cca_api_leave(&scope);
    }
    return rc;
}

int cca_api_pool_destroy(int device, uint64_t pool)
{
    struct cca_api_scope scope;
    int rc = cca_api_enter(&scope, device);

    if (rc == 0) {
        rc = cca_allocator_pool_release(scope.allocator, scope.heap, id_of(pool));
        if (rc == 0) {
            cca_allocator_pool_empty(scope.allocator, scope.heap, id_of(pool), 0);
        }
        cca_api_leave(&scope);
    }
    return rc;
}

static int begin(const struct cca_api_scope *scope, const void *caller, int device, uint64_t pool,
                 int use, void *stream)
{
    static const int kinds[] = {CCA_SCOPE_THREAD, CCA_SCOPE_STREAM, CCA_SCOPE_CAPTURE};
    struct cca_pool_scope pool_scope = {.kind = CCA_SCOPE_THREAD, .thread = cca_process_thread()};
    struct cca_heap *heap = scope->heap;
    int rc = 0;

    if (use < CCA_POOL_USE_THREAD || use > CCA_POOL_USE_CAPTURE) {
        return -EINVAL;
    }
    pool_scope.kind = kinds[use];
    if (use != CCA_POOL_USE_THREAD) {
        rc = cca_process_place(caller, device, stream, &heap, &pool_scope.stream);
    }
    return rc != 0 ? rc : cca_allocator_pool_use(scope->allocator, heap, id_of(pool), &pool_scope);
}

int cca_api_pool_use_begin(int device, uint64_t pool, int use, void *stream)
{
    const void *caller = __builtin_return_address(0);
    struct cca_api_scope scope;
    int rc = cca_api_enter(&scope, device);

    if (rc == 0) {
        rc = begin(&scope, caller, device, pool, use, stream);
        cca_api_leave(&scope);
    }
    return rc;
}

int cca_api_pool_use_end(int device, uint64_t pool)
{
    struct cca_api_scope scope;
    int rc = cca_api_enter(&scope, device);

    if (rc == 0) {
        rc = cca_allocator_pool_end(scope.allocator, scope.heap, id_of(pool));
        if (rc == 0) {
            rc = cca_allocator_pool_release(scope.allocator, scope.heap, id_of(pool));
        }
        cca_api_leave(&scope);
    }
    return rc;
}

int cca_api_pool_stats(int device, uint64_t pool, struct cca_sums_info *sums_out,
                       struct cca_figures *reserved_out)
{
    struct cca_api_scope scope;
    struct cca_pool_stats stats;
    struct cca_sums sums;
    int rc = cca_api_enter(&scope, device);

    if (rc == 0) {
        rc = cca_allocator_pool_sums(scope.allocator, scope.heap, id_of(pool), &sums, &stats);
        cca_api_leave(&scope);
    }
    if (rc == 0 && sums_out != NULL) {
        rc = cca_api_put_sums(&sums, sums_out);
    }
    if (rc == 0 && reserved_out != NULL) {
        cca_api_put_figures(stats.reserved_bytes_by_private_pools, reserved_out);
    }
    return rc;
}

int cca_api_pool_snapshot(int device, uint64_t pool, const char *path)
{
    struct cca_process *process = cca_process_state();
    struct cca_api_scope scope;
    struct cca_pool_stats stats;
    struct cca_sums sums;
    int rc = cca_api_enter(&scope, device);

    if (rc != 0) {
        return rc;
    }
    rc = cca_allocator_pool_sums(scope.allocator, scope.heap, id_of(pool), &sums, &stats);
    if (rc == 0) {
        const uint64_t id[2] = {0, pool};

        rc = -EBUSY;
        if (cca_dump_claim(process, CLAIM_WAIT_MS)) {
            rc = cca_dump_write_pool(process, "api", path, device, id);
            cca_dump_release(process);
        }
    }
    cca_api_leave(&scope);
    return rc;
}
