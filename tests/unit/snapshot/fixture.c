/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "support/test.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snapshot/write_json.h"
#include "snapshot/write_pickle.h"
#include "unit/snapshot/test_paths.h"

extern char **environ;

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static char folder[64];

static void *take(struct cca_model *model, size_t count, size_t item_bytes)
{
    void *items = cca_model_array(model, count, item_bytes);

    assert_non_null(items);
    return items;
}

void fixture_empty(struct cca_model *model)
{
    static const char *const command_line[] = {"./app", "--size", "\"1\" \\ \t\xff"};

    assert_int_equal(cca_model_init(model, FIXTURE_RESERVE), 0);
    model->version = "0.1.0";
    model->host = "host";
    model->program = "/opt/app/bin/app";
    model->command_line = command_line;
    model->command_line_count = 3;
    model->pid = 4321;
    model->start_time_us = 1700000000000000;
    model->dump_time_us = 1700000005000000;
    model->wall_base_us = 1600000000000000;
    model->cause = "signal";
    model->allocator_settings.max_split_size = -1;
    model->allocator_settings.garbage_collection_threshold = 0.8;
    model->allocator_settings.conf_text = "max_split_size_mb:512";
    model->allocator_settings.roundup_power2_divisions[15] = 4;
    model->allocator_settings.trace_alloc_max_entries = 100000;
}

static void add_devices(struct cca_model *model, size_t count)
{
    model->devices = take(model, count, sizeof(*model->devices));
    model->device_count = count;
    for (size_t i = 0; i < count; i++) {
        model->devices[i].ordinal = (int)i;
        model->devices[i].total_bytes = 24 * GIB;
        model->devices[i].free_bytes = 10 * GIB;
        model->devices[i].free_time_ns = 6000;
        model->devices[i].stats.max_split_size = -1;
    }
}

/* Stacks of `depth` frames of which the outer ones are the same in all. */
static void add_stacks(struct cca_model *model, size_t count, size_t depth, size_t common)
{
    size_t own = depth - common;
    char name[64];

    model->stack_count = count;
    model->stacks = take(model, count, sizeof(*model->stacks));
    model->stack_frame_count = count * depth;
    model->stack_frames = take(model, count * depth, sizeof(*model->stack_frames));
    model->frame_count = count * own + common;
    model->frames = take(model, model->frame_count, sizeof(*model->frames));
    for (size_t i = 0; i < model->frame_count; i++) {
        snprintf(name, sizeof(name), "function_number_%zu", i);
        model->frames[i].name = cca_model_text(model, name);
        model->frames[i].filename = i % 2 == 0 ? "/usr/lib/libone.so.1" : "/usr/lib/libtwo.so.2";
        model->frames[i].address = 0x7f0000001000 + 16 * i;
    }
    for (size_t i = 0; i < count; i++) {
        model->stacks[i].first = i * depth;
        model->stacks[i].count = depth;
        for (size_t j = 0; j < depth; j++) {
            model->stack_frames[i * depth + j] = (uint32_t)(j < own ? common + i * own + j
                                                                    : j - own);
        }
    }
}

static struct cca_trace_entry entry_of(enum cca_event_kind kind, uint64_t addr, uint64_t bytes,
                                       uint32_t stack)
{
    return (struct cca_trace_entry){
        .kind = (uint8_t)kind,
        .addr = addr,
        .requested_bytes = bytes,
        .block_bytes = (bytes + 511) / 512 * 512,
        .stack = stack,
        .time_ns = 5000000,
        .thread = 77,
        .api_flags = CCA_API_MALLOC | CCA_EVENT_HIT << 4,
    };
}

