/* SPDX-License-Identifier: MIT */
/* Graphs, their nodes, and executable copies of them. A launch is in graph_plan.h. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "user_object.h"
#include "work.h"

/* original: the node that this one is a copy of, at any remove. mark is for walks. */
struct CUgraphNode_st {
    unsigned magic;
    unsigned mark;
    struct CUgraph_st *graph;
    struct CUgraphNode_st *next;
    struct CUgraphNode_st *original;
    struct sim_work work;
    bool is_disabled;
    struct CUgraphNode_st **before;
    size_t before_count;
};

/* Nodes are in the order of their creation. Destroyed graphs are kept, empty, so that a stale
 * handle can be told. */
struct CUgraph_st {
    unsigned magic;
    struct CUgraphNode_st *first;
    struct CUgraphNode_st *last;
    size_t node_count;
    unsigned exec_count;
    struct sim_user_reference *references;
    struct CUgraph_st *older;
};

/* Memory that allocation nodes own: its address holds over all launches. */
struct sim_graph_memory {
    unsigned references;
    int device;
    uint64_t address;
    size_t size_bytes;
    size_t rounded_bytes;
    char *payload;
    bool is_freed_by_graph;
    struct sim_graph_memory *next;
};

struct CUgraph_st *sim_graph_of(CUgraph handle);
struct CUgraphNode_st *sim_node_of(CUgraphNode handle);
struct CUgraph_st *sim_graph_create(void);
struct CUgraph_st *sim_graph_clone(const struct CUgraph_st *graph);
void sim_graph_destroy(struct CUgraph_st *graph);
/* A copy of the work becomes a node after the given ones; NULL when those are not nodes of the
 * graph. */
struct CUgraphNode_st *sim_graph_add(struct CUgraph_st *graph, CUgraphNode const *before,
                                     size_t before_count, const struct sim_work *work);
bool sim_node_add_before(struct CUgraphNode_st *node, struct CUgraphNode_st *before);
/* What the calls that add, look for and change nodes of one kind share. With an executable graph,
 * its copy of the node is meant. */
CUresult sim_node_add(CUgraphNode *node_out, CUgraph graph, const CUgraphNode *before,
                      size_t before_count, const struct sim_work *work);
struct CUgraphNode_st *sim_node_find(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type);
CUresult sim_node_replace(CUgraphExec exec, CUgraphNode handle, const struct sim_work *work);
bool sim_graph_has_memory(const struct CUgraph_st *graph);
/* The nodes, each behind all that it waits for; NULL when they go round in circles. */
struct CUgraphNode_st **sim_graph_sort(const struct CUgraph_st *graph);
/* The graph that an executable one keeps, or NULL. */
struct CUgraph_st *sim_exec_graph(CUgraphExec exec);
/* The copy of a node in an executable graph, or NULL. */
struct CUgraphNode_st *sim_exec_node(CUgraphExec exec, CUgraphNode node);
/* All nodes one after the other. */
CUresult sim_graph_run(const struct CUgraph_st *graph, struct sim_queue *queue);

struct sim_graph_memory *sim_graph_memory_create(int device, size_t size_bytes);
/* The memory of that address, or NULL. */
struct sim_graph_memory *sim_graph_memory_of(uint64_t address);
void sim_graph_memory_hold(struct sim_graph_memory *memory);
void sim_graph_memory_drop(struct sim_graph_memory *memory);
CUresult sim_graph_memory_alloc(struct sim_graph_memory *memory, struct sim_queue *queue);
CUresult sim_graph_memory_free(struct sim_graph_memory *memory, struct sim_queue *queue);
/* The block of an allocation ended. */
void sim_graph_memory_end(struct sim_graph_memory *memory);
/* Is there a block at the address that no free has been given to? */
bool sim_graph_memory_is_live(const struct sim_graph_memory *memory);

#endif
