/* SPDX-License-Identifier: MIT */
/* Drives the allocator's core in stream order, as its own caller would: a freed block is at once
 * reusable on its stream. Reads operations as text, one a line (README.md lists them), and writes
 * what happened, one fact a line: a letter, a blank, JSON.
 *   R result of an operation    A the four current sums after it    S statistics
 *   P snapshot                  T trace entry                       D driver calls
 * With arguments "mixed SEED" it runs the mixed workload instead. */
#include <inttypes.h>
#include <stdlib.h>

#include "alloc/verify.h"
#include "golden.h"
#include "support/scripted_device.h"

enum { LINE_BYTES = 512 };

static struct cca_config config;
static struct cca_allocator *allocator;
static struct cca_heap *heap;
static struct scripted_device script;
static struct name_map names;
static unsigned done_ops;

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "core_driver: %s: %s\n", what, detail);
    exit(2);
}

static void complain(void *user, const char *name, const char *value, const char *used)
{
    (void)user;
    fprintf(stderr, "core_driver: %s '%s': %s\n", name, value, used);
    exit(2);
}

/* Waiting for all events is what finishes them on the recorded device. */
static void finish_on_wait(void *user, int device, const struct cca_event *event)
{
    (void)user, (void)device;
    if (event->kind == CCA_EVENT_SYNC) {
        scripted_advance_all(&script);
    }
}

static void open_core(const char *settings)
{
    static char conf[LINE_BYTES];
    const char *const environment[] = {"CCA_MAX_ENTRIES=1000000", conf, NULL};
    snprintf(conf, sizeof(conf), "CCA_CONF=%s", settings);
    cca_config_init(&config);
    cca_config_read(&config, environment, complain, NULL);
    if (cca_allocator_create(&config, &allocator) != 0) {
        die("no allocator", settings);
    }
    scripted_device_init(&script, 256ull << 30);
    struct cca_device device = scripted_device(&script, 0);
    heap = cca_allocator_attach(allocator, &device, 0xc0);
    heap->rekeys = false;
    if (cca_observer_add_tracker(&heap->observer, finish_on_wait, NULL) != 0) {
        die("no tracker", settings);
    }
}

static void verify(void)
{
    cca_lock_take(&heap->lock);
    const char *broken = cca_verify_heap(heap);
    cca_lock_drop(&heap->lock);
    if (broken != NULL) {
        die("broken identity", broken);
    }
}

/* 0: out of memory. */
static uint64_t core_malloc(size_t bytes, cca_key stream)
{
    struct cca_request request = {.api = CCA_API_OWN, .bytes = bytes, .key = stream};
    uint64_t addr = 0;
    struct cca_status status = cca_allocator_alloc(allocator, heap, &request, &addr);
    if (status.kind != CCA_OK && status.kind != CCA_NO_MEMORY) {
        die("an allocation was not served", "");
    }
    return status.kind == CCA_OK ? addr : 0;
}

static void core_free(uint64_t addr)
{
    struct cca_block *block = cca_block_map_find(&heap->live, addr);
    if (block == NULL) {
        die("not a live block", "");
    }
    struct cca_request request = {.api = CCA_API_OWN, .key = block->key};
    if (cca_allocator_free(allocator, addr, &request) != CCA_FREE_DONE) {
        die("a free was refused", "");
    }
}

static void do_malloc(const struct op *op)
{
    size_t bytes = (size_t)op_number(op, 1, 0);
    uint64_t addr = bytes == 0 ? 0 : core_malloc(bytes, op_number(op, 2, 0));
    name_set(&names, op->words[0], addr);
    if (bytes != 0 && addr == 0) {
        printf("R \"oom\"\n");
    } else {
        printf("R %" PRIu64 "\n", addr);
    }
}

/* False where the name holds no memory. */
static bool do_free(const struct op *op)
{
    uint64_t addr = name_get(&names, op->words[0]);
    if (addr == 0) {
        return false;
    }
    name_set(&names, op->words[0], 0);
    core_free(addr);
    return true;
}

static bool do_record_stream(const struct op *op)
{
    uint64_t addr = name_get(&names, op->words[0]);
    if (addr == 0) {
        return false;
    }
    cca_allocator_record_stream(allocator, addr, op_number(op, 1, 0));
    return true;
}

static void do_capture(const struct op *op)
{
    struct cca_pool_id id = {op_number(op, 0, 0), 0};
    struct cca_pool_scope scope = {CCA_SCOPE_CAPTURE, op_number(op, 1, 0), 0};
    int rc = strcmp(op->name, "capture_begin") == 0
                 ? cca_allocator_pool_begin(allocator, heap, id, &scope)
             : strcmp(op->name, "capture_end") == 0
                 ? cca_allocator_pool_end(allocator, heap, id)
                 : cca_allocator_pool_release(allocator, heap, id);
    if (rc != 0) {
        die("refused", op->name);
    }
}

static void print_stats(void)
{
    struct cca_stats stats = heap->observer.stats;
    printf("S {\"at\": %u", done_ops);
    print_stats_members(&stats);
    printf("}\n");
}

/* Both forms forget what was recorded. */
static void do_history(const struct op *op)
{
    bool is_on = strcmp(op->words[0], "on") == 0;
    struct cca_trace_ring *ring = &heap->observer.ring;
    cca_trace_ring_clear(ring);
    heap->observer.is_recording = is_on;
    if (is_on && cca_trace_ring_resize(ring, (size_t)op_number(op, 1, 1)) != 0) {
        die("no ring", op->words[1]);
    }
}

