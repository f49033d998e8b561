/* SPDX-License-Identifier: MIT */
/* Random programs against the naive account of model.h: whatever happens, no memory has two users
 * that are not ordered, and the books hold after every step. CCA_TEST_LEVEL=full runs more. */
#include "model_program.h"

#include "../base/random.h"

enum { SEEDS = 20, STEPS = 1000, SEEDS_FULL = 200, STEPS_FULL = 5000 };

static void random_programs_never_share_memory_unordered(void **state)
{
    const char *level = getenv("CCA_TEST_LEVEL");
    bool is_full = level != NULL && strcmp(level, "full") == 0;
    int seeds = is_full ? SEEDS_FULL : SEEDS, steps = is_full ? STEPS_FULL : STEPS;
    uint64_t first = random_seed(1);
    (void)state;
    for (int i = 0; i < seeds; i++) {
        print_message("# program %d\n", (int)first + i);
        model_program_start(first + (uint64_t)i, NULL, 0);
        for (int j = 0; j < steps; j++) {
            model_program_step();
        }
        model_program_finish();
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_programs_never_share_memory_unordered),
};

CCA_TEST_MAIN(tests)
