# SPDX-License-Identifier: MIT
"""A snapshot as a Chrome trace: counters of memory, segments as slices, marks as instants.

The form is the JSON object of the Trace Event Format, which Perfetto and chrome://tracing read.
"""
from . import history as events
from . import stacks
from .records import integer, string

# Devices count from 0: a number that none of them has.
ANNOTATION_TRACK = 1000
MARKS = {events.OOM: 'out of memory', events.SNAPSHOT: 'snapshot', events.ANNOTATE: 'annotation'}


def chrome_trace(snapshot):
    """The trace as plain data."""
    rows = []
    own = snapshot.own
    pid = integer(own, 'pid') or 1
    rows.append(meta('process_name', pid, 0, string(own, 'program') or 'snapshot'))
    for device in snapshot.devices():
        history = snapshot.history(device)
        if not history.end:
            continue
        rows.append(meta('thread_name', pid, device, 'device %d' % device))
        rows += counters(history, pid, device)
        rows += slices(snapshot, history, pid, device)
        rows += marks(snapshot, history, pid, device)
    if snapshot.annotations:
        rows.append(meta('thread_name', pid, ANNOTATION_TRACK, 'annotations'))
        rows += annotations(snapshot, pid)
    rows.sort(key=lambda row: row.get('ts', 0))
    return {'traceEvents': rows, 'displayTimeUnit': 'ms',
            'otherData': {'version': string(own, 'version'), 'host': string(own, 'host')}}


def meta(name, pid, tid, text):
    return {'name': name, 'ph': 'M', 'pid': pid, 'tid': tid, 'args': {'name': text}}


def counters(history, pid, device):
    """Memory after each event; of several at one microsecond after the last."""
    rows, last = [], None
    for index in range(history.end):
        time = history.times[index]
        values = {'live': history.live[index], 'pending': history.pending[index],
                  'cached': max(0, history.reserved[index] - history.live[index]
                                - history.pending[index])}
        if rows and time == last:
            rows[-1]['args'] = values
        else:
            rows.append({'name': 'memory of device %d' % device, 'ph': 'C', 'ts': time, 'pid': pid,
                         'tid': device, 'args': values})
        last = time
    return rows


def slices(snapshot, history, pid, device):
    """Every block that was allocated within the history, as an asynchronous slice of its stack."""
    lives, rows = history.lives, []
    end = history.times[-1]
    for number in range(len(lives)):
        birth, request = lives.birth[number], lives.request[number]
        if birth < 0 or birth >= request:
            continue
        frames = snapshot.stacks.frames[lives.stack[number]]
        shown = stacks.chain(frames, 8) if frames else []
        base = {'cat': 'allocation', 'id': '%d.%d' % (device, number), 'pid': pid, 'tid': device,
                'name': shown[0] if shown else 'allocation'}
        rows.append(dict(base, ph='b', ts=history.times[birth], args={
            'bytes': lives.size[number], 'requested': lives.requested[number],
            'address': '%#x' % lives.address[number], 'stack': ' < '.join(shown)}))
        rows.append(dict(base, ph='e', ts=history.times[request] if request < history.end
                         else end))
    return rows


def marks(snapshot, history, pid, device):
    rows = []
    for index, kind in enumerate(history.kinds):
        if kind in MARKS:
            entry = history.trace[index]
            rows.append({'name': MARKS[kind], 'ph': 'i', 's': 'p', 'ts': history.times[index],
                         'pid': pid, 'tid': device, 'args': {
                             'bytes': history.sizes[index],
                             'text': string(entry, 'user_metadata')}})
    return rows


def annotations(snapshot, pid):
    """External annotations, as slices of a track of their own."""
    return [{'name': string(row, 'name'), 'cat': 'annotation',
             'ph': 'B' if row.get('stage') == 'START' else 'E', 'ts': integer(row, 'time_us'),
             'pid': pid, 'tid': ANNOTATION_TRACK} for row in snapshot.annotations]