static void note_snapshot(void)
{
    struct cca_event event = {
        .kind = CCA_EVENT_SNAPSHOT,
        .requested_bytes = (uint64_t)heap->observer.stats.active_bytes[CCA_STAT_ALL].current,
    };
    cca_lock_take(&heap->lock);
    cca_heap_report(heap, &event);
    cca_lock_drop(&heap->lock);
}

static void set_fraction(const char *text)
{
    if (cca_allocator_set_memory_fraction(allocator, 0, strtod(text, NULL)) != 0) {
        die("no fraction", text);
    }
}

static void set_conf(const char *text)
{
    if (cca_allocator_set_conf(allocator, text, complain, NULL) != 0) {
        die("bad settings", text);
    }
}

/* The largest cached block or the start value, whichever is more. */
static size_t largest_block(size_t start)
{
    cca_lock_take(&heap->lock);
    size_t largest = cca_heap_largest_free(heap);
    cca_lock_drop(&heap->lock);
    start = start != 0 ? start : (size_t)(script.memory_bytes - script.live_bytes);
    return largest > start ? largest : start;
}

/* Operations whose result is "ok". False: there is none of that name. */
static bool do_plain(const struct op *op)
{
    if (strcmp(op->name, "empty_cache") == 0) {
        cca_allocator_empty_cache(allocator);
    } else if (strcmp(op->name, "reset_peak") == 0) {
        cca_observer_reset_peak(&heap->observer);
    } else if (strcmp(op->name, "reset_accumulated") == 0) {
        cca_observer_reset_accumulated(&heap->observer);
    } else if (strcmp(op->name, "stats") == 0) {
        print_stats();
    } else if (strcmp(op->name, "snapshot") == 0) {
        print_snapshot(heap, done_ops);
        note_snapshot();
    } else if (strcmp(op->name, "device_memory") == 0) {
        script.memory_bytes = op_number(op, 0, 0);
    } else if (strncmp(op->name, "capture_", 8) == 0 || strcmp(op->name, "pool_release") == 0) {
        do_capture(op);
    } else if (strcmp(op->name, "advance") == 0) {
        scripted_advance(&script, op_number(op, 0, 0));
    } else if (strcmp(op->name, "fraction") == 0) {
        set_fraction(op->words[0]);
    } else if (strcmp(op->name, "settings") == 0) {
        set_conf(op->words[0]);
    } else if (strcmp(op->name, "history") == 0) {
        do_history(op);
    } else {
        return false;
    }
    return true;
}

static void run(const struct op *op)
{
    if (strcmp(op->name, "malloc") == 0) {
        do_malloc(op);
    } else if (strcmp(op->name, "free") == 0) {
        printf("R \"%s\"\n", do_free(op) ? "ok" : "none");
    } else if (strcmp(op->name, "record_stream") == 0) {
        printf("R \"%s\"\n", do_record_stream(op) ? "ok" : "none");
    } else if (strcmp(op->name, "largest_block") == 0) {
        printf("R %zu\n", largest_block((size_t)op_number(op, 0, 0)));
    } else if (do_plain(op)) {
        printf("R \"ok\"\n");
    } else {
        die("no such operation", op->name);
    }
    verify();
    const struct cca_stats *stats = &heap->observer.stats;
    printf("A [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]\n",
           stats->allocated_bytes[0].current, stats->active_bytes[0].current,
           stats->reserved_bytes[0].current, stats->inactive_split_bytes[0].current);
    done_ops++;
}

static void print_driver(void)
{
    printf("D {\"allocs\": %u, \"frees\": %u, \"refused\": %u, \"peak_bytes\": %" PRIu64 "}\n",
           script.allocs_made, script.frees_made, script.refused, script.peak_bytes);
}

static void run_script(void)
{
    static char line[LINE_BYTES];
    struct op op;
    if (fgets(line, sizeof(line), stdin) == NULL || !op_parse(&op, line) ||
        strcmp(op.name, "config") != 0) {
        die("the first line is not a config", line);
    }
    open_core(op.words[0] == NULL ? "" : op.words[0]);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (op_parse(&op, line)) {
            run(&op);
        }
    }
    print_stats();
    print_snapshot(heap, done_ops);
    print_trace(&heap->observer.ring);
    print_driver();
}

static void print_moment(const char *when, uint64_t hash)
{
    printf("S {\"when\": \"%s\", \"hash\": \"%016" PRIx64 "\"", when, hash);
    print_stats_members(&heap->observer.stats);
    printf("}\n");
}

static void run_mixed(uint64_t seed)
{
    static uint64_t sizes[MIXED_SLOTS], addrs[MIXED_SLOTS];
    static struct mixed_step steps[MIXED_STEPS];
    uint64_t hash = HASH_START;
    printf("H \"%016" PRIx64 "\"\n", mixed_generate(seed, sizes, steps));
    open_core("");
    for (unsigned i = 0; i < MIXED_SLOTS; i++) {
        addrs[i] = core_malloc((size_t)sizes[i], 0);
        hash = hash_value(hash, addrs[i]);
    }
    print_moment("after the 2000 initial blocks", hash);
    for (unsigned i = 0; i < MIXED_STEPS; i++) {
        uint64_t *addr = &addrs[steps[i].slot];
        core_free(*addr);
        *addr = core_malloc((size_t)steps[i].bytes, 0);
        hash = hash_value(hash, *addr);
    }
    print_moment("after the 100000 steps", hash);
    for (unsigned i = 0; i < MIXED_SLOTS; i++) {
        core_free(addrs[i]);
    }
    print_moment("after the final frees", hash);
    cca_allocator_empty_cache(allocator);
    print_moment("after an empty-cache", hash);
    verify();
    print_driver();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "mixed") == 0) {
        run_mixed(strtoull(argv[2], NULL, 10));
    } else {
        run_script();
    }
    cca_allocator_destroy(allocator);
    return 0;
}
