/* SPDX-License-Identifier: MIT */
/* A program that takes part: every function of the C interface with its answer, next to what it
 * does to real memory. The argument says how the library is there: cached, counting, off or absent.
 */
#include "program.h"

#include <errno.h>
#include <semaphore.h>

#include "cca/cca.h"
#include "support/sim_kernels.h"

static int failures;

static void hear_oom(void *user, const struct cca_oom_notice *notice);

#define EXPECT(condition) expect((condition) ? 1 : 0, #condition)

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("WRONG: %s\n", what);
        failures++;
    }
}

static long long stat_of(const char *key)
{
    int64_t value = -1;
    EXPECT(cca_stat_value(0, key, &value) == 0);
    return (long long)value;
}

/* Not a function of the library answers anything. */
static void be_alone(void)
{
    uint64_t pool = 7;
    char mine;
    EXPECT(!cca_loaded() && cca_version() == NULL);
    EXPECT(cca_my_malloc(1000, 0, NULL) == NULL);
    cca_my_free(&mine, 1, 0, NULL);
    EXPECT(cca_record_stream(&mine, NULL) == -ENOSYS);
    EXPECT(cca_set_memory_reporter(NULL, NULL) == -ENOSYS);
    EXPECT(cca_pool_create(0, NULL, &pool) == -ENOSYS && pool == 7);
    EXPECT(cca_set_settings("") == -ENOSYS && cca_get_memory_fraction(0) == 1);
    EXPECT(cca_empty_cache() == -ENOSYS && cca_memory_reserved(0) == 0);
}

/* It is there and does nothing. */
static void be_off(void)
{
    int64_t value = 7;
    void *p = NULL;
    MUST(cudaMalloc(&p, 1000));
    EXPECT(cca_loaded() && strcmp(cca_version(), CCA_VERSION_STRING) == 0);
    EXPECT(cca_my_malloc(1000, 0, NULL) == NULL && cca_record_stream(p, NULL) == -ENODEV);
    EXPECT(cca_stat_value(0, "num_ooms", &value) == -ENODEV && value == 7);
    EXPECT(cca_set_settings("") == -ENODEV && cca_empty_cache() == -ENODEV);
    EXPECT(cca_attach_oom_observer(hear_oom, NULL) == -ENOSYS);
    EXPECT(cca_set_memory_reporter(NULL, NULL) == -ENOSYS);
    MUST(cudaFree(p));
}

static struct {
    int ooms, events, misses;
    unsigned long long missing;
    void *spare;
    cudaStream_t stream;
    int reports;
    int64_t balance, failed_bytes;
    struct cca_memory_report last;
} heard;

static void hear_oom(void *user, const struct cca_oom_notice *notice)
{
    void *p = NULL;
    EXPECT(user == &heard && notice->device == 0 && !notice->is_rejection);
    heard.ooms++;
    heard.missing = notice->bytes;
    MUST(cudaMalloc(&p, 100)); /* no lock is held */
    MUST(cudaFree(p));
}

static void hear_event(void *user, const struct cca_trace_notice *notice)
{
    EXPECT(user == &heard && notice->action != NULL && notice->device == 0);
    heard.events++;
    EXPECT(cca_empty_cache() == -EBUSY);
}

/* Follows the totals, and allocates itself. */
static void hear_report(void *user, const struct cca_memory_report *report)
{
    EXPECT(user == &heard && report->device == 0 && report->lost == 0);
    EXPECT(report->struct_bytes == sizeof(*report));
    heard.reports++;
    heard.last = *report;
    if (report->is_oom) {
        heard.failed_bytes = report->bytes;
        EXPECT(report->addr == 0);
        void *p = NULL;
        MUST(cudaMalloc(&p, 100)); /* no lock is held */
        MUST(cudaFree(p));
        return;
    }
    EXPECT(report->addr != 0 && report->bytes != 0);
    heard.balance += report->bytes;
    EXPECT((int64_t)report->total_allocated == heard.balance);
    EXPECT(report->total_allocated <= report->total_reserved ||
           strcmp(getenv("CCA_MODE") != NULL ? getenv("CCA_MODE") : "", "count") == 0);
}

static int hear_miss(void *user, int device, uint64_t bytes)
{
    EXPECT(user == &heard && device == 0 && bytes >= 512);
    heard.misses++;
    if (heard.spare == NULL) {
        return 0;
    }
    cca_my_free(heard.spare, 0, 0, heard.stream);
    heard.spare = NULL;
    return 1;
}

static void attach(void)
{
    EXPECT(cca_attach_oom_observer(hear_oom, &heard) == 0);
    EXPECT(cca_attach_trace_tracker(hear_event, &heard) == 0);
    EXPECT(cca_attach_free_memory_callback(hear_miss, &heard) == 0);
    EXPECT(cca_set_memory_reporter(hear_report, &heard) == 0);
}

