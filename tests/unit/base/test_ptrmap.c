/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <pthread.h>

#include "base/ptrmap.h"
#include "base/sysmem.h"
#include "unit/base/child.h"
#include "unit/base/random.h"

enum { KEYS = 4096, STEPS = 200000, THREADS = 8, MANY = 100000 };

static struct cca_ptrmap map;

static int setup(void **state)
{
    (void)state;
    cca_ptrmap_init(&map);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cca_ptrmap_fini(&map);
    return 0;
}

static void *value_of(uint64_t addr)
{
    return (void *)(uintptr_t)(addr ^ 1);
}

static void inserted_address_is_found_until_removed(void **state)
{
    (void)state;
    assert_null(cca_ptrmap_find(&map, 0x1000));
    assert_null(cca_ptrmap_remove(&map, 0x1000));
    assert_int_equal(cca_ptrmap_insert(&map, 0x1000, &map), 0);
    assert_ptr_equal(cca_ptrmap_find(&map, 0x1000), &map);
    assert_null(cca_ptrmap_find(&map, 0x1001));
    assert_int_equal(cca_ptrmap_count(&map), 1);
    assert_ptr_equal(cca_ptrmap_remove(&map, 0x1000), &map);
    assert_null(cca_ptrmap_find(&map, 0x1000));
    assert_null(cca_ptrmap_remove(&map, 0x1000));
    assert_int_equal(cca_ptrmap_count(&map), 0);
}

static void address_zero_is_never_there(void **state)
{
    (void)state;
    assert_int_equal(cca_ptrmap_insert(&map, 0x200, &map), 0);
    assert_null(cca_ptrmap_find(&map, 0));
    assert_null(cca_ptrmap_remove(&map, 0));
}

static void second_insert_keeps_the_first_record(void **state)
{
    int other;

    (void)state;
    assert_int_equal(cca_ptrmap_insert(&map, 0x200, &map), 0);
    assert_int_equal(cca_ptrmap_insert(&map, 0x200, &other), -EEXIST);
    assert_ptr_equal(cca_ptrmap_find(&map, 0x200), &map);
    assert_int_equal(cca_ptrmap_count(&map), 1);
}

/* Strides of small blocks, large segments, and addresses that share a 512 byte unit. */
static void random_operations_agree_with_a_plain_array(void **state)
{
    static const uint64_t strides[] = {512, 2 << 20, 1, (uint64_t)1 << 32};
    uint64_t rng = random_seed(2);

    (void)state;
    for (size_t s = 0; s < CCA_ARRAY_LEN(strides); s++) {
        static bool is_in[KEYS];
        size_t count = 0;

        for (int step = 0; step < STEPS / 4; step++) {
            size_t key = random_next(&rng) % KEYS;
            uint64_t addr = UINT64_C(0x7f0000000000) + key * strides[s];

            switch (random_next(&rng) % 3) {
            case 0:
                assert_int_equal(cca_ptrmap_insert(&map, addr, value_of(addr)),
                                 is_in[key] ? -EEXIST : 0);
                count += !is_in[key];
                is_in[key] = true;
                break;
            case 1:
                assert_ptr_equal(cca_ptrmap_remove(&map, addr), is_in[key] ? value_of(addr) : NULL);
                count -= is_in[key];
                is_in[key] = false;
                break;
            default:
                assert_ptr_equal(cca_ptrmap_find(&map, addr), is_in[key] ? value_of(addr) : NULL);
            }
        }
        assert_int_equal(cca_ptrmap_count(&map), count);
        for (size_t key = 0; key < KEYS; key++) {
            uint64_t addr = UINT64_C(0x7f0000000000) + key * strides[s];

            assert_ptr_equal(cca_ptrmap_remove(&map, addr), is_in[key] ? value_of(addr) : NULL);
            is_in[key] = false;
        }
        assert_int_equal(cca_ptrmap_count(&map), 0);
    }
}

static void map_keeps_everything_while_it_grows(void **state)
{
    size_t before = cca_sysmem_mapped_bytes();

    (void)state;
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_int_equal(cca_ptrmap_insert(&map, i * 512, value_of(i * 512)), 0);
    }
    assert_int_equal(cca_ptrmap_count(&map), MANY);
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_ptr_equal(cca_ptrmap_find(&map, i * 512), value_of(i * 512));
    }
    for (int i = 0; i < CCA_PTRMAP_SHARDS; i++) {
        assert_true(map.shards[i].used * 4 <= map.shards[i].capacity * 3);
        assert_true(map.shards[i].used > MANY / CCA_PTRMAP_SHARDS / 2);
    }
    cca_ptrmap_fini(&map);
    assert_int_equal(cca_sysmem_mapped_bytes(), before);
    assert_int_equal(cca_ptrmap_count(&map), 0);
}

