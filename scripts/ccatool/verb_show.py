# SPDX-License-Identifier: MIT
"""cca show: one screen about a snapshot."""
import json
import os
import sys

from . import options, stacks
from .device_text import WIDTH, device_data, device_paragraphs, ranges
from .failure import FINE
from .hints import hints
from .records import integer, string
from .summary import summaries
from .text import (Style, alike, clean, counted, cuda_version, duration, moment, number, progress,
                   shortened, size)
from .uses import frames_data, moment_shown, uses_by_stack

HELP = 'one screen about a snapshot: what, where, why, totals, top stacks'
USAGE = '[--json] FILE'
DESCRIPTION = '''Shows what a snapshot holds: the program, when and why it was written, the memory
of each device, the call stacks that hold most of it, and what the figures suggest. Reads pickles
and JSON, ours and PyTorch's. `-` is standard input.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

TOP_STACKS = 5
MESSAGES = 4
STACK_DEPTH = 12
STACK_ROW = '%-11s%10s %9s %17s'
STACK_INDENT = 52
CAUSES = {'signal': 'on a signal', 'exit': 'at exit', 'oom': 'out of memory', 'api': 'by request',
          'term': 'on SIGTERM', 'abort': 'on an abort', 'interval': 'by the clock'}


def add_arguments(parser):
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    with progress('adding up'):
        devices = summaries(snapshot)
        uses = uses_by_stack(snapshot)
        advice = hints(snapshot, devices)
    if args.json:
        print(json.dumps(as_data(snapshot, devices, uses, advice), indent=2))
    else:
        print('\n'.join(as_lines(snapshot, devices, uses, advice, Style(sys.stdout))))
    return FINE


def as_lines(snapshot, devices, uses, advice, style):
    lines = head_lines(snapshot, style)
    for text in device_paragraphs(devices, style):
        lines += [''] + text
    lines += [''] + stack_lines(uses, devices, style)
    return lines + ['', style.strong('hints')] + hint_lines(advice, style)


def hint_lines(advice, style):
    if not advice:
        return ['  none: nothing here asks for another setting']
    return [line for hint in advice
            for line in wrapped(hint.sentence(), '  - ', '    ', style.warn)]


def head_lines(snapshot, style):
    rows = head_rows(snapshot)
    return [style.strong('%-9s %s' % rows[0])] + ['%-9s %s' % row for row in rows[1:]]


def head_rows(snapshot):
    """(title, text) of what, where, when and why."""
    own = snapshot.own
    rows = [('snapshot', clean(snapshot.path))]
    if not snapshot.is_ours:
        return rows + [('written', 'not by cca: figures are computed from segments and trace')]
    words = own.get('command_line')
    program = [clean(word) for word in words if isinstance(word, str)] \
        if isinstance(words, (list, tuple)) else []
    rows.append(('program', shortened(
        ' '.join(program) or clean(string(own, 'program')) or 'unknown', WIDTH - 10)))
    where = ['host ' + (clean(string(own, 'host')) or 'unknown')]
    where += ['%s %d' % (key, integer(own, key)) for key in ('pid', 'rank')
              if integer(own, key, None) is not None]
    rows.append(('where', ', '.join(where)))
    rows.append(('written', when_and_why(own)))
    versions = ['cca ' + clean(string(own, 'version'))] if string(own, 'version') else []
    versions += ['%s %s' % (part, cuda_version(integer(own, part + '_version')))
                 for part in ('driver', 'runtime') if integer(own, part + '_version')]
    if versions:
        rows.append(('versions', ', '.join(versions)))
    return rows + message_rows(own)


def message_rows(own):
    """What the library had to say: why it does not cache, what it refused."""
    messages = own.get('messages')
    texts = [clean(text) for text in messages if isinstance(text, str)] \
        if isinstance(messages, (list, tuple)) else []
    rows = [('said', shortened(text, WIDTH - 10)) for text in texts[:MESSAGES]]
    if len(texts) > MESSAGES:
        rows.append(('', 'and %s more' % counted(len(texts) - MESSAGES, 'message')))
    return rows


def when_and_why(own):
    cause = string(own, 'cause')
    parts = [CAUSES.get(cause, clean(cause) or 'for an unknown cause')]
    dumped, started = integer(own, 'dump_time_us'), integer(own, 'start_time_us')
    if dumped:
        parts.insert(0, moment(dumped))
    if 0 < started <= dumped:
        parts.append('%s after the start' % duration(dumped - started))
    return ', '.join(parts)


def stack_lines(uses, devices, style):
    held = [use for use in uses if use.now_bytes or use.peak_bytes]
    if not held:
        return ['no live memory']
    shown_at = moment_shown(held)
    title = 'call stacks'
    columns = STACK_ROW % ('', 'now', 'at peak', {'now': 'blocks now', 'peak': 'blocks at peak'}[
        shown_at])
    lines = [style.strong(title) + style.faint(columns[len(title):])]
    if any(device.peak_is_lost for device in devices):
        lines.append(style.faint('  the peak is older than the history: its oldest moment counts'))
    name_devices = sum(1 for device in devices if not device.is_unused) > 1
    for use in held[:TOP_STACKS]:
        shown = [clean(text) for text in stacks.chain(use.frames, STACK_DEPTH)]
        if name_devices:
            shown[0] = 'device %s: %s' % (ranges(sorted(use.devices)), shown[0])
        first, *more = stack_texts(shown, WIDTH - STACK_INDENT)
        count = use.blocks_at(shown_at)
        blocks = alike(count, use.bytes_at(shown_at), use.largest_at(shown_at)) or number(count)
        lines.append(STACK_ROW % ('', size(use.now_bytes), size(use.peak_bytes), blocks)
                     + '   ' + style.strong(first))
        lines += [' ' * STACK_INDENT + style.faint(text) for text in more]
    rest = held[TOP_STACKS:]
    if rest:
        lines.append(STACK_ROW % (
            '', size(sum(use.now_bytes for use in rest)),
            size(sum(use.peak_bytes for use in rest)),
            number(sum(use.blocks_at(shown_at) for use in rest)))
            + '   in %s more' % counted(len(rest), 'stack'))
    return lines


def stack_texts(shown, width):
    """A stack in one line where it fits, else the innermost frame and its callers below."""
    whole = ' < '.join(shown)
    if len(whole) <= width:
        return [whole]
    return [shortened(shown[0], width)] + ([callers_line(shown[1:], width)] if shown[1:] else [])


def callers_line(callers, width):
    """As many whole callers as fit, the first one shortened where it alone is too long."""
    line = '< ' + shortened(callers[0], width - 8)
    for index, caller in enumerate(callers[1:]):
        more = ' < ' + caller
        room = width if index + 2 == len(callers) else width - len(' < ...')
        if len(line) + len(more) > room:
            return line + ' < ...'
        line += more
    return line


def wrapped(sentence, first, following, paint):
    """The sentence in lines of at most WIDTH columns."""
    lines, line = [], ''
    for word in sentence.split(' '):
        if line and len(first) + len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = word
        else:
            line = line + ' ' + word if line else word
    lines.append(line)
    return [(following if index else first) + paint(text) for index, text in enumerate(lines)]


def as_data(snapshot, devices, uses, advice):
    own = snapshot.own
    keys = ('program', 'command_line', 'host', 'pid', 'rank', 'cause', 'start_time_us',
            'dump_time_us', 'version', 'driver_version', 'runtime_version', 'messages')
    return {
        'file': os.fspath(snapshot.path),
        'by_cca': snapshot.is_ours,
        **{key: own.get(key) for key in keys},
        'devices': [device_data(device) for device in devices],
        'top_stacks': [{
            'bytes': use.now_bytes, 'blocks': use.now_blocks, 'peak_bytes': use.peak_bytes,
            'peak_blocks': use.peak_blocks, 'devices': sorted(use.devices),
            'frames': frames_data(use.frames),
        } for use in uses[:TOP_STACKS]],
        'hints': [hint.data() for hint in advice],
    }
