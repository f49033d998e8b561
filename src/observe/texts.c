/* SPDX-License-Identifier: MIT */
#include "observe/texts.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sysmem.h"

enum { UNIT = 8 };

/* Followed by `bytes` of text, with its NUL. */
struct record {
    uint32_t hash;
    uint32_t bytes;
};

int cca_texts_init(struct cca_texts *texts, size_t slot_count, size_t bytes_max)
{
    *texts = (struct cca_texts){.slot_count = slot_count, .bytes_max = bytes_max};
    cca_lock_init(&texts->lock, CCA_RANK_LEAF);
    texts->records = cca_sysmem_reserve(bytes_max);
    texts->slots = cca_sysmem_reserve(slot_count * sizeof(*texts->slots));
    if (texts->records == NULL || texts->slots == NULL) {
        cca_texts_fini(texts);
        return -ENOMEM;
    }
    return 0;
}

void cca_texts_fini(struct cca_texts *texts)
{
    cca_sysmem_unmap(texts->records, texts->bytes_max);
    cca_sysmem_unmap(texts->slots, texts->slot_count * sizeof(*texts->slots));
    *texts = (struct cca_texts){0};
}

static uint32_t hash_of(const char *text, size_t len)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    }
    return hash;
}

static const struct record *record_of(const struct cca_texts *texts, uint32_t id)
{
    return (const struct record *)(texts->records + (size_t)(id - 1) * UNIT);
}

static bool is_same(const struct record *record, uint32_t hash, const char *text, size_t len)
{
    return record->hash == hash && record->bytes == len + 1 && memcmp(record + 1, text, len) == 0;
}

/* Lock held. */
static uint32_t append(struct cca_texts *texts, uint32_t hash, const char *text, size_t len)
{
    size_t at = atomic_load_explicit(&texts->used, memory_order_relaxed);
    size_t bytes = (sizeof(struct record) + len + 1 + UNIT - 1) / UNIT * UNIT;
    struct record *record = (struct record *)(texts->records + at);

    if (bytes > texts->bytes_max - at || 2 * (texts->kept + 1) > texts->slot_count) {
        atomic_fetch_add_explicit(&texts->refused, 1, memory_order_relaxed);
        return 0;
    }
    *record = (struct record){hash, (uint32_t)len + 1};
    memcpy(record + 1, text, len);
    texts->kept++;
    atomic_store_explicit(&texts->used, at + bytes, memory_order_release);
    return (uint32_t)(at / UNIT) + 1;
}

uint32_t cca_texts_intern(struct cca_texts *texts, const char *text)
{
    size_t len = text != NULL ? strnlen(text, CCA_TEXT_BYTES_MAX - 1) : 0;
    uint32_t hash = hash_of(text, len), id = 0;

    if (len == 0 || texts->records == NULL) {
        return 0;
    }
    cca_lock_take(&texts->lock);
    for (size_t slot = hash & (texts->slot_count - 1);;
         slot = (slot + 1) & (texts->slot_count - 1)) {
        id = texts->slots[slot];
        if (id == 0) {
            id = append(texts, hash, text, len);
            texts->slots[slot] = id;
            break;
        }
        if (is_same(record_of(texts, id), hash, text, len)) {
            break;
        }
    }
    cca_lock_drop(&texts->lock);
    return id;
}

const char *cca_texts_get(const struct cca_texts *texts, uint32_t id)
{
    size_t used = texts != NULL ? atomic_load_explicit(&texts->used, memory_order_acquire) : 0;

    if (id == 0 || (size_t)(id - 1) * UNIT >= used) {
        return "";
    }
    return (const char *)(record_of(texts, id) + 1);
}
