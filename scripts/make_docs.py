#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the man pages and the shell completion from what the code itself is made of.

usage: make_docs.py cca.1 | libcca_preload.7 | completion     (to standard output)

The verbs and their options come from the tool, the variables from src/config/options.def, the
hooked calls from preload/hooks.def.
"""
import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, 'scripts'))

import hook_table  # noqa: E402
from ccatool import definition, place, prometheus, variables  # noqa: E402
from ccatool.main import VERBS  # noqa: E402


def roff(text):
    """Text of ours as roff: nothing in it is a request, code is bold."""
    text = text.replace('\\', '\\e').replace('-', '\\-')
    text = re.sub(r'`([^`]*)`', r'\\fB\1\\fP', text)
    return '\n'.join('\\&' + line if line[:1] in ('.', "'") else line
                     for line in text.split('\n'))


def parser_of(name):
    verb = VERBS[name]
    parser = argparse.ArgumentParser(prog='cca ' + name, add_help=False, allow_abbrev=False)
    verb.add_arguments(parser)
    return parser


def head(title, section, what):
    return ['.\\" SPDX-License-Identifier: MIT',
            '.TH %s %d "" "cca %s"' % (title, section, place.version()),
            '.SH NAME', roff(what)]


def option_lines(parser):
    lines = []
    for action in parser._actions:
        if not action.option_strings:
            continue
        words = ', '.join('\\fB%s\\fP' % roff(word) for word in action.option_strings)
        if action.nargs != 0:
            value = action.metavar or ('|'.join(action.choices) if action.choices
                                       else action.dest.upper())
            words += ' \\fI%s\\fP' % roff(value)
        text = (action.help or '').replace('%%', '%')
        lines += ['.TP', words, roff(text)]
    return lines


def tool_page():
    lines = head('CCA', 1, 'cca - run CUDA programs on a caching allocator, and look at the memory '
                 'they hold')
    lines += ['.SH SYNOPSIS', '.B cca', '\\fIVERB\\fP ...', '.SH DESCRIPTION', roff(
        'The tool beside libcca_preload.so(7). It starts programs with the library under them, '
        'asks running ones for snapshots, and tells what a snapshot holds. Snapshots are pickles or '
        'JSON, of this library or of PyTorch; reading one runs nothing of it.'), '.SH VERBS']
    for name, verb in VERBS.items():
        usage = ' '.join(verb.USAGE.split())
        lines += ['.SS %s' % roff(name), '.B cca %s' % roff(name), roff(usage), '.PP',
                  description(verb.DESCRIPTION)]
        lines += option_lines(parser_of(name))
    lines += ['.SH EXIT STATUS', roff('0 fine, 1 a finding, 2 bad usage or input. `cca run` ends '
                                      'with the status of the program.'),
              '.SH ENVIRONMENT', '.TP', '\\fBNO_COLOR\\fP',
              'no colours, also on a terminal', '.PP',
              'The variables of the library are in \\fBlibcca_preload\\fP(7).',
              '.SH SEE ALSO', '\\fBlibcca_preload\\fP(7)']
    return lines


def description(text):
    """Paragraphs are filled; indented lines stay as they are."""
    parts = []
    for paragraph in text.split('\n\n'):
        if any(line.startswith('  ') for line in paragraph.split('\n')):
            parts.append('.nf\n%s\n.fi' % roff(paragraph))
        else:
            parts.append(roff(paragraph))
    return '\n.PP\n'.join(parts)


def helps():
    """{variable: help text} of options.def; variables.known() keeps the rest of a row."""
    rows = definition.rows('options.def', variables.ROW_KINDS)
    return {fields[1]: definition.unquoted(fields[-1]) for _, fields in rows}


def library_page():
    lines = head('LIBCCA_PRELOAD', 7, 'libcca_preload.so - a caching allocator under unmodified '
                 'CUDA programs')
    lines += ['.SH SYNOPSIS', '.B LD_PRELOAD=libcca_preload.so', '\\fIPROGRAM\\fP', '.br',
              '.B cca run \\-\\-', '\\fIPROGRAM\\fP', '.SH DESCRIPTION', roff(
                  'Serves the CUDA memory calls of a program from memory that it keeps, with the '
                  'policy of PyTorch\'s allocator, and keeps statistics and a history with call '
                  'stacks. Snapshots are written on a signal, at exit and when memory runs out; '
                  'cca(1) and PyTorch\'s memory_viz read them.'), '.SH VARIABLES', roff(
                      'Sizes take bytes or a suffix (K M G, KiB MiB GiB; powers of two), booleans '
                      '1/0, true/false, yes/no, on/off. Empty means unset, but for `CCA_DUMP_ON`. '
                      'A bad value or an unknown name gives one line, and the program goes on.')]
    texts = helps()
    for name, row in variables.known().items():
        default = row.default if row.default != '' else 'empty'
        words = '\\fB%s\\fP' % roff(name)
        if row.words:
            words += ' (%s)' % roff(', '.join(row.words))
        lines += ['.TP', words, roff(texts[name]) + '. Default: %s.' % roff(default)]
    lines += metrics_section()
    with open(os.path.join(ROOT, 'preload', 'hooks.def'), encoding='utf-8') as stream:
        rows, _ = hook_table.read(stream.read())
    lines += ['.SH CALLS', roff('What is hooked, by what happens. `_ptsz` forms are included.')]
    by_action = {}
    for row in rows:
        by_action.setdefault(row.action, []).append(row.name)
    for action, names in by_action.items():
        text = hook_table.ACTIONS.get(action, action.lower().replace('_', ' '))
        lines += ['.TP', roff(text), roff(', '.join(sorted(set(names)))) + '.']
    lines += ['.SH SEE ALSO', '\\fBcca\\fP(1)']
    return lines


def metrics_section():
    """What the file of CCA_METRICS_FILE and `cca export --to prometheus` hold."""
    lines = ['.SH METRICS', roff('Written to `CCA_METRICS_FILE`, for each device; those of the '
                                 'first group also for each pool (all, small, large).')]
    rows = [(name, text) for name, _, _, _, text in prometheus.pool_metrics()]
    rows += [(name, text) for name, _, _, text in prometheus.device_metrics()]
    for name, text in rows:
        lines += ['.TP', '\\fB%s\\fP' % roff(name), roff(text)]
    return lines


def completion():
    """A function for bash: verbs, the options of each, the words of an option, then files."""
    lines = ['# SPDX-License-Identifier: MIT', '# bash completion for cca', '_cca()', '{',
             '    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}',
             '    local verb=${COMP_WORDS[1]}', '    COMPREPLY=()',
             '    if [ "$COMP_CWORD" -eq 1 ]; then',
             '        COMPREPLY=($(compgen -W "%s --help --version" -- "$word"))' % ' '.join(VERBS),
             '        return', '    fi', '    case "$verb $before" in']
    words_of, takes_pid = {}, []
    lines.append('    "run --set") compopt -o nospace; COMPREPLY=($(compgen -W "%s" -- "$word")); '
                 'return ;;' % ' '.join(name[len(variables.PREFIX):] + '='
                                        for name in variables.known()))
    for name in VERBS:
        parser = parser_of(name)
        words_of[name] = ['--help']
        for action in parser._actions:
            words_of[name] += action.option_strings
            if action.option_strings and action.choices:
                for option in action.option_strings:
                    lines.append('    "%s %s") COMPREPLY=($(compgen -W "%s" -- "$word")); return ;;'
                                 % (name, option, ' '.join(action.choices)))
            elif action.option_strings and 'DIR' in (action.metavar or ''):
                for option in action.option_strings:
                    lines.append('    "%s %s") compopt -o filenames; '
                                 'COMPREPLY=($(compgen -d -- "$word")); return ;;' % (name, option))
            if action.metavar == 'PID':
                takes_pid.append(name)
    lines += ['    esac', '    if [[ $word == -* ]]; then', '        case $verb in']
    lines += ['        %s) COMPREPLY=($(compgen -W "%s" -- "$word")) ;;' % (name, ' '.join(words))
              for name, words in words_of.items()]
    lines += ['        esac', '        return', '    fi', '    case $verb in',
              '    %s) COMPREPLY=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word")) ;;'
              % '|'.join(takes_pid),
              '    run|check) compopt -o filenames; COMPREPLY=($(compgen -c -f -- "$word")) ;;',
              '    *) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")) ;;',
              '    esac', '}', 'complete -F _cca cca']
    return lines


PAGES = {'cca.1': tool_page, 'libcca_preload.7': library_page, 'completion': completion}


def main(argv):
    if len(argv) != 1 or argv[0] not in PAGES:
        sys.stderr.write('usage: make_docs.py %s\n' % '|'.join(PAGES))
        return 2
    sys.stdout.write('\n'.join(PAGES[argv[0]]()) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
