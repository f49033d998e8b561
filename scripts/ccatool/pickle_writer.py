# SPDX-License-Identifier: MIT
"""Writes plain data as a pickle of the opcodes that PyTorch's viewer reads.

Python's own pickler shortens integers in a way that the viewer takes for negative ones.
"""
import struct

from .failure import Failure

BATCH = 1000
MEMO_LEAST = 8        # shorter strings cost less than what refers to them


class Writer:
    """Builds one pickle of protocol 2. Keys and other strings are memoised; of lists those that
    the data holds more than once, by identity."""

    def __init__(self, shared=()):
        self._out = bytearray(b'\x80\x02')
        self._memo = {}
        self._count = 0
        self._shared = {id(item) for item in shared}
        self._lists = {}

    def pickle(self, data):
        self._put(data)
        self._out += b'.'
        return bytes(self._out)

    def _remember(self, table, key):
        number = table[key] = self._count
        self._count += 1
        self._out += b'q%c' % number if number < 256 else b'r' + struct.pack('<I', number)

    def _recall(self, number):
        self._out += b'h%c' % number if number < 256 else b'j' + struct.pack('<I', number)

    def _put(self, value):
        kind = type(value)
        if kind is str:
            self._put_text(value)
        elif kind is int:
            self._put_int(value)
        elif kind is dict:
            self._put_dict(value)
        elif kind is list:
            self._put_list(value)
        elif kind is tuple:
            self._put_tuple(value)
        elif value is None:
            self._out += b'N'
        elif kind is bool:
            self._out += b'\x88' if value else b'\x89'
        elif kind is float:
            self._out += b'G' + struct.pack('>d', value)
        else:
            raise Failure('cannot write a value of type %s' % kind.__name__)

    def _put_int(self, value):
        if -2 ** 31 <= value < 2 ** 31:
            if 0 <= value < 256:
                self._out += b'K%c' % value
            elif 0 <= value < 65536:
                self._out += b'M' + struct.pack('<H', value)
            else:
                self._out += b'J' + struct.pack('<i', value)
            return
        # Handles of streams fill all 64 bits; the viewer knows signed ones.
        if value >= 2 ** 63:
            value = value - 2 ** 64 if value < 2 ** 64 else 2 ** 63 - 1
        self._out += b'\x8a\x08' + struct.pack('<q', max(value, -2 ** 63))

    def _put_text(self, value):
        if value in self._memo:
            self._recall(self._memo[value])
            return
        data = value.encode('utf-8', 'replace')
        self._out += b'X' + struct.pack('<I', len(data)) + data
        if len(value) >= MEMO_LEAST or value.isidentifier():
            self._remember(self._memo, value)

    def _put_list(self, value):
        is_shared = id(value) in self._shared
        if is_shared and id(value) in self._lists:
            self._recall(self._lists[id(value)])
            return
        self._out += b']'
        if is_shared:
            self._remember(self._lists, id(value))
        for low in range(0, len(value), BATCH):
            self._out += b'('
            for item in value[low:low + BATCH]:
                self._put(item)
            self._out += b'e'

    def _put_dict(self, value):
        self._out += b'}'
        items = list(value.items())
        for low in range(0, len(items), BATCH):
            self._out += b'('
            for key, item in items[low:low + BATCH]:
                self._put(key)
                self._put(item)
            self._out += b'u'

    def _put_tuple(self, value):
        if not value:
            self._out += b')'
            return
        if len(value) > 3:
            self._out += b'('
        for item in value:
            self._put(item)
        self._out += {1: b'\x85', 2: b'\x86', 3: b'\x87'}.get(len(value), b't')


def dumps(data):
    """The snapshot as a pickle; equal call stacks are written once."""
    return Writer(share_stacks(data)).pickle(data)


def share_stacks(data):
    """Makes equal frames lists of a snapshot one object, in place; returns these objects."""
    by_content, found = {}, {}

    def share(record):
        frames = record.get('frames')
        if not isinstance(frames, list):
            return
        known = found.get(id(frames))
        if known is None:
            key = tuple(tuple(frame.items()) for frame in frames if isinstance(frame, dict))
            try:
                known = by_content.setdefault(key, frames)
            except TypeError:
                known = frames
            found[id(frames)] = known
            kept.append(frames)
        record['frames'] = known

    kept = []        # an identity is its object's only while that lives
    for segment in data.get('segments') or ():
        share(segment)
        for block in segment.get('blocks') or ():
            share(block)
    for trace in data.get('device_traces') or ():
        for entry in trace:
            share(entry)
    return kept
