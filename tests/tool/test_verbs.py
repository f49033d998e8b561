# SPDX-License-Identifier: MIT
"""The verbs that read a snapshot: their JSON, options, statuses, and what bad files come to."""
import json
import os
import unittest

from support import GOLDEN, FolderTest, call_tool, golden_data

READERS = ('show', 'stats', 'trace', 'segments', 'memory', 'leaks')
# The same with what they need besides a file; these have no --json or write elsewhere.
OTHERS = (('flamegraph',), ('merge',), ('export', '--to', 'json'), ('report', '-o', '-'),
          ('symbolize', '-o', '-'), ('compare', os.path.join(GOLDEN, 'normal.json')),
          ('merge', os.path.join(GOLDEN, 'normal.json')), ('export', '--to', 'pickle'),
          ('export', '--to', 'chrome-trace'), ('export', '--to', 'prometheus'),
          ('export', '--to', 'collapsed'))
MIB = 1 << 20


def golden(name):
    return os.path.join(GOLDEN, name + '.json')


class Common(FolderTest):
    def test_json_of_every_verb_parses(self):
        for verb in READERS:
            for name in ('normal', 'pytorch', 'no_events', 'two_devices'):
                with self.subTest(verb=verb, name=name):
                    status, out, err = call_tool(verb, '--json', golden(name))
                    self.assertEqual(err, '')
                    self.assertIn(status, (0, 1))
                    json.loads(out)

    def test_json_of_the_verbs_that_need_more_than_a_file(self):
        for name in ('normal', 'pytorch', 'no_events', 'two_devices'):
            for words in (('compare', golden('crumbs')), ('merge',), ('flamegraph',),
                          ('report', '-o', self.path('x.html')),
                          ('export', '--to', 'pickle', '-o', self.path('x.pickle'))):
                with self.subTest(verb=words[0], name=name):
                    status, out, err = call_tool(*words, '--json', golden(name))
                    self.assertEqual(err, '')
                    self.assertIn(status, (0, 1))
                    self.assertIsInstance(json.loads(out), (dict, list))
        _, out, _ = call_tool('run', '--show-config', '--json', '--set', 'MODE=count')
        rows = {row['name']: row for row in json.loads(out)}
        self.assertEqual((rows['CCA_MODE']['value'], rows['CCA_MODE']['from']),
                         ('count', 'command line'))

    def test_json_of_what_is_not_there_is_one_line(self):
        for words in (('export', '--json', '--to', 'json', golden('normal')),
                      ('run', '--json', 'true')):
            status, out, err = call_tool(*words)
            self.assertEqual((status, out), (2, ''))
            self.one_line(err)

    def test_json_of_a_flame_graph_sums_to_the_total(self):
        _, out, _ = call_tool('flamegraph', '--json', golden('keeping'))
        self.assertEqual(sum(row['bytes'] for row in json.loads(out)), 20 * MIB)

    def test_bad_files_are_one_line_and_status_2(self):
        sparse = self.path('sparse')
        with open(sparse, 'wb') as stream:
            stream.truncate(1 << 30)
        with open(golden('normal'), 'rb') as stream:
            cut = self.write('cut.json', stream.read()[:5000])
        empty, missing = self.write('empty', b''), self.path('missing')
        forbidden = self.write('forbidden', b'\x80\x02cos\nsystem\n.')
        newer = golden_data('normal')
        newer['cca']['version'] = '99.0.0'
        newer = self.write('newer.json', json.dumps(newer))
        for words in [(verb,) for verb in READERS] + list(OTHERS):
            for path in (sparse, cut, empty, missing, forbidden, newer):
                with self.subTest(verb=words[0], path=path):
                    status, out, err = call_tool(*words, path)
                    self.assertEqual((status, out), (2, ''))
                    self.one_line(err, 'cca: ' + path)

    def test_device_that_is_not_there(self):
        for verb in ('stats', 'trace', 'segments', 'memory', 'leaks'):
            status, _, err = call_tool(verb, '-d', '7', golden('normal'))
            self.assertEqual(status, 2)
            self.assertIn('no device 7', self.one_line(err))

    def test_much_json_names_the_pickle(self):
        from ccatool import snapshot
        self.addCleanup(setattr, snapshot, 'MUCH_JSON', snapshot.MUCH_JSON)
        import contextlib
        import io
        snapshot.MUCH_JSON = 1000
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            snapshot.load(golden('normal'))
        self.assertIn('use the pickle', self.one_line(said.getvalue()))


