/* SPDX-License-Identifier: MIT */
#include "space.h"

#include "config.h"
#include "defect.h"
#include "ranges.h"
#include "units.h"

#include <sys/mman.h>

/* used + free chunks: used_bytes counts whole chunks, the room in small ones included. The space is
 * twice the memory, so that fragments never stand in for a full device. */
struct space {
    uint64_t base;
    char *payload;
    size_t span_bytes;
    size_t total_bytes;
    size_t used_bytes;
    size_t kept_bytes;
    struct sim_ranges chunks;
    struct sim_units units;
};

static struct space spaces[SIM_MAX_DEVICES];
static uint64_t reserved_base;
static size_t reserved_span;
static struct sim_ranges reserved;

static char *map(size_t size, int protection)
{
    void *address = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                         0);

    if (address == MAP_FAILED) {
        return NULL;
    }
    madvise(address, size, MADV_DONTDUMP);
    return address;
}

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* Some sixteen times a device's memory: programs reserve more than they fill. */
static bool init_reserved(void)
{
    uint64_t start;
    uint64_t size;
    size_t most = (size_t)256 << 30;

    reserved_span = sim_config.memory_bytes < most / 16 ? 16 * sim_config.memory_bytes : most;
    char *addresses = map(reserved_span + SIM_CHUNK_BYTES, PROT_NONE);
    if (addresses == NULL) {
        return false;
    }
    reserved_base = round_up((uint64_t)addresses, SIM_CHUNK_BYTES);
    sim_ranges_give(&reserved, reserved_base, reserved_span, 0, &start, &size);
    return true;
}

bool sim_space_init(void)
{
    for (int i = 0; i < sim_config.device_count; i++) {
        struct space *space = &spaces[i];
        uint64_t start;
        uint64_t size;
        space->total_bytes = sim_config.memory_bytes;
        space->span_bytes = 2 * sim_config.memory_bytes;
        char *addresses = map(space->span_bytes + SIM_CHUNK_BYTES, PROT_NONE);
        char *payload = map(space->span_bytes + SIM_CHUNK_BYTES, PROT_READ | PROT_WRITE);
        if (addresses == NULL || payload == NULL) {
            return false;
        }
        space->base = round_up((uint64_t)addresses, SIM_CHUNK_BYTES);
        space->payload = (char *)round_up((uint64_t)payload, SIM_CHUNK_BYTES);
        sim_ranges_give(&space->chunks, space->base, space->span_bytes, 0, &start, &size);
        sim_units_init(&space->units, (unsigned)(space->span_bytes / SIM_CHUNK_BYTES));
    }
    return init_reserved();
}

static bool take_chunks(struct space *space, size_t size, uint64_t *address_out)
{
    if ((size > space->total_bytes - space->used_bytes && !SIM_DEFECT(devices_are_never_full)) ||
        !sim_ranges_take(&space->chunks, size, address_out)) {
        return false;
    }
    space->used_bytes += size;
    space->kept_bytes -= space->kept_bytes < size ? space->kept_bytes : size;
    return true;
}

/* Pages stay with the device until there are too many: giving them to the system and getting them
 * back cleared is what makes large buffers slow. */
static void give_chunks(struct space *space, uint64_t address, size_t size)
{
    uint64_t start;
    uint64_t joined;

    space->used_bytes -= size;
    if (space->kept_bytes + size > sim_config.keep_bytes) {
        madvise(sim_space_payload(address), size, MADV_DONTNEED);
    } else {
        space->kept_bytes += size;
    }
    sim_ranges_give(&space->chunks, address, size, 0, &start, &joined);
}

static uint64_t unit_address(const struct space *space, unsigned unit)
{
    return space->base + unit * SIM_UNIT_BYTES;
}

static bool take_units(struct space *space, unsigned count, uint64_t *address_out)
{
    unsigned unit;

    if (!sim_units_take(&space->units, count, &unit)) {
        return false;
    }
    *address_out = unit_address(space, unit);
    return true;
}

