# SPDX-License-Identifier: MIT
"""The trace of one device as columns, and the life of every block and segment in it.

A trace tells what was asked for, not how large the block was that served it. Sizes of blocks that
are there at the end are exact; the others are computed by the allocator's rounding rule.
"""
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, islice

from .failure import Failure
from .records import integer

ALLOC, FREE_REQUESTED, FREE_COMPLETED, FREE = 1, 2, 3, 4
SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP = 5, 6, 7, 8
OOM, SNAPSHOT, ANNOTATE, OTHER = 9, 10, 11, 12
KINDS = {'alloc': ALLOC, 'free_requested': FREE_REQUESTED, 'free_completed': FREE_COMPLETED,
         'free': FREE, 'segment_alloc': SEGMENT_ALLOC, 'segment_free': SEGMENT_FREE,
         'segment_map': SEGMENT_MAP, 'segment_unmap': SEGMENT_UNMAP, 'oom': OOM,
         'snapshot': SNAPSHOT, 'annotate': ANNOTATE}

BEFORE = -1            # a birth before the first event that is kept
ROUNDING = 512
SMALL_SEGMENT = 2 << 20
SPLIT_REST = 1 << 20   # a large block is split when more than this is left
# Peak times are taken a moment after the event that they belong to.
CLOCK_SLACK_US = 5
# Sizes of freed blocks are computed, so that a peak is never met to the byte.
PEAK_MATCH = 0.98


class Lives:
    """Blocks as parallel lists. Times are indices into the events; `end` stands for the present."""

    def __init__(self):
        self.birth, self.request, self.death = [], [], []
        self.address, self.requested, self.size = [], [], []
        self.stack = []

    def __len__(self):
        return len(self.birth)

    def add(self, birth, end, address, requested, size, stack):
        self.birth.append(birth)
        self.request.append(end)
        self.death.append(end)
        self.address.append(address)
        self.requested.append(requested)
        self.size.append(size)
        self.stack.append(stack)
        return len(self.birth) - 1


class SegmentLife:
    """A range of device memory that the allocator held from one event to another."""

    __slots__ = ('birth', 'death', 'address', 'size', 'stream', 'stack', 'expandable', 'pool')

    def __init__(self, birth, death, address, size, stream, stack, expandable=False, pool=(0, 0)):
        self.birth, self.death = birth, death
        self.address, self.size, self.stream, self.stack = address, size, stream, stack
        self.expandable, self.pool = expandable, pool


