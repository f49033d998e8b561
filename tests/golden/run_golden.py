#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the golden scenarios through the core and compares everything: results, sums after each step,
counters, segments and blocks, the trace, driver calls. Usage: run_golden.py DRIVER [TEST]..."""
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVER = None

#: Where ours is meant to differ from what was recorded, and why. Everything else must be equal.
DIFFERENCES = {
    'search_after_full_release':
        'the cache is searched again after the waiting of a full release, so the request is served',
    'search_after_full_release_limit':
        'the same under a limit',
    'search_before_new_segment':
        'the search after the waiting finds a block before the driver is asked again',
    'oversize_negative':
        'a block counts as oversize by how it was counted when handed out: no counter falls below 0',
    'division_rest_a':
        'the rest entry of a division list starts after the last named class, as in later versions',
    'division_rest_b':
        'the same',
}

#: Operations that the core does not have yet: scenarios with one of them are not run.
NOT_YET = set()


def load(name):
    with open(os.path.join(HERE, name + '.jsonl')) as file:
        return [json.loads(line) for line in file]


def drive(lines, *arguments):
    process = subprocess.run([DRIVER, *arguments], input='\n'.join(lines) + '\n', text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if process.returncode != 0:
        raise AssertionError('the driver ended with status %d: %s' %
                             (process.returncode, process.stderr.strip()))
    facts = {letter: [] for letter in 'RASPTDH'}
    for line in process.stdout.splitlines():
        facts[line[0]].append(json.loads(line[2:]))
    return facts


def operations(scenario):
    """The list, or what its rule in words comes to: the growing buffer of case D04."""
    if 'ops' in scenario:
        return scenario['ops']
    head, rule = scenario['ops_rule'].split('; then ')
    assert rule == 'for i = 0 .. 4095: malloc g (67108864 + 2048 * i); free g', rule
    lines = head.split('; ')
    for i in range(4096):
        lines += ['malloc g %d' % (67108864 + 2048 * i), 'free g']
    assert len(lines) == scenario['ops_count']
    return lines


def without_stale(snapshot):
    """An inactive block's requested size is that of an earlier use, which nobody reads."""
    for segment in snapshot['segments']:
        segment['blocks'] = [block[:2] + [block[2] if block[3] != 'inactive' else None, block[3]]
                             for block in segment['blocks']]
    return snapshot


def order_free(trace):
    """The trace with each run of completed frees in the order of addresses."""
    result, run = [], []
    for entry in trace + [None]:
        if entry is not None and entry[0] == 'free_completed':
            run.append(entry)
            continue
        result += sorted(run) + ([entry] if entry is not None else [])
        run = []
    return result


def order_free_stats(stats):
    """The counters that do not depend on the order of completed frees."""
    return [{name: [[group[0]] for group in value] if name.startswith('inactive_split') else value
             for name, value in one.items()} for one in stats]


