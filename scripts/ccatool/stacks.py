# SPDX-License-Identifier: MIT
"""Call stacks: bytes by stack, and a form of a frame that fits a line."""
import os
import re

from .snapshot import integer, record_list, string

# Where a stack begins that is not the program's own doing.
PLUMBING = re.compile(r'lib(cca_preload|cudart|cuda)\.so')
# Frames around main and below a stack that say nothing.
FRAME_NAMES_HIDDEN = re.compile(
    r'_start$|__libc_start|__libc_start_call_main|unwind::unwind|CapturedTraceback::gather'
    r'|gather_with_cpp|PyEval_|PyObject_|PyFunction_')


class StackUse:
    """The live blocks of one call stack, or of all blocks without one."""

    def __init__(self, frames):
        self.frames = frames
        self.bytes = 0
        self.blocks = 0
        self.devices = set()


def frames_of(record):
    """The frames of a block or an entry as a tuple of (name, filename, line), innermost first."""
    frames = record_list(record, 'frames')
    if not frames:
        for old in record_list(record, 'history')[:1]:
            frames = record_list(old, 'frames')
    return tuple((string(frame, 'name', '??'), string(frame, 'filename'), integer(frame, 'line'))
                 for frame in frames)


def live_by_stack(snapshot):
    """StackUses of the allocated blocks, the largest first."""
    uses = {}
    for segment in snapshot.segments:
        for block in segment['blocks']:
            if block.get('state') != 'active_allocated':
                continue
            frames = frames_of(block)
            use = uses.setdefault(frames, StackUse(frames))
            use.bytes += integer(block, 'size')
            use.blocks += 1
            use.devices.add(integer(segment, 'device'))
    return sorted(uses.values(), key=lambda use: (-use.bytes, use.frames))


def program_frames(frames):
    """The frames that belong to the program: without CUDA's and ours above, and start-up below."""
    kept = list(frames)
    while kept and PLUMBING.match(os.path.basename(kept[0][1])):
        kept.pop(0)
    for index, frame in enumerate(kept):
        if plain_name(frame[0]) == 'main':
            del kept[index + 1:]
            break
    kept = [frame for frame in kept if not FRAME_NAMES_HIDDEN.search(plain_name(frame[0]))]
    return kept or list(frames)


def plain_name(name):
    """The function's name without the offset that the library appends."""
    return re.sub(r'\+0x[0-9a-f]+$', '', name)


def short(frame):
    """`function (module)`; with a source file `function (file:line)`."""
    name, filename, line = frame
    name = plain_name(name) or '??'
    name = re.sub(r'\((?!anonymous).*\)( const)?$', '()', name)
    where = os.path.basename(filename)
    if line > 0:
        where += ':%d' % line
    return '%s (%s)' % (name, where) if where else name


def chain(frames, depth):
    """The innermost program frames in short form, at most `depth`; a repeated frame once."""
    shown = []
    for frame in program_frames(frames):
        text = short(frame)
        if not shown or shown[-1] != text:
            shown.append(text)
    return shown[:depth]
