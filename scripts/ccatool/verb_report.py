# SPDX-License-Identifier: MIT
"""cca report: one self-contained HTML page."""
import base64
import html
import json
import os
import zlib

from . import options
from .failure import FINE, Failure, reason
from .report_data import page_data
from .text import clean, progress

HELP = 'one self-contained HTML page: timeline, stacks, state, flame graph'
USAGE = '-o X.html [--json] FILE'
DESCRIPTION = '''Writes one HTML page that holds everything it needs: it opens from disk, without a
network, in any browser of 2023 or later. Of a device with more than 200,000 events the largest
blocks are kept one by one; the page says what was left out.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

PARTS = ('format.js', 'palette.js', 'data.js', 'axis.js', 'plot.js', 'timeline.js', 'bands.js',
         'state.js', 'flame.js', 'table.js', 'panels.js', 'main.js')


def add_arguments(parser):
    parser.add_argument('-o', '--output', metavar='X.html', help='the page to write (default: the '
                        'snapshot\'s name with .html); - is standard output')
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    with progress('adding up'):
        head, columns = page_data(snapshot)
        page = render(head, columns)
    path = args.output
    if path is None:
        path = 'report.html' if args.file == '-' else os.path.splitext(args.file)[0] + '.html'
    options.write_output(path, page)
    if path != '-':
        if args.json:
            print(json.dumps({'page': path, 'bytes': len(page.encode()), 'devices': [
                {key: device[key] for key in ('device', 'events', 'kept', 'left_out')}
                for device in head['devices']]}))
        else:
            print(path)
    return FINE


def part(name):
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'page', name)
    try:
        with open(path, encoding='utf-8') as stream:
            return stream.read()
    except OSError as error:
        raise Failure('%s: %s' % (clean(path), reason(error))) from error


def render(head, columns):
    """The page. Nothing of the snapshot can end the script element that holds it."""
    text = json.dumps(head, separators=(',', ':')).replace('<', '\\u003c')
    packed = base64.b64encode(zlib.compress(columns, 6)).decode('ascii')
    values = {
        'TITLE': html.escape('cca: ' + os.path.basename(head['file'])),
        'STYLE': part('page.css'),
        'SCRIPT': '\n'.join(part(name) for name in PARTS),
        'HEAD': text,
        'COLUMNS': packed,
    }
    page = part('page.html')
    pieces = page.split('@@')
    return ''.join(values[piece] if place % 2 else piece for place, piece in enumerate(pieces))
