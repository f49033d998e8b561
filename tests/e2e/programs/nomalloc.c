/* SPDX-License-Identifier: MIT */
/* Counts the calls of malloc and its kin that come from the preload library or its unwinder, once
 * the first context is up and the thread has allocated before. Prints them. */
#include <dlfcn.h>
#include <link.h>

#include "program.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

enum { RANGES_MAX = 16 };
static struct {
    uintptr_t start, end;
} ranges[RANGES_MAX];
static int range_count, is_counting, counted;

static void count(const void *caller)
{
    for (int i = 0; is_counting && i < range_count; i++) {
        uintptr_t at = (uintptr_t)caller;
        counted += at >= ranges[i].start && at < ranges[i].end;
    }
}

void *malloc(size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_calloc(number, bytes);
}

void *realloc(void *old, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_realloc(old, bytes);
}

static int note_ranges(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    if (strstr(info->dlpi_name, "libcca_preload") == NULL &&
        strstr(info->dlpi_name, "libunwind") == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            ranges[range_count].start = info->dlpi_addr + segment->p_vaddr;
            ranges[range_count++].end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        }
    }
    return 0;
}

static void allocate_and_free(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        void *a = NULL, *b = NULL;
        MUST(cudaMalloc(&a, 1000 + (size_t)(i % 50) * 3000));
        MUST(cudaMallocAsync(&b, 5000, 0));
        MUST(cudaFreeAsync(b, 0));
        MUST(cudaFree(a));
    }
}

int main(void)
{
    allocate_and_free(100);
    dl_iterate_phdr(note_ranges, NULL);
    is_counting = 1;
    allocate_and_free(1000);
    is_counting = 0;
    fprintf(stderr, "watched %d ranges\n", range_count);
    printf("allocations of its own: %d\n", counted);
    return 0;
}
