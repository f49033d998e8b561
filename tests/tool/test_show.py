# SPDX-License-Identifier: MIT
import json
import os
import subprocess
import sys
import unittest

from support import (GOLDEN, TOOL, FolderTest, clean_environment, golden_data, golden_names,
                     golden_pickle, on_terminal, put, run_tool)


class Show(FolderTest):
    maxDiff = None

    def test_pickle_gives_the_same_text_as_json(self):
        for name in golden_names():
            with self.subTest(name):
                path = self.write(name + '.pickle', golden_pickle(name))
                _, from_json, _ = run_tool('show', os.path.join(GOLDEN, name + '.json'))
                status, from_pickle, err = run_tool('show', path)
                self.assertEqual((status, err), (0, ''))
                self.assertEqual(from_pickle.split('\n')[1:], from_json.split('\n')[1:])

    def test_json_holds_the_figures(self):
        status, out, _ = run_tool('show', '--json', os.path.join(GOLDEN, 'normal.json'))
        data = json.loads(out)
        self.assertEqual(status, 0)
        device = data['devices'][0]
        self.assertEqual(device['live_bytes'], (17 << 20) + 512)
        self.assertEqual(device['pending_bytes'], 2 << 20)
        self.assertEqual(device['live_bytes'] + device['pending_bytes'] + device['cached_bytes'],
                         device['reserved_bytes'])
        self.assertEqual(device['saved_us'], 4 * 900 // 2)
        self.assertEqual(data['top_stacks'][0]['blocks'], 2)
        self.assertTrue(data['by_cca'])

    def test_messages_are_shown_and_segments_with_exported_blocks(self):
        data = golden_data('normal')
        data['cca']['messages'] = ['caching ends: the program called cuCtxCreate'] + ['x'] * 5
        block = next(block for segment in data['segments'] for block in segment['blocks']
                     if block['state'] == 'active_allocated')
        block['exported'] = True
        path = self.write('exported.json', json.dumps(data).encode())
        _, out, _ = run_tool('show', path)
        self.assertIn('said      caching ends: the program called cuCtxCreate\n', out)
        self.assertIn('and 2 messages more', out)
        _, out, _ = run_tool('segments', path)
        self.assertEqual(out.count('exported'), 1)

    def test_every_key_may_be_missing(self):
        """Takes each key away, one at a time, at each place of the tree."""
        def paths(value, here=()):
            if isinstance(value, dict):
                for key in value:
                    yield here + (key,)
                    yield from paths(value[key], here + (key,))
            elif isinstance(value, list):
                for index, item in enumerate(value[:2]):
                    yield from paths(item, here + (index,))
        from ccatool import hints, snapshot, summary, uses, verb_show
        from ccatool.text import Style
        for place in list(paths(golden_data('normal'))):
            for odd in ('gone', None, 'text', [1], -1.5):
                data = golden_data('normal')
                put(data, place, odd)
                with self.subTest(place=place, odd=odd):
                    try:
                        shot = snapshot.from_data('x', data)
                    except snapshot.Failure:
                        continue
                    try:
                        devices = summary.summaries(shot)
                    except snapshot.Failure:
                        continue
                    found = uses.uses_by_stack(shot)
                    advice = hints.hints(shot, devices)
                    verb_show.as_lines(shot, devices, found, advice, Style(sys.stderr))
                    json.dumps(verb_show.as_data(shot, devices, found, advice))

    def test_strings_from_the_file_cannot_steer_the_terminal(self):
        data = golden_data('normal')
        data['cca']['host'] = 'evil\x1b[31m\n\u202e'
        data['segments'][0]['blocks'][0]['frames'][0]['name'] = 'f\x1b]0;x\x07'
        status, out, _ = run_tool('show', self.write('a.json', json.dumps(data)))
        self.assertEqual(status, 0)
        self.assertNotIn('\x1b', out)
        self.assertIn('evil\\x1b[31m\\n\\u202e', out)

    def changed(self, change, *words):
        data = golden_data('keeping')
        change(data)
        status, out, err = run_tool('show', *words, self.write('a.json', json.dumps(data)))
        self.assertEqual((status, err), (0, ''))
        return out

    def test_memory_that_is_not_cached_names_its_call_and_library(self):
        def change(data):
            data['cca']['devices'][0].update(unmanaged=96 << 20)
            data['cca']['unmanaged'] = [
                {'device': 0, 'api': 'cuMemAllocPitch_v2', 'library': '/opt/lib/libfft.so',
                 'bytes': 32 << 20, 'count': 1},
                {'device': 0, 'api': 'cuMemAllocManaged', 'library': '/opt/lib/libum.so.2',
                 'bytes': 64 << 20, 'count': 3}]
        self.assertRegex(self.changed(change), r'\n  unmanaged +96\.0 MiB +not '
                         r'cached; most by cuMemAllocManaged \(libum\.so\.2\)\n')

    def test_exported_blocks_and_marks_are_counted(self):
        def change(data):
            blocks = [block for segment in data['segments'] for block in segment['blocks']
                      if block['state'] == 'active_allocated'][:2]
            for block in blocks:
                block['exported'] = True
            trace = data['device_traces'][0]
            trace += [dict(trace[-1], action='snapshot', addr=0, size=0) for _ in range(3)]
        out = self.changed(change)
        self.assertRegex(out, r'\n  exported +1\.00 MiB +in 2 live blocks; other processes may use')
        self.assertRegex(out, r'\n  history +171 +events, 3 marks\n')
        device = json.loads(self.changed(change, '--json'))['devices'][0]
        self.assertEqual((device['exported_bytes'], device['exported_blocks'], device['marks']),
                         (1 << 20, 2, 3))

    def test_a_trend_is_told_only_of_a_long_history(self):
        self.assertRegex(self.changed(lambda data: None), r'\n  growth +\+15\.0 MiB')

        def cut(data):
            data['device_traces'][0] = data['device_traces'][0][-40:]
        self.assertRegex(self.changed(cut), r'\n  growth +unknown +too few events')

    def test_idle_segments_are_not_called_fragments(self):
        out = self.changed(lambda data: None)
        self.assertRegex(out, r'\n  fragmented +0 % +serves up to 20\.0 MiB without the driver\n')
        self.assertRegex(
            out, r'\n  cached +20\.0 MiB +ready for reuse; 20\.0 MiB returnable in 1 segment\n')

    def fragments(self, *segments):
        from ccatool import fragments, snapshot
        return fragments.Fragments(snapshot.from_data('x', {
            'segments': list(segments), 'device_traces': []}), 0)

    @staticmethod
    def segment(*blocks, **keys):
        """Of (MiB, is live) blocks."""
        base = place = 1 << 40
        rows = []
        for mib, is_live in blocks:
            rows.append({'address': place, 'size': mib << 20, 'requested_size': mib << 20,
                         'state': 'active_allocated' if is_live else 'inactive', 'frames': []})
            place += mib << 20
        return {'device': 0, 'address': base, 'total_size': place - base, 'stream': 0,
                'segment_type': 'large', 'blocks': rows, **keys}

    def test_what_could_be_returned_and_what_is_served_without_the_driver(self):
        """Whole segments and whole pages go back; a small segment serves small requests only."""
        pinned = ((90, False), (10, True), (50, False))
        for segments, returnable, servable in (
                ([self.segment((96, False)), self.segment((64, False))], 160, 96),
                ([self.segment(*pinned)], 0, 90),
                # Pages of 20 MiB: 0 to 80 of the first block, 100 to 140 of the last.
                ([self.segment(*pinned, is_expandable=True)], 120, 90),
                ([self.segment((2, False), segment_type='small')], 2, 1),
                ([self.segment((96, False), segment_pool_id=[0, 1])], 0, 0)):
            with self.subTest(returnable=returnable, servable=servable):
                found = self.fragments(*segments)
                self.assertEqual((found.returnable >> 20, found.servable >> 20),
                                 (returnable, servable))

    def test_stacks_are_ordered_by_now_and_only_without_live_memory_by_the_peak(self):
        with open(os.path.join(GOLDEN, 'crumbs.txt'), encoding='utf-8') as stream:
            text = stream.read()
        self.assertRegex(text, r'\ncall stacks +now +at peak +blocks now\n'
                         r' +54\.0 MiB +0 B +3 x 18\.0 MiB .*\n +0 B +1\.14 GiB +0 ')

        def empty(data):
            for segment in data['segments']:
                for block in segment['blocks']:
                    block['state'] = 'inactive'
            trace = data['device_traces'][0]
            trace += [dict(entry, action='free_completed') for entry in trace
                      if entry['action'] == 'alloc']
        self.assertRegex(self.changed(empty), r'\ncall stacks +now +at peak +blocks at peak\n')

    def test_the_low_that_live_memory_returns_to_is_a_number(self):
        from ccatool.device_text import steady_remark
        self.assertEqual(steady_remark([96 << 20] * 4), 'live memory keeps returning to 96.0 MiB')
        self.assertEqual(steady_remark([0, 9 << 20, 7 << 20, 2 << 20]),
                         'lows of live memory do not keep rising; last 2.00 MiB')

    def test_nothing_to_say_is_said(self):
        def change(data):
            data['cca']['cause'] = 'signal'
            data['device_traces'] = []
        self.assertIn('\nhints\n  none: ', self.changed(change))

    def test_at_most_three_hints(self):
        data = golden_data('out_of_memory')
        data['cca']['cause'] = 'exit'
        data['cca']['counters'][0].update(allocs=5000, hits=1, free_wait_time_us=10 ** 7)
        _, out, _ = run_tool('show', '--json', self.write('a.json', json.dumps(data)))
        self.assertEqual(len(json.loads(out)['hints']), 3)

    def test_long_stacks_stay_within_the_width(self):
        data = golden_data('normal')
        data['segments'][0]['blocks'][0]['frames'] = [
            {'name': 'function_%s_%d' % ('x' * (n * 9 % 120), n), 'filename': 'lib.so', 'line': 0}
            for n in range(40)]
        _, out, _ = run_tool('show', self.write('a.json', json.dumps(data)))
        self.assertLessEqual(max(len(line) for line in out.splitlines()[1:]), 100)
        self.assertIn(' < ...', out)

    def test_standard_input(self):
        status, out, _ = run_tool('show', '-', stdin=golden_pickle('normal'))
        self.assertEqual(status, 0)
        self.assertIn('trainer::Buffer::grow()', out)

    def test_closed_pipe_is_no_error(self):
        done = subprocess.run(
            ['sh', '-c', '"$0" "$1" show "$2" | true', sys.executable, TOOL,
             os.path.join(GOLDEN, 'normal.json')],
            stderr=subprocess.PIPE, env=clean_environment(), timeout=60)
        self.assertEqual(done.stderr, b'')

    def on_terminal(self, **extra):
        status, text = on_terminal('stdout', ['show', 'normal.json'], cwd=GOLDEN,
                                   env=clean_environment(TERM='xterm', **extra))
        self.assertEqual(status, 0)
        return text

    def test_colours_on_a_terminal_only_and_not_with_no_color(self):
        self.assertIn(b'\x1b[1m', self.on_terminal())
        self.assertNotIn(b'\x1b', self.on_terminal(NO_COLOR='1'))


if __name__ == '__main__':
    unittest.main()
