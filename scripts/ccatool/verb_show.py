# SPDX-License-Identifier: MIT
"""cca show: one screen about a snapshot."""
import json
import os
import sys

from . import options, stacks
from .failure import FINE
from .fragments import CRUMBS
from .hints import hints
from .records import integer, string
from .summary import summaries
from .text import (Style, clean, counted, cuda_version, duration, moment, number, percent, progress,
                   shortened, size)
from .uses import frames_data, uses_by_stack

HELP = 'one screen about a snapshot: what, where, why, totals, top stacks'
USAGE = '[--json] FILE'
DESCRIPTION = '''Shows what a snapshot holds: the program, when and why it was written, the memory
of each device, the call stacks that hold most of it, and what the figures suggest. Reads pickles
and JSON, ours and PyTorch's. `-` is standard input.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

TOP_STACKS = 5
STACK_DEPTH = 12
STACK_INDENT = 52
RATIO_WORTH_A_WORD = 1.2
SEGMENTS_WORTH_A_WORD = 64 << 20
WIDTH = 100
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
    lines = [style.strong('%-15s' % title) + style.faint('%12s %12s' % ('now', 'peak'))
             if len(title) <= 15 else style.strong(title)]
    if len(title) > 15:
        lines.append(style.faint('%27s %12s' % ('now', 'peak')))
    if device.is_partial:
        lines.append(style.warn('  parts are missing: the device was busy at that moment'))

    def row(label, value, peak='', remark=''):
        lines.append(('  %-12s %12s %12s   %s' % (label, value, peak, remark)).rstrip())

    def peak_of(value):
        return '' if value is None else size(value)

    row('live', size(device.live), peak_of(device.live_peak), live_remark(device))
    row('pending', size(device.pending), '', 'freed, but the device is not done with it'
        if device.pending else '')
    row('cached', size(device.cached), '', cached_remark(device))
    row('reserved', size(device.reserved), peak_of(device.reserved_peak), reserved_remark(device))
    if device.unmanaged:
        row('unmanaged', size(device.unmanaged), '', unmanaged_remark(device))
    if device.other and device.total:
        row('other', size(device.other), '', 'of the %s on the device, not ours' % size(
            device.total))
    if device.exported:
        row('exported', size(device.exported), '', 'in %s; other processes may use them' % counted(
            device.exported_blocks, 'live block'))
    row('growth', *growth_parts(device))
    if device.fragments.free:
        row('fragmented', '%.0f %%' % (100 * device.fragments.score), '',
            fragment_remark(device.fragments))
    if device.estimate:
        row('not cached', number(integer(device.estimate, 'allocs')), '', 'allocations, all by the '
            'driver: the mode was count')
        row('with caching', *estimate_parts(device.estimate))
    elif device.allocs:
        row('hit rate', percent(device.hits, device.allocs), '', hit_remark(device))
    if device.driver_allocs is not None and not device.estimate:
        row('driver calls', number(device.driver_allocs), '', driver_remark(device))
    trouble = '%s, %s' % (counted(device.retries, 'retry').replace('retrys', 'retries'),
                          counted(device.ooms, 'OOM'))
    if device.retries or device.ooms:
        row('trouble', number(device.retries + device.ooms), '', style.warn(trouble))
    else:
        row('trouble', 'none', '', 'no retries, no OOMs')
    lost = ', %s older ones lost' % number(device.lost_entries) if device.lost_entries else ''
    marks = ', ' + counted(device.marks, 'mark') if device.marks else ''
    row('history', number(device.events), '',
        ('event' if device.events == 1 else 'events') + marks + lost)
    return lines


def unmanaged_remark(device):
    """Which call of which library holds most of what is not cached."""
    text = 'not cached'
    if device.unmanaged_rows:
        most = device.unmanaged_rows[0]
        library = os.path.basename(string(most, 'library'))
        text += '; %s%s' % ('most by ' if len(device.unmanaged_rows) > 1 else 'by ',
                            clean(string(most, 'api'))) + (
            ' (%s)' % clean(library) if library else '')
    return shortened(text, WIDTH - 43)


def live_remark(device):
    text = 'in ' + counted(device.blocks, 'block')
    if device.peak_is_from_trace:
        text += '; the peak is that of the history'
    return text


def cached_remark(device):
    if not device.cached:
        return ''
    whole = min(device.fragments.whole, device.cached)
    return 'idle, ready for reuse' + ('; %s in %s' % (size(whole), counted(
        device.fragments.whole_segments, 'whole segment')) if whole else '')


def reserved_remark(device):
    text = 'in ' + counted(device.segments, 'segment')
    if (device.reserved_ratio and device.reserved_ratio >= RATIO_WORTH_A_WORD
            and device.reserved_peak >= SEGMENTS_WORTH_A_WORD):
        text += '; %.1f times live at the peak' % device.reserved_ratio
    return text


def growth_parts(device):
    growth = device.growth
    if growth is None:
        return ('none', '', 'live memory keeps returning to its low') if device.is_growth_known \
            else ('unknown', '', 'too few events in the history' if device.events
                  else 'no history was kept')
    by = ', most by ' + clean(' < '.join(stacks.chain(growth.frames, 2))) if growth.frames else ''
    return ('+' + size(growth.high - growth.low), '', shortened('in %s%s' % (
        duration(growth.span_us), by), WIDTH - 43))


def fragment_remark(fragments):
    if fragments.cause != CRUMBS:
        return 'all %s free can be had in one piece' % size(fragments.free)
    return 'of %s free, largest %s; held by %s' % (
        size(fragments.free), size(max(fragments.largest, fragments.whole)),
        size(fragments.holding))


def hit_remark(device):
    text = '%s of %s needed no driver call' % (
        number(device.hits), counted(device.allocs, 'allocation'))
    return text + ' (in the trace)' if device.hits_are_from_trace else text


def estimate_parts(estimate):
    """(rate, peak of reserved memory, remark): what the cache would have done, by estimate."""
    hits, allocs = integer(estimate, 'hits'), integer(estimate, 'allocs')
    frees = integer(estimate, 'frees') - integer(estimate, 'driver_frees')
    saved_us = sum(integer(estimate, key) * part // max(1, whole) for key, part, whole in (
        ('alloc_time_us', hits, allocs), ('free_time_us', frees, integer(estimate, 'frees'))))
    return (percent(hits, allocs), size(integer(estimate, 'reserved_peak')),
            'hits, reserved; %s saved, about %s' % (
                counted(hits + max(0, frees), 'driver call'), duration(saved_us)))


def driver_remark(device):
    text = 'allocations' if device.driver_allocs != 1 else 'allocation'
    if device.driver_frees is not None:
        text += ', ' + counted(device.driver_frees, 'free')
    if device.hits:
        text += '; %s saved' % number(device.hits)
        if device.saved_us:
            text += ', about %s' % duration(device.saved_us)
    return text


def stack_lines(uses, devices, style):
    held = [use for use in uses if use.now_bytes or use.peak_bytes]
    if not held:
        return ['no live memory']
    lines = [style.strong('%-15s' % 'call stacks') + style.faint('%12s %12s %8s' % (
        'now', 'peak', 'blocks'))]
    if any(device.peak_is_lost for device in devices):
        lines.append(style.faint('  the peak is older than the history: its oldest moment counts'))
    name_devices = sum(1 for device in devices if not device.is_unused) > 1
    for use in held[:TOP_STACKS]:
        shown = [clean(text) for text in stacks.chain(use.frames, STACK_DEPTH)] or [
            '(no call stack was kept)']
        if name_devices:
            shown[0] = 'device %s: %s' % (ranges(sorted(use.devices)), shown[0])
        first, *more = stack_texts(shown, WIDTH - STACK_INDENT)
        lines.append('%15s%12s %12s %8s   %s' % (
            '', size(use.now_bytes), size(use.peak_bytes), number(use.now_blocks),
            style.strong(first)))
        lines += [' ' * STACK_INDENT + style.faint(text) for text in more]
    rest = held[TOP_STACKS:]
    if rest:
        lines.append('%15s%12s %12s %8s   in %s more' % (
            '', size(sum(use.now_bytes for use in rest)),
            size(sum(use.peak_bytes for use in rest)),
            number(sum(use.now_blocks for use in rest)), counted(len(rest), 'stack')))
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
            'dump_time_us', 'version', 'driver_version', 'runtime_version')
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


def device_data(device):
    return {
        'device': device.device, 'name': device.name or None, 'used': not device.is_unused,
        'live_bytes': device.live, 'live_blocks': device.blocks,
        'live_peak_bytes': device.live_peak,
        'pending_bytes': device.pending, 'cached_bytes': device.cached,
        'reserved_bytes': device.reserved, 'reserved_peak_bytes': device.reserved_peak,
        'peaks_from_trace': device.peak_is_from_trace, 'segments': device.segments,
        'peak_time_us': device.peak_time_us, 'peak_is_lost': device.peak_is_lost,
        'reserved_to_live_peak': device.reserved_ratio,
        'free_bytes': device.fragments.free, 'largest_free_bytes': device.fragments.largest,
        'free_blocks': device.fragments.blocks, 'fragmentation': device.fragments.score,
        'fragmentation_cause': device.fragments.cause,
        'held_back_bytes': device.fragments.held_back,
        'growth_known': device.is_growth_known,
        'growth': None if device.growth is None else {
            'low_bytes': device.growth.low, 'high_bytes': device.growth.high,
            'events': device.growth.events, 'span_us': device.growth.span_us,
            'frames': frames_data(device.growth.frames)},
        'allocs': device.allocs, 'hits': device.hits, 'hits_from_trace': device.hits_are_from_trace,
        'driver_allocs': device.driver_allocs, 'driver_frees': device.driver_frees,
        'saved_us': device.saved_us, 'free_wait_us': device.free_wait_us,
        'retries': device.retries, 'ooms': device.ooms, 'events': device.events,
        'lost_entries': device.lost_entries, 'partial': device.is_partial,
        'device_total_bytes': device.total, 'device_other_bytes': device.other,
        'unmanaged_bytes': device.unmanaged, 'exported_bytes': device.exported,
        'exported_blocks': device.exported_blocks, 'marks': device.marks, 'estimate': device.estimate or None,
    }