class Trace(FolderTest):
    def test_actions_and_their_number(self):
        _, out, _ = call_tool('trace', '--json', '-a', 'alloc', '-n', '3', golden('crumbs'))
        rows = json.loads(out)
        self.assertEqual([row['action'] for row in rows], ['alloc'] * 3)
        _, out, _ = call_tool('trace', '--json', '-n', '0', golden('crumbs'))
        self.assertEqual(len(json.loads(out)), len(golden_data('crumbs')['device_traces'][0]))

    def test_live_after_each_event_ends_in_what_is_live(self):
        for name in ('normal', 'crumbs', 'keeping', 'leaky'):
            data = golden_data(name)
            _, out, _ = call_tool('trace', '--json', '-n', '1', golden(name))
            self.assertEqual(json.loads(out)[0]['live'],
                             data['cca']['stats'][0]['allocated_bytes.all.current'])

    def test_unknown_action(self):
        status, _, err = call_tool('trace', '-a', 'alloc,what', golden('normal'))
        self.assertEqual(status, 2)
        self.assertIn('no action what', self.one_line(err))


class Memory(FolderTest):
    def moments(self, name, moment):
        _, out, _ = call_tool('memory', '--json', '--at', moment, golden(name))
        return {row['frames'][1]['name'] if row['frames'] else '': row for row in json.loads(out)}

    def test_peak_is_what_the_statistics_say(self):
        for name in ('growing', 'crumbs', 'keeping', 'leaky', 'normal'):
            rows = self.moments(name, 'peak').values()
            self.assertEqual(sum(row['peak_bytes'] for row in rows),
                             golden_data(name)['cca']['stats'][0]['allocated_bytes.all.peak'])

    def test_peak_after_a_reset_is_that_of_the_rest(self):
        data = golden_data('leaky')
        data['cca']['stats'][0]['allocated_bytes.all.peak'] = 192 << 10
        data['cca']['peak'] = [{'time_us': 0, 'bytes': 192 << 10}]
        _, out, _ = call_tool('memory', '--json', '--at', 'peak',
                              self.write('a.json', json.dumps(data)))
        self.assertEqual(json.loads(out)[0]['peak_bytes'], 192 << 10)

    def test_now_peak_and_churn(self):
        row = self.moments('crumbs', 'now')['keep_result']
        self.assertEqual((row['now_bytes'], row['now_blocks']), (54 * MIB, 3))
        self.assertEqual(row['churn_bytes'], 64 * 18 * MIB)
        self.assertEqual(self.moments('crumbs', 'peak')['crumbs']['peak_bytes'], 1164 * MIB)

    def test_collapsed_sums_to_the_total(self):
        _, out, _ = call_tool('memory', '--collapsed', golden('keeping'))
        self.assertEqual(out, 'main (cases);keeping (cases);keep_result (cases);buffer (cases) '
                              '%d\n' % (20 * MIB))


