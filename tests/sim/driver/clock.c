/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stdlib.h>
#include <string.h>

struct sim_promise {
    unsigned references;
    bool is_kept;
    struct sim_clock clock;
};

/* Order that came of words, and of words to come. */
struct sim_word_order {
    struct sim_numbers numbers;
    struct sim_promise **promises;
    unsigned promise_count;
};

struct sim_clock sim_host_clock;

static void grow(struct sim_numbers *numbers, unsigned size)
{
    if (size > numbers->size) {
        numbers->values = realloc(numbers->values, size * sizeof(*numbers->values));
        memset(numbers->values + numbers->size, 0,
               (size - numbers->size) * sizeof(*numbers->values));
        numbers->size = size;
    }
}

static void raise(struct sim_numbers *numbers, const struct sim_numbers *other)
{
    grow(numbers, other->size);
    for (unsigned i = 0; i < other->size; i++) {
        if (numbers->values[i] < other->values[i]) {
            numbers->values[i] = other->values[i];
        }
    }
}

static bool has(const struct sim_numbers *numbers, unsigned slot, uint64_t number)
{
    return slot < numbers->size && numbers->values[slot] >= number;
}

static struct sim_word_order *words_of(struct sim_clock *clock)
{
    if (clock->words == NULL) {
        clock->words = calloc(1, sizeof(*clock->words));
    }
    return clock->words;
}

void sim_clock_set(struct sim_clock *clock, unsigned slot, uint64_t number)
{
    grow(&clock->seen, slot + 1);
    if (clock->seen.values[slot] < number) {
        clock->seen.values[slot] = number;
    }
}

static int index_of(const struct sim_word_order *words, const struct sim_promise *promise)
{
    for (unsigned i = 0; words != NULL && i < words->promise_count; i++) {
        if (words->promises[i] == promise) {
            return (int)i;
        }
    }
    return -1;
}

static void remove_promise(struct sim_word_order *words, unsigned index)
{
    struct sim_promise *promise = words->promises[index];

    words->promises[index] = words->promises[--words->promise_count];
    sim_promise_drop(promise);
}

void sim_clock_promise(struct sim_clock *clock, struct sim_promise *promise)
{
    struct sim_word_order *words = words_of(clock);

    if (index_of(words, promise) >= 0) {
        return;
    }
    words->promises = realloc(words->promises,
                              (words->promise_count + 1) * sizeof(struct sim_promise *));
    words->promises[words->promise_count++] = promise;
    promise->references++;
}

/* Takes over what the other has of words; kept promises as what they turned out to be. */
static void join_words(struct sim_clock *clock, const struct sim_word_order *other)
{
    raise(&words_of(clock)->numbers, &other->numbers);
    for (unsigned i = 0; i < other->promise_count; i++) {
        if (other->promises[i]->is_kept) {
            sim_clock_join_by_word(clock, &other->promises[i]->clock);
        } else {
            sim_clock_promise(clock, other->promises[i]);
        }
    }
}

void sim_clock_join_by_word(struct sim_clock *clock, const struct sim_clock *other)
{
    raise(&words_of(clock)->numbers, &other->seen);
    if (other->words != NULL) {
        join_words(clock, other->words);
    }
}

/* Promises that have been kept since become what they turned out to be. */
static void settle(struct sim_clock *clock)
{
    for (unsigned i = 0; i < clock->words->promise_count;) {
        struct sim_promise *promise = clock->words->promises[i];
        if (!promise->is_kept) {
            i++;
            continue;
        }
        promise->references++;
        remove_promise(clock->words, i);
        sim_clock_join_by_word(clock, &promise->clock);
        sim_promise_drop(promise);
        i = 0;
    }
}

void sim_clock_join(struct sim_clock *clock, const struct sim_clock *other)
{
    raise(&clock->seen, &other->seen);
    if (other->words != NULL && other != clock) {
        join_words(clock, other->words);
    }
    if (clock->words != NULL) {
        settle(clock);
    }
}

/* All order as if CUDA saw it; promises that are not kept stay as they are. */
static void flatten(struct sim_clock *clock)
{
    if (clock->words != NULL) {
        settle(clock);
        raise(&clock->seen, &clock->words->numbers);
    }
}

void sim_clock_meet(struct sim_clock *clock, const struct sim_clock *other)
{
    struct sim_clock flat = {0};

    sim_clock_join(&flat, other);
    flatten(&flat);
    flatten(clock);
    for (unsigned i = 0; i < clock->seen.size; i++) {
        if (!has(&flat.seen, i, clock->seen.values[i])) {
            clock->seen.values[i] = i < flat.seen.size ? flat.seen.values[i] : 0;
        }
    }
    if (clock->words != NULL) {
        clock->words->numbers.size = 0;
        for (unsigned i = clock->words->promise_count; i-- > 0;) {
            if (index_of(flat.words, clock->words->promises[i]) < 0) {
                remove_promise(clock->words, i);
            }
        }
    }
    sim_clock_fini(&flat);
}

bool sim_clock_has_seen(const struct sim_clock *clock, unsigned slot, uint64_t number)
{
    return has(&clock->seen, slot, number);
}

bool sim_clock_has(const struct sim_clock *clock, unsigned slot, uint64_t number)
{
    const struct sim_word_order *words = clock->words;

    if (has(&clock->seen, slot, number)) {
        return true;
    }
    if (words == NULL) {
        return false;
    }
    for (unsigned i = 0; i < words->promise_count; i++) {
        if (words->promises[i]->is_kept &&
            sim_clock_has(&words->promises[i]->clock, slot, number)) {
            return true;
        }
    }
    return has(&words->numbers, slot, number);
}

bool sim_clock_is_open(const struct sim_clock *clock)
{
    for (unsigned i = 0; clock->words != NULL && i < clock->words->promise_count; i++) {
        const struct sim_promise *promise = clock->words->promises[i];
        if (!promise->is_kept || sim_clock_is_open(&promise->clock)) {
            return true;
        }
    }
    return false;
}

void sim_clock_fini(struct sim_clock *clock)
{
    free(clock->seen.values);
    if (clock->words != NULL) {
        while (clock->words->promise_count != 0) {
            remove_promise(clock->words, 0);
        }
        free(clock->words->promises);
        free(clock->words->numbers.values);
        free(clock->words);
    }
    *clock = (struct sim_clock){0};
}

struct sim_promise *sim_promise_create(void)
{
    struct sim_promise *promise = calloc(1, sizeof(*promise));

    promise->references = 1;
    return promise;
}

void sim_promise_drop(struct sim_promise *promise)
{
    if (--promise->references == 0) {
        sim_clock_fini(&promise->clock);
        free(promise);
    }
}

/* Does the clock wait for the promise, at any remove? */
static bool waits_for(const struct sim_clock *clock, const struct sim_promise *promise)
{
    for (unsigned i = 0; clock->words != NULL && i < clock->words->promise_count; i++) {
        const struct sim_promise *other = clock->words->promises[i];
        if (other == promise || (other->is_kept && waits_for(&other->clock, promise))) {
            return true;
        }
    }
    return false;
}

void sim_promise_keep(struct sim_promise *promise, const struct sim_clock *clock)
{
    if (!promise->is_kept && !waits_for(clock, promise)) {
        sim_clock_join(&promise->clock, clock);
        promise->is_kept = true;
    }
}

bool sim_promise_is_kept(const struct sim_promise *promise)
{
    return promise->is_kept;
}
