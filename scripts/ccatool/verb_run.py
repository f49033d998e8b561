# SPDX-License-Identifier: MIT
"""cca run: sets LD_PRELOAD and the library's variables, then becomes the program."""
import json
import os
import re
import sys

from . import place, program, variables
from .failure import BAD_INPUT, FINE, Failure, reason
from .doors import ASAN_NAME
from .dump_files import DEFAULT_NAME
from .linkage import Resolver
from .program import NOT_EXECUTABLE, NOT_FOUND
from .text import clean

HELP = 'run a program with the library under it'
USAGE = ('[-o DIR] [--set NAME=VALUE]... [--mode cache|count|off]\n'
         '               [--first] [--force] [--library PATH] [--show-config [--json]]\n'
         '               [--] PROGRAM [ARGS ...]')
DESCRIPTION = '''Starts the program with the library preloaded, behind what LD_PRELOAD holds, and
with the variables given. Ends in exec: the program keeps this process, its terminal and its status.

Exit status: the program's own; 127 not found, 126 cannot be executed, 2 bad usage or a program that
the library cannot reach.'''
TAKES_COMMAND = True
VALUE_OPTIONS = ('-o', '--output', '--set', '--mode', '--library')


def add_arguments(parser):
    parser.add_argument('-o', '--output', metavar='DIR',
                        help='write snapshots to this folder, which is made when missing')
    parser.add_argument('--set', metavar='NAME=VALUE', action='append', default=[], dest='settings',
                        help='set a variable, with or without its CCA_; may be repeated')
    parser.add_argument('--mode', choices=('cache', 'count', 'off'), help='same as --set MODE=...')
    parser.add_argument('--first', action='store_true',
                        help='put the library in front of the other entries of LD_PRELOAD')
    parser.add_argument('--force', action='store_true',
                        help='run a program that the library cannot reach all the same')
    parser.add_argument('--library', metavar='PATH', help='preload this file')
    parser.add_argument('--show-config', action='store_true',
                        help='print every variable as the library would take it, and end')
    parser.add_argument('--json', action='store_true', help='with --show-config: as JSON')


def main(args):
    given = settings_of(args)
    environment = dict(os.environ)
    environment.update(given)
    if args.output is not None:
        given['CCA_DUMP_FILE'] = environment['CCA_DUMP_FILE'] = dump_pattern(
            args.output, environment.get('CCA_DUMP_FILE') or DEFAULT_NAME)
    if args.show_config:
        show_config(variables.effective_values(environment, given), args.json)
        return FINE
    if args.json:
        raise Failure('run: --json needs --show-config')
    if not args.command:
        raise Failure('run: no program given')
    library = place.checked_for_preload(args.library) if args.library else place.find_library()
    found = program.resolve(args.command[0])
    check_reach(found, args)
    if args.output is not None:
        make_folder(environment['CCA_DUMP_FILE'], args.output)
    environment['LD_PRELOAD'] = preload_list(environment.get('LD_PRELOAD', ''), library, args.first,
                                             asan_runtime(found))
    execute(found.path, args.command, environment)
    return BAD_INPUT


def show_config(rows, is_json):
    if is_json:
        print(json.dumps([{'name': name, 'value': value, 'from': remark}
                          for name, value, remark in rows], indent=2))
        return
    for name, value, remark in rows:
        print('%-36s %-28s %s' % (clean(name), clean(value), clean(remark)))


def settings_of(args):
    """The variables from --set and --mode, by full name."""
    given = {}
    for text in args.settings:
        name, separator, value = text.partition('=')
        if not separator:
            raise Failure('--set %s: not of the form NAME=VALUE' % text)
        given[variables.full_name(name)] = value
    if args.mode:
        given['CCA_MODE'] = args.mode
    return given


def dump_pattern(folder, pattern):
    """The user's pattern inside the folder; of an absolute one the last part."""
    if os.path.isabs(pattern):
        pattern = os.path.basename(pattern)
    return os.path.join(os.path.abspath(folder).replace('%', '%%'), pattern)


def make_folder(pattern, folder):
    """Makes the folder, and those that the pattern names as they are."""
    place_of_file = os.path.dirname(pattern)
    try:
        os.makedirs(os.path.abspath(folder), exist_ok=True)
        if '%' not in place_of_file.replace('%%', ''):
            os.makedirs(place_of_file.replace('%%', '%'), exist_ok=True)
    except OSError as error:
        raise Failure('-o %s: %s' % (folder, reason(error))) from error


def check_reach(found, args):
    """Refuses a program that LD_PRELOAD does not reach: it would run, and nothing would be seen."""
    if args.force:
        return
    obstacles = program.obstacles(found)
    if obstacles:
        raise Failure('%s %s' % (args.command[0], obstacles[0]))


def asan_runtime(found):
    """The shared AddressSanitizer runtime that the program needs, or None. It must come first."""
    if found.image is None:
        return None
    for library in Resolver(found.image, os.environ).libraries():
        if ASAN_NAME.match(library.name):
            return library.path or library.name
    return None


def preload_list(existing, library, is_first, asan):
    """LD_PRELOAD's new text: the entries that were there, ours, and ASan's in front of all."""
    entries = [entry for entry in re.split(r'[\s:]+', existing) if entry]
    ours = [entry for entry in entries if os.path.basename(entry) == place.LIBRARY_NAME]
    if is_first:
        entries = (ours or [library]) + [entry for entry in entries if entry not in ours]
    elif not ours:
        entries.append(library)
    if asan:
        entries = [asan] + [entry for entry in entries
                            if os.path.basename(entry) != os.path.basename(asan)]
    return ':'.join(entries)


def execute(path, command, environment):
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(path, command, environment)
    except FileNotFoundError as error:
        raise Failure('%s: not found' % command[0], NOT_FOUND) from error
    except OSError as error:
        raise Failure('%s: %s' % (command[0], reason(error)), NOT_EXECUTABLE) from error
