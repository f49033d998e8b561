/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALIBRATION_ROUNDS = 20000 };

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void measure_pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* A chain of dependent operations: its time tells only how much of the core we have. */
static uint64_t calibrate(void)
{
    uint64_t began = now_ns(), x = began | 1;
    for (int i = 0; i < CALIBRATION_ROUNDS; i++) {
        x = x * UINT64_C(6364136223846793005) + 1;
    }
    __asm__ volatile("" ::"r"(x)); /* the loop is not to be left out */
    return now_ns() - began;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct figure summarize(const struct measure *measure)
{
    double chosen[MEASURE_BATCHES];
    int count = 0;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < measure->count; i++) {
        best = measure->around[i] < best ? measure->around[i] : best;
    }
    for (int i = 0; i < measure->count; i++) {
        if (measure->around[i] <= best + best / 20) {
            chosen[count++] = measure->ns[i];
        }
    }
    double quiet = measure->count > 0 ? (double)count / measure->count : 0;
    if (count < MEASURE_QUIET_MIN) {
        for (count = 0; count < measure->count; count++) {
            chosen[count] = measure->ns[count];
        }
    }
    qsort(chosen, (size_t)count, sizeof(chosen[0]), by_value);
    return (struct figure){chosen[0], chosen[count / 2], chosen[count - 1], quiet};
}

struct figure measure_batches(batch_fn batch, void *ctx, long ops, int batches)
{
    static struct measure measure;
    measure.count = 0;
    batch(ctx, ops);
    uint64_t before = calibrate();
    for (int i = 0; i < batches && i < MEASURE_BATCHES; i++) {
        uint64_t began = now_ns();
        batch(ctx, ops);
        uint64_t took = now_ns() - began, after = calibrate();
        measure.ns[measure.count] = (double)took / (double)ops;
        measure.around[measure.count++] = before > after ? before : after;
        before = after;
    }
    return summarize(&measure);
}

static double load_average(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : -1;
}

void measure_print(const char *name, const char *detail, const struct figure *figure)
{
    printf("{\"bench\": \"%s\", \"what\": \"%s\", \"unit\": \"ns\", \"min\": %.1f, "
           "\"median\": %.1f, \"max\": %.1f, \"quiet\": %.2f, \"load\": %.2f}\n",
           name, detail, figure->min, figure->median, figure->max, figure->quiet_share,
           load_average());
    fflush(stdout);
}

void measure_print_value(const char *name, const char *detail, const char *unit, double value)
{
    printf("{\"bench\": \"%s\", \"what\": \"%s\", \"unit\": \"%s\", \"value\": %.6g, "
           "\"load\": %.2f}\n",
           name, detail, unit, value, load_average());
    fflush(stdout);
}

static void lock_pairs(void *ctx, long ops)
{
    pthread_mutex_t *mutex = ctx;
    for (long i = 0; i < ops; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
}

static void clock_reads(void *ctx, long ops)
{
    volatile uint64_t *sink = ctx;
    for (long i = 0; i < ops; i++) {
        *sink = now_ns();
    }
}

void measure_print_floors(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    volatile uint64_t sink = 0;
    struct figure locks = measure_batches(lock_pairs, &mutex, 20000, 100);
    struct figure clocks = measure_batches(clock_reads, (void *)&sink, 5000, 100);
    measure_print("floor", "mutex lock and unlock", &locks);
    measure_print("floor", "clock read", &clocks);
}
