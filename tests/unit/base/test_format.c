/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <float.h>
#include <limits.h>
#include <math.h>

#include "base/format.h"
#include "unit/base/random.h"

static char buf[512];
static struct cca_text text;

static int setup(void **state)
{
    (void)state;
    memset(buf, 'Z', sizeof(buf));
    cca_text_init(&text, buf, sizeof(buf));
    return 0;
}

static void pieces_follow_each_other(void **state)
{
    (void)state;
    assert_string_equal(buf, "");
    cca_text_str(&text, "a");
    cca_text_char(&text, '-');
    cca_text_bytes(&text, "bcd", 2);
    cca_text_str(&text, NULL);
    cca_text_bytes(&text, "", 0);
    assert_string_equal(buf, "a-bc(null)");
    assert_int_equal(text.len, strlen(buf));
    assert_false(text.truncated);
}

static void text_that_does_not_fit_is_cut_and_marked(void **state)
{
    (void)state;
    cca_text_init(&text, buf, 6);
    cca_text_str(&text, "12345");
    assert_false(text.truncated);
    cca_text_char(&text, '6');
    assert_true(text.truncated);
    cca_text_u64(&text, 789);
    assert_string_equal(buf, "12345");
    assert_int_equal(buf[6], 'Z');
    cca_text_init(&text, buf, 6);
    cca_text_u64(&text, 12345678);
    assert_string_equal(buf, "12345");
    assert_true(text.truncated);
}

static void buffer_of_one_byte_holds_the_empty_text(void **state)
{
    (void)state;
    cca_text_init(&text, buf, 1);
    cca_text_str(&text, "x");
    assert_string_equal(buf, "");
    assert_true(text.truncated);
    assert_int_equal(cca_format(buf, 1, "%d", 5), 0);
    assert_string_equal(buf, "");
}

static void integers_print_to_their_limits(void **state)
{
    (void)state;
    cca_text_u64(&text, 0);
    cca_text_char(&text, ' ');
    cca_text_u64(&text, UINT64_MAX);
    cca_text_char(&text, ' ');
    cca_text_i64(&text, INT64_MIN);
    cca_text_char(&text, ' ');
    cca_text_i64(&text, INT64_MAX);
    cca_text_char(&text, ' ');
    cca_text_hex(&text, 0);
    cca_text_char(&text, ' ');
    cca_text_hex(&text, UINT64_MAX);
    assert_string_equal(buf, "0 18446744073709551615 -9223372036854775808 9223372036854775807 0x0 "
                             "0xffffffffffffffff");
}

static void assert_double(double value, unsigned decimals, const char *expected)
{
    cca_text_init(&text, buf, sizeof(buf));
    cca_text_double(&text, value, decimals);
    assert_string_equal(buf, expected);
}

static void doubles_print_with_the_asked_decimals(void **state)
{
    (void)state;
    assert_double(0, 0, "0");
    assert_double(0, 3, "0.000");
    assert_double(-0.0, 1, "-0.0");
    assert_double(1.5, 1, "1.5");
    assert_double(-2.25, 2, "-2.25");
    assert_double(0.999, 2, "1.00");
    assert_double(0.001, 2, "0.00");
    assert_double(0.05, 3, "0.050");
    assert_double(0.123456789, 9, "0.123456789");
    assert_double(0.123456789, 50, "0.123456789");
    assert_double(123456789012345678.0, 1, "123456789012345680.0");
    assert_double(1e18, 2, "1000000000000000000.00");
    assert_double(1e20, 0, "100000000000000000000");
}

static void doubles_that_are_no_numbers_have_names(void **state)
{
    (void)state;
    assert_double(NAN, 2, "nan");
    assert_double(INFINITY, 2, "inf");
    assert_double(-INFINITY, 2, "-inf");
}

static void largest_double_prints_309_digits(void **state)
{
    (void)state;
    cca_text_double(&text, DBL_MAX, 1);
    assert_int_equal(text.len, 311);
    assert_memory_equal(buf, "179769313486231", 15);
}

static void doubles_agree_with_printf(void **state)
{
    uint64_t rng = random_seed(3);

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char expected[64];
        double value = (double)(random_next(&rng) >> 11) / (double)(1 << (random_next(&rng) % 30));

        cca_text_init(&text, buf, sizeof(buf));
        cca_text_double(&text, value, 6);
        snprintf(expected, sizeof(expected), "%.6f", value);
        /* printf rounds halves to even, we round them up. */
        if (strcmp(buf, expected) != 0) {
            assert_true(fabs(strtod(buf, NULL) - strtod(expected, NULL)) <= 1.01e-6);
            assert_true(fabs(strtod(buf, NULL) - value) <= 0.51e-6);
        }
    }
}

