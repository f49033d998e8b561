# SPDX-License-Identifier: MIT
"""What a snapshot suggests doing: a finding, the option to set, and the evidence; gravest first."""
from . import stacks, variables
from .fragments import CRUMBS
from .records import integer, string
from .text import alike, clean, counted, duration, number, percent, size

MOST_HINTS = 3
MIB = 1 << 20
FREE_WORTH_A_WORD = 16 * MIB      # less free memory than this is no trouble
CRUMBLED = 0.5                    # fragmentation from which on it is named
STAIRCASE_RATIO = 1.5             # reserved over live, each at its peak
HOARD_SHARE = 0.5                 # idle share of the reserved memory
HOARD_BYTES = 256 * MIB
FEW_HITS = 0.5
ENOUGH_ALLOCS = 1000
WAIT_SHARE = 0.05
WAIT_US = 50000
LEAST_SPLIT = 21 * MIB            # blocks below the large segment size are always split


class Hint:
    """One finding. `option` is NAME=VALUE to set, or empty; `effect` says what that does."""

    def __init__(self, rank, finding, evidence, option='', effect=''):
        self.rank, self.finding, self.evidence = rank, finding, evidence
        self.option, self.effect = option, effect if option else ''

    def sentence(self):
        text = '%s: %s' % (self.finding, self.evidence)
        return text + ('. Try %s, %s' % (self.option, self.effect) if self.option else '')

    def data(self):
        return {'finding': self.finding, 'evidence': self.evidence, 'set': self.option or None,
                'effect': self.effect or None}


def hints(snapshot, summaries):
    """At most three Hints."""
    found = []
    is_several = sum(1 for summary in summaries if not summary.is_unused) > 1
    for summary in summaries:
        for rule in (out_of_memory, fragmented, growing, hoarding, few_hits, uncached):
            hint = rule(snapshot, summary)
            if hint:
                if is_several:
                    hint.finding = 'device %d %s' % (summary.device, hint.finding)
                found.append(hint)
    found += [hint for hint in (rule(snapshot, summaries) for rule in (leaked, waited, passed,
                                                                       lost)) if hint]
    return sorted(found, key=lambda hint: hint.rank)[:MOST_HINTS]


def setting(snapshot, name):
    """The value in force when the snapshot was written; '' where the file does not tell."""
    settings = snapshot.own.get('settings')
    value = settings.get(name) if isinstance(settings, dict) else None
    return str(value) if value is not None else ''


def is_default(snapshot, name):
    """Whether a variable was left alone. A hint that names what is set already helps nobody."""
    row = variables.known().get(name)
    return row is not None and setting(snapshot, name) in ('', row.default)


