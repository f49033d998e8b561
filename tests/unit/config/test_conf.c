/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>

#include "base/compiler.h"
#include "config/conf.h"

static struct cca_config config;

static struct {
    int count;
    char value[256], remark[256];
} said;

static void keep_complaint(void *user, const char *name, const char *value, const char *remark)
{
    assert_ptr_equal(user, &said);
    assert_string_equal(name, "CCA_CONF");
    said.count++;
    snprintf(said.value, sizeof(said.value), "%s", value);
    snprintf(said.remark, sizeof(said.remark), "%s", remark);
}

/* Over the settings as they are. */
static int apply(const char *text)
{
    memset(&said, 0, sizeof(said));
    return cca_conf_apply(&config, text, keep_complaint, &said);
}

static int apply_fresh(const char *text)
{
    cca_config_init(&config);
    return apply(text);
}

static void every_key_arrives_in_its_field(void **state)
{
    (void)state;
    assert_int_equal(apply_fresh("max_split_size_mb:40, max_non_split_rounding_mb:50,"
                                 "roundup_power2_divisions:[256:1, 512:2,>:4],\n"
                                 "garbage_collection_threshold:0.6,large_segment_size_mb:32,"
                                 "per_process_memory_fraction:0.25,throw_on_cudamalloc_oom:True,"
                                 "release_lock_on_cudamalloc:True,backend:native,"
                                 "expandable_segments:False"),
                     0);
    assert_int_equal(said.count, 0);
    assert_int_equal(config.max_split_size, 40 << 20);
    assert_int_equal(config.max_non_split_rounding, 50 << 20);
    assert_int_equal(config.divisions.of[0], 1);
    assert_int_equal(config.divisions.of[9], 2);
    assert_int_equal(config.divisions.of[10], 4);
    assert_string_equal(config.roundup_power2_divisions, "[256:1,512:2,>:4]");
    assert_true(config.garbage_collection_threshold == 0.6);
    assert_int_equal(config.large_segment_size, 32 << 20);
    assert_true(config.memory_fraction == 0.25);
    assert_true(config.oom_reject);
}

static void the_large_segment_is_read_before_all_others(void **state)
{
    (void)state;
    assert_int_equal(apply_fresh("max_split_size_mb:15,large_segment_size_mb:12"), 0);
    assert_int_equal(config.max_split_size, 15 << 20);
    assert_int_equal(apply_fresh("max_split_size_mb:30,large_segment_size_mb:32"), -EINVAL);
    assert_int_equal(config.max_split_size, CCA_NO_LIMIT);
}

static void wrong_items_are_left_out_and_the_others_count(void **state)
{
    static const struct {
        const char *item, *remark;
    } wrong[] = {
        {"max_split_size_mb:19", "out of range (at least the large segment size), ignored"},
        {"max_split_size_mb:x", "not understood, ignored"},
        {"max_split_size_mb:40MB", "not understood, ignored"},
        {"max_non_split_rounding_mb:1", "out of range (at least the large segment size), ignored"},
        {"large_segment_size_mb:10", "out of range (11 to 1048576), ignored"},
        {"roundup_power2_divisions:3", "out of range (powers of two up to 32768), ignored"},
        {"roundup_power2_divisions:0", "out of range (powers of two up to 32768), ignored"},
        {"roundup_power2_divisions:off", "not understood, ignored"},
        {"roundup_power2_divisions:[1:2", "not understood, ignored"},
        {"garbage_collection_threshold:1", "out of range (above 0, below 1), ignored"},
        {"garbage_collection_threshold:0", "out of range (above 0, below 1), ignored"},
        {"per_process_memory_fraction:2", "out of range (0 to 1), ignored"},
        {"throw_on_cudamalloc_oom:true", "not understood, ignored"},
        {"backend:cudaMallocAsync", "refused, the backend is native"},
        {"backend:", "not understood, ignored"},
        {"no_such_key:1", "unknown, ignored"},
        {":", "unknown, ignored"},
        {"max_split_size_mb", "not understood, ignored"},
    };
    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(wrong); i++) {
        char text[256];
        snprintf(text, sizeof(text), "release_lock_on_cudamalloc:False,%s", wrong[i].item);
        assert_int_equal(apply_fresh(text), -EINVAL);
        assert_int_equal(said.count, 1);
        assert_string_equal(said.value, wrong[i].item);
        assert_string_equal(said.remark, wrong[i].remark);
        snprintf(text, sizeof(text), "throw_on_cudamalloc_oom:True,%s", wrong[i].item);
        assert_int_equal(apply_fresh(text), -EINVAL);
        assert_true(config.oom_reject);
    }
}

static void reuse_in_captures_is_a_word_of_the_grammar(void **state)
{
    (void)state;
    assert_int_equal(apply_fresh("graph_capture_record_stream_reuse:True"), 0);
    assert_int_equal(said.count, 0);
    assert_true(config.graph_capture_reuse);
    assert_int_equal(apply_fresh("graph_capture_record_stream_reuse:1"), -EINVAL);
}

static void keys_of_later_versions_are_no_error(void **state)
{
    static const char *const later[] = {
        "pinned_use_background_threads:True", "pinned_num_register_threads:4",
        "expandable_segments_reserve:40G", "expandable_segments_reserve_by_class:[a:1,b:2]"};
    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(later); i++) {
        assert_int_equal(apply_fresh(later[i]), 0);
        assert_int_equal(said.count, 1);
        assert_string_equal(said.value, later[i]);
        assert_string_equal(said.remark, "not in this version, ignored");
    }
}

