# SPDX-License-Identifier: MIT
"""cca segments: a bar for each segment."""
import json
import sys

from . import options
from .failure import FINE
from .history import pool_of
from .records import integer
from .text import Style, counted, size

HELP = 'a bar for each segment: what is used, what is free'
USAGE = '[-d N] [-n N] [-w COLUMNS] [--json] FILE'
DESCRIPTION = '''Draws each segment, the memory that the allocator took from the driver in one
piece, as a bar. A column stands for an equal share of the segment: # all in use, + partly, . free,
~ freed but not yet reusable. The largest segments come first.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()
USED, PENDING, FREE, PARTLY = '#', '~', '.', '+'


def add_arguments(parser):
    options.add_device(parser)
    options.add_top(parser, 40, 'segments of each device')
    parser.add_argument('-w', '--width', type=options.positive, default=50, metavar='COLUMNS',
                        help='length of a bar (default: 50)')
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    data = []
    style = Style(sys.stdout)
    for device in options.devices_of(snapshot, args):
        segments = [segment for segment in snapshot.segments
                    if integer(segment, 'device') == device]
        segments.sort(key=lambda one: (-integer(one, 'total_size'), integer(one, 'address')))
        rows = [segment_data(segment) for segment in segments]
        if args.json:
            data += rows
        else:
            print_device(device, segments, rows, max(1, args.width), args.top, style)
    if args.json:
        print(json.dumps(data, indent=2))
    return FINE


def parts_of(segment):
    """(size, mark) of each block."""
    for block in segment['blocks']:
        state = block.get('state')
        mark = USED if state == 'active_allocated' else \
            PENDING if str(state).startswith('active_') else FREE
        yield max(0, integer(block, 'size')), mark


def segment_data(segment):
    sums = {USED: 0, PENDING: 0, FREE: 0}
    largest = blocks = 0
    for length, mark in parts_of(segment):
        sums[mark] += length
        blocks += 1
        if mark == FREE:
            largest = max(largest, length)
    return {'device': integer(segment, 'device'), 'address': integer(segment, 'address'),
            'bytes': integer(segment, 'total_size'), 'stream': integer(segment, 'stream'),
            'type': segment.get('segment_type'), 'expandable': segment.get('is_expandable') is True,
            'pool_id': list(pool_of(segment, 'segment_pool_id')), 'blocks': blocks,
            'exported': any(block.get('exported') is True for block in segment['blocks']),
            'live_bytes': sums[USED], 'pending_bytes': sums[PENDING], 'free_bytes': sums[FREE],
            'largest_free_bytes': largest}


def bar(segment, width):
    """One character for each share of the segment."""
    total = max(1, integer(segment, 'total_size'))
    used, pending = [0.0] * width, [0.0] * width
    place = 0
    for length, mark in parts_of(segment):
        if mark != FREE:
            spread(used if mark == USED else pending, place * width / total,
                   min(width, (place + length) * width / total))
        place += length
    text = ''
    for live, waiting in zip(used, pending):
        if waiting > live:
            text += PENDING
        else:
            text += USED if live > 0.999 else PARTLY if live + waiting > 1e-9 else FREE
    return text


def spread(shares, low, high):
    """Adds to each column the part of it that lies between the two places."""
    column = int(low)
    while column < len(shares) and column < high:
        shares[column] += min(high, column + 1) - max(low, column)
        column += 1


def print_device(device, segments, rows, width, most, style):
    total = sum(row['bytes'] for row in rows)
    live = sum(row['live_bytes'] for row in rows)
    print(style.strong('device %d: %s in %s, %s live, %s free' % (
        device, size(total), counted(len(rows), 'segment'), size(live),
        size(sum(row['free_bytes'] for row in rows)))))
    if not rows:
        return
    print(style.faint('  %10s  %10s  %10s  %7s  %s' % (
        'size', 'live', 'free', 'blocks', 'address')))
    shown = len(rows) if not most else min(most, len(rows))
    for segment, row in list(zip(segments, rows))[:shown]:
        marks = ['expandable'] * row['expandable']
        if row['pool_id'] != [0, 0]:
            marks.append('pool %s' % '.'.join(str(part) for part in row['pool_id']))
        if row['exported']:
            marks.append('exported')
        if row['stream']:
            marks.append('stream %#x' % row['stream'])
        print('  %10s  %10s  %10s  %7d  %#-14x  %s%s' % (
            size(row['bytes']), size(row['live_bytes']), size(row['free_bytes']), row['blocks'],
            row['address'], bar(segment, width), '  ' + ', '.join(marks) if marks else ''))
    if shown < len(rows):
        print('  %10s  in %s more (-n 0 shows all)' % (
            size(sum(row['bytes'] for row in rows[shown:])),
            counted(len(rows) - shown, 'segment')))
    print(style.faint('  # in use   + partly   ~ freed, not yet reusable   . free'))
