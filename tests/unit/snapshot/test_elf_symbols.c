/* SPDX-License-Identifier: MIT */
/* Symbol tables made by hand, in files and in memory. */
#include "snapshot/elf_symbols.h"

#include "fixture.h"

#include "support/test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SYMBOLS_MAX = 16, STRINGS_MAX = 8192 };

/* What the file is made of, in this order. */
struct image {
    Elf64_Ehdr header;
    Elf64_Phdr note_segment;
    struct {
        Elf64_Nhdr header;
        char name[4];
        unsigned char id[20];
    } note;
    Elf64_Shdr sections[4]; /* none, symbols, names, dynamic symbols */
    Elf64_Sym symbols[2][SYMBOLS_MAX];
    char strings[STRINGS_MAX];
};

static struct image image;
static uint32_t strings_used;
static unsigned symbols_used[2];
static struct cca_arena arena;
static char path[256];

static int setup(void **state)
{
    (void)state;
    image = (struct image){.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                                                  ELFDATA2LSB, EV_CURRENT},
                                      .e_type = ET_DYN,
                                      .e_phoff = offsetof(struct image, note_segment),
                                      .e_phnum = 1,
                                      .e_phentsize = sizeof(Elf64_Phdr),
                                      .e_shoff = offsetof(struct image, sections),
                                      .e_shnum = 4,
                                      .e_shentsize = sizeof(Elf64_Shdr)}};
    image.note_segment = (Elf64_Phdr){.p_type = PT_NOTE,
                                      .p_offset = offsetof(struct image, note),
                                      .p_filesz = sizeof(image.note),
                                      .p_align = 4};
    image.note.header = (Elf64_Nhdr){4, sizeof(image.note.id), NT_GNU_BUILD_ID};
    memcpy(image.note.name, "GNU", 4);
    memset(image.note.id, 0xab, sizeof(image.note.id));
    image.sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                     .sh_offset = offsetof(struct image, symbols),
                                     .sh_size = sizeof(image.symbols[0]),
                                     .sh_entsize = sizeof(Elf64_Sym),
                                     .sh_link = 2};
    image.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                                     .sh_offset = offsetof(struct image, strings),
                                     .sh_size = STRINGS_MAX};
    image.sections[3] = image.sections[1];
    image.sections[3].sh_type = SHT_DYNSYM;
    image.sections[3].sh_offset += sizeof(image.symbols[0]);
    strings_used = 1;
    symbols_used[0] = symbols_used[1] = 1;
    assert_int_equal(cca_arena_init(&arena, (size_t)1 << 20), 0);
    snprintf(path, sizeof(path), "%s/lib.so", fixture_folder());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cca_arena_fini(&arena);
    fixture_remove_folder();
    return 0;
}

static Elf64_Sym *add_symbol(unsigned table, const char *name, uint64_t value, uint64_t size,
                             unsigned binding, unsigned type)
{
    Elf64_Sym *symbol = &image.symbols[table][symbols_used[table]++];

    *symbol = (Elf64_Sym){.st_name = strings_used,
                          .st_value = value,
                          .st_size = size,
                          .st_info = ELF64_ST_INFO(binding, type),
                          .st_shndx = 7};
    strcpy(image.strings + strings_used, name);
    strings_used += (uint32_t)strlen(name) + 1;
    return symbol;
}

static void save_image(size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, &image, bytes), bytes);
    close(fd);
}

static struct cca_module module_of_file(void)
{
    return (struct cca_module){.path = path};
}

/* The name of one address, NULL when there is none. */
static const char *look_up_in(const struct cca_module *module, uint64_t vaddr)
{
    struct cca_symbol_query query = {.vaddr = vaddr};

    errno = ENOTTY;
    cca_elf_symbols_find(module, &query, 1, &arena);
    assert_int_equal(errno, ENOTTY);
    return query.name;
}

static const char *look_up(uint64_t vaddr)
{
    const struct cca_module module = module_of_file();

    return look_up_in(&module, vaddr);
}