class Leaks(FolderTest):
    def test_status_says_whether_there_are_leaks(self):
        self.assertEqual(call_tool('leaks', golden('leaky'))[0], 1)
        self.assertEqual(call_tool('leaks', golden('growing'))[0], 0)
        status, out, _ = call_tool('leaks', golden('normal'))
        self.assertEqual(status, 0)
        self.assertIn('still running', out)

    def test_since_leaves_out_what_is_old(self):
        _, out, _ = call_tool('leaks', '--json', '--since', '1000', golden('leaky'))
        self.assertEqual(json.loads(out)['blocks'], 0)
        _, out, _ = call_tool('leaks', '--json', '--since', '0', golden('leaky'))
        self.assertEqual((json.loads(out)['blocks'], json.loads(out)['bytes']), (3, 192 << 10))


    def test_since_the_last_mark(self):
        data = golden_data('leaky')
        times = sorted(block['alloc_time_us'] for segment in data['segments']
                       for block in segment['blocks'] if block['state'] == 'active_allocated')
        data['cca']['mark_time_us'] = times[1]
        path = self.write('a.json', json.dumps(data))
        _, out, _ = call_tool('leaks', '--json', '--since-mark', path)
        self.assertEqual(json.loads(out)['blocks'], 2)
        data['cca']['mark_time_us'] = 0
        status, _, err = call_tool('leaks', '--since-mark', self.write('a.json', json.dumps(data)))
        self.assertEqual(status, 2)
        self.assertIn('no mark', self.one_line(err))


class Compare(FolderTest):
    def test_a_file_with_itself(self):
        _, out, _ = call_tool('compare', '--json', golden('crumbs'), golden('crumbs'))
        data = json.loads(out)
        self.assertEqual((data['stacks'], data['segments_gone'], data['segments_new']),
                         ([], [], []))
        self.assertTrue(data['same_process'])

    def test_what_grew_and_what_is_gone(self):
        data = golden_data('keeping')
        gone = data['segments'].pop()
        earlier = self.write('earlier.json', json.dumps(data))
        _, out, _ = call_tool('compare', '--json', earlier, golden('keeping'))
        found = json.loads(out)
        self.assertEqual([row['address'] for row in found['segments_new']], [gone['address']])
        self.assertEqual(found['stacks'][0]['change_bytes'], gone['allocated_size'])
        _, text, _ = call_tool('compare', earlier, golden('keeping'))
        self.assertIn('segments new: 1', text)

    def test_two_processes(self):
        data = golden_data('keeping')
        data['cca']['pid'] = 1
        other = self.write('other.json', json.dumps(data))
        status, out, _ = call_tool('compare', other, golden('keeping'))
        self.assertEqual(status, 0)
        self.assertIn('two processes', out)
        self.assertNotIn('segments new', out)


class Merge(FolderTest):
    def ranks(self, count, odd=None):
        paths = []
        for rank in range(count):
            data = golden_data('growing' if rank == odd else 'crumbs')
            data['cca'].update(rank=rank, pid=100 + rank)
            paths.append(self.write('rank%d.json' % rank, json.dumps(data)))
        return paths

    def test_table_sums_and_stacks(self):
        _, out, _ = call_tool('merge', '--json', *reversed(self.ranks(4)))
        data = json.loads(out)
        self.assertEqual([row['rank'] for row in data['ranks']], [0, 1, 2, 3])
        self.assertEqual(data['sums']['live'], 4 * 54 * MIB)
        self.assertEqual(data['outliers'], [])
        self.assertEqual(data['stacks'][0]['now_bytes'], 4 * 54 * MIB)
        self.assertEqual(data['stacks'][0]['by_rank']['rank 2'], 54 * MIB)

    def test_the_odd_one_is_named(self):
        paths = self.ranks(6, odd=4)
        _, out, _ = call_tool('merge', '--json', *paths)
        data = json.loads(out)
        self.assertEqual({row['label'] for row in data['outliers']}, {'rank 4'})
        self.assertIn('live', {row['figure'] for row in data['outliers']})
        _, text, _ = call_tool('merge', *paths)
        self.assertIn('rank 4, device 0: live 0 B, the median is 54.0 MiB', text)

    def test_same_process_twice_is_told_apart_and_bad_file_is_named(self):
        path = golden('crumbs')
        _, out, _ = call_tool('merge', '--json', path, path)
        self.assertEqual(len({row['label'] for row in json.loads(out)['ranks']}), 2)
        status, out, err = call_tool('merge', path, self.write('bad', 'x'))
        self.assertEqual((status, out), (2, ''))
        self.one_line(err, 'cca: ' + self.path('bad'))

    def test_output_file(self):
        status, out, _ = call_tool('merge', '-o', self.path('t'), golden('crumbs'))
        self.assertEqual((status, out), (0, ''))
        with open(self.path('t')) as stream:
            self.assertIn('54.0 MiB', stream.read())


