/* SPDX-License-Identifier: MIT */
#include "snapshot/loaded_symbols.h"

#include <elf.h>
#include <string.h>

/* The dynamic section's tables, at their addresses. */
struct tables {
    const Elf64_Sym *symbols;
    const char *strings;
    uint64_t string_bytes;
    const uint32_t *hash, *gnu_hash;
};

static const void *at(const struct cca_module *module, uint64_t addr, uint64_t bytes)
{
    /* The loader of some C libraries leaves the section as it is in the file. */
    addr = addr < module->start ? addr + module->base : addr;
    return addr >= module->start && addr < module->end && bytes <= module->end - addr
               ? (const void *)(uintptr_t)addr
               : NULL;
}

static const Elf64_Dyn *dynamic_section(const struct cca_module *module, size_t *count_out)
{
    const Elf64_Ehdr *header = at(module, module->start, sizeof(*header));

    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr)) {
        return NULL;
    }
    const Elf64_Phdr *parts = at(module, module->start + header->e_phoff,
                                 header->e_phnum * sizeof(*parts));
    for (unsigned i = 0; parts != NULL && i < header->e_phnum; i++) {
        if (parts[i].p_type == PT_DYNAMIC) {
            *count_out = parts[i].p_memsz / sizeof(Elf64_Dyn);
            return at(module, module->base + parts[i].p_vaddr, parts[i].p_memsz);
        }
    }
    return NULL;
}

static bool find_tables(const struct cca_module *module, struct tables *tables)
{
    size_t count = 0;
    const Elf64_Dyn *entry = dynamic_section(module, &count);

    *tables = (struct tables){0};
    for (size_t i = 0; entry != NULL && i < count && entry[i].d_tag != DT_NULL; i++) {
        uint64_t value = entry[i].d_un.d_val;

        switch (entry[i].d_tag) {
        case DT_SYMTAB: tables->symbols = at(module, value, sizeof(Elf64_Sym)); break;
        case DT_STRTAB: tables->strings = at(module, value, 1); break;
        case DT_STRSZ: tables->string_bytes = value; break;
        case DT_HASH: tables->hash = at(module, value, 2 * sizeof(uint32_t)); break;
        case DT_GNU_HASH: tables->gnu_hash = at(module, value, 4 * sizeof(uint32_t)); break;
        default: break;
        }
    }
    return tables->symbols != NULL && tables->strings != NULL &&
           (tables->hash != NULL || tables->gnu_hash != NULL) &&
           at(module, (uint64_t)(uintptr_t)tables->strings, tables->string_bytes) != NULL;
}

/* The table of GNU hashes does not say how many symbols there are: the longest chain ends at the
 * last one. */
static uint64_t count_by_gnu_hash(const struct cca_module *module, const uint32_t *table)
{
    uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *buckets = at(module,
                                 (uint64_t)(uintptr_t)(table + 4) + bloom_words * sizeof(uint64_t),
                                 bucket_count * sizeof(uint32_t));
    uint32_t last = 0;

    for (uint32_t i = 0; buckets != NULL && i < bucket_count; i++) {
        last = buckets[i] > last ? buckets[i] : last;
    }
    if (last < first) {
        return first;
    }
    for (;; last++) {
        const uint32_t *chain = at(
            module, (uint64_t)(uintptr_t)(buckets + bucket_count + (last - first)), sizeof(*chain));
        if (chain == NULL || (*chain & 1) != 0) {
            return chain != NULL ? (uint64_t)last + 1 : 0;
        }
    }
}

static bool is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_size > 0 && symbol->st_name != 0;
}

static const char *copy_name(const struct tables *tables, uint32_t offset, struct cca_arena *arena)
{
    uint64_t room = offset < tables->string_bytes ? tables->string_bytes - offset : 0;
    size_t len = strnlen(tables->strings + offset, room);
    char *copy = len > 0 && len < room ? cca_arena_take(arena, len + 1) : NULL;

    return copy != NULL ? memcpy(copy, tables->strings + offset, len) : NULL;
}

void cca_loaded_symbols_find(const struct cca_module *module, struct cca_symbol_query *queries,
                             size_t count, struct cca_arena *arena)
{
    struct tables tables;

    if (!find_tables(module, &tables)) {
        return;
    }
    uint64_t total = tables.hash != NULL ? tables.hash[1]
                                         : count_by_gnu_hash(module, tables.gnu_hash);
    if (at(module, (uint64_t)(uintptr_t)tables.symbols, total * sizeof(Elf64_Sym)) == NULL) {
        return;
    }
    for (uint64_t i = 0; i < total; i++) {
        const Elf64_Sym *symbol = &tables.symbols[i];

        for (size_t q = 0; is_function(symbol) && q < count; q++) {
            if (queries[q].name == NULL && queries[q].vaddr >= symbol->st_value &&
                queries[q].vaddr - symbol->st_value < symbol->st_size) {
                queries[q].name = copy_name(&tables, symbol->st_name, arena);
            }
        }
    }
}
