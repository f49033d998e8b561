# SPDX-License-Identifier: MIT
"""What the report page needs of a snapshot: a JSON head, and columns of numbers beside it."""
import sys
from array import array

from . import history as events
from . import stacks, variables
from .device_text import device_data
from .hints import hints
from .records import integer, record_list, string
from .summary import summaries
from .text import clean
from .uses import uses_by_stack
from .verb_segments import segment_data
from .verb_show import head_rows
from .verb_stats import stats_of

MOST_EVENTS = 200000       # more of one device are thinned
KEPT_LIVES = 50000         # of the blocks then, the largest
BUCKETS = 4000             # of the curves then: each keeps its highest and lowest moment
MARKS = {events.OOM: 'oom', events.SNAPSHOT: 'snapshot', events.ANNOTATE: 'annotate'}
MOST_MARKS = 5000


class Columns:
    """Numbers for the page in one block of bytes; each column is named by place, count and type,
    the smallest type that holds it."""

    # Name, code of the array module, least and largest value.
    TYPES = (('u8', 'B', 0, 2 ** 8 - 1), ('u16', 'H', 0, 2 ** 16 - 1), ('u32', 'I', 0, 2 ** 32 - 1),
             ('i32', 'i', -2 ** 31, 2 ** 31 - 1))

    def __init__(self):
        self.data = bytearray()

    def add(self, values):
        low, high = min(values, default=0), max(values, default=0)
        name, code = next(((name, code) for name, code, least, most in self.TYPES
                           if least <= low and high <= most), ('f64', 'd'))
        column = array(code, values)
        if sys.byteorder == 'big':
            column.byteswap()
        while len(self.data) % 8:
            self.data.append(0)
        place = len(self.data)
        self.data += column.tobytes()
        return {'type': name, 'at': place, 'count': len(column)}


def page_data(snapshot):
    """(JSON-able head, bytes of the columns)."""
    columns = Columns()
    figures = summaries(snapshot)
    uses = uses_by_stack(snapshot)
    devices = []
    for summary in figures:
        if summary.is_unused and not summary.events:
            continue
        devices.append(dict(device_head(snapshot, summary.device, columns),
                            summary=device_data(summary)))
    own = snapshot.own
    head = {
        'file': clean(snapshot.path), 'rows': head_rows(snapshot),
        'start_us': integer(own, 'start_time_us'), 'dump_us': integer(own, 'dump_time_us'),
        'stacks': stack_list(snapshot), 'uses': [use_row(snapshot, use) for use in uses],
        'devices': devices, 'hints': [hint.data() for hint in hints(snapshot, figures)],
        'settings': settings_rows(snapshot), 'hooks': hook_rows(own),
        'modules': [{'path': string(row, 'path'), 'build_id': string(row, 'build_id')}
                    for row in record_list(own, 'modules')],
        'unmanaged': record_list(own, 'unmanaged'),
    }
    return head, bytes(columns.data)


def stack_list(snapshot):
    """Every stack as texts, innermost first; the program's frames only."""
    return [stacks.texts(frames) for frames in snapshot.stacks.frames]


def use_row(snapshot, use):
    return {'stack': snapshot.stacks.number(use.frames), 'now': use.now_bytes,
            'now_blocks': use.now_blocks, 'peak': use.peak_bytes, 'peak_blocks': use.peak_blocks,
            'allocs': use.allocs, 'churn': use.alloc_bytes, 'devices': sorted(use.devices)}


def settings_rows(snapshot):
    """[name, value, default]: what differs from its default first."""
    known = variables.known()
    changed, rest = [], []
    for settings in (snapshot.own.get('settings'), snapshot.settings):
        for key, value in settings.items() if isinstance(settings, dict) else ():
            default = known[key].default if key in known else ''
            row = [str(key), str(value), default]
            (changed if key in known and str(value) != default else rest).append(row)
    return changed + rest


def hook_rows(own):
    coverage = own.get('hook_coverage')
    rows = []
    for api, row in sorted(coverage.items()) if isinstance(coverage, dict) else ():
        if isinstance(row, dict):
            rows.append([str(api), string(row, 'door')] + [
                integer(row, key) for key in ('seen', 'served', 'passed', 'missed')])
    return rows


