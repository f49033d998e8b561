/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <signal.h>

#include "base/compiler.h"
#include "config/config.h"
#include "config/parse.h"

static void booleans_have_four_spellings_each(void **state)
{
    static const char *const yes[] = {"1", "true", "yes", "on", "TRUE", "Yes", " on\t"};
    static const char *const no[] = {"0", "false", "no", "off", "False", "NO", "\noff "};
    static const char *const bad[] = {"", " ", "2", "01", "y", "t", "truee", "on off", "-1"};
    bool value;

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(yes); i++) {
        value = false;
        assert_int_equal(cca_parse_bool(yes[i], &value), 0);
        assert_true(value);
        assert_int_equal(cca_parse_bool(no[i], &value), 0);
        assert_false(value);
    }
    value = true;
    for (size_t i = 0; i < CCA_ARRAY_LEN(bad); i++) {
        assert_int_equal(cca_parse_bool(bad[i], &value), -EINVAL);
        assert_true(value);
    }
}

static void sizes_take_suffixes_of_powers_of_two(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {
        {"0", 0},
        {"17", 17},
        {" 4096 ", 4096},
        {"1K", 1024},
        {"1KiB", 1024},
        {"20M", (size_t)20 << 20},
        {"20MiB", (size_t)20 << 20},
        {"3G", (size_t)3 << 30},
        {"3GiB", (size_t)3 << 30},
        {"2T", (size_t)2 << 40},
        {"2TiB", (size_t)2 << 40},
        {"5m", (size_t)5 << 20},
        {"5gib", (size_t)5 << 30},
        {"000000000000000000000000001", 1},
        {"18446744073709551615", SIZE_MAX},
        {"16777215T", (size_t)16777215 << 40},
        {"unlimited", CCA_NO_LIMIT},
        {"Unlimited", CCA_NO_LIMIT},
        {"none", CCA_NO_LIMIT},
    };

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(good); i++) {
        size_t bytes = 99;

        assert_int_equal(cca_parse_size(good[i].text, &bytes), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void sizes_of_another_form_are_refused(void **state)
{
    static const char *const bad[] = {
        "",    " ",  "K",   "-1",  "+1",    "1.5G",  "1KB", "1B",    "1 K",
        "1Ki", "1P", "0x1", "1Kx", "1KiBs", "1,000", "1MB", "none1", "99999999999999999999x"};
    static const char *const large[] = {
        "18446744073709551616",  "99999999999999999999999", "16777216T",
        "184467440737095516160", "18014398509481984K",      "99999999999999999999G"};
    size_t bytes = 99;

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(bad); i++) {
        assert_int_equal(cca_parse_size(bad[i], &bytes), -EINVAL);
    }
    for (size_t i = 0; i < CCA_ARRAY_LEN(large); i++) {
        assert_int_equal(cca_parse_size(large[i], &bytes), -ERANGE);
    }
    assert_int_equal(bytes, 99);
}

static void unsigned_numbers_are_digits_only(void **state)
{
    static const char *const bad[] = {
        "", "-1", "+1", "1.0", "1K", "0x10", "1 2", "ten", "99999999999999999999x"};
    uint64_t value = 99;

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(bad); i++) {
        assert_int_equal(cca_parse_uint(bad[i], &value), -EINVAL);
    }
    assert_int_equal(cca_parse_uint("18446744073709551616", &value), -ERANGE);
    assert_int_equal(value, 99);
    assert_int_equal(cca_parse_uint("0", &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(cca_parse_uint(" 0042 ", &value), 0);
    assert_int_equal(value, 42);
    assert_int_equal(cca_parse_uint("18446744073709551615", &value), 0);
    assert_true(value == UINT64_MAX);
}

static void ratios_are_plain_decimal_numbers(void **state)
{
    static const char *const good[] = {"0",     "1",
                                       "0.8",   ".5",
                                       "1.",    "0.25",
                                       "12.5",  "0.123456789012",
                                       " 0.1 ", "000000000000000000.5"};
    static const char *const bad[] = {"",    ".",   "-0.5", "+0.5", "1e-1", "0,8",
                                      "0x1", "nan", "1..2", "0.5%", "0. 5"};
    double value = 99;

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(bad); i++) {
        assert_int_equal(cca_parse_ratio(bad[i], &value), -EINVAL);
    }
    assert_int_equal(cca_parse_ratio("1000000000000000", &value), -ERANGE);
    assert_true(value == 99);
    for (size_t i = 0; i < CCA_ARRAY_LEN(good); i++) {
        assert_int_equal(cca_parse_ratio(good[i], &value), 0);
        assert_true(value == strtod(good[i], NULL));
    }
    assert_int_equal(cca_parse_ratio("0.33333333333333333333333333", &value), 0);
    assert_float_equal(value, 1.0 / 3, 1e-12);
}

static void enum_is_the_position_of_the_word(void **state)
{
    static const char *const bad[] = {"", "cach", "cached", "cache|count", "|", "off,count", "3"};
    int position = 99;

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(bad); i++) {
        assert_int_equal(cca_parse_enum(bad[i], "cache|count|off", &position), -EINVAL);
    }
    assert_int_equal(position, 99);
    assert_int_equal(cca_parse_enum("cache", "cache|count|off", &position), 0);
    assert_int_equal(position, 0);
    assert_int_equal(cca_parse_enum(" Count ", "cache|count|off", &position), 0);
    assert_int_equal(position, 1);
    assert_int_equal(cca_parse_enum("OFF", "cache|count|off", &position), 0);
    assert_int_equal(position, 2);
    assert_int_equal(cca_parse_enum("one", "one", &position), 0);
    assert_int_equal(position, 0);
}

