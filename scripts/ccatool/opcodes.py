# SPDX-License-Identifier: MIT
"""The opcodes that a snapshot's pickle may use, and a scan that accepts nothing else.

It is the subset that PyTorch's viewer reads: plain data, nothing that could run anything.
"""
import re

PROTO, STOP, LONG1, LONG_BINPUT = 0x80, ord('.'), 0x8a, ord('r')
SHORT_BINUNICODE, BINUNICODE = 0x8c, ord('X')

# Bytes of argument behind each opcode of fixed length.
FIXED = {ord(char): 0 for char in '(})]aesulNtd'}
FIXED.update({0x85: 0, 0x86: 0, 0x87: 0, 0x88: 0, 0x89: 0, 0x94: 0})
FIXED.update({PROTO: 1, ord('K'): 1, ord('q'): 1, ord('h'): 1, ord('M'): 2, ord('J'): 4,
              ord('r'): 4, ord('j'): 4, ord('G'): 8, 0x95: 8})
# Opcodes whose argument is a length and that many bytes: size of the length itself.
COUNTED = {LONG1: 1, SHORT_BINUNICODE: 1, BINUNICODE: 4}
HIGHEST_PROTOCOL = 5      # what Python 3.14 writes; plain data needs no opcode that is new in it


class BadPickle(Exception):
    """Why the bytes are no pickle that we read."""


def run_pattern(length):
    """Matches a run of opcodes of a file of that many bytes; bounded, since each step is
    remembered.

    The index of a LONG_BINPUT is looked at, since Python makes room for all indices below it: it
    must be smaller than the file is long. Here those count of which the upper two bytes tell.
    """
    by_length = {}
    for opcode, size in FIXED.items():
        if opcode != LONG_BINPUT:
            by_length.setdefault(size, []).append(b'\\x%02x' % opcode)
    forms = [b'[' + b''.join(codes) + b']' + (b'.{%d}' % size if size else b'')
             for size, codes in sorted(by_length.items())]
    # Numbers of more than 32 bits: addresses and times, twice in every event.
    forms += [b'\\x8a\\x%02x.{%d}' % (size, size) for size in (5, 6, 7, 8)]
    if length >> 16:
        forms.append(b'r..[\\x00-\\x%02x]\\x00' % min(0xff, (length >> 16) - 1))
    return re.compile(b'(?:' + b'|'.join(forms) + b'){1,500}', re.S)


def scan(data):
    """Returns the length of the pickle, its STOP included. Raises BadPickle."""
    if len(data) < 2 or data[0] != PROTO:
        raise BadPickle('not a pickle')
    if not 2 <= data[1] <= HIGHEST_PROTOCOL:
        raise BadPickle('pickle protocol %d, which is not read' % data[1])
    place = 0
    pattern = run_pattern(len(data))
    while place < len(data):
        run = pattern.match(data, place)
        if run:
            place = run.end()
            continue
        opcode = data[place]
        if opcode == STOP:
            return place + 1
        if opcode == LONG_BINPUT and place + 5 <= len(data):
            if int.from_bytes(data[place + 1:place + 5], 'little') > len(data):
                raise BadPickle('senseless memo index at byte %d' % place)
            place += 5
            continue
        if opcode in FIXED:
            break
        if opcode not in COUNTED:
            raise BadPickle('forbidden pickle opcode 0x%02x at byte %d' % (opcode, place))
        width = COUNTED[opcode]
        length = int.from_bytes(data[place + 1:place + 1 + width], 'little')
        place += 1 + width + length
    raise BadPickle('cut off after %d bytes' % len(data))


def walk(data):
    """Yields (place, opcode, argument bytes) up to STOP. For data that scan() has accepted."""
    place = 0
    while True:
        opcode = data[place]
        start = place + 1
        if opcode in COUNTED:
            width = COUNTED[opcode]
            length = int.from_bytes(data[start:start + width], 'little')
            start += width
        else:
            length = FIXED.get(opcode, 0)
        yield place, opcode, data[start:start + length]
        if opcode == STOP:
            return
        place = start + length
