# SPDX-License-Identifier: MIT
import contextlib
import io
import json
import os
import pickle
import subprocess
import sys
import unittest

from support import GOLDEN, SCRIPTS, FolderTest, golden_data, golden_pickle

import check_pickle

ADDRESS = 0x7f2000000000
MIB = 1 << 20


def entry(action, addr, size):
    return {'action': action, 'addr': addr, 'size': size, 'stream': 0, 'time_us': 1,
            'compile_context': 'N/A', 'user_metadata': ''}


class Accepts(FolderTest):
    def run_it(self, *words):
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, 'check_pickle.py'), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_golden_snapshots(self):
        for name in ('normal', 'two_devices', 'no_events', 'out_of_memory'):
            with self.subTest(name):
                path = self.write('a.pickle', fixed(golden_pickle(name)))
                self.assertEqual(self.run_it('--complete', path), (0, 'ok\n', ''))
                self.assertEqual(self.run_it(os.path.join(GOLDEN, name + '.json')), (0, 'ok\n', ''))

    def test_statuses(self):
        self.assertEqual(self.run_it()[0], 2)
        self.assertEqual(self.run_it(self.path('none'))[0], 1)
        status, out, err = self.run_it(self.write('a.pickle', b'\x80\x02}.'))
        self.assertEqual((status, err), (1, ''))
        self.assertEqual(out, 'keys: segments is no list\n')

    def test_expandable_segments_replay(self):
        data = golden_data('no_events')
        del data['cca']
        segment = golden_data('normal')['segments'][1]
        segment.update(is_expandable=True, address=ADDRESS, total_size=6 * MIB, allocated_size=0,
                       active_size=0, requested_size=0, frames=[], blocks=[
                           {'address': ADDRESS, 'size': 6 * MIB, 'requested_size': 0,
                            'state': 'inactive', 'frames': []}])
        data['segments'] = [segment]
        data['device_traces'] = [[
            entry('segment_map', ADDRESS, 4 * MIB), entry('alloc', ADDRESS, 100),
            entry('free_requested', ADDRESS, 100), entry('free_completed', ADDRESS, 100),
            entry('segment_map', ADDRESS + 4 * MIB, 6 * MIB),
            entry('segment_unmap', ADDRESS + 6 * MIB, 4 * MIB)]]
        path = self.write('a.json', json.dumps(data))
        self.assertEqual(self.run_it('--complete', path)[1], 'ok\n')
        data['device_traces'][0].insert(0, entry('segment_map', ADDRESS + 64 * MIB, MIB))
        path = self.write('a.json', json.dumps(data))
        self.assertIn('segment_map outside', self.run_it(path)[1])

    def test_json_of_a_ring_that_lost_its_start(self):
        data = golden_data('normal')
        del data['device_traces'][0][:5]
        path = self.write('a.json', json.dumps(data))
        self.assertEqual(self.run_it(path)[1], 'ok\n')
        self.assertIn('older than the history', self.run_it('--complete', path)[1])


def fixed(data):
    """Python's pickle shortens LONG1; the library always writes 8 bytes."""
    import pickletools
    out, last = bytearray(), 0
    for info, _, place in pickletools.genops(data):
        if info.name == 'LONG1':
            out += data[last:place]
            length = data[place + 1]
            value = int.from_bytes(data[place + 2:place + 2 + length], 'little', signed=True)
            out += b'\x8a\x08' + value.to_bytes(8, 'little', signed=True)
            last = place + 2 + length
    return bytes(out + data[last:])


class OtherFile(FolderTest):
    def test_says_the_same_or_not(self):
        data = golden_data('normal')
        check_pickle.check_same(data, json.loads(json.dumps(data)))
        check_pickle.check_same({'a': (1, 2 ** 63 - 1)}, {'a': [1, 2 ** 64 - 1]})
        for left, right, rule in (
                ({'a': 1, 'b': 2}, {'b': 2, 'a': 1}, 'other keys or another order'),
                ([1], [1, 1], 'another length'), ([1.5], [1.25], 'another number'),
                (['a'], ['b'], "'a' and 'b'"), ([1], [True], '1 and True'),
                ([2 ** 63 - 1], [5], 'another number')):
            with self.subTest(rule), self.assertRaises(check_pickle.Broken) as caught:
                check_pickle.check_same(left, right)
            self.assertIn(rule, str(caught.exception))

    def test_expressions(self):
        path = self.write('a.json', json.dumps(golden_data('normal')))
        for expression, status in (("s['cca']['pid'] > 0", 0), ("t is None", 0), ("s['x']", 1),
                                   ("file_bytes == 3", 1)):
            with self.subTest(expression), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(check_pickle.main(['--expect', expression, path]), status)


