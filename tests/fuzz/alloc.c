/* SPDX-License-Identifier: MIT */
/* The programs of unit/alloc/model_program.h, driven by bytes: as a target of libFuzzer, and as a
 * program that plays the files (and the files of the folders) it is given. */
#include "unit/alloc/model_program.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 4000, BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int steps = 0;
    model_program_start(1, data, bytes);
    while (model_program_step() && ++steps < STEPS_MAX) {
    }
    model_program_finish();
    return 0;
}

#ifndef CCA_FUZZING
static int play_file(const char *path)
{
    static uint8_t data[BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "fuzz: %s cannot be read\n", path);
        return 2;
    }
    size_t bytes = fread(data, 1, sizeof(data), file);
    fclose(file);
    printf("%s: %zu bytes\n", path, bytes);
    fflush(stdout);
    return LLVMFuzzerTestOneInput(data, bytes);
}

static int play(const char *path, unsigned *count)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        ++*count;
        return play_file(path);
    }
    int worst = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char name[4096];
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        int one = entry->d_name[0] == '.' ? 0 : play(name, count);
        worst = one > worst ? one : worst;
    }
    closedir(folder);
    return worst;
}

int main(int argc, char **argv)
{
    int worst = argc < 2 ? 2 : 0;
    unsigned count = 0;
    for (int i = 1; i < argc; i++) {
        int one = play(argv[i], &count);
        worst = one > worst ? one : worst;
    }
    printf("%u inputs played\n", count);
    return count == 0 ? 2 : worst;
}
#endif
