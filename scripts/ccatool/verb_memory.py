# SPDX-License-Identifier: MIT
"""cca memory: bytes by call stack."""
import json
import sys

from . import options, stacks
from .failure import FINE
from .text import Style, clean, counted, percent, size
from .uses import TITLES, collapsed, frames_data, uses_by_stack

HELP = 'bytes by call stack: now, at the peak, or allocated in all'
USAGE = '[--at now|peak|churn] [-d N] [-n N] [--collapsed] [--json] FILE'
DESCRIPTION = '''Lists call stacks by the memory that they hold now, held at the peak of live
memory, or allocated within the history (churn). --collapsed prints one line per stack, outermost function
first, as flame graph scripts read it.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()


def add_arguments(parser):
    options.add_moment(parser)
    options.add_device(parser)
    options.add_top(parser, 20, 'stacks')
    parser.add_argument('--collapsed', action='store_true', help='collapsed stacks, all of them')
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    devices = options.devices_of(snapshot, args)
    uses = [use for use in uses_by_stack(snapshot, devices) if use.bytes_at(args.at)]
    uses.sort(key=lambda use: (-use.bytes_at(args.at), use.frames))
    if args.collapsed:
        options.write_output('-', collapsed(uses, args.at))
    elif args.json:
        print(json.dumps([use_data(use) for use in uses[:args.top or None]], indent=2))
    else:
        print_uses(snapshot, devices, uses, args)
    return FINE


def use_data(use):
    return {'now_bytes': use.now_bytes, 'now_blocks': use.now_blocks,
            'peak_bytes': use.peak_bytes, 'peak_blocks': use.peak_blocks,
            'churn_bytes': use.alloc_bytes, 'allocations': use.allocs,
            'devices': sorted(use.devices), 'frames': frames_data(use.frames)}


def print_uses(snapshot, devices, uses, args):
    style = Style(sys.stdout)
    total = sum(use.bytes_at(args.at) for use in uses)
    print(style.strong('%s %s, in %s' % (size(total), TITLES[args.at],
                                         counted(len(uses), 'call stack'))))
    if args.at == 'peak' and any(snapshot.history(device).peak_is_lost for device in devices):
        print('the peak is older than the history: its oldest moment counts')
    shown = uses[:args.top or None]
    noun = 'allocation' if args.at == 'churn' else 'block'
    for use in shown:
        print('\n%s  %s  %s' % (style.strong('%12s' % size(use.bytes_at(args.at))),
                                percent(use.bytes_at(args.at), total),
                                counted(use.blocks_at(args.at), noun)))
        for text in stacks.texts(use.frames):
            print('      ' + clean(text))
    rest = uses[len(shown):]
    if rest:
        print('\n%12s  in %s more (-n 0 shows all)' % (
            size(sum(use.bytes_at(args.at) for use in rest)), counted(len(rest), 'stack')))
