/* SPDX-License-Identifier: MIT */
/* Two sources: _dl_find_object, which takes no lock, and dl_iterate_phdr, whose lock is held while
 * the list of objects changes and never while constructors run, unlike that of dladdr and dlsym.
 * fork leaves that lock as it is, so walks go through the gate. */
#include "preload/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/loader_gate.h"
#include "base/object_at.h"
#include "preload/lookup.h"
#include "preload/symbols.h"

void cca_loader_start(void)
{
    cca_object_at_use(cca_lookup_real(RTLD_DEFAULT, "_dl_find_object"));
    if (!cca_object_at_works()) {
        (void)dlerror(); /* not the program's to see */
    }
}

static int walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *user)
{
    bool is_in = cca_loader_gate_enter_late();
    int result = dl_iterate_phdr(visit, user);
    if (is_in) {
        cca_loader_gate_leave();
    }
    return result;
}

/* Which object to look for: the one around an address, or the n-th whose file name holds a text. */
struct search {
    uintptr_t addr;
    const char *part;
    int skip;
    struct cca_loader_object *object;
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void measure(const struct dl_phdr_info *info, uintptr_t *start_out, uintptr_t *end_out)
{
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD) {
            uintptr_t from = info->dlpi_addr + segment->p_vaddr;
            start = from < start ? from : start;
            end = from + segment->p_memsz > end ? from + segment->p_memsz : end;
        }
    }
    *start_out = start;
    *end_out = end;
}

/* False: its path is too long. */
static bool describe(const struct dl_phdr_info *info, struct cca_loader_object *object_out)
{
    const char *path = info->dlpi_name != NULL ? info->dlpi_name : "";
    size_t length = strlen(path);
    if (length >= CCA_LOADER_PATH_BYTES) {
        return false;
    }
    object_out->map = NULL;
    measure(info, &object_out->start, &object_out->end);
    object_out->unloads = info->dlpi_subs;
    memcpy(object_out->path, path, length + 1);
    return true;
}

static int match_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct search *search = user;
    uintptr_t start, end;
    measure(info, &start, &end);
    const char *path = info->dlpi_name != NULL ? info->dlpi_name : "";
    bool matches = search->part != NULL ? strstr(file_name(path), search->part) != NULL
                                        : search->addr >= start && search->addr < end;
    if (!matches || strlen(path) >= CCA_LOADER_PATH_BYTES || search->skip-- > 0) {
        return 0;
    }
    return describe(info, search->object);
}

bool cca_loader_object_named(const char *part, int position, struct cca_loader_object *object_out)
{
    struct search search = {.part = part, .skip = position, .object = object_out};
    return walk(match_object, &search) != 0;
}

struct order {
    uintptr_t start;
    bool is_in_front;
};

/* Objects are visited in the order in which they came. */
static int find_first(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct order *order = user;
    uintptr_t start, end, here = (uintptr_t)&find_first;
    measure(info, &start, &end);
    order->is_in_front = start == order->start;
    return order->is_in_front || (here >= start && here < end);
}

bool cca_loader_is_in_front(const struct cca_loader_object *object)
{
    struct order order = {.start = object->start};
    return walk(find_first, &order) != 0 && order.is_in_front;
}

static int read_unloads(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(uint64_t *)user = info->dlpi_subs;
    return 1;
}

bool cca_loader_glance_at(const void *addr, struct cca_loader_glance *glance_out)
{
    *glance_out = (struct cca_loader_glance){0};
    if (CCA_UNLIKELY(!cca_object_at_works())) {
        return walk(read_unloads, &glance_out->unloads) != 0;
    }
    struct cca_object_place found;
    if (!cca_object_at(addr, &found)) {
        return false;
    }
    glance_out->map = found.map;
    glance_out->start = found.start;
    glance_out->end = found.end;
    glance_out->path = found.map->l_name != NULL ? found.map->l_name : "";
    return true;
}

