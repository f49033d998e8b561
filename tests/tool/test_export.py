# SPDX-License-Identifier: MIT
"""Other forms of a snapshot: pickle, JSON, Chrome trace, Prometheus, SVG."""
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from support import GOLDEN, ROOT, SCRIPTS, FolderTest, call_tool, golden_data, golden_names

from ccatool import pickle_writer, snapshot

import check_pickle


def golden(name):
    return os.path.join(GOLDEN, name + '.json')


class Pickle(FolderTest):
    def test_every_golden_snapshot_passes_the_strict_checker(self):
        for name in golden_names():
            with self.subTest(name):
                path = self.path(name + '.pickle')
                self.assertEqual(call_tool('export', '--to', 'pickle', '-o', path, golden(name)),
                                 (0, '', ''))
                if name in ('normal', 'two_devices', 'out_of_memory'):
                    # Written by hand: their statistics and history are not whole.
                    check_pickle.check_bytes(snapshot.read_bytes(path))
                else:
                    check_pickle.check(path, False)

    def test_it_says_what_the_json_says(self):
        for name in golden_names():
            with self.subTest(name):
                path = self.path(name + '.pickle')
                call_tool('export', '--to', 'pickle', '-o', path, golden(name))
                with open(path, 'rb') as stream:
                    loaded = json.loads(json.dumps(pickle.load(stream)))
                expected = golden_data(name)
                self.assertEqual(loaded['segments'], expected['segments'])
                self.assertEqual(loaded.get('cca'), expected.get('cca'))
                _, back, _ = call_tool('export', '--to', 'json', path)
                self.assertEqual(json.loads(back)['device_traces'], loaded['device_traces'])

    def test_equal_stacks_are_written_once(self):
        data = golden_data('keeping')
        alone = len(pickle_writer.Writer().pickle(data))
        self.assertLess(len(pickle_writer.dumps(data)), 0.6 * alone)

    def test_values_at_the_edges(self):
        values = [0, 255, 256, 65535, 65536, -1, 2 ** 31 - 1, 2 ** 31, -2 ** 31, -2 ** 31 - 1,
                  2 ** 47, 2 ** 63 - 1, -2 ** 63, 1.5, True, False, None, '', 'text', 'ü' * 300,
                  (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}, {'a': [{'b': ()}]},
                  list(range(2500)), {str(number): number for number in range(2500)}]
        written = pickle_writer.Writer().pickle(values)
        check_pickle.check_bytes(written)
        self.assertEqual(pickle.loads(written), values)
        self.assertEqual(pickle.loads(pickle_writer.Writer().pickle([2 ** 64 - 1])), [-1])

    def test_text_that_is_no_text_is_replaced(self):
        self.assertEqual(pickle.loads(pickle_writer.Writer().pickle(['a\udc80'])), ['a?'])


class ChromeTrace(FolderTest):
    def trace(self, name):
        status, out, err = call_tool('export', '--to', 'chrome-trace', golden(name))
        self.assertEqual((status, err), (0, ''))
        return json.loads(out)['traceEvents']

    def test_documented_form(self):
        """Trace Event Format: phases, and what each needs."""
        for name in golden_names():
            is_open, last = {}, 0
            for row in self.trace(name):
                self.assertIn(row['ph'], 'MCbeiBE')
                for key, kind in (('name', str), ('pid', int), ('tid', int)):
                    self.assertIsInstance(row[key], kind)
                if row['ph'] == 'M':
                    self.assertIn(row['name'], ('process_name', 'thread_name'))
                    self.assertIsInstance(row['args']['name'], str)
                    continue
                self.assertGreaterEqual(row['ts'], last)
                last = row['ts']
                if row['ph'] == 'C':
                    self.assertTrue(all(isinstance(value, int) and value >= 0
                                        for value in row['args'].values()))
                elif row['ph'] == 'i':
                    self.assertIn(row['s'], 'gpt')
                elif row['ph'] == 'b':
                    self.assertNotIn(row['id'], is_open)
                    is_open[row['id']] = row['cat']
                elif row['ph'] == 'e':
                    self.assertEqual(is_open.pop(row['id']), row['cat'])
            self.assertEqual(is_open, {})

    def test_counters_end_in_what_is_live(self):
        counters = [row['args'] for row in self.trace('crumbs') if row['ph'] == 'C']
        self.assertEqual(counters[-1]['live'], 54 << 20)
        self.assertEqual(max(row['live'] for row in counters), 1164 << 20)

    def test_annotations_are_a_track(self):
        data = golden_data('leaky')
        start = data['device_traces'][0][0]['time_us']
        data['external_annotations'] = [
            {'device': 0, 'time_us': start, 'name': 'step', 'stage': 'START'},
            {'device': 0, 'time_us': start + 9, 'name': 'step', 'stage': 'END'}]
        _, out, _ = call_tool('export', '--to', 'chrome-trace',
                              self.write('a.json', json.dumps(data)))
        phases = [row['ph'] for row in json.loads(out)['traceEvents'] if row['name'] == 'step']
        self.assertEqual(phases, ['B', 'E'])