static void add_small_events(struct cca_model *model, uint64_t base)
{
    struct cca_model_device *device = &model->devices[0];

    device->entries = take(model, 6, sizeof(*device->entries));
    device->entry_count = 6;
    device->entries[0] = entry_of(CCA_EVENT_SEGMENT_ALLOC, base, 2 * MIB, 1);
    device->entries[1] = entry_of(CCA_EVENT_ALLOC, base, 1000, 1);
    device->entries[2] = entry_of(CCA_EVENT_ALLOC, base + 1024, 500, 2);
    device->entries[3] = entry_of(CCA_EVENT_FREE_REQUESTED, base + 1024, 500, 2);
    device->entries[4] = entry_of(CCA_EVENT_OOM, 123456789, 40 * GIB, 0);
    device->entries[5] = entry_of(CCA_EVENT_SNAPSHOT, 0, 1536, 0);
    device->entries[2].pool = 2;
    device->pools = take(model, 2, sizeof(*device->pools));
    device->pool_count = 2;
    device->pools[0] = (struct cca_pool_row){.id = {8, 0}};
    device->pools[1] = (struct cca_pool_row){.id = {0, 3}, .is_live = true};
    device->pools[1].stats.reserved_bytes_by_private_pools[CCA_STAT_ALL].current = 2 * MIB;
    device->entries[2].stream = 0x8000000000000001;
}

void fixture_small(struct cca_model *model)
{
    static struct cca_model_hook hooks[] = {{"cudaMalloc", "runtime", 5, 4, 1, 0},
                                            {"cuMemFree_v2", "driver", 2, 2, 0, 3}};
    static const char *messages[] = {"caching ends: the program called caf\xe9"};
    static struct cca_model_setting settings[] = {{"CCA_MODE", "cache"}, {"CCA_DUMP_ON", ""}};
    const uint64_t base = 0x7f1200000000;

    fixture_empty(model);
    model->hooks = hooks;
    model->hook_count = 2;
    model->settings = settings;
    model->setting_count = 2;
    model->messages = messages;
    model->message_count = 1;
    add_devices(model, 1);
    model->devices[0].stats.reserved_bytes[CCA_STAT_ALL].current = 2 * (int64_t)MIB;
    model->devices[0].counters.driver_alloc_ns = 1234567;
    model->devices[0].lost_entries = 7;
    model->devices[0].unwind.slow = 3;
    add_stacks(model, 2, 3, 1);
    model->frames[0].name = "caf\xc3\xa9 \xff\xfe \"quoted\" \\ \x01";
    model->frames[0].filename = "/opt/\xe9t\xe9/lib.so";
    add_small_events(model, base);
    model->blocks = take(model, 3, sizeof(*model->blocks));
    model->block_count = 3;
    model->blocks[0] = (struct cca_model_block){
        base, 1024, 1000, 5000000, 1, 77, CCA_MODEL_ALLOCATED, true};
    model->blocks[1] = (struct cca_model_block){base + 1024,           512, 500, 5000000, 2, 78,
                                                CCA_MODEL_PENDING_FREE};
    model->blocks[2] = (struct cca_model_block){base + 1536, 2 * MIB - 1536,    0, 0, 0,
                                                0,           CCA_MODEL_INACTIVE};
    model->segments = take(model, 1, sizeof(*model->segments));
    model->segment_count = 1;
    model->segments[0] = (struct cca_model_segment){.address = base,
                                                    .total_size = 2 * MIB,
                                                    .is_small = true,
                                                    .stream = UINT64_MAX,
                                                    .pool_id = {0, 3},
                                                    .context = 9,
                                                    .stack = 1,
                                                    .block_count = 3};
}

void fixture_viewer(struct cca_model *model)
{
    enum { BLOCKS = 3000 };
    const uint64_t high = UINT64_C(0x800000000000);

    fixture_empty(model);
    add_devices(model, 2);
    add_stacks(model, 1, 2, 1);
    model->frames[0].name = "\xc3\x28 \xf8\x88 \xed\xa0\x80";
    model->blocks = take(model, BLOCKS + 1, sizeof(*model->blocks));
    model->block_count = BLOCKS + 1;
    for (size_t i = 0; i < BLOCKS; i++) {
        model->blocks[i] = (struct cca_model_block){
            high + 512 * i,
            512,
            400,
            1000000,
            1,
            5,
            i % 2 == 0 ? CCA_MODEL_ALLOCATED : CCA_MODEL_INACTIVE};
    }
    model->blocks[BLOCKS] = (struct cca_model_block){
        high + GIB, 6 * GIB, 6 * GIB - 1, 1000000, 1, 5, CCA_MODEL_ALLOCATED};
    model->segments = take(model, 2, sizeof(*model->segments));
    model->segment_count = 2;
    model->segments[0] = (struct cca_model_segment){
        .address = high + GIB, .total_size = 6 * GIB, .first_block = BLOCKS, .block_count = 1};
    model->segments[1] = (struct cca_model_segment){
        .address = high, .total_size = 512 * BLOCKS, .block_count = BLOCKS};
    cca_model_sort(model);
}

