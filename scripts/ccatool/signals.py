# SPDX-License-Identifier: MIT
"""Signals by name or number, as CCA_DUMP_SIGNAL spells them."""
import re
import signal

FIRST_REAL_TIME = 34
LAST_SIGNAL = 64


def number_of(text):
    """The number of USR1, SIGUSR1, RTMIN+2, RTMAX-3, 10; None where it is no signal."""
    text = text.strip().upper()
    if text.isdigit():
        return int(text) if 1 <= int(text) <= LAST_SIGNAL else None
    if text.startswith('SIG'):
        text = text[3:]
    match = re.fullmatch(r'(RTMIN|RTMAX)(?:([+-])(\d+))?', text)
    if match:
        number = FIRST_REAL_TIME if match.group(1) == 'RTMIN' else LAST_SIGNAL
        number += int(match.group(3) or 0) * (-1 if match.group(2) == '-' else 1)
        return number if FIRST_REAL_TIME <= number <= LAST_SIGNAL else None
    found = getattr(signal, 'SIG' + text, None) if re.fullmatch('[A-Z0-9]+', text) else None
    return int(found) if isinstance(found, signal.Signals) else None


def name_of(number):
    """SIGUSR1 for 10; real-time signals by their distance to the nearer end."""
    if number >= FIRST_REAL_TIME:
        low, high = number - FIRST_REAL_TIME, LAST_SIGNAL - number
        return 'SIGRTMIN+%d' % low if low <= high else 'SIGRTMAX-%d' % high
    try:
        return signal.Signals(number).name
    except ValueError:
        return 'signal %d' % number
