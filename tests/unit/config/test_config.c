/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <signal.h>

#include "base/compiler.h"
#include "base/log.h"
#include "config/config.h"

enum { ENTRIES_MAX = 64, TEXT_BYTES = CCA_CONFIG_TEXT_MAX + 256 };

static struct cca_config config;

/* What the last read complained about. */
static struct {
    int count;
    char name[TEXT_BYTES], value[2 * TEXT_BYTES], remark[TEXT_BYTES];
} said;

static void keep_complaint(void *user, const char *name, const char *value, const char *remark)
{
    assert_ptr_equal(user, &said);
    said.count++;
    snprintf(said.name, sizeof(said.name), "%s", name);
    snprintf(said.value, sizeof(said.value), "%s", value);
    snprintf(said.remark, sizeof(said.remark), "%s", remark);
}

static void read_environment(const char *const *environment)
{
    memset(&said, 0, sizeof(said));
    cca_config_init(&config);
    cca_config_read(&config, environment, keep_complaint, &said);
}

#define READ(...) read_environment((const char *const[]){__VA_ARGS__, NULL})

static void read_one(const char *name, const char *value)
{
    char entry[2 * TEXT_BYTES];

    snprintf(entry, sizeof(entry), "%s=%s", name, value);
    READ(entry);
}

struct search {
    const char *name;
    char value[TEXT_BYTES];
    int found;
};

static void compare_name(void *user, const char *name, const char *value)
{
    struct search *search = user;

    if (strcmp(name, search->name) == 0) {
        search->found++;
        snprintf(search->value, sizeof(search->value), "%s", value);
    }
}

static void assert_value(const char *name, const char *expected)
{
    struct search search = {.name = name};

    cca_config_each(&config, compare_name, &search);
    assert_int_equal(search.found, 1);
    assert_string_equal(search.value, expected);
}

