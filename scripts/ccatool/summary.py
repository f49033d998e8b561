# SPDX-License-Identifier: MIT
"""The figures of a snapshot, device by device.

Statistics and counters of the file are taken where it has them; the rest is computed from segments
and trace, and marked, since a trace knows only what its ring still holds.
"""
from . import history as events
from .fragments import Fragments
from .growth import find_growth, lows_of
from .records import integer, record_list, string


class DeviceSummary:
    """One device. Sizes in bytes; None where the file does not tell."""

    def __init__(self, device):
        self.device = device
        self.name = ''
        self.total = self.free_on_device = self.other = self.unmanaged = None
        self.unmanaged_rows = []        # dicts of api, library, bytes, count, largest first
        self.live = self.pending = self.reserved = 0
        self.exported = self.exported_blocks = 0    # live, and other processes may use them
        self.live_peak = self.reserved_peak = None
        self.peak_is_from_trace = False
        self.peak_is_lost = False       # the trace no longer holds the moment of the peak
        self.peak_time_us = None
        self.requested = None
        self.blocks = self.segments = 0
        self.fragments = None
        self.growth = None
        self.lows = []                  # live bytes, quarter by quarter; none of a short history
        self.retries = self.ooms = 0
        self.allocs = self.hits = None
        self.hits_are_from_trace = False
        self.driver_allocs = self.driver_frees = None
        self.driver_alloc_us = self.driver_alloc_median_us = self.free_wait_us = None
        self.passed_through = None
        self.events = self.marks = 0
        self.is_partial = False
        self.lost_entries = None
        self.estimate = {}              # count mode: what caching would have come to

    @property
    def cached(self):
        """Held from the driver and ready for the next allocation."""
        return max(0, self.reserved - self.live - self.pending)

    @property
    def is_growth_known(self):
        """The history is long enough to tell."""
        return bool(self.lows)

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

    @property
    def reserved_ratio(self):
        """Most memory held from the driver over most memory in use; None where unknown."""
        return self.reserved_peak / self.live_peak if self.live_peak else None


def summaries(snapshot):
    """A DeviceSummary for each device that the file mentions, by ordinal."""
    found = []
    for device in snapshot.devices():
        summary = DeviceSummary(device)
        from_segments(summary, snapshot)
        from_trace(summary, snapshot.history(device))
        stats, counters = (snapshot.own_row(key, device) for key in ('stats', 'counters'))
        if stats:
            from_stats(summary, stats)
        if counters:
            from_counters(summary, counters)
        summary.fragments = Fragments(snapshot, device)
        history = snapshot.history(device)
        lows = lows_of(history)
        summary.growth = find_growth(snapshot, history, lows)
        summary.lows = [history.live[low] for low in lows]
        summary.estimate = snapshot.own_row('estimate', device)
        found.append(summary)
    unmanaged = sorted(record_list(snapshot.own, 'unmanaged'),
                       key=lambda row: -integer(row, 'bytes'))
    for summary in found:
        summary.unmanaged_rows = [row for row in unmanaged if integer(row, 'bytes') > 0
                                  and integer(row, 'device', -1) == summary.device]
    for row in record_list(snapshot.own, 'devices'):
        for summary in found:
            if summary.device == integer(row, 'device', -1):
                summary.is_partial = row.get('partial') is True
                summary.name = string(row, 'name')
                summary.total = integer(row, 'total', None)
                summary.free_on_device = integer(row, 'free', None)
                summary.other = integer(row, 'other', None)
                summary.unmanaged = integer(row, 'unmanaged', None)
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
                if block.get('exported') is True:
                    summary.exported += size
                    summary.exported_blocks += 1
            elif state in events.LIVE_STATES:
                summary.pending += size


def from_trace(summary, history):
    """Peaks and hits as far as the ring goes back."""
    kinds = history.kinds
    summary.marks = kinds.count(events.SNAPSHOT)
    summary.events = history.end - summary.marks
    if not summary.events:
        return
    summary.ooms = kinds.count(events.OOM)
    summary.live_peak = history.peak_live
    summary.reserved_peak = max(history.first_reserved, max(history.reserved))
    summary.peak_is_from_trace = True
    summary.peak_is_lost = history.peak_is_lost
    if history.peak >= 0:
        summary.peak_time_us = history.times[history.peak]
    if history.allocs:
        growths = kinds.count(events.SEGMENT_ALLOC) + kinds.count(events.SEGMENT_MAP)
        summary.allocs, summary.hits = history.allocs, max(0, history.allocs - growths)
        summary.hits_are_from_trace = True


def from_stats(summary, stats):
    def value(key, default):
        return integer(stats, key, default)

    summary.live = value('allocated_bytes.all.current', summary.live)
    active = value('active_bytes.all.current', summary.live + summary.pending)
    summary.pending = max(0, active - summary.live)
    summary.reserved = value('reserved_bytes.all.current', summary.reserved)
    summary.requested = value('requested_bytes.all.current', None)
    summary.blocks = value('allocation.all.current', summary.blocks)
    if integer(stats, 'allocated_bytes.all.peak', None) is not None:
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
