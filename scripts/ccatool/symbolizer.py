# SPDX-License-Identifier: MIT
"""Addresses to functions, files and lines, by the first of three programs that is installed."""
import re
import shutil
import subprocess

from .failure import Failure

# All three speak the same form: the address, then a pair of lines for each frame, inlined first.
PROGRAMS = (
    ('llvm-symbolizer', ['--output-style=GNU', '-a', '-f', '-i', '-C']),
    ('eu-addr2line', ['-a', '-f', '-i', '-C']),
    ('addr2line', ['-a', '-f', '-i', '-C']),
)
BATCH = 500
TIMEOUT_S = 600


def choose(name=None):
    """(program, options): the one asked for, or the first found."""
    for program, options in PROGRAMS:
        if name in (None, program):
            path = shutil.which(program)
            if path:
                return path, options
    wanted = name or ' or '.join(program for program, _ in PROGRAMS)
    raise Failure('%s is not installed' % wanted)


def look_up(tool, path, offsets):
    """{offset: [(function, file, line), ...]} of an ELF file, inlined frames first."""
    program, options = tool
    found = {}
    offsets = sorted(set(offsets))
    for low in range(0, len(offsets), BATCH):
        part = offsets[low:low + BATCH]
        try:
            done = subprocess.run(
                [program, *options, '-e', path, *('%#x' % offset for offset in part)],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            continue
        found.update(parse(done.stdout.decode('utf-8', 'replace')))
    return found


def parse(text):
    found, offset, name = {}, None, None
    for line in text.splitlines():
        match = re.fullmatch(r'(0x[0-9a-fA-F]+)', line)
        if match:
            offset, name = int(match.group(1), 16), None
            found[offset] = []
        elif offset is None or not line:
            continue
        elif name is None:
            # eu-addr2line says here where the function was inlined; the next pair says it again.
            name = re.sub(r' inlined at .*? in ', ' inlined in ', line)
            name = re.sub(r' inlined in .*$', '', name)
        else:
            found[offset].append((name, *place_of(line)))
            name = None
    return {offset: rows for offset, rows in found.items() if any(
        row[0] not in ('??', '') for row in rows)}


def place_of(text):
    """(file, line) of `file:line`, `file:line:column`, `file:line (discriminator 2)`."""
    text = re.sub(r' \(discriminator \d+\)$', '', text)
    match = re.fullmatch(r'(.*?):(\d+|\?)(?::\d+)?', text)
    if not match or match.group(1) in ('??', ''):
        return '', 0
    return match.group(1), int(match.group(2)) if match.group(2) != '?' else 0
