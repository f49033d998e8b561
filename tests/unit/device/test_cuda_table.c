/* SPDX-License-Identifier: MIT */
#include "device/cuda_table.h"

#include <errno.h>
#include <string.h>

#include "support/test.h"
#include "unit/device/fake_driver.h"

static int setup(void **state)
{
    (void)state;
    fake_driver_reset();
    return 0;
}

static void every_row_is_filled_under_its_name(void **state)
{
    (void)state;
    const struct cca_cuda_table *table = fake_driver_table();
    assert_int_equal(table->driver_version, 13000);
#define REQUIRED(field, name, params) assert_non_null(table->field);
#define OPTIONAL(field, name, params) assert_non_null(table->field);
#include "device/cuda_symbols.def"
#undef REQUIRED
#undef OPTIONAL
    assert_int_equal(table->ctx_synchronize(), CUDA_SUCCESS);
    assert_string_equal(fake.called, "cuCtxSynchronize");
    assert_int_equal(table->mem_free(1), CUDA_SUCCESS);
    assert_string_equal(fake.called, "cuMemFree_v2");
}

static void a_missing_required_row_leaves_the_table_untouched(void **state)
{
    (void)state;
    static const char *const names[] = {
#define REQUIRED(field, name, params) name,
#define OPTIONAL(field, name, params)
#include "device/cuda_symbols.def"
#undef REQUIRED
#undef OPTIONAL
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct cca_cuda_table table, before;
        memset(&table, 0x5a, sizeof(table));
        memcpy(&before, &table, sizeof(table));
        const char *missing = NULL;
        fake.lacks = names[i];
        assert_int_equal(cca_cuda_table_fill(&table, fake_driver_look_up, &fake, &missing),
                         -ENOENT);
        assert_string_equal(missing, names[i]);
        assert_memory_equal(&table, &before, sizeof(table));
    }
}

static void a_missing_optional_row_is_null(void **state)
{
    (void)state;
    fake.lacks = "cuCtxRecordEvent";
    const struct cca_cuda_table *table = fake_driver_table();
    assert_null(table->ctx_record_event);
    assert_false(cca_cuda_table_has_context_events(table));
    assert_true(cca_cuda_table_has_stream_ids(table));

    fake.lacks = "cuStreamGetId_ptsz";
    table = fake_driver_table();
    assert_true(cca_cuda_table_has_context_events(table));
    assert_false(cca_cuda_table_has_stream_ids(table));
}

static void an_export_that_the_resolver_denies_is_null(void **state)
{
    (void)state;
    fake.denies = "cuCtxRecordEvent";
    fake.denies_flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    assert_null(fake_driver_table()->ctx_record_event);

    /* A resolver knows names without their versions. */
    fake.denies = "cuStreamGetCaptureInfo";
    assert_null(fake_driver_table()->stream_get_capture_info);
    fake.denies = "cuStreamGetId";
    fake.denies_flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct cca_cuda_table *table = fake_driver_table();
    assert_null(table->stream_get_id_ptsz);
    assert_non_null(table->stream_get_id);
    assert_non_null(table->get_proc_address);

    fake.lacks = "cuGetProcAddress_v2";
    assert_non_null(fake_driver_table()->stream_get_id_ptsz);
}

static void an_older_driver_is_believed_about_its_version(void **state)
{
    (void)state;
    fake.version = 12040;
    assert_false(cca_cuda_table_has_context_events(fake_driver_table()));
    fake.version = 12050;
    assert_true(cca_cuda_table_has_context_events(fake_driver_table()));
    fake.version = 11080;
    assert_false(cca_cuda_table_has_stream_ids(fake_driver_table()));
}

static void a_driver_without_a_version_is_refused(void **state)
{
    (void)state;
    struct cca_cuda_table table;
    const char *missing = NULL;
    fake.fail_at = 1;
    assert_int_equal(cca_cuda_table_fill(&table, fake_driver_look_up, &fake, &missing), -ENOENT);
    assert_string_equal(missing, "cuDriverGetVersion");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(every_row_is_filled_under_its_name, setup),
    cmocka_unit_test_setup(a_missing_required_row_leaves_the_table_untouched, setup),
    cmocka_unit_test_setup(a_missing_optional_row_is_null, setup),
    cmocka_unit_test_setup(an_export_that_the_resolver_denies_is_null, setup),
    cmocka_unit_test_setup(an_older_driver_is_believed_about_its_version, setup),
    cmocka_unit_test_setup(a_driver_without_a_version_is_refused, setup),
};

CCA_TEST_MAIN(tests)
