/* SPDX-License-Identifier: MIT */
#include "user_object.h"

#include "call.h"
#include "defect.h"
#include "graph.h"
#include "run.h"
#include "sim_api.h"

#include <limits.h>
#include <stdlib.h>

/* Ended objects stay in the list, so that a stale handle can be told. */
struct CUuserObject_st {
    unsigned references;
    CUhostFn destroy;
    void *data;
    struct CUuserObject_st *older;
};

static struct CUuserObject_st *newest;

static struct CUuserObject_st *object_of(CUuserObject handle)
{
    struct CUuserObject_st *object = newest;

    while (object != NULL && object != handle) {
        object = object->older;
    }
    return object != NULL && object->references != 0 ? object : NULL;
}

static void release(struct CUuserObject_st *object, unsigned count)
{
    object->references -= count;
    if (object->references == 0) {
        sim_call_on_host_thread(object->destroy, object->data);
    }
}

CUresult sim_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
                                unsigned int initialRefcount, unsigned int flags)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (object_out == NULL || destroy == NULL || initialRefcount == 0 ||
        initialRefcount > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUuserObject_st *object = calloc(1, sizeof(*object));
    *object = (struct CUuserObject_st){
        .references = initialRefcount, .destroy = destroy, .data = ptr, .older = newest};
    newest = object;
    *object_out = object;
    return CUDA_SUCCESS;
}

static bool is_count(unsigned count)
{
    return count != 0 && count <= INT_MAX;
}

CUresult sim_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    if (object_of(object) == NULL || !is_count(count)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    object->references += count;
    return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    if (object_of(object) == NULL || !is_count(count) || count > object->references) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    release(object, count);
    return CUDA_SUCCESS;
}

static struct sim_user_reference **find(struct sim_user_reference **list, CUuserObject object)
{
    while (*list != NULL && (*list)->object != object) {
        list = &(*list)->next;
    }
    return list;
}

static void add(struct sim_user_reference **list, CUuserObject object, unsigned count)
{
    struct sim_user_reference **found = find(list, object);

    if (*found == NULL) {
        *found = calloc(1, sizeof(**found));
        (*found)->object = object;
    }
    (*found)->count += count;
}

CUresult sim_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                     unsigned int flags)
{
    struct CUgraph_st *own = sim_graph_of(graph);
    bool is_moved = flags == CU_GRAPH_USER_OBJECT_MOVE;

    if (own == NULL || object_of(object) == NULL || !is_count(count) || (flags != 0 && !is_moved) ||
        (is_moved && count > object->references)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    add(&own->references, object, count);
    object->references += is_moved ? 0 : count;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    struct CUgraph_st *own = sim_graph_of(graph);
    struct sim_user_reference **found = own != NULL ? find(&own->references, object) : NULL;

    if (found == NULL || *found == NULL || !is_count(count) || count > (*found)->count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    (*found)->count -= count;
    if ((*found)->count == 0) {
        struct sim_user_reference *empty = *found;
        *found = empty->next;
        free(empty);
    }
    release(object, count);
    return CUDA_SUCCESS;
}

struct sim_user_reference *sim_user_references_copy(const struct sim_user_reference *from)
{
    struct sim_user_reference *copy = NULL;

    for (; from != NULL && !SIM_DEFECT(copies_keep_no_objects); from = from->next) {
        add(&copy, from->object, from->count);
        from->object->references += from->count;
    }
    return copy;
}

void sim_user_references_drop(struct sim_user_reference *references)
{
    while (references != NULL) {
        struct sim_user_reference *next = references->next;
        release(references->object, references->count);
        free(references);
        references = next;
    }
}