/* One line for each row of options.def, in its order. */
static const struct {
    const char *name, *usual, *good, *read_as, *bad, *remark;
} rows[] = {
    {"CCA_MODE", "cache", "off", "off", "fast", "not understood, using cache"},
    {"CCA_DISABLE", "0", "yes", "1", "2", "not understood, using 0"},
    {"CCA_PROGRAMS", "", "app*,!b", "app*,!b", NULL, "too long, ignored"},
    {"CCA_CHILDREN", "1", "0", "0", "some", "not understood, using 1"},
    {"CCA_FREE_SYNC", "strict", "FENCE", "fence", "lazy", "not understood, using strict"},
    {"CCA_PENDING_MAX", "0", "1G", "1073741824", "1GB", "not understood, using 0"},
    {"CCA_ASYNC", "auto", "forward", "forward", "back", "not understood, using auto"},
    {"CCA_IPC", "auto", "Dedicated", "dedicated", "share", "not understood, using auto"},
    {"CCA_CONF", "", "max_split_size_mb:40", "max_split_size_mb:40", NULL, "too long, ignored"},
    {"CCA_MAX_SPLIT_SIZE", "unlimited", "20MiB", "20971520", "10486271",
     "out of range (10486272 to unlimited), using unlimited"},
    {"CCA_MAX_NON_SPLIT_ROUNDING", "0", "24M", "25165824", "-1", "not understood, using 0"},
    {"CCA_ROUNDUP_POWER2_DIVISIONS", "off", "[256:1,>:4]", "[256:1,>:4]", "3",
     "out of range, using off"},
    {"CCA_GARBAGE_COLLECTION_THRESHOLD", "0", "0.8", "0.8", "1.1",
     "out of range (above 0, at most 1), using 0"},
    {"CCA_LARGE_SEGMENT_SIZE", "20971520", "12M", "12582912", "10M",
     "out of range (10486272 to 1099511627776), using 20971520"},
    {"CCA_EXPANDABLE_SEGMENTS", "0", "yes", "1", "True:1", "not understood, using 0"},
    {"CCA_MEMORY_FRACTION", "1", "0.5", "0.5", "0", "out of range (above 0, at most 1), using 1"},
    {"CCA_MEMORY_LIMIT", "unlimited", "512K", "524288", "0",
     "out of range (1 to unlimited), using unlimited"},
    {"CCA_CACHE_LIMIT", "unlimited", "0", "0", "few", "not understood, using unlimited"},
    {"CCA_OOM_REJECT", "0", "1", "1", "no way", "not understood, using 0"},
    {"CCA_TRIM_IDLE_MS", "0", "500", "500", "86400001", "out of range (0 to 86400000), using 0"},
    {"CCA_OOM_WAIT_MS", "1000", "0", "0", "600001", "out of range (0 to 600000), using 1000"},
    {"CCA_GRAPH_CAPTURE_REUSE", "0", "yes", "1", "maybe", "not understood, using 0"},
    {"CCA_MEM_GET_INFO", "adjusted", "raw", "raw", "cooked", "not understood, using adjusted"},
    {"CCA_HISTORY", "all", "state", "state", "some", "not understood, using all"},
    {"CCA_CONTEXT", "alloc", "none", "none", "free", "not understood, using alloc"},
    {"CCA_MAX_ENTRIES", "100000", "1", "1", "0", "out of range (1 to 100000000), using 100000"},
    {"CCA_STACK_DEPTH", "64", "128", "128", "129", "out of range (1 to 128), using 64"},
    {"CCA_SKIP_ACTIONS", "none", "oom,snapshot", "snapshot,oom", "free",
     "unknown word free, using none"},
    {"CCA_UNWINDER", "auto", "libunwind", "libunwind", "gdb", "not understood, using auto"},
    {"CCA_PIN_MODULES", "0", "on", "1", "all", "not understood, using 0"},
    {"CCA_DUMP_SIGNAL", "USR1", "SIGRTMAX-3", "RTMAX-3", "KILL", "not understood, using USR1"},
    {"CCA_DUMP_SIGNAL_FORCE", "0", "yes", "1", "force", "not understood, using 0"},
    {"CCA_CONTROL_SIGNAL", "RTMAX-3", "none", "none", "KILL", "not understood, using RTMAX-3"},
    {"CCA_DUMP_ON", "signal,exit,oom", "oom,exit", "exit,oom", "never",
     "unknown word never, using signal,exit,oom"},
    {"CCA_DUMP_FILE", "cca-%h-%p-%n", "/tmp/a b=c", "/tmp/a b=c", NULL,
     "too long, using cca-%h-%p-%n"},
    {"CCA_DUMP_FORMAT", "pickle", "text,json", "json,text", "xml",
     "unknown word xml, using pickle"},
    {"CCA_DUMP_LAST", "0", "1000", "1000", "-1", "not understood, using 0"},
    {"CCA_DUMP_ARGS", "1", "0", "0", "some", "not understood, using 1"},
    {"CCA_SYMBOLIZE", "names", "none", "none", "all", "not understood, using names"},
    {"CCA_METRICS_FILE", "", "/run/cca-%p.prom", "/run/cca-%p.prom", NULL, "too long, ignored"},
    {"CCA_METRICS_INTERVAL", "10", "1", "1", "0", "out of range (1 to 86400), using 10"},
    {"CCA_LOG_LEVEL", "warn", "debug", "debug", "3", "not understood, using warn"},
    {"CCA_LOG_FILE", "", "log", "log", NULL, "too long, ignored"},
    {"CCA_SUMMARY", "1", "off", "0", "perhaps", "not understood, using 1"},
    {"CCA_VERIFY", "0", "on", "1", "full", "not understood, using 0"},
};

static void count_and_compare(void *user, const char *name, const char *value)
{
    size_t *at = user;

    (void)value;
    assert_true(*at < CCA_ARRAY_LEN(rows));
    assert_string_equal(name, rows[*at].name);
    ++*at;
}

static void every_row_is_tested_here_in_order(void **state)
{
    size_t count = 0;

    (void)state;
    cca_config_init(&config);
    cca_config_each(&config, count_and_compare, &count);
    assert_int_equal(count, CCA_ARRAY_LEN(rows));
}

