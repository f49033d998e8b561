# SPDX-License-Identifier: MIT
"""Call stacks: bytes by stack, and a form of a frame that fits a line."""
import os
import re

# Where a stack begins that is not the program's own doing.
PLUMBING = re.compile(r'lib(cca_preload|cudart|cuda)\.so')
NO_STACK = '(no call stack was kept)'
# Frames around main and below a stack that say nothing.
FRAME_NAMES_HIDDEN = re.compile(
    r'^_start$|^__libc_start|unwind::unwind|CapturedTraceback::gather'
    r'|gather_with_cpp|PyEval_|PyObject_|PyFunction_')


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


def texts(frames):
    """The program frames in short form, innermost first; one text where there are none."""
    return [short(frame) for frame in program_frames(frames)] or [NO_STACK]


def chain(frames, depth):
    """The innermost program frames in short form, at most `depth`; a repeated frame once, and a
    module only where it changes. One text where there are none."""
    shown, last, module = [], None, None
    for frame in program_frames(frames):
        text = short(frame)
        if text == last:
            continue
        last = text
        shown.append(short((frame[0], '', 0)) if frame[2] <= 0 and frame[1] == module else text)
        module = frame[1]
    return shown[:depth] or [NO_STACK]
