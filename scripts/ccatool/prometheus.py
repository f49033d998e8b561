# SPDX-License-Identifier: MIT
"""A snapshot as metrics in Prometheus' text format.

Names are those of the file that the library itself writes (CCA_METRICS_FILE), so that one dashboard
reads both.
"""
from .records import integer, string
from .verb_stats import stats_of

POOLS = (('all', 'all'), ('small_pool', 'small'), ('large_pool', 'large'))
# (metric, kind, statistic, which of its values, help)
POOL_METRICS = (
    ('cca_allocated_bytes', 'gauge', 'allocated_bytes', 'current',
     'Size of the blocks that the program holds.'),
    ('cca_allocated_peak_bytes', 'gauge', 'allocated_bytes', 'peak',
     'The most that cca_allocated_bytes has been since the last reset of peaks.'),
    ('cca_allocated_bytes_total', 'counter', 'allocated_bytes', 'allocated',
     'Size of all blocks ever handed out.'),
    ('cca_requested_bytes', 'gauge', 'requested_bytes', 'current',
     'What the program asked for, of the active blocks.'),
    ('cca_active_bytes', 'gauge', 'active_bytes', 'current',
     'Size of the blocks that are held or wait for work on the device.'),
    ('cca_reserved_bytes', 'gauge', 'reserved_bytes', 'current',
     'Size of the memory obtained from the driver.'),
    ('cca_reserved_peak_bytes', 'gauge', 'reserved_bytes', 'peak',
     'The most that cca_reserved_bytes has been since the last reset of peaks.'),
    ('cca_inactive_split_bytes', 'gauge', 'inactive_split_bytes', 'current',
     'Size of the free blocks that share their segment with others.'),
    ('cca_allocations', 'gauge', 'allocation', 'current', 'Blocks that the program holds.'),
    ('cca_allocs_total', 'counter', 'allocation', 'allocated', 'Blocks ever handed out.'),
    ('cca_segments', 'gauge', 'segment', 'current', 'Segments obtained from the driver.'),
)
# (metric, where the value stands, its key, help); a key that ends in _us becomes seconds.
DEVICE_METRICS = (
    ('cca_ooms_total', 'stats', 'num_ooms', 'Requests that failed for want of memory.'),
    ('cca_oom_rejections_total', 'stats', 'num_oom_rejections',
     'Requests refused before the driver was asked.'),
    ('cca_alloc_retries_total', 'stats', 'num_alloc_retries',
     'Driver allocations tried again after the cache was released.'),
    ('cca_sync_all_streams_total', 'stats', 'num_sync_all_streams',
     'Blocking waits for all outstanding events.'),
    ('cca_requests_total', 'counters', 'allocs',
     'Requests served, by the cache or passed through.'),
    ('cca_hits_total', 'counters', 'hits', 'Requests served without a driver allocation.'),
    ('cca_passed_total', 'counters', 'passed_through', 'Requests passed through to the driver.'),
    ('cca_driver_allocs_total', 'counters', 'driver_allocs',
     'Driver allocations made for the cache.'),
    ('cca_driver_frees_total', 'counters', 'driver_frees', 'Driver frees made for the cache.'),
    ('cca_driver_alloc_seconds_total', 'counters', 'driver_alloc_time_us',
     'Time spent in driver allocations.'),
    ('cca_driver_free_seconds_total', 'counters', 'driver_free_time_us',
     'Time spent in driver frees.'),
    ('cca_free_waits_total', 'counters', 'free_waits', 'Frees that waited for the device.'),
    ('cca_free_wait_seconds_total', 'counters', 'free_wait_time_us',
     'Time that frees waited for the device.'),
    ('cca_fences_total', 'counters', 'fences', 'Fences recorded.'),
)


def metrics(snapshot):
    """The text. A figure that the snapshot does not hold is left out."""
    lines = []
    devices = [(common_labels(snapshot, device), stats_of(snapshot, device),
                snapshot.own_row('counters', device)) for device in snapshot.devices()]
    for name, kind, stat, metric, text in POOL_METRICS:
        rows = [(dict(labels, pool=pool), integer(stats, '%s.%s.%s' % (stat, key, metric), None))
                for labels, stats, _ in devices for key, pool in POOLS]
        lines += family(name, kind, text, rows)
    for name, place, key, text in DEVICE_METRICS:
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
