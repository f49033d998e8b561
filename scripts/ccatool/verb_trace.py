# SPDX-License-Identifier: MIT
"""cca trace: the events of a snapshot, one line each."""
import json

from . import history as events
from . import options, stacks
from .failure import FINE, Failure
from .records import integer, string
from .text import clean, counted, duration, number, shortened, size

HELP = 'the events, one line each'
USAGE = '[-d N] [-a ACTIONS] [-n N] [--first] [--stacks] [--json] FILE'
DESCRIPTION = '''Prints the events of each device, oldest first: the time since the first one, what
happened, the address, the size, live memory after it, and the innermost function of the program.
Shows the last 1000 unless -n says otherwise.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()
DEFAULT_EVENTS = 1000


def add_arguments(parser):
    options.add_device(parser)
    parser.add_argument('-a', '--actions', metavar='ACTIONS',
                        help='only these, comma separated: alloc,free_completed,oom,...')
    options.add_top(parser, DEFAULT_EVENTS, 'events of each device')
    parser.add_argument('--first', action='store_true', help='the oldest ones, not the latest')
    parser.add_argument('--stacks', action='store_true', help='whole call stacks below each event')
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    wanted = None if not args.actions else {word.strip() for word in args.actions.split(',')}
    if wanted is not None and wanted - set(events.KINDS):
        raise Failure('no action %s: one of %s' % (
            clean(sorted(wanted - set(events.KINDS))[0]), ', '.join(events.KINDS)))
    data = []
    for device in options.devices_of(snapshot, args):
        history = snapshot.history(device)
        chosen = [index for index in range(history.end)
                  if wanted is None or history.trace[index].get('action') in wanted]
        left_out = max(0, len(chosen) - args.top) if args.top else 0
        if left_out:
            chosen = chosen[:args.top] if args.first else chosen[-args.top:]
        if args.json:
            data += [dict(history.trace[index], device=device, live=history.live[index],
                          reserved=history.reserved[index]) for index in chosen]
        else:
            print_device(snapshot, history, chosen, left_out, args)
    if args.json:
        print(json.dumps(data, indent=2))
    return FINE


def print_device(snapshot, history, chosen, left_out, args):
    print('device %d: %s%s' % (history.device, counted(history.end, 'event'), '' if not left_out
                               else ', %s not shown (-n 0 shows all)' % number(left_out)))
    if not chosen:
        return
    print('  %12s  %-14s  %-14s  %10s  %10s  %s' % (
        'time', 'action', 'address', 'size', 'live', 'function'))
    start = history.times[0]
    for index in chosen:
        entry = history.trace[index]
        print('  %12s  %-14s  %-14s  %10s  %10s  %s' % (
            '+' + duration(history.times[index] - start),
            shortened(clean(string(entry, 'action', '?')), 14),
            address_of(entry), size(history.sizes[index]), size(history.live[index]),
            remark(snapshot, entry)))
        if args.stacks:
            for frame in snapshot.stacks.frames[snapshot.stacks.of(entry)]:
                print('%34s%s' % ('', clean(stacks.short(frame))))


def address_of(entry):
    address = integer(entry, 'addr', None)
    return '' if address is None or entry.get('action') == 'snapshot' else '%#x' % address


def remark(snapshot, entry):
    """The function, or what an event without one has to tell."""
    if entry.get('action') == 'oom':
        return '%s free on the device' % size(integer(entry, 'device_free'))
    text = string(entry, 'user_metadata')
    frames = snapshot.stacks.frames[snapshot.stacks.of(entry)]
    shown = stacks.chain(frames, 1) if frames else []
    return clean('  '.join(shown + ([text] if text else [])))
