/* SPDX-License-Identifier: MIT */
#include "model_program.h"

#include "model.h"

#include "../base/random.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"
#include "alloc/verify.h"

static struct {
    const uint8_t *input; /* where draws come from, while it lasts */
    size_t input_left;
    struct model model;
    struct cca_config config;
    struct cca_allocator *allocator;
    struct cca_heap *heap;
    uint64_t state, context;
    bool in_stream_order; /* as the core's own caller: only streams, nothing is re-keyed */
    bool gate_is_closed, is_traced;
    bool is_stopped; /* only callers of cca_my_malloc are served any more */
    uint64_t peers;
    uint64_t dead_streams;            /* bit per stream */
    int captured;                     /* the stream in capture, or MODEL_NO_STREAM */
    uint64_t last_graph, first_graph; /* graphs from first to last hold a pool */
} run;

/* TEST_TRACE=1 prints each step. */
#define SAY(...)                        \
    do {                                \
        if (run.is_traced) {            \
            print_message(__VA_ARGS__); \
        }                               \
    } while (0)

/* From the input while it lasts, one to three bytes a time; else at random. */
static uint64_t draw(uint64_t below)
{
    uint64_t value = 0;
    if (run.input_left == 0) {
        return random_next(&run.state) % below;
    }
    for (uint64_t rest = below - 1; rest != 0 && run.input_left > 0 && rest < UINT64_C(1) << 24;
         rest >>= 8) {
        value = value << 8 | *run.input++;
        run.input_left--;
    }
    return below > UINT64_C(1) << 24 ? random_next(&run.state) % below : value % below;
}

static int draw_stream(void)
{
    int stream;
    do {
        stream = (int)draw((uint64_t)run.model.stream_count);
    } while ((run.dead_streams >> stream & 1) != 0);
    return stream;
}

static size_t draw_bytes(void)
{
    size_t base = (size_t)1 << draw(26);
    return base + (size_t)draw(base);
}

static void attach(void)
{
    struct cca_device device = model_device(&run.model);
    run.heap = cca_allocator_attach(run.allocator, &device, ++run.context);
    assert_non_null(run.heap);
    run.heap->rekeys = !run.in_stream_order;
}

void model_program_start(uint64_t seed, const uint8_t *input, size_t input_bytes)
{
    memset(&run, 0, sizeof(run));
    run.state = seed;
    run.input = input;
    run.input_left = input_bytes;
    run.is_traced = getenv("TEST_TRACE") != NULL;
    run.captured = MODEL_NO_STREAM;
    run.first_graph = 1;
    cca_config_init(&run.config);
    run.config.oom_wait_ms = 0;
    run.config.max_entries = 16;
    run.config.free_sync = draw(2) == 0 ? CCA_FREE_STRICT : CCA_FREE_FENCE;
    run.config.pending_max = draw(16) == 0 ? 1 : CCA_NO_LIMIT;
    run.config.cache_limit = draw(4) == 0 ? (size_t)64 << 20 : CCA_NO_LIMIT;
    run.in_stream_order = draw(4) == 0;
    model_init(&run.model, (UINT64_C(256) << 20) << draw(4));
    run.model.has_context_events = draw(8) != 0;
    run.model.can_map = draw(8) != 0;
    run.config.expandable_segments = draw(3) == 0;
    run.model.frees_wait = run.in_stream_order || !run.model.has_context_events;
    assert_int_equal(cca_allocator_create(&run.config, &run.allocator), 0);
    attach();
}

static void check(void)
{
    cca_lock_take(&run.heap->lock);
    const char *broken = cca_verify_heap(run.heap);
    int64_t live = run.heap->observer.stats.allocation[0].current;
    cca_lock_drop(&run.heap->lock);
    if (broken != NULL) {
        fail_msg("%s", broken);
    }
    assert_int_equal(live, run.model.live_count);
    model_check_access(&run.model, run.peers);
}

