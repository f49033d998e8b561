/* SPDX-License-Identifier: MIT */
#include "snapshot/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/format.h"
#include "base/write.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

static const char default_name[] = "cca-%h-%p-%n";

enum { NUMBERED_MAX = 10000, TEMPORARY_TRIES = 1000, LOWEST_FD = 3, FILE_MODE = 0600 };

/* One file on its way: paths live in the arena, the dump thread's stack is small. */
struct dump {
    struct cca_model *model;
    const struct cca_dump_request *request;
    struct cca_sink *sink;
    char *temporary; /* PATH_MAX bytes */
    char *final;     /* PATH_MAX bytes */
};

static void put_name_part(struct cca_text *text, const char *value)
{
    for (; value != NULL && *value != '\0'; value++) {
        cca_text_char(text, *value == '/' ? '_' : *value);
    }
}

static void put_two_digits(struct cca_text *text, uint64_t value)
{
    cca_text_char(text, (char)('0' + value / 10 % 10));
    cca_text_char(text, (char)('0' + value % 10));
}

/* 20260731T235959, UTC; libc's conversions read the time zone's files. */
static void put_time(struct cca_text *text, int64_t time_us)
{
    uint64_t seconds = time_us > 0 ? (uint64_t)time_us / 1000000 : 0;
    uint64_t second = seconds % 86400;
    /* Counted from 1 March of year 0, so that the leap day ends a year. */
    uint64_t day = seconds / 86400 + 719468;
    uint64_t era = day / 146097;
    uint64_t day_of_era = day % 146097;
    uint64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t shifted_month = (5 * day_of_year + 2) / 153;
    uint64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;

    cca_text_u64(text, era * 400 + year_of_era + (month <= 2 ? 1 : 0));
    put_two_digits(text, month);
    put_two_digits(text, day_of_year - (153 * shifted_month + 2) / 5 + 1);
    cca_text_char(text, 'T');
    put_two_digits(text, second / 3600);
    put_two_digits(text, second / 60 % 60);
    put_two_digits(text, second % 60);
}

static const char *base_name(const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    return slash != NULL ? slash + 1 : path;
}

/* Puts the value of %`letter`; false when there is none of that letter. */
static bool put_value(struct cca_text *text, const struct cca_model *model, uint64_t sequence,
                      char letter)
{
    switch (letter) {
    case 'h': put_name_part(text, model->host); break;
    case 'p': cca_text_i64(text, model->pid); break;
    case 'r':
        if (model->rank >= 0) {
            cca_text_i64(text, model->rank);
        } else {
            cca_text_str(text, "none");
        }
        break;
    case 'n': cca_text_u64(text, sequence); break;
    case 'e': put_name_part(text, base_name(model->program)); break;
    case 't': put_time(text, model->dump_time_us); break;
    case 'c': put_name_part(text, model->cause); break;
    case '%': cca_text_char(text, '%'); break;
    default: return false;
    }
    return true;
}

static void expand(struct cca_text *text, const struct cca_model *model, uint64_t sequence,
                   const char *pattern)
{
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at == '%' && put_value(text, model, sequence, at[1])) {
            at++;
        } else {
            cca_text_char(text, *at);
        }
    }
}

bool cca_dump_file_expand(const struct cca_model *model, const struct cca_dump_request *request,
                          char *buf, size_t cap)
{
    struct cca_text text;

    cca_text_init(&text, buf, cap);
    if (request->pattern[0] != '/') {
        cca_text_str(&text, request->directory);
        cca_text_char(&text, '/');
    }
    expand(&text, model, request->sequence, request->pattern);
    if (text.len > 0 && buf[text.len - 1] == '/') {
        expand(&text, model, request->sequence, default_name);
    }
    return !text.truncated;
}

static bool is_interrupted(int rc)
{
    return rc < 0 && errno == EINTR;
}

/* Opens a new hidden file beside `stem`. */
static int create_temporary(const struct dump *dump, const char *stem)
{
    size_t folder_bytes = (size_t)(base_name(stem) - stem);
    int fd = -1;

    for (unsigned attempt = 0; attempt < TEMPORARY_TRIES; attempt++) {
        struct cca_text text;

        cca_text_init(&text, dump->temporary, PATH_MAX);
        cca_text_bytes(&text, stem, folder_bytes);
        cca_text_str(&text, ".cca-");
        cca_text_i64(&text, dump->model->pid);
        cca_text_char(&text, '-');
        cca_text_u64(&text, dump->request->sequence);
        cca_text_char(&text, '-');
        cca_text_u64(&text, attempt);
        cca_text_str(&text, ".tmp");
        if (text.truncated) {
            return -ENAMETOOLONG;
        }
        do {
            fd = open(dump->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY,
                      FILE_MODE);
        } while (is_interrupted(fd));
        if (fd >= 0 || errno != EEXIST) {
            break;
        }
    }
    return fd >= 0 ? fd : -errno;
}

/* A program that closed its standard streams may print into whatever takes their numbers. */
int cca_dump_file_lift(int fd)
{
    int lifted;

    if (fd >= LOWEST_FD) {
        return fd;
    }
    lifted = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (lifted < 0) {
        lifted = -errno;
    }
    close(fd);
    return lifted;
}

