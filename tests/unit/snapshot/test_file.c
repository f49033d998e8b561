/* SPDX-License-Identifier: MIT */
#include "snapshot/file.h"

#include "fixture.h"

#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/write_pickle.h"

static struct cca_model model;
static struct cca_dump_result result;

static int setup(void **state)
{
    (void)state;
    fixture_small(&model);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cca_model_fini(&model);
    fixture_remove_folder();
    return 0;
}

static void write_hello(struct cca_model *unused, struct cca_sink *sink)
{
    (void)unused;
    cca_sink_str(sink, "hello");
}

static struct cca_dump_request request_of(const char *pattern)
{
    return (struct cca_dump_request){
        .pattern = pattern,
        .suffix = ".txt",
        .directory = fixture_folder(),
        .sequence = 5,
        .write = write_hello,
    };
}

/* Entries of a folder below the test's own, all of them. */
static size_t count_files(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

static void make_folder(const char *name, mode_t mode, char *path, size_t cap)
{
    snprintf(path, cap, "%s/%s", fixture_folder(), name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void assert_in_folder(const char *name)
{
    char path[PATH_MAX];
    char *text = fixture_read(name);

    snprintf(path, sizeof(path), "%s/%s", fixture_folder(), name);
    assert_string_equal(result.path, path);
    assert_string_equal(text, "hello");
    free(text);
}

static void pattern_values(void **state)
{
    static const struct {
        const char *pattern, *expanded;
    } rows[] = {
        {"/a/plain", "/a/plain"},
        {"plain", "/base/plain"},
        {"sub/%p", "/base/sub/4321"},
        {"/%h-%p-%r-%n-%e-%c", "/host-4321-none-5-app-si_gnal"},
        {"/%t", "/20231114T221325"},
        {"/100%%", "/100%"},
        {"/%%p", "/%p"},
        {"/%x-%q%", "/%x-%q%"},
        {"/out/", "/out/cca-host-4321-5"},
        {"", "/base/cca-host-4321-5"},
        {"%%", "/base/%"},
    };
    char buf[64];

    (void)state;
    model.cause = "si/gnal";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cca_dump_request request = request_of(rows[i].pattern);

        request.directory = "/base";
        assert_true(cca_dump_file_expand(&model, &request, buf, sizeof(buf)));
        assert_string_equal(buf, rows[i].expanded);
    }
}

static void times_of_the_pattern(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {
        {0, "/19700101T000000"},          {-5, "/19700101T000000"},
        {951782399, "/20000228T235959"},  {951782400, "/20000229T000000"},
        {951868800, "/20000301T000000"},  {1709164800, "/20240229T000000"},
        {1735689599, "/20241231T235959"}, {4102444800, "/21000101T000000"},
        {4107542400, "/21000301T000000"},
    };
    const struct cca_dump_request request = request_of("/%t");
    char buf[64];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        model.dump_time_us = rows[i].seconds * 1000000;
        assert_true(cca_dump_file_expand(&model, &request, buf, sizeof(buf)));
        assert_string_equal(buf, rows[i].text);
    }
}

static void missing_values_are_empty(void **state)
{
    struct cca_dump_request request = request_of("/%h%e%c.");
    char buf[8];

    (void)state;
    model.host = model.program = model.cause = NULL;
    assert_true(cca_dump_file_expand(&model, &request, buf, sizeof(buf)));
    assert_string_equal(buf, "/.");
    request.pattern = "/longer than the buffer";
    assert_false(cca_dump_file_expand(&model, &request, buf, sizeof(buf)));
}

static void file_is_whole_and_private(void **state)
{
    const struct cca_dump_request request = request_of("name-%n");
    struct stat status;

    (void)state;
    errno = ENOTTY;
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_int_equal(errno, ENOTTY);
    assert_in_folder("name-5.txt");
    assert_false(result.is_elsewhere);
    assert_int_equal(stat(result.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(count_files(fixture_folder()), 1);
}

static void nothing_is_overwritten(void **state)
{
    const struct cca_dump_request request = request_of("name");
    char dangling[PATH_MAX];

    (void)state;
    snprintf(dangling, sizeof(dangling), "%s/name-1.txt", fixture_folder());
    assert_int_equal(symlink("/nowhere/at/all", dangling), 0);
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_in_folder("name.txt");
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_in_folder("name-2.txt");
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_in_folder("name-3.txt");
    assert_int_equal(count_files(fixture_folder()), 4);
}

static void leftover_temporary_files_are_passed_over(void **state)
{
    const struct cca_dump_request request = request_of("name");
    char path[PATH_MAX];
    int fd;

    (void)state;
    snprintf(path, sizeof(path), "%s/.cca-4321-5-0.tmp", fixture_folder());
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_in_folder("name.txt");
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(count_files(fixture_folder()), 2);
}

static void missing_folder_falls_back(void **state)
{
    struct cca_dump_request request = request_of("no/such/folder/name");
    char other[256], path[PATH_MAX];

    (void)state;
    make_folder("tmp", 0700, other, sizeof(other));
    request.tmp_directory = other;
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_true(result.is_elsewhere);
    snprintf(path, sizeof(path), "%s/name.txt", other);
    assert_string_equal(result.path, path);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(count_files(other), 1);
}

static void bad_tmp_directory_falls_back_to_tmp(void **state)
{
    static const char *const bad[] = {NULL, "", "relative", "/no/such/folder"};
    struct cca_dump_request request = request_of("no/such/folder/cca-test-%n");

    (void)state;
    request.sequence = (uint64_t)getpid();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        request.tmp_directory = bad[i];
        assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
        assert_true(result.is_elsewhere);
        assert_memory_equal(result.path, "/tmp/cca-test-", 14);
        assert_int_equal(unlink(result.path), 0);
    }
}

static void unwritable_folder_falls_back(void **state)
{
    struct cca_dump_request request = request_of("locked/name");
    char locked[256], other[256];
    uid_t uid = geteuid();

    (void)state;
    make_folder("locked", 0500, locked, sizeof(locked));
    make_folder("tmp", 0777, other, sizeof(other));
    request.tmp_directory = other;
    if (uid == 0) {
        /* Root may write everywhere. */
        assert_int_equal(chmod(fixture_folder(), 0755), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_int_equal(seteuid(uid), 0);
    assert_true(result.is_elsewhere);
    assert_int_equal(count_files(locked), 0);
    assert_int_equal(count_files(other), 1);
}

static size_t writes_left;

static int fail_later(void *user, const void *data, size_t len)
{
    int *fd = user;

    if (writes_left-- == 0) {
        return -ENOSPC;
    }
    return write(*fd, data, len) == (ssize_t)len ? 0 : -EIO;
}

static void write_and_fail(struct cca_model *unused, struct cca_sink *sink)
{
    static int fd;

    fd = sink->fd;
    sink->write = fail_later;
    sink->user = &fd;
    cca_write_pickle(unused, sink);
}

/* Whichever write fails, nothing is left. */
static void failed_writes_leave_no_file(void **state)
{
    struct cca_dump_request request = request_of("name");
    size_t n = 0;

    (void)state;
    cca_model_fini(&model);
    fixture_big(&model, 2000, 100, 50);
    request.write = write_and_fail;
    for (;; n++) {
        int rc;

        writes_left = n;
        rc = cca_dump_file_write(&model, &request, &result);
        if (rc == 0) {
            break;
        }
        assert_int_equal(rc, -ENOSPC);
        assert_false(result.is_elsewhere);
        assert_string_equal(strrchr(result.path, '/'), "/name.txt");
        assert_int_equal(count_files(fixture_folder()), 0);
    }
    assert_true(n > 5);
    assert_int_equal(count_files(fixture_folder()), 1);
}

static void kernel_errors_leave_no_file(void **state)
{
    struct cca_dump_request request = request_of("name");
    struct rlimit old, small;

    (void)state;
    request.write = cca_write_pickle;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(cca_dump_file_write(&model, &request, &result), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(count_files(fixture_folder()), 0);
}

static void names_that_are_too_long_fail_cleanly(void **state)
{
    static char pattern[PATH_MAX + 100];
    struct cca_dump_request request = request_of(pattern);

    (void)state;
    memset(pattern, 'x', 300);
    assert_int_equal(cca_dump_file_write(&model, &request, &result), -ENAMETOOLONG);
    assert_int_equal(count_files(fixture_folder()), 0);
    memset(pattern, 'x', sizeof(pattern) - 1);
    assert_int_equal(cca_dump_file_write(&model, &request, &result), -ENAMETOOLONG);
    assert_int_equal(count_files(fixture_folder()), 0);
}

static void full_arena_is_no_memory(void **state)
{
    const struct cca_dump_request request = request_of("name");

    (void)state;
    model.arena.used_bytes = model.arena.reserved_bytes;
    assert_int_equal(cca_dump_file_write(&model, &request, &result), -ENOMEM);
    assert_int_equal(count_files(fixture_folder()), 0);
}

static int fd_during_write;

static void note_fd(struct cca_model *unused, struct cca_sink *sink)
{
    fd_during_write = sink->fd;
    write_hello(unused, sink);
}

/* A program that closed its standard input must not read or write our file by accident. */
static void standard_streams_are_left_alone(void **state)
{
    struct cca_dump_request request = request_of("name");
    int saved = dup(0);

    (void)state;
    request.write = note_fd;
    close(0);
    assert_int_equal(cca_dump_file_write(&model, &request, &result), 0);
    assert_true(fd_during_write > 2);
    assert_int_equal(fcntl(0, F_GETFD), -1);
    assert_int_equal(fcntl(fd_during_write, F_GETFD), -1);
    assert_int_equal(dup2(saved, 0), 0);
    close(saved);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    ROW(pattern_values),
    ROW(times_of_the_pattern),
    ROW(missing_values_are_empty),
    ROW(file_is_whole_and_private),
    ROW(nothing_is_overwritten),
    ROW(leftover_temporary_files_are_passed_over),
    ROW(missing_folder_falls_back),
    ROW(bad_tmp_directory_falls_back_to_tmp),
    ROW(unwritable_folder_falls_back),
    ROW(failed_writes_leave_no_file),
    ROW(kernel_errors_leave_no_file),
    ROW(names_that_are_too_long_fail_cleanly),
    ROW(full_arena_is_no_memory),
    ROW(standard_streams_are_left_alone),
};

CCA_TEST_MAIN(tests)
