/* SPDX-License-Identifier: MIT */
#include "observe/module_log.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/loader_gate.h"
#include "base/object_at.h"

/* Address space for paths and names. */
#define ARENA_BYTES ((size_t)64 << 20)

enum { FOUND_MAX = 16 /* modules that one walk of the loader's list can bring */ };

static const uint32_t never = UINT32_MAX;

int cca_module_log_init(struct cca_module_log *log)
{
    *log = (struct cca_module_log){0};
    cca_lock_init(&log->lock, CCA_RANK_MODULE_LOG);
    if (cca_arena_init(&log->arena, ARENA_BYTES) != 0) {
        return -ENOMEM;
    }
    log->lives = cca_sysmem_reserve(CCA_MODULE_LIVES_MAX * sizeof(*log->lives));
    log->loaded = cca_sysmem_reserve(CCA_MODULE_LIVES_MAX * sizeof(*log->loaded));
    if (log->lives == NULL || log->loaded == NULL) {
        cca_module_log_fini(log);
        return -ENOMEM;
    }
    return 0;
}

void cca_module_log_fini(struct cca_module_log *log)
{
    cca_sysmem_unmap(log->lives, CCA_MODULE_LIVES_MAX * sizeof(*log->lives));
    cca_sysmem_unmap(log->loaded, CCA_MODULE_LIVES_MAX * sizeof(*log->loaded));
    cca_arena_fini(&log->arena);
    *log = (struct cca_module_log){0};
}

static void count_refused(struct cca_module_log *log)
{
    atomic_fetch_add_explicit(&log->refused, 1, memory_order_relaxed);
}

static bool holds(const struct cca_module *module, uint64_t addr)
{
    return addr >= module->start && addr < module->end;
}

