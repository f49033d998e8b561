/* SPDX-License-Identifier: MIT */
/* Linking, and code from files. Nothing is compiled: a single input comes out as it is, several one
 * behind the other, and a module made of that has what any of them has. */
#include "call.h"
#include "context.h"
#include "image.h"
#include "sim_api.h"

#include <elf.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_MAGIC 0x4c494e4bu

/* A zero byte stands behind the data. */
struct input {
    struct input *next;
    size_t bytes;
    char data[];
};

/* image belongs to the state, which is never freed. */
struct CUlinkState_st {
    unsigned magic;
    struct input *inputs;
    char *image;
    size_t image_bytes;
    struct CUlinkState_st *older;
};

static struct CUlinkState_st *newest;

static struct CUlinkState_st *state_of(CUlinkState handle)
{
    return handle != NULL && handle->magic == LINK_MAGIC ? handle : NULL;
}

CUresult sim_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                             CUlinkState *stateOut)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    (void)numOptions;
    (void)options;
    (void)optionValues;
    if (result != CUDA_SUCCESS || stateOut == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    struct CUlinkState_st *state = calloc(1, sizeof(*state));
    state->magic = LINK_MAGIC;
    state->older = newest;
    newest = state;
    *stateOut = state;
    return CUDA_SUCCESS;
}

CUresult sim_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                              const char *name, unsigned int numOptions, CUjit_option *options,
                              void **optionValues)
{
    struct CUlinkState_st *own = state_of(state);

    (void)name;
    (void)numOptions;
    (void)options;
    (void)optionValues;
    if (own == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (data == NULL || size == 0 || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool is_code = type == CU_JIT_INPUT_FATBINARY ||
                   (size > SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0);
    if (type == CU_JIT_INPUT_CUBIN && !is_code) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    struct input **end = &own->inputs;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = calloc(1, sizeof(**end) + size + 1);
    (*end)->bytes = size;
    memcpy((*end)->data, data, size);
    return CUDA_SUCCESS;
}

/* The whole file, with a zero byte behind it; NULL: it cannot be read. */
static char *read_file(const char *path, size_t *bytes_out)
{
    FILE *in = path != NULL ? fopen(path, "re") : NULL;
    char *data = NULL;
    size_t bytes = 0;
    size_t got;

    if (in == NULL) {
        return NULL;
    }
    do {
        data = realloc(data, bytes + 65536 + 1);
        got = fread(data + bytes, 1, 65536, in);
        bytes += got;
    } while (got != 0);
    fclose(in);
    data[bytes] = '\0';
    *bytes_out = bytes;
    return data;
}

CUresult sim_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                              unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    size_t bytes = 0;

    if (state_of(state) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    char *data = read_file(path, &bytes);
    if (data == NULL) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    CUresult result = sim_cuLinkAddData_v2(state, type, data, bytes, path, numOptions, options,
                                           optionValues);
    free(data);
    return result;
}

#define ALIGNMENT 16

static size_t room_for(const struct input *input)
{
    return (input->bytes + 1 + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* All inputs in one piece, as image.h has it. */
static void join(struct CUlinkState_st *state)
{
    size_t bytes = sizeof(struct sim_linked);
    uint32_t count = 0;

    for (const struct input *input = state->inputs; input != NULL; input = input->next) {
        bytes += sizeof(uint64_t) + room_for(input) + ALIGNMENT;
        count++;
    }
    struct sim_linked *linked = calloc(1, bytes);
    size_t at = sizeof(*linked) + count * sizeof(uint64_t);
    *linked = (struct sim_linked){.magic = SIM_LINKED_MAGIC, .count = count};
    at = (at + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    count = 0;
    for (const struct input *input = state->inputs; input != NULL; input = input->next) {
        linked->offsets[count++] = at;
        memcpy((char *)linked + at, input->data, input->bytes);
        at += room_for(input);
    }
    state->image = (char *)linked;
    state->image_bytes = at;
}

CUresult sim_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct CUlinkState_st *own = state_of(state);

    if (own == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (cubinOut == NULL || own->inputs == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (own->inputs->next == NULL) {
        own->image = own->inputs->data;
        own->image_bytes = own->inputs->bytes;
    } else if (own->image == NULL) {
        join(own);
    }
    *cubinOut = own->image;
    if (sizeOut != NULL) {
        *sizeOut = own->image_bytes;
    }
    return CUDA_SUCCESS;
}

/* Modules made of the image look into it for as long as they live, so it stays. */
CUresult sim_cuLinkDestroy(CUlinkState state)
{
    if (state_of(state) == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    state->magic = 0;
    return CUDA_SUCCESS;
}

/* Images of files that modules look into. */
struct kept {
    struct kept *next;
    char *data;
};
static _Atomic(struct kept *) kept_images;

/* Keeps the data of a module that came from a file, or frees it when there is no module. */
static CUresult keep(char *data, CUresult result)
{
    struct kept *kept = result == CUDA_SUCCESS ? malloc(sizeof(*kept)) : NULL;

    if (kept == NULL) {
        if (result != CUDA_SUCCESS) {
            free(data);
        }
        return result;
    }
    kept->data = data;
    kept->next = atomic_load(&kept_images);
    while (!atomic_compare_exchange_weak(&kept_images, &kept->next, kept)) {
    }
    return result;
}

CUresult sim_cuModuleLoad(CUmodule *module, const char *fname)
{
    size_t bytes;
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS || module == NULL || fname == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    char *data = read_file(fname, &bytes);
    return data == NULL ? CUDA_ERROR_FILE_NOT_FOUND
                        : keep(data, sim_cuModuleLoadData(module, data));
}

CUresult sim_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
                                   CUjit_option *jitOptions, void **jitOptionsValues,
                                   unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                                   void **libraryOptionValues, unsigned int numLibraryOptions)
{
    size_t bytes;

    if (library == NULL || fileName == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    char *data = read_file(fileName, &bytes);
    return data == NULL
               ? CUDA_ERROR_FILE_NOT_FOUND
               : keep(data, sim_cuLibraryLoadData(library, data, jitOptions, jitOptionsValues,
                                                  numJitOptions, libraryOptions,
                                                  libraryOptionValues, numLibraryOptions));
}