def mib(count):
    """A size for an option: whole MiB, rounded up."""
    return '%dM' % -(-count // MIB)


def named(frames):
    """A stack in the midst of a sentence."""
    return clean(' < '.join(stacks.chain(frames, 2)))


def out_of_memory(snapshot, summary):
    if not summary.ooms:
        return None
    times = 'once' if summary.ooms == 1 else '%s times' % number(summary.ooms)
    trace = snapshot.history(summary.device).trace
    last = [entry for entry in trace if entry.get('action') == 'oom'][-1:]
    parts = []
    if last:
        parts.append('%s the last for %s with %s free on the device' % (
            times + ',', size(integer(last[0], 'size')), size(integer(last[0], 'device_free'))))
    else:
        parts.append(times)
    row = snapshot.own.get('oom')
    if isinstance(row, dict) and integer(row, 'device', -1) == summary.device:
        if integer(row, 'limit'):
            parts.append('the limit is %s' % size(row['limit']))
        if string(row, 'advice'):
            return Hint(0, 'out of memory', '; '.join(parts + [clean(row['advice'])]))
    if summary.cached:
        parts.append('now %s cached, the largest free block %s' % (
            size(summary.cached), size(summary.fragments.largest)))
    return Hint(0, 'out of memory', '; '.join(parts))


def fragmented(snapshot, summary):
    """Two kinds: crumbs want large blocks kept whole, a staircase wants old segments returned."""
    fragments = summary.fragments
    if fragments.score is None or fragments.free < FREE_WORTH_A_WORD or fragments.score < CRUMBLED:
        return staircase(snapshot, summary)
    if fragments.free * 10 < summary.reserved:
        return None
    if fragments.cause != CRUMBS:
        return staircase(snapshot, summary)
    evidence = '%s free in %s, the largest %s' % (
        size(fragments.free), counted(fragments.blocks, 'block'), size(fragments.largest))
    evidence += '; %s live in %s hold back the rest' % (
        size(fragments.holding), counted(fragments.holding_segments, 'segment'))
    if fragments.holder_frames:
        evidence += ', %s %s' % ('most by' if fragments.holders > 1 else 'all by',
                                 named(fragments.holder_frames))
    option = ''
    if is_default(snapshot, 'CCA_MAX_SPLIT_SIZE') and snapshot.is_ours:
        option = 'CCA_MAX_SPLIT_SIZE=' + mib(
            max(LEAST_SPLIT, largest_request(snapshot, summary)))
    return Hint(1, 'fragmented', evidence, option,
                'which keeps larger blocks whole at the cost of more driver calls')


def largest_request(snapshot, summary):
    """A size that most of the live blocks stay below: the largest of them, at most 512 MiB."""
    sizes = [integer(block, 'size') for segment in snapshot.segments
             if integer(segment, 'device') == summary.device for block in segment['blocks']
             if block.get('state') == 'active_allocated']
    return min(max(sizes, default=0) + 1, 512 * MIB)


def staircase(snapshot, summary):
    """Segments that were each too small for the next request: reserved is a multiple of live."""
    ratio = summary.reserved_ratio
    if ratio is None or ratio < STAIRCASE_RATIO or summary.reserved_peak < HOARD_BYTES:
        return None
    evidence = '%s reserved at the peak for %s live, %.1f times as much' % (
        size(summary.reserved_peak), size(summary.live_peak), ratio)
    if summary.fragments.whole_segments:
        evidence += '; %s idle' % counted(summary.fragments.whole_segments, 'whole segment')
    option = effect = ''
    for name, value, effect in (
            ('CCA_EXPANDABLE_SEGMENTS', '1', 'which lets segments grow'),
            ('CCA_CACHE_LIMIT', mib(max(summary.live_peak or 0, MIB)), 'which bounds what is kept'),
            ('CCA_GARBAGE_COLLECTION_THRESHOLD', '0.8', 'which returns old segments early')):
        if snapshot.is_ours and is_default(snapshot, name):
            option = '%s=%s' % (name, value)
            break
    return Hint(1, 'segments too small for what came later', evidence, option, effect)


def growing(snapshot, summary):
    growth = summary.growth
    if growth is None:
        return None
    evidence = 'the least live memory rose from %s to %s within %s' % (
        size(max(0, growth.low)), size(growth.high), counted(growth.events, 'event'))
    if growth.rate is not None:
        evidence += ', %s/s' % size(growth.rate)
    if growth.frames:
        blocks = alike(growth.stack_blocks, growth.stack_bytes, growth.stack_largest)
        evidence += '; %s%s by %s' % (
            size(growth.stack_bytes), ' (%s)' % blocks if blocks else '', named(growth.frames))
    return Hint(2, 'growing', evidence + '. No setting helps: what is kept there must be freed')


def hoarding(snapshot, summary):
    """Whole segments that lie idle: only those can be given back. At exit all of them do."""
    idle = summary.fragments.whole
    if snapshot.own.get('cause') == 'exit':
        return None
    if idle < HOARD_BYTES or idle < HOARD_SHARE * summary.reserved or staircase(snapshot, summary):
        return None
    evidence = '%s of the %s reserved lie idle (%s); others on the device cannot use them' % (
        size(idle), size(summary.reserved), percent(idle, summary.reserved))
    option = ''
    if snapshot.is_ours and is_default(snapshot, 'CCA_CACHE_LIMIT'):
        option = 'CCA_CACHE_LIMIT=' + mib(summary.reserved // 4)
    return Hint(3, 'hoarding', evidence, option, 'which bounds what is kept')


def few_hits(snapshot, summary):
    if summary.allocs is None or summary.allocs < ENOUGH_ALLOCS or summary.hits_are_from_trace:
        return None
    if summary.hits >= FEW_HITS * summary.allocs:
        return None
    option = effect = ''
    if setting(snapshot, 'CCA_MODE') == 'count':
        return None
    if setting(snapshot, 'CCA_CACHE_LIMIT') not in ('', 'unlimited'):
        option, effect = 'CCA_CACHE_LIMIT=unlimited', 'or a higher limit'
    return Hint(5, 'few hits', '%s of %s allocations went to the driver' % (
        number(summary.allocs - summary.hits), number(summary.allocs)), option, effect)


def uncached(snapshot, summary):
    """Count mode: whether caching would help."""
    allocs, hits = (integer(summary.estimate, key) for key in ('allocs', 'hits'))
    if not allocs or hits < FEW_HITS * allocs:
        return None
    return Hint(5, 'not cached', 'with caching %s of %s allocations would need no driver call' % (
        number(hits), number(allocs)), 'CCA_MODE=cache', 'which serves them')


def leaked(snapshot, summaries):
    blocks = sum(summary.blocks for summary in summaries)
    if snapshot.own.get('cause') != 'exit' or not blocks:
        return None
    live = sum(summary.live for summary in summaries)
    largest = max((integer(block, 'size') for segment in snapshot.segments
                   for block in segment['blocks'] if block.get('state') == 'active_allocated'),
                  default=0)
    shown = alike(blocks, live, largest) or counted(blocks, 'block')
    return Hint(2, 'not freed at exit', '%s, %s: `cca leaks` names them' % (
        shown, size(live)))


def waited(snapshot, summaries):
    wait_us = sum(summary.free_wait_us or 0 for summary in summaries)
    own = snapshot.own
    run_us = integer(own, 'dump_time_us') - integer(own, 'start_time_us')
    if run_us <= 0 or wait_us < max(WAIT_US, WAIT_SHARE * run_us) or setting(
            snapshot, 'CCA_FREE_SYNC') == 'fence':
        return None
    return Hint(4, 'frees waited', '%s of %s (%s)' % (
        duration(wait_us), duration(run_us), percent(wait_us, run_us)),
        'CCA_FREE_SYNC=fence', 'for programs that synchronise before they read results')


def passed(snapshot, summaries):
    """An allocation call of which the library served less than it let through."""
    coverage = snapshot.own.get('hook_coverage')
    if setting(snapshot, 'CCA_MODE') == 'count':
        return None
    for api, row in sorted(coverage.items()) if isinstance(coverage, dict) else []:
        if not isinstance(api, str) or not isinstance(row, dict):
            continue
        served, through = integer(row, 'served'), integer(row, 'passed')
        if 'lloc' in api and through > served and through >= 10:
            return Hint(6, clean(api), '%s of %s calls passed by the library' % (
                number(through), number(max(integer(row, 'seen'), served + through))))
    return None


def lost(snapshot, summaries):
    entries = sum(summary.lost_entries or 0 for summary in summaries)
    if not entries:
        return None
    return Hint(7, 'history cut', 'the oldest %s lost' % (
        'entry is' if entries == 1 else number(entries) + ' entries are'),
        'CCA_MAX_ENTRIES=%d' % rounded_up(
            entries + sum(summary.events for summary in summaries)), 'which would have kept them')


def rounded_up(value):
    """The next number of the form 1, 2 or 5 times a power of ten."""
    power = 10 ** (len(str(value)) - 1)
    for factor in (1, 2, 5, 10):
        if factor * power >= value:
            return factor * power
    return value
