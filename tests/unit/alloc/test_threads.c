/* SPDX-License-Identifier: MIT */
/* Many threads on two devices at once: what one allocates another frees, while others change
 * settings, empty the cache, open scopes and look on. For the thread sanitizer, and for the books.
 */
#include "support/heap_fixture.h"

#include <pthread.h>

#include "../base/random.h"
#include "alloc/stream_use.h"

enum { THREADS = 8, STEPS = 3000, SLOTS = 64 };

struct held {
    uint64_t addr; /* 0: none */
    int device;
    cca_key key;
};

static struct {
    struct fixture fix;
    pthread_mutex_t mutex; /* of the slots */
    struct held slots[SLOTS];
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void give_back(const struct held *held, uint32_t thread)
{
    bool is_ready = held->key == CCA_KEY_READY;
    struct cca_request request = {
        .api = is_ready ? CCA_API_FREE : CCA_API_FREE_ASYNC,
        .key = held->key,
        .thread = thread,
    };
    if (held->addr != 0 &&
        cca_allocator_free(all.fix.allocator, held->addr, &request) != CCA_FREE_DONE) {
        abort();
    }
}

static struct held take(uint64_t *state, uint32_t thread)
{
    struct held held = {.device = (int)(random_next(state) % 2)};
    uint64_t key = random_next(state) % 5;
    held.key = key == 0 ? CCA_KEY_READY : key;
    struct cca_request request = {
        .api = held.key == CCA_KEY_READY ? CCA_API_MALLOC : CCA_API_MALLOC_ASYNC,
        .bytes = (size_t)1 << random_next(state) % 24,
        .key = held.key,
        .thread = thread,
    };
    struct cca_heap *heap = all.fix.heaps[held.device];
    if (cca_allocator_alloc(all.fix.allocator, heap, &request, &held.addr).kind != CCA_OK) {
        held.addr = 0;
    }
    return held;
}

/* A block of this thread goes into a slot, and what another has left there is freed. */
static void exchange(uint64_t *state, uint32_t thread)
{
    struct held mine = take(state, thread);
    struct held *slot = &all.slots[random_next(state) % SLOTS];
    if (mine.addr != 0 && random_next(state) % 4 == 0) {
        cca_allocator_record_stream(all.fix.allocator, mine.addr, 1 + random_next(state) % 4);
    }
    pthread_mutex_lock(&all.mutex);
    struct held theirs = *slot;
    *slot = mine;
    pthread_mutex_unlock(&all.mutex);
    give_back(&theirs, thread);
}

static void ignore(void *user, const char *name, const char *value, const char *used)
{
    (void)user, (void)name, (void)value, (void)used;
}

static void disturb(uint64_t *state, uint32_t thread)
{
    static const char *const texts[] = {"", "max_split_size_mb:24", "roundup_power2_divisions:4",
                                        "expandable_segments:True", "expandable_segments:False"};
    struct cca_allocator *allocator = all.fix.allocator;
    int device = (int)(random_next(state) % 2);
    struct cca_heap *heap = all.fix.heaps[device];
    struct cca_pool_id id = {0, thread};
    struct cca_pool_scope scope = {.kind = CCA_SCOPE_THREAD, .thread = thread};
    int rc = 0;
    switch (random_next(state) % 9) {
    case 0: cca_allocator_empty_cache(allocator); break;
    case 1: cca_allocator_poll(allocator, heap); break;
    case 2:
        rc = cca_allocator_set_conf(allocator, texts[random_next(state) % 5], ignore, NULL);
        break;
    case 3: rc = cca_allocator_set_memory_fraction(allocator, device, 0.9); break;
    case 4: cca_allocator_stream_ends(allocator, heap, 1 + random_next(state) % 4); break;
    case 5:
        rc = cca_allocator_pool_begin(allocator, heap, id, &scope);
        exchange(state, thread);
        rc = rc != 0 ? rc : cca_allocator_pool_end(allocator, heap, id);
        rc = rc != 0 ? rc : cca_allocator_pool_release(allocator, heap, id);
        break;
    case 7: cca_allocator_note_peers(allocator, device, 1 - device); break;
    case 6: (void)cca_allocator_look_up(allocator, SCRIPTED_BASE + random_next(state)); break;
    default: scripted_finish(all.fix.scripts[device]); break;
    }
    if (rc != 0) {
        abort();
    }
}

static void *work(void *arg)
{
    uint32_t thread = (uint32_t)(uintptr_t)arg;
    uint64_t state = thread;
    for (int i = 0; i < STEPS; i++) {
        if (random_next(&state) % 16 == 0) {
            disturb(&state, thread);
        } else {
            exchange(&state, thread);
        }
        if (random_next(&state) % 4 == 0) {
            scripted_submit(all.fix.scripts[random_next(&state) % 2]);
        }
    }
    return NULL;
}

static void set(struct cca_config *config)
{
    config->verify = false; /* at the end instead: it would leave no room for two in the library */
    config->free_sync = CCA_FREE_FENCE;
    config->oom_wait_ms = 5;
    config->max_entries = 100;
}

static void what_one_thread_allocates_another_frees(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    fixture_open_with(&all.fix, 2, set);
    all.fix.scripts[1]->next_addr += UINT64_C(1) << 44; /* addresses are of one device only */
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < SLOTS; i++) {
        give_back(&all.slots[i], 1);
    }
    for (int i = 0; i < 2; i++) {
        scripted_finish(all.fix.scripts[i]);
    }
    for (int i = 0; i < 2; i++) {
        struct cca_heap *heap = all.fix.heaps[i];
        cca_allocator_poll(all.fix.allocator, heap);
        assert_int_equal(heap->observer.stats.active[CCA_STAT_ALL].current, 0);
        assert_int_equal(heap->pending_bytes, 0);
        assert_true(cca_stream_use_is_idle(heap));
        assert_int_equal(heap->use_records.items_taken, 0);
    }
    fix_verify(&all.fix);
    assert_int_equal(all.fix.scripts[0]->map_errors + all.fix.scripts[1]->map_errors, 0);
    cca_allocator_empty_cache(all.fix.allocator);
    assert_int_equal(all.fix.heaps[0]->reserved_bytes + all.fix.heaps[1]->reserved_bytes, 0);
    assert_int_equal(all.fix.scripts[0]->frees_unknown + all.fix.scripts[1]->frees_unknown, 0);
    fixture_close(&all.fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_one_thread_allocates_another_frees),
};

CCA_TEST_MAIN(tests)
