# SPDX-License-Identifier: MIT
"""cca reset-peak: sets the peaks of a running program to what is now."""
from . import control

HELP = 'reset the peak statistics of a running program'
USAGE = '[--json] PID'
DESCRIPTION = '''Asks the library in a running program to set every peak to the present value, as
torch.cuda.reset_peak_memory_stats() does, by the control signal (CCA_CONTROL_SIGNAL). Refuses when
the library is not in the process or the process does not handle the signal.

Exit status: 0 asked, 2 refused or bad usage.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

add_arguments = control.add_arguments


def main(args):
    return control.main(args, control.RESET_PEAKS, 'reset-peak', 'reset its peaks')