static void do_alloc(void)
{
    int stream = !run.in_stream_order && draw(2) == 0 ? MODEL_NO_STREAM : draw_stream();
    bool is_own = stream != MODEL_NO_STREAM && draw(8) == 0;
    struct cca_request request = {
        .api = is_own                      ? CCA_API_OWN
               : stream == MODEL_NO_STREAM ? CCA_API_MALLOC
                                           : CCA_API_MALLOC_ASYNC,
        .bytes = draw_bytes(),
        .key = model_key(stream),
        .thread = 1,
    };
    uint64_t addr = 0;
    if (run.model.live_count == MODEL_LIVE_MAX) {
        return;
    }
    struct cca_status status = cca_allocator_alloc(run.allocator, run.heap, &request, &addr);
    if (run.is_stopped && !is_own) {
        assert_int_equal(status.kind, CCA_UNSUPPORTED);
        return;
    }
    assert_true(status.kind == CCA_OK || status.kind == CCA_NO_MEMORY);
    SAY("# alloc %zu on %d: %" PRIx64 "\n", request.bytes, stream, addr);
    if (status.kind == CCA_OK) {
        model_handed_out(&run.model, addr, request.bytes, stream);
    }
}

/* A block, or NULL where there is none. */
static struct model_block *draw_block(int *index_out)
{
    if (run.model.live_count == 0) {
        return NULL;
    }
    *index_out = (int)draw((uint64_t)run.model.live_count);
    return &run.model.live[*index_out];
}

static void free_block(int index, int stream)
{
    struct model_block block = model_take(&run.model, index);
    struct cca_request request = {
        .api = stream == MODEL_NO_STREAM ? CCA_API_FREE : CCA_API_FREE_ASYNC,
        .key = model_key(stream),
        .thread = 1,
    };
    SAY("# free %" PRIx64 " on %d\n", block.addr, stream);
    if (stream == MODEL_NO_STREAM && block.stream == MODEL_NO_STREAM) {
        model_freed(&run.model, &block);
    }
    assert_int_equal(cca_allocator_free(run.allocator, block.addr, &request), CCA_FREE_DONE);
}

/* In the order of a stream only where the program has ordered the other users before the free, or
 * told of them. */
static void do_free(void)
{
    int index, stream;
    struct model_block *block = draw_block(&index);
    if (block == NULL) {
        return;
    }
    bool is_dead = block->stream != MODEL_NO_STREAM && (run.dead_streams >> block->stream & 1) != 0;
    bool is_ready = block->stream == MODEL_NO_STREAM || is_dead;
    if (!run.in_stream_order && (is_ready || draw(8) == 0)) {
        free_block(index, MODEL_NO_STREAM);
        return;
    }
    stream = is_ready ? draw_stream() : block->stream;
    uint64_t known = block->recorded | UINT64_C(1) << stream;
    if ((model_users(&run.model, block) & ~known) == 0) {
        free_block(index, stream);
    }
}

/* On another stream than the block's own only behind what runs on it elsewhere, and told. */
static void do_work(void)
{
    int index, stream = draw_stream();
    struct model_block *block = draw_block(&index);
    if (block == NULL || stream == run.captured) {
        return;
    }
    bool is_own = stream == block->stream || block->stream == MODEL_NO_STREAM;
    if (!is_own && (model_users(&run.model, block) & ~(UINT64_C(1) << stream)) != 0) {
        return;
    }
    SAY("# work on %" PRIx64 " on %d\n", block->addr, stream);
    if (model_work(&run.model, block, stream) && (!is_own || draw(4) == 0)) {
        SAY("# told so\n");
        cca_allocator_record_stream(run.allocator, block->addr, model_key(stream));
        block->recorded |= UINT64_C(1) << stream;
    }
}

static void do_finish(void)
{
    int stream = (int)draw((uint64_t)run.model.stream_count);
    model_finish(&run.model, stream, (uint32_t)draw(8));
    SAY("# stream %d did %u of %u\n", stream, run.model.done[stream], run.model.submitted[stream]);
}

