# SPDX-License-Identifier: MIT
"""Reads a snapshot, pickle or JSON, ours or PyTorch's, without trusting it."""
import io
import json
import pickle
import re
import sys

from . import opcodes, place
from .failure import Failure, reason


class Snapshot:
    """The parts of one file. Lists hold dicts only; the keys of those may be missing or odd."""

    def __init__(self, path, segments, traces, settings, own):
        self.path = path
        self.segments = segments
        self.traces = traces           # one list of entries per device
        self.settings = settings
        self.own = own or {}           # the `cca` section
        self.is_ours = own is not None


class PlainUnpickler(pickle.Unpickler):
    """Builds plain data only. The scan before it has refused everything else already."""

    def find_class(self, module, name):
        raise opcodes.BadPickle('wants to load %s.%s' % (module, name))

    def persistent_load(self, pid):
        raise opcodes.BadPickle('holds a persistent id')


def load(path):
    """The Snapshot in a file (`-`: standard input), or a Failure of one line."""
    data = read_bytes(path)
    start = data[:64].lstrip()[:1]
    try:
        if not data:
            raise Failure('empty file')
        if start in (b'{', b'['):
            return from_data(path, parse_json(data))
        if data[0] == opcodes.PROTO:
            return from_data(path, parse_pickle(data))
        raise Failure('not a snapshot (neither pickle nor JSON)')
    except Failure as failure:
        raise Failure('%s: %s' % (path, failure.message)) from failure


def read_bytes(path):
    try:
        if path == '-':
            return sys.stdin.buffer.read()
        with open(path, 'rb') as stream:
            return stream.read()
    except OSError as error:
        raise Failure('%s: %s' % (path, reason(error))) from error
    except MemoryError as error:
        raise Failure('%s: too large for the memory of this machine' % path) from error


def parse_json(data):
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()) - 1 or 'Unterminated' in error.msg:
            raise Failure('JSON is cut off at line %d' % error.lineno) from error
        raise Failure('damaged JSON at line %d, column %d' % (error.lineno, error.colno)) from error
    except (ValueError, RecursionError) as error:
        raise Failure('damaged JSON') from error


def parse_pickle(data):
    try:
        end = opcodes.scan(data)
        return PlainUnpickler(io.BytesIO(data[:end])).load()
    except opcodes.BadPickle as error:
        raise Failure(str(error)) from error
    except Exception as error:
        # A pickle of allowed opcodes in a senseless order fails in many ways.
        raise Failure('damaged pickle') from error


def from_data(path, data):
    """Checks the outline and the version."""
    if isinstance(data, list) and all(isinstance(item, dict) and 'blocks' in item for item in data):
        data = {'segments': data, 'device_traces': []}
    if not isinstance(data, dict) or not {'segments', 'device_traces'} & set(data):
        raise Failure('not a snapshot (no segments, no device_traces)')
    own = data.get('cca')
    if own is not None:
        if not isinstance(own, dict):
            raise Failure('not a snapshot (cca is no dict)')
        check_version(own.get('version'))
    segments = dicts(data.get('segments'), 'segments')
    for index, segment in enumerate(segments):
        segment['blocks'] = dicts(segment.get('blocks'), 'segments[%d].blocks' % index)
    traces = data.get('device_traces')
    if not isinstance(traces, (list, type(None))):
        raise Failure('not a snapshot (device_traces is no list)')
    traces = [dicts(trace, 'device_traces[%d]' % index) for index, trace in enumerate(traces or [])]
    settings = data.get('allocator_settings')
    return Snapshot(path, segments, traces, settings if isinstance(settings, dict) else {}, own)


def dicts(value, name):
    """The value as a list of dicts; nothing counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, dict) for item in value):
        raise Failure('not a snapshot (%s is no list of dicts)' % name)
    return list(value)


def check_version(text):
    """Refuses a file of a newer series than this tool: its meaning may have changed."""
    theirs, ours = series(text), series(place.version())
    if theirs and ours and theirs > ours:
        raise Failure('written by cca %s, newer than this tool (%s)' % (text, place.version()))


def series(text):
    """The part of a version within which files stay readable: major, and minor before 1.0."""
    match = re.match(r'(\d+)(?:\.(\d+))?', text if isinstance(text, str) else '')
    if not match:
        return None
    major = int(match.group(1))
    return (major, int(match.group(2) or 0)) if major == 0 else (major,)


def integer(record, key, default=0):
    """An integer of a record, or the default where it is missing or something else."""
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def string(record, key, default=''):
    value = record.get(key)
    return value if isinstance(value, str) else default


def record_list(record, key):
    """The dicts of a list in a record; whatever else stands there is left out."""
    value = record.get(key)
    if not isinstance(value, (list, tuple)):
        return []
    return [item for item in value if isinstance(item, dict)]
