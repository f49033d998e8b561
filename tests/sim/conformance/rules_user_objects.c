/* SPDX-License-Identifier: MIT */
/* Things of the program that graphs keep alive. */
#include "graphs.h"

#include <unistd.h>

static int end_count;
static int end_error;

static void CUDART_CB end_object(void *unused)
{
    (void)unused;
    __atomic_store_n(&end_error, (int)cudaMalloc((void **)&(void *){NULL}, 16), __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&end_count, 1, __ATOMIC_SEQ_CST);
}

static cudaUserObject_t create(unsigned references)
{
    cudaUserObject_t object = NULL;

    OK(cudaUserObjectCreate(&object, NULL, end_object, references, cudaUserObjectNoDestructorSync));
    return object;
}

static cudaGraph_t graph_of_one(void)
{
    begin();
    OK(launch_fill(p, 8, 1, stream));
    return end();
}

/* The function is called some time after the last reference went. */
static int has_ended(void)
{
    for (int i = 0; i < 1000 && __atomic_load_n(&end_count, __ATOMIC_SEQ_CST) == 0; i++) {
        usleep(1000);
    }
    return __atomic_load_n(&end_count, __ATOMIC_SEQ_CST) == 1;
}

static int is_alive(void)
{
    usleep(20000);
    return __atomic_load_n(&end_count, __ATOMIC_SEQ_CST) == 0;
}

RULE(user_object, the_last_release_ends_it, "cuda.h, cuUserObjectRelease")
{
    start();
    cudaUserObject_t object = create(2);
    OK(cudaUserObjectRetain(object, 1));
    OK(cudaUserObjectRelease(object, 2));
    CHECK(is_alive());
    OK(cudaUserObjectRelease(object, 1));
    CHECK(has_ended());
}

RULE(user_object, its_end_may_not_call_cuda, "cuda.h, cuUserObjectCreate")
{
    start();
    OK(cudaUserObjectRelease(create(1), 1));
    CHECK(has_ended());
    CHECK_EQ(__atomic_load_n(&end_error, __ATOMIC_SEQ_CST), cudaErrorNotPermitted);
}

RULE(user_object, arguments_are_checked, "cuda.h, cuUserObjectCreate")
{
    cudaUserObject_t object;

    start();
    cudaGraph_t graph = graph_of_one();
    CHECK_EQ(cudaUserObjectCreate(&object, NULL, end_object, 0, cudaUserObjectNoDestructorSync),
             cudaErrorInvalidValue);
    CHECK_EQ(cudaUserObjectCreate(&object, NULL, end_object, 1, 0), cudaErrorInvalidValue);
    object = create(1);
    CHECK_EQ(cudaUserObjectRetain(object, 0), cudaErrorInvalidValue);
    CHECK_EQ(cudaGraphReleaseUserObject(graph, object, 1), cudaErrorInvalidValue);
}

RULE(user_object, a_graph_keeps_it, "cuda.h, cuGraphRetainUserObject")
{
    start();
    cudaGraph_t graph = graph_of_one();
    cudaUserObject_t object = create(1);
    OK(cudaGraphRetainUserObject(graph, object, 1, 0));
    OK(cudaUserObjectRelease(object, 1));
    CHECK(is_alive());
    OK(cudaGraphDestroy(graph));
    CHECK(has_ended());
}

RULE(user_object, a_graph_can_let_it_go, "cuda.h, cuGraphReleaseUserObject")
{
    start();
    cudaGraph_t graph = graph_of_one();
    cudaUserObject_t object = create(1);
    OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    CHECK(is_alive());
    OK(cudaGraphReleaseUserObject(graph, object, 1));
    CHECK(has_ended());
}

RULE(user_object, an_exec_keeps_it_too, "guide, CUDA User Objects")
{
    start();
    cudaGraph_t graph = graph_of_one();
    OK(cudaGraphRetainUserObject(graph, create(1), 1, cudaGraphUserObjectMove));
    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphDestroy(graph));
    CHECK(is_alive());
    OK(cudaGraphExecDestroy(exec));
    CHECK(has_ended());
}

/* A word holds the stream: a host function might hold up the end of objects too. */
RULE(user_object, a_launch_keeps_it_to_its_end, "guide, CUDA User Objects")
{
    int *word;

    start();
    OK(cudaMallocHost((void **)&word, sizeof(*word)));
    *word = 0;
    cudaGraph_t graph = graph_of_one();
    OK(cudaGraphRetainUserObject(graph, create(1), 1, cudaGraphUserObjectMove));
    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphDestroy(graph));
    OK(cuStreamWaitValue32(stream, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    CHECK(is_alive());
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    OK(cudaStreamSynchronize(stream));
    CHECK(has_ended());
}

RULE(user_object, an_update_takes_those_of_the_graph, "assumed")
{
    cudaGraphExecUpdateResultInfo info;

    start();
    cudaGraph_t graph = graph_of_one();
    OK(cudaGraphRetainUserObject(graph, create(1), 1, cudaGraphUserObjectMove));
    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphExecUpdate(exec, graph_of_one(), &info));
    CHECK(has_ended());
}