/* The file under way. */
struct target {
    const struct cca_dump_request *request;
    uint64_t written_bytes;
    int fd;
};

static int write_part(void *user, const void *data, size_t len)
{
    struct target *target = user;
    int rc = cca_write_fully(target->fd, data, len);

    target->written_bytes += len;
    if (rc == 0 && target->request->tell != NULL) {
        target->request->tell(target->request->user, target->written_bytes);
    }
    return rc;
}

static int write_temporary(const struct dump *dump, int fd)
{
    struct target target = {.request = dump->request, .fd = fd};
    int rc;

    cca_sink_init_fn(dump->sink, write_part, &target);
    dump->sink->fd = fd;
    dump->request->write(dump->model, dump->sink);
    rc = cca_sink_finish(dump->sink);
    /* Some file systems report a failed write only here. */
    if (close(fd) != 0 && errno != EINTR && rc == 0) {
        rc = -errno;
    }
    return rc;
}

/* For file systems that can neither rename without replacing nor link. */
static int rename_onto_own(const char *from, const char *to)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, FILE_MODE);

    if (fd < 0) {
        return -errno;
    }
    close(fd);
    if (rename(from, to) != 0) {
        int rc = -errno;

        unlink(to);
        return rc;
    }
    return 0;
}

/* -EEXIST when the name is taken. */
static int rename_new(const char *from, const char *to)
{
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno == EEXIST) {
        return -EEXIST;
    }
    if (link(from, to) == 0) {
        unlink(from);
        return 0;
    }
    if (errno == EEXIST) {
        return -EEXIST;
    }
    return rename_onto_own(from, to);
}

static int publish(const struct dump *dump, const char *stem)
{
    int rc = -EEXIST;

    for (unsigned number = 0; number < NUMBERED_MAX && rc == -EEXIST; number++) {
        struct cca_text text;

        cca_text_init(&text, dump->final, PATH_MAX);
        cca_text_str(&text, stem);
        if (number > 0) {
            cca_text_char(&text, '-');
            cca_text_u64(&text, number);
        }
        cca_text_str(&text, dump->request->suffix);
        rc = text.truncated ? -ENAMETOOLONG : rename_new(dump->temporary, dump->final);
    }
    return rc;
}

static int write_file(const struct dump *dump, const char *stem, bool *is_unwritable_out)
{
    int fd = create_temporary(dump, stem);
    int rc;

    if (fd < 0) {
        *is_unwritable_out = true;
        return fd;
    }
    fd = cca_dump_file_lift(fd);
    rc = fd >= 0 ? write_temporary(dump, fd) : fd;
    if (rc == 0) {
        rc = publish(dump, stem);
    }
    if (rc != 0) {
        unlink(dump->temporary);
    }
    return rc;
}

/* Tries the same name in other folders; -ENOENT when there is none left to try. */
static int write_elsewhere(const struct dump *dump, const char *stem, char *other)
{
    const char *folders[] = {dump->request->tmp_directory, "/tmp"};
    int rc = -ENOENT;

    for (size_t i = 0; i < CCA_ARRAY_LEN(folders); i++) {
        bool is_unwritable = false;
        struct cca_text text;

        if (folders[i] == NULL || folders[i][0] != '/') {
            continue;
        }
        cca_text_init(&text, other, PATH_MAX);
        cca_text_str(&text, folders[i]);
        cca_text_char(&text, '/');
        cca_text_str(&text, base_name(stem));
        rc = text.truncated ? -ENAMETOOLONG : write_file(dump, other, &is_unwritable);
        if (!is_unwritable) {
            break;
        }
    }
    return rc;
}

static int take_buffers(struct dump *dump, char **stem_out, char **other_out)
{
    dump->sink = cca_model_array(dump->model, 1, sizeof(*dump->sink));
    dump->temporary = cca_model_array(dump->model, PATH_MAX, 1);
    *stem_out = cca_model_array(dump->model, PATH_MAX, 1);
    *other_out = cca_model_array(dump->model, PATH_MAX, 1);
    return dump->sink != NULL && dump->temporary != NULL && *stem_out != NULL && *other_out != NULL
               ? 0
               : -ENOMEM;
}

int cca_dump_file_write(struct cca_model *model, const struct cca_dump_request *request,
                        struct cca_dump_result *result)
{
    struct dump dump = {.model = model, .request = request, .final = result->path};
    int saved_errno = errno;
    bool is_unwritable = false;
    char *stem, *other;
    int rc;

    result->path[0] = '\0';
    result->is_elsewhere = false;
    rc = take_buffers(&dump, &stem, &other);
    if (rc != 0) {
        return rc;
    }
    if (!cca_dump_file_expand(model, request, stem, PATH_MAX)) {
        rc = -ENAMETOOLONG;
    } else {
        rc = write_file(&dump, stem, &is_unwritable);
    }
    if (is_unwritable && write_elsewhere(&dump, stem, other) == 0) {
        result->is_elsewhere = true;
        rc = 0;
    }
    if (rc != 0) {
        struct cca_text text;

        cca_text_init(&text, result->path, sizeof(result->path));
        cca_text_str(&text, stem);
        cca_text_str(&text, request->suffix);
    }
    errno = saved_errno;
    return rc;
}
