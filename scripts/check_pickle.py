#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks a snapshot strictly.

check_pickle.py [--complete | --form] [--same-as FILE] [--expect EXPRESSION]... FILE

Prints `ok`, or the rule that is broken, with status 1. What is checked is what PyTorch's viewer and
script need, and what the library promises beyond that: the bytes of the pickle, the keys and their
types, the tiling of segments, statistics against segments, and the history undone event by event
from the final state, as the viewer does. JSON is checked from the keys on.

--complete: the history must begin with an empty allocator (the ring has lost nothing).
--form:     without statistics and history, for documents that no allocator has made.
--same-as:  the other file, in whatever format, must say the same.
--expect:   the Python expression must hold, in which `s` is the snapshot, `t` the other file, and
            `file_bytes` the size of the file.
"""
import argparse
import bisect
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from ccatool import opcodes, snapshot  # noqa: E402
from ccatool.failure import Failure  # noqa: E402

LARGEST_BATCH = 1000
STATES = ('active_allocated', 'active_pending_free', 'inactive')
ACTIONS = ('alloc', 'free_requested', 'free_completed', 'segment_alloc', 'segment_free',
           'segment_map', 'segment_unmap', 'oom', 'snapshot', 'annotate')
CAUSES = ('signal', 'exit', 'oom', 'api', 'term', 'abort', 'interval')

Pair = ('pair',)
SEGMENT_KEYS = {'device': int, 'address': int, 'total_size': int, 'allocated_size': int,
                'active_size': int, 'requested_size': int, 'stream': int, 'segment_type': str,
                'segment_pool_id': Pair, 'is_expandable': bool, 'frames': list, 'blocks': list}
BLOCK_KEYS = {'address': int, 'size': int, 'requested_size': int, 'state': str, 'frames': list}
ENTRY_KEYS = {'action': str, 'size': int, 'stream': int, 'time_us': int, 'compile_context': str,
              'user_metadata': str}
FRAME_KEYS = {'name': str, 'filename': str, 'line': int}
OWN_KEYS = {'version': str, 'host': str, 'pid': int, 'program': str, 'command_line': list,
            'start_time_us': int, 'dump_time_us': int, 'cause': str, 'hook_coverage': dict,
            'settings': dict, 'stats': list, 'counters': list, 'modules': list, 'devices': list}
# What newer versions write; an older file may lack it.
LATER_OWN_KEYS = {'is_partial': bool, 'mark_time_us': int, 'unwinder': str, 'symbolized': str,
                  'peak': list, 'unmanaged': list, 'messages': list}
MODULE_KEYS = {'path': str, 'base': int, 'build_id': str, 'start': int, 'end': int,
               'is_unloaded': bool}
DEVICE_KEYS = {'device': int, 'total': int, 'free': int, 'reserved': int, 'other': int}
DEVICE_PARTS = ('allocated', 'pending', 'cached')
ARRAY_STATS = ('allocation', 'segment', 'active', 'inactive_split', 'allocated_bytes',
               'reserved_bytes', 'active_bytes', 'inactive_split_bytes', 'requested_bytes')
POOLS = ('all', 'large_pool', 'small_pool')


class Broken(Exception):
    """A rule and where it is broken."""


def need(condition, rule, where=''):
    if not condition:
        raise Broken('%s%s' % (rule, ': ' + where if where else ''))


# The bytes of the pickle.

def check_bytes(data):
    try:
        end = opcodes.scan(data)
    except opcodes.BadPickle as error:
        raise Broken('pickle: %s' % error) from error
    need(data[1] == 2, 'pickle: protocol must be 2', 'is %d' % data[1])
    need(end == len(data), 'pickle: bytes after STOP', str(len(data) - end))
    marks, depth, numbers, set_places = [], 0, None, set()
    for place, opcode, argument in opcodes.walk(data):
        char = chr(opcode)
        where = 'byte %d' % place
        if opcode == opcodes.LONG1:
            need(len(argument) == 8, 'pickle: LONG1 must have 8 bytes', where)
        if opcode in (opcodes.BINUNICODE, opcodes.SHORT_BINUNICODE):
            try:
                argument.decode('utf-8')
            except UnicodeDecodeError as error:
                raise Broken('pickle: text is not UTF-8: ' + where) from error
        if char in 'qr' or opcode == 0x94:
            kind = 'MEMOIZE' if opcode == 0x94 else 'BINPUT'
            need(numbers in (None, kind), 'pickle: MEMOIZE and BINPUT are mixed', where)
            numbers = kind
            set_places.add(len(set_places) if kind == 'MEMOIZE'
                           else int.from_bytes(argument, 'little'))
        elif char in 'hj':
            need(int.from_bytes(argument, 'little') in set_places,
                 'pickle: BINGET of an index that was never put', where)
        elif char == '(':
            marks.append(depth)
        elif char in 'eutld':
            need(marks, 'pickle: no MARK', where)
            base = marks.pop()
            if char in 'eu':
                items = (depth - base) // (1 if char == 'e' else 2)
                need(items <= LARGEST_BATCH, 'pickle: batch of more than %d' % LARGEST_BATCH, where)
            depth = base + (char in 'tld')
            continue
        depth += stack_effect(opcode)


def stack_effect(opcode):
    """Change of the stack's height by an opcode that takes no MARK."""
    char = chr(opcode)
    if opcode in (opcodes.PROTO, 0x95, 0x94, 0x85) or char in '(qr.':
        return 0
    if char == 'a' or opcode == 0x86:
        return -1
    if char == 's' or opcode == 0x87:
        return -2
    return 1


