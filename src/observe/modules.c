/* SPDX-License-Identifier: MIT */
#include "observe/modules.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct collection {
    struct cca_modules *modules;
    struct cca_arena *arena;
    size_t capacity;
    size_t seen; /* objects the loader told of */
    int error;
};

static const char *copy_text(struct cca_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = cca_arena_take(arena, bytes);

    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

/* A relative name is looked for below the current directory, which may no longer be the one it was
 * loaded from. */
static const char *absolute_path(const char *name, char *buf, size_t size)
{
    if (strchr(name, '/') == NULL || name[0] == '/' || getcwd(buf, size) == NULL) {
        return name;
    }
    size_t len = strlen(buf);
    size_t name_bytes = strlen(name) + 1;
    if (len + 1 + name_bytes > size) {
        return name;
    }
    buf[len] = '/';
    memcpy(&buf[len + 1], name, name_bytes);
    return access(buf, F_OK) == 0 ? buf : name;
}

const char *cca_module_path(const struct cca_module *module, const struct dl_phdr_info *info,
                            struct cca_arena *arena)
{
    char buf[PATH_MAX];

    if (module->start == getauxval(AT_SYSINFO_EHDR)) {
        return copy_text(arena, "[vdso]");
    }
    if (info->dlpi_name != NULL && info->dlpi_name[0] != '\0') {
        return copy_text(arena, absolute_path(info->dlpi_name, buf, sizeof(buf)));
    }
    if ((uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR)) {
        ssize_t len = readlink("/proc/self/exe", buf, sizeof(buf) - 1);
        if (len > 0) {
            buf[len] = '\0';
            return copy_text(arena, buf);
        }
    }
    return copy_text(arena, "");
}

static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * note)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_R) != 0 &&
            note->p_vaddr >= part->p_vaddr && note->p_memsz <= part->p_memsz &&
            note->p_vaddr - part->p_vaddr <= part->p_memsz - note->p_memsz) {
            return true;
        }
    }
    return false;
}

static size_t round_up(size_t bytes, size_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

static void read_build_id(struct cca_module *module, const char *notes, size_t size, size_t align)
{
    size_t at = 0;

    while (size - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, notes + at, sizeof(head));
        size_t name = at + sizeof(head);
        size_t text = round_up(name + head.n_namesz, align);
        size_t next = round_up(text + head.n_descsz, align);
        if (text > size || head.n_descsz > size - text) {
            return;
        }
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof("GNU") &&
            memcmp(notes + name, "GNU", sizeof("GNU")) == 0) {
            size_t len = head.n_descsz;
            if (len > sizeof(module->build_id)) {
                len = sizeof(module->build_id);
            }
            memcpy(module->build_id, notes + text, len);
            module->build_id_len = (unsigned)len;
            return;
        }
        if (next > size) {
            return;
        }
        at = next;
    }
}

bool cca_module_measure(struct cca_module *module, const struct dl_phdr_info *info)
{
    *module = (struct cca_module){.base = info->dlpi_addr, .start = UINT64_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD) {
            module->start = start < module->start ? start : module->start;
            module->end = start + part->p_memsz > module->end ? start + part->p_memsz : module->end;
        } else if (part->p_type == PT_NOTE && module->build_id_len == 0 && is_loaded(info, part)) {
            read_build_id(module, (const char *)(uintptr_t)start, part->p_memsz,
                          part->p_align == 8 ? 8 : 4);
        }
    }
    return module->start < module->end;
}

bool cca_module_is_same(const struct cca_module *a, const struct cca_module *b)
{
    return a->start == b->start && a->end == b->end && a->base == b->base &&
           a->build_id_len == b->build_id_len &&
           memcmp(a->build_id, b->build_id, a->build_id_len) == 0;
}

static int count_one(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info;
    (void)size;
    *(size_t *)user += 1;
    return 0;
}

static int collect_one(struct dl_phdr_info *info, size_t size, void *user)
{
    struct collection *collection = user;
    struct cca_modules *modules = collection->modules;
    struct cca_module *module = &modules->list[modules->count];

    (void)size;
    collection->seen++;
    if (modules->count == collection->capacity || !cca_module_measure(module, info)) {
        return 0;
    }
    module->path = cca_module_path(module, info, collection->arena);
    if (module->path == NULL) {
        collection->error = -ENOMEM;
        return 1;
    }
    modules->count++;
    return 0;
}

/* Shell sort: a hundred objects, nearly in descending order. */
static void sort_modules(struct cca_modules *modules)
{
    for (size_t gap = modules->count / 2; gap > 0; gap /= 2) {
        for (size_t i = gap; i < modules->count; i++) {
            struct cca_module moved = modules->list[i];
            size_t at = i;
            for (; at >= gap && modules->list[at - gap].start > moved.start; at -= gap) {
                modules->list[at] = modules->list[at - gap];
            }
            modules->list[at] = moved;
        }
    }
}

int cca_modules_list(struct cca_modules *modules, struct cca_arena *arena)
{
    struct cca_modules found = {0};
    struct collection collection = {.modules = &found, .arena = arena};

    (void)dl_iterate_phdr(count_one, &collection.capacity);
    for (;;) {
        found.count = 0;
        collection.seen = 0;
        found.list = cca_arena_take(arena, collection.capacity * sizeof(found.list[0]));
        if (found.list == NULL) {
            return -ENOMEM;
        }
        (void)dl_iterate_phdr(collect_one, &collection);
        if (collection.error != 0) {
            return collection.error;
        }
        if (collection.seen <= collection.capacity) {
            break;
        }
        collection.capacity = collection.seen; /* some were loaded meanwhile */
    }
    sort_modules(&found);
    *modules = found;
    return 0;
}

const struct cca_module *cca_modules_find(const struct cca_modules *modules, uint64_t addr)
{
    size_t low = 0;
    size_t high = modules->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (modules->list[middle].start <= addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && addr < modules->list[low - 1].end ? &modules->list[low - 1] : NULL;
}
