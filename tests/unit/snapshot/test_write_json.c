/* SPDX-License-Identifier: MIT */
#include "snapshot/write_json.h"

#include "fixture.h"

#include "support/test.h"

static int remove_folder(void **state)
{
    (void)state;
    fixture_remove_folder();
    return 0;
}

static void escapes_what_json_forbids(void **state)
{
    static const char *const argv[] = {"\"\\/\b\f\n\r\t\x1f\x7f", "\xf0\x9f\x98\x80", "\xc0\x80",
                                       ""};
    struct cca_model model;
    char *text;

    (void)state;
    fixture_empty(&model);
    model.command_line = argv;
    model.command_line_count = 4;
    fixture_write(&model, cca_write_json, "document.json");
    text = fixture_read("document.json");
    assert_non_null(strstr(text, "\"command_line\":[\"\\\"\\\\/\\u0008\\u000c\\u000a\\u000d\\u0009"
                                 "\\u001f\\u007f\",\"\xf0\x9f\x98\x80\","
                                 "\"\xef\xbf\xbd\xef\xbf\xbd\",\"\"]"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
    cca_model_fini(&model);
}

static void numbers_that_json_lacks_are_null(void **state)
{
    struct cca_model model;
    char *text;

    (void)state;
    fixture_empty(&model);
    model.allocator_settings.garbage_collection_threshold = __builtin_inf();
    fixture_write(&model, cca_write_json, "document.json");
    text = fixture_read("document.json");
    assert_non_null(strstr(text, "\"garbage_collection_threshold\":null,"));
    free(text);
    cca_model_fini(&model);
}

static void every_stack_is_written_out(void **state)
{
    struct cca_model model;
    size_t count = 0;
    char *text;

    (void)state;
    fixture_small(&model);
    fixture_write(&model, cca_write_json, "document.json");
    text = fixture_read("document.json");
    for (const char *at = text; (at = strstr(at, "\"function_number_1\"")) != NULL; at++) {
        count++;
    }
    assert_int_equal(count, 4); /* two events, the segment, a block */
    free(text);
    cca_model_fini(&model);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(escapes_what_json_forbids, remove_folder),
    cmocka_unit_test_teardown(numbers_that_json_lacks_are_null, remove_folder),
    cmocka_unit_test_teardown(every_stack_is_written_out, remove_folder),
};

CCA_TEST_MAIN(tests)