static void every_row_has_its_default(void **state)
{
    (void)state;
    cca_config_init(&config);
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        assert_value(rows[i].name, rows[i].usual);
    }
}

static void every_row_takes_a_good_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        read_one(rows[i].name, rows[i].good);
        assert_int_equal(said.count, 0);
        assert_value(rows[i].name, rows[i].read_as);
    }
}

static void every_row_keeps_its_default_and_complains_of_a_bad_value(void **state)
{
    static char too_long[CCA_CONFIG_TEXT_MAX + 1];

    (void)state;
    memset(too_long, 'x', CCA_CONFIG_TEXT_MAX);
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        const char *bad = rows[i].bad != NULL ? rows[i].bad : too_long;

        read_one(rows[i].name, bad);
        assert_int_equal(said.count, 1);
        assert_string_equal(said.name, rows[i].name);
        assert_string_equal(said.value, bad);
        assert_string_equal(said.remark, rows[i].remark);
        assert_value(rows[i].name, rows[i].usual);
    }
}

static void every_row_takes_empty_as_unset(void **state)
{
    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        read_one(rows[i].name, "");
        assert_int_equal(said.count, 0);
        assert_value(rows[i].name,
                     strcmp(rows[i].name, "CCA_DUMP_ON") == 0 ? "none" : rows[i].usual);
    }
}

static void good_values_arrive_in_their_fields(void **state)
{
    (void)state;
    READ("CCA_MODE=count", "CCA_FREE_SYNC=fence", "CCA_PENDING_MAX=4096", "CCA_ASYNC=forward",
         "CCA_MAX_SPLIT_SIZE=32M", "CCA_MEMORY_LIMIT=1G", "CCA_OOM_WAIT_MS=5",
         "CCA_MEM_GET_INFO=raw", "CCA_GRAPH_CAPTURE_REUSE=1", "CCA_HISTORY=off", "CCA_CONTEXT=all",
         "CCA_MAX_ENTRIES=7", "CCA_STACK_DEPTH=9", "CCA_UNWINDER=none", "CCA_DUMP_SIGNAL=none",
         "CCA_DUMP_ON=oom", "CCA_DUMP_FILE=x", "CCA_DUMP_FORMAT=json", "CCA_SYMBOLIZE=none",
         "CCA_LOG_LEVEL=info", "CCA_SUMMARY=0", "CCA_VERIFY=1", "CCA_MAX_NON_SPLIT_ROUNDING=33M",
         "CCA_ROUNDUP_POWER2_DIVISIONS=4", "CCA_GARBAGE_COLLECTION_THRESHOLD=.25",
         "CCA_LARGE_SEGMENT_SIZE=32M", "CCA_MEMORY_FRACTION=0.5", "CCA_CACHE_LIMIT=64M",
         "CCA_OOM_REJECT=1");
    assert_int_equal(said.count, 0);
    assert_int_equal(config.max_non_split_rounding, 33 << 20);
    assert_int_equal(config.divisions.of[15], 4);
    assert_true(config.garbage_collection_threshold == 0.25);
    assert_int_equal(config.large_segment_size, 32 << 20);
    assert_true(config.memory_fraction == 0.5);
    assert_int_equal(config.cache_limit, 64 << 20);
    assert_true(config.oom_reject);
    assert_int_equal(config.mode, CCA_MODE_COUNT);
    assert_int_equal(config.free_sync, CCA_FREE_FENCE);
    assert_int_equal(config.pending_max, 4096);
    assert_int_equal(config.async, CCA_ASYNC_FORWARD);
    assert_int_equal(config.max_split_size, 32 << 20);
    assert_int_equal(config.memory_limit, 1 << 30);
    assert_int_equal(config.oom_wait_ms, 5);
    assert_int_equal(config.mem_get_info, CCA_INFO_RAW);
    assert_true(config.graph_capture_reuse);
    assert_int_equal(config.history, CCA_HISTORY_OFF);
    assert_int_equal(config.context, CCA_CONTEXT_ALL);
    assert_int_equal(config.max_entries, 7);
    assert_int_equal(config.stack_depth, 9);
    assert_int_equal(config.unwinder, CCA_UNWINDER_NONE);
    assert_int_equal(config.dump_signal, 0);
    assert_int_equal(config.dump_on, CCA_DUMP_ON_OOM);
    assert_string_equal(config.dump_file, "x");
    assert_int_equal(config.dump_format, CCA_FORMAT_JSON);
    assert_int_equal(config.symbolize, CCA_SYMBOLIZE_NONE);
    assert_int_equal(config.log_level, CCA_LOG_INFO);
    assert_false(config.summary);
    assert_true(config.verify);
}

