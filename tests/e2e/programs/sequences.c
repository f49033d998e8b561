/* SPDX-License-Identifier: MIT */
/* Random sequences of calls of the memory API, right and wrong ones: `sequences FIRST COUNT
 * [plain|timed]` (plain: without captures; timed: without questions whose answer is up to time)
 * plays the sequences FIRST .. FIRST + COUNT - 1, each of a seed of its own, and prints what every
 * call returned, with the runtime's last error behind it. A call that is natively undefined (use
 * after free, a handle that is gone) is never made. What is chosen depends on the seed alone, what
 * is done with a choice on the codes that were returned. */
#include "program.h"

enum { SLOTS = 12, STREAMS = 3, STEPS_MAX = 60, DEVICES_MAX = 2 };

enum kind { NONE, PLAIN, ASYNC, MANAGED, PITCH, GRAPH };

static struct slot {
    enum kind kind;
    int device;
    void *ptr;
    size_t bytes;
    int is_captured;     /* used by a capture that goes on */
    int value;           /* of every byte, -1 = unknown */
    cudaStream_t stream; /* the one it is used on, NULL = none yet */
} slots[SLOTS];

static struct stream {
    cudaStream_t handle;
    int device, is_capturing;
} streams[STREAMS];

static uint64_t state;
static int device_count, sequence, step, has_captures, has_queries;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1dull >> 16;
}

static cudaError_t say(const char *what, cudaError_t code)
{
    printf("%d.%d %s %d %d\n", sequence, step, what, (int)code, (int)cudaPeekAtLastError());
    return code;
}

static int is_capturing(void)
{
    int count = 0;
    for (int i = 0; i < STREAMS; i++) {
        count += streams[i].is_capturing;
    }
    return count;
}

static size_t pick_size(uint64_t random)
{
    static const size_t sizes[] = {1,       511,      512,           4096,
                                   65536,   1 << 20,  (1 << 20) + 1, 3 << 20,
                                   5 << 20, 11 << 20, 20 << 20,      33 << 20};
    return sizes[random % (sizeof(sizes) / sizeof(sizes[0]))];
}

static void put(struct slot *slot, enum kind kind, void *ptr, size_t bytes, cudaStream_t stream)
{
    int device = 0;
    cudaGetDevice(&device);
    *slot = (struct slot){kind, device, ptr, bytes, 0, -1, stream};
}

static void step_malloc(struct slot *slot, uint64_t random)
{
    void *ptr = (void *)(uintptr_t)0x77;
    size_t bytes = pick_size(random);
    if (say("malloc", cudaMalloc(&ptr, bytes)) == cudaSuccess && ptr != NULL) {
        put(slot, PLAIN, ptr, bytes, NULL);
    }
}

static void step_malloc_async(struct slot *slot, struct stream *stream, uint64_t random)
{
    void *ptr = NULL;
    size_t bytes = pick_size(random);
    enum kind kind = stream->is_capturing ? GRAPH : ASYNC;
    if (say("mallocAsync", cudaMallocAsync(&ptr, bytes, stream->handle)) == cudaSuccess) {
        put(slot, kind, ptr, bytes, stream->handle);
        slot->device = stream->device;
    }
}

static void step_malloc_other(struct slot *slot, uint64_t random)
{
    void *ptr = NULL;
    size_t pitch = 0, bytes = pick_size(random);
    if (random >> 20 & 1) {
        if (say("mallocManaged", cudaMallocManaged(&ptr, bytes, cudaMemAttachGlobal)) ==
            cudaSuccess) {
            put(slot, MANAGED, ptr, bytes, NULL);
        }
    } else if (say("mallocPitch", cudaMallocPitch(&ptr, &pitch, 1000, 1 + bytes / 1024)) ==
               cudaSuccess) {
        put(slot, PITCH, ptr, pitch, NULL);
    }
}

