/* SPDX-License-Identifier: MIT */
/* The process: start in order, stop, and the only mutable global of the library. The hooks reach
 * everything through here. */
#ifndef CCA_PROCESS_PROCESS_H
#define CCA_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/allocator.h"
#include "base/compiler.h"
#include "config/config.h"
#include "observe/event.h"
#include "process/unmanaged.h"

/* From the library's constructor: reads the variables, remembers the working directory and which
 * file descriptor 2 is, registers the fork handlers. Starts no thread, opens no file, loads
 * nothing, prints only complaints about bad variables, and those only once CUDA is used. AT_SECURE:
 * mode off, no variable is read. */
void cca_process_load(void);

/* From the destructor: the exit dump and the summary, when a context was ever up. No CUDA calls. */
void cca_process_unload(void);

/* Hooks do nothing of their own unless this holds: not off, not a forked child. */
bool cca_process_is_active(void);

const struct cca_config *cca_process_config(void);

/* The allocator; NULL while inactive or when there was no memory for it. */
struct cca_allocator *cca_process_allocator(void);

/* New settings in PyTorch's grammar (cca_allocator_set_conf), kept for the allocator to come where
 * there is none yet. Any thread, no lock held. */
int cca_process_set_conf(const char *text, cca_config_complaint_fn complain) CCA_MUST_CHECK;

/* A context is up and will be served: on the first call in the process the unwinder is loaded, the
 * dump thread started, the signal handler installed, complaints and the banner printed. Cheap
 * afterwards. No lock may be held. `driver_version` and `runtime_version` as CUDA reports them. */
void cca_process_context_is_up(int driver_version, int runtime_version);

/* Fills stack (as the settings want it for an allocation or a free) and thread of a request.
 * `skip`: innermost frames that are the library's own, not counting this function. Call it directly
 * from the hook. */
void cca_process_describe(struct cca_request *request, bool is_free, int skip);

/* The same from further in: the innermost frame is to be the one that `caller` returns to, where it
 * is on the stack; NULL: none is looked for. */
void cca_process_describe_from(struct cca_request *request, bool is_free, const void *caller,
                               int skip);

/* Around the real dlclose of a handle, outside the guard: destructors allocate and free. Modules
 * that call stacks passed through are remembered with their names, or kept loaded where the
 * settings want it. `real`: the genuine dlclose. Begin returns what end takes. */
int cca_process_unload_begin(void *handle, int (*real)(void *));
void cca_process_unload_end(int token);

/* Which heap and key a stream of the caller's has: the part of the public functions that knows
 * CUDA. `device` -1: whichever a created stream belongs to. `caller`: the program's code, which
 * tells the runtime. A device that is current but has not been used yet comes up. Inside the guard,
 * no lock held. -ENODEV: the device's context is not up; -EINVAL: the stream is not one of the
 * device; -ENOSYS: the driver cannot tell streams apart. */
typedef int (*cca_place_fn)(const void *caller, int device, void *stream,
                            struct cca_heap **heap_out, cca_key *key_out);

/* Set once by the preload layer in its constructor. */
void cca_process_set_place(cca_place_fn place);
/* Calls it; -ENODEV when there is none. */
int cca_process_place(const void *caller, int device, void *stream, struct cca_heap **heap_out,
                      cca_key *key_out) CCA_MUST_CHECK;

/* The calling thread's kernel id. */
uint32_t cca_process_thread(void);

/* How often an API was seen, served by us, passed through, and how often a look-up handed out a
 * form of it that is not known here; shown in the snapshot. `row` is the position in hooks.def.
 * Lock-free. */
enum cca_coverage {
    CCA_COVERAGE_SEEN,
    CCA_COVERAGE_SERVED,
    CCA_COVERAGE_PASSED,
    CCA_COVERAGE_MISSED,
    CCA_COVERAGE_KINDS
};
enum { CCA_COVERAGE_ROWS_MAX = 256 };
void cca_process_count(int row, enum cca_coverage what);

/* Whether any row was ever seen. */
bool cca_process_has_seen_calls(void);

/* What those rows are called, set once by the preload layer in its constructor. */
struct cca_coverage_name {
    const char *api;
    const char *door; /* "runtime", "driver" */
};
void cca_process_name_coverage(const struct cca_coverage_name *names, int count);

/* Before the first context: nothing will be cached, as with CCA_MODE=count; one line on stderr
 * gives the reason. False when memory is cached already: nothing has changed. */
bool cca_process_stand_aside(const char *why);

/* Caching ends, with one line on stderr that names the API the program called, or the reason. */
void cca_process_stop_caching(const char *api);
void cca_process_stop_caching_because(const char *reason);

/* What the driver itself gave the program within `took_ns`: accounted for, and played to the
 * estimate of CCA_MODE=count. */
void cca_process_passed_alloc(struct cca_heap *heap, const struct cca_request *request,
                              uint64_t addr, uint64_t took_ns);

/* The program's own free of such memory: before the real call, and after it with the time it took
 * and what the first returned. */
int cca_process_passed_free(uint64_t addr, const struct cca_request *request);
void cca_process_passed_free_took(int token, uint64_t took_ns);

/* Memory of a kind that is not served was had from CUDA, or given back: see unmanaged.h. `library`:
 * who asked. */
void cca_process_unmanaged_add(enum cca_unmanaged_kind kind, uint64_t address, int device,
                               const char *api, const char *library, uint64_t bytes);
void cca_process_unmanaged_remove(enum cca_unmanaged_kind kind, uint64_t address);

/* A live block of ours was given to another process: snapshots mark it. What else the address may
 * be is left. */
void cca_process_exported(uint64_t addr);

/* A request failed for want of memory: an out-of-memory snapshot where the settings want one. */
void cca_process_out_of_memory(struct cca_heap *heap, const struct cca_request *request);

#endif
