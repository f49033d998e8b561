/* SPDX-License-Identifier: MIT */
#include "snapshot/sort.h"

#include <stdbool.h>
#include <string.h>

struct items {
    char *base;
    size_t bytes;
    cca_compare_fn compare;
};

static void *item_at(const struct items *items, size_t index)
{
    return items->base + index * items->bytes;
}

static void swap(const struct items *items, size_t i, size_t j)
{
    char *a = item_at(items, i), *b = item_at(items, j);
    char part[64];

    for (size_t at = 0; at < items->bytes; at += sizeof(part)) {
        size_t len = items->bytes - at < sizeof(part) ? items->bytes - at : sizeof(part);

        memcpy(part, a + at, len);
        memcpy(a + at, b + at, len);
        memcpy(b + at, part, len);
    }
}

static bool is_sorted(const struct items *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (items->compare(item_at(items, i - 1), item_at(items, i)) > 0) {
            return false;
        }
    }
    return true;
}

/* Puts the item at `root` where it belongs in the heap of the first `count` items. */
static void sift_down(const struct items *items, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count &&
            items->compare(item_at(items, child), item_at(items, child + 1)) < 0) {
            child++;
        }
        if (items->compare(item_at(items, root), item_at(items, child)) >= 0) {
            return;
        }
        swap(items, root, child);
    }
}

void cca_sort(void *base, size_t count, size_t item_bytes, cca_compare_fn compare)
{
    const struct items items = {.base = base, .bytes = item_bytes, .compare = compare};

    if (is_sorted(&items, count)) {
        return;
    }
    for (size_t root = count / 2; root-- > 0;) {
        sift_down(&items, root, count);
    }
    for (size_t last = count; --last > 0;) {
        swap(&items, 0, last);
        sift_down(&items, 0, last);
    }
}
