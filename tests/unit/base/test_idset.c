/* SPDX-License-Identifier: MIT */
#include "base/idset.h"

#include <errno.h>

#include "base/sysmem.h"
#include "support/test.h"

enum { NUMBERS = 20000 };

/* No two alike; neighbours as handles of a driver are. */
static uint64_t number(unsigned i)
{
    return UINT64_C(0x560000001000) + (uint64_t)i * 64;
}

static void every_number_is_new_once(void **state)
{
    struct cca_idset set = {0};
    (void)state;
    assert_false(cca_idset_has(&set, 1));
    for (unsigned i = 0; i < NUMBERS; i++) {
        assert_int_equal(cca_idset_add(&set, number(i)), 1);
    }
    for (unsigned i = 0; i < NUMBERS; i++) {
        assert_int_equal(cca_idset_add(&set, number(i)), 0);
        assert_true(cca_idset_has(&set, number(i)));
        assert_false(cca_idset_has(&set, number(i) + 8));
        assert_int_equal(set.items[i], number(i));
    }
    assert_int_equal(set.count, NUMBERS);
    cca_idset_clear(&set);
    assert_int_equal(set.count, 0);
    assert_false(cca_idset_has(&set, number(7)));
    assert_int_equal(cca_idset_add(&set, number(7)), 1);
    cca_idset_fini(&set);
}

static void refused_memory_leaves_the_set_as_it_was(void **state)
{
    struct cca_idset set = {0};
    (void)state;
    cca_sysmem_fail_nth(1);
    assert_int_equal(cca_idset_add(&set, 5), -ENOMEM);
    assert_false(cca_idset_has(&set, 5));
    unsigned i = 0;
    do {
        cca_sysmem_fail_nth(set.count == 0 ? 0 : 1);
        i++;
    } while (cca_idset_add(&set, number(i)) == 1);
    cca_sysmem_fail_nth(0);
    assert_int_equal(set.count, i - 1);
    assert_false(cca_idset_has(&set, number(i)));
    assert_true(cca_idset_has(&set, number(i - 1)));
    assert_int_equal(cca_idset_add(&set, number(i)), 1);
    cca_idset_fini(&set);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_number_is_new_once),
    cmocka_unit_test(refused_memory_leaves_the_set_as_it_was),
};

CCA_TEST_MAIN(tests)
