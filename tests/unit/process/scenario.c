/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/reentry.h"
#include "process/process.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#endif
#ifndef UNDER_THREAD_SANITIZER
#define UNDER_THREAD_SANITIZER 0
#endif

static const char messages_name[] = "../messages";

static _Atomic uint64_t next_address = 0x7f0000000000;
static atomic_bool allocations_fail;

static struct cca_status plain_alloc(void *self, size_t bytes, uint64_t *addr_out)
{
    (void)self;
    if (atomic_load(&allocations_fail)) {
        return (struct cca_status){CCA_NO_MEMORY, 2};
    }
    *addr_out = atomic_fetch_add(&next_address, (bytes + 0x1fffff) & ~(uint64_t)0x1fffff);
    return cca_status_ok();
}

static struct cca_status plain_free(void *self, uint64_t addr)
{
    (void)self, (void)addr;
    return cca_status_ok();
}

static struct cca_status plain_info(void *self, size_t *free_out, size_t *total_out)
{
    (void)self;
    *free_out = *total_out = (size_t)16 << 30;
    return cca_status_ok();
}

static struct cca_status plain_create(void *self, cca_device_event *event_out)
{
    (void)self;
    *event_out = 1;
    return cca_status_ok();
}

static void plain_destroy(void *self, cca_device_event event)
{
    (void)self, (void)event;
}

static struct cca_status plain_event(void *self, cca_device_event event)
{
    (void)self, (void)event;
    return cca_status_ok();
}

static struct cca_status plain_synchronize(void *self)
{
    (void)self;
    return cca_status_ok();
}

static const struct cca_device_ops plain_ops = {
    .mem_alloc = plain_alloc,
    .mem_free = plain_free,
    .mem_info = plain_info,
    .event_create = plain_create,
    .event_destroy = plain_destroy,
    .event_record = plain_event,
    .event_query = plain_event,
    .event_wait = plain_event,
    .synchronize = plain_synchronize,
};

void fail_device_allocations(void)
{
    atomic_store(&allocations_fail, true);
}

struct cca_heap *bring_context_up(void)
{
    struct cca_device device = {.ops = &plain_ops, .ordinal = 0, .has_context_events = true};
    struct cca_heap *heap;

    cca_process_context_is_up(13000, 13000);
    CHECK(cca_process_allocator() != NULL);
    heap = cca_allocator_attach(cca_process_allocator(), &device, 0x1000);
    CHECK(heap != NULL);
    return heap;
}

struct cca_heap *load_with_context(void)
{
    cca_process_load();
    CHECK(cca_process_is_active());
    return bring_context_up();
}

uint64_t hook_alloc(struct cca_heap *heap, size_t bytes)
{
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = bytes, .key = CCA_KEY_READY};
    struct cca_status status;
    uint64_t addr = 0;

    if (!cca_reentry_enter()) {
        return 0;
    }
    cca_process_describe(&request, false, 0);
    status = cca_allocator_alloc(cca_process_allocator(), heap, &request, &addr);
    if (status.kind == CCA_NO_MEMORY) {
        cca_process_out_of_memory(heap, &request);
    }
    if (status.kind == CCA_UNSUPPORTED && plain_alloc(NULL, bytes, &addr).kind == CCA_OK) {
        status = cca_status_ok();
        cca_allocator_note_passed(cca_process_allocator(), heap, &request, addr);
    }
    cca_reentry_leave();
    return status.kind == CCA_OK ? addr : 0;
}

void hook_free(uint64_t addr)
{
    struct cca_request request = {.api = CCA_API_FREE, .key = CCA_KEY_READY};

    if (addr != 0 && cca_reentry_enter()) {
        cca_process_describe(&request, true, 0);
        (void)cca_allocator_free(cca_process_allocator(), addr, &request);
        cca_reentry_leave();
    }
}

int count_occurrences(const char *text, const char *part)
{
    int count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

int count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

int count_files(void)
{
    DIR *dir = opendir(".");
    int count = 0;

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

bool wait_for_files(int count)
{
    for (int i = 0; i < 10000; i++) {
        if (count_files() >= count) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

int wait_for_child(int pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void scenario_failed(const char *file, int line, const char *cond)
{
    dprintf(STDERR_FILENO, "%s:%d: %s does not hold\n", file, line, cond);
    _exit(99);
}

static void set_variables(const char *const *variables)
{
    for (bool is_found = true; is_found;) {
        is_found = false;
        for (char **entry = environ; *entry != NULL && !is_found; entry++) {
            if (strncmp(*entry, "CCA_", 4) == 0) {
                char name[256];

                snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
                unsetenv(name);
                is_found = true;
            }
        }
    }
    /* libunwind takes a mutex when a thread ends, after the sanitizer has let go of the thread. */
    if (UNDER_THREAD_SANITIZER) {
        setenv("CCA_UNWINDER", "none", 1);
    }
    for (; variables != NULL && *variables != NULL; variables++) {
        putenv((char *)(uintptr_t)*variables);
    }
}

static _Noreturn void run_child(const char *folder, void (*fn)(void), const char *const *variables)
{
    int fd;

    if (chdir(folder) != 0) {
        _exit(98);
    }
    fd = open(messages_name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    close(fd);
    set_variables(variables);
    fn();
    cca_process_unload();
    _exit(0);
}

static void read_messages(const char *folder, struct outcome *outcome)
{
    char path[512];
    FILE *file;
    size_t len = 0;

    snprintf(path, sizeof(path), "%s/%s", folder, messages_name);
    file = fopen(path, "r");
    if (file != NULL) {
        len = fread(outcome->messages, 1, sizeof(outcome->messages) - 1, file);
        fclose(file);
    }
    outcome->messages[len] = '\0';
    unlink(path);
}

static void empty_folder(const char *folder, struct outcome *outcome)
{
    DIR *dir = opendir(folder);

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char path[1024];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        outcome->files++;
        outcome->hidden += entry->d_name[0] == '.';
        snprintf(outcome->first_file, sizeof(outcome->first_file), "%.255s", entry->d_name);
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(folder);
}

struct outcome run_scenario(void (*fn)(void), const char *const *variables)
{
    char top[] = "/tmp/cca-test-XXXXXX", folder[64];
    struct outcome outcome = {0};
    int pid;

    if (mkdtemp(top) == NULL) {
        abort();
    }
    snprintf(folder, sizeof(folder), "%s/run", top);
    mkdir(folder, 0700);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        run_child(folder, fn, variables);
    }
    outcome.status = wait_for_child(pid);
    read_messages(folder, &outcome);
    empty_folder(folder, &outcome);
    rmdir(top);
    if (outcome.status == 99) {
        fputs(outcome.messages, stderr);
    }
    return outcome;
}
