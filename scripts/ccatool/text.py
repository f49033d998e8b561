# SPDX-License-Identifier: MIT
"""How numbers, times and foreign strings are shown, and when colours are used."""
import contextlib
import os
import sys
import threading
import time

UNITS = ('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')


def size(count):
    """Bytes with three significant digits: 512 B, 1.25 GiB."""
    value = float(abs(count))
    unit = 0
    while value >= 999.5 and unit + 1 < len(UNITS):
        value /= 1024
        unit += 1
    if unit == 0:
        digits = '%d' % value
    else:
        digits = '%.*f' % (2 if value < 9.995 else 1 if value < 99.95 else 0, value)
    return '%s%s %s' % ('-' if count < 0 else '', digits, UNITS[unit])


def number(count):
    """An integer with thousands separated."""
    return format(count, ',')


def counted(count, noun):
    """`1 block`, `2,000 blocks`."""
    return '%s %s%s' % (number(count), noun, '' if count == 1 else 's')


def alike(count, total, largest):
    """`40 x 512 KiB` of several that are all of one size, else nothing."""
    if count > 1 and count * largest == total:
        return '%s x %s' % (number(count), size(largest))
    return ''


def percent(part, whole):
    """A share with one digit; 100.0 % is said only of all, 0.0 % only of nothing."""
    if not whole:
        return '-'
    value = 100.0 * part / whole
    if 0 < value < 0.1:
        return '<0.1 %'
    if 99.9 < value < 100:
        return '>99.9 %'
    return '%.1f %%' % value


def duration(us):
    """Microseconds as a length of time that a person reads at once."""
    if us < 1000:
        return '%d us' % us
    if us < 1000000:
        return '%.1f ms' % (us / 1e3)
    seconds = us / 1e6
    if seconds < 120:
        return '%.1f s' % seconds
    minutes = int(seconds // 60)
    if minutes < 120:
        return '%d min %02d s' % (minutes, int(seconds) % 60)
    hours = minutes // 60
    if hours < 72:
        return '%d h %02d min' % (hours, minutes % 60)
    return '%d d %02d h' % (hours // 24, hours % 24)


def moment(us):
    """Unix microseconds as a date in UTC, so that the text does not depend on the reader's zone."""
    try:
        return time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(us // 1000000))
    except (OverflowError, OSError, ValueError):
        return '%d us' % us


def cuda_version(value):
    """13000 -> 13.0"""
    return '%d.%d' % (value // 1000, value % 1000 // 10)


def clean(value):
    """A string from a file or a process, with nothing in it that a terminal would obey."""
    return ''.join(char if char.isprintable() else ascii(char)[1:-1] for char in str(value))


def shortened(value, width):
    """The string, its middle replaced by `...` where it is longer than `width`."""
    if len(value) <= width:
        return value
    tail = (width - 3) // 3
    return value[:width - 3 - tail] + '...' + value[len(value) - tail:]


class Style:
    """Bold and colour on a terminal; plain text otherwise, and where NO_COLOR is set."""

    def __init__(self, stream):
        self.is_on = (stream.isatty() and not os.environ.get('NO_COLOR')
                      and os.environ.get('TERM') != 'dumb')

    def _wrap(self, code, value):
        return '\033[%sm%s\033[0m' % (code, value) if self.is_on else value

    def strong(self, value):
        return self._wrap('1', value)

    def faint(self, value):
        return self._wrap('2', value)

    def warn(self, value):
        return self._wrap('33', value)


@contextlib.contextmanager
def progress(message):
    """Says on a terminal what takes so long, from the first second on."""
    if not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()

    def show():
        shown.set()
        sys.stderr.write(message + ' ...')
        sys.stderr.flush()

    timer = threading.Timer(1.0, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if shown.is_set():
            sys.stderr.write('\r\033[K')
            sys.stderr.flush()
