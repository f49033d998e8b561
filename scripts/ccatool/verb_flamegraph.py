# SPDX-License-Identifier: MIT
"""cca flamegraph: bytes by call stack as an SVG picture, or as collapsed stacks."""
import json

from . import options
from .failure import FINE
from .flame_svg import svg
from .text import size
from .uses import TITLES, collapsed, frames_data, uses_by_stack

HELP = 'bytes by call stack as a picture (SVG), or as collapsed stacks'
USAGE = '[--at now|peak|churn] [-d N] [--collapsed | --json] [-o X.svg] FILE'
DESCRIPTION = '''Draws a flame graph: the width of a frame is the memory that was allocated by it
and by what it called. The picture holds all it needs; a click zooms in. --collapsed writes the lines
that other flame graph scripts read.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()


def add_arguments(parser):
    options.add_moment(parser)
    options.add_device(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument('--collapsed', action='store_true', help='collapsed stacks, no picture')
    form.add_argument('--json', action='store_true', help='bytes and frames as JSON, no picture')
    options.add_output(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    devices = options.devices_of(snapshot, args)
    uses = [use for use in uses_by_stack(snapshot, devices) if use.bytes_at(args.at)]
    if args.collapsed:
        text = collapsed(uses, args.at)
    elif args.json:
        text = json.dumps([{'bytes': use.bytes_at(args.at), 'frames': frames_data(use.frames)}
                           for use in uses], indent=2) + '\n'
    else:
        total = sum(use.bytes_at(args.at) for use in uses)
        text = svg([(use.frames, use.bytes_at(args.at)) for use in uses],
                   '%s %s' % (size(total), TITLES[args.at]))
    options.write_output(args.output, text)
    if args.output != '-':
        print(args.output)
    return FINE
