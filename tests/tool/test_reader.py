# SPDX-License-Identifier: MIT
import json
import os
import pickle
import random
import unittest

from support import GOLDEN, FolderTest, golden_data, golden_pickle, run_tool

from ccatool import opcodes, snapshot
from ccatool.failure import Failure


class Victim:
    """Runs a command when a careless reader loads it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Reader(FolderTest):
    def refused(self, name, content, expected):
        path = self.write(name, content)
        status, out, err = run_tool('show', path)
        self.assertEqual((status, out), (2, ''))
        self.one_line(err, 'cca: %s: ' % path)
        self.assertIn(expected, err)

    def test_missing_file_and_folder(self):
        for path, expected in ((self.path('none'), 'no such file'),
                               (self.folder, 'is a directory')):
            status, _, err = run_tool('show', path)
            self.assertEqual(status, 2)
            self.assertIn(expected, self.one_line(err))

    def test_empty_file(self):
        self.refused('a.pickle', b'', 'empty file')

    def test_not_a_snapshot(self):
        self.refused('a.txt', 'hello\n', 'neither pickle nor JSON')
        self.refused('a.gz', b'\x1f\x8b\x08\0\0', 'neither pickle nor JSON')
        self.refused('a.json', '{"a": 1}', 'no segments')
        self.refused('b.json', '[1, 2]', 'no segments')
        self.refused('c.json', '{"segments": {"a": 1}}', 'segments is no list')
        self.refused('d.json', '{"segments": [1]}', 'segments is no list')
        self.refused('e.json', '{"segments": [{"blocks": 3}]}', 'blocks is no list')
        self.refused('f.json', '{"device_traces": {}}', 'device_traces is no list')
        self.refused('a.pickle', pickle.dumps({'a': 1}, 2), 'no segments')

    def test_cut_files(self):
        whole = golden_pickle('normal')
        for length in (1, 2, 3, 100, len(whole) // 2, len(whole) - 1):
            with self.subTest(length):
                self.refused('a.pickle', whole[:length],
                             'cut off' if length > 1 else 'not a pickle')
        text = json.dumps(golden_data('normal'))
        for length in (1, 50, len(text) // 2, len(text) - 1):
            with self.subTest(length):
                self.refused('a.json', text[:length], 'JSON')

    def test_damaged_json(self):
        self.refused('a.json', '{"segments": [}, "x": 1}', 'damaged JSON at line 1')
        self.refused('b.json', b'{"segments": "\xff\xfe"}', 'damaged JSON')
        self.refused('c.json', '[' * 100000, 'damaged JSON')

    def test_newer_version(self):
        data = golden_data('normal')
        data['cca']['version'] = '99.0.0'
        self.refused('a.json', json.dumps(data), 'newer than this tool')

    def test_reduce_runs_nothing(self):
        for protocol in (2, 4):
            mark = self.path('mark')
            self.refused('a.pickle', pickle.dumps({'segments': [Victim(mark)]}, protocol),
                         'forbidden pickle opcode')
            self.assertFalse(os.path.exists(mark))

    def test_global_and_persistent_id_are_refused(self):
        self.refused('a.pickle', b'\x80\x02cos\nsystem\n.', 'forbidden pickle opcode 0x63')
        self.refused('b.pickle', b'\x80\x02K\x01Q.', 'forbidden pickle opcode 0x51')
        self.refused('c.pickle', b'\x80\x02Pabc\n.', 'forbidden pickle opcode 0x50')

    def test_unpickler_refuses_by_itself(self):
        import io
        for data in (b'cos\nsystem\n.', b'\x80\x02K\x01Q.'):
            with self.assertRaises(opcodes.BadPickle):
                snapshot.PlainUnpickler(io.BytesIO(data)).load()

    def test_protocols(self):
        data = golden_data('pytorch')
        for protocol in (2, 3, 4, 5):
            shot = snapshot.load(self.write('a.pickle', pickle.dumps(data, protocol)))
            self.assertEqual(shot.segments, data['segments'])
        self.refused('a.pickle', b'\x80\x06}.', 'protocol 6')
        self.refused('a.pickle', pickle.dumps({'segments': bytearray(b'x')}, 5), 'opcode 0x96')

    def test_every_opcode_outside_the_subset_is_refused(self):
        import pickletools
        subset = set(opcodes.FIXED) | set(opcodes.COUNTED) | {opcodes.STOP}
        for code in range(256):
            if code in subset:
                continue
            with self.subTest(code), self.assertRaises(opcodes.BadPickle):
                opcodes.scan(b'\x80\x02' + bytes([code]) + b'\0' * 20 + b'.')
        known = {ord(info.code) for info in pickletools.opcodes}
        self.assertLessEqual(subset, known)

    def test_scan_agrees_with_pickletools(self):
        import pickletools
        for protocol in (2, 3, 4, 5):
            data = pickle.dumps(golden_data('normal'), protocol)
            self.assertEqual(opcodes.scan(data + b'\0\0'), len(data))
            ours = [(place, opcode) for place, opcode, _ in opcodes.walk(data)]
            theirs = [(place, ord(info.code)) for info, _, place in pickletools.genops(data)]
            self.assertEqual(ours, theirs)

    def test_huge_memo_index_takes_no_memory(self):
        self.refused('a.pickle', b'\x80\x02}r\xff\xff\xff\x7f.', 'senseless memo index')

    def test_memo_indices_of_large_files_are_looked_at_too(self):
        filling = b'X' + (1 << 24).to_bytes(4, 'little') + b'x' * (1 << 24)
        good = b'\x80\x02}r\xff\xff\xff\x00' + filling + b'\x85.'
        self.assertEqual(opcodes.scan(good), len(good))
        with self.assertRaises(opcodes.BadPickle):
            opcodes.scan(good.replace(b'r\xff\xff\xff\x00', b'r\xff\xff\xff\x01'))

    def test_senseless_order_is_damaged(self):
        for body in (b'e.', b'h\x07.', b's.', b'.', b'(u.', b']]s.', b'}]K\x01s.',
                     b'X\x01\0\0\0\xff.'):
            self.refused('a.pickle', b'\x80\x02' + body, '')

    def test_random_damage_never_ends_in_a_traceback(self):
        seed = 20
        rng = random.Random(seed)
        whole = golden_pickle('normal')
        text = json.dumps(golden_data('normal')).encode()
        for source in (whole, text):
            for _ in range(400):
                data = bytearray(source)
                for _ in range(rng.randrange(1, 4)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                path = self.write('a', bytes(data))
                try:
                    snapshot.load(path)
                except Failure:
                    pass

    def test_bare_list_of_segments_and_trailing_bytes(self):
        segments = golden_data('pytorch')['segments']
        found = snapshot.load(self.write('a.pickle', pickle.dumps(segments, 2) + b'\0' * 7))
        self.assertEqual(len(found.segments), 1)
        self.assertFalse(found.is_ours)

    def test_same_content_from_both_formats(self):
        one = snapshot.load(os.path.join(GOLDEN, 'normal.json'))
        two = snapshot.load(self.write('a.pickle', golden_pickle('normal')))
        self.assertEqual(one.own, two.own)


if __name__ == '__main__':
    unittest.main()
