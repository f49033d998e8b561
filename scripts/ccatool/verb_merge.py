# SPDX-License-Identifier: MIT
"""cca merge: the snapshots of many ranks side by side."""
import json
import os

from . import options, stacks
from .failure import FINE
from .records import integer, string
from .summary import summaries
from .text import clean, number, shortened, size
from .uses import frames_data, uses_by_stack

HELP = 'the snapshots of many ranks side by side: table, outliers, sums'
USAGE = '[-n N] [-o OUT] [--json] FILES ...'
DESCRIPTION = '''Sets the snapshots of many ranks side by side: a row for each rank and device, the
sums, what is far from the middle of all (more than a fifth of it and of its usual spread), and the
call stacks that hold most over all ranks. Files without a rank are told apart by host
and process.'''
TAKES_COMMAND = False
VALUE_OPTIONS = ()

# (attribute of a summary, title, whether bytes)
FIGURES = (('live', 'live', True), ('live_peak', 'live peak', True), ('cached', 'cached', True),
           ('reserved_peak', 'reserved pk', True),
           ('allocs', 'allocs', False), ('driver_allocs', 'driver', False),
           ('retries', 'retries', False), ('ooms', 'OOMs', False))
FAR_SHARE = 0.2
FAR_SPREADS = 3
FEWEST = 3            # of less than three nobody can say who is the odd one
FAR_BYTES = 1 << 20   # smaller differences are nothing


def add_arguments(parser):
    options.add_top(parser, 10, 'stacks')
    options.add_output(parser)
    options.add_json(parser)
    parser.add_argument('files', metavar='FILES', nargs='+')


def main(args):
    rows, uses = [], {}
    for path in args.files:
        snapshot = options.load(path)
        label = label_of(snapshot)
        if any(row['label'] == label for row in rows):
            label = '%s (%s)' % (label, clean(os.path.basename(path)))
        rows += rows_of(snapshot, label)
        for use in uses_by_stack(snapshot):
            sums = uses.setdefault(use.frames, [0, 0, {}])
            sums[0] += use.now_bytes
            sums[1] += use.peak_bytes
            sums[2][label] = sums[2].get(label, 0) + max(use.now_bytes, use.peak_bytes)
    rows.sort(key=lambda row: (row['rank'] is None, row['rank'] or 0, row['label'],
                               row['device']))
    far = outliers(rows)
    order = sorted(uses.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
    order = [item for item in order if item[1][0] or item[1][1]][:args.top or None]
    if args.json:
        text = json.dumps({'ranks': rows, 'sums': sums_of(rows), 'outliers': far, 'stacks': [
            {'now_bytes': sums[0], 'peak_bytes': sums[1], 'by_rank': sums[2],
             'frames': frames_data(frames)} for frames, sums in order]}, indent=2) + '\n'
    else:
        text = '\n'.join(lines_of(rows, far, order)) + '\n'
    options.write_output(args.output, text)
    return FINE


def label_of(snapshot):
    own = snapshot.own
    rank = integer(own, 'rank', None)
    if rank is not None:
        return 'rank %d' % rank
    if string(own, 'host'):
        return '%s/%s' % (clean(string(own, 'host')), integer(own, 'pid', '?'))
    return clean(os.path.basename(snapshot.path))


def rows_of(snapshot, label):
    """A row for each device that was used; one without figures where none was."""
    own = snapshot.own
    base = {'file': snapshot.path, 'label': label,
            'rank': integer(own, 'rank', None), 'host': string(own, 'host') or None,
            'cause': string(own, 'cause') or None}
    used = [one for one in summaries(snapshot) if not one.is_unused]
    if not used:
        return [dict(base, device=-1, **{key: 0 for key, _, _ in FIGURES})]
    return [dict(base, device=one.device, **{key: getattr(one, key) for key, _, _ in FIGURES})
            for one in used]


def sums_of(rows):
    return {key: sum(row[key] or 0 for row in rows) for key, _, _ in FIGURES}


def middle(values):
    """The median."""
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def outliers(rows):
    """Figures that are far from the median of all ranks."""
    found = []
    for key, title, is_bytes in FIGURES:
        values = [row[key] for row in rows if row[key] is not None]
        if len(values) < FEWEST:
            continue
        median = middle(values)
        spread = middle([abs(value - median) for value in values])
        least = FAR_BYTES if is_bytes else 1
        for row in rows:
            if row[key] is None:
                continue
            distance = abs(row[key] - median)
            if distance > max(FAR_SHARE * median, FAR_SPREADS * spread) and distance >= least:
                found.append({'label': row['label'], 'device': row['device'], 'figure': key,
                              'value': row[key], 'median': median})
    return found


def shown(value, is_bytes):
    return '-' if value is None else size(value) if is_bytes else number(int(value))


def lines_of(rows, far, order):
    is_far = {(one['label'], one['device'], one['figure']) for one in far}
    wide = max([4] + [len(row['label']) for row in rows])
    wide = min(wide, 28)
    lines = ['%-*s %6s %s' % (wide, 'rank', 'device', ' '.join(
        '%11s ' % title for _, title, _ in FIGURES))]
    for row in rows:
        cells = ' '.join('%11s%s' % (shown(row[key], is_bytes), '*' if (
            row['label'], row['device'], key) in is_far else ' ') for key, _, is_bytes in FIGURES)
        lines.append('%-*s %6s %s' % (wide, shortened(row['label'], wide),
                                      row['device'] if row['device'] >= 0 else '-', cells))
    sums = sums_of(rows)
    lines.append('%-*s %6s %s' % (wide, 'sum', '', ' '.join(
        '%11s ' % shown(sums[key], is_bytes) for key, _, is_bytes in FIGURES)))
    lines = [line.rstrip() for line in lines]
    if far:
        titles = {key: (title, is_bytes) for key, title, is_bytes in FIGURES}
        lines += ['', '* far from the others:']
        for one in far:
            title, is_bytes = titles[one['figure']]
            lines.append('  %s, device %s: %s %s, the median is %s' % (
                one['label'], one['device'], title, shown(one['value'], is_bytes),
                shown(one['median'], is_bytes)))
    if order:
        lines += ['', '%12s %12s  call stacks over all ranks (least to most of a rank)' % (
            'now', 'peak')]
        labels = {row['label'] for row in rows}
        for frames, (now, peak, by_rank) in order:
            name = ' < '.join(stacks.chain(frames, 3))
            least = min(by_rank.get(label, 0) for label in labels)
            lines.append('%12s %12s  %s  (%s to %s)' % (
                size(now), size(peak), shortened(clean(name), 70), size(least),
                size(max(by_rank.values()))))
    return lines
