# SPDX-License-Identifier: MIT
"""cca dump: asks a running program for a snapshot and waits for the file."""
import json
import os
import time

from . import signals, snapshot
from .dump_files import SUFFIXES, DumpFiles
from .failure import FINDING, FINE, Failure, reason
from .place import LIBRARY_NAME
from .procfs import Process
from .text import clean, progress

HELP = 'ask a running program for a snapshot, and print its path'
USAGE = '[--timeout SECONDS] [--json] PID'
DESCRIPTION = '''Sends the dump signal to a program that runs with the library, waits until the
snapshot is complete, and prints its path (one line per format). Refuses when the library is not in
the process or the process does not handle the signal: the signal would end the program.

Exit status: 0 written, 1 nothing came in time, 2 refused or bad usage.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()
POLL_S = 0.02


def add_arguments(parser):
    parser.add_argument('pid', type=int, metavar='PID')
    parser.add_argument('--timeout', type=float, default=30.0, metavar='SECONDS',
                        help='how long to wait for the file (default: 30)')
    parser.add_argument('--json', action='store_true', help='print JSON')


def main(args):
    if args.pid <= 0:
        raise Failure('%d: not a process number' % args.pid)
    process = Process(args.pid)
    number = dump_signal(process)
    files = DumpFiles(process)
    send(process, number)
    with progress('waiting for process %d' % args.pid):
        paths = wait(process, files, args.timeout, number)
    if args.json:
        print(json.dumps({'pid': args.pid, 'signal': signals.name_of(number), 'paths': paths}))
    else:
        for path in paths:
            print(path)
    return FINE


def dump_signal(process):
    """The number of the signal that makes the process dump; a Failure where it would do harm."""
    if not process.maps_file(LIBRARY_NAME):
        raise Failure('process %d does not have %s loaded' % (process.pid, LIBRARY_NAME))
    text = process.environment().get('CCA_DUMP_SIGNAL') or 'USR1'
    if text.strip().lower() == 'none':
        raise Failure('process %d runs with CCA_DUMP_SIGNAL=none' % process.pid)
    # A value the library refuses leaves its default in force.
    number = signals.number_of(text) or signals.number_of('USR1')
    if not process.catches(number):
        raise Failure('process %d does not handle %s: it has no CUDA context yet, or CCA_DUMP_ON '
                      'leaves out `signal`' % (process.pid, signals.name_of(number)))
    return number


def send(process, number):
    try:
        os.kill(process.pid, number)
    except OSError as error:
        raise Failure('process %d: %s' % (process.pid, reason(error))) from error


def wait(process, files, timeout_s, number):
    """Paths of the complete files. Files are renamed into place, so one that is there is whole."""
    own_pid = process.own_pid()
    deadline = time.monotonic() + timeout_s
    judged = {}
    while True:
        alive = process.is_alive()
        for path in files.new():
            if path not in judged:
                judged[path] = is_answer(path, own_pid)
        answers = [path for path, fits in judged.items() if fits]
        if {os.path.splitext(path)[1] for path in answers} >= set(files.suffixes):
            return answers
        if not alive or time.monotonic() >= deadline:
            if answers:
                return answers
            break
        time.sleep(POLL_S)
    if not alive:
        raise Failure('process %d ended before its snapshot was complete' % process.pid, FINDING)
    raise Failure('no snapshot of process %d within %g s in %s: the program may have a handler of '
                  'its own for %s' % (
                      process.pid, timeout_s, clean(', '.join(files.folders())),
                      signals.name_of(number)), FINDING)


def is_answer(path, pid):
    """Whether the new file is the answer to a signal, and of this process."""
    if path.endswith(SUFFIXES['text']):
        return True
    try:
        own = snapshot.load(path).own
    except Failure:
        return False
    return own.get('pid', pid) == pid and own.get('cause', 'signal') == 'signal'