class RefusesBytes(FolderTest):
    def refused(self, data, rule):
        with self.assertRaises(check_pickle.Broken) as caught:
            check_pickle.check_bytes(data)
        self.assertIn(rule, str(caught.exception))

    def test_rules_of_the_bytes(self):
        good = fixed(golden_pickle('normal'))
        check_pickle.check_bytes(good)
        for data, rule in (
                (good[:-1], 'cut off'), (good + b'\0', 'bytes after STOP'),
                (b'\x80\x04' + good[2:], 'protocol must be 2'),
                (golden_pickle('normal'), 'LONG1 must have 8 bytes'),
                (b'\x80\x02cos\nsystem\n.', 'forbidden pickle opcode'),
                (b'\x80\x02}q\x00\x94.', 'MEMOIZE and BINPUT are mixed'),
                (b'\x80\x02}q\x00h\x01.', 'BINGET of an index that was never put'),
                (b'\x80\x02]e.', 'no MARK'),
                (b'\x80\x02](' + b'K\x01' * 1001 + b'e.', 'batch of more than 1000'),
                (b'\x80\x02}(' + b'K\x01' * 2002 + b'u.', 'batch of more than 1000'),
                (b'\x80\x02X\x01\0\0\0\xff.', 'not UTF-8')):
            with self.subTest(rule):
                self.refused(data, rule)
        check_pickle.check_bytes(b'\x80\x02](' + b'K\x01' * 1000 + b'e.')
        value = [(1, 2, 3), (1,), (), {1: 2.5}, True, None, 70000]
        check_pickle.check_bytes(pickle.dumps([value] * 3, 2))


