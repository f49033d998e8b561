# SPDX-License-Identifier: MIT
"""cca leaks: blocks that are live at exit, by call stack."""
import json
import sys

from . import options, stacks
from .failure import FINDING, FINE, Failure
from .records import integer
from .text import Style, clean, counted, duration, size
from .uses import frames_data, uses_by_stack

HELP = 'blocks that were not freed, by call stack, with their age'
USAGE = '[--since SECONDS | --since-mark] [-d N] [-n N] [--json] FILE'
DESCRIPTION = '''Lists the blocks that were live when the snapshot was written. In a snapshot that
was written at exit these are leaks; in any other they are what the program holds, and the age tells
what is old. --since leaves out what was allocated within the first SECONDS of the program: weights
and buffers that are meant to stay. --since-mark does so up to the program's last cca_mark().

Exit status: 0 nothing is left, or the program was still running; 1 leaks; 2 bad usage or input.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()


def add_arguments(parser):
    parser.add_argument('--since', type=float, metavar='SECONDS', default=None,
                        help='only blocks allocated later than that after the start')
    parser.add_argument('--since-mark', action='store_true',
                        help='only blocks allocated after the last cca_mark()')
    options.add_device(parser)
    options.add_top(parser, 20, 'stacks')
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    devices = options.devices_of(snapshot, args)
    own = snapshot.own
    is_exit = own.get('cause') == 'exit'
    if args.since is not None:
        keep_late_blocks(snapshot, integer(own, 'start_time_us') + int(args.since * 1e6))
    elif args.since_mark:
        if integer(own, 'mark_time_us') <= 0:
            raise Failure('%s: no mark in it' % clean(snapshot.path))
        keep_late_blocks(snapshot, own['mark_time_us'])
    uses = [use for use in uses_by_stack(snapshot, devices) if use.now_blocks]
    uses.sort(key=lambda use: (-use.now_bytes, use.frames))
    end_us = integer(own, 'dump_time_us')
    if args.json:
        print(json.dumps({'at_exit': is_exit, 'bytes': sum(use.now_bytes for use in uses),
                          'blocks': sum(use.now_blocks for use in uses),
                          'stacks': [leak_data(use, end_us) for use in uses[:args.top or None]]},
                         indent=2))
    else:
        print_leaks(uses, is_exit, end_us, args.top)
    return FINDING if uses and is_exit else FINE


def keep_late_blocks(snapshot, since_us):
    """Takes the older blocks for free; blocks of unknown age stay."""
    for segment in snapshot.segments:
        for block in segment['blocks']:
            born = integer(block, 'alloc_time_us', None)
            if block.get('state') == 'active_allocated' and born is not None and born < since_us:
                block['state'] = 'inactive'


def leak_data(use, end_us):
    return {'bytes': use.now_bytes, 'blocks': use.now_blocks, 'devices': sorted(use.devices),
            'oldest_age_us': end_us - use.oldest_us if use.oldest_us and end_us else None,
            'newest_age_us': end_us - use.newest_us if use.newest_us and end_us else None,
            'frames': frames_data(use.frames)}


def age(use, end_us):
    if not use.oldest_us or not end_us:
        return ''
    oldest, newest = max(0, end_us - use.oldest_us), max(0, end_us - use.newest_us)
    if duration(oldest) == duration(newest):
        return '  age %s' % duration(oldest)
    return '  age %s to %s' % (duration(newest), duration(oldest))


def print_leaks(uses, is_exit, end_us, most):
    style = Style(sys.stdout)
    if not uses:
        print('nothing is live')
        return
    print(style.strong('%s %s, in %s' % (
        size(sum(use.now_bytes for use in uses)),
        'not freed at exit' if is_exit else 'live (the program was still running)',
        counted(sum(use.now_blocks for use in uses), 'block'))))
    shown = uses[:most or None]
    for use in shown:
        print('\n%s  %s%s' % (style.strong('%12s' % size(use.now_bytes)),
                              counted(use.now_blocks, 'block'), age(use, end_us)))
        for text in stacks.texts(use.frames):
            print('      ' + clean(text))
    rest = uses[len(shown):]
    if rest:
        print('\n%12s  in %s more (-n 0 shows all)' % (
            size(sum(use.now_bytes for use in rest)), counted(len(rest), 'stack')))
