/* SPDX-License-Identifier: MIT */
/* One scripted program over everything that asks the device or takes records, played once for each
 * of its calls with that call failing. Whatever fails: the program gets memory or is told that
 * there is none, the books hold after every step, and nothing is left at the end. */
#include "support/heap_fixture.h"

#include <errno.h>

#include "alloc/private_pool.h"
#include "alloc/stream_use.h"

enum { HELD_MAX = 32 };

struct scene {
    struct fixture fix;
    bool is_fatal; /* the context may be gone */
    struct {
        uint64_t addr;
        cca_key key;
    } held[HELD_MAX];
    int held_count;
};

static void verify(struct scene *scene)
{
    fix_verify(&scene->fix);
    assert_int_equal(scene->fix.scripts[0]->map_errors, 0);
    assert_int_equal(scene->fix.scripts[0]->frees_unknown, 0);
}

static void take(struct scene *scene, size_t bytes, cca_key key)
{
    struct cca_request request = {
        .api = key == CCA_KEY_READY ? CCA_API_MALLOC : CCA_API_MALLOC_ASYNC,
        .bytes = bytes,
        .key = key,
        .thread = 1,
    };
    uint64_t addr = 0;
    struct cca_status status = cca_allocator_alloc(scene->fix.allocator, scene->fix.heaps[0],
                                                   &request, &addr);
    assert_true(status.kind == CCA_OK || status.kind == CCA_NO_MEMORY ||
                status.kind == CCA_UNSUPPORTED || (status.kind == CCA_FATAL && scene->is_fatal));
    if (status.kind == CCA_OK) {
        assert_true(scene->held_count < HELD_MAX);
        scene->held[scene->held_count].addr = addr;
        scene->held[scene->held_count++].key = key;
    }
    verify(scene);
}

/* The oldest block, on its own stream, which did some work. */
static void give(struct scene *scene)
{
    if (scene->held_count == 0) {
        return;
    }
    uint64_t addr = scene->held[0].addr;
    cca_key key = scene->held[0].key;
    memmove(scene->held, scene->held + 1, sizeof(scene->held) - sizeof(scene->held[0]));
    scene->held_count--;
    struct cca_request request = {
        .api = key == CCA_KEY_READY ? CCA_API_FREE : CCA_API_FREE_ASYNC,
        .key = key,
        .thread = 1,
    };
    scripted_submit(scene->fix.scripts[0]);
    enum cca_free_result result = cca_allocator_free(scene->fix.allocator, addr, &request);
    assert_true(result == CCA_FREE_DONE || (result == CCA_FREE_FORWARD && scene->is_fatal));
    verify(scene);
}

static void use_elsewhere(struct scene *scene, cca_key stream)
{
    if (scene->held_count > 0) {
        cca_allocator_record_stream(scene->fix.allocator, scene->held[0].addr, stream);
        verify(scene);
    }
}

static void in_pool(struct scene *scene, int kind)
{
    static const struct cca_pool_id id = {7, 0};
    struct cca_pool_scope scope = {.kind = kind, .stream = 2, .thread = 1};
    struct cca_allocator *allocator = scene->fix.allocator;
    struct cca_heap *heap = scene->fix.heaps[0];
    int rc = cca_allocator_pool_begin(allocator, heap, id, &scope);
    assert_true(rc == 0 || rc == -ENOMEM);
    take(scene, MIB(3), 2);
    take(scene, KIB(3), 2);
    use_elsewhere(scene, 3);
    give(scene);
    if (rc == 0) {
        assert_int_equal(cca_allocator_pool_end(allocator, heap, id), 0);
        assert_int_equal(cca_allocator_pool_release(allocator, heap, id), 0);
    }
    verify(scene);
}

static void play(struct scene *scene)
{
    struct cca_allocator *allocator = scene->fix.allocator;
    struct cca_heap *heap = scene->fix.heaps[0];
    take(scene, MIB(30), CCA_KEY_READY);
    take(scene, KIB(20), 1);
    take(scene, MIB(15), 1);
    use_elsewhere(scene, 2);
    give(scene); /* a fence */
    give(scene);
    use_elsewhere(scene, 2);
    use_elsewhere(scene, 3);
    give(scene); /* events on two streams */
    take(scene, MIB(50), CCA_KEY_READY);
    take(scene, MIB(50), 2);
    scripted_finish(scene->fix.scripts[0]);
    cca_allocator_poll(allocator, heap);
    take(scene, MIB(90), CCA_KEY_READY); /* only after a release */
    give(scene);
    in_pool(scene, CCA_SCOPE_STREAM);
    in_pool(scene, CCA_SCOPE_CAPTURE);
    cca_allocator_stream_ends(allocator, heap, 2);
    verify(scene);
    give(scene);
    scripted_finish(scene->fix.scripts[0]);
    cca_allocator_empty_cache(allocator);
    verify(scene);
    take(scene, MIB(70), CCA_KEY_READY);
}

