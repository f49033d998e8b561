/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include "alloc/verify.h"

void fixture_open_with(struct fixture *fix, int devices, void (*set)(struct cca_config *config))
{
    memset(fix, 0, sizeof(*fix));
    cca_config_init(&fix->config);
    fix->config.verify = true;
    fix->config.oom_wait_ms = 20;
    if (set != NULL) {
        set(&fix->config);
    }
    assert_int_equal(cca_allocator_create(&fix->config, &fix->allocator), 0);
    for (int i = 0; i < devices; i++) {
        fix->scripts[i] = calloc(1, sizeof(*fix->scripts[i]));
        scripted_device_init(fix->scripts[i], GIB(256));
        struct cca_device device = scripted_device(fix->scripts[i], i);
        fix->heaps[i] = cca_allocator_attach(fix->allocator, &device, 0xc0 + (uint64_t)i);
        assert_non_null(fix->heaps[i]);
    }
}

void fixture_open(struct fixture *fix, int devices)
{
    fixture_open_with(fix, devices, NULL);
}

void fixture_close(struct fixture *fix)
{
    cca_allocator_destroy(fix->allocator);
    for (int i = 0; i < FIXTURE_DEVICES_MAX; i++) {
        free(fix->scripts[i]);
    }
}

static uint64_t do_malloc(struct fixture *fix, size_t bytes, enum cca_api api, cca_key key)
{
    struct cca_request request = {.api = api, .bytes = bytes, .key = key, .thread = 1};
    uint64_t addr = 0;
    struct cca_status status = cca_allocator_alloc(fix->allocator, fix->heaps[0], &request, &addr);
    assert_true(status.kind == CCA_OK || status.kind == CCA_NO_MEMORY);
    return status.kind == CCA_OK ? addr : 0;
}

uint64_t fix_malloc(struct fixture *fix, size_t bytes)
{
    return do_malloc(fix, bytes, CCA_API_MALLOC, CCA_KEY_READY);
}

uint64_t fix_malloc_async(struct fixture *fix, size_t bytes, cca_key stream)
{
    return do_malloc(fix, bytes, CCA_API_MALLOC_ASYNC, stream);
}

enum cca_free_result fix_try_free(struct fixture *fix, uint64_t addr)
{
    struct cca_request request = {.api = CCA_API_FREE, .key = CCA_KEY_READY, .thread = 1};
    return cca_allocator_free(fix->allocator, addr, &request);
}

void fix_free(struct fixture *fix, uint64_t addr)
{
    assert_int_equal(fix_try_free(fix, addr), CCA_FREE_DONE);
}

void fix_free_async(struct fixture *fix, uint64_t addr, cca_key stream)
{
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = stream, .thread = 1};
    assert_int_equal(cca_allocator_free(fix->allocator, addr, &request), CCA_FREE_DONE);
}

int64_t fix_stat(struct fixture *fix, const char *key)
{
    int64_t value = 0;
    cca_lock_take(&fix->heaps[0]->lock);
    struct cca_observer *observer = &fix->heaps[0]->observer;
    int rc = cca_stats_value(&observer->stats, cca_pool_table_rows(&observer->pools), key, &value);
    cca_lock_drop(&fix->heaps[0]->lock);
    assert_int_equal(rc, 0);
    return value;
}

void fix_verify(struct fixture *fix)
{
    cca_lock_take(&fix->heaps[0]->lock);
    const char *broken = cca_verify_heap(fix->heaps[0]);
    cca_lock_drop(&fix->heaps[0]->lock);
    if (broken != NULL) {
        fail_msg("%s", broken);
    }
}