class RefusesContent(FolderTest):
    """One change each to a good snapshot, and the rule that names it."""

    def setUp(self):
        super().setUp()
        self.data = golden_data('normal')
        self.segment = self.data['segments'][0]
        self.blocks = self.segment['blocks']
        self.trace = self.data['device_traces'][0]
        self.stats = self.data['cca']['stats'][0]

    def refused(self, rule):
        path = self.write('a.json', json.dumps(self.data))
        with self.assertRaises(check_pickle.Broken) as caught:
            check_pickle.check(path, False)
        self.assertIn(rule, str(caught.exception))

    def test_missing_top_level_key(self):
        del self.data['external_annotations']
        self.refused('external_annotations is no list')

    def test_what_is_of_another_kind(self):
        for place, key, value, rule in (
                (self.data, 'allocator_settings', [], 'keys: allocator_settings is no dict'),
                (self.data, 'cca', [], 'keys: cca is no dict'),
                (self.data['device_traces'], 0, {}, 'keys: device_traces[0] is no list'),
                (self.data['segments'], 0, [], 'keys: no dict: segments[0]'),
                (self.blocks, 0, [], 'keys: no dict: segments[0].blocks[0]'),
                (self.trace, 0, [], 'keys: no dict: device_traces[0][0]'),
                (self.blocks[0]['frames'], 0, 'main', 'keys: a frame is no dict'),
                (self.segment, 'segment_type', 'huge', 'keys: segment_type'),
                (self.data['cca']['counters'], 0, 5, 'keys: cca.counters holds no dicts')):
            before, place[key] = place[key], value
            with self.subTest(rule):
                self.refused(rule)
            place[key] = before
        self.data = [self.data]
        self.refused('keys: top level is no dict')

    def test_missing_segment_key(self):
        del self.segment['stream']
        self.refused('keys: stream is missing')

    def test_segment_of_unknown_device(self):
        self.segment['device'] = 4
        self.refused('device without a trace')

    def test_pool_id_must_be_a_pair(self):
        self.segment['segment_pool_id'] = [0, 0, 0]
        self.refused('segment_pool_id has the wrong type')

    def test_unknown_state(self):
        self.blocks[3]['state'] = 'active_awaiting_free'
        self.refused('unknown state active_awaiting_free')

    def test_block_without_frames(self):
        del self.blocks[0]['frames']
        self.refused('frames is missing')

    def test_frame_without_line(self):
        del self.blocks[0]['frames'][0]['line']
        self.refused('line is missing')

    def test_null_frames_in_the_trace(self):
        self.trace[1]['frames'] = None
        self.refused('frames is no list')

    def test_unknown_action(self):
        self.trace[0]['action'] = 'jump'
        self.refused('unknown action jump')

    def test_oom_without_device_free(self):
        self.trace[0].update(action='oom')
        self.refused('device_free is missing')

    def test_oom_with_addr(self):
        self.trace[0].update(action='oom', device_free=1)
        self.refused('oom has an addr')

    def test_number_past_64_bits(self):
        self.trace[0]['size'] = 2 ** 64
        self.refused('size has the wrong type')

    def test_device_with_nothing(self):
        self.data['device_traces'].append([])
        self.refused('neither segment nor event')

    def test_own_section(self):
        del self.data['cca']['hook_coverage']
        self.refused('hook_coverage is missing')

    def test_unknown_cause(self):
        self.data['cca']['cause'] = 'whim'
        self.refused('unknown cause whim')

    def test_figures_of_a_device(self):
        row = {'device': 0, 'total': 100, 'free': 60, 'free_time_us': 5, 'reserved': 30,
               'allocated': 10, 'pending': 5, 'cached': 15, 'unmanaged': 4, 'other': 6,
               'partial': False}
        for key, value, rule in (
                ('other', 7, 'what is used is not reserved + unmanaged + other'),
                ('cached', 14, 'reserved is not allocated + pending + cached'),
                ('other', -1, 'a negative figure')):
            with self.subTest(rule):
                self.data['cca']['devices'] = [{**row, key: value}]
                self.refused(rule)
        self.data['cca']['devices'] = [row]
        check_pickle.check(self.write('a.json', json.dumps(self.data)))

    def test_modules(self):
        self.data['cca'].update(is_partial=False, modules=[{'path': 'a', 'base': 1}])
        self.refused('keys: build_id is missing')

    def test_stats_per_device(self):
        self.data['cca']['stats'] *= 2
        self.refused('more dicts than there are devices')

    def test_segments_without_stats(self):
        self.data['cca']['stats'] = [{}]
        self.refused('has segments and no row')

    def test_gap_between_blocks(self):
        self.blocks[1]['address'] += 512
        self.refused('tiling: block address')

    def test_blocks_short_of_the_segment(self):
        self.blocks.pop()
        self.refused('tiling: blocks sum to')

    def test_empty_block(self):
        self.blocks[1]['size'] = 0
        self.refused('tiling: empty block')

    def test_requested_more_than_size(self):
        self.blocks[0]['requested_size'] = 13 * MIB
        self.refused('requested_size is more than size')

    def test_sum_of_a_segment(self):
        self.segment['active_size'] += 512
        self.refused('active_size is')

    def test_segments_out_of_order(self):
        self.data['segments'].reverse()
        self.refused('overlap or are not sorted')

    def test_stat_missing(self):
        del self.stats['segment.all.peak']
        self.refused('segment.all.peak is missing')

    def test_stat_parts(self):
        self.stats['active.small_pool.freed'] += 1
        self.refused('active.all.freed is not large + small')

    def test_stat_peak(self):
        self.stats['segment.all.peak'] = 0
        self.refused('segment peak below current')

    def test_stat_against_segments(self):
        for part in ('all', 'large_pool'):
            self.stats['allocated_bytes.%s.current' % part] += 512
        self.refused('allocated_bytes.all.current is')

    def test_free_requested_without_completed(self):
        del self.trace[6]
        self.refused('free_requested without free_completed')

    def test_free_requested_of_a_block_that_is_allocated(self):
        self.trace.append(entry('free_requested', ADDRESS, 12 * MIB - 100))
        self.refused('free_requested without free_completed')

    def test_free_outside_of_all_segments(self):
        self.trace.append(entry('free_completed', 4096, 100))
        self.refused('a free outside of all segments')

    def test_free_over_a_live_block(self):
        self.trace.append(entry('free_completed', ADDRESS + 512, 100))
        self.refused('comes back over a live one')

    def test_alloc_without_its_block(self):
        self.trace.append(entry('alloc', ADDRESS + 12 * MIB, 100))
        self.refused('neither live nor freed later')

    def test_alloc_of_a_pending_block(self):
        self.trace.pop()
        self.refused('pending without free_requested')

    def test_sizes_of_events(self):
        self.trace[1]['size'] += 1
        self.refused('alloc of')

    def test_segment_alloc_without_its_segment(self):
        self.trace.append(entry('segment_alloc', 4096, MIB))
        self.refused('segment_alloc without its segment')

    def test_blocks_older_than_their_segment(self):
        self.trace.append(self.trace.pop(0))
        self.refused('blocks are older than their segment')

    def test_segment_free_over_a_segment(self):
        self.trace.append(entry('segment_free', ADDRESS, MIB))
        self.refused('comes back over another one')

    def test_segment_map_outside(self):
        self.trace.append(entry('segment_map', ADDRESS, MIB))
        self.refused('segment_map outside of all expandable segments')


if __name__ == '__main__':
    unittest.main()