static void flags_are_a_mask_of_known_words(void **state)
{
    static const struct {
        const char *text;
        unsigned mask;
        const char *bad;
    } rows[] = {
        {"signal", 1, ""},
        {"signal,oom", 5, ""},
        {" OOM , exit ", 6, ""},
        {"exit,exit", 2, ""},
        {"", 0, ""},
        {" ", 0, ""},
        {"none", 0, ""},
        {"None,exit", 2, ""},
        {",exit,,", 2, ""},
        {"exit,term", 2, "term"},
        {"interval:5, exit ,abort", 2, "interval:5"},
        {"none,bad", 0, "bad"},
        {"exit oom,signal", 1, "exit oom"},
    };
    char bad[32];

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        unsigned mask = 99;

        assert_int_equal(cca_parse_flags(rows[i].text, "signal|exit|oom", &mask, bad, sizeof(bad)),
                         0);
        assert_int_equal(mask, rows[i].mask);
        assert_string_equal(bad, rows[i].bad);
        assert_int_equal(cca_parse_flags(rows[i].text, "signal|exit|oom", &mask, NULL, 0), 0);
    }
}

static void flags_of_unknown_words_only_are_refused(void **state)
{
    unsigned mask = 99;
    char bad[4];

    (void)state;
    assert_int_equal(cca_parse_flags("never,ever", "signal|exit", &mask, bad, sizeof(bad)),
                     -EINVAL);
    assert_int_equal(mask, 99);
    assert_string_equal(bad, "nev");
}

static void signals_have_names_and_numbers(void **state)
{
    const struct {
        const char *text;
        int number;
    } good[] = {
        {"USR1", SIGUSR1},
        {"SIGUSR1", SIGUSR1},
        {"usr2", SIGUSR2},
        {" sigterm ", SIGTERM},
        {"IOT", SIGABRT},
        {"10", SIGUSR1},
        {"none", 0},
        {"None", 0},
        {"RTMIN", SIGRTMIN},
        {"RTMIN+2", SIGRTMIN + 2},
        {"SIGRTMIN+0", SIGRTMIN},
        {"RTMAX", SIGRTMAX},
        {"RTMAX-3", SIGRTMAX - 3},
        {"RTMAX-30", SIGRTMIN},
        {"sigrtmax-1", SIGRTMAX - 1},
        {"64", SIGRTMAX},
    };

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(good); i++) {
        int number = 99;

        assert_int_equal(cca_parse_signal(good[i].text, &number), 0);
        assert_int_equal(number, good[i].number);
    }
}

static void signals_that_cannot_be_handled_are_refused(void **state)
{
    static const char *const bad[] = {"",        "SIG",    "USR3",     "KILL",     "SIGSTOP",
                                      "SIGNONE", "-10",    "10x",      "RTMIN-1",  "RTMAX+1",
                                      "RTMIN+",  "RTMIN2", "RTMAX-1x", "USR1 USR2"};
    static const char *const out[] = {"0",          "9",
                                      "19",         "32",
                                      "33",         "65",
                                      "4294967306", "99999999999999999999",
                                      "RTMIN+31",   "RTMAX-99999999999999999999"};
    int number = 99;

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(bad); i++) {
        assert_int_equal(cca_parse_signal(bad[i], &number), -EINVAL);
    }
    for (size_t i = 0; i < CCA_ARRAY_LEN(out); i++) {
        assert_int_equal(cca_parse_signal(out[i], &number), -ERANGE);
    }
    assert_int_equal(number, 99);
}

static void assert_signal_text(int number, const char *expected)
{
    char buf[32];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf));
    cca_text_signal(&text, number);
    assert_string_equal(buf, expected);
}

static void every_signal_reads_back_from_its_text(void **state)
{
    (void)state;
    assert_signal_text(0, "none");
    assert_signal_text(SIGUSR1, "USR1");
    assert_signal_text(SIGABRT, "ABRT");
    assert_signal_text(SIGRTMIN, "RTMIN+0");
    assert_signal_text(SIGRTMAX - 3, "RTMAX-3");
    assert_signal_text(SIGKILL, "9");
    for (int number = 1; number <= SIGRTMAX; number++) {
        char buf[32];
        struct cca_text text;
        int back = -1;

        if (number == SIGKILL || number == SIGSTOP || (number > SIGSYS && number < SIGRTMIN)) {
            continue;
        }
        cca_text_init(&text, buf, sizeof(buf));
        cca_text_signal(&text, number);
        assert_int_equal(cca_parse_signal(buf, &back), 0);
        assert_int_equal(back, number);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(booleans_have_four_spellings_each),
    cmocka_unit_test(sizes_take_suffixes_of_powers_of_two),
    cmocka_unit_test(sizes_of_another_form_are_refused),
    cmocka_unit_test(unsigned_numbers_are_digits_only),
    cmocka_unit_test(ratios_are_plain_decimal_numbers),
    cmocka_unit_test(enum_is_the_position_of_the_word),
    cmocka_unit_test(flags_are_a_mask_of_known_words),
    cmocka_unit_test(flags_of_unknown_words_only_are_refused),
    cmocka_unit_test(signals_have_names_and_numbers),
    cmocka_unit_test(signals_that_cannot_be_handled_are_refused),
    cmocka_unit_test(every_signal_reads_back_from_its_text),
};

CCA_TEST_MAIN(tests)
