/* SPDX-License-Identifier: MIT */
/* Gives memory to a second process: `ipc BYTES [HOW]`. The second of two blocks is exported, so
 * that under a cache it need not stand at the start of its allocation. offset  the program asks
 * where in its allocation it stands, and tells the other again   two blocks of another pair are
 * tried after the first keep    the exported block is not freed fresh   it is freed, and another
 * one of its size is not EXPORT is by which name the handle is asked for: the runtime's, the
 * driver's, or one that is only looked up at run time. */
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>

#include "program.h"

struct message {
    cudaIpcMemHandle_t handle;
    size_t offset, bytes;
};

#define EXPORT_RUNTIME   1
#define EXPORT_DRIVER    2
#define EXPORT_LOOKED_UP 3

static cudaError_t export_memory(cudaIpcMemHandle_t *handle, void *memory)
{
#if EXPORT == EXPORT_RUNTIME
    return cudaIpcGetMemHandle(handle, memory);
#elif EXPORT == EXPORT_DRIVER
    return (cudaError_t)cuIpcGetMemHandle((CUipcMemHandle *)handle, (CUdeviceptr)memory);
#else
    cudaError_t (*found)(cudaIpcMemHandle_t *, void *) = NULL;
    *(void **)&found = dlsym(RTLD_DEFAULT, "cudaIpcGetMemHandle");
    return found != NULL ? found(handle, memory) : cudaErrorUnknown;
#endif
}

static int be_the_other(void)
{
    struct message message;
    void *base = NULL;
    if (read(0, &message, sizeof(message)) != sizeof(message)) {
        return 4;
    }
    MUST(cudaIpcOpenMemHandle(&base, message.handle, cudaIpcMemLazyEnablePeerAccess));
    int is_right = all_bytes_are((char *)base + message.offset, message.bytes, 0x5a);
    MUST(cudaMemset((char *)base + message.offset, 0x33, message.bytes));
    MUST(cudaDeviceSynchronize());
    MUST(cudaIpcCloseMemHandle(base));
    printf("the other sees %s bytes\n", is_right ? "the right" : "OTHER");
    return 0;
}

static void give(const char *self, const struct message *message, const void *memory)
{
    int pipes[2], status = -1;
    fflush(stdout);
    if (pipe(pipes) != 0) {
        exit(5);
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[0], 0);
        close(pipes[1]);
        execl(self, self, "other", (char *)NULL);
        _exit(126);
    }
    if (write(pipes[1], message, sizeof(*message)) != sizeof(*message)) {
        exit(6);
    }
    close(pipes[0]);
    close(pipes[1]);
    waitpid(child, &status, 0);
    printf("the other ended with %d, its bytes are %s\n", WEXITSTATUS(status),
           all_bytes_are(memory, message->bytes, 0x33) ? "here" : "NOT here");
}

static void share(const char *self, size_t bytes, const char *how)
{
    struct message message = {.bytes = bytes};
    void *first = NULL, *second = NULL;
    MUST(cudaMalloc(&first, bytes));
    MUST(cudaMalloc(&second, bytes));
    MUST(cudaMemset(first, 0x11, bytes));
    MUST(cudaMemset(second, 0x5a, bytes));
    MUST(cudaDeviceSynchronize());
    if (strcmp(how, "offset") == 0) {
        CUdeviceptr base = 0;
        size_t base_bytes = 0;
        MUST((cudaError_t)cuMemGetAddressRange(&base, &base_bytes, (CUdeviceptr)second));
        message.offset = (size_t)((CUdeviceptr)second - base);
    }
    SHOW(export_memory(&message.handle, second));
    if (memcmp(&message.handle, &(cudaIpcMemHandle_t){0}, sizeof(message.handle)) != 0) {
        give(self, &message, second);
    }
    MUST(cudaFree(first));
    if (strcmp(how, "keep") != 0) {
        MUST(cudaFree(second));
    }
    if (strcmp(how, "fresh") == 0) {
        void *other = NULL;
        MUST(cudaMalloc(&first, bytes));
        MUST(cudaMalloc(&other, bytes));
        printf("the same address: %s\n", first == second || other == second ? "yes" : "no");
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    if (argc > 1 && strcmp(argv[1], "other") == 0) {
        return be_the_other();
    }
    share(argv[0], argc > 1 ? (size_t)atol(argv[1]) : 1 << 20, how);
    if (strcmp(how, "again") == 0) {
        share(argv[0], argc > 1 ? (size_t)atol(argv[1]) : 1 << 20, "");
    }
    return 0;
}
