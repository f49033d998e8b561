# SPDX-License-Identifier: MIT
"""Whether live memory grows without end, and by which call stack."""
from . import history as events

CHANGES = (events.ALLOC, events.FREE_REQUESTED, events.FREE)
FEWEST_CHANGES = 64            # fewer allocations and frees show no trend
LEAST_BYTES = 1 << 20
LEAST_SHARE = 0.25             # of the last quarter's low
LAST_SHARE = 0.1               # of the whole rise must fall into the last quarter
QUARTERS = 4


class Growth:
    """The lows of live memory rise from quarter to quarter of the history."""

    def __init__(self, low, high, count, span_us):
        self.low, self.high = low, high        # live bytes at the lows of first and last quarter
        self.events = count                    # allocations and frees looked at
        self.span_us = span_us                 # between the two lows
        self.frames = ()                       # the stack that grew most between them
        self.stack_bytes = self.stack_blocks = 0
        self.stack_largest = 0                 # bytes of its largest block at the last low

    @property
    def rate(self):
        """Bytes a second; None where the clock did not move."""
        return (self.high - self.low) * 1000000 // self.span_us if self.span_us > 0 else None


def is_judged(history):
    """Whether the history is long enough to tell a trend."""
    return sum(map(history.kinds.count, CHANGES)) >= FEWEST_CHANGES


def find_growth(snapshot, history, lows):
    """A Growth, or None where the least live memory, at `lows_of(history)`, does not keep
    rising."""
    if not lows:
        return None
    live = history.live
    levels = [live[place] for place in lows]
    rise = levels[-1] - levels[0]
    if not all(low < high for low, high in zip(levels, levels[1:])) or rise < LEAST_BYTES:
        return None
    if rise < LEAST_SHARE * levels[-1] or levels[-1] - levels[-2] < LAST_SHARE * rise:
        return None
    growth = Growth(levels[0], levels[-1], sum(map(history.kinds.count, CHANGES)),
                    history.times[lows[-1]] - history.times[lows[0]])
    before, after = history.bytes_by_stack(lows[0]), history.bytes_by_stack(lows[-1])
    nothing = (0, 0, 0)
    grown = {stack: use[0] - before.get(stack, nothing)[0] for stack, use in after.items()}
    if grown:
        stack = max(sorted(grown), key=grown.get)
        _, blocks, growth.stack_largest = after[stack]
        growth.frames = snapshot.stacks.frames[stack]
        growth.stack_bytes = grown[stack]
        growth.stack_blocks = blocks - before.get(stack, nothing)[1]
    return growth


def lows_of(history):
    """The event with least live memory of each quarter; empty where the history is short."""
    if not is_judged(history):
        return []
    places = [index for index, kind in enumerate(history.kinds) if kind in CHANGES]
    quarter = len(places) // QUARTERS
    return [min(places[part * quarter:(part + 1) * quarter], key=history.live.__getitem__)
            for part in range(QUARTERS)]
