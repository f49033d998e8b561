# SPDX-License-Identifier: MIT
"""What each call stack held at the peak, holds now, and allocated in all."""
from . import stacks
from .records import integer
from .text import clean

TITLES = {'now': 'live now', 'peak': 'live at the peak', 'churn': 'allocated within the history'}
MOMENTS = tuple(TITLES)


class Use:
    """One call stack of a snapshot, over the devices that were asked for."""

    def __init__(self, frames):
        self.frames = frames
        self.now_bytes = self.now_blocks = 0
        self.peak_bytes = self.peak_blocks = 0
        self.now_largest = self.peak_largest = 0    # bytes of the largest block
        self.allocs = self.alloc_bytes = 0      # in the history
        self.oldest_us = self.newest_us = 0     # of the blocks that are live now
        self.devices = set()

    def bytes_at(self, moment):
        return {'now': self.now_bytes, 'peak': self.peak_bytes, 'churn': self.alloc_bytes}[moment]

    def largest_at(self, moment):
        return {'now': self.now_largest, 'peak': self.peak_largest, 'churn': 0}[moment]

    def blocks_at(self, moment):
        return {'now': self.now_blocks, 'peak': self.peak_blocks, 'churn': self.allocs}[moment]


def uses_by_stack(snapshot, devices=None):
    """Uses of all stacks: those that hold most now first, or most at the peak where nothing is
    live."""
    devices = snapshot.devices() if devices is None else devices
    found = {}

    def use_of(stack, device):
        use = found.get(stack)
        if use is None:
            use = found[stack] = Use(snapshot.stacks.frames[stack])
        use.devices.add(device)
        return use

    add_live(snapshot, devices, use_of)
    for device in devices:
        history = snapshot.history(device)
        for stack, (size, blocks, largest) in history.bytes_by_stack(history.peak).items():
            use = use_of(stack, device)
            use.peak_bytes += size
            use.peak_blocks += blocks
            use.peak_largest = max(use.peak_largest, largest)
        lives, allocs, alloc_bytes = history.lives, {}, {}
        for birth, stack, size in zip(lives.birth, lives.stack, lives.size):
            if birth >= 0:
                allocs[stack] = allocs.get(stack, 0) + 1
                alloc_bytes[stack] = alloc_bytes.get(stack, 0) + size
        for stack, count in allocs.items():
            use = use_of(stack, device)
            use.allocs += count
            use.alloc_bytes += alloc_bytes[stack]
    moment = moment_shown(found.values())
    return sorted(found.values(), key=lambda use: (
        -use.bytes_at(moment), -use.peak_bytes, -use.alloc_bytes, use.frames))


def moment_shown(uses):
    """Which moment a table of them is about: now, or the peak where nothing is live."""
    return 'now' if any(use.now_bytes for use in uses) else 'peak'


def add_live(snapshot, devices, use_of):
    wanted = set(devices)
    for segment in snapshot.segments:
        device = integer(segment, 'device')
        if device not in wanted:
            continue
        for block in segment['blocks']:
            if block.get('state') != 'active_allocated':
                continue
            use = use_of(snapshot.stacks.of(block), device)
            size = integer(block, 'size')
            use.now_bytes += size
            use.now_blocks += 1
            use.now_largest = max(use.now_largest, size)
            born = integer(block, 'alloc_time_us')
            if born > 0:
                use.oldest_us = min(use.oldest_us or born, born)
                use.newest_us = max(use.newest_us, born)


def frames_data(frames):
    """Frames as JSON has them."""
    return [{'name': name, 'filename': filename, 'line': line} for name, filename, line in frames]


def folded(frames):
    """One line of collapsed-stack form: outermost first, parts joined by semicolons."""
    parts = [text.replace(';', ':').replace('\n', ' ') for text in reversed(stacks.texts(frames))]
    return ';'.join(part for part in parts)


def collapsed(uses, moment):
    """Collapsed-stack lines, equal ones added up, sorted."""
    sums = {}
    for use in uses:
        line = folded(use.frames)
        sums[line] = sums.get(line, 0) + use.bytes_at(moment)
    return ''.join('%s %d\n' % (clean(line), sums[line]) for line in sorted(sums))