/* What must fail, or do nothing. */
static void step_wrong(struct slot *slot, struct stream *stream, uint64_t random)
{
    void *ptr = (void *)(uintptr_t)0x55;
    size_t pitch = 0, free_bytes = 0, total_bytes = 0;
    static char host[64];
    switch (random % 16) {
    case 0: say("malloc(0)", cudaMalloc(&ptr, 0)); break;
    case 1: say("malloc(null)", cudaMalloc(NULL, 16)); break;
    case 2: say("malloc(max)", cudaMalloc(&ptr, SIZE_MAX)); break;
    case 3: say("malloc(half)", cudaMalloc(&ptr, SIZE_MAX / 2 + 1)); break;
    case 4: say("malloc(1T)", cudaMalloc(&ptr, (size_t)1 << 40)); break;
    case 5: say("free(null)", cudaFree(NULL)); break;
    case 6: say("free(host)", cudaFree(host)); break;
    case 7: say("free(3)", cudaFree((void *)(uintptr_t)3)); break;
    case 8:
        if (slot->kind != NONE && slot->bytes > 256 && slot->kind != MANAGED) {
            say("free(inside)", cudaFree((char *)slot->ptr + 256));
        }
        break;
    case 9: say("mallocAsync(null)", cudaMallocAsync(NULL, 16, stream->handle)); break;
    case 10: say("mallocAsync(1T)", cudaMallocAsync(&ptr, (size_t)1 << 40, stream->handle)); break;
    case 11: say("freeAsync(null)", cudaFreeAsync(NULL, stream->handle)); break;
    case 12: say("freeAsync(3)", cudaFreeAsync((void *)(uintptr_t)3, stream->handle)); break;
    case 13: say("mallocPitch(max)", cudaMallocPitch(&ptr, &pitch, SIZE_MAX / 4, 8)); break;
    case 14: say("memGetInfo", cudaMemGetInfo(&free_bytes, &total_bytes)); break;
    case 15: say("mallocAsync(0)", cudaMallocAsync(&ptr, 0, stream->handle)); break;
    default: break;
    }
}

static void step_free(struct slot *slot, struct stream *stream, uint64_t random)
{
    int again = (int)(random >> 24 & 7) == 0;
    if (slot->kind == NONE || slot->kind == GRAPH || slot->is_captured) {
        return;
    }
    cudaError_t code;
    void *ptr = slot->ptr;
    if (slot->kind == ASYNC || (slot->kind == PLAIN && (random >> 20 & 3) == 0)) {
        cudaStream_t on = slot->stream != NULL ? slot->stream : stream->handle;
        code = say("freeAsync", cudaFreeAsync(ptr, on));
        again = 0; /* a second one is undefined: the first may still be pending */
    } else {
        code = say("free", cudaFree(ptr));
    }
    if (code == cudaSuccess) {
        slot->kind = NONE;
        if (again) {
            say("free again", cudaFree(ptr));
        }
    }
}

static void step_fill(struct slot *slot, struct stream *stream, uint64_t random)
{
    int value = (int)(random & 0x7f);
    if ((slot->kind != PLAIN && slot->kind != ASYNC) || slot->device != stream->device ||
        (slot->stream != NULL && slot->stream != stream->handle)) {
        return;
    }
    size_t bytes = slot->bytes < 4096 ? slot->bytes : 4096;
    if (say("memsetAsync", cudaMemsetAsync(slot->ptr, value, bytes, stream->handle)) ==
        cudaSuccess) {
        slot->stream = stream->handle;
        slot->is_captured |= stream->is_capturing;
        slot->value = stream->is_capturing ? -1 : value;
    }
}

static void step_look(struct slot *slot)
{
    unsigned char byte = 0xff;
    if (slot->kind != PLAIN || slot->value < 0) {
        return;
    }
    if (say("deviceSynchronize", cudaDeviceSynchronize()) == cudaSuccess &&
        say("memcpy", cudaMemcpy(&byte, slot->ptr, 1, cudaMemcpyDeviceToHost)) == cudaSuccess) {
        printf("%d.%d byte %s\n", sequence, step, byte == slot->value ? "right" : "WRONG");
    }
}

static void step_stream(struct stream *stream, uint64_t random)
{
    switch (random % 4) {
    case 0: say("streamSynchronize", cudaStreamSynchronize(stream->handle)); break;
    case 1:
        if (has_queries) {
            say("streamQuery", cudaStreamQuery(stream->handle));
        }
        break;
    case 2: say("deviceSynchronize", cudaDeviceSynchronize()); break;
    case 3:
        say("streamSynchronize(0)",
            cudaStreamSynchronize(random >> 8 & 1 ? cudaStreamLegacy : cudaStreamPerThread));
        break;
    default: break;
    }
}

