/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "process/oom.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const char *advice(const struct cca_oom_figures *figures)
{
    static char buf[256];

    return cca_oom_advice(figures, buf, sizeof(buf));
}

/* 530 MiB freed, then blocks of 270 MiB under a limit of 2900 MiB: the tenth fails. */
static const struct cca_oom_figures stranded_remainder = {
    .rounded = 270 * MIB,
    .live = 2430 * MIB,
    .reserved = 2690 * MIB,
    .largest_free = 260 * MIB,
    .stranded = 260 * MIB,
    .stranded_large = 260 * MIB,
    .stranded_segment = 530 * MIB,
    .limit = 2900 * MIB,
    .device_free = 13 * GIB,
};

static void a_stranded_remainder_asks_for_whole_blocks(void **state)
{
    (void)state;
    assert_string_equal(advice(&stranded_remainder),
                        "the memory is there but cut up: CCA_MAX_SPLIT_SIZE=512M would help");
}

static void no_advice_that_was_followed_already(void **state)
{
    struct cca_oom_figures figures = stranded_remainder;

    (void)state;
    figures.max_split = 512 * MIB;
    assert_string_equal(advice(&figures), "");
}

static void no_advice_where_the_memory_is_not_there(void **state)
{
    struct cca_oom_figures figures = stranded_remainder;

    (void)state;
    figures.rounded = 471 * MIB;
    figures.device_free = 0;
    assert_string_equal(advice(&figures), "");
    figures = stranded_remainder;
    figures.stranded += 250 * MIB; /* in small segments, which stay cut up */
    assert_string_equal(advice(&figures), "");
}

static void a_limit_is_named_only_where_the_device_has_the_memory(void **state)
{
    struct cca_oom_figures figures = {
        .rounded = GIB, .live = 3 * GIB, .reserved = 3 * GIB, .limit = 3 * GIB, .device_free = GIB};

    (void)state;
    assert_non_null(strstr(advice(&figures), "CCA_MEMORY_LIMIT"));
    assert_non_null(strstr(advice(&figures), "4.00 GiB or more"));
    figures.device_free--;
    assert_string_equal(advice(&figures), "");
}

static void pending_memory_asks_for_patience(void **state)
{
    const struct cca_oom_figures figures = {
        .rounded = GIB, .live = GIB, .pending = GIB, .reserved = 2 * GIB};

    (void)state;
    assert_non_null(strstr(advice(&figures), "CCA_OOM_WAIT_MS"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stranded_remainder_asks_for_whole_blocks),
    cmocka_unit_test(no_advice_that_was_followed_already),
    cmocka_unit_test(no_advice_where_the_memory_is_not_there),
    cmocka_unit_test(a_limit_is_named_only_where_the_device_has_the_memory),
    cmocka_unit_test(pending_memory_asks_for_patience),
};

CCA_TEST_MAIN(tests)
