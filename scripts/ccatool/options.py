# SPDX-License-Identifier: MIT
"""Options that several verbs share, and what all verbs that read a snapshot do first."""
import gc
import sys

from . import snapshot as snapshots
from .failure import Failure, reason
from .text import clean, progress
from .uses import MOMENTS


def add_file(parser):
    parser.add_argument('file', metavar='FILE', help='a snapshot: pickle or JSON, ours or '
                        'PyTorch\'s; - is standard input')


def add_json(parser):
    parser.add_argument('--json', action='store_true', help='print JSON')


def add_device(parser):
    parser.add_argument('-d', '--device', type=int, metavar='N', help='only this device')


def add_moment(parser, remark=''):
    parser.add_argument('--at', choices=MOMENTS, default='now',
                        help=remark + 'which moment (default: now)')


def add_output(parser):
    parser.add_argument('-o', '--output', metavar='OUT', default='-',
                        help='write here (default: -, standard output)')


def add_top(parser, default, what):
    parser.add_argument('-n', '--top', type=positive, default=default, metavar='N',
                        help='at most that many %s (default: %d; 0: all)' % (what, default))


def positive(text):
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def load(path):
    """The snapshot, with progress on a terminal."""
    # A file makes millions of objects that stay: looking for garbage among them costs seconds.
    gc.disable()
    try:
        with progress('reading ' + clean(path)):
            return snapshots.load(path)
    finally:
        gc.freeze()
        gc.enable()


def devices_of(snapshot, args):
    """The ordinals that the user asked for: one, or all of the file."""
    if args.device is None:
        return snapshot.devices()
    if args.device not in snapshot.devices():
        raise Failure('%s: no device %d in it' % (clean(snapshot.path), args.device))
    return [args.device]


def write_output(path, text):
    """Writes text or bytes to a file, or to standard output."""
    data = text.encode('utf-8', 'backslashreplace') if isinstance(text, str) else text
    if path == '-':
        if isinstance(text, bytes) and sys.stdout.isatty():
            raise Failure('binary output does not go to a terminal: use -o FILE')
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    try:
        with open(path, 'wb') as stream:
            stream.write(data)
    except OSError as error:
        raise Failure('%s: %s' % (clean(path), reason(error))) from error