static void end_capture(struct stream *stream)
{
    cudaGraph_t graph = NULL;
    say("endCapture", cudaStreamEndCapture(stream->handle, &graph));
    stream->is_capturing = 0;
    if (graph != NULL) {
        say("graphDestroy", cudaGraphDestroy(graph));
    }
    for (int i = 0; i < SLOTS; i++) {
        slots[i].is_captured &= slots[i].stream != stream->handle;
        if (slots[i].kind == GRAPH && slots[i].stream == stream->handle) {
            slots[i].kind = NONE;
        }
    }
}

static void step_capture(struct stream *stream, uint64_t random)
{
    if (stream->is_capturing) {
        end_capture(stream);
    } else if (say("beginCapture", cudaStreamBeginCapture(
                                       stream->handle, (enum cudaStreamCaptureMode)(random % 3))) ==
               cudaSuccess) {
        stream->is_capturing = 1;
    }
}

static void step_device(uint64_t random)
{
    int device = (int)(random % 5);
    if (device < device_count || device == 4) {
        say("setDevice", cudaSetDevice(device == 4 ? 99 : device));
    }
}

/* All of it is gone, and natively no handle may be used any more. */
static void step_reset(void)
{
    int device = 0;
    cudaGetDevice(&device);
    if (is_capturing() != 0 || say("deviceReset", cudaDeviceReset()) != cudaSuccess) {
        return;
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].device == device) {
            slots[i].kind = NONE;
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].device == device) {
            streams[i] = (struct stream){NULL, device, 0};
            say("streamCreate",
                cudaStreamCreateWithFlags(&streams[i].handle,
                                          i == 1 ? cudaStreamDefault : cudaStreamNonBlocking));
        }
    }
}

static void play_step(void)
{
    uint64_t what = draw() % 100, random = draw();
    struct slot *slot = &slots[draw() % SLOTS];
    struct stream *stream = &streams[draw() % STREAMS];
    if (what < 22 && slot->kind == NONE) {
        step_malloc(slot, random);
    } else if (what < 36 && slot->kind == NONE) {
        step_malloc_async(slot, stream, random);
    } else if (what < 40 && slot->kind == NONE) {
        step_malloc_other(slot, random);
    } else if (what < 64) {
        step_free(slot, stream, random);
    } else if (what < 74) {
        step_fill(slot, stream, random);
    } else if (what < 78) {
        step_look(slot);
    } else if (what < 84) {
        step_stream(stream, random);
    } else if (what < 93) {
        step_wrong(slot, stream, random);
    } else if (what < 96) {
        if (has_captures) {
            step_capture(stream, random);
        }
    } else if (what < 98) {
        step_device(random);
    } else if (what < 99 && random % 4 == 0) {
        step_reset();
    } else {
        say("getLastError", cudaGetLastError());
    }
}

static void begin_sequence(void)
{
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = (struct stream){NULL, i == 2 ? device_count - 1 : 0, 0};
        MUST(cudaSetDevice(streams[i].device));
        MUST(cudaStreamCreateWithFlags(&streams[i].handle,
                                       i == 1 ? cudaStreamDefault : cudaStreamNonBlocking));
    }
    MUST(cudaSetDevice(0));
}

static void end_sequence(void)
{
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].is_capturing) {
            end_capture(&streams[i]);
        }
    }
    for (int device = 0; device < device_count; device++) {
        MUST(cudaSetDevice(device));
        say("last deviceSynchronize", cudaDeviceSynchronize());
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].kind != NONE && slots[i].kind != GRAPH) {
            say("last free", cudaFree(slots[i].ptr));
        }
        slots[i].kind = NONE;
    }
    for (int i = 0; i < STREAMS; i++) {
        say("streamDestroy", cudaStreamDestroy(streams[i].handle));
    }
    say("last getLastError", cudaGetLastError());
}

int main(int argc, char **argv)
{
    int first = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2]) : 10;
    has_queries = argc <= 3 || strcmp(argv[3], "timed") != 0;
    MUST(cudaGetDeviceCount(&device_count));
    device_count = device_count > DEVICES_MAX ? DEVICES_MAX : device_count;
    for (sequence = first; sequence < first + count; sequence++) {
        state = (uint64_t)sequence * 0x9e3779b97f4a7c15ull + 1;
        step = 0;
        (void)draw();
        begin_sequence();
        int steps = 10 + (int)(draw() % (STEPS_MAX - 10));
        for (step = 1; step <= steps; step++) {
            play_step();
        }
        end_sequence();
    }
    printf("played\n");
    return 0;
}
