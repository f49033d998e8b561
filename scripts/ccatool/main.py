# SPDX-License-Identifier: MIT
"""The command line: picks the verb, and turns every way of failing into one line and a status."""
import argparse
import os
import sys

from . import (place, verb_check, verb_compare, verb_dump, verb_export, verb_flamegraph,
               verb_leaks, verb_memory, verb_merge, verb_report, verb_reset_peak, verb_run,
               verb_segments, verb_show, verb_stats, verb_symbolize, verb_trace, verb_trim)
from .failure import BAD_INPUT, FINE, Failure

VERBS = {
    'run': verb_run,
    'check': verb_check,
    'dump': verb_dump,
    'trim': verb_trim,
    'reset-peak': verb_reset_peak,
    'show': verb_show,
    'stats': verb_stats,
    'trace': verb_trace,
    'segments': verb_segments,
    'memory': verb_memory,
    'flamegraph': verb_flamegraph,
    'compare': verb_compare,
    'leaks': verb_leaks,
    'report': verb_report,
    'symbolize': verb_symbolize,
    'merge': verb_merge,
    'export': verb_export,
}


def help_text():
    lines = ['usage: cca VERB ...', '',
             'A caching allocator under CUDA programs: run them, look at what they hold.', '']
    lines += ['  %-11s %s' % (name, verb.HELP) for name, verb in VERBS.items()]
    lines += ['', '`cca VERB --help` tells more.',
              'Exit status: 0 fine, 1 a finding, 2 bad usage or input.']
    return '\n'.join(lines)


def split_command(words, value_options):
    """Parts `[options] [--] command args`: the command is all from `--` or the first plain word."""
    index = 0
    while index < len(words):
        word = words[index]
        if word == '--':
            return words[:index], words[index + 1:]
        if not word.startswith('-') or word == '-':
            return words[:index], words[index:]
        index += 2 if word in value_options else 1
    return words, []


def run_verb(name, words):
    verb = VERBS[name]
    parser = argparse.ArgumentParser(prog='cca ' + name, description=verb.DESCRIPTION,
                                     usage='cca %s %s' % (name, verb.USAGE), allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verb.add_arguments(parser)
    command = []
    if verb.TAKES_COMMAND:
        words, command = split_command(words, verb.VALUE_OPTIONS)
    args = parser.parse_args(words)
    if verb.TAKES_COMMAND:
        args.command = command
    return verb.main(args)


def dispatch(argv):
    if not argv or argv[0] in ('-h', '--help', 'help'):
        stream = sys.stdout if argv else sys.stderr
        print(help_text(), file=stream)
        return FINE if argv else BAD_INPUT
    if argv[0] == '--version':
        print('cca ' + place.version())
        return FINE
    if argv[0] not in VERBS:
        raise Failure('no verb %s: one of %s' % (argv[0], ', '.join(VERBS)))
    return run_verb(argv[0], argv[1:])


def main(argv):
    """Runs the tool; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors='backslashreplace')
    try:
        status = dispatch(argv)
        sys.stdout.flush()
        return status
    except Failure as failure:
        sys.stderr.write('cca: %s\n' % failure.message)
        return failure.status
    except BrokenPipeError:
        # The reader has seen enough. Nothing may be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except KeyboardInterrupt:
        return 130
