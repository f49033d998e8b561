# SPDX-License-Identifier: MIT
"""Call stacks of a snapshot, each distinct one once, by number."""
from .records import integer, record_list, string

NO_STACK = 0


class StackTable:
    """Number 0 is the empty stack. Frames are (name, filename, line), innermost first."""

    def __init__(self):
        self.frames = [()]
        self._by_content = {(): NO_STACK}
        # Files share one list object between the entries of a stack.
        self._by_object = {}

    def of(self, record):
        """The number of the stack of a block, a segment or an entry of the loaded file."""
        frames = record.get('frames')
        if not frames:
            old = record_list(record, 'history')
            return self.of(old[0]) if old else NO_STACK
        number = self._by_object.get(id(frames))
        if number is None:
            number = self._by_object[id(frames)] = self.number(frames_of(frames))
        return number

    def number(self, frames):
        """The number of a stack given as a tuple."""
        number = self._by_content.get(frames)
        if number is None:
            number = self._by_content[frames] = len(self.frames)
            self.frames.append(frames)
        return number


def frames_of(frames):
    """A list of frames as it stands in a file, as a tuple of (name, filename, line)."""
    if not isinstance(frames, (list, tuple)):
        return ()
    return tuple((string(frame, 'name', '??'), string(frame, 'filename'), integer(frame, 'line'))
                 for frame in frames if isinstance(frame, dict))
