/* SPDX-License-Identifier: MIT */
/* A program that links two libraries, each of them with a runtime of its own release. What one
 * gives the other frees; each has a last error of its own. */
#include <stdio.h>

#include "half.h"

struct half {
    const char *name;
    int (*allocate)(void **ptr, size_t bytes);
    int (*free)(void *ptr);
    int (*set)(void *ptr, int value, size_t bytes);
    int (*last_error)(void);
    int (*version)(void);
};

HALF_DECLARE(old);
HALF_DECLARE(new);

static const struct half halves[] = {
    {"old", old_malloc, old_free, old_set, old_last_error, old_version},
    {"new", new_malloc, new_free, new_set, new_last_error, new_version},
};

static void work(const struct half *from, const struct half *to)
{
    int failures = 0;
    void *p = NULL;
    for (int i = 0; i < 100; i++) {
        failures += from->allocate(&p, 3 << 20) != 0;
        failures += from->set(p, i, 3 << 20) != 0;
        failures += to->free(p) != 0;
    }
    printf("%s to %s: %d failures\n", from->name, to->name, failures);
    printf("too much: %d\n", from->allocate(&p, (size_t)1 << 50));
    printf("freed again: %d\n", to->free(p));
    printf("last errors: %s %d, %s %d\n", from->name, from->last_error(), to->name,
           to->last_error());
}

int main(void)
{
    printf("%s\n", halves[0].version() != halves[1].version() ? "two runtimes" : "ONE runtime");
    work(&halves[0], &halves[1]);
    work(&halves[1], &halves[0]);
    work(&halves[1], &halves[1]);
    return 0;
}