# Keys and types.

def is_of(value, kind):
    if kind is Pair:
        return (isinstance(value, (tuple, list)) and len(value) == 2
                and all(is_of(part, int) for part in value))
    if kind is int:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        # JSON holds handles as they are; in a pickle LONG1 of 8 bytes keeps them in signed 64 bits.
        return is_number and -2 ** 63 <= value < 2 ** 64
    return isinstance(value, kind)


def check_keys(record, keys, where):
    for key, kind in keys.items():
        need(key in record, 'keys: %s is missing' % key, where)
        need(is_of(record[key], kind), 'keys: %s has the wrong type' % key, where)


def check_frames(frames, where):
    need(isinstance(frames, list), 'keys: frames is no list', where)
    for frame in frames:
        need(isinstance(frame, dict), 'keys: a frame is no dict', where)
        check_keys(frame, FRAME_KEYS, where + ' frame')


def check_outline(data):
    need(isinstance(data, dict), 'keys: top level is no dict')
    for key in ('segments', 'device_traces', 'external_annotations'):
        need(is_of(data.get(key), list), 'keys: %s is no list' % key)
    need(is_of(data.get('allocator_settings'), dict), 'keys: allocator_settings is no dict')
    for index, segment in enumerate(data['segments']):
        where = 'segments[%d]' % index
        need(isinstance(segment, dict), 'keys: no dict', where)
        check_keys(segment, SEGMENT_KEYS, where)
        need(segment['segment_type'] in ('small', 'large'), 'keys: segment_type', where)
        need(0 <= segment['device'] < len(data['device_traces']), 'keys: device without a trace',
             where)
        check_frames(segment['frames'], where)
        for number, block in enumerate(segment['blocks']):
            inner = '%s.blocks[%d]' % (where, number)
            need(isinstance(block, dict), 'keys: no dict', inner)
            check_keys(block, BLOCK_KEYS, inner)
            need(block['state'] in STATES, 'keys: unknown state %s' % block['state'], inner)
            check_frames(block['frames'], inner)
    for device, trace in enumerate(data['device_traces']):
        need(isinstance(trace, list), 'keys: device_traces[%d] is no list' % device)
        for number, entry in enumerate(trace):
            check_entry(entry, 'device_traces[%d][%d]' % (device, number))
        if not trace and not any(segment['device'] == device for segment in data['segments']):
            raise Broken('keys: device %d has neither segment nor event: the viewer fails' % device)
    if 'cca' in data:
        check_own(data['cca'], len(data['device_traces']))


def check_entry(entry, where):
    need(isinstance(entry, dict), 'keys: no dict', where)
    check_keys(entry, ENTRY_KEYS, where)
    need(entry['action'] in ACTIONS, 'keys: unknown action %s' % entry['action'], where)
    if entry['action'] == 'oom':
        check_keys(entry, {'device_free': int}, where)
        need('addr' not in entry, 'keys: oom has an addr', where)
    else:
        check_keys(entry, {'addr': int}, where)
    if 'frames' in entry:
        check_frames(entry['frames'], where)