/* How many loaded lives start at or below an address. */
static size_t rank_of(const struct cca_module_log *log, uint64_t addr)
{
    size_t low = 0, high = log->loaded_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (log->lives[log->loaded[middle]].module.start <= addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct cca_module_life *loaded_at(struct cca_module_log *log, uint64_t addr)
{
    size_t rank = rank_of(log, addr);
    struct cca_module_life *life = rank > 0 ? &log->lives[log->loaded[rank - 1]] : NULL;

    return life != NULL && holds(&life->module, addr) ? life : NULL;
}

static void put_loaded(struct cca_module_log *log, struct cca_module_life *life)
{
    size_t rank = rank_of(log, life->module.start);

    memmove(&log->loaded[rank + 1], &log->loaded[rank],
            (log->loaded_count - rank) * sizeof(*log->loaded));
    log->loaded[rank] = (uint16_t)(life - log->lives);
    log->loaded_count++;
    life->module.is_unloaded = false;
    life->end_stack = never;
}

static void take_loaded(struct cca_module_log *log, const struct cca_module_life *life)
{
    size_t rank = rank_of(log, life->module.start) - 1;

    log->loaded_count--;
    memmove(&log->loaded[rank], &log->loaded[rank + 1],
            (log->loaded_count - rank) * sizeof(*log->loaded));
}

/* What a check of every capture compares with. A wider range than needed only costs time. */
static void measure_stale(struct cca_module_log *log)
{
    uintptr_t low = UINTPTR_MAX, high = 0;

    for (size_t i = 0; i < log->count; i++) {
        const struct cca_module_life *life = &log->lives[i];

        if (life->closing > 0 || (life->module.is_unloaded && !life->is_covered)) {
            low = life->module.start < low ? life->module.start : low;
            high = life->module.end > high ? life->module.end : high;
        }
    }
    atomic_store_explicit(&log->low, low, memory_order_relaxed);
    atomic_store_explicit(&log->high, high, memory_order_release);
}

static void end_life(struct cca_module_log *log, struct cca_module_life *life, uint32_t next_stack)
{
    take_loaded(log, life);
    life->module.is_unloaded = true;
    life->end_stack = next_stack;
    measure_stale(log);
}

static bool overlap(const struct cca_module *a, const struct cca_module *b)
{
    return a->start < b->end && b->start < a->end;
}

/* A life of the same file at the same place after which nothing else is known to have been there.
 */
static struct cca_module_life *find_earlier(struct cca_module_log *log,
                                            const struct cca_module *module)
{
    for (size_t i = log->count; i-- > 0;) {
        struct cca_module_life *life = &log->lives[i];

        if (overlap(&life->module, module)) {
            return life->module.is_unloaded && !life->is_covered &&
                           cca_module_is_same(&life->module, module)
                       ? life
                       : NULL;
        }
    }
    return NULL;
}

static void cover(struct cca_stack_table *table, struct cca_module_life *life)
{
    cca_stack_table_retire(table, life->module.start, life->module.end);
    life->is_covered = true;
}

/* What ended here and was not seen to be covered is so now; whether there was any. */
static bool cover_all(struct cca_module_log *log, struct cca_stack_table *table,
                      const struct cca_module *by)
{
    bool is_any = false;

    for (size_t i = 0; i < log->count; i++) {
        struct cca_module_life *life = &log->lives[i];

        if (life->module.is_unloaded && !life->is_covered && overlap(&life->module, by)) {
            cover(table, life);
            is_any = true;
        }
    }
    measure_stale(log);
    return is_any;
}

/* An object that the loader told of. */
struct found {
    struct cca_module module;
    struct dl_phdr_info info; /* its texts stay as long as the object stays */
};

struct search {
    const uintptr_t *calls; /* return addresses to find the objects of */
    int count;
    struct found found[FOUND_MAX];
    int found_count;
};

static int find_objects(struct dl_phdr_info *info, size_t size, void *user)
{
    struct search *search = user;
    struct found *found = &search->found[search->found_count];
    struct cca_module module;

    (void)size;
    if (!cca_module_measure(&module, info)) {
        return 0;
    }
    for (int i = 0; i < search->count; i++) {
        if (holds(&module, search->calls[i] - 1)) {
            *found = (struct found){module, *info};
            return ++search->found_count == FOUND_MAX;
        }
    }
    return 0;
}

/* No lock of ours is held. While a fork hangs the walk is left out, and finds nothing: then what is
 * there counts as something else, which is the safe side. */
static void walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *user)
{
    if (cca_loader_gate_enter_late()) {
        (void)dl_iterate_phdr(visit, user);
        cca_loader_gate_leave();
    }
}

/* The lock is held. True: something that is gone had been there. */
static bool begin_life(struct cca_module_log *log, struct cca_stack_table *table,
                       const struct found *found)
{
    struct cca_module_life *life = loaded_at(log, found->module.start);
    struct cca_object_place place = {0};
    bool has_place = cca_object_at((const void *)(uintptr_t)found->module.start, &place);
    bool is_over_another = false;

    if (life != NULL) {
        return false; /* another thread was faster */
    }
    life = find_earlier(log, &found->module);
    if (life == NULL) {
        is_over_another = cover_all(log, table, &found->module);
        const char *path = log->count < CCA_MODULE_LIVES_MAX
                               ? cca_module_path(&found->module, &found->info, &log->arena)
                               : NULL;
        if (path == NULL) {
            count_refused(log);
            return is_over_another;
        }
        life = &log->lives[log->count++];
        *life = (struct cca_module_life){.module = found->module,
                                         .first_stack = cca_stack_table_next(table)};
        life->module.path = path;
    }
    life->map = has_place ? place.map : NULL;
    life->seen = log->walks;
    put_loaded(log, life);
    measure_stale(log);
    return is_over_another;
}

/* The calls among `pcs` that lie in no loaded life, to `unknown`; returns how many. */
static int find_unknown(struct cca_module_log *log, const uintptr_t *pcs, int depth,
                        uintptr_t *unknown)
{
    int count = 0;

    cca_lock_take(&log->lock);
    for (int i = 0; i < depth; i++) {
        if (loaded_at(log, pcs[i] - 1) == NULL) {
            unknown[count++] = pcs[i];
        }
    }
    cca_lock_drop(&log->lock);
    return count;
}

bool cca_module_log_note(struct cca_module_log *log, struct cca_stack_table *table,
                         const uintptr_t *pcs, int depth)
{
    enum { DEPTH_MAX = 128 };
    uintptr_t unknown[DEPTH_MAX];
    struct search search = {.calls = unknown};
    bool is_stale = false;

    depth = depth < DEPTH_MAX ? depth : DEPTH_MAX;
    (void)cca_module_log_look(log, table, NULL, 0);
    search.count = find_unknown(log, pcs, depth, unknown);
    for (int left = search.count; left > 0;) {
        search.found_count = 0;
        walk(find_objects, &search);
        cca_lock_take(&log->lock);
        for (int i = 0; i < search.found_count; i++) {
            is_stale |= begin_life(log, table, &search.found[i]);
        }
        cca_lock_drop(&log->lock);
        search.count = find_unknown(log, pcs, depth, unknown);
        left = search.found_count == FOUND_MAX && search.count < left ? search.count : 0;
    }
    return is_stale;
}

/* The lock is held. */
static struct cca_module_life *stale_at(struct cca_module_log *log, uint64_t addr)
{
    for (size_t i = 0; i < log->count; i++) {
        struct cca_module_life *life = &log->lives[i];

        if ((life->closing > 0 || (life->module.is_unloaded && !life->is_covered)) &&
            holds(&life->module, addr)) {
            return life;
        }
    }
    return NULL;
}

/* What was found at the place of a life. The lock is held; true: something else. */
static bool judge(struct cca_module_log *log, struct cca_stack_table *table,
                  struct cca_module_life *life, const struct search *search)
{
    if (search->found_count == 1 && cca_module_is_same(&life->module, &search->found[0].module)) {
        if (life->module.is_unloaded && !life->is_covered) {
            (void)begin_life(log, table, &search->found[0]);
        }
        return false;
    }
    if (!life->module.is_unloaded) {
        end_life(log, life, cca_stack_table_next(table));
    }
    if (!life->is_covered) {
        cover(table, life);
    }
    measure_stale(log);
    return true;
}

bool cca_module_log_settle(struct cca_module_log *log, struct cca_stack_table *table,
                           const uintptr_t *pcs, int depth)
{
    bool is_stale = false;

    for (int i = 0; i < depth; i++) {
        cca_lock_take(&log->lock);
        struct cca_module_life *life = stale_at(log, pcs[i] - 1);
        cca_lock_drop(&log->lock);
        if (life == NULL) {
            continue;
        }
        struct search search = {.calls = &pcs[i], .count = 1};
        walk(find_objects, &search);
        cca_lock_take(&log->lock);
        if (stale_at(log, pcs[i] - 1) == life) {
            is_stale |= judge(log, table, life, &search);
        }
        cca_lock_drop(&log->lock);
    }
    return is_stale;
}

int cca_module_log_close_begin(struct cca_module_log *log, const void *handle)
{
    int found = -1;

    cca_lock_take(&log->lock);
    for (size_t i = 0; handle != NULL && i < log->loaded_count && found < 0; i++) {
        found = log->lives[log->loaded[i]].map == handle ? log->loaded[i] : -1;
    }
    if (found >= 0) {
        log->lives[found].closing++;
        measure_stale(log);
    }
    cca_lock_drop(&log->lock);
    return found;
}

void cca_module_log_close_end(struct cca_module_log *log, int life)
{
    if (life >= 0) {
        cca_lock_take(&log->lock);
        log->lives[life].closing--;
        measure_stale(log);
        cca_lock_drop(&log->lock);
    }
}

/* One look at all that is loaded. */
struct look {
    struct cca_module_log *log;
    uint64_t number;
    size_t lives; /* that there were before */
    bool is_first, is_complete;
};

static int see_object(struct dl_phdr_info *info, size_t size, void *user)
{
    struct look *look = user;
    struct cca_module_log *log = look->log;
    struct cca_module module;

    (void)size;
    if (look->is_first) {
        look->is_first = false;
        if (atomic_exchange(&log->unloads, info->dlpi_subs) == info->dlpi_subs) {
            return 1;
        }
        look->is_complete = true;
    }
    if (cca_module_measure(&module, info)) {
        cca_lock_take(&log->lock);
        struct cca_module_life *life = loaded_at(log, module.start);
        if (life != NULL && cca_module_is_same(&life->module, &module) &&
            life->seen < look->number) {
            life->seen = look->number;
        }
        cca_lock_drop(&log->lock);
    }
    return 0;
}

size_t cca_module_log_look(struct cca_module_log *log, struct cca_stack_table *table,
                           int *ended_out, size_t max)
{
    struct look look = {.log = log, .is_first = true};
    size_t ended = 0;

    cca_lock_take(&log->lock);
    look.number = ++log->walks;
    look.lives = log->count;
    cca_lock_drop(&log->lock);
    walk(see_object, &look);
    if (!look.is_complete) {
        return 0;
    }
    cca_lock_take(&log->lock);
    for (size_t i = 0; i < look.lives; i++) {
        struct cca_module_life *life = &log->lives[i];

        /* One that began meanwhile bears this number or a later one. */
        if (!life->module.is_unloaded && life->seen < look.number) {
            end_life(log, life, cca_stack_table_next(table));
            if (ended < max) {
                ended_out[ended++] = (int)i;
            }
        }
    }
    cca_lock_drop(&log->lock);
    return ended;
}

bool cca_module_log_get(struct cca_module_log *log, int life, struct cca_module_life *copy_out)
{
    bool is_there;

    cca_lock_take(&log->lock);
    is_there = life >= 0 && (size_t)life < log->count;
    if (is_there) {
        *copy_out = log->lives[life];
    }
    cca_lock_drop(&log->lock);
    return is_there;
}

/* Insertion: few are out of order. */
static void sort_lives(struct cca_module_life *lives, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct cca_module_life moved = lives[i];
        size_t at = i;

        for (; at > 0 && lives[at - 1].module.start > moved.module.start; at--) {
            lives[at] = lives[at - 1];
        }
        lives[at] = moved;
    }
}