static void sizes_are_respected(void **state)
{
    (void)state;
    add_symbol(0, "first", 0x100, 0x20, STB_LOCAL, STT_FUNC);
    add_symbol(0, "ifunc", 0x140, 0x10, STB_GLOBAL, STT_GNU_IFUNC);
    add_symbol(0, "object", 0x160, 0x10, STB_GLOBAL, STT_OBJECT);
    add_symbol(0, "sizeless", 0x180, 0, STB_GLOBAL, STT_FUNC);
    add_symbol(0, "undefined", 0x190, 8, STB_GLOBAL, STT_FUNC)->st_shndx = SHN_UNDEF;
    add_symbol(0, "last", UINT64_MAX - 15, 16, STB_GLOBAL, STT_FUNC);
    save_image(sizeof(image));
    assert_null(look_up(0xff));
    assert_string_equal(look_up(0x100), "first");
    assert_string_equal(look_up(0x11f), "first");
    assert_null(look_up(0x120));
    assert_string_equal(look_up(0x14f), "ifunc");
    assert_null(look_up(0x150));
    assert_null(look_up(0x160));
    assert_null(look_up(0x180));
    assert_null(look_up(0x190));
    assert_string_equal(look_up(UINT64_MAX), "last");
}

static void best_of_several_names(void **state)
{
    (void)state;
    add_symbol(0, "__libc_alias", 0x100, 0x20, STB_GLOBAL, STT_FUNC);
    add_symbol(0, "alias", 0x100, 0x20, STB_WEAK, STT_FUNC);
    add_symbol(0, "_alias", 0x100, 0x20, STB_GLOBAL, STT_FUNC);
    add_symbol(0, "local", 0x200, 0x20, STB_LOCAL, STT_FUNC);
    add_symbol(0, "exported", 0x200, 0x20, STB_GLOBAL, STT_FUNC);
    add_symbol(0, "outer", 0x300, 0x100, STB_GLOBAL, STT_FUNC);
    add_symbol(0, "inner", 0x340, 0x10, STB_LOCAL, STT_FUNC);
    add_symbol(0, "versioned@@LIB_2", 0x500, 0x10, STB_GLOBAL, STT_FUNC);
    save_image(sizeof(image));
    assert_string_equal(look_up(0x110), "alias");
    assert_string_equal(look_up(0x210), "exported");
    assert_string_equal(look_up(0x33f), "outer");
    assert_string_equal(look_up(0x340), "inner");
    assert_string_equal(look_up(0x350), "outer");
    assert_string_equal(look_up(0x500), "versioned");
}

static void dynamic_symbols_fill_the_rest(void **state)
{
    struct cca_symbol_query queries[] = {
        {.vaddr = 0x104}, {.vaddr = 0x108}, {.vaddr = 0x204}, {.vaddr = 0x304}};
    const struct cca_module module = module_of_file();

    (void)state;
    add_symbol(0, "static_one", 0x100, 0x10, STB_LOCAL, STT_FUNC);
    add_symbol(1, "other_name", 0x100, 0x10, STB_GLOBAL, STT_FUNC);
    add_symbol(1, "exported", 0x200, 0x10, STB_GLOBAL, STT_FUNC);
    save_image(sizeof(image));
    cca_elf_symbols_find(&module, queries, 4, &arena);
    assert_string_equal(queries[0].name, "static_one");
    assert_ptr_equal(queries[0].name, queries[1].name);
    assert_string_equal(queries[2].name, "exported");
    assert_null(queries[3].name);
}

static void build_id_tells_another_file(void **state)
{
    struct cca_module module = module_of_file();

    (void)state;
    add_symbol(0, "function", 0x100, 0x20, STB_GLOBAL, STT_FUNC);
    save_image(sizeof(image));
    memset(module.build_id, 0xab, 20);
    module.build_id_len = 20;
    assert_string_equal(look_up_in(&module, 0x100), "function");
    module.build_id[19] = 0;
    assert_null(look_up_in(&module, 0x100));
    module.build_id[19] = 0xab;
    module.build_id_len = 8;
    assert_null(look_up_in(&module, 0x100));
    module.build_id_len = 20;
    image.note.header.n_type = 99; /* a file without one: nothing to compare */
    save_image(sizeof(image));
    assert_string_equal(look_up_in(&module, 0x100), "function");
}

