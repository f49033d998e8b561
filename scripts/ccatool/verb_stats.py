# SPDX-License-Identifier: MIT
"""cca stats: PyTorch's table of memory statistics, and the counters of the library."""
import json

from . import options
from .failure import FINE
from .records import integer
from .text import clean, number

HELP = 'the statistics table, as torch.cuda.memory_summary() prints it'
USAGE = '[-d N] [--abbreviated] [--json] FILE'
DESCRIPTION = '''Prints the table of torch.cuda.memory_summary() for each device, and below it the
counters that are the library's own. A snapshot without statistics (one that PyTorch wrote) has only
the current values, which are taken from its segments.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

WIDTH = 75
POOLS = (('large_pool', '      from large pool'), ('small_pool', '      from small pool'))
METRICS = ('current', 'peak', 'allocated', 'freed')
# (key, title, whether bytes, whether it is split by pool)
ROWS = (
    ('allocated_bytes', 'Allocated memory', True, True),
    ('active_bytes', 'Active memory', True, True),
    ('requested_bytes', 'Requested memory', True, True),
    ('reserved_bytes', 'GPU reserved memory', True, True),
    ('inactive_split_bytes', 'Non-releasable memory', True, True),
    ('allocation', 'Allocations', False, True),
    ('active', 'Active allocs', False, True),
    ('segment', 'GPU reserved segments', False, True),
    ('inactive_split', 'Non-releasable allocs', False, True),
    ('oversize_allocations', 'Oversize allocations', False, False),
    ('oversize_segments', 'Oversize GPU segments', False, False),
)
BYTE_UNITS, COUNT_UNITS = ('B  ', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'), ('  ', 'K ', 'M ')


def add_arguments(parser):
    options.add_device(parser)
    parser.add_argument('--abbreviated', action='store_true', help='without the rows of each pool')
    options.add_json(parser)
    options.add_file(parser)


def main(args):
    snapshot = options.load(args.file)
    devices = options.devices_of(snapshot, args)
    if args.json:
        print(json.dumps([{'device': device, 'stats': stats_of(snapshot, device),
                           'counters': snapshot.own_row('counters', device)}
                          for device in devices], indent=2))
        return FINE
    parts = ['\n'.join(table(device, stats_of(snapshot, device), args.abbreviated)
                       + counter_lines(snapshot.own_row('counters', device)))
             for device in devices]
    print('\n\n'.join(parts))
    return FINE


def stats_of(snapshot, device):
    """The flat statistics of a device: the file's, or the current values that segments tell."""
    return snapshot.own_row('stats', device) or stats_of_segments(snapshot, device)


def stats_of_segments(snapshot, device):
    """Current values from the segments. What only the past could tell is missing."""
    stats = {'%s.%s.current' % (name, pool): 0 for name, _, _, is_split in ROWS if is_split
             for pool in ('all', 'large_pool', 'small_pool')}

    def add(name, pool, value):
        for key in ('all', pool):
            stats['%s.%s.current' % (name, key)] += value

    for segment in snapshot.segments:
        if integer(segment, 'device') != device:
            continue
        pool = 'small_pool' if segment.get('segment_type') == 'small' else 'large_pool'
        expandable = segment.get('is_expandable') is True
        if not expandable:
            add('segment', pool, 1)
        add('reserved_bytes', pool, integer(segment, 'total_size'))
        blocks = segment['blocks']
        for block in blocks:
            size, state = integer(block, 'size'), str(block.get('state'))
            if state == 'active_allocated':
                add('allocation', pool, 1)
                add('allocated_bytes', pool, size)
            if state.startswith('active_'):
                add('active', pool, 1)
                add('active_bytes', pool, size)
                add('requested_bytes', pool, integer(block, 'requested_size', size))
            elif len(blocks) > 1 and not expandable:
                add('inactive_split', pool, 1)
                add('inactive_split_bytes', pool, size)
    return stats


def cell(value, guide, is_bytes):
    """The value in the unit that `guide` asks for, so that the rows of a group share one."""
    if value is None:
        return '         -  '
    units = BYTE_UNITS if is_bytes else COUNT_UNITS
    most, step = (768 * 1024, 1024) if is_bytes else (750 * 1000, 1000)
    unit = 0
    for _ in units[1:]:
        if abs(guide) < most:
            break
        value, guide, unit = value // step, guide // step, unit + 1
    text = '%7d %s' % (value, units[unit]) if is_bytes else '%8d %s' % (value, units[unit])
    return text + ' '


def row(title, values, guides, is_bytes):
    cells = [cell(value, guide or 0, is_bytes) for value, guide in zip(values, guides)]
    return '| %-21s |%s|' % (title, '|'.join(cells))


def centred(text, width):
    """In the middle; where that is between two columns, the left one."""
    return (' ' * ((width - len(text)) // 2) + text).ljust(width)


def table(device, stats, is_short):
    lines = ['|' + '=' * WIDTH + '|',
             '|' + centred('CUDA memory summary, device ID %d' % device, WIDTH) + '|',
             '|' + '-' * WIDTH + '|',
             '|%s|%s|' % (
                 centred('CUDA OOMs: %s' % count_of(stats, 'num_ooms'), 36),
                 centred('cudaMalloc retries: %s' % count_of(stats, 'num_alloc_retries'), 38)),
             '|' + '=' * WIDTH + '|',
             '|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |']
    for key, title, is_bytes, is_split in ROWS:
        lines.append('|' + '-' * WIDTH + '|')
        base = key + '.all' if is_split else key
        guides = [integer(stats, '%s.%s' % (base, metric), None) for metric in METRICS]
        lines.append(row(title, guides, guides, is_bytes))
        for pool, name in POOLS if is_split and not is_short else ():
            values = [integer(stats, '%s.%s.%s' % (key, pool, metric), None) for metric in METRICS]
            lines.append(row(name, values, guides, is_bytes))
    lines.append('|' + '=' * WIDTH + '|')
    return lines


def count_of(stats, key):
    value = integer(stats, key, None)
    return '-' if value is None else str(value)


def counter_lines(counters):
    """The library's own counters, by name; times with their unit as it stands in the name."""
    rows = [(key, value) for key, value in counters.items()
            if isinstance(key, str) and isinstance(value, int)]
    return [''] + ['  %-26s %16s' % (clean(key), number(value)) for key, value in rows] \
        if rows else []
