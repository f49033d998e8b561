/* SPDX-License-Identifier: MIT */
/* Estimates against what the writers then write. */
#include "snapshot/size.h"

#include "snapshot/write_json.h"
#include "snapshot/write_pickle.h"

#include "fixture.h"

#include "support/test.h"

static struct cca_model model;

static int count(void *user, const void *data, size_t len)
{
    (void)data;
    *(uint64_t *)user += len;
    return 0;
}

static uint64_t written(void (*write)(struct cca_model *, struct cca_sink *))
{
    static struct cca_sink sink;
    uint64_t bytes = 0;

    cca_sink_init_fn(&sink, count, &bytes);
    write(&model, &sink);
    assert_int_equal(cca_sink_finish(&sink), 0);
    return bytes;
}

static void more_events_are_more_bytes(void **state)
{
    (void)state;
    fixture_small(&model);
    uint64_t pickle = cca_size_of_pickle(&model), json = cca_size_of_json(&model);
    uint64_t entries = model.devices[0].entry_count;
    assert_true(entries > 0);
    model.devices[0].entry_count = entries - 1;
    uint64_t pickled = cca_size_of_pickle(&model), as_json = cca_size_of_json(&model);
    assert_true(pickled < pickle && as_json < json);
    uint64_t less_json = written(cca_write_json), less_pickle = written(cca_write_pickle);
    model.devices[0].entry_count = entries;
    /* One event's share is right within a third. */
    uint64_t one_json = written(cca_write_json) - less_json;
    uint64_t one_pickle = written(cca_write_pickle) - less_pickle;
    assert_in_range(json - as_json, one_json * 2 / 3, one_json * 4 / 3);
    assert_in_range(pickle - pickled, one_pickle / 2, one_pickle * 2);
    cca_model_fini(&model);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(more_events_are_more_bytes),
};
CCA_TEST_MAIN(tests)
