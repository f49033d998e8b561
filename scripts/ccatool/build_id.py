# SPDX-License-Identifier: MIT
"""Build ids, and the files on this machine that have one."""
import os
import struct

NOTE_SEGMENT, BUILD_ID_NOTE = 4, 3
DEBUG_FOLDER = '/usr/lib/debug'


def build_id_of(path):
    """The build id of an ELF file in hex; '' where it has none or is none."""
    try:
        with open(path, 'rb') as stream:
            return read_build_id(stream)
    except (OSError, struct.error):
        return ''


def read_build_id(stream):
    head = stream.read(64)
    if head[:4] != b'\x7fELF' or len(head) < 64:
        return ''
    order = '>' if head[5] == 2 else '<'
    if head[4] == 2:
        table, = struct.unpack_from(order + 'Q', head, 32)
        entry, count = struct.unpack_from(order + 'HH', head, 54)
    else:
        table, = struct.unpack_from(order + 'I', head, 28)
        entry, count = struct.unpack_from(order + 'HH', head, 42)
    stream.seek(table)
    rows = stream.read(entry * count)
    for place in range(0, len(rows) - entry + 1, entry):
        kind, = struct.unpack_from(order + 'I', rows, place)
        if kind != NOTE_SEGMENT:
            continue
        if head[4] == 2:
            offset, = struct.unpack_from(order + 'Q', rows, place + 8)
            length, = struct.unpack_from(order + 'Q', rows, place + 32)
        else:
            offset, = struct.unpack_from(order + 'I', rows, place + 4)
            length, = struct.unpack_from(order + 'I', rows, place + 16)
        stream.seek(offset)
        found = find_note(stream.read(min(length, 1 << 20)), order)
        if found:
            return found
    return ''


def find_note(notes, order):
    place = 0
    while place + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(order + 'III', notes, place)
        name = notes[place + 12:place + 12 + name_size]
        place += 12 + (name_size + 3) // 4 * 4
        if kind == BUILD_ID_NOTE and name == b'GNU\0':
            return notes[place:place + size].hex()
        place += (size + 3) // 4 * 4
    return ''


def candidates(path, build_id, folders):
    """Where a file with debug information for a module may lie, the best first."""
    if len(build_id) > 2:
        tail = os.path.join('.build-id', build_id[:2], build_id[2:])
        for folder in folders:
            yield os.path.join(folder, tail + '.debug')
            yield os.path.join(folder, tail)
        yield os.path.join(DEBUG_FOLDER, tail + '.debug')
    for folder in folders:
        yield os.path.join(folder, path.lstrip('/'))
        yield os.path.join(folder, os.path.basename(path))
        yield os.path.join(folder, os.path.basename(path) + '.debug')
    yield path


def find_file(path, build_id, folders):
    """(file, '') for a module, or (None, why none is fit)."""
    why = 'not found'
    for candidate in candidates(path, build_id, folders):
        if not os.path.isfile(candidate):
            continue
        if not build_id:
            return candidate, ''
        if build_id_of(candidate) == build_id:
            return candidate, ''
        why = 'is another build (its build id differs)'
    return None, why
