/* SPDX-License-Identifier: MIT */
#include "snapshot/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 4096, SYMBOLS_PER_READ = 512, SECTIONS_MAX = 65536, PAGE = 4096 };

struct source {
    int fd;          /* -1: memory */
    const char *mem; /* of the vdso */
    uint64_t mem_bytes;
    Elf64_Ehdr header;
};

static bool read_at(const struct source *source, uint64_t offset, void *buf, size_t len)
{
    size_t done = 0;

    if (source->fd < 0) {
        if (offset > source->mem_bytes || len > source->mem_bytes - offset) {
            return false;
        }
        memcpy(buf, source->mem + offset, len);
        return true;
    }
    while (done < len) {
        ssize_t n = pread(source->fd, (char *)buf + done, len - done, (off_t)(offset + done));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool open_source(struct source *source, const struct cca_module *module)
{
    struct stat status;

    *source = (struct source){.fd = -1};
    if (module->path != NULL && module->path[0] == '/') {
        /* Not to wait for a pipe that has the name now. */
        source->fd = open(module->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (source->fd < 0) {
            return false;
        }
        if (fstat(source->fd, &status) != 0 || !S_ISREG(status.st_mode)) {
            return false;
        }
    } else if (module->path != NULL && strcmp(module->path, "[vdso]") == 0) {
        source->mem = (const char *)(uintptr_t)module->start;
        source->mem_bytes = (module->end - module->start + PAGE - 1) / PAGE * PAGE;
    } else {
        return false;
    }
    return read_at(source, 0, &source->header, sizeof(source->header)) &&
           memcmp(source->header.e_ident, ELFMAG, SELFMAG) == 0 &&
           source->header.e_ident[EI_CLASS] == ELFCLASS64 &&
           source->header.e_shentsize == sizeof(Elf64_Shdr) &&
           source->header.e_phentsize == sizeof(Elf64_Phdr);
}

static void close_source(struct source *source)
{
    if (source->fd >= 0) {
        close(source->fd);
    }
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

/* Whether the notes hold a build id that differs from the module's. */
static bool notes_contradict(const struct source *source, const Elf64_Phdr *notes,
                             const struct cca_module *module)
{
    uint64_t alignment = notes->p_align == 8 ? 8 : 4;
    uint64_t at = 0;
    Elf64_Nhdr note;
    char name[4];
    unsigned char id[sizeof(module->build_id)];

    while (at < notes->p_filesz && read_at(source, notes->p_offset + at, &note, sizeof(note))) {
        uint64_t name_at = notes->p_offset + at + sizeof(note);
        uint64_t data_at = align_up(sizeof(note) + note.n_namesz, alignment);

        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(name) &&
            read_at(source, name_at, name, sizeof(name)) && memcmp(name, "GNU", 4) == 0) {
            size_t len = note.n_descsz < sizeof(id) ? note.n_descsz : sizeof(id);

            return len != module->build_id_len ||
                   !read_at(source, notes->p_offset + at + data_at, id, len) ||
                   memcmp(id, module->build_id, len) != 0;
        }
        at += align_up(data_at + note.n_descsz, alignment);
    }
    return false;
}

/* The file at the path may have been replaced since it was loaded. */
static bool is_other_file(const struct source *source, const struct cca_module *module)
{
    Elf64_Phdr segment;

    if (source->fd < 0 || module->build_id_len == 0) {
        return false;
    }
    for (unsigned i = 0; i < source->header.e_phnum; i++) {
        if (!read_at(source, source->header.e_phoff + i * sizeof(segment), &segment,
                     sizeof(segment))) {
            return true;
        }
        if (segment.p_type == PT_NOTE && notes_contradict(source, &segment, module)) {
            return true;
        }
    }
    return false;
}

/* Section 0 holds the number of sections when it does not fit the header. */
static uint64_t section_count(const struct source *source)
{
    Elf64_Shdr first;

    if (source->header.e_shoff == 0) {
        return 0;
    }
    if (source->header.e_shnum != 0) {
        return source->header.e_shnum;
    }
    if (!read_at(source, source->header.e_shoff, &first, sizeof(first))) {
        return 0;
    }
    return first.sh_size < SECTIONS_MAX ? first.sh_size : SECTIONS_MAX;
}

static bool read_section(const struct source *source, uint64_t index, Elf64_Shdr *section_out)
{
    return read_at(source, source->header.e_shoff + index * sizeof(*section_out), section_out,
                   sizeof(*section_out));
}

static bool find_section(const struct source *source, uint32_t type, Elf64_Shdr *section_out)
{
    uint64_t count = section_count(source);

    for (uint64_t i = 0; i < count; i++) {
        if (!read_section(source, i, section_out)) {
            return false;
        }
        if (section_out->sh_type == type) {
            return true;
        }
    }
    return false;
}

/* Reads a name, cut to `cap` - 1 bytes and before any "@VERSION"; its length. */
static size_t read_name(const struct source *source, const Elf64_Shdr *strings, uint32_t offset,
                        char *buf, size_t cap)
{
    size_t len = 0;

    while (len + 1 < cap && offset + len < strings->sh_size) {
        size_t part = cap - 1 - len < 64 ? cap - 1 - len : 64;
        const char *end;

        if (part > strings->sh_size - offset - len) {
            part = strings->sh_size - offset - len;
        }
        if (!read_at(source, strings->sh_offset + offset + len, buf + len, part)) {
            break;
        }
        end = memchr(buf + len, '\0', part);
        if (end != NULL) {
            len = (size_t)(end - buf);
            break;
        }
        len += part;
    }
    buf[len] = '\0';
    buf[strcspn(buf, "@")] = '\0';
    return strlen(buf);
}

/* Among names of one address the one that a program would use: exported, without underscores. */
static uint32_t rank_symbol(const struct source *source, const Elf64_Shdr *strings,
                            const Elf64_Sym *symbol)
{
    unsigned binding = ELF64_ST_BIND(symbol->st_info);
    char start[4] = "";
    size_t underscores;

    (void)read_name(source, strings, symbol->st_name, start, sizeof(start));
    underscores = strspn(start, "_");
    return 1 + (uint32_t)(3 - underscores) * 2 + (binding != STB_LOCAL);
}

static size_t first_query_from(const struct cca_symbol_query *queries, size_t count, uint64_t vaddr)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (queries[middle].vaddr < vaddr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_size > 0 && symbol->st_name != 0;
}

static void offer_symbol(const struct source *source, const Elf64_Shdr *strings,
                         const Elf64_Sym *symbol, struct cca_symbol_query *queries, size_t count)
{
    uint32_t rank = 0;

    for (size_t i = first_query_from(queries, count, symbol->st_value);
         i < count && queries[i].vaddr - symbol->st_value < symbol->st_size; i++) {
        struct cca_symbol_query *query = &queries[i];

        if (query->name != NULL || (query->rank != 0 && symbol->st_value < query->start)) {
            continue;
        }
        rank = rank != 0 ? rank : rank_symbol(source, strings, symbol);
        if (query->rank == 0 || symbol->st_value > query->start || rank > query->rank) {
            query->start = symbol->st_value;
            query->name_offset = symbol->st_name;
            query->rank = rank;
        }
    }
}

static void take_names(const struct source *source, const Elf64_Shdr *strings,
                       struct cca_symbol_query *queries, size_t count, struct cca_arena *arena)
{
    const struct cca_symbol_query *last = NULL;
    char buf[NAME_MAX_BYTES];

    for (size_t i = 0; i < count; i++) {
        struct cca_symbol_query *query = &queries[i];

        if (query->name != NULL || query->rank == 0) {
            continue;
        }
        if (last != NULL && last->name_offset == query->name_offset) {
            query->name = last->name;
            continue;
        }
        if (read_name(source, strings, query->name_offset, buf, sizeof(buf)) > 0) {
            char *copy = cca_arena_take(arena, strlen(buf) + 1);

            if (copy != NULL) {
                query->name = memcpy(copy, buf, strlen(buf) + 1);
                last = query;
            }
        }
        query->rank = query->name != NULL ? query->rank : 0;
    }
}

static void search_table(const struct source *source, uint32_t type,
                         struct cca_symbol_query *queries, size_t count, struct cca_arena *arena)
{
    Elf64_Sym symbols[SYMBOLS_PER_READ];
    Elf64_Shdr table, strings;
    uint64_t total;

    if (!find_section(source, type, &table) || table.sh_entsize != sizeof(Elf64_Sym) ||
        !read_section(source, table.sh_link, &strings) || strings.sh_type != SHT_STRTAB) {
        return;
    }
    total = table.sh_size / sizeof(Elf64_Sym);
    for (uint64_t at = 0; at < total; at += SYMBOLS_PER_READ) {
        size_t part = total - at < SYMBOLS_PER_READ ? (size_t)(total - at) : SYMBOLS_PER_READ;

        if (!read_at(source, table.sh_offset + at * sizeof(Elf64_Sym), symbols,
                     part * sizeof(Elf64_Sym))) {
            break;
        }
        for (size_t i = 0; i < part; i++) {
            if (is_function(&symbols[i])) {
                offer_symbol(source, &strings, &symbols[i], queries, count);
            }
        }
    }
    take_names(source, &strings, queries, count, arena);
}

static bool all_named(const struct cca_symbol_query *queries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (queries[i].name == NULL) {
            return false;
        }
    }
    return true;
}

bool cca_elf_symbols_have_file(const struct cca_module *module)
{
    int saved_errno = errno;
    struct source source;
    bool is_there = open_source(&source, module) && !is_other_file(&source, module);

    close_source(&source);
    errno = saved_errno;
    return is_there;
}

void cca_elf_symbols_find(const struct cca_module *module, struct cca_symbol_query *queries,
                          size_t count, struct cca_arena *arena)
{
    int saved_errno = errno;
    struct source source;

    if (open_source(&source, module) && !is_other_file(&source, module)) {
        search_table(&source, SHT_SYMTAB, queries, count, arena);
        if (!all_named(queries, count)) {
            search_table(&source, SHT_DYNSYM, queries, count, arena);
        }
    }
    close_source(&source);
    errno = saved_errno;
}