void fixture_big(struct cca_model *model, size_t events, size_t blocks, size_t stacks)
{
    const uint64_t base = 0x7f1200000000;
    struct cca_model_device *device;

    fixture_empty(model);
    add_devices(model, 1);
    add_stacks(model, stacks, 22, 18);
    device = &model->devices[0];
    device->entries = take(model, events, sizeof(*device->entries));
    device->entry_count = events;
    for (size_t i = 0; i < events; i++) {
        enum cca_event_kind kind = i % 3 == 0   ? CCA_EVENT_ALLOC
                                   : i % 3 == 1 ? CCA_EVENT_FREE_REQUESTED
                                                : CCA_EVENT_FREE_COMPLETED;

        device->entries[i] = entry_of(kind, base + i / 3 % blocks * 4096, 1 + i * 7919 % 4096,
                                      (uint32_t)(1 + i / 3 % stacks));
        device->entries[i].time_ns = 1000000 + 12345 * i;
    }
    model->blocks = take(model, blocks, sizeof(*model->blocks));
    model->block_count = blocks;
    for (size_t i = 0; i < blocks; i++) {
        model->blocks[i] = (struct cca_model_block){base + 4096 * i,
                                                    4096,
                                                    4000,
                                                    1000000,
                                                    (uint32_t)(1 + i % stacks),
                                                    77,
                                                    i % 4 == 0 ? CCA_MODEL_INACTIVE
                                                               : CCA_MODEL_ALLOCATED};
    }
    model->segments = take(model, 1, sizeof(*model->segments));
    model->segment_count = 1;
    model->segments[0] = (struct cca_model_segment){
        .address = base, .total_size = 4096 * blocks, .block_count = blocks};
}

const char *fixture_folder(void)
{
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/cca-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

void fixture_remove_folder(void)
{
    char command[256];

    if (folder[0] != '\0') {
        snprintf(command, sizeof(command), "chmod -R u+rwx %s && rm -rf %s", folder, folder);
        assert_int_equal(system(command), 0);
        folder[0] = '\0';
    }
}

static void path_of(char *path, size_t cap, const char *name)
{
    snprintf(path, cap, "%s/%s", fixture_folder(), name);
}

uint64_t fixture_write(struct cca_model *model, cca_dump_write_fn write_fn, const char *name)
{
    struct cca_sink sink;
    char path[256];
    int fd;

    path_of(path, sizeof(path), name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    cca_sink_init_fd(&sink, fd);
    write_fn(model, &sink);
    assert_int_equal(cca_sink_finish(&sink), 0);
    close(fd);
    return sink.written_bytes;
}

char *fixture_read(const char *name)
{
    struct stat status;
    char path[256];
    char *text;
    int fd;

    path_of(path, sizeof(path), name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    text = calloc(1, (size_t)status.st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)status.st_size), status.st_size);
    close(fd);
    return text;
}

void fixture_check(struct cca_model *model, const char *const *expressions)
{
    char *argv[96] = {(char *)CCA_TEST_PYTHON, (char *)CCA_TEST_CHECK_PICKLE, (char *)"--form",
                      (char *)"--same-as"};
    char pickle_path[256], json_path[256];
    size_t argc = 4;
    int status = -1;
    posix_spawn_file_actions_t actions;
    pid_t pid;

    fixture_write(model, cca_write_pickle, "document.pickle");
    fixture_write(model, cca_write_json, "document.json");
    path_of(pickle_path, sizeof(pickle_path), "document.pickle");
    path_of(json_path, sizeof(json_path), "document.json");
    argv[argc++] = json_path;
    argv[argc++] = pickle_path;
    for (; expressions != NULL && *expressions != NULL; expressions++) {
        assert_true(argc + 2 < CCA_ARRAY_LEN(argv));
        argv[argc++] = (char *)"--expect";
        argv[argc++] = (char *)*expressions;
    }
    /* The test's own output is read by its harness. */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    assert_int_equal(posix_spawn(&pid, CCA_TEST_PYTHON, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}
