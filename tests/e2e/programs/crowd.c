/* SPDX-License-Identifier: MIT */
/* Fills 12 of 16 GiB, frees it all, and then asks the device for 10 GiB in another way, chosen by
 * the argument; or for something that needs memory by the way. */
#include <cuda.h>

#include "program.h"
#include "support/sim_kernels.h"

#define GIB ((size_t)1 << 30)

static void show(const char *what, int code)
{
    printf("%s -> %d, last error %d\n", what, code, (int)cudaGetLastError());
}

static void fill_and_free(void)
{
    void *blocks[12];
    for (int i = 0; i < 12; i++) {
        MUST(cudaMalloc(&blocks[i], GIB));
    }
    for (int i = 0; i < 12; i++) {
        MUST(cudaFree(blocks[i]));
    }
}

static void pitch(void)
{
    void *p = NULL;
    size_t pitch = 0;
    show("cudaMallocPitch", (int)cudaMallocPitch(&p, &pitch, 1 << 20, 10240));
    show("cudaFree", (int)cudaFree(p));
}

static void volume(void)
{
    struct cudaPitchedPtr p = {0};
    show("cudaMalloc3D", (int)cudaMalloc3D(&p, (struct cudaExtent){1 << 20, 1024, 10}));
    show("cudaFree", (int)cudaFree(p.ptr));
}

static void managed(void)
{
    void *p = NULL;
    show("cudaMallocManaged", (int)cudaMallocManaged(&p, 10 * GIB, cudaMemAttachGlobal));
    show("cudaFree", (int)cudaFree(p));
}

static void array(void)
{
    cudaArray_t array = NULL;
    struct cudaChannelFormatDesc format = {32, 32, 32, 32, cudaChannelFormatKindFloat};
    show("cudaMallocArray", (int)cudaMallocArray(&array, &format, 65536, 10240, 0));
    show("cudaFreeArray", (int)cudaFreeArray(array));
}

static void array3d(void)
{
    cudaArray_t array = NULL;
    struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    show("cudaMalloc3DArray",
         (int)cudaMalloc3DArray(&array, &format, (struct cudaExtent){16384, 16384, 10}, 0));
    show("cudaFreeArray", (int)cudaFreeArray(array));
}

static void physical(void)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp shape = {0};
    shape.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    shape.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    int code = (int)cuMemCreate(&handle, 10 * GIB, &shape, 0);
    show("cuMemCreate", code);
    if (code == 0) {
        show("cuMemRelease", (int)cuMemRelease(handle));
    }
}

static void pool(void)
{
    cudaMemPool_t pool = NULL;
    struct cudaMemPoolProps shape = {0};
    void *p = NULL;
    shape.allocType = cudaMemAllocationTypePinned;
    shape.location.type = cudaMemLocationTypeDevice;
    show("cudaMemPoolCreate", (int)cudaMemPoolCreate(&pool, &shape));
    show("cudaMallocFromPoolAsync", (int)cudaMallocFromPoolAsync(&p, 10 * GIB, pool, NULL));
    show("cudaFreeAsync", (int)cudaFreeAsync(p, NULL));
    show("cudaMemPoolDestroy", (int)cudaMemPoolDestroy(pool));
}

/* Things that fail once for want of memory, by order of the simulator. */
static void small(void)
{
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode node = NULL;
    show("cuStreamCreate", (int)cuStreamCreate(&stream, 0));
    MUST((cudaError_t)cuGraphCreate(&graph, 0));
    MUST((cudaError_t)cuGraphAddEmptyNode(&node, graph, NULL, 0));
    show("cuGraphInstantiateWithFlags", (int)cuGraphInstantiateWithFlags(&exec, graph, 0));
    show("cuGraphLaunch", (int)cuGraphLaunch(exec, stream));
    show("cuLaunchKernel", (int)sim_launch(sim_kernel_unknown, NULL, NULL));
    show("cuStreamSynchronize", (int)cuStreamSynchronize(stream));
}

static void pinned(void)
{
    void *a = NULL, *b = NULL;
    static char own[8192];
    show("cudaMallocHost", (int)cudaMallocHost(&a, 1 << 20));
    show("cudaHostAlloc", (int)cudaHostAlloc(&b, 2 << 20, cudaHostAllocMapped));
    show("cudaHostRegister", (int)cudaHostRegister(own, sizeof(own), 0));
    show("cudaFreeHost", (int)cudaFreeHost(a));
}

static void capture(void)
{
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    void *p = NULL, *q = NULL;
    MUST(cudaMalloc(&q, 4096));
    MUST(cudaStreamCreate(&stream));
    show("begin", (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    show("cudaMemsetAsync", (int)cudaMemsetAsync(q, 0, 4096, stream));
    show("cudaMallocManaged", (int)cudaMallocManaged(&p, 17 * GIB, cudaMemAttachGlobal));
    show("end", (int)cudaStreamEndCapture(stream, &graph));
    show("cudaGraphDestroy", (int)cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(q));
}

/* A bit of everything, all of it live at the end. */
static void keep(void)
{
    void *p = NULL;
    size_t row = 0;
    cudaArray_t array = NULL;
    cudaMipmappedArray_t mipmap = NULL;
    struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp shape = {0};
    shape.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    shape.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    MUST(cudaMallocManaged(&p, 3 << 20, cudaMemAttachGlobal));
    MUST(cudaMallocManaged(&p, 5 << 20, cudaMemAttachGlobal));
    MUST(cudaFree(p));
    MUST(cudaMallocPitch(&p, &row, 1024, 1000));
    MUST(cudaMallocArray(&array, &format, 256, 256, 0));
    MUST(cudaMallocHost(&p, 1 << 20));
    MUST((cudaError_t)cuMemCreate(&handle, 4 << 20, &shape, 0));
    printf("pitch %zu, mipmap %d\n", row,
           (int)cudaMallocMipmappedArray(&mipmap, &format, (struct cudaExtent){64, 64, 0}, 3, 0));
    (void)cudaGetLastError();
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {{"pitch", pitch},     {"volume", volume},     {"managed", managed}, {"array", array},
            {"array3d", array3d}, {"physical", physical}, {"pool", pool},       {"small", small},
            {"pinned", pinned},   {"capture", capture},   {"keep", keep}};

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (argc < 3) {
        fill_and_free();
    } else {
        MUST(cudaFree(NULL));
    }
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(ways[i].name, what) == 0) {
            ways[i].run();
        }
    }
    fflush(stdout);
    if (strcmp(what, "keep") != 0) {
        fill_and_free();
    }
    return 0;
}
