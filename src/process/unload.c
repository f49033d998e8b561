/* SPDX-License-Identifier: MIT */
/* Libraries that come and go: what must be known of one is taken down while it goes. */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "base/reentry.h"
#include "observe/unwind.h"
#include "process/state.h"
#include "snapshot/elf_symbols.h"
#include "snapshot/loaded_symbols.h"
#include "snapshot/sort.h"

enum { ENDED_MAX = 64, NOT_WATCHED = -2 };

/* Address space for the naming of one module. */
#define SCRATCH_BYTES ((size_t)64 << 20)

/* The calls from one module, by return address. */
struct calls {
    uint64_t *addresses;
    size_t count, room; /* what does not fit is only counted */
};

static void take_call(void *user, uintptr_t pc)
{
    struct calls *calls = user;

    if (calls->count < calls->room) {
        calls->addresses[calls->count] = pc;
    }
    calls->count++;
}

static int compare_addresses(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* Sorted, each once, without those that have names. */
static size_t keep_unnamed(const struct cca_module_life *life, uint64_t *addresses, size_t count)
{
    size_t kept = 0;

    cca_sort(addresses, count, sizeof(*addresses), compare_addresses);
    for (size_t i = 0; i < count; i++) {
        bool is_again = i > 0 && addresses[i] == addresses[i - 1];

        if (!is_again && cca_module_life_name(life, addresses[i]) == NULL) {
            addresses[kept++] = addresses[i];
        }
    }
    return kept;
}

/* New stacks may come in between the two passes; what no longer fits is left without a name. */
static size_t collect_calls(const struct cca_process *process, const struct cca_module_life *life,
                            struct cca_arena *arena, uint64_t **addresses_out)
{
    struct calls calls = {0};
    uintptr_t start = life->module.start, end = life->module.end;

    cca_stack_table_each(&process->stacks, start, end, take_call, &calls);
    size_t room = calls.count + calls.count / 8 + 1024;
    uint64_t *addresses = cca_arena_take(arena, room * sizeof(*addresses));
    if (addresses == NULL || calls.count == 0) {
        return 0;
    }
    calls = (struct calls){.addresses = addresses, .room = room};
    cca_stack_table_each(&process->stacks, start, end, take_call, &calls);
    *addresses_out = addresses;
    return keep_unnamed(life, addresses, calls.count < room ? calls.count : room);
}

/* `from_memory`: the module is loaded, and its file is not there any more. */
static void name_calls(struct cca_process *process, int index, const struct cca_module_life *life,
                       struct cca_arena *arena, bool from_memory)
{
    uint32_t until = cca_stack_table_next(&process->stacks);
    uint64_t *addresses = NULL;
    size_t count = collect_calls(process, life, arena, &addresses), named = 0;
    struct cca_symbol_query *queries = cca_arena_take(arena, count * sizeof(*queries));
    struct cca_module_name *names = cca_arena_take(arena, count * sizeof(*names));

    if (queries == NULL || names == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        queries[i].vaddr = addresses[i] - 1 - life->module.base;
    }
    if (from_memory) {
        cca_loaded_symbols_find(&life->module, queries, count, arena);
    } else if (count > 0) {
        cca_elf_symbols_find(&life->module, queries, count, arena);
    }
    for (size_t i = 0; i < count; i++) {
        if (queries[i].name != NULL) {
            names[named++] = (struct cca_module_name){addresses[i], queries[i].name};
        }
    }
    cca_module_log_add_names(&process->modules, index, until, names, named);
}

static void name_life(struct cca_process *process, int index, bool from_memory)
{
    struct cca_module_life life;
    struct cca_arena arena;

    if (!cca_module_log_get(&process->modules, index, &life) ||
        life.named_until == cca_stack_table_next(&process->stacks) ||
        cca_arena_init(&arena, SCRATCH_BYTES) != 0) {
        return;
    }
    if (!from_memory || !cca_elf_symbols_have_file(&life.module)) {
        name_calls(process, index, &life, &arena, from_memory);
    }
    cca_arena_fini(&arena);
}

/* The real dlclose is ours to call for the handles that dlopen gives here. */
static void pin_all(struct cca_process *process, int (*real)(void *))
{
    struct cca_module_life life;

    while (cca_module_log_next_unpinned(&process->modules, &life)) {
        void *handle = life.module.path[0] == '/'
                           ? dlopen(life.module.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)
                           : NULL;

        if (handle != NULL) {
            (void)real(handle);
        }
    }
}

/* The process id tells a vfork child, which runs in its parent's memory. */
static bool is_watched(const struct cca_process *process)
{
    return cca_process_is_active() && !cca_reentry_inside() &&
           atomic_load_explicit(&process->has_stacks, memory_order_acquire) &&
           getpid() == process->identity.pid;
}

int cca_process_unload_begin(void *handle, int (*real)(void *))
{
    struct cca_process *process = cca_process_state();
    int saved_errno = errno;
    int life;

    if (!is_watched(process)) {
        return NOT_WATCHED;
    }
    life = cca_module_log_close_begin(&process->modules, handle);
    if (process->config.pin_modules) {
        pin_all(process, real);
    } else if (life >= 0) {
        cca_unwind_foresee_unload();
        name_life(process, life, true);
    }
    errno = saved_errno;
    return life;
}

void cca_process_unload_end(int token)
{
    struct cca_process *process = cca_process_state();
    int saved_errno = errno;

    if (token == NOT_WATCHED || !is_watched(process)) {
        return;
    }
    cca_process_look_for_unloads(process);
    cca_module_log_close_end(&process->modules, token);
    errno = saved_errno;
}

void cca_process_look_for_unloads(struct cca_process *process)
{
    int ended[ENDED_MAX];
    size_t count = cca_module_log_look(&process->modules, &process->stacks, ended, ENDED_MAX);

    for (size_t i = 0; i < count; i++) {
        name_life(process, ended[i], false);
    }
    cca_unwind_repair();
}
