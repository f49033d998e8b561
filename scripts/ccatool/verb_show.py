# SPDX-License-Identifier: MIT
"""cca show: one screen about a snapshot."""
import json
import os
import sys

from . import snapshot as snapshots
from . import stacks
from .failure import FINE
from .hints import hints
from .snapshot import integer, string
from .summary import summaries
from .text import (Style, clean, counted, cuda_version, duration, moment, number, percent, progress,
                   shortened, size)

HELP = 'one screen about a snapshot: what, where, why, totals, top stacks'
USAGE = '[--json] FILE'
DESCRIPTION = '''Shows what a snapshot holds: the program, when and why it was written, the memory
of each device, the call stacks that hold most of it, and what the figures suggest. Reads pickles
and JSON, ours and PyTorch's. `-` is standard input.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

TOP_STACKS = 5
STACK_DEPTH = 12
WIDTH = 100
CAUSES = {'signal': 'on a signal', 'exit': 'at exit', 'oom': 'out of memory', 'api': 'by request'}


def add_arguments(parser):
    parser.add_argument('--json', action='store_true', help='print JSON')
    parser.add_argument('file', metavar='FILE')


def main(args):
    with progress('reading ' + clean(args.file)):
        snapshot = snapshots.load(args.file)
        devices = summaries(snapshot)
        uses = stacks.live_by_stack(snapshot)
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
    if advice:
        lines += ['', style.strong('hints')]
        for sentence in advice:
            lines += wrapped(sentence, '  - ', '    ', style.warn)
    return lines


def head_lines(snapshot, style):
    own = snapshot.own
    lines = [style.strong('snapshot  ' + clean(snapshot.path))]
    if not snapshot.is_ours:
        return lines + ['written   not by cca: figures are computed from segments and trace']
    program = [clean(word) for word in own.get('command_line') or [] if isinstance(word, str)] \
        if isinstance(own.get('command_line'), (list, tuple)) else []
    lines.append('program   ' + shortened(
        ' '.join(program) or clean(string(own, 'program')) or 'unknown', WIDTH - 10))
    where = ['host ' + (clean(string(own, 'host')) or 'unknown')]
    where += ['%s %d' % (key, integer(own, key)) for key in ('pid', 'rank')
              if integer(own, key, None) is not None]
    lines.append('where     ' + ', '.join(where))
    lines.append('written   ' + when_and_why(own))
    versions = ['cca ' + clean(string(own, 'version'))] if string(own, 'version') else []
    versions += ['%s %s' % (part, cuda_version(integer(own, part + '_version')))
                 for part in ('driver', 'runtime') if integer(own, part + '_version')]
    if versions:
        lines.append('versions  ' + ', '.join(versions))
    return lines


def when_and_why(own):
    cause = string(own, 'cause')
    parts = [CAUSES.get(cause, clean(cause) or 'for an unknown cause')]
    dumped, started = integer(own, 'dump_time_us'), integer(own, 'start_time_us')
    if dumped:
        parts.insert(0, moment(dumped))
    if 0 < started <= dumped:
        parts.append('%s after the start' % duration(dumped - started))
    return ', '.join(parts)


def device_paragraphs(devices, style):
    """A paragraph per used device; the unused ones share one."""
    used = [device for device in devices if not device.is_unused]
    unused = [device.device for device in devices if device.is_unused]
    found = [device_lines(device, style) for device in used]
    if unused:
        found.append(['%s %s not used' % ('device' if len(unused) == 1 else 'devices',
                                           ranges(unused))])
    return found or [['no device was used']]


def ranges(ordinals):
    """[1, 2, 3, 5] -> '1-3, 5'."""
    parts = []
    for ordinal in ordinals:
        if parts and parts[-1][1] == ordinal - 1:
            parts[-1][1] = ordinal
        else:
            parts.append([ordinal, ordinal])
    return ', '.join('%d' % low if low == high else '%d-%d' % (low, high) for low, high in parts)


def device_lines(device, style):
    title = 'device %d' % device.device
    if device.name:
        title += '  ' + clean(device.name)
    lines = [style.strong(title)]
    if device.is_partial:
        lines.append(style.warn('  parts are missing: the device was busy at that moment'))

    def row(label, value, remark=''):
        lines.append(('  %-10s %12s   %s' % (label, value, remark)).rstrip())

    least = 'at least ' if device.peak_is_from_trace else ''

    def peak(value):
        return '' if value is None else ', peak %s%s' % (least, size(value))

    row('live', size(device.live), 'in %s%s' % (
        counted(device.blocks, 'block'), peak(device.live_peak)))
    row('pending', size(device.pending), 'freed, but the device is not done with it'
        if device.pending else '')
    row('cached', size(device.cached), 'idle, ready for reuse' if device.cached else '')
    row('reserved', size(device.reserved), 'in %s%s' % (
        counted(device.segments, 'segment'), peak(device.reserved_peak)))
    if device.other is not None and device.total:
        row('others', size(device.other), 'of the %s on the device, not ours' % size(device.total))
    if device.free_total:
        row('fragments', '%.2f' % device.fragmentation, 'largest free block %s of %s free' % (
            size(device.largest_free), size(device.free_total)))
    if device.allocs:
        row('hit rate', percent(device.hits, device.allocs), hit_remark(device))
    if device.driver_allocs is not None:
        row('driver', number(device.driver_allocs), driver_remark(device))
    trouble = '%s, %s' % (counted(device.retries, 'retry').replace('retrys', 'retries'),
                          counted(device.ooms, 'OOM'))
    if device.retries or device.ooms:
        row('trouble', number(device.retries + device.ooms), style.warn(trouble))
    else:
        row('trouble', 'none')
    lost = ', %s lost' % number(device.lost_entries) if device.lost_entries else ''
    row('history', number(device.events), ('event' if device.events == 1 else 'events') + lost)
    return lines


def hit_remark(device):
    text = '%s of %s needed no driver allocation' % (
        number(device.hits), counted(device.allocs, 'allocation'))
    return text + ' (in the trace)' if device.hits_are_from_trace else text


def driver_remark(device):
    text = 'allocations by the driver' if device.driver_allocs != 1 else 'allocation by the driver'
    if device.driver_frees is not None:
        text += ', ' + counted(device.driver_frees, 'free')
    if device.hits:
        text += '; %s saved' % number(device.hits)
        if device.saved_us:
            text += ', about %s' % duration(device.saved_us)
    return text


def stack_lines(uses, devices, style):
    total = sum(use.bytes for use in uses)
    if not total:
        return ['no live memory']
    lines = [style.strong('top call stacks by live bytes')]
    name_devices = sum(1 for device in devices if not device.is_unused) > 1
    for use in uses[:TOP_STACKS]:
        where = ', device ' + ranges(sorted(use.devices)) if name_devices else ''
        head = '  %12s  %6s  %s%s' % (size(use.bytes), percent(use.bytes, total),
                                      counted(use.blocks, 'block'), where)
        lines.append(head)
        if not use.frames:
            lines.append('      (no call stack was kept)')
            continue
        shown = [clean(text) for text in stacks.chain(use.frames, STACK_DEPTH)]
        lines.append('      ' + style.strong(shortened(shown[0], WIDTH - 6)))
        if shown[1:]:
            lines.append('      ' + style.faint(callers_line(shown[1:], WIDTH - 6)))
    rest = uses[TOP_STACKS:]
    if rest:
        lines.append('  %12s  %6s  in %s more' % (
            size(sum(use.bytes for use in rest)), percent(sum(use.bytes for use in rest), total),
            counted(len(rest), 'stack')))
    return lines


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
            'dump_time_us', 'version', 'driver_version', 'runtime_version')
    return {
        'file': os.fspath(snapshot.path),
        'by_cca': snapshot.is_ours,
        **{key: own.get(key) for key in keys},
        'devices': [device_data(device) for device in devices],
        'top_stacks': [{
            'bytes': use.bytes, 'blocks': use.blocks, 'devices': sorted(use.devices),
            'frames': [{'name': name, 'filename': filename, 'line': line}
                       for name, filename, line in use.frames],
        } for use in uses[:TOP_STACKS]],
        'hints': advice,
    }


def device_data(device):
    return {
        'device': device.device, 'name': device.name or None, 'used': not device.is_unused,
        'live_bytes': device.live, 'live_blocks': device.blocks,
        'live_peak_bytes': device.live_peak,
        'pending_bytes': device.pending, 'cached_bytes': device.cached,
        'reserved_bytes': device.reserved, 'reserved_peak_bytes': device.reserved_peak,
        'peaks_from_trace': device.peak_is_from_trace, 'segments': device.segments,
        'free_bytes': device.free_total, 'largest_free_bytes': device.largest_free,
        'free_blocks': device.free_blocks, 'fragmentation': device.fragmentation,
        'allocs': device.allocs, 'hits': device.hits, 'hits_from_trace': device.hits_are_from_trace,
        'driver_allocs': device.driver_allocs, 'driver_frees': device.driver_frees,
        'saved_us': device.saved_us, 'free_wait_us': device.free_wait_us,
        'retries': device.retries, 'ooms': device.ooms, 'events': device.events,
        'lost_entries': device.lost_entries, 'partial': device.is_partial,
        'device_total_bytes': device.total, 'device_other_bytes': device.other,
    }
