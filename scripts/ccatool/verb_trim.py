# SPDX-License-Identifier: MIT
"""cca trim: gives the idle cache of a running program back."""
from . import control

HELP = 'give the idle cached memory of a running program back to the driver'
USAGE = '[--json] PID'
DESCRIPTION = '''Asks the library in a running program to give its idle cached memory back to the
driver, by the control signal (CCA_CONTROL_SIGNAL). The library does so soon after, on its own
thread; `cca dump` shows what is still reserved. Refuses when the library is not in the process or
the process does not handle the signal: the signal would end the program.

Exit status: 0 asked, 2 refused or bad usage.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

add_arguments = control.add_arguments


def main(args):
    return control.main(args, control.TRIM, 'trim', 'give its idle cache back')
