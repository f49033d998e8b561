# SPDX-License-Identifier: MIT
"""cca export: the snapshot in other forms."""
import json
import os

from . import options
from .chrome_trace import chrome_trace
from .failure import FINE, Failure
from .pickle_writer import dumps
from .prometheus import metrics
from .text import progress
from .uses import collapsed, uses_by_stack

HELP = 'the snapshot as chrome-trace, json, pickle, prometheus or collapsed stacks'
USAGE = '--to FORM [--at now|peak|churn] [-o OUT [--json]] FILE'
DESCRIPTION = '''Writes a snapshot in another form, to standard output or to OUT:

  chrome-trace  for Perfetto (ui.perfetto.dev) and chrome://tracing
  json, pickle  the same snapshot; PyTorch's viewer and scripts read the pickle
  prometheus    statistics and counters in Prometheus' text format
  collapsed     bytes by call stack, for flame graph scripts'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()


def add_arguments(parser):
    parser.add_argument('--to', required=True, choices=sorted(FORMS), metavar='FORM',
                        help='one of ' + ', '.join(sorted(FORMS)))
    options.add_moment(parser, 'collapsed: ')
    options.add_output(parser)
    parser.add_argument('--json', action='store_true',
                        help='tell in JSON what was written to OUT')
    options.add_file(parser)


def main(args):
    if args.json and args.output == '-':
        raise Failure('export: --json needs -o OUT')
    snapshot = options.load(args.file)
    with progress('writing'):
        data = FORMS[args.to](snapshot, args)
        options.write_output(args.output, data)
    if args.json:
        print(json.dumps({'file': args.output, 'form': args.to,
                          'bytes': os.path.getsize(args.output)}))
    return FINE


def to_json(snapshot, args):
    return json.dumps(snapshot.data(), separators=(',', ':')) + '\n'


def to_pickle(snapshot, args):
    return dumps(snapshot.data())


def to_chrome_trace(snapshot, args):
    return json.dumps(chrome_trace(snapshot), separators=(',', ':')) + '\n'


def to_prometheus(snapshot, args):
    return metrics(snapshot)


def to_collapsed(snapshot, args):
    return collapsed([use for use in uses_by_stack(snapshot) if use.bytes_at(args.at)], args.at)


FORMS = {'chrome-trace': to_chrome_trace, 'json': to_json, 'pickle': to_pickle,
         'prometheus': to_prometheus, 'collapsed': to_collapsed}