def check_own(own, devices):
    need(isinstance(own, dict), 'keys: cca is no dict')
    check_keys(own, OWN_KEYS, 'cca')
    need(own['cause'] in CAUSES, 'keys: unknown cause %s' % own['cause'], 'cca')
    for key in ('rank', 'driver_version', 'runtime_version'):
        need(key in own, 'keys: %s is missing' % key, 'cca')
        need(own[key] is None or is_of(own[key], int), 'keys: %s has the wrong type' % key, 'cca')
    check_keys(own, {key: kind for key, kind in LATER_OWN_KEYS.items() if key in own}, 'cca')
    if 'is_partial' in own:
        for number, module in enumerate(own['modules']):
            check_keys(module, MODULE_KEYS, 'cca.modules[%d]' % number)
    for number, row in enumerate(own['devices']):
        check_device(row, 'cca.devices[%d]' % number)
    for key in ('stats', 'counters'):
        need(len(own[key]) <= devices, 'keys: cca.%s has more dicts than there are devices' % key)
        need(all(isinstance(row, dict) for row in own[key]), 'keys: cca.%s holds no dicts' % key)


def check_device(row, where):
    check_keys(row, DEVICE_KEYS, where)
    need(all(row[key] >= 0 for key in DEVICE_KEYS), 'devices: a negative figure', where)
    if 'cached' in row:
        need(row.get('partial') or row['reserved'] == sum(row[key] for key in DEVICE_PARTS),
             'devices: reserved is not allocated + pending + cached', where)
        if row['free_time_us'] and row['total'] - row['free'] >= row['reserved'] + row['unmanaged']:
            need(row['total'] - row['free'] == row['reserved'] + row['unmanaged'] + row['other'],
                 'devices: what is used is not reserved + unmanaged + other', where)


# Segments and statistics.

def check_tiling(data):
    last = {}
    for index, segment in enumerate(data['segments']):
        where = 'segments[%d]' % index
        device, address = segment['device'], segment['address']
        need(address >= last.get(device, 0), 'tiling: segments overlap or are not sorted', where)
        last[device] = address + segment['total_size']
        sums = {'allocated_size': 0, 'active_size': 0, 'requested_size': 0}
        place = address
        for number, block in enumerate(segment['blocks']):
            inner = '%s.blocks[%d]' % (where, number)
            need(block['size'] > 0, 'tiling: empty block', inner)
            need(block['address'] == place, 'tiling: block address %#x, expected %#x' % (
                block['address'], place), inner)
            place += block['size']
            if block['state'] == 'inactive':
                continue
            need(0 <= block['requested_size'] <= block['size'],
                 'tiling: requested_size is more than size', inner)
            sums['active_size'] += block['size']
            sums['requested_size'] += block['requested_size']
            if block['state'] == 'active_allocated':
                sums['allocated_size'] += block['size']
        need(place == last[device], 'tiling: blocks sum to %d, total_size is %d' % (
            place - address, segment['total_size']), where)
        for key, value in sums.items():
            need(segment[key] == value, 'tiling: %s is %d, blocks say %d' % (
                key, segment[key], value), where)


def check_stats(data):
    # The statistics of a snapshot of one pool are those of the whole device.
    if 'cca' not in data or 'only_pool' in data['cca']:
        return
    rows = data['cca']['stats']
    for segment in data['segments']:
        device = segment['device']
        need(device < len(rows) and rows[device],
             'stats: device %d has segments and no row' % device)
    for device, stats in enumerate(rows):
        where = 'cca.stats[%d]' % device
        # An ordinal that the process has never used has an empty row.
        if not stats:
            continue
        for name in ARRAY_STATS:
            for metric in ('current', 'peak', 'allocated', 'freed'):
                values = []
                for pool in POOLS:
                    key = '%s.%s.%s' % (name, pool, metric)
                    need(is_of(stats.get(key), int), 'stats: %s is missing or no integer' % key,
                         where)
                    values.append(stats[key])
                need(metric == 'peak' or values[0] == values[1] + values[2],
                     'stats: %s.all.%s is not large + small' % (name, metric), where)
            need(stats[name + '.all.peak'] >= stats[name + '.all.current'],
                 'stats: %s peak below current' % name, where)
        check_stats_of_segments(stats, [segment for segment in data['segments']
                                        if segment['device'] == device], where)


