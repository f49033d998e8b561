# SPDX-License-Identifier: MIT
"""check_snapshot.py PICKLE JSON [EXPRESSION]...

Loads a snapshot in both formats and checks what every snapshot promises; then each expression, in
which s is the snapshot, must be true. Prints what is wrong and exits 1."""
import json
import math
import pickle
import pickletools
import sys

ALLOWED = set('''PROTO STOP MARK EMPTY_LIST APPENDS EMPTY_DICT SETITEMS TUPLE TUPLE1 TUPLE2 TUPLE3
    EMPTY_TUPLE NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE BINPUT
    LONG_BINPUT BINGET LONG_BINGET'''.split())
STATES = {'active_allocated', 'active_pending_free', 'inactive'}
problems = []


def expect(condition, *what):
    if not condition:
        problems.append(' '.join(str(part) for part in what))


def check_opcodes(data):
    """The opcodes that the web viewer reads; LONG1 of 8 bytes; batches of at most 1000 items."""
    marks = []
    items = 0
    memo = set()
    expect(data[:2] == b'\x80\x02', 'protocol is not 2')
    for op, argument, place in pickletools.genops(data):
        name = op.name
        expect(name in ALLOWED, 'opcode', name, 'at', place)
        if name == 'LONG1':
            expect(data[place + 1] == 8, 'LONG1 of', data[place + 1], 'bytes at', place)
            expect(not -2**31 <= argument < 2**31, 'LONG1 for', argument)
        if name in ('BINPUT', 'LONG_BINPUT'):
            expect(argument not in memo, 'memo index', argument, 'set twice')
            memo.add(argument)
        elif name in ('BINGET', 'LONG_BINGET'):
            expect(argument in memo, 'memo index', argument, 'not set at', place)
        if name == 'MARK':
            marks.append(items)
            items = 0
        elif name in ('APPENDS', 'SETITEMS', 'TUPLE'):
            expect(items <= (2000 if name == 'SETITEMS' else 1000), name, 'of', items, 'items')
            items = marks.pop()
            items += name == 'TUPLE'
        elif name in ('TUPLE1', 'TUPLE2', 'TUPLE3'):
            items -= int(name[-1]) - 1
        elif name not in ('PROTO', 'STOP', 'BINPUT', 'LONG_BINPUT'):
            items += 1
    expect(not marks and items == 1, 'unbalanced: ', items)
    expect(data[-1:] == b'.', 'something after the end')


def differ(left, right, where):
    """Both formats say the same, but for tuples and for numbers that pickles clamp."""
    if isinstance(left, dict) and isinstance(right, dict):
        expect(list(left) == list(right), 'keys at', where, list(left), list(right))
        for key in left:
            if key in right:
                differ(left[key], right[key], where + '.' + key)
    elif isinstance(left, (list, tuple)) and isinstance(right, list):
        expect(len(left) == len(right), 'length at', where, len(left), len(right))
        for place, (one, other) in enumerate(zip(left, right)):
            differ(one, other, '%s[%d]' % (where, place))
    elif isinstance(left, float):
        expect(math.isclose(left, right, abs_tol=1e-9), 'number at', where, left, right)
    elif isinstance(left, int) and left == 2**63 - 1:
        expect(right >= left, 'clamped at', where, right)
    else:
        expect(type(left) is type(right) and left == right, 'value at', where, repr(left),
               repr(right))


def check_frames(frames, where):
    expect(isinstance(frames, list), 'frames at', where)
    for frame in frames:
        expect(list(frame) == ['name', 'filename', 'line', 'address'], 'frame at', where, frame)
        expect(isinstance(frame['name'], str) and isinstance(frame['filename'], str) and
               isinstance(frame['line'], int), 'frame at', where, frame)


def check_segment(segment, where):
    expect(list(segment) == ['device', 'address', 'total_size', 'allocated_size', 'active_size',
                             'requested_size', 'stream', 'segment_type', 'segment_pool_id',
                             'is_expandable', 'frames', 'blocks', 'context'], 'keys of', where)
    expect(isinstance(segment['segment_pool_id'], tuple), 'pool of', where)
    check_frames(segment['frames'], where)
    address = segment['address']
    active = [block for block in segment['blocks'] if block['state'] != 'inactive']
    for block in segment['blocks']:
        expect(list(block) == ['address', 'size', 'requested_size', 'state', 'frames',
                               'alloc_time_us', 'thread'], 'block of', where)
        expect(block['address'] == address, 'gap in', where, 'at', address)
        expect(block['state'] in STATES, 'state in', where)
        expect(block['requested_size'] <= block['size'], 'requested in', where)
        check_frames(block['frames'], where)
        address += block['size']
    expect(address == segment['address'] + segment['total_size'], 'blocks of', where)
    expect(segment['active_size'] == sum(block['size'] for block in active), 'active', where)
    expect(segment['requested_size'] == sum(block['requested_size'] for block in active),
           'requested', where)
    expect(segment['allocated_size'] == sum(block['size'] for block in active
                                            if block['state'] == 'active_allocated'),
           'allocated', where)


def check_entry(entry, where):
    keys = ['action', 'device_free' if entry['action'] == 'oom' else 'addr', 'size', 'stream',
            'time_us', 'compile_context', 'user_metadata', 'pool_id']
    keys += ['frames'] if 'frames' in entry else []
    expect(list(entry) == keys + ['thread', 'api'], 'keys of', where, list(entry))
    expect(isinstance(entry['pool_id'], tuple), 'pool of', where)
    if 'frames' in entry:
        expect(entry['frames'], 'empty frames at', where)
        check_frames(entry['frames'], where)


def check_document(s):
    expect(list(s) == ['segments', 'device_traces', 'allocator_settings', 'external_annotations',
                       'cca'], 'keys of the document', list(s))
    order = [(segment['device'], segment['address']) for segment in s['segments']]
    expect(order == sorted(order), 'segments out of order')
    expect(len(s['device_traces']) > max([d for d, _ in order], default=0), 'device_traces')
    for place, segment in enumerate(s['segments']):
        check_segment(segment, 'segment %d' % place)
    for device, trace in enumerate(s['device_traces']):
        for place, entry in enumerate(trace):
            check_entry(entry, 'entry %d of device %d' % (place, device))
    expect(any(s['device_traces']) or s['segments'], 'nothing that a viewer could open')
    expect(list(s['cca']) == ['version', 'host', 'pid', 'rank', 'program', 'command_line',
                              'start_time_us', 'dump_time_us', 'cause', 'driver_version',
                              'runtime_version', 'hook_coverage', 'settings', 'stats', 'counters',
                              'modules', 'devices'], 'keys of cca')


def main(pickle_name, json_name, *expressions):
    with open(pickle_name, 'rb') as file:
        data = file.read()
    with open(json_name, encoding='utf-8') as file:
        text = json.load(file)
    s = pickle.loads(data)
    check_opcodes(data)
    differ(s, text, 's')
    check_document(s)
    for expression in expressions:
        try:
            expect(eval(expression, {'s': s, 'j': text, 'data': data}), expression)
        except (LookupError, TypeError, ValueError) as error:
            expect(False, expression, repr(error))
    for problem in problems[:20]:
        print('#', problem)
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))