int cca_module_log_copy(struct cca_module_log *log, struct cca_arena *arena,
                        struct cca_module_life **lives_out, size_t *count_out)
{
    struct cca_module_life *lives;
    size_t count;

    cca_lock_take(&log->lock);
    count = log->count;
    lives = cca_arena_take(arena, count * sizeof(*lives));
    if (lives != NULL) {
        memcpy(lives, log->lives, count * sizeof(*lives));
    }
    cca_lock_drop(&log->lock);
    if (lives == NULL) {
        return -ENOMEM;
    }
    sort_lives(lives, count);
    *lives_out = lives;
    *count_out = count;
    return 0;
}

static const char *copy_text(struct cca_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = cca_arena_take(arena, bytes);

    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

/* Into a new array, so that copies of the life keep the old one. */
static void merge_names(struct cca_module_log *log, struct cca_module_life *life,
                        const struct cca_module_name *names, size_t count)
{
    struct cca_module_name *merged = cca_arena_take(&log->arena,
                                                    (life->name_count + count) * sizeof(*merged));
    size_t old = 0, total = 0;

    for (size_t i = 0; merged != NULL && i < count; i++) {
        while (old < life->name_count && life->names[old].address < names[i].address) {
            merged[total++] = life->names[old++];
        }
        const char *text = copy_text(&log->arena, names[i].name);
        if (text == NULL) {
            merged = NULL;
        } else if (old == life->name_count || life->names[old].address != names[i].address) {
            merged[total++] = (struct cca_module_name){names[i].address, text};
        }
    }
    if (merged == NULL) {
        count_refused(log);
        return;
    }
    while (old < life->name_count) {
        merged[total++] = life->names[old++];
    }
    life->names = merged;
    life->name_count = total;
}

void cca_module_log_add_names(struct cca_module_log *log, int life, uint32_t until,
                              const struct cca_module_name *names, size_t count)
{
    cca_lock_take(&log->lock);
    log->lives[life].named_until = until;
    if (count != 0) {
        merge_names(log, &log->lives[life], names, count);
    }
    cca_lock_drop(&log->lock);
}

const char *cca_module_life_name(const struct cca_module_life *life, uint64_t address)
{
    size_t low = 0, high = life->name_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (life->names[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < life->name_count && life->names[low].address == address ? life->names[low].name
                                                                         : NULL;
}

bool cca_module_log_next_unpinned(struct cca_module_log *log, struct cca_module_life *copy_out)
{
    bool is_found = false;

    cca_lock_take(&log->lock);
    for (size_t i = 0; i < log->loaded_count && !is_found; i++) {
        struct cca_module_life *life = &log->lives[log->loaded[i]];

        is_found = !life->is_pinned;
        life->is_pinned = true;
        *copy_out = *life;
    }
    cca_lock_drop(&log->lock);
    return is_found;
}