static void assert_size(uint64_t bytes, const char *expected)
{
    cca_text_init(&text, buf, sizeof(buf));
    cca_text_size(&text, bytes);
    assert_string_equal(buf, expected);
}

static void sizes_take_the_largest_unit_that_fits(void **state)
{
    (void)state;
    assert_size(0, "0 B");
    assert_size(17, "17 B");
    assert_size(1023, "1023 B");
    assert_size(1024, "1.00 KiB");
    assert_size(1536, "1.50 KiB");
    assert_size((uint64_t)20 << 20, "20.00 MiB");
    assert_size(((uint64_t)13 << 30) / 4, "3.25 GiB");
    assert_size((uint64_t)5 << 40, "5.00 TiB");
    assert_size(UINT64_MAX, "16384.00 PiB");
}

static void rounded_size_moves_to_the_next_unit(void **state)
{
    (void)state;
    assert_size(((uint64_t)1 << 20) - 1, "1.00 MiB");
    assert_size(((uint64_t)1 << 30) - 1, "1.00 GiB");
    assert_size(((uint64_t)1 << 20) - 6, "1023.99 KiB");
}

static void format_agrees_with_printf(void **state)
{
    char expected[512];
    void *ptr = &buf;
    size_t len;

#define FORMAT                                                                                  \
    "%s|%c|%d|%i|%u|%ld|%lu|%lld|%llu|%zu|%x|%lx|%llx|%p|%%|%s", "text", 'c', INT_MIN, INT_MAX, \
        UINT_MAX, LONG_MIN, ULONG_MAX, LLONG_MIN, ULLONG_MAX, SIZE_MAX, 0xabcu, ULONG_MAX,      \
        0x123456789abcdefULL, ptr, "end"
    (void)state;
    snprintf(expected, sizeof(expected), FORMAT);
    len = cca_format(buf, sizeof(buf), FORMAT);
#undef FORMAT
    assert_string_equal(buf, expected);
    assert_int_equal(len, strlen(expected));
}

static void format_of_plain_text_is_the_text(void **state)
{
    (void)state;
    assert_int_equal(cca_format(buf, sizeof(buf), "plain"), 5);
    assert_string_equal(buf, "plain");
    assert_int_equal(cca_format(buf, 4, "pl%s", "ain"), 3);
    assert_string_equal(buf, "pla");
}

static size_t format_unchecked(const char *fmt, ...)
{
    va_list args;
    size_t len;

    va_start(args, fmt);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    len = cca_format_v(buf, sizeof(buf), fmt, args);
#pragma GCC diagnostic pop
    va_end(args);
    return len;
}

static void format_shows_what_it_does_not_know(void **state)
{
    (void)state;
    format_unchecked("%d %q %d", 1, 2, 3);
    assert_string_equal(buf, "1 %q %d");
    format_unchecked("%5d", 1);
    assert_string_equal(buf, "%5d");
    format_unchecked("end %");
    assert_string_equal(buf, "end %");
    format_unchecked("end %ll");
    assert_string_equal(buf, "end %ll");
    format_unchecked("%s", (const char *)NULL);
    assert_string_equal(buf, "(null)");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(pieces_follow_each_other, setup),
    cmocka_unit_test_setup(text_that_does_not_fit_is_cut_and_marked, setup),
    cmocka_unit_test_setup(buffer_of_one_byte_holds_the_empty_text, setup),
    cmocka_unit_test_setup(integers_print_to_their_limits, setup),
    cmocka_unit_test_setup(doubles_print_with_the_asked_decimals, setup),
    cmocka_unit_test_setup(doubles_that_are_no_numbers_have_names, setup),
    cmocka_unit_test_setup(largest_double_prints_309_digits, setup),
    cmocka_unit_test_setup(doubles_agree_with_printf, setup),
    cmocka_unit_test_setup(sizes_take_the_largest_unit_that_fits, setup),
    cmocka_unit_test_setup(rounded_size_moves_to_the_next_unit, setup),
    cmocka_unit_test_setup(format_agrees_with_printf, setup),
    cmocka_unit_test_setup(format_of_plain_text_is_the_text, setup),
    cmocka_unit_test_setup(format_shows_what_it_does_not_know, setup),
};

CCA_TEST_MAIN(tests)
