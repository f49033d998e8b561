/* SPDX-License-Identifier: MIT */
#include "timeline.h"

#include "config.h"
#include "engine.h"

#include <stdio.h>
#include <unistd.h>

#define ENTRIES   4096u
#define GRAVES    1024u
#define MAX_LINES 24u

struct entry {
    enum sim_happening what;
    const char *name;
    unsigned long long stream_id;
    uint64_t time_ns;
    uint64_t start;
    uint64_t end;
};

struct grave {
    uint64_t start;
    uint64_t end;
    struct sim_party by;
};

/* Rings: entry n lies at n modulo the size. */
static struct entry entries[ENTRIES];
static uint64_t entry_count;
static struct grave graves[GRAVES];
static uint64_t grave_count;

void sim_timeline_add(enum sim_happening what, const char *name, unsigned long long stream_id,
                      uint64_t start, uint64_t end)
{
    if (sim_config.is_recording) {
        entries[entry_count++ % ENTRIES] = (struct entry){what,         name,  stream_id,
                                                          sim_now_ns(), start, end};
    }
}

void sim_timeline_bury(uint64_t start, uint64_t end, const struct sim_party *by)
{
    if (sim_config.is_recording) {
        graves[grave_count++ % GRAVES] = (struct grave){start, end, *by};
    }
}

void sim_timeline_bury_now(uint64_t start, uint64_t end)
{
    if (sim_config.is_recording) {
        struct sim_party party = sim_party_of_call(start, end);
        sim_timeline_bury(start, end, &party);
        sim_timeline_add(SIM_HAPPENS_END, party.name, 0, start, end);
    }
}

const struct sim_party *sim_timeline_end_of(uint64_t address)
{
    for (uint64_t i = 0; i < grave_count && i < GRAVES; i++) {
        const struct grave *grave = &graves[(grave_count - 1 - i) % GRAVES];
        if (address >= grave->start && address < grave->end) {
            return &grave->by;
        }
    }
    return NULL;
}

static bool concerns(const struct entry *entry, const struct sim_party *party)
{
    if (party == NULL) {
        return false;
    }
    if (entry->end != 0) {
        return entry->start < party->end && party->start < entry->end;
    }
    return entry->stream_id == 0 || entry->stream_id == party->stream_id;
}

static void print_entry(const struct entry *entry, uint64_t first_ns)
{
    static const char *const verbs[] = {
        [SIM_HAPPENS_READ] = "reads",    [SIM_HAPPENS_WRITE] = "writes",
        [SIM_HAPPENS_BIRTH] = "creates", [SIM_HAPPENS_END] = "ends",
        [SIM_HAPPENS_STEP] = "goes on",  [SIM_HAPPENS_WAIT] = "has waited"};
    char stream[32] = "host";
    char bytes[64] = "";

    if (entry->stream_id != 0) {
        snprintf(stream, sizeof(stream), "stream %llu", entry->stream_id);
    }
    if (entry->end != 0) {
        snprintf(bytes, sizeof(bytes), " 0x%llx..0x%llx", (unsigned long long)entry->start,
                 (unsigned long long)entry->end);
    }
    dprintf(STDERR_FILENO, "simcuda: violation:     +%.3f ms %s: %s %s%s\n",
            (double)(entry->time_ns - first_ns) / 1e6, stream, entry->name, verbs[entry->what],
            bytes);
}

void sim_timeline_print(const struct sim_party *party, const struct sim_party *other)
{
    const struct entry *found[MAX_LINES];
    unsigned count = 0;

    for (uint64_t i = 0; i < entry_count && i < ENTRIES && count < MAX_LINES; i++) {
        const struct entry *entry = &entries[(entry_count - 1 - i) % ENTRIES];
        if (concerns(entry, party) || concerns(entry, other)) {
            found[count++] = entry;
        }
    }
    if (count == 0) {
        return;
    }
    dprintf(STDERR_FILENO, "simcuda: violation:   time line\n");
    for (unsigned i = count; i > 0; i--) {
        print_entry(found[i - 1], found[count - 1]->time_ns);
    }
}
