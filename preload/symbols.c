/* SPDX-License-Identifier: MIT */
#include "preload/symbols.h"

#include <string.h>

enum { VERSION_MASK = 0x7fff, OLD_VERSION = 0x8000 };

/* Some loaders replace offsets by addresses in place, others do not. */
static const void *table_at(const struct dl_phdr_info *info, uintptr_t value)
{
    return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

bool cca_symbols_read(struct cca_symbols *symbols_out, const struct dl_phdr_info *info)
{
    struct cca_symbols symbols = {.base = info->dlpi_addr};
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
        case DT_STRSZ: symbols.texts_bytes = entry->d_un.d_val; break;
        case DT_VERSYM: symbols.versions = table; break;
        case DT_VERNEED: symbols.needed = table; break;
        case DT_VERDEF: symbols.has_versions = true; break;
        case DT_GNU_HASH: symbols.gnu_hash = table; break;
        case DT_HASH: symbols.sysv_hash = table; break;
        default: break;
        }
    }
    *symbols_out = symbols;
    return symbols.entries != NULL && symbols.texts != NULL;
}

uint32_t cca_symbols_hash(const char *name)
{
    uint32_t hash = 5381;
    for (const char *at = name; *at != '\0'; at++) {
        hash = hash * 33 + (unsigned char)*at;
    }
    return hash;
}

static int count_definition(const struct cca_symbols *symbols, uint32_t index, const char *name,
                            void **function_out)
{
    const ElfW(Sym) *symbol = &symbols->entries[index];
    if (symbol->st_shndx == SHN_UNDEF || strcmp(symbols->texts + symbol->st_name, name) != 0 ||
        (symbols->versions != NULL && (symbols->versions[index] & OLD_VERSION) != 0)) {
        return 0;
    }
    *function_out = (void *)(symbols->base + symbol->st_value);
    return (symbol->st_info & 0xf) == STT_FUNC ? 1 : 2;
}

/* The table by which the GNU linker finds definitions. */
struct gnu_table {
    uint32_t buckets, first, words, shift; /* first: index of the first symbol that is in it */
    const ElfW(Addr) * filter;
    const uint32_t *bucket, *chain;
};

static struct gnu_table gnu_table(const uint32_t *head)
{
    struct gnu_table table = {.buckets = head[0],
                              .first = head[1],
                              .words = head[2],
                              .shift = head[3],
                              .filter = (const ElfW(Addr) *)&head[4]};
    table.bucket = (const uint32_t *)&table.filter[table.words];
    table.chain = &table.bucket[table.buckets];
    return table;
}

static int search_gnu(const struct cca_symbols *symbols, const char *name, uint32_t hash,
                      void **function_out)
{
    enum { WORD_BITS = sizeof(ElfW(Addr)) * 8 };
    struct gnu_table table = gnu_table(symbols->gnu_hash);
    ElfW(Addr) word = table.words != 0 ? table.filter[hash / WORD_BITS % table.words] : 0;
    int count = 0;
    if (table.buckets == 0 ||
        (word >> hash % WORD_BITS & word >> (hash >> table.shift) % WORD_BITS & 1) == 0) {
        return 0;
    }
    uint32_t index = table.bucket[hash % table.buckets];
    for (bool is_last = index < table.first; !is_last; index++) {
        uint32_t value = table.chain[index - table.first];
        if ((value | 1) == (hash | 1)) {
            count += count_definition(symbols, index, name, function_out);
        }
        is_last = (value & 1) != 0;
    }
    return count;
}

int cca_symbols_define(const struct cca_symbols *symbols, const char *name, uint32_t hash,
                       void **function_out)
{
    int count = 0;
    if (symbols->gnu_hash != NULL) {
        return search_gnu(symbols, name, hash, function_out);
    }
    for (uint32_t i = 1; symbols->sysv_hash != NULL && i < symbols->sysv_hash[1]; i++) {
        count += count_definition(symbols, i, name, function_out);
    }
    return count;
}

static bool is_empty(const struct gnu_table *table)
{
    for (uint32_t i = 0; i < table->buckets; i++) {
        if (table->bucket[i] != 0) {
            return false;
        }
    }
    return true;
}

/* References to others come before what the GNU table holds. One that holds nothing does not tell
 * where the symbols end: then linkers put the texts, or other tables and the texts, behind them. */
static uint32_t imports_end(const struct cca_symbols *symbols)
{
    if (symbols->sysv_hash != NULL) {
        return symbols->sysv_hash[1];
    }
    if (symbols->gnu_hash != NULL) {
        struct gnu_table table = gnu_table(symbols->gnu_hash);
        if (!is_empty(&table)) {
            return table.first;
        }
    }
    uintptr_t start = (uintptr_t)symbols->entries, end = (uintptr_t)symbols->texts;
    return end > start ? (uint32_t)((end - start) / sizeof(*symbols->entries)) : 0;
}

bool cca_symbols_import(const struct cca_symbols *symbols, const char *name, uint32_t *index_out)
{
    uint32_t end = imports_end(symbols);
    for (uint32_t i = 1; i < end; i++) {
        const ElfW(Sym) *symbol = &symbols->entries[i];
        if (symbol->st_shndx == SHN_UNDEF && symbol->st_name != 0 &&
            symbol->st_name < symbols->texts_bytes &&
            strcmp(symbols->texts + symbol->st_name, name) == 0) {
            *index_out = i;
            return true;
        }
    }
    return false;
}

const char *cca_symbols_needed_version(const struct cca_symbols *symbols, uint32_t index)
{
    if (symbols->versions == NULL || symbols->needed == NULL) {
        return NULL;
    }
    unsigned wanted = symbols->versions[index] & VERSION_MASK;
    const ElfW(Verneed) *need = symbols->needed;
    for (;;) {
        const ElfW(Vernaux) *version = (const ElfW(Vernaux) *)((const char *)need + need->vn_aux);
        for (int i = 0; i < need->vn_cnt; i++) {
            if (version->vna_other == wanted) {
                return symbols->texts + version->vna_name;
            }
            version = (const ElfW(Vernaux) *)((const char *)version + version->vna_next);
        }
        if (need->vn_next == 0) {
            return NULL;
        }
        need = (const ElfW(Verneed) *)((const char *)need + need->vn_next);
    }
}
