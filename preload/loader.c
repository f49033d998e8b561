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

static int match_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct search *search = user;
    uintptr_t start, end;
    measure(info, &start, &end);
    const char *path = info->dlpi_name != NULL ? info->dlpi_name : "";
    size_t length = strlen(path);
    bool matches = search->part != NULL ? strstr(file_name(path), search->part) != NULL
                                        : search->addr >= start && search->addr < end;
    if (!matches || length >= CCA_LOADER_PATH_BYTES || search->skip-- > 0) {
        return 0;
    }
    search->object->map = NULL;
    search->object->start = start;
    search->object->end = end;
    search->object->unloads = info->dlpi_subs;
    memcpy(search->object->path, path, length + 1);
    return 1;
}

bool cca_loader_object_named(const char *part, int position, struct cca_loader_object *object_out)
{
    struct search search = {.part = part, .skip = position, .object = object_out};
    return walk(match_object, &search) != 0;
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

/* An object's own table of symbols. */
struct symbols {
    const ElfW(Sym) * entries;
    const char *texts;
    const ElfW(Half) * versions; /* NULL = none */
    const uint32_t *gnu_hash;    /* one of the two, or none */
    const uint32_t *sysv_hash;
};

struct definition_search {
    const char *name;
    uint32_t hash;
    uintptr_t only; /* the start of the only object to look at; 0 = all but ours */
    int count;      /* of definitions */
    void *function;
    uintptr_t owner;
};

/* Some loaders replace offsets by addresses in place, others do not. */
static const void *table_at(const struct dl_phdr_info *info, uintptr_t value)
{
    return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

static struct symbols read_symbols(const struct dl_phdr_info *info)
{
    struct symbols symbols = {0};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        const void *table = table_at(info, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols.entries = table; break;
        case DT_STRTAB: symbols.texts = table; break;
        case DT_VERSYM: symbols.versions = table; break;
        case DT_GNU_HASH: symbols.gnu_hash = table; break;
        case DT_HASH: symbols.sysv_hash = table; break;
        default: break;
        }
    }
    return symbols;
}

static void consider(const struct dl_phdr_info *info, const struct symbols *symbols, uint32_t index,
                     struct definition_search *search)
{
    enum { OLD_VERSION = 0x8000 };
    const ElfW(Sym) *symbol = &symbols->entries[index];
    if (symbol->st_shndx == SHN_UNDEF ||
        strcmp(symbols->texts + symbol->st_name, search->name) != 0 ||
        (symbols->versions != NULL && (symbols->versions[index] & OLD_VERSION) != 0)) {
        return;
    }
    /* Anything but a plain function counts and is no answer. */
    search->count += (symbol->st_info & 0xf) == STT_FUNC ? 1 : 2;
    search->function = (void *)(info->dlpi_addr + symbol->st_value);
}

static void search_gnu(const struct dl_phdr_info *info, const struct symbols *symbols,
                       struct definition_search *search)
{
    enum { WORD_BITS = sizeof(ElfW(Addr)) * 8 };
    const uint32_t *head = symbols->gnu_hash;
    uint32_t buckets = head[0], first = head[1], words = head[2], shift = head[3];
    const ElfW(Addr) *filter = (const ElfW(Addr) *)&head[4];
    const uint32_t *bucket = (const uint32_t *)&filter[words], *chain = &bucket[buckets];
    uint32_t hash = search->hash;
    ElfW(Addr) word = words != 0 ? filter[hash / WORD_BITS % words] : 0;
    if (buckets == 0 || (word >> hash % WORD_BITS & word >> (hash >> shift) % WORD_BITS & 1) == 0) {
        return;
    }
    uint32_t index = bucket[hash % buckets];
    for (bool is_last = index < first; !is_last; index++) {
        uint32_t value = chain[index - first];
        if ((value | 1) == (hash | 1)) {
            consider(info, symbols, index, search);
        }
        is_last = (value & 1) != 0;
    }
}

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
    struct symbols symbols = read_symbols(info);
    uintptr_t start, end;
    int before = search->count;
    measure(info, &start, &end);
    if (symbols.entries == NULL || symbols.texts == NULL || cca_loader_is_ours((void *)start) ||
        (search->only != 0 && search->only != start)) {
        return 0;
    }
    if (symbols.gnu_hash != NULL) {
        search_gnu(info, &symbols, search);
    } else if (symbols.sysv_hash != NULL) {
        for (uint32_t i = 1; i < symbols.sysv_hash[1]; i++) {
            consider(info, &symbols, i, search);
        }
    }
    search->owner = search->count != before ? start : search->owner;
    return search->count > 1;
}

static void begin_search(struct definition_search *search, const char *name)
{
    *search = (struct definition_search){.name = name, .hash = 5381};
    for (const char *at = name; *at != '\0'; at++) {
        search->hash = search->hash * 33 + (unsigned char)*at;
    }
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
