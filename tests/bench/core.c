/* SPDX-License-Identifier: MIT */
/* What the allocator itself costs, over a device whose calls cost nothing, driven in stream order:
 *   bench_core WORKLOAD [NUMBER...]      --list names them
 * With CCA_BENCH_OPS=N a workload runs exactly N operations once and prints no time: the difference
 * of two such runs under an instruction counter is the cost of an operation. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sysmem.h"
#include "measure.h"
#include "observe/stack_table.h"
#include "support/heap_fixture.h"
#include "support/mixed_workload.h"

enum { THREADS_MAX = 8, STREAM = 7, DEPTH = 25 };

static struct fixture fix;
static struct cca_stack_table stacks;

static uint64_t take_on(struct cca_heap *heap, size_t bytes, cca_key key, uint32_t stack)
{
    struct cca_request request = {.bytes = bytes, .key = key, .thread = 1, .stack = stack};
    uint64_t addr = 0;
    if (cca_allocator_alloc(fix.allocator, heap, &request, &addr).kind != CCA_OK) {
        fprintf(stderr, "bench_core: an allocation of %zu bytes failed\n", bytes);
        exit(1);
    }
    return addr;
}

static void give_on(uint64_t addr, cca_key key, uint32_t stack)
{
    struct cca_request request = {.key = key, .thread = 1, .stack = stack};
    if (cca_allocator_free(fix.allocator, addr, &request) != CCA_FREE_DONE) {
        fprintf(stderr, "bench_core: a free failed\n");
        exit(1);
    }
}

static uint64_t take(size_t bytes)
{
    return take_on(fix.heaps[0], bytes, STREAM, 0);
}

static void give(uint64_t addr)
{
    give_on(addr, STREAM, 0);
}

static void open_devices(int count, bool has_history)
{
    fixture_open(&fix, count);
    fix.config.verify = false;
    for (int i = 0; i < count; i++) {
        fix.heaps[i]->rekeys = false;
        fix.heaps[i]->observer.is_recording = has_history;
    }
}

static void open_core(bool has_history)
{
    open_devices(1, has_history);
}

/* A ring that is full and whose memory has been touched: what a long run sees. */
static void fill_ring(void)
{
    struct cca_trace_ring *ring = &fix.heaps[0]->observer.ring;
    while (ring->held < ring->capacity) {
        give(take(1024));
    }
}

/* One figure of `batch`, or its operations alone for an instruction counter. */
static void run(const char *name, const char *detail, batch_fn batch, void *ctx, long ops,
                int batches)
{
    const char *only = getenv("CCA_BENCH_OPS");
    if (only != NULL) {
        batch(ctx, 1);
        batch(ctx, atol(only));
        return;
    }
    struct figure figure = measure_batches(batch, ctx, ops, batches);
    measure_print(name, detail, &figure);
}

struct pair {
    struct cca_heap *heap;
    size_t bytes;
    cca_key key;
};

static void hot_pairs(void *ctx, long ops)
{
    const struct pair *pair = ctx;
    for (long i = 0; i < ops; i++) {
        give_on(take_on(pair->heap, pair->bytes, pair->key, 0), pair->key, 0);
    }
}

static const char *size_name(size_t bytes)
{
    static char text[32];
    snprintf(text, sizeof(text), bytes >= MIB(1) ? "%zu MiB, pair" : "%zu KiB, pair",
             bytes >= MIB(1) ? bytes >> 20 : bytes >> 10);
    return text;
}

static void bench_hot(long bytes, long unused)
{
    (void)unused;
    open_core(false);
    struct pair pair = {fix.heaps[0], (size_t)bytes, STREAM};
    run("hot", size_name(pair.bytes), hot_pairs, &pair, 2000, 400);
}

/* A segment full of blocks, of which the middle one comes and goes. */
static void bench_exact(long bytes, long count)
{
    static uint64_t addrs[2048];
    open_core(false);
    for (long i = 0; i < count; i++) {
        addrs[i] = take((size_t)bytes);
    }
    give(addrs[count / 2]);
    struct pair pair = {fix.heaps[0], (size_t)bytes, STREAM};
    run("exact", size_name(pair.bytes), hot_pairs, &pair, 2000, 400);
}

static uint64_t slots[MIXED_SLOTS];
static struct mixed_step steps[MIXED_STEPS];

/* Operations are counted one by one: a step is two. */
static void mixed_ops(void *ctx, long ops)
{
    size_t *next = ctx;
    for (long i = 0; i < ops / 2; i++) {
        const struct mixed_step *step = &steps[*next];
        give(slots[step->slot]);
        slots[step->slot] = take(step->bytes);
        *next = *next + 1 == MIXED_STEPS ? 0 : *next + 1;
    }
}