static void names_of_later_versions_are_told_apart_from_unknown_ones(void **state)
{
    static const char *const later[] = {"CCA_PINNED", "CCA_PINNED_MAX_BYTES", "CCA_RECORD_PINNED"};
    static const char *const unknown[] = {"CCA_",        "CCA_MODES", "CCA_mode",
                                          "CCA_PINNEDX", "CCA_IPC_",  "CCA_DUMP"};

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(later); i++) {
        read_one(later[i], "1");
        assert_int_equal(said.count, 1);
        assert_string_equal(said.name, later[i]);
        assert_string_equal(said.remark, "not in this version, ignored");
    }
    for (size_t i = 0; i < CCA_ARRAY_LEN(unknown); i++) {
        read_one(unknown[i], "1");
        assert_int_equal(said.count, 1);
        assert_string_equal(said.name, unknown[i]);
        assert_string_equal(said.remark, "unknown, ignored");
    }
    READ("CCA_NONSENSE=", "CCA_PINNED=");
    assert_int_equal(said.count, 0);
}

static void other_entries_are_not_looked_at(void **state)
{
    (void)state;
    READ("PATH=/bin", "XCCA_MODE=off", "cca_mode=off", "CCA_MODE", "CCA", "", "=",
         "SIMCUDA_CCA_MODE=off", "PYTORCH_CUDA_ALLOC_CONF=x");
    assert_int_equal(said.count, 0);
    assert_int_equal(config.mode, CCA_MODE_CACHE);
}

static void first_of_repeated_entries_counts(void **state)
{
    (void)state;
    READ("CCA_STACK_DEPTH=5", "CCA_STACK_DEPTH=6", "CCA_STACK_DEPTH=bad");
    assert_int_equal(said.count, 0);
    assert_int_equal(config.stack_depth, 5);
}

static void known_words_count_beside_an_unknown_one(void **state)
{
    (void)state;
    READ("CCA_DUMP_ON=exit,never,abort");
    assert_int_equal(said.count, 1);
    assert_string_equal(said.remark, "unknown word never, using exit,abort");
    assert_int_equal(config.dump_on, CCA_DUMP_ON_EXIT | CCA_DUMP_ON_ABORT);
}

static void an_interval_has_a_length(void **state)
{
    (void)state;
    READ("CCA_DUMP_ON=term,interval:30,exit");
    assert_int_equal(said.count, 0);
    assert_int_equal(config.dump_on, CCA_DUMP_ON_EXIT | CCA_DUMP_ON_TERM | CCA_DUMP_ON_INTERVAL);
    assert_int_equal(config.dump_interval_s, 30);
    assert_value("CCA_DUMP_ON", "exit,term,interval:30");
    static const char *const bad[] = {"CCA_DUMP_ON=interval",
                                      "CCA_DUMP_ON=interval:", "CCA_DUMP_ON=interval:0",
                                      "CCA_DUMP_ON=interval:x", "CCA_DUMP_ON=exit,interval:86401"};
    for (size_t i = 0; i < CCA_ARRAY_LEN(bad); i++) {
        const char *const environment[] = {bad[i], NULL};

        read_environment(environment);
        assert_int_equal(said.count, 1);
        assert_int_equal(config.dump_interval_s, 0);
        assert_value("CCA_DUMP_ON", "signal,exit,oom");
    }
}