static void memory_of_the_vdso(void **state)
{
    struct cca_module module = {.path = "[vdso]",
                                .start = (uintptr_t)&image,
                                .end = (uintptr_t)&image + sizeof(image) - 4096};

    (void)state;
    add_symbol(1, "clock_gettime", 0x100, 0x20, STB_GLOBAL, STT_FUNC);
    assert_string_equal(look_up_in(&module, 0x100), "clock_gettime");
    module.end = module.start + 1;
    image.sections[3].sh_offset = 4096;
    assert_null(look_up_in(&module, 0x100));
}

static void files_that_are_none_are_tolerated(void **state)
{
    struct cca_module module = module_of_file();

    (void)state;
    assert_null(look_up(0x100)); /* not there */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(look_up(0x100)); /* would wait for a writer */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_null(look_up(0x100));
    assert_int_equal(rmdir(path), 0);
    module.path = NULL;
    assert_null(look_up_in(&module, 0x100));
    module.path = "relative.so";
    assert_null(look_up_in(&module, 0x100));
    module.path = "";
    assert_null(look_up_in(&module, 0x100));
}

static void cut_files_are_tolerated(void **state)
{
    (void)state;
    add_symbol(0, "function", 0x100, 0x20, STB_GLOBAL, STT_FUNC);
    for (size_t bytes = 0; bytes < sizeof(image) - STRINGS_MAX + 10; bytes += 8) {
        save_image(bytes);
        assert_null(look_up(0x100));
    }
}

/* Whatever the bytes are, nothing is read outside the file and the search ends. */
static void damaged_files_are_tolerated(void **state)
{
    unsigned char *bytes = (unsigned char *)&image;
    struct cca_module module = module_of_file();
    uint64_t seed = 7;

    (void)state;
    module.build_id_len = 20;
    memset(module.build_id, 0xab, 20);
    for (int round = 0; round < 900; round++) {
        size_t at = (size_t)round % offsetof(struct image, symbols);
        unsigned char old = bytes[at];

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        bytes[at] = (unsigned char)(seed >> 56);
        save_image(sizeof(image));
        (void)look_up_in(&module, 0x100);
        bytes[at] = old;
    }
}

static void long_names_are_cut(void **state)
{
    char name[6000];
    const char *found;

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    add_symbol(0, name, 0x100, 0x20, STB_GLOBAL, STT_FUNC);
    save_image(sizeof(image));
    found = look_up(0x100);
    assert_int_equal(strlen(found), 4095);
    image.sections[2].sh_size = 101; /* the table ends inside the name */
    save_image(sizeof(image));
    assert_int_equal(strlen(look_up(0x100)), 100);
    image.symbols[0][1].st_name = 5000; /* behind the table */
    save_image(sizeof(image));
    assert_null(look_up(0x100));
}

static void full_arena_leaves_names_out(void **state)
{
    (void)state;
    add_symbol(0, "function", 0x100, 0x20, STB_GLOBAL, STT_FUNC);
    save_image(sizeof(image));
    arena.used_bytes = arena.reserved_bytes;
    assert_null(look_up(0x100));
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    ROW(sizes_are_respected),
    ROW(best_of_several_names),
    ROW(dynamic_symbols_fill_the_rest),
    ROW(build_id_tells_another_file),
    ROW(memory_of_the_vdso),
    ROW(files_that_are_none_are_tolerated),
    ROW(cut_files_are_tolerated),
    ROW(damaged_files_are_tolerated),
    ROW(long_names_are_cut),
    ROW(full_arena_leaves_names_out),
};

CCA_TEST_MAIN(tests)