bool cca_loader_object_at(const void *addr, struct cca_loader_object *object_out)
{
    if (!cca_object_at_works()) {
        struct search search = {.addr = (uintptr_t)addr, .object = object_out};
        return walk(match_object, &search) != 0;
    }
    struct cca_loader_glance glance;
    size_t length;
    if (!cca_loader_glance_at(addr, &glance) ||
        (length = strlen(glance.path)) >= CCA_LOADER_PATH_BYTES) {
        return false;
    }
    object_out->map = glance.map;
    object_out->start = glance.start;
    object_out->end = glance.end;
    object_out->unloads = 0;
    memcpy(object_out->path, glance.path, length + 1);
    return true;
}

struct definition_search {
    const char *name;
    uint32_t hash;
    uintptr_t only; /* the start of the only object to look at; 0 = all but ours */
    int count;      /* of definitions */
    void *function;
    uintptr_t owner;
};

bool cca_loader_is_ours(const void *addr)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden")));
    extern const char _end[] __attribute__((visibility("hidden")));
    return (const char *)addr >= __ehdr_start && (const char *)addr < _end;
}

static int count_definitions(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct definition_search *search = user;
    struct cca_symbols symbols;
    uintptr_t start, end;
    measure(info, &start, &end);
    if (cca_loader_is_ours((void *)start) || (search->only != 0 && search->only != start) ||
        !cca_symbols_read(&symbols, info)) {
        return 0;
    }
    int count = cca_symbols_define(&symbols, search->name, search->hash, &search->function);
    search->owner = count != 0 ? start : search->owner;
    search->count += count;
    return search->count > 1;
}

static void begin_search(struct definition_search *search, const char *name)
{
    *search = (struct definition_search){.name = name, .hash = cca_symbols_hash(name)};
}

void *cca_loader_sole_definition(const char *name, uintptr_t *owner_out)
{
    struct definition_search search;
    begin_search(&search, name);
    (void)walk(count_definitions, &search);
    if (search.count != 1) {
        return NULL;
    }
    *owner_out = search.owner;
    return search.function;
}

bool cca_loader_defines(const struct cca_loader_object *object, const char *name)
{
    struct definition_search search;
    begin_search(&search, name);
    search.only = object->start;
    (void)walk(count_definitions, &search);
    return search.count > 0;
}

/* What one object, told by its start, has to say of itself. */
struct own_search {
    uintptr_t start;
    bool is_found;
    struct cca_symbols symbols;
};

static int read_own(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct own_search *search = user;
    uintptr_t start, end;
    measure(info, &start, &end);
    search->is_found = start == search->start && cca_symbols_read(&search->symbols, info);
    return start == search->start;
}

bool cca_loader_needed_version(const struct cca_loader_object *object, const char *name,
                               char *version_out, size_t bytes)
{
    struct own_search search = {.start = object->start};
    uint32_t index;
    (void)walk(read_own, &search);
    const char *version = search.is_found && cca_symbols_import(&search.symbols, name, &index)
                              ? cca_symbols_needed_version(&search.symbols, index)
                              : NULL;
    size_t length = version != NULL ? strlen(version) : bytes;
    if (length < bytes) {
        memcpy(version_out, version, length + 1);
    }
    return length < bytes;
}

bool cca_loader_has_versions(const struct cca_loader_object *object)
{
    struct own_search search = {.start = object->start};
    (void)walk(read_own, &search);
    return search.is_found && search.symbols.has_versions;
}

struct import_search {
    const char *const *names;
    struct cca_loader_object *object;
    const char *found;
};

static int find_imports(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct import_search *search = user;
    struct cca_symbols symbols;
    uintptr_t start, end;
    uint32_t index;
    measure(info, &start, &end);
    if (cca_loader_is_ours((void *)start) || !cca_symbols_read(&symbols, info)) {
        return 0;
    }
    for (int i = 0; search->names[i] != NULL; i++) {
        if (cca_symbols_import(&symbols, search->names[i], &index)) {
            search->found = search->names[i];
            return describe(info, search->object);
        }
    }
    return 0;
}

const char *cca_loader_importer(const char *const *names, struct cca_loader_object *object_out)
{
    struct import_search search = {.names = names, .object = object_out};
    return walk(find_imports, &search) != 0 ? search.found : NULL;
}
