# SPDX-License-Identifier: MIT
"""How broken up a device's free memory is, and what breaks it up."""
from .history import SMALL_SEGMENT, pool_of
from .records import integer

NONE, CRUMBS = 'none', 'crumbs'
WORTH_A_WORD = 0.05
SMALL_REQUEST = 1 << 20         # a small segment serves no larger one
LARGE_PAGE = 20 << 20           # what an expandable segment returns at a time


class Fragments:
    """Free memory of one device in the allocator's hands.

    score: the share of the free memory that no single request could have. Whole idle segments
    count as one piece: they go back to the device, which gives them anew in one. None without free
    memory.
    returnable: what the driver would get back: whole idle segments, and whole idle pages of
    expandable ones. servable: the largest request that would need no driver call. Both without
    private pools, which only their own graphs use.
    cause: CRUMBS (live blocks hold back the rest of their segments); NONE below WORTH_A_WORD.
    """

    def __init__(self, snapshot, device):
        self.free = self.blocks = self.largest = 0
        self.held_back = 0          # free bytes in segments that also hold live blocks
        self.holding = 0            # the live bytes in those segments
        self.holding_blocks = self.holding_segments = 0
        self.whole = self.whole_segments = 0
        self.returnable = self.returnable_segments = self.servable = 0
        by_stack = {}
        for segment in snapshot.segments:
            if integer(segment, 'device') == device:
                self._add(snapshot, segment, by_stack)
        self.score = 1 - max(self.largest, self.whole) / self.free if self.free else None
        self.cause = CRUMBS if self.score is not None and self.score >= WORTH_A_WORD else NONE
        self.holders = len(by_stack)
        # The stack whose blocks hold back most.
        self.holder = max(sorted(by_stack), key=by_stack.get) if by_stack else None
        self.holder_frames = snapshot.stacks.frames[self.holder] if self.holder else ()

    def _add(self, snapshot, segment, by_stack):
        used, free, holders = 0, 0, {}
        blocks = pages = 0
        is_small = segment.get('segment_type') == 'small'
        is_shared = pool_of(segment, 'segment_pool_id') == (0, 0)
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
                if is_shared:
                    self.servable = max(self.servable,
                                        min(size, SMALL_REQUEST) if is_small else size)
                pages += whole_pages(integer(block, 'address') - integer(segment, 'address'), size,
                                     SMALL_SEGMENT if is_small else LARGE_PAGE)
        self.free += free
        if is_shared:
            is_expandable = segment.get('is_expandable') is True
            self.returnable += free if not used else pages if is_expandable else 0
            self.returnable_segments += not used
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


def whole_pages(place, size, page):
    """Bytes of the pages that lie wholly within a block at `place` of its segment."""
    first = -(-place // page) * page
    return max(0, (place + size) // page * page - first)
