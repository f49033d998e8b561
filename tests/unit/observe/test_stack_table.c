/* SPDX-License-Identifier: MIT */
#include "observe/stack_table.h"

#include <errno.h>
#include <pthread.h>

#include "base/sysmem.h"
#include "support/test.h"

enum { THREADS = 8, STACKS = 500, ROUNDS = 20 };

static int make_stack(uintptr_t *pcs, unsigned number)
{
    int depth = (int)(number % 37) + 1;

    for (int i = 0; i < depth; i++) {
        pcs[i] = 0x400000 + (uintptr_t)number * 977 + (uintptr_t)i * 16;
    }
    return depth;
}

static void equal_stacks_have_one_id(void **state)
{
    struct cca_stack_table table;
    uint32_t ids[STACKS];
    uintptr_t pcs[64];
    int depth = 0;

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 1024, 1 << 20), 0);
    for (unsigned i = 0; i < STACKS; i++) {
        ids[i] = cca_stack_table_intern(&table, pcs, make_stack(pcs, i));
        assert_int_not_equal(ids[i], 0);
    }
    for (unsigned i = 0; i < STACKS; i++) {
        int wanted = make_stack(pcs, i);
        assert_int_equal(cca_stack_table_intern(&table, pcs, wanted), ids[i]);
        const uintptr_t *got = cca_stack_table_get(&table, ids[i], &depth);
        assert_int_equal(depth, wanted);
        assert_memory_equal(got, pcs, (size_t)depth * sizeof(pcs[0]));
        for (unsigned j = 0; j < i; j++) {
            assert_int_not_equal(ids[i], ids[j]);
        }
    }
    assert_int_equal(atomic_load(&table.stacks), STACKS);
    assert_int_equal(atomic_load(&table.refused), 0);
    cca_stack_table_fini(&table);
}

static void prefixes_and_orders_differ(void **state)
{
    struct cca_stack_table table;
    const uintptr_t pcs[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uintptr_t swapped[] = {5, 6, 7, 8, 1, 2, 3, 4};

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 64, 1 << 16), 0);
    uint32_t whole = cca_stack_table_intern(&table, pcs, 8);
    assert_int_not_equal(whole, cca_stack_table_intern(&table, pcs, 7));
    assert_int_not_equal(whole, cca_stack_table_intern(&table, swapped, 8));
    assert_int_equal(whole, cca_stack_table_intern(&table, pcs, 8));
    cca_stack_table_fini(&table);
}

static void no_stack_has_no_id(void **state)
{
    struct cca_stack_table table;
    const uintptr_t pcs[] = {1};
    int depth = 9;

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 64, 1 << 16), 0);
    assert_int_equal(cca_stack_table_intern(&table, pcs, 0), 0);
    assert_null(cca_stack_table_get(&table, 0, &depth));
    assert_int_equal(depth, 0);
    assert_null(cca_stack_table_get(&table, 77777, &depth));
    cca_stack_table_fini(&table);
    cca_stack_table_fini(&table);
}

static void full_table_refuses_and_counts(void **state)
{
    struct cca_stack_table table;
    uint32_t ids[8];

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 16, 1 << 16), 0);
    for (uintptr_t i = 0; i < 8; i++) {
        ids[i] = cca_stack_table_intern(&table, &i, 1);
        assert_int_not_equal(ids[i], 0);
    }
    for (uintptr_t i = 8; i < 20; i++) {
        assert_int_equal(cca_stack_table_intern(&table, &i, 1), 0);
    }
    for (uintptr_t i = 0; i < 8; i++) {
        assert_int_equal(cca_stack_table_intern(&table, &i, 1), ids[i]);
    }
    assert_int_equal(atomic_load(&table.refused), 12);
    assert_int_equal(atomic_load(&table.stacks), 8);
    cca_stack_table_fini(&table);
}

static void full_arena_refuses_and_counts(void **state)
{
    struct cca_stack_table table;
    const uintptr_t pcs[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    /* Eight words: one is spare, a record of five fits, then one of two. */
    assert_int_equal(cca_stack_table_init(&table, 64, 64), 0);
    assert_int_not_equal(cca_stack_table_intern(&table, pcs, 4), 0);
    assert_int_equal(cca_stack_table_intern(&table, pcs, 3), 0);
    assert_int_not_equal(cca_stack_table_intern(&table, pcs, 1), 0);
    assert_int_equal(cca_stack_table_intern(&table, &pcs[1], 1), 0);
    assert_int_equal(atomic_load(&table.refused), 2);
    assert_int_equal(atomic_load(&table.stacks), 2);
    cca_stack_table_fini(&table);
}

static void table_without_memory_refuses(void **state)
{
    struct cca_stack_table table;
    const uintptr_t pc = 1;
    int depth = 0;

    (void)state;
    for (long nth = 1; nth <= 2; nth++) {
        cca_sysmem_fail_nth(nth);
        assert_int_equal(cca_stack_table_init(&table, 64, 1 << 16), -ENOMEM);
        cca_sysmem_fail_nth(0);
        assert_int_equal(cca_stack_table_intern(&table, &pc, 1), 0);
        assert_int_equal(atomic_load(&table.refused), 1);
        assert_null(cca_stack_table_get(&table, 1, &depth));
        cca_stack_table_fini(&table);
    }
}

struct job {
    struct cca_stack_table *table;
    pthread_barrier_t *barrier;
    unsigned offset;
    uint32_t ids[STACKS];
    int wrong;
};

static void *intern_all(void *user)
{
    struct job *job = user;
    uintptr_t pcs[64];

    pthread_barrier_wait(job->barrier);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < STACKS; i++) {
            unsigned number = (i + job->offset * round) % STACKS;
            int depth = 0;
            int wanted = make_stack(pcs, number);
            uint32_t id = cca_stack_table_intern(job->table, pcs, wanted);
            const uintptr_t *got = cca_stack_table_get(job->table, id, &depth);
            job->wrong += got == NULL || depth != wanted ||
                          memcmp(got, pcs, (size_t)depth * sizeof(pcs[0])) != 0 ||
                          (round > 0 && job->ids[number] != id);
            job->ids[number] = id;
        }
    }
    return NULL;
}