class History:
    """One device's events, and what follows from them. Everything is final after the constructor.

    live, pending, reserved: bytes after each event; first_* before the first one.
    peak: index of the event after which live memory was highest (BEFORE: before the first).
    peak_is_lost: the ring has lost that moment, and `peak` is the nearest later one.
    """

    def __init__(self, snapshot, device, peak_time_us=0, peak_bytes=None):
        self.device = device
        trace = snapshot.traces[device] if 0 <= device < len(snapshot.traces) else []
        self.trace = trace
        self.end = len(trace)
        segments = [segment for segment in snapshot.segments
                    if integer(segment, 'device') == device]
        try:
            self._read_columns(trace)
            self._follow_segments(snapshot, segments)
            self._follow_blocks(snapshot, segments)
            self._add_up(segments)
        except OverflowError as error:
            raise Failure('%s: senseless sizes or times in the trace of device %d' % (
                snapshot.path, device)) from error
        self._find_peak(peak_time_us)
        self._judge_peak(peak_bytes)

    def _read_columns(self, trace):
        self.kinds = bytes([KINDS.get(action, OTHER) if type(action) is str else OTHER
                            for action in [entry.get('action') for entry in trace]])
        self.addresses = integers(trace, 'addr')
        self.sizes = integers(trace, 'size')
        if min(self.sizes, default=0) < 0:
            self.sizes = [max(0, size) for size in self.sizes]
        # The clock may step back a little between threads; an axis must not.
        times = accumulate(integers(trace, 'time_us'), max, initial=0)
        self.times = array('q', islice(times, 1, None))

    def _follow_segments(self, snapshot, segments):
        """Fills segment_lives; pieces of expandable segments are lives of their own."""
        self.segment_lives = lives = []
        table = snapshot.stacks
        alive = {}
        for index, kind in enumerate(self.kinds):
            if kind < SEGMENT_ALLOC or kind > SEGMENT_UNMAP:
                continue
            address, size = self.addresses[index], self.sizes[index]
            entry = self.trace[index]
            if kind in (SEGMENT_ALLOC, SEGMENT_MAP):
                life = SegmentLife(index, self.end, address, size, integer(entry, 'stream'),
                                   table.of(entry), kind == SEGMENT_MAP, pool_of(entry, 'pool_id'))
                lives.append(life)
                alive[address] = life
            elif address in alive and alive[address].size == size:
                alive.pop(address).death = index
            elif kind == SEGMENT_UNMAP:
                self._unmap(alive, index, address, size, entry)
            else:
                alive.pop(address, None)
                lives.append(SegmentLife(BEFORE, index, address, size, integer(entry, 'stream'),
                                         table.of(entry), False, pool_of(entry, 'pool_id')))
        for segment in segments:
            self._join_final(snapshot, alive, segment)
        for life in alive.values():
            life.death = self.end

    def _unmap(self, alive, index, address, size, entry):
        """Ends the pieces of the range; what of them lies outside lives on."""
        last = address + size
        covered = 0
        touched = [life for life in alive.values()
                   if life.address < last and address < life.address + life.size]
        for life in touched:
            del alive[life.address]
            life.death = index
            covered += min(last, life.address + life.size) - max(address, life.address)
            for low, high in ((life.address, address), (last, life.address + life.size)):
                if low < high:
                    rest = SegmentLife(index, self.end, low, high - low, life.stream, life.stack,
                                       True, life.pool)
                    self.segment_lives.append(rest)
                    alive[low] = rest
        if not touched:
            self.segment_lives.append(SegmentLife(
                BEFORE, index, address, size, integer(entry, 'stream'), 0, True,
                pool_of(entry, 'pool_id')))

    def _join_final(self, snapshot, alive, segment):
        """Matches a segment that is there at the end with what the trace said of it."""
        start, total = integer(segment, 'address'), max(0, integer(segment, 'total_size'))
        pool = pool_of(segment, 'segment_pool_id')
        stream = integer(segment, 'stream')
        if segment.get('is_expandable') is not True:
            life = alive.pop(start, None)
            if life is not None:
                life.pool = pool
                return
            self.segment_lives.append(SegmentLife(BEFORE, self.end, start, total, stream,
                                                  snapshot.stacks.of(segment), False, pool))
            return
        place = start
        inside = sorted((life for life in alive.values() if start <= life.address < start + total),
                        key=lambda life: life.address)
        for life in inside:
            del alive[life.address]
            life.pool = pool
            if place < life.address:
                self.segment_lives.append(SegmentLife(BEFORE, self.end, place, life.address - place,
                                                      stream, 0, True, pool))
            place = max(place, life.address + life.size)
        if place < start + total:
            self.segment_lives.append(SegmentLife(BEFORE, self.end, place, start + total - place,
                                                  stream, 0, True, pool))

    def _follow_blocks(self, snapshot, segments):
        self.lives = lives = Lives()
        add, of, end = lives.add, snapshot.stacks.of, self.end
        request, death = lives.request, lives.death
        alive, whole = {}, {}
        addresses, sizes, trace = self.addresses, self.sizes, self.trace
        self.allocs = self.ghosts = 0
        for segment in segments:
            if segment.get('is_expandable') is not True:
                whole[integer(segment, 'address')] = integer(segment, 'total_size')
        for life in self.segment_lives:
            if not life.expandable:
                whole.setdefault(life.address, life.size)
        for index, kind in enumerate(self.kinds):
            if kind == ALLOC:
                self.allocs += 1
                address = addresses[index]
                if address in alive:
                    # Its free is not in the trace.
                    before = alive[address]
                    request[before] = min(request[before], index)
                    death[before] = index
                alive[address] = add(index, end, address, sizes[index],
                                     block_size(sizes[index], whole.get(address)),
                                     of(trace[index]))
            elif kind in (FREE_REQUESTED, FREE_COMPLETED, FREE):
                address = addresses[index]
                life = alive.get(address)
                if life is None:
                    self.ghosts += 1
                    life = alive[address] = add(
                        BEFORE, end, address, sizes[index],
                        block_size(sizes[index], whole.get(address)), of(trace[index]))
                    if kind == FREE_COMPLETED:
                        request[life] = BEFORE
                if kind != FREE_COMPLETED:
                    request[life] = index
                if kind != FREE_REQUESTED:
                    request[life] = min(request[life], index)
                    death[life] = index
                    del alive[address]
        self._join_final_blocks(snapshot, segments, alive)
        for life in alive.values():
            # In the trace but not in the segments: a part that the file lacks.
            death[life] = end

    def _join_final_blocks(self, snapshot, segments, alive):
        lives, end = self.lives, self.end
        for segment in segments:
            place = integer(segment, 'address')
            for block in segment['blocks']:
                state, size = block.get('state'), max(0, integer(block, 'size'))
                # Old files leave the address out: blocks follow each other without gaps.
                address = integer(block, 'address', place)
                place = address + size
                if state not in LIVE_STATES:
                    continue
                life = alive.pop(address, None)
                if life is not None:
                    lives.size[life] = size
                    if state == 'active_allocated':
                        lives.request[life] = end
                    continue
                self.ghosts += 1
                life = lives.add(BEFORE, end, address, integer(block, 'requested_size', size),
                                 size, snapshot.stacks.of(block))
                if state != 'active_allocated':
                    lives.request[life] = BEFORE

    def _add_up(self, segments):
        """Bytes after each event."""
        count = self.end
        live_change, pending_change = [0] * (count + 2), [0] * (count + 2)
        lives = self.lives
        for birth, request, death, size in zip(lives.birth, lives.request, lives.death, lives.size):
            if birth < request:
                live_change[birth + 1] += size
                live_change[request + 1] -= size
            if request < death:
                pending_change[request + 1] += size
                pending_change[death + 1] -= size
        reserved_change = [0] * (count + 2)
        for life in self.segment_lives:
            reserved_change[life.birth + 1] += life.size
            reserved_change[life.death + 1] -= life.size
        self.first_live, self.live = accumulated(live_change, count)
        self.first_pending, self.pending = accumulated(pending_change, count)
        self.first_reserved, self.reserved = accumulated(reserved_change, count)

    def _find_peak(self, peak_time_us):
        """The last event after which live memory was at its maximum."""
        first, last = 0, self.end
        if peak_time_us and self.end:
            low = bisect_left(self.times, peak_time_us - CLOCK_SLACK_US)
            high = bisect_right(self.times, peak_time_us + CLOCK_SLACK_US)
            if low < high:
                first, last = low, high
        self.peak, self.peak_live = BEFORE, self.first_live if first == 0 else -1
        levels = self.live[first:last]
        most = max(levels, default=-1)
        if most >= self.peak_live:
            self.peak_live = most
            self.peak = last - 1 - next(back for back, level in enumerate(reversed(levels))
                                        if level == most)

    def _judge_peak(self, peak_bytes):
        """Compares with the peak of the statistics, which know more than the ring."""
        self.peak_is_lost = (peak_bytes is not None and self.end > 0
                             and self.peak_live < PEAK_MATCH * peak_bytes)
        if self.peak_is_lost:
            self.peak, self.peak_live = BEFORE, self.first_live
        elif peak_bytes and self.peak_live * PEAK_MATCH > peak_bytes:
            self._find_peak_after_reset(peak_bytes)

    def _find_peak_after_reset(self, peak_bytes):
        """Peaks were reset since the highest moment: that of the events after it counts."""
        self.peak, self.peak_live = self.end - 1, self.live[-1] if self.end else self.first_live
        for index in range(self.end - 1, -1, -1):
            if self.live[index] * PEAK_MATCH > peak_bytes:
                break
            if self.live[index] > self.peak_live:
                self.peak, self.peak_live = index, self.live[index]

    def live_at(self, index):
        """Numbers of the lives that were allocated after that event (BEFORE: before the first)."""
        lives = self.lives
        return [number for number, (birth, request) in enumerate(zip(lives.birth, lives.request))
                if birth <= index < request]

    def bytes_by_stack(self, index):
        """{stack: [bytes, blocks, bytes of the largest block]} after that event."""
        lives, found = self.lives, {}
        for number in self.live_at(index):
            use = found.setdefault(lives.stack[number], [0, 0, 0])
            size = lives.size[number]
            use[0] += size
            use[1] += 1
            use[2] = max(use[2], size)
        return found

    def segments_at(self, index):
        return [life for life in self.segment_lives if life.birth <= index < life.death]


def integers(trace, key):
    """A value of every entry; 0 where it is no integer."""
    values = [entry.get(key) for entry in trace]
    if set(map(type, values)) <= {int}:
        return values
    return [value if type(value) is int else 0 for value in values]


LIVE_STATES = ('active_allocated', 'active_pending_free', 'active_awaiting_free')


def accumulated(changes, count):
    """(the value before the first event, the values after each)."""
    sums = accumulate(islice(changes, count + 1))
    return next(sums), array('q', sums)


def block_size(requested, segment_size):
    """What a request occupies; `segment_size` where the block starts a segment, else None."""
    rounded = max(ROUNDING, (requested + ROUNDING - 1) // ROUNDING * ROUNDING)
    if segment_size is None:
        return rounded
    if segment_size > SMALL_SEGMENT and 0 < segment_size - rounded <= SPLIT_REST:
        return segment_size
    return min(rounded, segment_size) if segment_size > 0 else rounded


def pool_of(record, key):
    value = record.get(key)
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(
            isinstance(part, int) for part in value):
        return tuple(value)
    return (0, 0)
