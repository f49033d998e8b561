/* SPDX-License-Identifier: MIT */
#include "preload/stream_key.h"

#include <pthread.h>

#include "support/test.h"

static cca_key key_of(uint64_t id, int device, uint32_t thread)
{
    cca_key key = CCA_KEY_READY;
    assert_true(cca_stream_key(id, device, thread, &key));
    assert_int_not_equal(key, CCA_KEY_READY);
    assert_int_not_equal(key, 0);
    return key;
}

static void keys_differ_when_anything_does(void **state)
{
    static const uint64_t ids[] = {0, 1, 2, 3, (1 << 29) - 1};
    static const int devices[] = {0, 1, 63};
    static const uint32_t threads[] = {0, 1, 2, (1 << 28) - 2};
    cca_key keys[60];
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(ids); i++) {
        for (size_t d = 0; d < CCA_ARRAY_LEN(devices); d++) {
            for (size_t t = 0; t < CCA_ARRAY_LEN(threads); t++) {
                keys[count++] = key_of(ids[i], devices[d], threads[t]);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(keys[i], keys[j]);
        }
    }
    assert_int_not_equal(key_of(((uint64_t)1 << 47) - 1, 63, 0), key_of(0, 63, 0));
}

static void numbers_that_do_not_fit_have_no_key(void **state)
{
    cca_key key = 7;

    (void)state;
    assert_false(cca_stream_key((uint64_t)1 << 47, 0, 0, &key));
    assert_false(cca_stream_key(UINT64_MAX, 0, 0, &key));
    assert_false(cca_stream_key(1 << 29, 0, 1, &key));
    assert_false(cca_stream_key(1, 64, 0, &key));
    assert_false(cca_stream_key(1, -1, 0, &key));
    assert_false(cca_stream_key(1, 0, 1 << 28, &key));
    assert_false(cca_stream_key((1 << 29) - 1, 63, (1 << 28) - 1, &key)); /* that of nobody's */
    assert_int_equal(key, 7);
}

static void *number(void *user)
{
    *(uint32_t *)user = cca_stream_thread();
    return NULL;
}

static void no_thread_gets_the_number_of_another(void **state)
{
    uint32_t mine = cca_stream_thread(), first = 0, second = 0;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, number, &first), 0);
    pthread_join(thread, NULL);
    assert_int_equal(pthread_create(&thread, NULL, number, &second), 0);
    pthread_join(thread, NULL);
    assert_int_equal(cca_stream_thread(), mine);
    assert_true(mine != 0 && first != 0 && second != 0);
    assert_true(first != mine && second != mine && first != second);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_differ_when_anything_does),
    cmocka_unit_test(numbers_that_do_not_fit_have_no_key),
    cmocka_unit_test(no_thread_gets_the_number_of_another),
};

CCA_TEST_MAIN(tests)