def check_stats_of_segments(stats, segments, where):
    blocks = [block for segment in segments for block in segment['blocks']]
    allocated = [block for block in blocks if block['state'] == 'active_allocated']
    active = [block for block in blocks if block['state'] != 'inactive']
    expected = {
        'allocation': len(allocated),
        'allocated_bytes': sum(block['size'] for block in allocated),
        'active': len(active),
        'active_bytes': sum(block['size'] for block in active),
        'requested_bytes': sum(block['requested_size'] for block in active),
        'reserved_bytes': sum(segment['total_size'] for segment in segments),
        'segment': sum(1 for segment in segments if not segment['is_expandable']),
    }
    for name, value in expected.items():
        found = stats[name + '.all.current']
        need(found == value, 'stats: %s.all.current is %d, segments say %d' % (
            name, found, value), where)


# The history, undone from the final state.

class Replay:
    """State of one device; undo() takes it back over one event."""

    def __init__(self, segments):
        self._sizes = {}          # segment address -> size
        self._expandable = set()
        self._starts = []         # segment addresses, sorted
        self._blocks = {}         # address -> [requested, extent that is known, is_pending]
        self._block_starts = []
        for segment in segments:
            self._add_segment(segment['address'], segment['total_size'], segment['is_expandable'])
            for block in segment['blocks']:
                if block['state'] != 'inactive':
                    self._add_block(block['address'], block['requested_size'], block['size'],
                                    block['state'] == 'active_pending_free')

    def is_empty(self):
        return not self._sizes and not self._blocks

    def _add_segment(self, address, size, is_expandable):
        index = bisect.bisect_left(self._starts, address)
        before = self._starts[index - 1] if index else None
        after = self._starts[index] if index < len(self._starts) else None
        need((before is None or before + self._sizes[before] <= address)
             and (after is None or address + size <= after),
             'replay: a segment comes back over another one')
        self._starts.insert(index, address)
        self._sizes[address] = size
        if is_expandable:
            self._expandable.add(address)

    def _remove_segment(self, address):
        self._starts.pop(bisect.bisect_left(self._starts, address))
        self._expandable.discard(address)
        return self._sizes.pop(address)

    def _segment_at(self, address, size):
        """The address of the segment that holds the whole range, or None."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start = self._starts[index]
        return start if address + size <= start + self._sizes[start] else None

    def _blocks_within(self, address, size):
        index = bisect.bisect_left(self._block_starts, address)
        if index:
            before = self._block_starts[index - 1]
            if before + self._blocks[before][1] > address:
                return True
        return index < len(self._block_starts) and self._block_starts[index] < address + size

    def _add_block(self, address, requested, extent, is_pending):
        bisect.insort(self._block_starts, address)
        self._blocks[address] = [requested, extent, is_pending]

    def undo(self, entry):
        handler = getattr(self, '_undo_' + entry['action'], None)
        if handler:
            handler(entry['addr'], entry['size'])

    def _undo_free_completed(self, address, size):
        need(self._segment_at(address, size) is not None, 'replay: a free outside of all segments')
        need(not self._blocks_within(address, max(size, 1)),
             'replay: a freed block comes back over a live one')
        self._add_block(address, size, max(size, 1), True)

    def _undo_free_requested(self, address, size):
        block = self._blocks.get(address)
        need(block is not None and block[2],
             'replay: free_requested without free_completed, and the block is not pending')
        need(block[0] == size, 'replay: free_requested of %d bytes, the block has %d' % (
            size, block[0]))
        block[2] = False

    def _undo_alloc(self, address, size):
        block = self._blocks.get(address)
        need(block is not None, 'replay: alloc of a block that is neither live nor freed later')
        need(not block[2], 'replay: alloc of a block that is pending without free_requested')
        need(block[0] == size, 'replay: alloc of %d bytes, the block has %d' % (size, block[0]))
        del self._blocks[address]
        self._block_starts.pop(bisect.bisect_left(self._block_starts, address))

    def _undo_segment_alloc(self, address, size):
        need(self._sizes.get(address) == size,
             'replay: segment_alloc without its segment or a later segment_free')
        need(not self._blocks_within(address, size), 'replay: blocks are older than their segment')
        self._remove_segment(address)

    def _undo_segment_free(self, address, size):
        self._add_segment(address, size, False)

    def _undo_segment_map(self, address, size):
        start = self._segment_at(address, size)
        need(start is not None and start in self._expandable,
             'replay: segment_map outside of all expandable segments')
        need(not self._blocks_within(address, size), 'replay: blocks are older than their segment')
        end = start + self._remove_segment(start)
        for low, high in ((start, address), (address + size, end)):
            if low < high:
                self._add_segment(low, high - low, True)

    def _undo_segment_unmap(self, address, size):
        end = address + size
        for start in list(self._expandable):
            if start + self._sizes[start] == address:
                address -= self._remove_segment(start)
            elif start == end:
                end += self._remove_segment(start)
        self._add_segment(address, end - address, True)


def check_replay(data, is_complete):
    for device, trace in enumerate(data['device_traces']):
        state = Replay([segment for segment in data['segments'] if segment['device'] == device])
        for number in range(len(trace) - 1, -1, -1):
            try:
                state.undo(trace[number])
            except Broken as broken:
                raise Broken('%s: device_traces[%d][%d] %s %#x' % (
                    broken, device, number, trace[number]['action'],
                    trace[number].get('addr', 0))) from broken
        need(not is_complete or state.is_empty(),
             'replay: something is older than the history', 'device_traces[%d]' % device)


def check_same(left, right, where='snapshot'):
    """Both say the same, but for tuples and for what a pickle clamps or JSON rounds."""
    if isinstance(left, dict) and isinstance(right, dict):
        need(list(left) == list(right), 'same: other keys or another order', where)
        for key in left:
            check_same(left[key], right[key], '%s.%s' % (where, key))
    elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        need(len(left) == len(right), 'same: another length', where)
        for number, (one, other) in enumerate(zip(left, right)):
            check_same(one, other, '%s[%d]' % (where, number))
    elif isinstance(left, float) and isinstance(right, float):
        need(math.isclose(left, right, abs_tol=1e-9), 'same: another number', where)
    elif 2 ** 63 - 1 in (left, right):
        need(min(left, right) == 2 ** 63 - 1, 'same: another number', where)
    else:
        need(type(left) is type(right) and left == right,
             'same: %.60r and %.60r' % (left, right), where)


def load(path):
    """The content; the bytes of a pickle have been checked. Raises Broken or Failure."""
    data = snapshot.read_bytes(path)
    if data[:1] in (b'{', b'['):
        return snapshot.parse_json(data)
    check_bytes(data)
    return snapshot.parse_pickle(data)


def check(path, is_complete=False, is_form=False):
    """Returns the content. Raises Broken or Failure."""
    content = load(path)
    check_outline(content)
    check_tiling(content)
    if not is_form:
        check_stats(content)
        check_replay(content, is_complete)
    return content


def check_expression(expression, content, twin, path):
    names = {'s': content, 't': twin, 'file_bytes': os.path.getsize(path)}
    try:
        is_true = eval(expression, names)
    except (LookupError, TypeError, ValueError) as error:
        raise Broken('expected %s: %r' % (expression, error)) from error
    need(is_true, 'expected %s' % expression)


def main(argv):
    parser = argparse.ArgumentParser(prog='check_pickle.py', usage=__doc__.split('\n')[2],
                                     allow_abbrev=False)
    parser.add_argument('--complete', action='store_true')
    parser.add_argument('--form', action='store_true')
    parser.add_argument('--same-as')
    parser.add_argument('--expect', action='append', default=[])
    parser.add_argument('file')
    try:
        given = parser.parse_args(argv)
    except SystemExit as stop:
        return stop.code
    try:
        content = check(given.file, given.complete, given.form)
        twin = load(given.same_as) if given.same_as else None
        if given.same_as:
            check_same(content, twin)
        for expression in given.expect:
            check_expression(expression, content, twin, given.file)
    except (Broken, Failure) as error:
        print(getattr(error, 'message', error))
        return 1
    print('ok')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