static void threads_agree_on_ids(void **state)
{
    struct cca_stack_table table;
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    static struct job jobs[THREADS];

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 1024, 4 << 20), 0);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.table = &table, .barrier = &barrier, .offset = i};
        assert_int_equal(pthread_create(&threads[i], NULL, intern_all, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].wrong, 0);
        assert_memory_equal(jobs[i].ids, jobs[0].ids, sizeof(jobs[0].ids));
    }
    assert_int_equal(atomic_load(&table.stacks), STACKS);
    assert_int_equal(atomic_load(&table.refused), 0);
    pthread_barrier_destroy(&barrier);
    cca_stack_table_fini(&table);
}

static void *fill(void *user)
{
    struct job *job = user;

    pthread_barrier_wait(job->barrier);
    for (uintptr_t i = 0; i < 200; i++) {
        uintptr_t pc = i * THREADS + job->offset;
        job->wrong += cca_stack_table_intern(job->table, &pc, 1) == 0;
    }
    return NULL;
}

static void threads_fill_the_table_to_the_brim(void **state)
{
    struct cca_stack_table table;
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    static struct job jobs[THREADS];
    int refused = 0;

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 256, 1 << 20), 0);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.table = &table, .barrier = &barrier, .offset = i};
        assert_int_equal(pthread_create(&threads[i], NULL, fill, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        refused += jobs[i].wrong;
    }
    assert_int_equal(atomic_load(&table.stacks), 128);
    assert_int_equal(refused, 200 * THREADS - 128);
    assert_int_equal(atomic_load(&table.refused), refused);
    pthread_barrier_destroy(&barrier);
    cca_stack_table_fini(&table);
}

static void finding_stores_nothing(void **state)
{
    static const uintptr_t pcs[] = {10, 20, 30};
    struct cca_stack_table table;

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 64, 1 << 16), 0);
    uint32_t next = cca_stack_table_next(&table);
    assert_int_equal(cca_stack_table_find(&table, pcs, 3), 0);
    assert_int_equal(cca_stack_table_find(&table, pcs, 0), 0);
    assert_int_equal(cca_stack_table_next(&table), next);
    uint32_t id = cca_stack_table_intern(&table, pcs, 3);
    assert_true(id >= next && id < cca_stack_table_next(&table));
    assert_int_equal(cca_stack_table_find(&table, pcs, 3), id);
    cca_stack_table_fini(&table);
}

static void note_call(void *user, uintptr_t pc)
{
    *(uintptr_t *)user += pc;
}

static void retired_stacks_are_stored_anew(void **state)
{
    static const uintptr_t through[] = {100, 205, 300}, beside[] = {100, 200, 300},
                           behind[] = {100, 210, 300};
    struct cca_stack_table table;
    uintptr_t sum = 0;
    int depth;

    (void)state;
    assert_int_equal(cca_stack_table_init(&table, 64, 1 << 16), 0);
    uint32_t old = cca_stack_table_intern(&table, through, 3);
    uint32_t kept = cca_stack_table_intern(&table, beside, 3);
    uint32_t last = cca_stack_table_intern(&table, behind, 3);
    cca_stack_table_each(&table, 200, 210, note_call, &sum);
    assert_int_equal(sum, 205 + 210);
    cca_stack_table_retire(&table, 200, 210);
    assert_int_equal(cca_stack_table_find(&table, beside, 3), kept);
    assert_int_equal(cca_stack_table_find(&table, through, 3), 0);
    assert_int_not_equal(cca_stack_table_intern(&table, behind, 3), last);
    uint32_t fresh = cca_stack_table_intern(&table, through, 3);
    assert_true(fresh > old);
    assert_int_equal(cca_stack_table_intern(&table, through, 3), fresh);
    assert_memory_equal(cca_stack_table_get(&table, old, &depth), through, sizeof(through));
    cca_stack_table_fini(&table);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(finding_stores_nothing),
    cmocka_unit_test(retired_stacks_are_stored_anew),
    cmocka_unit_test(equal_stacks_have_one_id),
    cmocka_unit_test(prefixes_and_orders_differ),
    cmocka_unit_test(no_stack_has_no_id),
    cmocka_unit_test(full_table_refuses_and_counts),
    cmocka_unit_test(full_arena_refuses_and_counts),
    cmocka_unit_test(table_without_memory_refuses),
    cmocka_unit_test(threads_agree_on_ids),
    cmocka_unit_test(threads_fill_the_table_to_the_brim),
};
CCA_TEST_MAIN(tests)
