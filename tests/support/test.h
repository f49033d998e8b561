/* SPDX-License-Identifier: MIT */
/* What every unit test includes: cmocka with the headers it needs first. One cmocka group per
 * program, started by CCA_TEST_MAIN. */
#ifndef CCA_TEST_H
#define CCA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CCA_TEST_MAIN(tests)                              \
    int main(void)                                        \
    {                                                     \
        return cmocka_run_group_tests(tests, NULL, NULL); \
    }

#endif
