/* SPDX-License-Identifier: MIT */
/* Device code as far as it is read: which kernels there are, and the sizes of their parameters. */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_PARAMETERS 64

struct sim_parameter {
    uint16_t offset;
    uint16_t size_bytes;
};

/* elf is NULL when the code is text, packed or not code at all; assembly is text that has kernels.
 * more: what was linked with it. */
struct sim_image {
    const unsigned char *elf;
    size_t elf_bytes;
    const char *assembly;
    int architecture;
    struct sim_image *more;
};

/* What linking several inputs makes: this, then the inputs at those offsets from its start. */
#define SIM_LINKED_MAGIC 0x4b4e494cu
struct sim_linked {
    uint32_t magic;
    uint32_t count;
    uint64_t offsets[];
};

/* Accepts a fat binary, its wrapper, a bare ELF file, what linking made, and anything else. */
void sim_image_open(struct sim_image *image, const void *code);
/* Text that names its kernels has just those; other code that is no ELF file may have any. */
bool sim_image_has_kernel(const struct sim_image *image, const char *name);
/* Their number, or -1 when the image does not say. */
int sim_image_parameters(const struct sim_image *image, const char *name,
                         struct sim_parameter parameters[SIM_MAX_PARAMETERS]);
/* The size of a variable of the image, or 0. */
size_t sim_image_variable_bytes(const struct sim_image *image, const char *name);

#endif
