/* SPDX-License-Identifier: MIT */
/* Things of the program that graphs keep alive. */
#include "driver.h"
#include "rt_api.h"

cudaError_t rt_cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr, cudaHostFn_t destroy,
                                    unsigned int initialRefcount, unsigned int flags)
{
    RT_CALL(cuUserObjectCreate, object_out, ptr, destroy, initialRefcount, flags);
}

cudaError_t rt_cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    RT_CALL(cuUserObjectRetain, object, count);
}

cudaError_t rt_cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    RT_CALL(cuUserObjectRelease, object, count);
}

cudaError_t rt_cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                         unsigned int count, unsigned int flags)
{
    RT_CALL(cuGraphRetainUserObject, graph, object, count, flags);
}

cudaError_t rt_cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                          unsigned int count)
{
    RT_CALL(cuGraphReleaseUserObject, graph, object, count);
}
