#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rows of preload/hooks.def for people, and held against the toolkit's headers.

usage: hook_table.py [--check]        writes preload/HOOKS.md; --check: only compares
       hook_table.py --headers [DIR]  lists rows whose `since` the headers do not confirm, and driver
                                      functions that nobody has judged; status 1 when there are any
"""
import fnmatch
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROWS = os.path.join(ROOT, 'preload', 'hooks.def')
TABLE = os.path.join(ROOT, 'preload', 'HOOKS.md')

ACTIONS = {
    'SERVE': 'answered from the cache where that is safe',
    'STATE': 'forwarded, and followed',
    'LOOKUP': 'forwarded; hands out the functions of this table',
    'CAPTURE': 'forwarded; a capture begins',
    'RETRY': 'forwarded; out of memory gives idle cached memory back and asks again',
    'TRACK': 'the same, and the memory is accounted for',
    'UNTRACK': 'forwarded, and accounted for',
    'VALVE': 'forwarded; caching ends',
}
# What has to do with memory, contexts, streams, or finding functions.
CONCERNS = re.compile(r'Mem(?!cpy(?!.*Peer)|set)|Array|Alloc|Free|Ctx|Ipc|Pool|Pointer|Capture'
                      r'|Stream(Create|Destroy)|Synchronize|Graph(Inst|Launch|Upload|Exec)'
                      r'|Module(Load|Unload)|Library(Load|Unload)|GetProcAddress|ExportTable|Peer')
SUFFIX = re.compile(r'(_v\d)?(_pt[sd][sz])?$')


def base(name):
    """The name that the driver's resolver knows: no form, no variant."""
    return SUFFIX.sub('', name)


def version(since):
    """11.2 -> 11020."""
    major, minor = since.split('.')
    return int(major) * 1000 + int(minor) * 10


class Row:
    def __init__(self, name, variants, door, action, since):
        self.names = [name] + ([name + '_ptsz'] if variants == 'PTSZ' else [])
        self.name, self.door, self.action, self.since = name, door, action, since


def read(text):
    """([Row], {pattern: why}) of hooks.def."""
    rows = [Row(*found) for found in
            re.findall(r'^HOOK\((\w+), (\w+), (\w+), (\w+), ([\d.]+),', text, re.M)]
    leaves = dict(re.findall(r'^LEAVE\("([^"]+)", "([^"]+)"\)', text, re.M))
    return rows, leaves


def table(rows, leaves):
    lines = ['# What is hooked', '',
             'Made from `hooks.def` by `scripts/hook_table.py`. "Since" is the first CUDA release with this form.',
             '', '| Function | Door | Since | What happens |', '|---|---|---|---|']
    for row in rows:
        names = '`%s`' % row.name + (', `_ptsz`' if len(row.names) > 1 else '')
        lines.append('| %s | %s | %s | %s |' % (
            names, row.door.lower(), row.since,
            ACTIONS.get(row.action, row.action.lower().replace('_', ' '))))
    lines += ['', 'Left alone on purpose, of the driver\'s functions that have to do with memory, contexts and'
              ' streams:', '', '| Functions | Why |', '|---|---|']
    lines += ['| `%s` | %s |' % item for item in leaves.items()]
    return '\n'.join(lines) + '\n'


def read_header(folder, name):
    with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as file:
        return file.read()


def unconfirmed(rows, typedefs, newest=None):
    """Driver rows whose form did not come with the release they say: the resolver, asked with that
    release, would give another one. Of a pair the later variant counts. Of what is newer than
    `newest`, the release of the headers, nothing is known."""
    known = set(re.findall(r'PFN_(cu[A-Z]\w*?_v\d{4,5}(?:_ptsz)?)\)', typedefs))
    return ['%s: cudaTypedefs.h knows no form of %s' % (row.name, row.since)
            for row in rows if row.door == 'DRIVER' and
            (newest is None or version(row.since) <= newest) and
            '%s_v%d%s' % (base(row.name), version(row.since),
                          '_ptsz' if len(row.names) > 1 else '') not in known]


def unjudged(rows, leaves, header):
    """Driver functions of the header that concern the library and are neither hooked nor left."""
    judged = {base(row.name) for row in rows}
    names = {base(name) for name in re.findall(r'CUresult\s+CUDAAPI\s+(cu[A-Z]\w+)\s*\(', header)}
    return sorted(name for name in names - judged if CONCERNS.search(name) and
                  not any(fnmatch.fnmatchcase(name, pattern) for pattern in leaves))


def headers_folder(arguments):
    for folder in arguments + [os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'),
                                            'include'), '/usr/include']:
        if os.path.exists(os.path.join(folder, 'cudaTypedefs.h')):
            return folder
    sys.exit('hook_table.py: no CUDA headers found')


def check_headers(rows, leaves, folder):
    header = read_header(folder, 'cuda.h')
    release = re.search(r'#define CUDA_VERSION (\d+)', header)
    findings = unconfirmed(rows, read_header(folder, 'cudaTypedefs.h'),
                           int(release.group(1)) if release else None)
    findings += ['%s: neither hooked nor left alone' % name
                 for name in unjudged(rows, leaves, header)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def main(arguments):
    with open(ROWS, encoding='ascii') as file:
        rows, leaves = read(file.read())
    if arguments[:1] == ['--headers']:
        return check_headers(rows, leaves, headers_folder(arguments[1:]))
    if arguments == ['--check']:
        with open(TABLE, encoding='ascii') as file:
            if file.read() == table(rows, leaves):
                return 0
        print('preload/HOOKS.md is not what scripts/hook_table.py makes of hooks.def')
        return 1
    if arguments:
        sys.exit(__doc__)
    with open(TABLE, 'w', encoding='ascii') as file:
        file.write(table(rows, leaves))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
