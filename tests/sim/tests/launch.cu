/* SPDX-License-Identifier: MIT */
/* An ordinary program, built by nvcc: kernels with <<<>>>, a variable, and a wrong use that the
 * simulator finds by the sizes of parameters in the code. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

__device__ int counter[4];

/* The simulator knows this one by name. */
__global__ void sim_fill(void *p, size_t bytes, int value)
{
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        ((char *)p)[i] = (char)value;
    }
}

struct pair {
    int number;
    char letters[20];
};

__global__ void unknown(int *p, pair two, short number)
{
    *p = two.number + number;
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int use(bool is_dead)
{
    char *p;
    int *q;
    char host[64];
    int numbers[4] = {1, 2, 3, 4};
    cudaFuncAttributes attributes;
    cudaStream_t stream;

    CHECK(cudaStreamCreate(&stream) == cudaSuccess);
    CHECK(cudaMalloc(&p, 64) == cudaSuccess);
    CHECK(cudaMalloc(&q, 64) == cudaSuccess);
    sim_fill<<<1, 32, 0, stream>>>(p, 64, 7);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaMemcpy(host, p, 64, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(host[63] == 7);
    CHECK(cudaMemcpyToSymbol(counter, numbers, sizeof(numbers)) == cudaSuccess);
    memset(numbers, 0, sizeof(numbers));
    CHECK(cudaMemcpyFromSymbol(numbers, counter, 8, 8) == cudaSuccess);
    CHECK(numbers[1] == 4);
    CHECK(cudaFuncGetAttributes(&attributes, unknown) == cudaSuccess);
    CHECK(attributes.binaryVersion == 80);
    unknown<<<1, 1, 0, stream>>>(q, pair(), 3);
    unknown<<<1, 1, 0, stream>>>((int *)(p + 64), pair(), 3);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    sim_fill<<<0, 32>>>(p, 64, 7);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    if (is_dead) {
        CHECK(cudaFree(q) == cudaSuccess);
        unknown<<<1, 1, 0, stream>>>(q, pair(), 3);
        CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    }
    return 0;
}

/* With SIMCUDA_RACES=args two kernels given the same pointer are taken to write there. */
static int use_in_two_streams()
{
    int *q;
    cudaStream_t streams[2];

    CHECK(cudaMalloc(&q, 64) == cudaSuccess);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) == cudaSuccess);
        unknown<<<1, 1, 0, streams[i]>>>(q, pair(), 3);
    }
    return 0;
}

/* The status of this program with an argument. */
static int run_self(const char *argument, const char *races)
{
    int status;

    pid_t child = fork();
    if (child == 0) {
        setenv("SIMCUDA_RACES", races, 1);
        execl("/proc/self/exe", "launch", argument, (char *)NULL);
        _exit(126);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **)
{
    int status;

    if (argc > 1) {
        return use_in_two_streams();
    }
    CHECK(run_self("two", "") == 0);
    CHECK(run_self("two", "args") == 97);

    pid_t child = fork();
    if (child == 0) {
        exit(use(true));
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 97);
    return use(false);
}
