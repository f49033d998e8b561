/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/format.h"
#include "base/write.h"

enum {
    MESSAGES_MAX = 100,
    LINE_MAX_BYTES = 2048,
    READER_WAIT_MS = 100,
    KEPT_MAX = 64,
    KEPT_BYTES = 256
};

static dev_t stderr_dev;
static ino_t stderr_ino;
static atomic_bool is_initialised;
static atomic_int max_level = CCA_LOG_WARN;
static atomic_int messages;
static char file_path[PATH_MAX]; /* "" = stderr; written before there are other threads */

/* Written once each, before `is_ready`. */
static struct {
    char text[KEPT_BYTES];
    atomic_bool is_ready;
} kept[KEPT_MAX];
static atomic_int kept_count;

void cca_log_init(void)
{
    int saved_errno = errno;
    struct stat st;

    atomic_store_explicit(&is_initialised, false, memory_order_relaxed);
    if (fstat(STDERR_FILENO, &st) == 0) {
        stderr_dev = st.st_dev;
        stderr_ino = st.st_ino;
        atomic_store_explicit(&is_initialised, true, memory_order_release);
    }
    errno = saved_errno;
}

void cca_log_set_level(enum cca_log_level level)
{
    atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

bool cca_log_stderr_is_ours(void)
{
    int saved_errno = errno;
    struct stat st;
    bool is_ours = atomic_load_explicit(&is_initialised, memory_order_acquire) &&
                   fstat(STDERR_FILENO, &st) == 0 && st.st_dev == stderr_dev &&
                   st.st_ino == stderr_ino;

    errno = saved_errno;
    return is_ours;
}

static int open_file(void)
{
    return open(file_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
}

bool cca_log_set_file(const char *path)
{
    int saved_errno = errno;
    size_t bytes = path != NULL ? strlen(path) + 1 : 0;
    int fd;

    file_path[0] = '\0';
    if (bytes <= 1 || bytes > sizeof(file_path)) {
        return bytes <= 1;
    }
    memcpy(file_path, path, bytes);
    fd = open_file();
    if (fd < 0) {
        file_path[0] = '\0';
    } else {
        close(fd);
    }
    errno = saved_errno;
    return fd >= 0;
}

static void write_file(const char *bytes, size_t len)
{
    int saved_errno = errno;
    int fd = open_file();

    if (fd >= 0) {
        (void)cca_write_fully(fd, bytes, len);
        close(fd);
    }
    errno = saved_errno;
}

/* Whether there is room for PIPE_BUF bytes. Nobody may be reading: a pipe that is full, a terminal
 * that is held. Nobody waits a second time until there is room again. */
static bool stderr_has_room(void)
{
    static atomic_bool is_stuck;
    bool was_stuck = atomic_load_explicit(&is_stuck, memory_order_relaxed);
    bool has_room = cca_write_has_room(STDERR_FILENO, was_stuck ? 0 : READER_WAIT_MS);

    if (has_room == was_stuck) {
        atomic_store_explicit(&is_stuck, !has_room, memory_order_relaxed);
    }
    return has_room;
}

/* What finds no room is dropped. */
static void write_stderr(const char *bytes, size_t len)
{
    while (len > 0 && stderr_has_room()) {
        size_t piece = len < PIPE_BUF ? len : PIPE_BUF;

        (void)cca_write_fully(STDERR_FILENO, bytes, piece);
        bytes += piece;
        len -= piece;
    }
}

static void put(const char *bytes, size_t len)
{
    if (file_path[0] != '\0') {
        write_file(bytes, len);
    } else if (cca_log_stderr_is_ours()) {
        write_stderr(bytes, len);
    }
}

/* Whether there is anywhere to write. */
static bool has_reader(void)
{
    return file_path[0] != '\0' || cca_log_stderr_is_ours();
}

/* Whether there is room for one more message; says once that there is none. */
static bool count_message(void)
{
    static const char last[] = "cca: further messages are dropped\n";
    int before = atomic_load_explicit(&messages, memory_order_relaxed);

    if (before > MESSAGES_MAX) {
        return false;
    }
    before = atomic_fetch_add_explicit(&messages, 1, memory_order_relaxed);
    if (before == MESSAGES_MAX) {
        put(last, sizeof(last) - 1);
    }
    return before < MESSAGES_MAX;
}

static void keep(const char *text, size_t len)
{
    int place = atomic_load_explicit(&kept_count, memory_order_relaxed);

    if (place >= KEPT_MAX || (place = atomic_fetch_add(&kept_count, 1)) >= KEPT_MAX) {
        return;
    }
    memcpy(kept[place].text, text, len < KEPT_BYTES - 1 ? len : KEPT_BYTES - 1);
    atomic_store_explicit(&kept[place].is_ready, true, memory_order_release);
}

const char *cca_log_kept(int index)
{
    if (index < 0 || index >= KEPT_MAX ||
        !atomic_load_explicit(&kept[index].is_ready, memory_order_acquire)) {
        return NULL;
    }
    return kept[index].text;
}

static CCA_PRINTF(3, 0) void log_line(enum cca_log_level level, bool must_keep, const char *fmt,
                                      va_list args)
{
    static const char prefix[] = "cca: ";
    char line[LINE_MAX_BYTES];
    size_t len = sizeof(prefix) - 1;
    bool is_wanted = (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);

    if (!must_keep && !is_wanted) {
        return;
    }
    memcpy(line, prefix, len);
    len += cca_format_v(line + len, sizeof(line) - len, fmt, args);
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\n' || line[i] == '\r') {
            line[i] = ' ';
        }
    }
    if (must_keep) {
        keep(line + sizeof(prefix) - 1, len - (sizeof(prefix) - 1));
    }
    line[len++] = '\n';
    if (is_wanted && has_reader() && count_message()) {
        put(line, len);
    }
}

void cca_log(enum cca_log_level level, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    log_line(level, level <= CCA_LOG_WARN, fmt, args);
    va_end(args);
}

void cca_log_and_keep(enum cca_log_level level, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    log_line(level, true, fmt, args);
    va_end(args);
}

void cca_log_once(int *said, enum cca_log_level level, const char *fmt, ...)
{
    va_list args;

    if (__atomic_load_n(said, __ATOMIC_RELAXED) != 0 ||
        __atomic_exchange_n(said, 1, __ATOMIC_RELAXED) != 0) {
        return;
    }
    va_start(args, fmt);
    log_line(level, level <= CCA_LOG_WARN, fmt, args);
    va_end(args);
}

void cca_log_text(const char *text)
{
    put(text, strlen(text));
}
