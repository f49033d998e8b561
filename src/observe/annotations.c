/* SPDX-License-Identifier: MIT */
#include "observe/annotations.h"

#include <errno.h>

#include "base/sysmem.h"

void cca_annotations_init(struct cca_annotations *annotations, size_t capacity)
{
    *annotations = (struct cca_annotations){.capacity = capacity};
    cca_lock_init(&annotations->lock, CCA_RANK_LEAF);
}

int cca_annotations_add(struct cca_annotations *annotations, const struct cca_annotation *entry)
{
    int rc = 0;

    cca_lock_take(&annotations->lock);
    if (annotations->entries == NULL) {
        annotations->entries = cca_sysmem_reserve(annotations->capacity *
                                                  sizeof(*annotations->entries));
    }
    if (annotations->entries == NULL) {
        rc = -ENOMEM;
    } else {
        annotations->entries[annotations->next] = *entry;
        annotations->next = (annotations->next + 1) % annotations->capacity;
        annotations->held += annotations->held < annotations->capacity;
    }
    cca_lock_drop(&annotations->lock);
    return rc;
}

size_t cca_annotations_count(struct cca_annotations *annotations)
{
    cca_lock_take(&annotations->lock);
    size_t held = annotations->held;
    cca_lock_drop(&annotations->lock);
    return held;
}

size_t cca_annotations_copy(struct cca_annotations *annotations, struct cca_annotation *out,
                            size_t max)
{
    cca_lock_take(&annotations->lock);
    size_t count = annotations->held < max ? annotations->held : max;
    for (size_t i = 0; i < count; i++) {
        size_t back = count - i;
        out[i] = annotations->entries[(annotations->next + annotations->capacity - back) %
                                      annotations->capacity];
    }
    cca_lock_drop(&annotations->lock);
    return count;
}

void cca_annotations_fini(struct cca_annotations *annotations)
{
    cca_sysmem_unmap(annotations->entries, annotations->capacity * sizeof(*annotations->entries));
    annotations->entries = NULL;
    annotations->held = annotations->next = 0;
}