static void refused_memory_leaves_the_map_valid(void **state)
{
    uint64_t i;

    (void)state;
    cca_sysmem_fail_nth(1);
    assert_int_equal(cca_ptrmap_insert(&map, 512, &map), -ENOMEM);
    assert_null(cca_ptrmap_find(&map, 512));
    assert_int_equal(cca_ptrmap_count(&map), 0);
    /* The first table of every shard, then the first doubling. */
    cca_sysmem_fail_nth(CCA_PTRMAP_SHARDS + 1);
    for (i = 1; cca_ptrmap_insert(&map, i * 512, value_of(i * 512)) == 0; i++) {
        assert_true(i < MANY);
    }
    assert_int_equal(cca_ptrmap_count(&map), i - 1);
    assert_null(cca_ptrmap_find(&map, i * 512));
    for (uint64_t k = 1; k < i; k++) {
        assert_ptr_equal(cca_ptrmap_find(&map, k * 512), value_of(k * 512));
    }
    assert_int_equal(cca_ptrmap_insert(&map, i * 512, value_of(i * 512)), 0);
}

struct worker {
    int index;
    int wrong;
    int removed;
};

static void start_and_join(void *(*body)(void *), struct worker *workers)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, body, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Every thread works on addresses of its own, in shards that all share. */
static void *churn(void *arg)
{
    struct worker *worker = arg;
    uint64_t rng = (uint64_t)worker->index;
    bool is_in[512] = {false};

    for (int step = 0; step < 20000; step++) {
        size_t key = random_next(&rng) % 512;
        uint64_t addr = 512 * (1 + key * THREADS + (uint64_t)worker->index);
        void *expected = is_in[key] ? value_of(addr) : NULL;

        if (random_next(&rng) % 2 == 0) {
            int rc = cca_ptrmap_insert(&map, addr, value_of(addr));

            worker->wrong += rc != (is_in[key] ? -EEXIST : 0);
            is_in[key] = true;
        } else {
            worker->wrong += cca_ptrmap_remove(&map, addr) != expected;
            is_in[key] = false;
        }
        worker->wrong += (cca_ptrmap_find(&map, addr) != NULL) != is_in[key];
    }
    for (size_t key = 0; key < 512; key++) {
        worker->removed += is_in[key];
    }
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    struct worker workers[THREADS];
    size_t left = 0;

    (void)state;
    start_and_join(churn, workers);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].wrong, 0);
        left += (size_t)workers[i].removed;
    }
    assert_int_equal(cca_ptrmap_count(&map), left);
}

static void *remove_all(void *arg)
{
    struct worker *worker = arg;

    for (uint64_t i = 1; i <= 20000; i++) {
        void *value = cca_ptrmap_remove(&map, i * 512);

        worker->removed += value != NULL;
        worker->wrong += value != NULL && value != value_of(i * 512);
    }
    return NULL;
}

static void exactly_one_of_several_removers_gets_the_record(void **state)
{
    struct worker workers[THREADS];
    int removed = 0;

    (void)state;
    for (uint64_t i = 1; i <= 20000; i++) {
        assert_int_equal(cca_ptrmap_insert(&map, i * 512, value_of(i * 512)), 0);
    }
    start_and_join(remove_all, workers);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].wrong, 0);
        removed += workers[i].removed;
    }
    assert_int_equal(removed, 20000);
    assert_int_equal(cca_ptrmap_count(&map), 0);
}

static int use_in_child(void)
{
    cca_ptrmap_unlock_all(&map);
    CHILD_EXPECT(cca_ptrmap_find(&map, 512) == &map);
    CHILD_EXPECT(cca_ptrmap_insert(&map, 1024, &map) == 0);
    return 0;
}

static void locked_map_goes_through_a_fork(void **state)
{
    static struct child_result result;

    (void)state;
    assert_int_equal(cca_ptrmap_insert(&map, 512, &map), 0);
    cca_ptrmap_lock_all(&map);
    for (int i = 0; i < CCA_PTRMAP_SHARDS; i++) {
        assert_true(cca_lock_is_mine(&map.shards[i].lock));
    }
    child_run(use_in_child, &result);
    cca_ptrmap_unlock_all(&map);
    assert_true(child_exited_with(&result, 0));
    assert_int_equal(cca_ptrmap_count(&map), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(inserted_address_is_found_until_removed, setup, teardown),
    cmocka_unit_test_setup_teardown(address_zero_is_never_there, setup, teardown),
    cmocka_unit_test_setup_teardown(second_insert_keeps_the_first_record, setup, teardown),
    cmocka_unit_test_setup_teardown(random_operations_agree_with_a_plain_array, setup, teardown),
    cmocka_unit_test_setup_teardown(map_keeps_everything_while_it_grows, setup, teardown),
    cmocka_unit_test_setup_teardown(refused_memory_leaves_the_map_valid, setup, teardown),
    cmocka_unit_test_setup_teardown(threads_do_not_disturb_each_other, setup, teardown),
    cmocka_unit_test_setup_teardown(exactly_one_of_several_removers_gets_the_record, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(locked_map_goes_through_a_fork, setup, teardown),
};

CCA_TEST_MAIN(tests)