class Hints(FolderTest):
    def advice(self, name, change=None):
        data = golden_data(name)
        if change:
            change(data)
        _, out, _ = call_tool('show', '--json', self.write('a.json', json.dumps(data)))
        return {hint['finding']: hint for hint in json.loads(out)['hints']}

    def test_each_case_names_its_cause_and_its_option(self):
        found = self.advice('growing')['segments too small for what came later']
        self.assertIn('2.7 times', found['evidence'])
        self.assertTrue(found['set'].startswith('CCA_'))
        self.assertEqual(self.advice('crumbs')['fragmented']['set'], 'CCA_MAX_SPLIT_SIZE=21M')
        self.assertIn('all by buffer (cases) < keep_result',
                      self.advice('crumbs')['fragmented']['evidence'])
        found = self.advice('keeping')
        self.assertRegex(found['growing']['evidence'], r', 1\.57 GiB/s; 15\.0 MiB \(30 x 512 KiB\) '
                         r'by buffer \(cases\) < keep_result\. ')
        self.assertIn('40 x 512 KiB', found['not freed at exit']['evidence'])

    def test_the_librarys_advice_about_an_oom_is_passed_on(self):
        def refused(data):
            data['cca']['oom'] = {'device': 0, 'limit': 300 * MIB, 'advice': 'raise the limit'}
        found = self.advice('out_of_memory', refused)['out of memory']
        self.assertTrue(found['evidence'].endswith('the limit is 300 MiB; raise the limit'))

    def test_count_mode_says_what_caching_would_do(self):
        found = self.advice('count')['not cached']
        self.assertEqual(found['set'], 'CCA_MODE=cache')
        self.assertIn('of 80 allocations would need no driver call', found['evidence'])

    def test_an_option_that_is_set_already_is_not_named(self):
        def set_it(data):
            data['cca']['settings']['CCA_MAX_SPLIT_SIZE'] = '536870912'
        self.assertIsNone(self.advice('crumbs', set_it)['fragmented']['set'])

    def test_every_option_named_exists_and_takes_the_value(self):
        from ccatool import variables
        for name in ('growing', 'crumbs', 'out_of_memory', 'keeping'):
            for hint in self.advice(name).values():
                if hint['set']:
                    option, value = hint['set'].split('=')
                    self.assertIsNotNone(variables.known()[option].effective(value), hint['set'])

    def test_idle_segments_are_named_while_the_program_runs(self):
        def runs(data, cause='signal'):
            data['cca']['cause'] = cause
            data['segments'] = data['segments'][:1]
            data['cca']['stats'][0].update({
                'allocated_bytes.all.peak': 1 << 30, 'reserved_bytes.all.peak': 1 << 30,
                'reserved_bytes.all.current': data['segments'][0]['total_size']})
        self.assertIn('CCA_CACHE_LIMIT', self.advice('growing', runs)['hoarding']['set'])
        self.assertNotIn('hoarding', self.advice('growing', lambda data: runs(data, 'exit')))

    def test_a_program_that_only_starts_is_not_growing(self):
        """Loads its weights in many steps, and then works on a level."""
        def flatten(data):
            trace = data['device_traces'][0]
            work = [entry for entry in trace if 'activation' in str(entry.get('frames'))]
            data['device_traces'][0] = trace + [entry for _ in range(12) for entry in work
                                                if not entry['action'].startswith('segment')]
        self.assertNotIn('growing', self.advice('keeping', flatten))


if __name__ == '__main__':
    unittest.main()
