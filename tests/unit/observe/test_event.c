/* SPDX-License-Identifier: MIT */
#include "observe/event.h"

#include "support/test.h"

static void kinds_have_the_names_of_pytorch(void **state)
{
    (void)state;
    assert_string_equal(cca_event_kind_name(CCA_EVENT_ALLOC), "alloc");
    assert_string_equal(cca_event_kind_name(CCA_EVENT_FREE_COMPLETED), "free_completed");
    assert_string_equal(cca_event_kind_name(CCA_EVENT_OOM), "oom");
    assert_string_equal(cca_event_kind_name(CCA_EVENT_KIND_COUNT), "unknown");
}

static void only_what_pytorch_traces_takes_a_slot(void **state)
{
    (void)state;
    for (int kind = 0; kind < CCA_EVENT_KIND_COUNT; kind++) {
        assert_int_equal(cca_event_takes_slot((enum cca_event_kind)kind),
                         kind <= CCA_EVENT_ANNOTATE);
    }
    assert_false(cca_event_takes_slot(CCA_EVENT_KIND_COUNT));
}

static void apis_have_names(void **state)
{
    (void)state;
    assert_string_equal(cca_api_name(CCA_API_NONE), "");
    assert_string_equal(cca_api_name(CCA_API_MALLOC), "cudaMalloc");
    assert_string_equal(cca_api_name(CCA_API_COUNT), "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(kinds_have_the_names_of_pytorch),
    cmocka_unit_test(only_what_pytorch_traces_takes_a_slot),
    cmocka_unit_test(apis_have_names),
};
CCA_TEST_MAIN(tests)