static void what_viewers_replay_is_skipped_whole_or_not(void **state)
{
    (void)state;
    READ("CCA_SKIP_ACTIONS=alloc,oom");
    assert_int_equal(said.count, 1);
    assert_value("CCA_SKIP_ACTIONS", "oom");
    READ("CCA_SKIP_ACTIONS=alloc,free_requested,free_completed,segment_alloc,segment_free,"
         "segment_map,segment_unmap");
    assert_int_equal(said.count, 0);
    assert_int_equal(config.skip_actions, CCA_SKIP_REPLAY);
}

static void a_snapshot_always_has_a_format(void **state)
{
    (void)state;
    READ("CCA_DUMP_FORMAT=none");
    assert_int_equal(said.count, 1);
    assert_string_equal(said.name, "CCA_DUMP_FORMAT");
    assert_int_equal(config.dump_format, CCA_FORMAT_PICKLE);
}

static void disable_wins_over_everything(void **state)
{
    (void)state;
    READ("CCA_DISABLE=1", "CCA_MODE=count", "CCA_FREE_SYNC=native");
    assert_int_equal(config.mode, CCA_MODE_OFF);
    READ("CCA_DISABLE=0", "CCA_MODE=count");
    assert_int_equal(config.mode, CCA_MODE_COUNT);
}

static void native_frees_mean_count_unless_off(void **state)
{
    (void)state;
    READ("CCA_FREE_SYNC=native");
    assert_int_equal(config.mode, CCA_MODE_COUNT);
    READ("CCA_FREE_SYNC=native", "CCA_MODE=off");
    assert_int_equal(config.mode, CCA_MODE_OFF);
}

static void number_too_large_for_its_type_is_out_of_range(void **state)
{
    (void)state;
    READ("CCA_MAX_ENTRIES=99999999999999999999999");
    assert_string_equal(said.remark, "out of range (1 to 100000000), using 100000");
    READ("CCA_MEMORY_LIMIT=9223372036854775808");
    assert_string_equal(said.remark, "out of range (1 to unlimited), using unlimited");
    READ("CCA_DUMP_SIGNAL=9");
    assert_string_equal(said.remark, "out of range, using USR1");
}

static void a_variable_of_its_own_wins_over_the_conf_string(void **state)
{
    (void)state;
    READ("CCA_MAX_SPLIT_SIZE=64M", "CCA_CONF=max_split_size_mb:40,garbage_collection_threshold:0.5",
         "CCA_OOM_REJECT=0");
    assert_int_equal(said.count, 0);
    assert_int_equal(config.max_split_size, 64 << 20);
    assert_true(config.garbage_collection_threshold == 0.5);
    assert_string_equal(config.conf, "max_split_size_mb:40,garbage_collection_threshold:0.5");
}

static void the_conf_string_complains_once_per_bad_item(void **state)
{
    (void)state;
    READ("CCA_CONF=max_split_size_mb:1,garbage_collection_threshold:0.5");
    assert_int_equal(said.count, 1);
    assert_string_equal(said.name, "CCA_CONF");
    assert_string_equal(said.value, "max_split_size_mb:1");
    assert_true(config.garbage_collection_threshold == 0.5);
}

static void sizes_are_measured_by_the_large_segment_in_force(void **state)
{
    (void)state;
    READ("CCA_MAX_SPLIT_SIZE=24M", "CCA_LARGE_SEGMENT_SIZE=32M");
    assert_int_equal(said.count, 1);
    assert_string_equal(said.name, "CCA_MAX_SPLIT_SIZE");
    assert_string_equal(said.remark, "below the large segment size, using unlimited");
    assert_int_equal(config.max_split_size, CCA_NO_LIMIT);
    READ("CCA_MAX_NON_SPLIT_ROUNDING=24M", "CCA_LARGE_SEGMENT_SIZE=32M");
    assert_string_equal(said.remark, "below the large segment size, using 0");
    READ("CCA_MAX_SPLIT_SIZE=15M", "CCA_LARGE_SEGMENT_SIZE=12M");
    assert_int_equal(said.count, 0);
    assert_int_equal(config.max_split_size, 15 << 20);
}

