# SPDX-License-Identifier: MIT
"""cca compare: what changed between two snapshots."""
import json
import sys

from . import options, stacks
from .failure import FINE
from .records import integer
from .summary import summaries
from .text import Style, clean, counted, number, shortened, size
from .uses import frames_data, uses_by_stack

HELP = 'what grew between two snapshots: by stack, segments gone and new'
USAGE = '[-d N] [-n N] [--json] BEFORE AFTER'
DESCRIPTION = '''Compares two snapshots, of one program at two moments or of two runs. Call stacks
are matched by their frames, segments by device, address and size (of one process only).'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()
WIDTH = 100
FIGURES = (('live', 'live'), ('live_peak', 'live, peak'), ('cached', 'cached'),
           ('reserved', 'reserved'), ('reserved_peak', 'reserved, peak'))


def add_arguments(parser):
    options.add_device(parser)
    options.add_top(parser, 20, 'stacks')
    options.add_json(parser)
    parser.add_argument('before', metavar='BEFORE')
    parser.add_argument('after', metavar='AFTER')


def main(args):
    shots = [options.load(path) for path in (args.before, args.after)]
    devices = sorted(set(shots[0].devices()) | set(shots[1].devices()))
    if args.device is not None:
        for shot in shots:
            options.devices_of(shot, args)
        devices = [args.device]
    totals = compared_totals(shots, devices)
    changes = compared_stacks(shots, devices)
    gone, new = compared_segments(shots, devices)
    if args.json:
        print(json.dumps({
            'devices': totals, 'stacks': [
                {'before_bytes': before, 'after_bytes': after, 'change_bytes': after - before,
                 'change_blocks': blocks, 'frames': frames_data(frames)}
                for frames, before, after, blocks in changes[:args.top or None]],
            'segments_gone': gone, 'segments_new': new,
            'same_process': same_process(shots)}, indent=2))
    else:
        print_all(shots, totals, changes, gone, new, args.top)
    return FINE


def same_process(shots):
    """Whether both files are of one process, so that addresses can be compared."""
    keys = ('host', 'pid', 'start_time_us')
    if not all(shot.is_ours for shot in shots):
        return None
    return all(shots[0].own.get(key) == shots[1].own.get(key) for key in keys)


def compared_totals(shots, devices):
    before, after = ({one.device: one for one in summaries(shot)} for shot in shots)
    rows = []
    for device in devices:
        pair = before.get(device), after.get(device)
        if all(one is None or one.is_unused for one in pair):
            continue
        rows.append({'device': device, **{key: [
            getattr(one, key) if one else None for one in pair] for key, _ in FIGURES}})
    return rows


def compared_stacks(shots, devices):
    """(frames, bytes before, bytes after, change of blocks), the largest change first."""
    sums = {}
    for place, shot in enumerate(shots):
        for use in uses_by_stack(shot, [one for one in devices if one in shot.devices()]):
            row = sums.setdefault(use.frames, [0, 0, 0])
            row[place] += use.now_bytes
            row[2] += use.now_blocks if place else -use.now_blocks
    changes = [(frames, *row) for frames, row in sums.items() if row[0] != row[1] or row[2]]
    return sorted(changes, key=lambda row: (-abs(row[2] - row[1]), row[0]))


def compared_segments(shots, devices):
    """Segments that only one of the files has, as dicts."""
    keys = [{(integer(segment, 'device'), integer(segment, 'address'),
              integer(segment, 'total_size')) for segment in shot.segments
             if integer(segment, 'device') in devices} for shot in shots]

    def rows(found):
        return [{'device': device, 'address': address, 'bytes': length}
                for device, address, length in sorted(found)]

    return rows(keys[0] - keys[1]), rows(keys[1] - keys[0])


def signed(count):
    return ('+' if count > 0 else '') + size(count)


def print_all(shots, totals, changes, gone, new, most):
    style = Style(sys.stdout)
    print('before  %s\nafter   %s' % tuple(clean(shot.path) for shot in shots))
    if same_process(shots) is False:
        print('these are two processes: addresses of segments cannot be compared')
    for row in totals:
        print('\n%s%s' % (style.strong('%-16s' % ('device %d' % row['device'])),
                          style.faint('%12s %12s %12s' % ('before', 'after', 'change'))))
        for key, title in FIGURES:
            before, after = row[key]
            change = '' if before is None or after is None else \
                '=' if before == after else signed(after - before)
            print('  %-14s%12s %12s %12s' % (title, *(
                '-' if value is None else size(value) for value in (before, after)), change))
    grown = sum(max(0, after - before) for _, before, after, _ in changes)
    print('\n' + style.strong('call stacks, by change of live memory'))
    if not changes:
        print('  none changed')
    for frames, before, after, blocks in changes[:most or None]:
        shown = [clean(text) for text in stacks.chain(frames, 6)]
        print('  %12s  %s%s blocks  %s' % (
            signed(after - before), '+' if blocks > 0 else '', number(blocks),
            shortened(' < '.join(shown), WIDTH)))
    if most and len(changes) > most:
        print('  %s more (-n 0 shows all)' % counted(len(changes) - most, 'stack'))
    if grown:
        print('  %12s  in all stacks that grew' % signed(grown))
    if same_process(shots) is not False:
        for title, rows in (('segments gone', gone), ('segments new', new)):
            print('\n%s %s, %s' % (style.strong(title + ':'), number(len(rows)),
                                   size(sum(row['bytes'] for row in rows))))
            for row in rows[:most or None]:
                print('  device %d  %#x  %12s' % (row['device'], row['address'],
                                                  size(row['bytes'])))
