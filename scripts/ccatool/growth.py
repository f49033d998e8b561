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

    def __init__(self, low, high, count, span_us, frames, stack_bytes):
        self.low, self.high = low, high        # live bytes at the lows of first and last quarter
        self.events = count                    # allocations and frees looked at
        self.span_us = span_us
        self.frames = frames                   # the stack that grew most between the two lows
        self.stack_bytes = stack_bytes


def is_judged(history):
    """Whether the history is long enough to tell a trend."""
    return sum(map(history.kinds.count, CHANGES)) >= FEWEST_CHANGES


def find_growth(snapshot, device):
    """A Growth, or None where the least live memory does not keep rising."""
    history = snapshot.history(device)
    if not is_judged(history):
        return None
    places = [index for index, kind in enumerate(history.kinds) if kind in CHANGES]
    quarter = len(places) // QUARTERS
    live = history.live
    lows = [min(places[part * quarter:(part + 1) * quarter], key=live.__getitem__)
            for part in range(QUARTERS)]
    levels = [live[place] for place in lows]
    rise = levels[-1] - levels[0]
    if not all(low < high for low, high in zip(levels, levels[1:])) or rise < LEAST_BYTES:
        return None
    if rise < LEAST_SHARE * levels[-1] or levels[-1] - levels[-2] < LAST_SHARE * rise:
        return None
    before, after = history.bytes_by_stack(lows[0]), history.bytes_by_stack(lows[-1])
    grown = {stack: size - before.get(stack, (0, 0))[0] for stack, (size, _) in after.items()}
    stack = max(sorted(grown), key=grown.get) if grown else 0
    return Growth(levels[0], levels[-1], len(places), history.times[-1] - history.times[0],
                  snapshot.stacks.frames[stack], grown.get(stack, 0))
