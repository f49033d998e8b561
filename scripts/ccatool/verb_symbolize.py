# SPDX-License-Identifier: MIT
"""cca symbolize: adds file and line to the frames of a snapshot."""
import bisect
import json
import os
import sys

from . import build_id, options, symbolizer
from .failure import FINDING, FINE, Failure
from .pickle_writer import dumps
from .records import integer, record_list, string
from .text import clean, counted, number, progress

HELP = 'add file and line to the call stacks of a snapshot'
USAGE = '-o OUT [--debug-dir DIR]... [--with PROGRAM] [--json] FILE'
DESCRIPTION = '''Looks the addresses of all frames up in the files of their modules and writes the
snapshot with functions, files and lines, inlined functions included. A file counts only when its
build id is that of the recorded module; debug files are also looked for below each DIR and in
/usr/lib/debug. OUT is JSON when its name ends in .json, else a pickle.

Exit status: 0 every module with frames was found, 1 some were not, 2 bad usage or input.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()


def add_arguments(parser):
    parser.add_argument('-o', '--output', required=True, metavar='OUT', help='the file to write')
    parser.add_argument('--debug-dir', action='append', default=[], metavar='DIR',
                        help='look for modules and debug files below DIR; may be repeated')
    parser.add_argument('--with', dest='program', metavar='PROGRAM',
                        choices=[name for name, _ in symbolizer.PROGRAMS],
                        help='one of %s (default: the first installed)' % ', '.join(
                            name for name, _ in symbolizer.PROGRAMS))
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    tool = symbolizer.choose(args.program)
    snapshot = options.load(args.file)
    data = snapshot.data()
    modules = sorted((module for module in record_list(snapshot.own, 'modules')
                      if integer(module, 'base', None) is not None),
                     key=lambda module: module['base'])
    if not modules:
        raise Failure('%s: it names no modules, so that addresses tell nothing' % (
            clean(snapshot.path)))
    stacks = all_frames(data)
    wanted = wanted_addresses(stacks, modules)
    if not wanted:
        raise Failure('%s: its frames hold no addresses' % clean(snapshot.path))
    with progress('looking up addresses'):
        found, missing = look_up_all(tool, wanted, args.debug_dir)
    count = sum(replace_frames(frames, modules, found) for frames in stacks)
    if isinstance(data.get('cca'), dict):
        data['cca']['symbolized'] = 'lines'
    text = json.dumps(data, separators=(',', ':')) + '\n' if args.output.endswith('.json') \
        else dumps(data)
    options.write_output(args.output, text)
    report(args, tool, count, sum(len(frames) for frames in stacks), missing)
    return FINDING if missing else FINE


def all_frames(data):
    """Each frames list of the snapshot once."""
    found = {}
    for segment in data['segments']:
        for record in (segment, *segment['blocks']):
            if isinstance(record.get('frames'), list):
                found[id(record['frames'])] = record['frames']
    for trace in data['device_traces']:
        for entry in trace:
            if isinstance(entry.get('frames'), list):
                found[id(entry['frames'])] = entry['frames']
    return list(found.values())


def module_of(address, modules, bases):
    """The module that an address lies in. A module without an end reaches to the next one."""
    place = bisect.bisect_right(bases, address) - 1
    if place < 0:
        return None
    module = modules[place]
    end = integer(module, 'end', None)
    return module if end is None or address <= end else None


def wanted_addresses(stacks, modules):
    """{(path, build id, base): offsets}. What a frame holds is where a call returns to."""
    bases = [module['base'] for module in modules]
    wanted = {}
    for frames in stacks:
        for frame in frames:
            address = integer(frame, 'address', None) if isinstance(frame, dict) else None
            module = module_of(address, modules, bases) if address else None
            if module is not None:
                key = string(module, 'path'), string(module, 'build_id'), module['base']
                wanted.setdefault(key, set()).add(address - 1 - module['base'])
    return wanted


def look_up_all(tool, wanted, folders):
    """({(base, offset): rows}, [(path, why not)])."""
    found, missing = {}, []
    for (path, wanted_id, base), offsets in sorted(wanted.items()):
        file, why = build_id.find_file(path, wanted_id, folders)
        if file is None:
            missing.append((path, why))
            continue
        for offset, rows in symbolizer.look_up(tool, file, offsets).items():
            found[base, offset] = rows
    return found, missing


def replace_frames(frames, modules, found):
    """Puts what was found in the place of each frame; returns how many were."""
    bases = [module['base'] for module in modules]
    count, made = 0, []
    for frame in frames:
        address = integer(frame, 'address', None) if isinstance(frame, dict) else None
        module = module_of(address, modules, bases) if address else None
        rows = found.get((module['base'], address - 1 - module['base'])) if module else None
        if not rows:
            made.append(frame)
            continue
        count += 1
        for name, filename, line in rows:
            known = name if name != '??' else frame.get('name', '??')
            made.append(dict(frame, name=known, filename=filename or frame.get('filename', ''),
                             line=line, module=string(module, 'path')))
    frames[:] = made
    return count


def report(args, tool, count, total, missing):
    if args.json:
        print(json.dumps({'output': args.output, 'program': os.path.basename(tool[0]),
                          'frames': total, 'found': count,
                          'missing': [{'module': path, 'reason': why} for path, why in missing]}))
        return
    print('%s: %s of %s found by %s' % (clean(args.output), number(count),
                                        counted(total, 'frame'), os.path.basename(tool[0])))
    for path, why in missing:
        sys.stdout.write('  %s: %s\n' % (clean(path), why))
