# SPDX-License-Identifier: MIT
"""cca check: which doors fit a program and what would stop the library."""
import json
import os

from . import doors, program
from .failure import BAD_INPUT, FINDING, FINE, Failure
from .text import Style, clean, progress
import sys

HELP = 'tell whether the library will serve a program; runs nothing of it'
USAGE = '[--json] [--] PROGRAM [ARGS ...]'
DESCRIPTION = '''Reads the program's file and those of its libraries, and tells which ways into CUDA
("doors") it uses, which of them the library serves, and what would stop it. Nothing is run.

Exit status: 0 the library will serve it, 1 something stops it, 2 bad usage.'''
TAKES_COMMAND = True
VALUE_OPTIONS = ()


def add_arguments(parser):
    parser.add_argument('--json', action='store_true', help='print JSON')


def main(args):
    if not args.command:
        raise Failure('check: no program given')
    try:
        found = program.resolve(args.command[0])
    except Failure as failure:
        raise Failure(failure.message, BAD_INPUT) from failure
    with progress('reading ' + clean(found.path)):
        report = doors.examine(found, os.environ)
    if args.json:
        print(json.dumps(as_data(report), indent=2))
    else:
        print(as_text(report, Style(sys.stdout)))
    return FINE if report.is_served else FINDING


def as_data(report):
    image = report.program.image
    data = {
        'program': report.program.path,
        'image': report.program.image_path,
        'served': report.is_served,
        'doors': {name: {'present': bool(found), 'evidence': found}
                  for name, found in report.doors.items()},
        'loads_libraries_at_run_time': report.loads_later,
        'calls': report.calls,
        'asan': report.asan,
        'secure': program.secure_reason(report.program.image_path),
        'stops': report.stops,
        'notes': report.notes,
        'libraries': [{'name': library.name, 'path': library.path, 'asked_by': library.asked_by}
                      for library in report.libraries],
    }
    if image is not None:
        data.update({'bits': image.bits, 'machine': image.machine, 'static': image.is_static,
                     'interpreter': image.interpreter, 'needed': image.needed,
                     'runpath': image.runpath or image.rpath})
    return data


def as_text(report, style):
    image = report.program.image
    lines = [style.strong(clean(report.program.path))]
    if report.program.image_path != report.program.path:
        lines.append('  run by     %s' % clean(report.program.image_path))
    if image is not None:
        lines.append('  file       ELF %d-bit, %s, %s' % (
            image.bits, image.machine,
            'static' if image.is_static else 'loader ' + clean(image.interpreter)))
    for name, title in doors.TITLES.items():
        evidence = report.doors[name]
        if evidence:
            lines.append('  door       %s: served (%s)' % (title, clean('; '.join(evidence))))
    if report.calls:
        lines.append('  calls      %s' % clean(', '.join(report.calls)))
    lines += ['  note       %s' % clean(note) for note in report.notes]
    lines += [style.warn('  stops it   %s' % clean(stop)) for stop in report.stops]
    lines.append('  verdict    %s' % (
        'will not be served' if report.stops else
        'will be served' if any(report.doors.values()) else 'cannot be told'))
    return '\n'.join(lines)