static void do_synchronize(void)
{
    int stream = draw(4) == 0 ? MODEL_NO_STREAM : draw_stream();
    if (run.captured != MODEL_NO_STREAM || run.gate_is_closed) {
        return;
    }
    SAY("# synchronize %d\n", stream);
    uint64_t mark = cca_allocator_sync_mark(run.allocator, run.heap);
    if (stream == MODEL_NO_STREAM) {
        model_finish_all(&run.model);
    } else {
        model_finish(&run.model, stream, UINT32_MAX);
    }
    cca_allocator_synchronized(run.allocator, run.heap, model_key(stream), mark);
}

/* Another one takes its place, under an id of its own. */
static void do_end_stream(void)
{
    int stream = draw_stream();
    if (run.in_stream_order || stream == run.captured ||
        run.model.stream_count == MODEL_STREAMS_MAX) {
        return;
    }
    SAY("# stream %d ends\n", stream);
    cca_allocator_stream_ends(run.allocator, run.heap, model_key(stream));
    run.dead_streams |= UINT64_C(1) << stream;
    run.model.stream_count++;
}

static void do_peer(void)
{
    int other = 1 + (int)draw(5);
    SAY("# peer %d\n", other);
    cca_allocator_note_peers(run.allocator, 0, other);
    run.peers |= UINT64_C(1) << other;
}

/* The program did what is not handled: caching ends. */
static void do_stop(void)
{
    SAY("# stop\n");
    assert_int_equal(cca_allocator_stop(run.allocator), !run.is_stopped);
    run.is_stopped = true;
}

static void forbid(void)
{
    bool is_captured = run.captured != MODEL_NO_STREAM;
    run.model.no_recording = is_captured || run.gate_is_closed;
    run.model.no_interfering = is_captured;
}

static void do_capture(void)
{
    struct cca_pool_id id = {run.last_graph, 0};
    if (run.captured == MODEL_NO_STREAM) {
        struct cca_pool_scope scope = {.kind = CCA_SCOPE_CAPTURE};
        run.captured = draw_stream();
        SAY("# capture of %d\n", run.captured);
        scope.stream = model_key(run.captured);
        id.capture = ++run.last_graph;
        assert_int_equal(cca_allocator_pool_begin(run.allocator, run.heap, id, &scope), 0);
    } else {
        SAY("# capture ends\n");
        run.captured = MODEL_NO_STREAM;
        run.model.no_recording = run.gate_is_closed;
        run.model.no_interfering = false;
        assert_int_equal(cca_allocator_pool_end(run.allocator, run.heap, id), 0);
    }
    forbid();
}

/* The oldest graph is destroyed. */
static void do_release_pool(void)
{
    struct cca_pool_id id = {run.first_graph, 0};
    if (run.first_graph > run.last_graph ||
        (run.captured != MODEL_NO_STREAM && run.first_graph == run.last_graph)) {
        return;
    }
    run.first_graph++;
    assert_int_equal(cca_allocator_pool_release(run.allocator, run.heap, id), 0);
}

static void do_gate(void)
{
    if (run.gate_is_closed) {
        cca_allocator_capture_ends(run.allocator);
    } else {
        cca_allocator_capture_begins(run.allocator);
    }
    run.gate_is_closed = !run.gate_is_closed;
    SAY("# gate %d\n", run.gate_is_closed);
    forbid();
}

static void ignore(void *user, const char *name, const char *value, const char *used)
{
    (void)user, (void)name, (void)value, (void)used;
}

