/* SPDX-License-Identifier: MIT */
#include "alloc/policy.h"

#include "support/test.h"

#define MIB(n) ((size_t)(n) << 20)

static struct cca_policy default_policy(void)
{
    struct cca_config config;
    struct cca_policy policy;
    cca_config_init(&config);
    cca_policy_init(&policy, &config);
    return policy;
}

static void sizes_and_segments_match_the_golden_table(void **state)
{
    (void)state;
    static const struct {
        size_t request, rounded, segment;
    } rows[] = {
        {1, 512, 2097152},
        {511, 512, 2097152},
        {512, 512, 2097152},
        {513, 1024, 2097152},
        {1048575, 1048576, 2097152},
        {1048576, 1048576, 2097152},
        {1048577, 1049088, 20971520},
        {10485247, 10485248, 20971520},
        {10485248, 10485248, 20971520},
        {10485759, 10485760, 10485760},
        {10485760, 10485760, 10485760},
        {10485761, 10486272, 12582912},
        {12582912, 12582912, 12582912},
        {12582913, 12583424, 14680064},
        {104857601, 104858112, 106954752},
    };
    struct cca_policy policy = default_policy();
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        size_t rounded = cca_policy_round(&policy, rows[i].request);
        assert_int_equal(rounded, rows[i].rounded);
        assert_int_equal(cca_policy_segment_bytes(&policy, rounded), rows[i].segment);
    }
}

static void divisions_of_powers_of_two_match_the_golden_table(void **state)
{
    (void)state;
    static const struct {
        unsigned divisions;
        size_t request, rounded;
    } rows[] = {
        {4, 1200, 1536},        {4, 2048, 2048},       {4, 2049, 2560},       {4, 2561, 3072},
        {4, 1331200, 1572864},  {4, 1048577, 1310720}, {4, 3145729, 3670016}, {4, 5242881, 6291456},
        {8, 4096, 4096},        {8, 4097, 4608},       {8, 4609, 5120},       {8, 1000000, 1048576},
        {8, 9437185, 10485760}, {1, 3145729, 3146240},
    };
    struct cca_policy policy = default_policy();
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        for (int c = 0; c < CCA_DIVISION_CLASSES; c++) {
            policy.divisions.of[c] = (uint16_t)rows[i].divisions;
        }
        assert_int_equal(cca_policy_round(&policy, rows[i].request), rows[i].rounded);
    }
}

static void division_classes_start_at_powers_of_two_mib(void **state)
{
    (void)state;
    struct cca_policy policy = default_policy();
    policy.divisions.of[0] = 2;  /* below 2 MiB */
    policy.divisions.of[10] = 4; /* 1 to 2 GiB */
    policy.divisions.of[15] = 2; /* from 32 GiB */
    assert_int_equal(cca_policy_round(&policy, 1500), 1536);
    assert_int_equal(cca_policy_round(&policy, 1100), 1536);
    assert_int_equal(cca_policy_round(&policy, MIB(2) + 1), MIB(2) + 512);
    assert_int_equal(cca_policy_round(&policy, MIB(1024) + 1), MIB(1024) + MIB(256));
    assert_int_equal(cca_policy_round(&policy, MIB(1023)), MIB(1023));
    assert_int_equal(cca_policy_round(&policy, ((size_t)1 << 40) + 1), (size_t)3 << 39);
}

static void one_mebibyte_is_small(void **state)
{
    (void)state;
    assert_true(cca_policy_is_small(MIB(1)));
    assert_false(cca_policy_is_small(MIB(1) + 512));
}

static void large_blocks_split_above_a_rest_of_one_mebibyte(void **state)
{
    (void)state;
    struct cca_policy policy = default_policy();
    assert_false(cca_policy_should_split(&policy, MIB(20), MIB(19), false));
    assert_true(cca_policy_should_split(&policy, MIB(20) + 512, MIB(19), false));
    assert_true(cca_policy_should_split(&policy, MIB(2), MIB(1), false));
    assert_true(cca_policy_should_split(&policy, 1024, 512, false));
    assert_false(cca_policy_should_split(&policy, 512, 512, false));
    assert_true(cca_policy_should_split(&policy, MIB(20), MIB(20) - 512, true));
    assert_false(cca_policy_should_split(&policy, MIB(20), MIB(20), true));
}

static void oversize_blocks_are_neither_split_nor_broken_nor_wasted(void **state)
{
    (void)state;
    struct cca_policy policy = default_policy();
    policy.max_split_size = MIB(40);
    assert_false(cca_policy_may_use(&policy, MIB(40), MIB(30)));
    assert_true(cca_policy_may_use(&policy, MIB(38), MIB(30)));
    assert_true(cca_policy_may_use(&policy, MIB(45) + MIB(20) - 512, MIB(45)));
    assert_false(cca_policy_may_use(&policy, MIB(45) + MIB(20), MIB(45)));
    assert_false(cca_policy_should_split(&policy, MIB(60), MIB(45), false));
    assert_true(cca_policy_should_split(&policy, MIB(38), MIB(30), false));
}

static void dedicated_blocks_are_segments_of_their_own_size(void **state)
{
    (void)state;
    struct cca_config config;
    struct cca_policy policy;
    cca_config_init(&config);
    cca_policy_init_dedicated(&policy, &config);
    assert_int_equal(cca_policy_segment_bytes(&policy, 65536), 65536);
    assert_int_equal(cca_policy_segment_bytes(&policy, MIB(3) + 512), MIB(3) + 512);
    assert_false(cca_policy_should_split(&policy, MIB(100), MIB(1), false));
    assert_true(cca_policy_may_use(&policy, MIB(3), MIB(1)));
    assert_false(cca_policy_may_use(&policy, MIB(3) + 512, MIB(1)));
    assert_true(cca_policy_may_use(&policy, MIB(80), MIB(70)));
    assert_false(cca_policy_may_use(&policy, MIB(80), MIB(70) - 512));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_segments_match_the_golden_table),
        cmocka_unit_test(divisions_of_powers_of_two_match_the_golden_table),
        cmocka_unit_test(division_classes_start_at_powers_of_two_mib),
        cmocka_unit_test(one_mebibyte_is_small),
        cmocka_unit_test(large_blocks_split_above_a_rest_of_one_mebibyte),
        cmocka_unit_test(dedicated_blocks_are_segments_of_their_own_size),
        cmocka_unit_test(oversize_blocks_are_neither_split_nor_broken_nor_wasted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
