# SPDX-License-Identifier: MIT
"""A snapshot as metrics in Prometheus' text format.

The rows are those of src/process/metrics.def, from which the library writes its own file
(CCA_METRICS_FILE): one dashboard reads both.
"""
from . import definition
from .definition import unquoted
from .records import integer, string
from .verb_stats import stats_of

POOLS = (('all', 'all'), ('small_pool', 'small'), ('large_pool', 'large'))
# Counters that the library's source calls otherwise than the snapshot.
COUNTER_KEYS = {'passed': 'passed_through'}


def pool_metrics():
    """(metric, kind, statistic, which of its values, help)."""
    for _, (name, kind, stat, field, text) in definition.rows('metrics.def', ('POOL',)):
        yield name, unquoted(kind), stat, field.lower(), unquoted(text)


def device_metrics():
    """(metric, where the value stands, its key, help); a key that ends in _us becomes seconds."""
    for kind, (name, field, text) in definition.rows('metrics.def', ('STAT', 'COUNT', 'TIME')):
        key = field.replace('_ns', '_time_us') if kind == 'TIME' else COUNTER_KEYS.get(field, field)
        yield name, 'stats' if kind == 'STAT' else 'counters', key, unquoted(text)


def metrics(snapshot):
    """The text. A figure that the snapshot does not hold is left out."""
    lines = []
    devices = [(common_labels(snapshot, device), stats_of(snapshot, device),
                snapshot.own_row('counters', device)) for device in snapshot.devices()]
    for name, kind, stat, metric, text in pool_metrics():
        rows = [(dict(labels, pool=pool), integer(stats, '%s.%s.%s' % (stat, key, metric), None))
                for labels, stats, _ in devices for key, pool in POOLS]
        lines += family(name, kind, text, rows)
    for name, place, key, text in device_metrics():
        rows = []
        for labels, stats, counters in devices:
            value = integer(stats if place == 'stats' else counters, key, None)
            if value is not None and key.endswith('_us'):
                value = value / 1e6
            rows.append((labels, value))
        lines += family(name, 'counter', text, rows)
    return ''.join(line + '\n' for line in lines)


def common_labels(snapshot, device):
    labels = {'device': str(device)}
    if string(snapshot.own, 'host'):
        labels['host'] = string(snapshot.own, 'host')
    rank = integer(snapshot.own, 'rank', None)
    if rank is not None:
        labels['rank'] = str(rank)
    return labels


def family(name, kind, text, rows):
    """The lines of one metric, or none where no value of it is known."""
    known = [(labels, value) for labels, value in rows if value is not None]
    if not known:
        return []
    return ['# HELP %s %s' % (name, text), '# TYPE %s %s' % (name, kind)] + [
        '%s{%s} %s' % (name, ','.join('%s="%s"' % (key, escaped(label))
                                      for key, label in labels.items()),
                       '%.6f' % value if isinstance(value, float) else value)
        for labels, value in known]


def escaped(text):
    return text.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