class Prometheus(FolderTest):
    def text(self, name):
        status, out, err = call_tool('export', '--to', 'prometheus', golden(name))
        self.assertEqual((status, err), (0, ''))
        return out

    def test_form(self):
        line = re.compile(r'([a-z_]+)\{([a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*)\} -?\d+(\.\d+)?')
        for name in golden_names():
            kinds, seen = {}, set()
            for text in self.text(name).splitlines():
                if text.startswith('# TYPE '):
                    _, _, family, kind = text.split(' ')
                    self.assertNotIn(family, kinds)
                    kinds[family] = kind
                    self.assertEqual(kind == 'counter', family.endswith('_total'))
                elif not text.startswith('# HELP '):
                    match = line.fullmatch(text)
                    self.assertIsNotNone(match, text)
                    self.assertIn(match.group(1), kinds)
                    self.assertNotIn(match.group(1, 2), seen)
                    seen.add(match.group(1, 2))

    def test_values(self):
        text = self.text('leaky')
        self.assertIn('cca_allocated_bytes{device="0",host="node7",pool="all"} 196608\n', text)
        self.assertIn('cca_requests_total{device="0",host="node7"} 30\n', text)
        self.assertIn('cca_ooms_total{device="0",host="node7"} 0\n', text)

    def test_every_row_of_the_library_has_its_figure(self):
        """A whole snapshot leaves no metric of the library's file out."""
        with open(os.path.join(ROOT, 'src', 'process', 'metrics.def')) as stream:
            names = re.findall(r'^(?:POOL|STAT|COUNT|TIME)\((cca_\w+),', stream.read(), re.M)
        self.assertGreater(len(names), 20)
        text = self.text('leaky')
        self.assertEqual(re.findall(r'^# TYPE (\w+) ', text, re.M), names)
        for name in names:
            self.assertRegex(text, r'(?m)^%s\{' % name)

    @unittest.skipUnless(shutil.which('promtool'), 'promtool is not installed')
    def test_promtool_accepts_it(self):
        for name in golden_names():
            done = subprocess.run(['promtool', 'check', 'metrics'], input=self.text(name).encode(),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual((done.returncode, done.stdout), (0, b''), name)


class Flamegraph(FolderTest):
    def test_picture_is_xml_with_every_function(self):
        for name in golden_names():
            for moment in ('now', 'peak', 'churn'):
                status, out, err = call_tool('flamegraph', '--at', moment, golden(name))
                self.assertEqual((status, err), (0, ''))
                root = xml.etree.ElementTree.fromstring(out)
                self.assertTrue(root.tag.endswith('svg'))
        _, out, _ = call_tool('flamegraph', '--at', 'churn', golden('crumbs'))
        for function in ('main', 'crumbs', 'keep_result', 'buffer'):
            self.assertIn(function, out)
        self.assertNotRegex(out.replace('http://www.w3.org/2000/svg', ''), r'https?:')

    def test_widths_are_shares(self):
        _, out, _ = call_tool('flamegraph', '--at', 'churn', golden('crumbs'))
        widths = {name: float(width) for width, name in re.findall(
            r'data-w="([\d.]+)" data-d="3" data-n="([^"]*)"', out)}
        self.assertEqual(set(widths), {'keep_result (cases)', 'buffer (cases)'})
        self.assertAlmostEqual(widths['keep_result (cases)'] / widths['buffer (cases)'],
                               64 * 18 / 1164, places=2)

    def test_strings_of_the_file_stay_text(self):
        data = golden_data('normal')
        data['segments'][0]['blocks'][0]['frames'][0]['name'] = '<script>&"\x07]]>'
        _, out, _ = call_tool('flamegraph', self.write('a.json', json.dumps(data)))
        xml.etree.ElementTree.fromstring(out)
        self.assertEqual(out.count('<script'), 1)

    def test_collapsed_and_file(self):
        path = self.path('x.svg')
        self.assertEqual(call_tool('flamegraph', '-o', path, golden('crumbs'))[1], path + '\n')
        _, out, _ = call_tool('flamegraph', '--collapsed', '--at', 'peak', golden('growing'))
        self.assertEqual(out, 'main (cases);growing (cases);larger_workspace (cases);'
                              'buffer (cases) %d\n' % (600 << 20))


class Usage(FolderTest):
    def test_form_is_needed_and_known(self):
        for words in (('export', golden('normal')),
                      ('export', '--to', 'xml', golden('normal'))):
            done = subprocess.run([sys.executable, os.path.join(SCRIPTS, 'cca'), *words],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, b''))


if __name__ == '__main__':
    unittest.main()
