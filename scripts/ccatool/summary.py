# SPDX-License-Identifier: MIT
"""The figures of a snapshot, device by device.

Statistics and counters of the file are taken where it has them; the rest is computed from segments
and trace, and marked, since a trace knows only what its ring still holds.
"""
from .snapshot import integer, record_list, string

GROWTH_ACTIONS = ('segment_alloc', 'segment_map')


class DeviceSummary:
    """One device. Sizes in bytes; None where the file does not tell."""

    def __init__(self, device):
        self.device = device
        self.name = ''
        self.total = self.free_on_device = self.other = None
        self.live = self.pending = self.reserved = 0
        self.live_peak = self.reserved_peak = None
        self.peak_is_from_trace = False
        self.blocks = self.segments = 0
        self.free_blocks = self.free_total = self.largest_free = 0
        self.retries = self.ooms = 0
        self.allocs = self.hits = None
        self.hits_are_from_trace = False
        self.driver_allocs = self.driver_frees = None
        self.driver_alloc_us = self.driver_alloc_median_us = self.free_wait_us = None
        self.passed_through = None
        self.events = 0
        self.is_partial = False
        self.lost_entries = None

    @property
    def cached(self):
        """Held from the driver and ready for the next allocation."""
        return max(0, self.reserved - self.live - self.pending)

    @property
    def fragmentation(self):
        """0: the free memory is one block. Near 1: it is crumbs. None without free memory."""
        return 1 - self.largest_free / self.free_total if self.free_total else None

    @property
    def is_unused(self):
        return not (self.reserved or self.segments or self.live_peak or self.allocs
                    or self.passed_through or self.ooms)

    @property
    def saved_us(self):
        """Driver time that the hits have saved, at what this process's driver allocations cost."""
        if self.hits is None:
            return None
        if self.driver_alloc_median_us is not None:
            return self.hits * self.driver_alloc_median_us
        if self.driver_alloc_us is None or not self.driver_allocs:
            return None
        return self.hits * self.driver_alloc_us // self.driver_allocs


def summaries(snapshot):
    """A DeviceSummary for each device that the file mentions, by ordinal."""
    stats = record_list(snapshot.own, 'stats')
    counters = record_list(snapshot.own, 'counters')
    ordinals = {integer(segment, 'device') for segment in snapshot.segments}
    ordinals |= set(range(max(len(snapshot.traces), len(stats), len(counters))))
    found = []
    for device in sorted(ordinals):
        summary = DeviceSummary(device)
        from_segments(summary, snapshot)
        trace = snapshot.traces[device] if 0 <= device < len(snapshot.traces) else []
        from_trace(summary, trace)
        if 0 <= device < len(stats) and stats[device]:
            from_stats(summary, stats[device])
        if 0 <= device < len(counters) and counters[device]:
            from_counters(summary, counters[device])
        found.append(summary)
    for row in record_list(snapshot.own, 'devices'):
        for summary in found:
            if summary.device == integer(row, 'device', -1):
                summary.is_partial = row.get('partial') is True
                summary.name = string(row, 'name')
                summary.total = integer(row, 'total', None)
                summary.free_on_device = integer(row, 'free', None)
                summary.other = integer(row, 'other', None)
    return found


def from_segments(summary, snapshot):
    for segment in snapshot.segments:
        if integer(segment, 'device') != summary.device:
            continue
        summary.segments += 1
        summary.reserved += integer(segment, 'total_size')
        for block in segment['blocks']:
            size = integer(block, 'size')
            state = block.get('state')
            if state == 'active_allocated':
                summary.live += size
                summary.blocks += 1
            elif state in ('active_pending_free', 'active_awaiting_free'):
                summary.pending += size
            else:
                summary.free_blocks += 1
                summary.free_total += size
                summary.largest_free = max(summary.largest_free, size)


def from_trace(summary, trace):
    """Peaks and hits as far as the ring goes back: undoes the events from the present."""
    summary.events = sum(1 for entry in trace if entry.get('action') != 'snapshot')
    if not summary.events:
        return
    live, reserved = summary.live, summary.reserved
    live_peak, reserved_peak = live, reserved
    allocs = growths = 0
    for entry in reversed(trace):
        action, size = entry.get('action'), integer(entry, 'size')
        if action == 'alloc':
            allocs += 1
            live -= size
        elif action in ('free_requested', 'free'):
            live += size
        elif action in GROWTH_ACTIONS:
            growths += 1
            reserved -= size
        elif action in ('segment_free', 'segment_unmap'):
            reserved += size
        elif action == 'oom':
            summary.ooms += 1
        live_peak, reserved_peak = max(live_peak, live), max(reserved_peak, reserved)
    summary.live_peak, summary.reserved_peak = live_peak, reserved_peak
    summary.peak_is_from_trace = True
    if allocs:
        summary.allocs, summary.hits = allocs, max(0, allocs - growths)
        summary.hits_are_from_trace = True


def from_stats(summary, stats):
    def value(key, default):
        return integer(stats, key, default)

    summary.live = value('allocated_bytes.all.current', summary.live)
    active = value('active_bytes.all.current', summary.live + summary.pending)
    summary.pending = max(0, active - summary.live)
    summary.reserved = value('reserved_bytes.all.current', summary.reserved)
    summary.blocks = value('allocation.all.current', summary.blocks)
    if 'allocated_bytes.all.peak' in stats:
        summary.live_peak = value('allocated_bytes.all.peak', summary.live_peak)
        summary.reserved_peak = value('reserved_bytes.all.peak', summary.reserved_peak)
        summary.peak_is_from_trace = False
    summary.retries = value('num_alloc_retries', summary.retries)
    summary.ooms = value('num_ooms', summary.ooms)


def from_counters(summary, counters):
    summary.lost_entries = integer(counters, 'lost_entries', None)
    summary.driver_allocs = integer(counters, 'driver_allocs', None)
    summary.driver_frees = integer(counters, 'driver_frees', None)
    summary.driver_alloc_us = integer(counters, 'driver_alloc_time_us', None)
    summary.driver_alloc_median_us = integer(counters, 'driver_alloc_median_us', None)
    summary.free_wait_us = integer(counters, 'free_wait_time_us', None)
    summary.passed_through = integer(counters, 'passed_through', None)
    if 'allocs' in counters and 'hits' in counters:
        summary.allocs = integer(counters, 'allocs')
        summary.hits = integer(counters, 'hits')
        summary.hits_are_from_trace = False
