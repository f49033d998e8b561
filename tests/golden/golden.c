/* SPDX-License-Identifier: MIT */
#include "golden.h"

#include <inttypes.h>
#include <stdlib.h>

#include "alloc/private_pool.h"

bool op_parse(struct op *op, char *line)
{
    char *rest = NULL;
    *op = (struct op){.name = strtok_r(line, " \n", &rest)};
    for (int i = 0; i < OP_WORDS_MAX && op->name != NULL; i++) {
        op->words[i] = strtok_r(NULL, " \n", &rest);
    }
    return op->name != NULL;
}

uint64_t op_number(const struct op *op, int word, uint64_t otherwise)
{
    return op->words[word] == NULL ? otherwise : strtoull(op->words[word], NULL, 10);
}

uint64_t name_get(const struct name_map *map, const char *name)
{
    for (unsigned i = 0; i < map->count; i++) {
        if (strcmp(map->entries[i].name, name) == 0) {
            return map->entries[i].addr;
        }
    }
    return 0;
}

void name_set(struct name_map *map, const char *name, uint64_t addr)
{
    unsigned i = 0;
    while (i < map->count && strcmp(map->entries[i].name, name) != 0) {
        i++;
    }
    if (i == NAMES_MAX) {
        fprintf(stderr, "core_driver: too many names\n");
        exit(2);
    }
    snprintf(map->entries[i].name, NAME_BYTES, "%s", name);
    map->entries[i].addr = addr;
    map->count = i == map->count ? i + 1 : map->count;
}

static void print_stat(const struct cca_stat *stat)
{
    printf("[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]", stat->current, stat->peak,
           stat->allocated, stat->freed);
}

static void print_array(const char *name, const struct cca_stat stats[CCA_STAT_POOLS])
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < CCA_STAT_POOLS; i++) {
        printf("%s", i == 0 ? "" : ", ");
        print_stat(&stats[i]);
    }
    printf("]");
}

static void print_single(const char *name, const struct cca_stat *stat)
{
    printf(", \"%s\": ", name);
    print_stat(stat);
}

void print_stats_members(const struct cca_stats *stats)
{
#define ARRAY(name, unit, what)  print_array(#name, stats->name);
#define SINGLE(name, unit, what) print_single(#name, &stats->name);
#define COUNTER(name, what)      printf(", \"%s\": %" PRId64, #name, stats->name);
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
    printf(", \"max_split_size\": %" PRId64, stats->max_split_size);
}

static const char *state_name(const struct cca_block *block)
{
    return block->state == CCA_BLOCK_LIVE      ? "active_allocated"
           : block->state == CCA_BLOCK_PENDING ? "active_pending_free"
                                               : "inactive";
}

static void print_segment(const struct cca_segment *segment)
{
    size_t allocated = 0, active = 0, requested = 0;
    for (const struct cca_block *block = segment->first; block != NULL; block = block->next) {
        bool is_active = block->state != CCA_BLOCK_FREE;
        allocated += block->state == CCA_BLOCK_LIVE ? block->bytes : 0;
        active += is_active ? block->bytes : 0;
        requested += is_active ? block->requested_bytes : 0;
    }
    printf("{\"address\": %" PRIu64 ", \"total_size\": %zu, \"allocated_size\": %zu, "
           "\"active_size\": %zu, \"requested_size\": %zu, \"stream\": %" PRIu64
           ", \"segment_type\": \"%s\", \"pool\": [%" PRIu64 ", %" PRIu64 "], \"blocks\": [",
           segment->addr, segment->bytes, allocated, active, requested, segment->key,
           segment->is_small ? "small" : "large",
           segment->pool == NULL ? 0 : segment->pool->id.capture,
           segment->pool == NULL ? 0 : segment->pool->id.handle);
    for (const struct cca_block *block = segment->first; block != NULL; block = block->next) {
        printf("%s[%" PRIu64 ", %zu, %zu, \"%s\"]", block == segment->first ? "" : ", ",
               block->addr, block->bytes, block->requested_bytes, state_name(block));
    }
    printf("]}");
}

void print_snapshot(struct cca_heap *heap, unsigned at)
{
    /* In the order in which they were obtained, which is that of the addresses here. */
    const char *separator = "";
    printf("P {\"at\": %u, \"segments\": [", at);
    CCA_LIST_EACH (link, &heap->segments) {
        printf("%s", separator);
        print_segment(CCA_LIST_ENTRY(link, struct cca_segment, link));
        separator = ", ";
    }
    printf("]}\n");
}

void print_trace(const struct cca_trace_ring *ring)
{
    size_t count = cca_trace_ring_count(ring);
    struct cca_trace_entry *entries = calloc(count + 1, sizeof(*entries));
    count = cca_trace_ring_copy(ring, entries, count);
    for (size_t i = 0; i < count; i++) {
        printf("T [\"%s\", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "]\n",
               cca_event_kind_name((enum cca_event_kind)entries[i].kind), entries[i].addr,
               entries[i].requested_bytes, entries[i].stream);
    }
    free(entries);
}
