/* SPDX-License-Identifier: MIT */
#include "image.h"

#include "defect.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC  0x466243b1u
#define FATBIN_MAGIC   0xba55ed50u
#define KIND_ELF       2
#define INFO_PARAMETER 0x17
#define INFO_HAS_SIZE  4

struct wrapper {
    uint32_t magic;
    uint32_t version;
    const void *data;
    const void *more;
};

struct fatbin {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t size_bytes;
};

/* The start of an entry's header; the payload follows the header. */
struct entry {
    uint16_t kind;
    uint16_t version;
    uint32_t header_bytes;
    uint64_t size_bytes;
    uint32_t packed_bytes;
    uint32_t reserved;
    uint32_t reserved2;
    uint32_t architecture;
};

static bool is_elf(const unsigned char *data)
{
    return memcmp(data, ELFMAG, SELFMAG) == 0;
}

static void open_fatbin(struct sim_image *image, const unsigned char *data)
{
    struct fatbin header;

    memcpy(&header, data, sizeof(header));
    const unsigned char *at = data + header.header_bytes;
    const unsigned char *end = at + header.size_bytes;
    while (at + sizeof(struct entry) <= end) {
        struct entry entry;
        memcpy(&entry, at, sizeof(entry));
        if (entry.header_bytes < sizeof(entry)) {
            return;
        }
        if (image->architecture == 0) {
            image->architecture = (int)entry.architecture;
        }
        const unsigned char *payload = at + entry.header_bytes;
        if (entry.kind == KIND_ELF && entry.size_bytes > SELFMAG && is_elf(payload)) {
            image->elf = payload;
            image->elf_bytes = entry.size_bytes;
            image->architecture = (int)entry.architecture;
            return;
        }
        at = payload + entry.size_bytes;
    }
}

/* The inputs become a list that begins with the image; it lives as long as the process. */
static void open_linked(struct sim_image *image, const char *code)
{
    struct sim_linked header;
    struct sim_image **end = &image->more;

    memcpy(&header, code, sizeof(header));
    for (uint32_t i = 0; i < header.count; i++) {
        uint64_t offset;
        memcpy(&offset, code + offsetof(struct sim_linked, offsets) + i * sizeof(offset),
               sizeof(offset));
        if (i == 0) {
            sim_image_open(image, code + offset);
            continue;
        }
        *end = calloc(1, sizeof(**end));
        sim_image_open(*end, code + offset);
        end = &(*end)->more;
    }
}

void sim_image_open(struct sim_image *image, const void *code)
{
    uint32_t magic = 0;

    *image = (struct sim_image){0};
    if (code == NULL) {
        return;
    }
    memcpy(&magic, code, sizeof(magic));
    if (magic == WRAPPER_MAGIC) {
        struct wrapper wrapper;
        memcpy(&wrapper, code, sizeof(wrapper));
        code = wrapper.data;
        if (code == NULL) {
            return;
        }
        memcpy(&magic, code, sizeof(magic));
    }
    if (magic == FATBIN_MAGIC) {
        open_fatbin(image, code);
    } else if (magic == SIM_LINKED_MAGIC) {
        open_linked(image, code);
    } else if (is_elf(code)) {
        image->elf = code;
        image->elf_bytes = SIZE_MAX;
    } else if (strstr(code, ".entry") != NULL) {
        image->assembly = code;
    }
}

/* The section with this name, or false. */
static bool find_section(const struct sim_image *image, const char *prefix, const char *name,
                         Elf64_Shdr *section_out)
{
    Elf64_Ehdr header;
    Elf64_Shdr names;
    size_t prefix_length = strlen(prefix);

    memcpy(&header, image->elf, sizeof(header));
    memcpy(&names, image->elf + header.e_shoff + (size_t)header.e_shstrndx * sizeof(names),
           sizeof(names));
    for (unsigned i = 0; i < header.e_shnum; i++) {
        memcpy(section_out, image->elf + header.e_shoff + i * sizeof(*section_out),
               sizeof(*section_out));
        const char *found = (const char *)image->elf + names.sh_offset + section_out->sh_name;
        if (strncmp(found, prefix, prefix_length) == 0 &&
            strcmp(found + prefix_length, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Is there ".entry NAME" in the text? */
static bool has_entry(const char *text, const char *name)
{
    size_t length = strlen(name);

    while ((text = strstr(text, ".entry")) != NULL) {
        text += strlen(".entry");
        text += strspn(text, " \t\n");
        if (strncmp(text, name, length) == 0 && !isalnum((unsigned char)text[length]) &&
            text[length] != '_' && text[length] != '$') {
            return true;
        }
    }
    return false;
}

static bool has_kernel(const struct sim_image *image, const char *name)
{
    Elf64_Shdr section;

    return image->elf != NULL        ? find_section(image, ".text.", name, &section)
           : image->assembly != NULL ? has_entry(image->assembly, name)
                                     : true;
}

bool sim_image_has_kernel(const struct sim_image *image, const char *name)
{
    bool is_there = has_kernel(image, name);

    while (!is_there && image->more != NULL && !SIM_DEFECT(linking_joins_nothing)) {
        image = image->more;
        is_there = has_kernel(image, name);
    }
    return is_there;
}

static int count_parameters(const struct sim_image *image, const char *name,
                            struct sim_parameter parameters[SIM_MAX_PARAMETERS])
{
    Elf64_Shdr section;
    int count = 0;

    if (image->elf == NULL || !find_section(image, ".nv.info.", name, &section)) {
        return -1;
    }
    const unsigned char *at = image->elf + section.sh_offset;
    const unsigned char *end = at + section.sh_size;
    while (at + 4 <= end) {
        uint16_t size = (uint16_t)(at[2] | at[3] << 8);
        if (at[0] != INFO_HAS_SIZE) {
            at += 4;
            continue;
        }
        if (at[1] == INFO_PARAMETER && size >= 12) {
            unsigned ordinal = (unsigned)(at[8] | at[9] << 8);
            uint32_t shape;
            memcpy(&shape, at + 12, sizeof(shape));
            if (ordinal >= SIM_MAX_PARAMETERS) {
                return -1;
            }
            parameters[ordinal].offset = (uint16_t)(at[10] | at[11] << 8);
            parameters[ordinal].size_bytes = (uint16_t)(shape >> 18);
            count = (int)ordinal + 1 > count ? (int)ordinal + 1 : count;
        }
        at += 4 + size;
    }
    return count;
}

int sim_image_parameters(const struct sim_image *image, const char *name,
                         struct sim_parameter parameters[SIM_MAX_PARAMETERS])
{
    int count = -1;

    for (; image != NULL && count < 0; image = image->more) {
        count = count_parameters(image, name, parameters);
    }
    return count;
}

static size_t variable_bytes(const struct sim_image *image, const char *name)
{
    Elf64_Shdr symbols;
    Elf64_Shdr names;

    if (image->elf == NULL || !find_section(image, ".symtab", "", &symbols) ||
        !find_section(image, ".strtab", "", &names)) {
        return 0;
    }
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image->elf + symbols.sh_offset + at, sizeof(symbol));
        const char *found = (const char *)image->elf + names.sh_offset + symbol.st_name;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && strcmp(found, name) == 0) {
            return symbol.st_size;
        }
    }
    return 0;
}

size_t sim_image_variable_bytes(const struct sim_image *image, const char *name)
{
    size_t bytes = 0;

    for (; image != NULL && bytes == 0; image = image->more) {
        bytes = variable_bytes(image, name);
    }
    return bytes;
}
