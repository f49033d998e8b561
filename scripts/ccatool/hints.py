# SPDX-License-Identifier: MIT
"""What a snapshot suggests doing: a few sentences, each with its evidence, the gravest first."""
from . import stacks
from .snapshot import integer
from .text import clean, counted, duration, number, percent, size

MOST_HINTS = 3
MIB = 1 << 20
FREE_WORTH_A_WORD = 16 * MIB      # less free memory than this is no trouble
CRUMBLED = 0.5                    # fragmentation from which on it is named
HOARD_SHARE = 0.5                 # idle share of the reserved memory
HOARD_BYTES = 256 * MIB
GROWTH_EVENTS = 64                # fewer events show no trend
GROWTH_BYTES = MIB
GROWTH_SHARE = 0.25
FEW_HITS = 0.5
ENOUGH_ALLOCS = 1000
WAIT_SHARE = 0.05


def hints(snapshot, summaries):
    """At most three sentences."""
    found = []
    is_several = sum(1 for summary in summaries if not summary.is_unused) > 1
    for summary in summaries:
        trace = snapshot.traces[summary.device] if summary.device < len(snapshot.traces) else []
        prefix = 'device %d: ' % summary.device if is_several else ''
        for rule in (out_of_memory, fragmented, growing, hoarding, few_hits):
            sentence = rule(summary, trace, snapshot)
            if sentence:
                found.append((RANK[rule], prefix + sentence))
    for rank, rule in ((2, leaked), (4, waited), (6, passed), (7, lost)):
        sentence = rule(snapshot, summaries)
        if sentence:
            found.append((rank, sentence))
    return [sentence for _, sentence in sorted(found, key=lambda item: item[0])[:MOST_HINTS]]


def out_of_memory(summary, trace, snapshot):
    if not summary.ooms:
        return None
    text = 'out of memory %s' % ('once' if summary.ooms == 1 else '%s times' % number(summary.ooms))
    last = [entry for entry in trace if entry.get('action') == 'oom'][-1:]
    if last:
        text += ', last for %s with %s free on the device' % (
            size(integer(last[0], 'size')), size(integer(last[0], 'device_free')))
    if summary.cached:
        text += '; now %s cached, the largest free block %s' % (
            size(summary.cached), size(summary.largest_free))
    return text


def fragmented(summary, trace, snapshot):
    share = summary.fragmentation
    if share is None or summary.free_total < FREE_WORTH_A_WORD or share < CRUMBLED:
        return None
    if summary.free_total * 10 < summary.reserved:
        return None
    return ('fragmented: %s free in %s, the largest %s: anything larger needs new memory; '
            'CCA_MAX_SPLIT_SIZE keeps large blocks whole' % (
                size(summary.free_total), counted(summary.free_blocks, 'block'),
                size(summary.largest_free)))


def growing(summary, trace, snapshot):
    """The least live memory of each quarter of the history rises: something is kept."""
    levels = live_levels(summary, trace)
    if len(levels) < GROWTH_EVENTS:
        return None
    quarter = len(levels) // 4
    lows = [min(levels[index * quarter:(index + 1) * quarter]) for index in range(4)]
    rise = lows[3] - lows[0]
    if not all(low < high for low, high in zip(lows, lows[1:])) or rise < GROWTH_BYTES:
        return None
    if rise < GROWTH_SHARE * lows[3]:
        return None
    text = 'growing: the least live memory rose from %s to %s within the last %s' % (
        size(max(0, lows[0])), size(lows[3]), counted(len(levels), 'event'))
    uses = [use for use in stacks.live_by_stack(snapshot) if summary.device in use.devices]
    if uses and uses[0].frames:
        text += '; most is held by %s' % clean(stacks.chain(uses[0].frames, 1)[0])
    return text


def live_levels(summary, trace):
    """Live bytes before each event, oldest first."""
    level = summary.live
    levels = []
    for entry in reversed(trace):
        if entry.get('action') == 'alloc':
            level -= integer(entry, 'size')
        elif entry.get('action') in ('free_requested', 'free'):
            level += integer(entry, 'size')
        else:
            continue
        levels.append(level)
    levels.reverse()
    return levels


def hoarding(summary, trace, snapshot):
    if summary.cached < HOARD_BYTES or summary.cached < HOARD_SHARE * summary.reserved:
        return None
    return 'hoarding: %s of the %s reserved lie idle (%s); others on the device cannot use them' % (
        size(summary.cached), size(summary.reserved), percent(summary.cached, summary.reserved))


def few_hits(summary, trace, snapshot):
    if summary.allocs is None or summary.allocs < ENOUGH_ALLOCS or summary.hits_are_from_trace:
        return None
    if summary.hits >= FEW_HITS * summary.allocs:
        return None
    return 'few hits: %s of %s allocations went to the driver' % (
        number(summary.allocs - summary.hits), number(summary.allocs))


RANK = {out_of_memory: 0, fragmented: 1, growing: 2, hoarding: 3, few_hits: 5}


def leaked(snapshot, summaries):
    blocks = sum(summary.blocks for summary in summaries)
    if snapshot.own.get('cause') != 'exit' or not blocks:
        return None
    return 'not freed at exit: %s, %s' % (
        counted(blocks, 'block'), size(sum(summary.live for summary in summaries)))


def waited(snapshot, summaries):
    wait_us = sum(summary.free_wait_us or 0 for summary in summaries)
    own = snapshot.own
    run_us = integer(own, 'dump_time_us') - integer(own, 'start_time_us')
    if run_us <= 0 or wait_us < WAIT_SHARE * run_us:
        return None
    return 'frees waited %s of %s (%s): CCA_FREE_SYNC=fence removes the wait, for programs that ' \
           'synchronise before they read' % (
               duration(wait_us), duration(run_us), percent(wait_us, run_us))


def passed(snapshot, summaries):
    """An allocation call of which the library served less than it let through."""
    coverage = snapshot.own.get('hook_coverage')
    for api, row in sorted(coverage.items()) if isinstance(coverage, dict) else []:
        if not isinstance(api, str) or not isinstance(row, dict):
            continue
        served, through = integer(row, 'served'), integer(row, 'passed')
        if 'lloc' in api and through > served and through >= 10:
            return '%s: %s of %s calls passed by the library' % (
                clean(api), number(through), number(max(integer(row, 'seen'), served + through)))
    return None


def lost(snapshot, summaries):
    entries = sum(summary.lost_entries or 0 for summary in summaries)
    if not entries:
        return None
    return 'the history lost its oldest %s: CCA_MAX_ENTRIES=%s would have kept them' % (
        counted(entries, 'entry').replace('entrys', 'entries'),
        rounded_up(entries + sum(summary.events for summary in summaries)))


def rounded_up(value):
    """The next number of the form 1, 2 or 5 times a power of ten."""
    power = 10 ** (len(str(value)) - 1)
    for factor in (1, 2, 5, 10):
        if factor * power >= value:
            return factor * power
    return value
