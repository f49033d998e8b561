# SPDX-License-Identifier: MIT
"""cca reset-peak: sets the peaks of a running program to what is now."""
import json

from . import control, options, signals
from .failure import FINE

HELP = 'reset the peak statistics of a running program'
USAGE = '[--json] PID'
DESCRIPTION = '''Asks the library in a running program to set every peak to the present value, as
torch.cuda.reset_peak_memory_stats() does, by the control signal (CCA_CONTROL_SIGNAL). Refuses when
the library is not in the process or the process does not handle the signal.

Exit status: 0 asked, 2 refused or bad usage.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()


def add_arguments(parser):
    options.add_json(parser)
    parser.add_argument('pid', type=int, metavar='PID')


def main(args):
    number = control.send(args.pid, control.RESET_PEAKS)
    if args.json:
        print(json.dumps({'pid': args.pid, 'signal': signals.name_of(number),
                          'order': 'reset-peak'}))
    else:
        print('process %d was asked to reset its peaks' % args.pid)
    return FINE