bool sim_space_take(int device, size_t size_bytes, uint64_t *address_out, size_t *rounded_out)
{
    struct space *space = &spaces[device];
    uint64_t chunk;

    if (size_bytes > space->total_bytes) {
        return false;
    }
    if (size_bytes > SIM_CHUNK_BYTES / 2) {
        *rounded_out = round_up(size_bytes, SIM_CHUNK_BYTES);
        return take_chunks(space, *rounded_out, address_out);
    }
    *rounded_out = round_up(size_bytes, SIM_UNIT_BYTES);
    unsigned count = (unsigned)(*rounded_out / SIM_UNIT_BYTES);
    if (take_units(space, count, address_out)) {
        return true;
    }
    if (!take_chunks(space, SIM_CHUNK_BYTES, &chunk)) {
        return false;
    }
    sim_units_add(&space->units, (unsigned)((chunk - space->base) / SIM_CHUNK_BYTES));
    return take_units(space, count, address_out);
}

void sim_space_give(int device, uint64_t address, size_t rounded_bytes)
{
    struct space *space = &spaces[device];
    uint64_t offset = address - space->base;

    if (rounded_bytes % SIM_CHUNK_BYTES == 0) {
        give_chunks(space, address, rounded_bytes);
    } else if (sim_units_give(&space->units, (unsigned)(offset / SIM_UNIT_BYTES),
                              (unsigned)(rounded_bytes / SIM_UNIT_BYTES))) {
        give_chunks(space, address - offset % SIM_CHUNK_BYTES, SIM_CHUNK_BYTES);
    }
}

bool sim_space_reserve(size_t size_bytes, size_t alignment, uint64_t *address_out)
{
    uint64_t start;
    uint64_t joined;
    size_t size = size_bytes + (alignment > SIM_CHUNK_BYTES ? alignment : 0);

    if (size < size_bytes || size > reserved_span || !sim_ranges_take(&reserved, size, &start)) {
        return false;
    }
    *address_out = round_up(start, alignment);
    uint64_t end = *address_out + size_bytes;
    if (*address_out > start) {
        sim_ranges_give(&reserved, start, *address_out - start, 0, &joined, &(uint64_t){0});
    }
    if (start + size > end) {
        sim_ranges_give(&reserved, end, start + size - end, 0, &joined, &(uint64_t){0});
    }
    return true;
}

void sim_space_unreserve(uint64_t address, size_t size_bytes)
{
    uint64_t start;
    uint64_t joined;

    sim_ranges_give(&reserved, address, size_bytes, 0, &start, &joined);
}

bool sim_space_commit(int device, size_t size_bytes)
{
    struct space *space = &spaces[device];

    if (size_bytes > space->total_bytes - space->used_bytes) {
        return false;
    }
    space->used_bytes += size_bytes;
    return true;
}

void sim_space_uncommit(int device, size_t size_bytes)
{
    spaces[device].used_bytes -= size_bytes;
}

size_t sim_space_free_bytes(int device)
{
    return spaces[device].total_bytes - spaces[device].used_bytes;
}

size_t sim_space_total_bytes(int device)
{
    return spaces[device].total_bytes;
}

int sim_space_device_of(uint64_t address)
{
    for (int i = 0; i < sim_config.device_count; i++) {
        if (address - spaces[i].base < spaces[i].span_bytes) {
            return i;
        }
    }
    return address - reserved_base < reserved_span ? 0 : -1;
}

bool sim_space_locate(uint64_t address, size_t *unit_out)
{
    for (int i = 0; i < sim_config.device_count; i++) {
        uint64_t offset = address - spaces[i].base;
        if (offset < spaces[i].span_bytes) {
            *unit_out = ((size_t)i * spaces[i].span_bytes + offset) / SIM_UNIT_BYTES;
            return true;
        }
    }
    return false;
}

size_t sim_space_units(void)
{
    return (size_t)sim_config.device_count * spaces[0].span_bytes / SIM_UNIT_BYTES;
}

char *sim_space_payload(uint64_t address)
{
    const struct space *space = &spaces[sim_space_device_of(address)];

    return space->payload + (address - space->base);
}