def device_head(snapshot, device, columns):
    history = snapshot.history(device)
    lives = history.lives
    kept_lives, kept, left_out = kept_parts(history)
    # The page shows blocks by address, whatever the moment.
    kept_lives = sorted(kept_lives, key=lives.address.__getitem__)
    # Old event index -> place among the kept ones. -1 stays, and the end becomes the new end.
    place = {index: number for number, index in enumerate(kept)}
    place[events.BEFORE], place[history.end] = events.BEFORE, len(kept)

    def of_events(values, base=0):
        return columns.add([values[index] - base for index in kept])

    def of_lives(values):
        return columns.add([values[life] for life in kept_lives])

    def places_of_lives(values):
        return columns.add([place[values[life]] for life in kept_lives])

    def level(first, values):
        # One place more than there are events: the first is before all of them.
        return columns.add([first] + [values[index] for index in kept])

    segments = history.segment_lives
    return {
        'device': device, 'events': history.end, 'kept': len(kept), 'left_out': left_out,
        'peak': place[history.peak], 'peak_is_lost': history.peak_is_lost,
        'first_us': history.times[kept[0]] if kept else 0,
        'time': of_events(history.times, history.times[kept[0]] if kept else 0),
        'kind': of_events(history.kinds), 'size': of_events(history.sizes),
        'stack': columns.add([snapshot.stacks.of(history.trace[index]) for index in kept]),
        'live': level(history.first_live, history.live),
        'pending': level(history.first_pending, history.pending),
        'reserved': level(history.first_reserved, history.reserved),
        'blocks': {
            'birth': places_of_lives(lives.birth), 'request': places_of_lives(lives.request),
            'death': places_of_lives(lives.death), 'address': of_lives(lives.address),
            'size': of_lives(lives.size), 'requested': of_lives(lives.requested),
            'stack': of_lives(lives.stack),
        },
        'segments': [[place[life.birth], place[life.death], life.address, life.size, life.stream,
                      life.expandable, list(life.pool), life.stack] for life in segments],
        'final_segments': [segment_data(segment) for segment in snapshot.segments
                           if integer(segment, 'device') == device],
        'exported': [integer(block, 'address') for segment in snapshot.segments
                     if integer(segment, 'device') == device for block in segment['blocks']
                     if block.get('exported') is True],
        'marks': marks_of(snapshot, history, place, device),
        'stats': stats_of(snapshot, device), 'counters': snapshot.own_row('counters', device),
    }


def kept_parts(history):
    """(numbers of lives, indices of events, what is left out as a dict or None)."""
    lives = history.lives
    if history.end <= MOST_EVENTS:
        return range(len(lives)), range(history.end), None
    order = sorted(range(len(lives)), key=lambda life: (-lives.size[life], life))
    kept_lives = order[:KEPT_LIVES]
    kept = set(extremes(history))
    for life in kept_lives:
        kept.update((lives.birth[life], lives.request[life], lives.death[life]))
    for life in history.segment_lives:
        kept.update((life.birth, life.death))
    kept.update(index for index, kind in enumerate(history.kinds)
                if kind in MARKS or events.SEGMENT_ALLOC <= kind <= events.SEGMENT_UNMAP)
    kept.add(history.peak)
    kept -= {events.BEFORE, history.end}
    smaller = order[KEPT_LIVES:]
    left_out = {'events': history.end - len(kept), 'blocks': len(smaller),
                'largest': lives.size[smaller[0]] if smaller else 0}
    return kept_lives, sorted(kept), left_out


def extremes(history):
    """Of each stretch of the history the events at which live and reserved are highest, and live
    is lowest."""
    step = max(1, history.end // BUCKETS)
    for low in range(0, history.end, step):
        stretch = range(low, min(history.end, low + step))
        yield max(stretch, key=history.live.__getitem__)
        yield min(stretch, key=history.live.__getitem__)
        yield max(stretch, key=history.reserved.__getitem__)


def marks_of(snapshot, history, place, device):
    """Out-of-memory events, snapshots, annotations: what is worth a mark on the time axis."""
    marks = []
    for index, kind in enumerate(history.kinds):
        if kind not in MARKS:
            continue
        entry = history.trace[index]
        mark = {'kind': MARKS[kind], 'at': place[index], 'time': history.times[index],
                'text': string(entry, 'user_metadata')}
        if kind == events.OOM:
            mark.update(size=integer(entry, 'size'), free=integer(entry, 'device_free'),
                        stack=snapshot.stacks.of(entry))
        marks.append(mark)
    return marks[:MOST_MARKS] + spans(snapshot, device)


def spans(snapshot, device):
    """Annotations of stretches of time: START and END paired by name."""
    found, waiting = [], {}
    for row in snapshot.annotations:
        name, time = string(row, 'name'), integer(row, 'time_us')
        if integer(row, 'device', device) not in (device, -1) or time <= 0:
            continue
        if row.get('stage') == 'START':
            mark = {'kind': 'span', 'time': time, 'end': None, 'text': name}
            waiting.setdefault(name, []).append(mark)
            found.append(mark)
        elif waiting.get(name):
            waiting[name].pop()['end'] = time
    return found[:MOST_MARKS]
