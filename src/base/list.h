/* SPDX-License-Identifier: MIT */
/* Intrusive doubly linked list with a sentinel head. An unlinked node has next == NULL. */
#ifndef CCA_BASE_LIST_H
#define CCA_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct cca_list {
    struct cca_list *next, *prev;
};

static inline void cca_list_init(struct cca_list *head)
{
    head->next = head->prev = head;
}

static inline bool cca_list_is_empty(const struct cca_list *head)
{
    return head->next == head;
}

static inline bool cca_list_is_linked(const struct cca_list *node)
{
    return node->next != NULL;
}

static inline void cca_list_push_back(struct cca_list *head, struct cca_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void cca_list_remove(struct cca_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

/* Moves every node of `from` to the end of `head`; `from` becomes empty. */
static inline void cca_list_splice(struct cca_list *head, struct cca_list *from)
{
    if (cca_list_is_empty(from)) {
        return;
    }
    from->next->prev = head->prev;
    head->prev->next = from->next;
    from->prev->next = head;
    head->prev = from->prev;
    cca_list_init(from);
}

#define CCA_LIST_ENTRY(node, type, member) CCA_CONTAINER_OF(node, type, member)

/* `it` may be removed inside the loop. */
#define CCA_LIST_EACH(it, head)                                                   \
    for (struct cca_list *it = (head)->next, *it##_next = it->next; it != (head); \
         it = it##_next, it##_next = it->next)

#endif
