# SPDX-License-Identifier: MIT
"""cca trim: gives the idle cache of a running program back."""
import json

from . import control, options, signals
from .failure import FINE

HELP = 'give the idle cached memory of a running program back to the driver'
USAGE = '[--json] PID'
DESCRIPTION = '''Asks the library in a running program to give its idle cached memory back to the
driver, by the control signal (CCA_CONTROL_SIGNAL). The library does so soon after, on its own
thread; `cca dump` shows what is still reserved. Refuses when the library is not in the process or
the process does not handle the signal: the signal would end the program.

Exit status: 0 asked, 2 refused or bad usage.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()


def add_arguments(parser):
    options.add_json(parser)
    parser.add_argument('pid', type=int, metavar='PID')


def main(args):
    number = control.send(args.pid, control.TRIM)
    if args.json:
        print(json.dumps({'pid': args.pid, 'signal': signals.name_of(number), 'order': 'trim'}))
    else:
        print('process %d was asked to give its idle cache back' % args.pid)
    return FINE
