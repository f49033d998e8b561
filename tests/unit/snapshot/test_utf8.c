/* SPDX-License-Identifier: MIT */
#include "snapshot/utf8.h"

#include "support/test.h"

static void tells_valid_sequences(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2},
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0},                 /* continuation alone */
        {"\xc0\x80", 0},             /* overlong */
        {"\xc1\xbf", 0},             /* overlong */
        {"\xe0\x9f\xbf", 0},         /* overlong */
        {"\xf0\x8f\xbf\xbf", 0},     /* overlong */
        {"\xed\xa0\x80", 0},         /* surrogate */
        {"\xf4\x90\x80\x80", 0},     /* beyond the last code point */
        {"\xf8\x88\x80\x80\x80", 0}, /* five bytes */
        {"\xff", 0},
        {"\xc3", 0},         /* cut */
        {"\xe2\x82", 0},     /* cut */
        {"\xf0\x9f\x92", 0}, /* cut */
        {"\xc3\x28", 0},     /* no continuation */
        {"\xe2\x28\xa1", 0}, /* no continuation */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(cca_utf8_sequence(rows[i].text, strlen(rows[i].text)), rows[i].bytes);
    }
}

static void counts_clean_bytes(void **state)
{
    (void)state;
    assert_int_equal(cca_utf8_clean_bytes("", 0), 0);
    assert_int_equal(cca_utf8_clean_bytes("caf\xc3\xa9", 5), 5);
    assert_int_equal(cca_utf8_clean_bytes("a\xff\xfe"
                                          "b",
                                          4),
                     8);
    assert_int_equal(cca_utf8_clean_bytes("\xe2\x82", 2), 6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tells_valid_sequences),
    cmocka_unit_test(counts_clean_bytes),
};

CCA_TEST_MAIN(tests)
