# SPDX-License-Identifier: MIT
"""Reads a snapshot, pickle or JSON, ours or PyTorch's, without trusting it."""
import io
import json
import pickle
import re
import sys

from . import opcodes, place
from .failure import Failure, reason
from .history import History
from .records import integer, record_list
from .stack_table import StackTable


HEAD = 64                    # bytes by which the kind of a file is told
MUCH_JSON = 100 * 1000000


EMPTY_MARK = {'action': 'snapshot', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': 0,
              'compile_context': 'N/A', 'user_metadata': '', 'pool_id': (0, 0)}


class Snapshot:
    """The parts of one file. Lists hold dicts only; the keys of those may be missing or odd."""

    def __init__(self, path, segments, traces, settings, own, raw=None):
        self.path = path
        self._raw = {} if raw is None else raw
        self.segments = segments
        self.traces = traces           # one list of entries per device
        self.settings = settings
        self.annotations = record_list(self._raw, 'external_annotations')
        self.own = own or {}           # the `cca` section
        self.is_ours = own is not None
        self.stacks = StackTable()
        self._histories = {}

    def history(self, device):
        """The History of a device, made once."""
        if device not in self._histories:
            peak, stats = self.own_row('peak', device), self.own_row('stats', device)
            self._histories[device] = History(
                self, device, integer(peak, 'time_us'),
                integer(stats, 'allocated_bytes.all.peak', None))
        return self._histories[device]

    def data(self):
        """The whole file as plain data, pool ids as the pairs that PyTorch has. Each device has
        an event or a segment, without which its viewer does not open the file."""
        data = dict(self._raw, segments=self.segments, device_traces=self.traces,
                    allocator_settings=self.settings,
                    external_annotations=self._raw.get('external_annotations') or [])
        busy = {integer(segment, 'device') for segment in self.segments}
        traces = data['device_traces'] = list(self.traces)
        traces += [[] for _ in range(max(busy, default=-1) + 1 - len(traces))]
        for device, trace in enumerate(traces):
            if not trace and device not in busy:
                traces[device] = [dict(EMPTY_MARK, time_us=integer(self.own, 'dump_time_us'))]
        for key, records in (('segment_pool_id', [self.segments]), ('pool_id', self.traces)):
            for record in (one for rows in records for one in rows):
                if isinstance(record.get(key), list):
                    record[key] = tuple(record[key])
        return data

    def own_row(self, key, device):
        """The dict of a device in one of the lists of the `cca` section, or an empty one."""
        rows = record_list(self.own, key)
        return rows[device] if 0 <= device < len(rows) else {}

    def devices(self):
        """The ordinals that the file mentions, ascending."""
        found = {integer(segment, 'device') for segment in self.segments}
        count = max(len(self.traces), *(len(record_list(self.own, key))
                                        for key in ('stats', 'counters')))
        return sorted(found | set(range(count)))


class PlainUnpickler(pickle.Unpickler):
    """Builds plain data only. The scan before it has refused everything else already."""

    def find_class(self, module, name):
        raise opcodes.BadPickle('wants to load %s.%s' % (module, name))

    def persistent_load(self, pid):
        raise opcodes.BadPickle('holds a persistent id')


def load(path):
    """The Snapshot in a file (`-`: standard input), or a Failure of one line."""
    data = read_bytes(path)
    try:
        if is_json(data):
            if len(data) > MUCH_JSON:
                sys.stderr.write('cca: %s: %d MB of JSON take long and much memory: use the '
                                 'pickle\n' % (path, len(data) // 1000000))
            return from_data(path, parse_json(data))
        return from_data(path, parse_pickle(data))
    except Failure as failure:
        raise Failure('%s: %s' % (path, failure.message)) from failure


def is_json(data):
    return data[:HEAD].lstrip()[:1] in (b'{', b'[')


def read_bytes(path):
    """The whole file; a Failure after its first bytes where they are no snapshot's."""
    try:
        if path == '-':
            return read_stream(path, sys.stdin.buffer)
        with open(path, 'rb') as stream:
            return read_stream(path, stream)
    except OSError as error:
        raise Failure('%s: %s' % (path, reason(error))) from error
    except MemoryError as error:
        raise Failure('%s: too large for the memory of this machine' % path) from error


def read_stream(path, stream):
    head = stream.peek(HEAD)[:HEAD]
    if not head:
        raise Failure('%s: empty file' % path)
    if not is_json(head) and head[0] != opcodes.PROTO:
        raise Failure('%s: not a snapshot (neither pickle nor JSON)' % path)
    return stream.read()


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
        opcodes.scan(data)
        return PlainUnpickler(io.BytesIO(data)).load()
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
    return Snapshot(path, segments, traces, settings if isinstance(settings, dict) else {}, own,
                    data)


def dicts(value, name):
    """The value as a list of dicts; nothing counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)) or not set(map(type, value)) <= {dict}:
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
