/* SPDX-License-Identifier: MIT */
/* Gives memory to a second process: `ipc BYTES [offset]`. The second of two blocks is exported, so
 * that under a cache it need not stand at the start of its allocation; with `offset` the program
 * asks where in its allocation it stands, and tells the other. */
#include <cuda.h>
#include <sys/wait.h>

#include "program.h"

struct message {
    cudaIpcMemHandle_t handle;
    size_t offset, bytes;
};

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

int main(int argc, char **argv)
{
    void *first = NULL, *second = NULL;
    struct message message = {0};
    if (argc > 1 && strcmp(argv[1], "other") == 0) {
        return be_the_other();
    }
    message.bytes = argc > 1 ? (size_t)atol(argv[1]) : 1 << 20;
    MUST(cudaMalloc(&first, message.bytes));
    MUST(cudaMalloc(&second, message.bytes));
    MUST(cudaMemset(first, 0x11, message.bytes));
    MUST(cudaMemset(second, 0x5a, message.bytes));
    MUST(cudaDeviceSynchronize());
    if (argc > 2) {
        CUdeviceptr base = 0;
        size_t bytes = 0;
        MUST((cudaError_t)cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)second));
        message.offset = (size_t)((CUdeviceptr)second - base);
    }
    SHOW(cudaIpcGetMemHandle(&message.handle, second));
    if (memcmp(&message.handle, &(cudaIpcMemHandle_t){0}, sizeof(message.handle)) != 0) {
        give(argv[0], &message, second);
    }
    MUST(cudaFree(first));
    MUST(cudaFree(second));
    return 0;
}
