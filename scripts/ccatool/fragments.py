# SPDX-License-Identifier: MIT
"""How broken up a device's free memory is, and what breaks it up."""
from .records import integer

NONE, CRUMBS, STAIRCASE = 'none', 'crumbs', 'staircase'


class Fragments:
    """Free memory of one device in the allocator's hands.

    score: 0 when it is one block, near 1 when it is crumbs; None without free memory.
    cause: CRUMBS (live blocks hold back the rest of their segments) or STAIRCASE (whole segments
    that are free, but no two of them make a larger block), by which holds more; NONE below 0.05.
    """

    def __init__(self, snapshot, device):
        self.free = self.blocks = self.largest = 0
        self.held_back = 0          # free bytes in segments that also hold live blocks
        self.holding = 0            # the live bytes in those segments
        self.holding_blocks = self.holding_segments = 0
        self.whole = self.whole_segments = 0
        by_stack = {}
        for segment in snapshot.segments:
            if integer(segment, 'device') == device:
                self._add(snapshot, segment, by_stack)
        self.score = 1 - self.largest / self.free if self.free else None
        self.cause = NONE
        if self.score is not None and self.score >= 0.05:
            self.cause = CRUMBS if self.held_back >= self.whole else STAIRCASE
        # The stack whose blocks hold back most.
        self.holder = max(sorted(by_stack), key=by_stack.get) if by_stack else None
        self.holder_frames = snapshot.stacks.frames[self.holder] if self.holder else ()

    def _add(self, snapshot, segment, by_stack):
        used, free, holders = 0, 0, {}
        blocks = 0
        for block in segment['blocks']:
            size = max(0, integer(block, 'size'))
            if str(block.get('state')).startswith('active_'):
                used += size
                blocks += 1
                stack = snapshot.stacks.of(block)
                holders[stack] = holders.get(stack, 0) + 1
            else:
                free += size
                self.blocks += 1
                self.largest = max(self.largest, size)
        self.free += free
        if not used:
            self.whole += free
            self.whole_segments += 1
        elif free:
            self.held_back += free
            self.holding += used
            self.holding_blocks += blocks
            self.holding_segments += 1
            for stack, count in holders.items():
                by_stack[stack] = by_stack.get(stack, 0) + free * count / blocks