/* No failure is left: everything is freed and goes back. */
static void clear(struct scene *scene)
{
    struct fixture *fix = &scene->fix;
    struct scripted_device *script = fix->scripts[0];
    while (scene->held_count > 0) {
        give(scene);
    }
    scripted_finish(script);
    uint64_t mark = cca_allocator_sync_mark(fix->allocator, fix->heaps[0]);
    cca_allocator_synchronized(fix->allocator, fix->heaps[0], CCA_KEY_READY, mark);
    cca_allocator_empty_cache(fix->allocator);
    verify(scene);
    if (fix->heaps[0]->state != CCA_HEAP_UP) {
        return; /* a context that has failed keeps what it has */
    }
    assert_int_equal(fix_stat(fix, "active.all.current"), 0);
    assert_int_equal(fix_stat(fix, "reserved_bytes.all.current"), 0);
    assert_int_equal(fix->heaps[0]->reserved_bytes, 0);
    assert_int_equal(fix->heaps[0]->pending_bytes, 0);
    assert_int_equal(fix->heaps[0]->use_records.items_taken, 0);
    assert_true(cca_list_is_empty(&fix->heaps[0]->private_pools));
    assert_true(cca_stream_use_is_idle(fix->heaps[0]));
    if (script->unmaps_failed == 0) {
        assert_int_equal(script->live_bytes, 0);
        assert_int_equal(scripted_reservations(script), 0);
        assert_int_equal(fix->heaps[0]->segment_records.items_taken, 0);
        assert_int_equal(fix->heaps[0]->block_records.items_taken, 0);
    }
}

static void set_fence(struct cca_config *config)
{
    config->free_sync = CCA_FREE_FENCE;
    config->oom_wait_ms = 0;
}

static void set_strict(struct cca_config *config)
{
    config->oom_wait_ms = 0;
}

static void set_expandable(struct cca_config *config)
{
    set_fence(config);
    config->expandable_segments = true;
}

static void set_expandable_strict(struct cca_config *config)
{
    set_strict(config);
    config->expandable_segments = true;
}

static void (*const modes[])(struct cca_config *config) = {set_strict, set_fence, set_expandable,
                                                           set_expandable_strict};

static struct scene *open_scene(size_t mode)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    fixture_open_with(&scene->fix, 1, modes[mode]);
    scene->fix.scripts[0]->memory_bytes = MIB(200);
    return scene;
}

static void close_scene(struct scene *scene)
{
    fixture_close(&scene->fix);
    free(scene);
}

/* The program with the n-th call of the device failing; 0: none. Returns how many there were. */
static long play_failing(size_t mode, enum cca_status_kind kind, long n)
{
    struct scene *scene = open_scene(mode);
    struct scripted_device *script = scene->fix.scripts[0];
    scene->is_fatal = kind == CCA_FATAL;
    script->fail_kind = kind;
    script->fail_any = n;
    play(scene);
    long calls = script->calls;
    script->fail_any = 0;
    clear(scene);
    close_scene(scene);
    return calls;
}

static void each_call_of_the_device_may_fail(void **state)
{
    static const enum cca_status_kind kinds[] = {CCA_NO_MEMORY, CCA_UNSUPPORTED, CCA_FATAL};
    (void)state;
    for (size_t mode = 0; mode < sizeof(modes) / sizeof(*modes); mode++) {
        long calls = play_failing(mode, CCA_OK, 0);
        assert_true(calls > 20);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
            /* A failure makes for other calls; some more than there would be. */
            for (long n = 1; n <= calls + 20; n++) {
                play_failing(mode, kinds[k], n);
            }
        }
    }
}

static void each_record_may_be_refused(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < sizeof(modes) / sizeof(*modes); mode++) {
        for (long n = 1; n <= 12; n++) {
            struct scene *scene = open_scene(mode);
            cca_sysmem_fail_nth(n);
            play(scene);
            cca_sysmem_fail_nth(0);
            clear(scene);
            close_scene(scene);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_call_of_the_device_may_fail),
    cmocka_unit_test(each_record_may_be_refused),
};

CCA_TEST_MAIN(tests)