/* Memory of all doors, with a kernel on it. */
static void allocate(cudaStream_t stream, int is_cached)
{
    struct cca_sums_info sums = {.struct_bytes = sizeof(sums)};
    struct cca_memory_figures figures = {.struct_bytes = sizeof(figures)};
    unsigned long long before = cca_memory_allocated(0);
    char *own = cca_my_malloc(1000, 0, stream);
    EXPECT(own != NULL && cca_memory_allocated(0) == before + (is_cached ? 1024 : 1000));
    MUST(sim_fill(own, 1000, 7, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(all_bytes_are(own, 1000, 7));
    EXPECT(cca_stream_stats(0, stream, &sums) == 0 && sums.live_blocks == 1);
    EXPECT(sums.live_bytes == (is_cached ? 1024 : 1000));
    EXPECT(cca_memory_stats(0, &figures) == 0);
    EXPECT(figures.allocated_bytes.all.current == (int64_t)cca_memory_allocated(0));
    EXPECT(figures.requested_bytes.small_pool.current ==
           stat_of("requested_bytes.small_pool.current"));
    EXPECT(figures.reserved_bytes.all.current == (int64_t)cca_memory_reserved(0));
    EXPECT(cca_my_malloc(0, 0, stream) == NULL && cca_my_malloc(1, 5, stream) == NULL);
    cca_my_free(own, 1000, 0, stream);
    EXPECT(cca_memory_allocated(0) == before);
    if (is_cached) {
        EXPECT(cca_my_malloc(1000, 0, stream) == own);
        cca_my_free(own, 1000, 0, stream);
    }
    /* Of the default streams, by all their names, and freed by the other door. */
    void *const defaults[] = {NULL, cudaStreamLegacy, cudaStreamPerThread};
    for (int i = 0; i < 3; i++) {
        own = cca_my_malloc(5000, 0, defaults[i]);
        EXPECT(own != NULL);
        MUST(cudaMemset(own, i, 5000));
        EXPECT(all_bytes_are(own, 5000, i));
        MUST(cudaFree(own));
    }
    EXPECT(cca_memory_allocated(0) == before);
}

static sem_t gate;

static void wait_at_gate(void *unused)
{
    (void)unused;
    sem_wait(&gate);
}

/* Memory used on two streams is not handed out while either works on it: the simulator would say.
 * Where work is done by whoever asks about it none may block, and any may be over. */
static int work_may_block = 1;

static void share(cudaStream_t stream, cudaStream_t other)
{
    char *shared = cca_my_malloc(50000, 0, stream);
    EXPECT(shared != NULL);
    sem_init(&gate, 0, 0);
    if (work_may_block) {
        MUST(cudaLaunchHostFunc(other, wait_at_gate, NULL));
    }
    MUST(sim_fill(shared, 50000, 1, other));
    EXPECT(cca_record_stream(shared, other) == 0);
    cca_my_free(shared, 50000, 0, stream);
    char *next = cca_my_malloc(50000, 0, stream);
    EXPECT(next != NULL && (next != shared || !work_may_block));
    MUST(sim_fill(next, 50000, 2, stream));
    cca_my_free(next, 50000, 0, other); /* the last use is said to be there */
    char *after = cca_my_malloc(50000, 0, stream);
    EXPECT(after != NULL && ((after != shared && after != next) || !work_may_block));
    sem_post(&gate);
    MUST(sim_fill(after, 50000, 3, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(all_bytes_are(after, 50000, 3));
    cca_my_free(after, 50000, 0, stream);
    MUST(cudaStreamSynchronize(other));
}

static void use_pools(cudaStream_t stream)
{
    struct cca_pool_options options = {.struct_bytes = sizeof(options), .use_on_oom = 1};
    struct cca_sums_info sums = {.struct_bytes = sizeof(sums)};
    uint64_t pool = 0;
    void *by_thread = NULL;
    EXPECT(cca_pool_create(0, &options, &pool) == 0 && pool != 0);
    EXPECT(cca_pool_use_begin(0, pool, CCA_POOL_USE_STREAM, stream) == 0);
    void *own = cca_my_malloc(3 << 20, 0, stream), *ordered = NULL, *plain = NULL;
    MUST(cudaMallocAsync(&ordered, 3 << 20, stream));
    MUST(cudaMalloc(&plain, 3 << 20));
    EXPECT(cca_pool_stats(0, pool, &sums, NULL) == 0 && sums.live_bytes == 6 << 20);
    EXPECT(cca_pool_use_end(0, pool) == 0);
    EXPECT(cca_pool_use_begin(0, pool, CCA_POOL_USE_THREAD, NULL) == 0);
    MUST(cudaMalloc(&by_thread, 1 << 20));
    EXPECT(cca_pool_stats(0, pool, &sums, NULL) == 0 && sums.live_bytes == 7 << 20);
    EXPECT(cca_pool_destroy(0, pool) == 0); /* the use keeps it */
    EXPECT(cca_pool_snapshot(0, pool, "pool") == 0);
    EXPECT(cca_pool_use_end(0, pool) == 0);
    MUST(cudaFree(by_thread));
    MUST(cudaFreeAsync(ordered, stream));
    MUST(cudaFree(plain));
    cca_my_free(own, 3 << 20, 0, stream);
    MUST(cudaStreamSynchronize(stream));
    EXPECT(cca_empty_cache() == 0);
    EXPECT(cca_pool_stats(0, pool, &sums, NULL) == -ENOENT);
    EXPECT(cca_memory_reserved(0) == 0);
}

static void fail(cudaStream_t stream)
{
    unsigned long long ooms = (unsigned long long)stat_of("num_ooms");
    EXPECT(cca_set_memory_fraction(0, 0.0625) == 0 && cca_get_memory_fraction(0) == 0.0625);
    int before = heard.ooms;
    EXPECT(cca_my_malloc((ptrdiff_t)2 << 30, 0, stream) == NULL);
    EXPECT(heard.ooms == before + 1 && heard.missing == 2ull << 30);
    EXPECT(heard.failed_bytes == 2ll << 30);
    EXPECT((unsigned long long)stat_of("num_ooms") == ooms + 1);
    /* What is given back on a miss serves the request. */
    heard.stream = stream;
    heard.spare = cca_my_malloc((ptrdiff_t)900 << 20, 0, stream);
    EXPECT(heard.spare != NULL);
    void *most = cca_my_malloc((ptrdiff_t)800 << 20, 0, stream);
    EXPECT(most != NULL && heard.spare == NULL);
    cca_my_free(most, 0, 0, stream);
    EXPECT(cca_set_memory_fraction(0, 1) == 0);
    MUST(cudaStreamSynchronize(stream));
}

static void set(void)
{
    EXPECT(cca_set_settings("max_split_size_mb:64,garbage_collection_threshold:0.5,"
                            "roundup_power2_divisions:4,graph_capture_record_stream_reuse:True") ==
           0);
    EXPECT(cca_set_settings("nonsense:1") == -EINVAL);
    EXPECT(cca_set_memory_fraction(0, 0.5) == 0);
    EXPECT(cca_dump_snapshot("set") == 0);
    EXPECT(cca_set_memory_fraction(0, 1) == 0);
    EXPECT(cca_set_settings("") == 0);
    EXPECT(cca_dump_snapshot("reset") == 0);
}

static void take_part(int is_cached)
{
    cudaStream_t stream, other;
    uint64_t largest = 7;
    EXPECT(cca_loaded() && strcmp(cca_version(), CCA_VERSION_STRING) == 0);
    EXPECT(cca_my_malloc(1000, 0, NULL) == NULL); /* no device is in use yet */
    EXPECT(cca_pool_create(0, NULL, &largest) == -ENODEV && largest == 7);
    EXPECT(cca_set_settings("nonsense:1") == -EINVAL &&
           cca_set_settings("large_segment_size_mb:20") == 0);
    attach();
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    allocate(stream, is_cached);
    EXPECT(heard.events > 0);
    if (is_cached) {
        share(stream, other);
        use_pools(stream);
        fail(stream);
        set();
        EXPECT(cca_empty_cache() == 0 && cca_largest_free_block(0, &largest) == 0 && largest == 0);
        EXPECT(cca_reset_peak_memory_stats(0) == 0 && cca_max_memory_allocated(0) == 0);
        EXPECT(cca_reset_accumulated_memory_stats(0) == 0 && stat_of("num_ooms") == 0);
    }
    EXPECT(cca_memory_allocated(0) == 0 && cca_memory_reserved(0) == 0);
    EXPECT(heard.misses > 0 || !is_cached);
    EXPECT(heard.reports > 3 && heard.balance == 0);
    int reports = heard.reports;
    EXPECT(cca_set_memory_reporter(NULL, NULL) == 0);
    cca_my_free(cca_my_malloc(1000, 0, stream), 1000, 0, stream);
    EXPECT(heard.reports == reports);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamDestroy(other));
}

int main(int argc, char **argv)
{
    work_may_block = argc < 3 || strcmp(argv[2], "unblocked") != 0;
    const char *how = argc > 1 ? argv[1] : "absent";
    errno = ENOTTY;
    if (strcmp(how, "absent") == 0) {
        be_alone();
    } else if (strcmp(how, "off") == 0) {
        be_off();
    } else {
        take_part(strcmp(how, "cached") == 0);
    }
    printf("%s: %d wrong\n", how, failures);
    return failures != 0;
}