static void bench_mixed(long seed, long unused)
{
    static const struct {
        long seed;
        uint64_t hash, driver_allocs, reserved_mib;
    } known[] = {{42, 0xa5f63f0cb615f14e, 553, 15416},
                 {1, 0x7765771fe6768c06, 567, 15310},
                 {2, 0xd0d4cdf21923b00a, 565, 15580},
                 {3, 0xf9d7a61a0d3ce043, 554, 15854},
                 {4, 0xe3d14068541153f5, 605, 16638}};
    static uint64_t sizes[MIXED_SLOTS];
    size_t next = 0;
    (void)unused;
    open_core(false);
    uint64_t hash = mixed_generate((uint64_t)seed, sizes, steps);
    for (int i = 0; i < MIXED_SLOTS; i++) {
        slots[i] = take(sizes[i]);
    }
    mixed_ops(&next, 2 * MIXED_STEPS);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].seed == seed &&
            (known[i].hash != hash || fix.scripts[0]->allocs_made != known[i].driver_allocs ||
             fix.scripts[0]->live_bytes >> 20 != known[i].reserved_mib)) {
            fprintf(stderr, "bench_core: mixed %ld is not the known workload\n", seed);
            exit(1);
        }
    }
    char what[64];
    snprintf(what, sizeof(what), "seed %ld, warm, operation", seed);
    run("mixed", what, mixed_ops, &next, 2000, 400);
}

static uint32_t some_stack(unsigned number)
{
    uintptr_t pcs[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        pcs[i] = 0x400000 + 64 * (uintptr_t)i + (i == 3 ? 4096 * (uintptr_t)number : 0);
    }
    return cca_stack_table_intern(&stacks, pcs, DEPTH);
}

struct recorded {
    unsigned stacks, next;
    bool at_free;
};

static void recorded_pairs(void *ctx, long ops)
{
    struct recorded *recorded = ctx;
    for (long i = 0; i < ops; i++) {
        uint32_t id = recorded->stacks > 0 ? some_stack(recorded->next++ % recorded->stacks) : 0;
        uint64_t addr = take_on(fix.heaps[0], 1024, STREAM, id);
        if (recorded->at_free) {
            id = some_stack(recorded->next++ % recorded->stacks);
        }
        give_on(addr, STREAM, id);
    }
}

/* The unwinding itself is not in it: bench_hooks measures that. */
static void bench_history(long distinct, long at_free)
{
    open_core(true);
    fill_ring();
    if (cca_stack_table_init(&stacks, 1 << 16, 64 << 20) != 0) {
        exit(1);
    }
    struct recorded recorded = {(unsigned)distinct, 0, at_free != 0};
    char what[96];
    snprintf(what, sizeof(what), "%ld distinct stacks%s, without unwinding, pair", distinct,
             at_free != 0 ? ", both ends" : "");
    run("history", what, recorded_pairs, &recorded, 2000, 400);
}

/* Log-uniform from 512 B to below 1 MiB. */
static size_t live_size(uint64_t *state)
{
    uint64_t x = mixed_draw(state);
    size_t base = (size_t)512 << ((x >> 32) % 11);
    return base + base * (x & 0xFFFF) / 65536;
}

static double resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) {
        pages = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (double)pages * 4096;
}

/* One more pair of a random size, as the others are. */
static void live_pairs(void *ctx, long ops)
{
    uint64_t *state = ctx;
    for (long i = 0; i < ops; i++) {
        give(take(live_size(state)));
    }
}

static void bench_live(long count, long frees_half)
{
    uint64_t state = 42;
    uint64_t *addrs = malloc((size_t)count * sizeof(*addrs));
    open_core(false);
    for (long i = 0; i < count; i++) {
        addrs[i] = 1;
    }
    double before = resident_bytes();
    for (long i = 0; i < count; i++) {
        addrs[i] = take(live_size(&state));
    }
    double grown = resident_bytes() - before;
    char what[64];
    if (frees_half != 0) {
        for (long i = 0; i < count; i += 2) {
            give(addrs[i]);
        }
        snprintf(what, sizeof(what), "%ld live, %ld free, pair", count / 2, count / 2);
    } else {
        snprintf(what, sizeof(what), "%ld live, pair", count);
    }
    run(frees_half != 0 ? "free blocks" : "live blocks", what, live_pairs, &state,
        count >= 100000 ? 200 : 1000, 400);
    if (getenv("CCA_BENCH_OPS") == NULL && count >= 10000 && frees_half == 0) {
        snprintf(what, sizeof(what), "host memory per live block, %ld live", count);
        measure_print_value("memory", what, "bytes", grown / (double)count);
    }
    free(addrs);
}

/* Host memory that ten million operations leave behind: none, in steady state. What the process has
 * resident may move a little by itself. */
static void bench_growth(long pairs, long unused)
{
    enum { RESIDENT_NOISE = 1 << 20 }; /* the kernel counts in batches */
    (void)unused;
    open_core(true);
    fill_ring();
    struct pair pair = {fix.heaps[0], 1024, STREAM};
    hot_pairs(&pair, 1000);
    size_t mapped = cca_sysmem_mapped_bytes();
    double before = resident_bytes();
    hot_pairs(&pair, pairs);
    double grown = resident_bytes() - before;
    char what[64];
    snprintf(what, sizeof(what), "growth over %ld operations", 2 * pairs);
    measure_print_value("memory", what, "bytes", grown);
    if (cca_sysmem_mapped_bytes() != mapped || grown > RESIDENT_NOISE) {
        fprintf(stderr, "bench_core: memory has grown, mapped from %zu to %zu bytes\n", mapped,
                cca_sysmem_mapped_bytes());
        exit(1);
    }
}

struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct pair pair;
    long pairs;
    int core;
    uint64_t began_ns, ended_ns;
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    measure_pin(worker->core);
    hot_pairs(&worker->pair, 200);
    pthread_barrier_wait(worker->barrier);
    worker->began_ns = cca_clock_ns();
    hot_pairs(&worker->pair, worker->pairs);
    worker->ended_ns = cca_clock_ns();
    return NULL;
}

/* From the first thread's start to the last one's end, divided by the number of all pairs. */
static double parallel_ns(int threads, bool own_streams)
{
    enum { PAIRS = 20000 };
    static struct worker workers[THREADS_MAX];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < threads; i++) {
        cca_key key = own_streams ? STREAM + (cca_key)i : STREAM;
        workers[i] = (struct worker){.barrier = &barrier, .pairs = PAIRS, .core = i % (int)cores};
        workers[i].pair = (struct pair){fix.heaps[0], 1024, key};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    uint64_t began_ns = UINT64_MAX, ended_ns = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        began_ns = workers[i].began_ns < began_ns ? workers[i].began_ns : began_ns;
        ended_ns = workers[i].ended_ns > ended_ns ? workers[i].ended_ns : ended_ns;
    }
    pthread_barrier_destroy(&barrier);
    return (double)(ended_ns - began_ns) / ((double)threads * PAIRS);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench_threads(long threads, long own_streams)
{
    enum { RUNS = 15 };
    double ns[RUNS];
    open_core(false);
    for (int i = 0; i < RUNS; i++) {
        ns[i] = parallel_ns((int)threads, own_streams != 0);
    }
    qsort(ns, RUNS, sizeof(ns[0]), by_value);
    struct figure figure = {ns[0], ns[RUNS / 2], ns[RUNS - 1], 0};
    char what[64];
    snprintf(what, sizeof(what), "%ld threads, %s, wall time per pair", threads,
             own_streams != 0 ? "own streams" : "one stream");
    measure_print("threads", what, &figure);
}

/* The pair goes round `count` streams. */
static void stream_pairs(void *ctx, long ops)
{
    const long *count = ctx;
    for (long i = 0; i < ops; i++) {
        cca_key key = STREAM + (cca_key)(i % *count);
        give_on(take_on(fix.heaps[0], 1024, key, 0), key, 0);
    }
}

static void bench_streams(long count, long unused)
{
    (void)unused;
    open_core(false);
    char what[64];
    snprintf(what, sizeof(what), "%ld streams in turn, pair", count);
    run("streams", what, stream_pairs, &count, 2048, 400);
}

/* The pair goes round `count` devices. */
static void device_pairs(void *ctx, long ops)
{
    const long *count = ctx;
    for (long i = 0; i < ops; i++) {
        give_on(take_on(fix.heaps[i % *count], 1024, STREAM, 0), STREAM, 0);
    }
}

static void bench_devices(long count, long unused)
{
    (void)unused;
    open_devices((int)count, false);
    char what[64];
    snprintf(what, sizeof(what), "%ld devices in turn, pair", count);
    run("devices", what, device_pairs, &count, 2048, 400);
}

static void bench_floor(long unused1, long unused2)
{
    (void)unused1, (void)unused2;
    measure_print_floors();
}

static const struct {
    const char *name;
    void (*fn)(long, long);
    long args[2]; /* without arguments */
} workloads[] = {
    {"floor", bench_floor, {0, 0}},         {"hot", bench_hot, {1024, 0}},
    {"exact", bench_exact, {1024, 2048}},   {"mixed", bench_mixed, {42, 0}},
    {"history", bench_history, {0, 0}},     {"live", bench_live, {1000, 0}},
    {"growth", bench_growth, {5000000, 0}}, {"threads", bench_threads, {2, 1}},
    {"streams", bench_streams, {8, 0}},     {"devices", bench_devices, {8, 0}},
};

int main(int argc, char **argv)
{
    size_t count = sizeof(workloads) / sizeof(workloads[0]);
    for (size_t i = 0; argc > 1 && i < count; i++) {
        if (strcmp(argv[1], workloads[i].name) == 0) {
            long first = argc > 2 ? atol(argv[2]) : workloads[i].args[0];
            long second = argc > 3 ? atol(argv[3]) : workloads[i].args[1];
            if (strcmp(argv[1], "threads") != 0) {
                measure_pin(0);
            }
            workloads[i].fn(first, second);
            return 0;
        }
    }
    bool wants_list = argc > 1 && strcmp(argv[1], "--list") == 0;
    fprintf(wants_list ? stdout : stderr, "workloads:");
    for (size_t i = 0; i < count; i++) {
        fprintf(wants_list ? stdout : stderr, " %s", workloads[i].name);
    }
    fprintf(wants_list ? stdout : stderr, "\n");
    return wants_list ? 0 : 2;
}