static void a_new_string_resets_what_pytorch_resets_and_keeps_the_rest(void **state)
{
    (void)state;
    assert_int_equal(apply_fresh("max_split_size_mb:40,max_non_split_rounding_mb:50,"
                                 "roundup_power2_divisions:4,garbage_collection_threshold:0.6,"
                                 "large_segment_size_mb:32,per_process_memory_fraction:0.25,"
                                 "throw_on_cudamalloc_oom:True,expandable_segments:True"),
                     0);
    assert_int_equal(apply(""), 0);
    assert_int_equal(config.max_split_size, CCA_NO_LIMIT);
    assert_int_equal(config.max_non_split_rounding, 0);
    assert_int_equal(config.divisions.of[3], 0);
    assert_string_equal(config.roundup_power2_divisions, "off");
    assert_true(config.garbage_collection_threshold == 0);
    assert_int_equal(config.large_segment_size, 32 << 20);
    assert_true(config.memory_fraction == 0.25);
    assert_true(config.oom_reject);
    assert_true(config.expandable_segments);
}

static void sizes_that_do_not_fit_are_unlimited(void **state)
{
    (void)state;
    assert_int_equal(apply_fresh("max_split_size_mb:18446744073709551615"), 0);
    assert_int_equal(config.max_split_size, CCA_NO_LIMIT);
    assert_int_equal(apply_fresh("max_split_size_mb:99999999999999999999999"), 0);
    assert_int_equal(config.max_split_size, CCA_NO_LIMIT);
}

static void a_string_that_is_too_long_changes_nothing(void **state)
{
    static char text[CCA_CONFIG_TEXT_MAX + 1];
    (void)state;
    memset(text, ',', CCA_CONFIG_TEXT_MAX);
    cca_config_init(&config);
    config.max_split_size = 1;
    assert_int_equal(apply(text), -E2BIG);
    assert_int_equal(config.max_split_size, 1);
    memset(text, ' ', CCA_CONFIG_TEXT_MAX);
    assert_int_equal(apply(text), -E2BIG); /* as it stands, white space and all */
    text[CCA_CONFIG_TEXT_MAX - 1] = '\0';
    assert_int_equal(apply(text), 0);
}

static void any_text_is_read_without_harm(void **state)
{
    static const char *const parts[] = {"max_split_size_mb",
                                        "roundup_power2_divisions",
                                        ":",
                                        ",",
                                        "[",
                                        "]",
                                        ">",
                                        "40",
                                        "-1",
                                        " ",
                                        "True",
                                        "backend",
                                        "\n",
                                        "999999999999999999999",
                                        "0.5",
                                        "garbage_collection_threshold",
                                        "pinned_x",
                                        "\xff",
                                        "large_segment_size_mb",
                                        "="};
    uint64_t seed = 20261130;
    (void)state;
    print_message("# seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 20000; round++) {
        char text[512] = "";
        size_t len = 0;
        for (int i = 0; i < 20; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const char *part = parts[(seed >> 33) % CCA_ARRAY_LEN(parts)];
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", part);
        }
        (void)!apply_fresh(text);
        assert_true(config.large_segment_size >= CCA_LARGE_SEGMENT_MIN);
        assert_true(config.max_split_size >= config.large_segment_size);
        assert_true(config.garbage_collection_threshold >= 0 &&
                    config.garbage_collection_threshold < 1);
        for (int i = 0; i < CCA_DIVISION_CLASSES; i++) {
            unsigned divisions = config.divisions.of[i];
            assert_int_equal(divisions & (divisions - 1), 0);
        }
    }
}

static void division_lists_match_the_recorded_tables(void **state)
{
    static const struct {
        const char *text;
        uint16_t table[CCA_DIVISION_CLASSES];
    } lists[] = {
        {"256:1,512:2,1024:4,>:8", {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8}},
        {"[64:8,256:4,1024:4,>:1]", {8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 4, 1, 1, 1, 1, 1}},
        {" [ 1:2 , >:4 ] ", {2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
        {"65536:2", {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}},
        {">:4", {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
        {"1:4,2:0,>:0", {4}},
        {"off", {0}},
    };
    static const char *const wrong[] = {"",        "[]",  ":",    "1:",    ":2",
                                        "1:3",     "3:2", "1:2,", "1:2:4", "65536",
                                        "1:65536", "-4",  "[4",   "x:4",   "0:4"};
    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(lists); i++) {
        struct cca_divisions divisions;
        assert_int_equal(cca_divisions_parse(lists[i].text, &divisions), 0);
        assert_memory_equal(divisions.of, lists[i].table, sizeof(divisions.of));
    }
    for (size_t i = 0; i < CCA_ARRAY_LEN(wrong); i++) {
        struct cca_divisions divisions = {{7}};
        assert_int_not_equal(cca_divisions_parse(wrong[i], &divisions), 0);
        assert_int_equal(divisions.of[0], 7);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_key_arrives_in_its_field),
    cmocka_unit_test(the_large_segment_is_read_before_all_others),
    cmocka_unit_test(wrong_items_are_left_out_and_the_others_count),
    cmocka_unit_test(reuse_in_captures_is_a_word_of_the_grammar),
    cmocka_unit_test(keys_of_later_versions_are_no_error),
    cmocka_unit_test(a_new_string_resets_what_pytorch_resets_and_keeps_the_rest),
    cmocka_unit_test(sizes_that_do_not_fit_are_unlimited),
    cmocka_unit_test(a_string_that_is_too_long_changes_nothing),
    cmocka_unit_test(any_text_is_read_without_harm),
    cmocka_unit_test(division_lists_match_the_recorded_tables),
};

CCA_TEST_MAIN(tests)