static void do_settings(void)
{
    static const char *const texts[] = {
        "",
        "max_split_size_mb:24",
        "max_split_size_mb:40,max_non_split_rounding_mb:48",
        "roundup_power2_divisions:[1:4,>:2]",
        "garbage_collection_threshold:0.3,large_segment_size_mb:20",
        "large_segment_size_mb:12,roundup_power2_divisions:8",
        "throw_on_cudamalloc_oom:True",
        "throw_on_cudamalloc_oom:False,per_process_memory_fraction:0.7",
        "expandable_segments:True",
        "expandable_segments:True,large_segment_size_mb:12",
        "expandable_segments:False",
    };
    assert_int_equal(
        cca_allocator_set_conf(run.allocator, texts[draw(CCA_ARRAY_LEN(texts))], ignore, NULL), 0);
    if (draw(4) == 0) {
        double fraction = (double)(1 + draw(10)) / 10;
        assert_int_equal(cca_allocator_set_memory_fraction(run.allocator, 0, fraction), 0);
    }
}

static void do_reset(void)
{
    SAY("# reset\n");
    cca_allocator_detach(run.allocator, 0);
    model_reset(&run.model);
    if (run.captured != MODEL_NO_STREAM) {
        run.captured = MODEL_NO_STREAM;
        forbid();
    }
    attach();
}

static void do_housekeeping(void)
{
    uint64_t which = draw(6);
    SAY("# housekeeping %d\n", (int)which);
    switch (which) {
    case 0: cca_allocator_empty_cache(run.allocator); break;
    case 1: run.model.fail_allocs = 1 + (int)draw(3); break;
    case 3: cca_allocator_make_room(run.allocator, run.heap, draw_bytes()); break;
    case 4: (void)cca_allocator_release_idle(run.allocator, run.heap); break;
    case 2: run.model.fail_events = 1 + (int)draw(2); break;
    default: cca_allocator_poll(run.allocator, run.heap); break;
    }
}

bool model_program_step(void)
{
    static void (*const usual[])(void) = {
        do_alloc, do_alloc,  do_alloc,  do_free,  do_free,        do_work, do_work,
        do_work,  do_finish, do_finish, do_alloc, do_synchronize, do_free, do_housekeeping};
    static void (*const rare[])(void) = {do_end_stream, do_capture, do_capture,  do_release_pool,
                                         do_gate,       do_gate,    do_settings, do_peer};
    if (draw(400) == 0) {
        do_reset();
    } else if (draw(3000) == 0) {
        do_stop();
    } else if (draw(12) == 0) {
        rare[draw(CCA_ARRAY_LEN(rare))]();
    } else {
        if (draw(50) == 0) {
            SAY("# memory for a record may be refused\n");
            cca_sysmem_fail_nth(1 + (long)draw(3));
        }
        usual[draw(CCA_ARRAY_LEN(usual))]();
        cca_sysmem_fail_nth(0);
    }
    check();
    return run.input_left > 0;
}

/* Everything is over and freed: nothing may be left. */
void model_program_finish(void)
{
    run.input_left = 0;
    run.model.fail_allocs = run.model.fail_events = 0;
    if (run.captured != MODEL_NO_STREAM) {
        do_capture();
    }
    if (run.gate_is_closed) {
        do_gate();
    }
    while (run.first_graph <= run.last_graph) {
        do_release_pool();
    }
    model_finish_all(&run.model);
    while (run.model.live_count > 0) {
        free_block(0, run.in_stream_order ? run.model.live[0].stream : MODEL_NO_STREAM);
    }
    cca_allocator_poll(run.allocator, run.heap);
    uint64_t mark = cca_allocator_sync_mark(run.allocator, run.heap);
    model_finish_all(&run.model);
    cca_allocator_synchronized(run.allocator, run.heap, CCA_KEY_READY, mark);
    check();
    assert_int_equal(run.heap->pending_bytes, 0);
    assert_true(cca_stream_use_is_idle(run.heap));
    assert_int_equal(run.heap->use_records.items_taken, 0);
    cca_allocator_empty_cache(run.allocator);
    check();
    assert_int_equal(run.heap->reserved_bytes, 0);
    assert_int_equal(run.model.used_bytes, 0);
    assert_int_equal(run.model.reservation_count, 0);
    assert_true(cca_list_is_empty(&run.heap->private_pools));
    cca_allocator_destroy(run.allocator);
}
