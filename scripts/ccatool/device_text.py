# SPDX-License-Identifier: MIT
"""What is said of one device: the paragraph of `show`, and the same as data."""
import os

from . import stacks
from .fragments import CRUMBS
from .records import integer, string
from .text import clean, counted, duration, number, percent, shortened, size
from .uses import frames_data

WIDTH = 100
RATIO_WORTH_A_WORD = 1.2
SEGMENTS_WORTH_A_WORD = 64 << 20


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
    fragments = device.fragments
    text = 'ready for reuse; %s returnable' % size(min(fragments.returnable, device.cached))
    return text + (' in %s' % counted(fragments.returnable_segments, 'segment')
                   if fragments.returnable_segments else '')


def reserved_remark(device):
    text = 'in ' + counted(device.segments, 'segment')
    if (device.reserved_ratio and device.reserved_ratio >= RATIO_WORTH_A_WORD
            and device.reserved_peak >= SEGMENTS_WORTH_A_WORD):
        text += '; %.1f times live at the peak' % device.reserved_ratio
    return text


def growth_parts(device):
    growth = device.growth
    if growth is None:
        return ('none', '', steady_remark(device.lows)) if device.is_growth_known \
            else ('unknown', '', 'too few events in the history' if device.events
                  else 'no history was kept')
    by = ', most by ' + clean(' < '.join(stacks.chain(growth.frames, 2))) if growth.frames else ''
    return ('+' + size(growth.high - growth.low), '', shortened('in %s%s' % (
        duration(growth.span_us), by), WIDTH - 43))


def steady_remark(lows):
    if lows[-1] <= lows[0]:
        return 'live memory keeps returning to %s' % size(max(0, lows[-1]))
    return 'lows of live memory do not keep rising; last %s' % size(lows[-1])


def fragment_remark(fragments):
    text = 'serves up to %s without the driver' % size(fragments.servable) \
        if fragments.servable else 'serves no request without the driver'
    return text + ('; cut by %s' % size(fragments.holding) if fragments.cause == CRUMBS else '')


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
        'returnable_bytes': device.fragments.returnable,
        'servable_bytes': device.fragments.servable,
        'growth_known': device.is_growth_known,
        'last_low_bytes': device.lows[-1] if device.lows else None,
        'growth': None if device.growth is None else {
            'low_bytes': device.growth.low, 'high_bytes': device.growth.high,
            'events': device.growth.events, 'span_us': device.growth.span_us,
            'bytes_per_second': device.growth.rate,
            'frames': frames_data(device.growth.frames)},
        'allocs': device.allocs, 'hits': device.hits, 'hits_from_trace': device.hits_are_from_trace,
        'driver_allocs': device.driver_allocs, 'driver_frees': device.driver_frees,
        'saved_us': device.saved_us, 'free_wait_us': device.free_wait_us,
        'retries': device.retries, 'ooms': device.ooms, 'events': device.events,
        'lost_entries': device.lost_entries, 'partial': device.is_partial,
        'device_total_bytes': device.total, 'device_other_bytes': device.other,
        'unmanaged_bytes': device.unmanaged, 'exported_bytes': device.exported,
        'exported_blocks': device.exported_blocks, 'marks': device.marks,
        'estimate': device.estimate or None,
    }
