/* SPDX-License-Identifier: MIT */
/* The public header with the library in the process: this program exports its table. */
#include "support/test.h"

#include <errno.h>
#include <unistd.h>

#include "base/reentry.h"
#include "cca/cca.h"
#include "process/process.h"
#include "scenario.h"

extern const struct cca_api_1_table cca_api_1;

static void ask_before_context(void)
{
    int64_t value = 7;

    cca_process_load();
    CHECK(cca_loaded() == 1);
    CHECK(cca_memory_allocated(0) == 0 && cca_max_memory_reserved(0) == 0);
    CHECK(cca_stat_value(0, "num_ooms", &value) == -ENODEV && value == 7);
    CHECK(cca_reset_peak_memory_stats(0) == -ENODEV);
    CHECK(cca_empty_cache() == -ENODEV);
    CHECK(cca_dump_snapshot(NULL) == -ENODEV);
}

static void before_the_first_context_there_is_no_device(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_before_context, NULL).status, 0);
}

static void ask_for_figures(void)
{
    struct cca_heap *heap = load_with_context();
    uint64_t first = hook_alloc(heap, 1000), second = hook_alloc(heap, 3000);
    int64_t value = 7;

    hook_free(second);
    CHECK(strcmp(cca_version(), CCA_VERSION_STRING) == 0);
    CHECK(first != 0 && cca_memory_allocated(0) == 1024);
    CHECK(cca_max_memory_allocated(0) == 1024 + 3072);
    CHECK(cca_memory_reserved(0) == 2 << 20 && cca_max_memory_reserved(0) == 2 << 20);
    CHECK(cca_stat_value(0, "allocation.all.allocated", &value) == 0 && value == 2);
    CHECK(cca_stat_value(0, "no such key", &value) == -ENOENT && value == 2);
    CHECK(cca_stat_value(0, NULL, &value) == -EINVAL);
    CHECK(cca_stat_value(0, "num_ooms", NULL) == -EINVAL);
    CHECK(cca_stat_value(-1, "num_ooms", &value) == -EINVAL);
    CHECK(cca_stat_value(63, "num_ooms", &value) == -ENODEV);
    CHECK(cca_stat_value(1000, "num_ooms", &value) == -ENODEV);
    CHECK(cca_memory_allocated(-1) == 0 && cca_memory_allocated(63) == 0);
    CHECK(cca_reset_peak_memory_stats(0) == 0 && cca_max_memory_allocated(0) == 1024);
    CHECK(cca_reset_accumulated_memory_stats(0) == 0);
    CHECK(cca_stat_value(0, "allocation.all.allocated", &value) == 0 && value == 0);
    hook_free(first);
    errno = ENOTTY;
    CHECK(cca_empty_cache() == 0 && cca_memory_reserved(0) == 0);
    CHECK(errno == ENOTTY);
}

static void figures_follow_the_allocator(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_for_figures, NULL).status, 0);
}

static void ask_for_snapshots(void)
{
    struct cca_heap *heap = load_with_context();

    CHECK(hook_alloc(heap, 1000) != 0);
    errno = ENOTTY;
    CHECK(cca_dump_snapshot(NULL) == 0);
    CHECK(cca_dump_snapshot("mine") == 0);
    CHECK(cca_dump_snapshot("mine") == 0);
    CHECK(errno == ENOTTY);
    CHECK(access("mine.pickle", R_OK) == 0 && access("mine-1.pickle", R_OK) == 0);
    CHECK(count_files() == 3);
}

static void a_snapshot_is_there_when_the_call_returns(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    assert_int_equal(run_scenario(ask_for_snapshots, variables).status, 0);
}

static void ask_inside(void)
{
    struct cca_heap *heap = load_with_context();
    int64_t value = 7;

    CHECK(hook_alloc(heap, 1000) != 0);
    /* As in a signal handler of the program that interrupted a hook, under the heap's lock. */
    CHECK(cca_reentry_enter());
    CHECK(cca_memory_allocated(0) == 0);
    CHECK(cca_stat_value(0, "num_ooms", &value) == -EBUSY && value == 7);
    CHECK(cca_reset_peak_memory_stats(0) == -EBUSY);
    CHECK(cca_reset_accumulated_memory_stats(0) == -EBUSY);
    cca_reentry_leave();
    CHECK(cca_memory_allocated(0) == 1024);
    CHECK(!cca_reentry_inside());
}

static void a_handler_that_interrupted_a_call_of_ours_gets_no_figures(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_inside, NULL).status, 0);
}

static void the_table_states_its_size(void **state)
{
    (void)state;
    assert_int_equal(cca_api_1.struct_bytes, sizeof(struct cca_api_1_table));
    assert_ptr_equal(cca_api_1_find_(), &cca_api_1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(before_the_first_context_there_is_no_device),
    cmocka_unit_test(figures_follow_the_allocator),
    cmocka_unit_test(a_handler_that_interrupted_a_call_of_ours_gets_no_figures),
    cmocka_unit_test(a_snapshot_is_there_when_the_call_returns),
    cmocka_unit_test(the_table_states_its_size),
};

CCA_TEST_MAIN(tests)
