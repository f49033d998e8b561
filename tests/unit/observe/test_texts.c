/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <pthread.h>
#include <stdio.h>

#include "observe/texts.h"

static void equal_texts_share_an_id(void **state)
{
    struct cca_texts texts;
    uint32_t a, b;

    (void)state;
    assert_int_equal(cca_texts_init(&texts, 64, 1 << 20), 0);
    a = cca_texts_intern(&texts, "step 1");
    b = cca_texts_intern(&texts, "step 2");
    assert_int_not_equal(a, 0);
    assert_int_not_equal(a, b);
    assert_int_equal(cca_texts_intern(&texts, "step 1"), a);
    assert_string_equal(cca_texts_get(&texts, a), "step 1");
    assert_string_equal(cca_texts_get(&texts, b), "step 2");
    cca_texts_fini(&texts);
}

static void nothing_is_no_text(void **state)
{
    struct cca_texts texts;

    (void)state;
    assert_int_equal(cca_texts_init(&texts, 64, 1 << 20), 0);
    assert_int_equal(cca_texts_intern(&texts, NULL), 0);
    assert_int_equal(cca_texts_intern(&texts, ""), 0);
    assert_string_equal(cca_texts_get(&texts, 0), "");
    assert_string_equal(cca_texts_get(&texts, 77), "");
    assert_string_equal(cca_texts_get(NULL, 1), "");
    cca_texts_fini(&texts);
}

static void a_long_text_is_cut(void **state)
{
    static char text[CCA_TEXT_BYTES_MAX + 10];
    struct cca_texts texts;
    uint32_t id;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(cca_texts_init(&texts, 64, 1 << 20), 0);
    id = cca_texts_intern(&texts, text);
    assert_int_equal(strlen(cca_texts_get(&texts, id)), CCA_TEXT_BYTES_MAX - 1);
    cca_texts_fini(&texts);
}

static void a_full_table_refuses_and_counts(void **state)
{
    struct cca_texts texts;
    char text[16];

    (void)state;
    assert_int_equal(cca_texts_init(&texts, 8, 1 << 20), 0);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "text %d", i);
        assert_int_equal(cca_texts_intern(&texts, text) != 0, i < 4);
    }
    assert_int_equal(atomic_load(&texts.refused), 6);
    assert_int_not_equal(cca_texts_intern(&texts, "text 0"), 0);
    cca_texts_fini(&texts);
    assert_int_equal(cca_texts_init(&texts, 64, 32), 0);
    assert_int_not_equal(cca_texts_intern(&texts, "fits"), 0);
    assert_int_equal(cca_texts_intern(&texts, "does not fit any more"), 0);
    cca_texts_fini(&texts);
}

enum { THREADS = 8, ROUNDS = 2000 };

static void *intern_many(void *user)
{
    struct cca_texts *texts = user;
    char text[24];

    for (int i = 0; i < ROUNDS; i++) {
        snprintf(text, sizeof(text), "text %d", i % 100);
        uint32_t id = cca_texts_intern(texts, text);
        if (id == 0 || strcmp(cca_texts_get(texts, id), text) != 0) {
            return texts;
        }
    }
    return NULL;
}

static void threads_agree(void **state)
{
    pthread_t threads[THREADS];
    struct cca_texts texts;
    void *wrong;

    (void)state;
    assert_int_equal(cca_texts_init(&texts, 1024, 1 << 20), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, intern_many, &texts), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_int_equal(texts.kept, 100);
    cca_texts_fini(&texts);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_texts_share_an_id), cmocka_unit_test(nothing_is_no_text),
    cmocka_unit_test(a_long_text_is_cut),      cmocka_unit_test(a_full_table_refuses_and_counts),
    cmocka_unit_test(threads_agree),
};

CCA_TEST_MAIN(tests)
