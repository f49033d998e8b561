/* SPDX-License-Identifier: MIT */
#include "process/selection.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

enum { GLOB_BYTES = 256, PATH_BYTES = 4096 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

bool cca_selection_matches(const char *globs, const char *file_name, const char *called_name)
{
    static const char between[] = ", \t";
    bool has_positive = false, is_chosen = false;

    for (const char *at = globs + strspn(globs, between); *at != '\0';) {
        size_t len = strcspn(at, between);
        bool excludes = *at == '!';
        char glob[GLOB_BYTES];
        bool matches = false;

        if (len - excludes < sizeof(glob)) {
            memcpy(glob, at + excludes, len - excludes);
            glob[len - excludes] = '\0';
            matches = fnmatch(glob, base_name(file_name), 0) == 0 ||
                      fnmatch(glob, base_name(called_name), 0) == 0;
        }
        if (excludes && matches) {
            return false;
        }
        has_positive |= !excludes;
        is_chosen |= !excludes && matches;
        at += len + strspn(at + len, between);
    }
    return is_chosen || !has_positive;
}

/* An entry may be a bare name, another path to the same file, or hold a token like $LIB, of which
 * only the loader knows the meaning. */
static bool means(const char *entry, size_t len, const char *library)
{
    char path[PATH_BYTES];
    struct stat ours, theirs;

    if (len >= sizeof(path)) {
        return false;
    }
    memcpy(path, entry, len);
    path[len] = '\0';
    if (strcmp(path, library) == 0) {
        return true;
    }
    if (strcmp(base_name(path), base_name(library)) == 0 &&
        (strchr(path, '/') == NULL || strchr(path, '$') != NULL)) {
        return true;
    }
    return strchr(path, '/') != NULL && stat(path, &theirs) == 0 && stat(library, &ours) == 0 &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

bool cca_selection_remove_entry(char *preload, const char *library)
{
    static const char between[] = ": ";
    bool was_there = false;
    char *at = preload;

    while (*at != '\0') {
        size_t gap = strspn(at, between), len = strcspn(at + gap, between);

        if (len > 0 && means(at + gap, len, library)) {
            /* With the separators before it, or behind it where it is the first. */
            size_t cut = gap + len;
            if (at == preload) {
                cut += strspn(at + cut, between);
            }
            memmove(at, at + cut, strlen(at + cut) + 1);
            was_there = true;
        } else {
            at += gap + len;
        }
    }
    return was_there;
}
