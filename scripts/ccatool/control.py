# SPDX-License-Identifier: MIT
"""The control signal: asks the library in a running program to do something."""
import ctypes
import json
import os

from . import options, signals, variables
from .failure import FINE, Failure, reason
from .place import LIBRARY_NAME
from .procfs import Process
from .text import clean

TRIM, RESET_PEAKS = 1, 2
VARIABLE, DEFAULT = 'CCA_CONTROL_SIGNAL', 'RTMAX-3'


def control_signal(process):
    """The number of the signal; a Failure where sending it would end the program."""
    if not process.maps_file(LIBRARY_NAME):
        raise Failure('process %d does not have %s loaded' % (process.pid, LIBRARY_NAME))
    row = variables.known().get(VARIABLE)
    default = row.default if row else DEFAULT
    text = process.environment().get(VARIABLE) or default
    if text.strip().lower() == 'none':
        raise Failure('process %d runs with %s=none' % (process.pid, VARIABLE))
    number = signals.number_of(text) or signals.number_of(default)
    if not process.catches(number):
        raise Failure('process %d does not handle %s: it has no CUDA context yet' % (
            process.pid, signals.name_of(number)))
    return number


def main(args, order, name, done):
    """The whole of the verbs `trim` and `reset-peak`."""
    number = send(args.pid, order)
    if args.json:
        print(json.dumps({'pid': args.pid, 'signal': signals.name_of(number), 'order': name}))
    else:
        print('process %d was asked to %s' % (args.pid, done))
    return FINE


def add_arguments(parser):
    options.add_json(parser)
    parser.add_argument('pid', type=int, metavar='PID')


def send(pid, order):
    """Queues the control signal with its order; returns the signal's number."""
    if pid <= 0:
        raise Failure('%d: not a process number' % pid)
    number = control_signal(Process(pid))
    library = ctypes.CDLL(None, use_errno=True)
    # union sigval is passed as the pointer that it holds.
    library.sigqueue.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    if library.sigqueue(pid, number, order) != 0:
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        raise Failure('process %d: %s' % (pid, clean(reason(error))))
    return number
