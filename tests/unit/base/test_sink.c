/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sink.h"
#include "unit/base/random.h"

enum { OUT_BYTES = 200000 };

static struct cca_sink sink;
static unsigned char out[OUT_BYTES];
static size_t out_len;

/* Stands in for the C library's write on descriptor SINK_FD. */
enum { SINK_FD = 1234 };
static struct {
    size_t most;     /* bytes taken by one call */
    int interrupts;  /* every n-th call is interrupted */
    int fails_at;    /* this call fails with ENOSPC */
    bool takes_none; /* every call returns 0 */
    int calls;
} device;

ssize_t write(int fd, const void *data, size_t len)
{
    if (fd != SINK_FD) {
        return syscall(SYS_write, fd, data, len);
    }
    device.calls++;
    if (device.calls == device.fails_at) {
        errno = ENOSPC;
        return -1;
    }
    if (device.interrupts != 0 && device.calls % device.interrupts == 0) {
        errno = EINTR;
        return -1;
    }
    if (device.takes_none) {
        return 0;
    }
    len = device.most != 0 && len > device.most ? device.most : len;
    memcpy(out + out_len, data, len);
    out_len += len;
    return (ssize_t)len;
}

static int take(void *user, const void *data, size_t len)
{
    int *fails_at = user;

    if (*fails_at > 0 && --*fails_at == 0) {
        return -EPIPE;
    }
    memcpy(out + out_len, data, len);
    out_len += len;
    return 0;
}

static int setup(void **state)
{
    (void)state;
    memset(&device, 0, sizeof(device));
    out_len = 0;
    cca_sink_init_fd(&sink, SINK_FD);
    return 0;
}

/* Pieces of all lengths around the buffer's, OUT_BYTES in total. */
static void write_pattern(void)
{
    static unsigned char pattern[OUT_BYTES];
    uint64_t rng = random_seed(4);
    size_t at = 0;

    for (size_t i = 0; i < OUT_BYTES; i++) {
        pattern[i] = (unsigned char)(i * 7 + i / 251);
    }
    while (at < OUT_BYTES) {
        size_t len = random_next(&rng) % (random_next(&rng) % 8 == 0 ? 40000 : 300);

        len = len > OUT_BYTES - at ? OUT_BYTES - at : len;
        cca_sink_bytes(&sink, pattern + at, len);
        at += len;
    }
}

static void assert_pattern(void)
{
    assert_int_equal(out_len, OUT_BYTES);
    for (size_t i = 0; i < OUT_BYTES; i++) {
        if (out[i] != (unsigned char)(i * 7 + i / 251)) {
            fail_msg("byte %zu differs", i);
        }
    }
}

static void nothing_is_written_before_the_buffer_is_full(void **state)
{
    (void)state;
    cca_sink_str(&sink, "a");
    cca_sink_byte(&sink, 'b');
    cca_sink_u64(&sink, UINT64_MAX);
    cca_sink_i64(&sink, INT64_MIN);
    cca_sink_i64(&sink, 5);
    cca_sink_bytes(&sink, NULL, 0);
    assert_int_equal(device.calls, 0);
    assert_int_equal(sink.written_bytes, 0);
    assert_int_equal(cca_sink_finish(&sink), 0);
    assert_int_equal(device.calls, 1);
    out[out_len] = 0;
    assert_string_equal(out, "ab18446744073709551615-92233720368547758085");
    assert_int_equal(sink.written_bytes, out_len);
}

static void finish_without_content_writes_nothing(void **state)
{
    (void)state;
    assert_int_equal(cca_sink_finish(&sink), 0);
    assert_int_equal(device.calls, 0);
}

static void pieces_of_any_length_arrive_in_order(void **state)
{
    (void)state;
    write_pattern();
    assert_int_equal(cca_sink_finish(&sink), 0);
    assert_pattern();
    assert_int_equal(sink.written_bytes, OUT_BYTES);
}

static void short_and_interrupted_writes_are_continued(void **state)
{
    (void)state;
    device.most = 1000;
    device.interrupts = 3;
    write_pattern();
    assert_int_equal(cca_sink_finish(&sink), 0);
    assert_pattern();
}

static void first_error_sticks(void **state)
{
    size_t len;

    (void)state;
    device.fails_at = 2;
    errno = 17;
    write_pattern();
    assert_int_equal(errno, 17);
    assert_int_equal(device.calls, 2);
    len = out_len;
    cca_sink_str(&sink, "more");
    assert_int_equal(cca_sink_finish(&sink), -ENOSPC);
    assert_int_equal(cca_sink_finish(&sink), -ENOSPC);
    assert_int_equal(out_len, len);
    assert_int_equal(device.calls, 2);
}

static void error_of_the_last_flush_is_reported(void **state)
{
    (void)state;
    device.fails_at = 1;
    cca_sink_str(&sink, "text");
    assert_int_equal(cca_sink_finish(&sink), -ENOSPC);
    assert_int_equal(sink.written_bytes, 0);
}

static void descriptor_that_takes_nothing_is_an_error(void **state)
{
    (void)state;
    device.takes_none = true;
    cca_sink_str(&sink, "text");
    assert_int_equal(cca_sink_finish(&sink), -EIO);
}

static void closed_descriptor_is_an_error(void **state)
{
    (void)state;
    cca_sink_init_fd(&sink, -1);
    cca_sink_str(&sink, "text");
    assert_int_equal(cca_sink_finish(&sink), -EBADF);
}

static void callback_gets_everything_in_order(void **state)
{
    int never = 0;

    (void)state;
    cca_sink_init_fn(&sink, take, &never);
    write_pattern();
    assert_int_equal(cca_sink_finish(&sink), 0);
    assert_pattern();
    assert_int_equal(device.calls, 0);
}

static void error_of_the_callback_sticks(void **state)
{
    int fails_at = 2;

    (void)state;
    cca_sink_init_fn(&sink, take, &fails_at);
    write_pattern();
    assert_int_equal(cca_sink_finish(&sink), -EPIPE);
    assert_int_equal(fails_at, 0);
    assert_int_equal(sink.written_bytes, out_len);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(nothing_is_written_before_the_buffer_is_full, setup),
    cmocka_unit_test_setup(finish_without_content_writes_nothing, setup),
    cmocka_unit_test_setup(pieces_of_any_length_arrive_in_order, setup),
    cmocka_unit_test_setup(short_and_interrupted_writes_are_continued, setup),
    cmocka_unit_test_setup(first_error_sticks, setup),
    cmocka_unit_test_setup(error_of_the_last_flush_is_reported, setup),
    cmocka_unit_test_setup(descriptor_that_takes_nothing_is_an_error, setup),
    cmocka_unit_test_setup(closed_descriptor_is_an_error, setup),
    cmocka_unit_test_setup(callback_gets_everything_in_order, setup),
    cmocka_unit_test_setup(error_of_the_callback_sticks, setup),
};

CCA_TEST_MAIN(tests)