static void reader_without_a_listener_still_reads(void **state)
{
    static const char *const environment[] = {"CCA_NONSENSE=1", "CCA_STACK_DEPTH=5", NULL};

    (void)state;
    cca_config_init(&config);
    cca_config_read(&config, environment, NULL, NULL);
    assert_int_equal(config.stack_depth, 5);
}

static struct {
    char entries[ENTRIES_MAX][TEXT_BYTES];
    const char *environment[ENTRIES_MAX + 1];
    size_t count;
} kept;

static void keep_entry(void *user, const char *name, const char *value)
{
    (void)user;
    assert_true(kept.count < ENTRIES_MAX);
    snprintf(kept.entries[kept.count], TEXT_BYTES, "%s=%s", name, value);
    kept.environment[kept.count] = kept.entries[kept.count];
    kept.environment[++kept.count] = NULL;
}

static void assert_reads_back(void)
{
    static struct cca_config before;

    before = config;
    kept.count = 0;
    cca_config_each(&config, keep_entry, NULL);
    read_environment(kept.environment);
    assert_int_equal(said.count, 0);
#define SAME(field)                            assert_true(config.field == before.field);
#define BOOL(field, name, def, help)           SAME(field)
#define SIZE(field, name, def, min, max, help) SAME(field)
#define UINT(field, name, def, min, max, help) SAME(field)
#define RATIO(field, name, def, help)          SAME(field)
#define ENUM(field, name, def, words, help)    SAME(field)
#define FLAGS(field, name, def, words, help)   SAME(field)
#define TEXT(field, name, def, help)           assert_string_equal(config.field, before.field);
#define SIGNAL(field, name, def, help)         SAME(field)
#include "config/options.def"
}

static void effective_values_read_back_to_the_same(void **state)
{
    static const char *environment[CCA_ARRAY_LEN(rows) + 1];
    static char entries[CCA_ARRAY_LEN(rows)][TEXT_BYTES];

    (void)state;
    cca_config_init(&config);
    assert_reads_back();
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        snprintf(entries[i], TEXT_BYTES, "%s=%s", rows[i].name, rows[i].good);
        environment[i] = entries[i];
        read_one(rows[i].name, rows[i].good);
        assert_reads_back();
    }
    read_environment(environment);
    assert_reads_back();
    READ("CCA_DUMP_ON=", "CCA_FREE_SYNC=native");
    assert_reads_back();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_is_tested_here_in_order),
    cmocka_unit_test(every_row_has_its_default),
    cmocka_unit_test(every_row_takes_a_good_value),
    cmocka_unit_test(every_row_keeps_its_default_and_complains_of_a_bad_value),
    cmocka_unit_test(every_row_takes_empty_as_unset),
    cmocka_unit_test(good_values_arrive_in_their_fields),
    cmocka_unit_test(names_of_later_versions_are_told_apart_from_unknown_ones),
    cmocka_unit_test(other_entries_are_not_looked_at),
    cmocka_unit_test(first_of_repeated_entries_counts),
    cmocka_unit_test(known_words_count_beside_an_unknown_one),
    cmocka_unit_test(an_interval_has_a_length),
    cmocka_unit_test(what_viewers_replay_is_skipped_whole_or_not),
    cmocka_unit_test(a_snapshot_always_has_a_format),
    cmocka_unit_test(disable_wins_over_everything),
    cmocka_unit_test(native_frees_mean_count_unless_off),
    cmocka_unit_test(number_too_large_for_its_type_is_out_of_range),
    cmocka_unit_test(a_variable_of_its_own_wins_over_the_conf_string),
    cmocka_unit_test(the_conf_string_complains_once_per_bad_item),
    cmocka_unit_test(sizes_are_measured_by_the_large_segment_in_force),
    cmocka_unit_test(reader_without_a_listener_still_reads),
    cmocka_unit_test(effective_values_read_back_to_the_same),
};

CCA_TEST_MAIN(tests)