class Golden(unittest.TestCase):
    maxDiff = 2000

    def compare_stats(self, wanted, got, is_loose):
        got = [{name: one[name] for name in want} for want, one in zip(wanted, got)]
        if is_loose:
            wanted, got = order_free_stats(wanted), order_free_stats(got)
        for want, one in zip(wanted, got):
            self.assertEqual(want, one)

    def compare(self, scenario):
        ops = operations(scenario)
        facts = drive(['config ' + scenario['config'], *ops])
        is_loose = scenario['order_sensitive']
        if 'results' in scenario:
            for i, (op, want, got) in enumerate(zip(ops, scenario['results'], facts['R'])):
                self.assertEqual(want, got, 'result of operation %d, %s' % (i, op))
        else:
            self.assertEqual(scenario['oom_at'],
                             [i for i, result in enumerate(facts['R']) if result == 'oom'])
        for i, (want, got) in enumerate(zip(scenario.get('after', []), facts['A'])):
            if want is not None:
                self.assertEqual(want, got, 'after operation %d, %s' % (i, ops[i]))
        self.assertEqual(len(facts['R']), len(ops))
        self.assertEqual(len(scenario['stats']), len(facts['S']))
        self.compare_stats(scenario['stats'], facts['S'], is_loose)
        self.assertEqual(list(map(without_stale, scenario['snapshots'])),
                         list(map(without_stale, facts['P'])))
        if 'trace' in scenario:
            order = order_free if is_loose else list
            self.assertEqual(order(scenario['trace']), order(facts['T']))
        self.assertEqual([scenario['driver']], facts['D'])

    def run_file(self, name):
        not_run = []
        for scenario in load(name):
            missing = NOT_YET.intersection(op.split()[0] for op in operations(scenario))
            if missing:
                not_run.append('%s (%s)' % (scenario['name'], ', '.join(sorted(missing))))
                continue
            with self.subTest(scenario=scenario['name']):
                self.compare(scenario)
        if not_run:
            print('not run yet, %s: %s' % (name, '; '.join(not_run)))
            self.skipTest('%d scenarios need what is not there yet' % len(not_run))

    def test_rules(self):
        self.run_file('rules')

    def test_random(self):
        self.run_file('random')

    def test_cases(self):
        self.run_file('cases')

    def test_cases_have_the_figures_that_their_users_want(self):
        """In MiB: allocated, reserved, most reserved, inactive split; driver allocations and frees,
        retries, out-of-memories; at the end of the case."""
        wanted = {
            'D01': (2430, 2690, 2690, 260, 9, 0, 1, 1),
            'D01_split21': (2700, 2700, 2700, 0, 11, 1, 0, 0),
            'D02': (504, 11122, 11536, 10618, 25, 23, 1, 1),
            'D02_split512': (10744, 10744, 20464, 0, 642, 613, 1, 0),
            'D03': (0, 6004, 6004, 0, 3, 2, 2, 0),
            'D03_no_limit': (0, 0, 16194, 0, 3, 3, 0, 0),
            'D04': (0, 72, 138, 0, 5, 4, 2, 0),
            'D04_no_limit': (0, 340, 340, 0, 5, 0, 0, 0),
            'D05_a': (768, 768, 768, 0, 2, 1, 1, 0),
            'D05_b': (1024, 1024, 1024, 0, 2, 1, 1, 0),
            'D06_a': (4096 / 2**20, 2, 2, 2093056 / 2**20, 1, 0, 0, 0),
            'D06_b': (600, 680, 680, 80, 34, 0, 0, 0),
            'D06_c': (2097664 / 2**20, 22, 22, 20 - 2**-11, 2, 0, 0, 0),
            'D13': (0, 20, 20, 0, 0, 0, 0, 0),
        }
        requested = {'D06_a': 2737, 'D06_c': 2097153}
        for scenario in load('cases'):
            name = scenario['name']
            with self.subTest(case=name):
                facts = drive(['config ' + scenario['config'], *operations(scenario)])
                last = facts['S'][-1]
                figures = [last['allocated_bytes'][0][0], last['reserved_bytes'][0][0],
                           last['reserved_bytes'][0][1], last['inactive_split_bytes'][0][0]]
                counts = [last[key] for key in ('num_device_alloc', 'num_device_free',
                                                'num_alloc_retries', 'num_ooms')]
                self.assertEqual(wanted.pop(name), (*(f / 2**20 for f in figures), *counts))
                if name in requested:
                    self.assertEqual(requested[name], last['requested_bytes'][0][0])
                if name == 'D01':
                    self.assertEqual(260 << 20, facts['R'][-1])
        self.assertEqual({}, wanted)

    def test_a_peak_reset_keeps_what_is_live(self):
        """Case D13 step by step: current and peak of the allocated bytes, in MiB."""
        facts = drive(['config ', 'malloc a 4194304', 'reset_peak', 'stats', 'malloc b 2097152',
                       'free b', 'stats', 'reset_accumulated', 'free a'])
        allocated = [one['allocated_bytes'][0] for one in facts['S']]
        self.assertEqual([[4, 4], [4, 6], [0, 6]],
                         [[four[0] >> 20, four[1] >> 20] for four in allocated])
        self.assertEqual(0, allocated[2][2])
        for four in allocated[:2]:
            self.assertEqual(four[0], four[2] - four[3])

    def test_differences(self):
        """Only the results are recorded for ours; wherever it may differ, it is named above."""
        for scenario in load('differences'):
            if NOT_YET.intersection(op.split()[0] for op in scenario['ops']):
                continue
            with self.subTest(scenario=scenario['name']):
                self.assertIn(scenario['name'], DIFFERENCES)
                facts = drive(['config ' + scenario['config'], *scenario['ops']])
                self.assertEqual(scenario['our_results'], facts['R'])

    def test_mixed(self):
        """The mixed workload, first pass: every address and counter."""
        inputs = {42: 'a5f63f0cb615f14e', 1: '7765771fe6768c06', 2: 'd0d4cdf21923b00a',
                  3: 'f9d7a61a0d3ce043', 4: 'e3d14068541153f5'}
        reserved_mib = {42: 15416, 1: 15310, 2: 15580, 3: 15854, 4: 16638}
        for row in load('mixed'):
            with self.subTest(seed=row['seed']):
                facts = drive([], 'mixed', str(row['seed']))
                self.assertEqual([inputs[row['seed']]], facts['H'])
                moments = {one['when']: one for one in facts['S']}
                filled = moments['after the 2000 initial blocks']
                stepped = moments['after the 100000 steps']
                self.assertEqual(row['address_hash_after_fill'], filled['hash'])
                self.assertEqual(row['address_hash'], stepped['hash'])
                self.assertEqual(row['driver_allocs_after_fill'], filled['num_device_alloc'])
                self.assertEqual(row['driver_allocs'], stepped['num_device_alloc'])
                self.assertEqual(row['reserved_bytes'], stepped['reserved_bytes'][0][0])
                self.assertEqual(reserved_mib[row['seed']] << 20, stepped['reserved_bytes'][0][0])
                for wanted in row['stats']:
                    got = moments[wanted['when']]
                    self.assertEqual(wanted, {name: got[name] for name in wanted})


if __name__ == '__main__':
    DRIVER = sys.argv.pop(1)
    unittest.main(verbosity=2)
