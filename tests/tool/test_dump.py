# SPDX-License-Identifier: MIT
import json
import os
import subprocess
import sys
import unittest

from support import GOLDEN, HERE, FolderTest, clean_environment, run_tool

from ccatool.dump_files import as_glob


class Pattern(unittest.TestCase):
    def test_pid_is_filled_in_and_the_rest_is_open(self):
        self.assertEqual(as_glob('d/cca-%h-%p-%n', 12), 'd/cca-*-12-*')
        self.assertEqual(as_glob('a[1]*?%c', 12), 'a[[]1][*][?]*')
        self.assertEqual(as_glob('x%', 12), 'x%')
        self.assertEqual(as_glob('%%p%q', 12), '%p%q')
        self.assertEqual(as_glob('/d/', 12), '/d/cca-*-12-*')


class Dump(FolderTest):
    def start(self, mode='write', number=10, library='libcca_preload.so', cwd=None, **extra):
        path = self.write(library, 'x' * 4096)
        return self.start_ready(
            [sys.executable, os.path.join(HERE, 'fake_process.py'), path, str(number), mode,
             os.path.join(GOLDEN, 'normal.json')],
            stderr=subprocess.DEVNULL, cwd=cwd or self.folder,
            env=clean_environment(CCA_DUMP_FORMAT='json', **extra))

    def dump(self, process, *words):
        return run_tool('dump', *words, str(process.pid))

    def test_prints_the_path_of_the_complete_file(self):
        process = self.start()
        for sequence in range(2):
            status, out, err = self.dump(process)
            self.assertEqual((status, err), (0, ''))
            self.assertEqual(out, self.path('cca-some-host-%d-%d.json\n' % (process.pid, sequence)))
            with open(out.strip()) as stream:
                json.load(stream)

    def test_json(self):
        status, out, _ = self.dump(self.start(), '--json')
        data = json.loads(out)
        self.assertEqual((status, data['signal'], len(data['paths'])), (0, 'SIGUSR1', 1))

    def test_own_pattern_and_signal(self):
        os.mkdir(self.path('out'))
        process = self.start(number=61, CCA_DUMP_SIGNAL='RTMAX-3',
                             CCA_DUMP_FILE=self.path('out', 'mine[%p]'))
        status, out, err = self.dump(process)
        self.assertEqual((status, err), (0, ''))
        self.assertEqual(out.strip(), self.path('out', 'mine[%d].json' % process.pid))

    def test_a_snapshot_for_another_cause_is_not_the_answer(self):
        status, out, err = self.dump(self.start(mode='later'))
        self.assertEqual((status, err), (0, ''))
        self.assertTrue(out.endswith('-1.json\n'), out)

    def test_spare_folder(self):
        os.makedirs(self.path('work'))
        os.makedirs(self.path('spare'))
        process = self.start(cwd=self.path('work'), TMPDIR=self.path('spare'),
                             CCA_DUMP_FILE='gone/cca-%p')
        # The stand-in cannot write to gone/ and ends: the tool says so.
        status, _, err = self.dump(process, '--timeout', '5')
        self.assertEqual(status, 1)
        self.assertIn('ended before', self.one_line(err))
        from ccatool.dump_files import DumpFiles
        from ccatool.procfs import Process
        files = DumpFiles(Process(self.start(CCA_DUMP_FILE='gone/cca-%p',
                                             TMPDIR=self.path('spare')).pid))
        self.assertIn(self.path('spare'), files.folders())

    def refused(self, process, expected):
        status, out, err = self.dump(process)
        self.assertEqual((status, out), (2, ''))
        self.assertIn(expected, self.one_line(err))
        self.assertIsNone(process.poll())

    def test_refuses_without_the_library(self):
        self.refused(self.start(library='libother.so'), 'does not have libcca_preload.so loaded')

    def test_refuses_without_a_handler_and_the_process_lives(self):
        self.refused(self.start(mode='default'), 'does not handle SIGUSR1')
        self.refused(self.start(number=10, CCA_DUMP_SIGNAL='USR2'), 'does not handle SIGUSR2')

    def test_refuses_when_the_signal_is_off(self):
        self.refused(self.start(CCA_DUMP_SIGNAL='none'), 'CCA_DUMP_SIGNAL=none')

    def test_no_such_process(self):
        for pid in ('0', '-5', '4194305'):
            status, _, err = run_tool('dump', '--', pid)
            self.assertEqual(status, 2)
            self.one_line(err)

    def test_no_answer_in_time(self):
        status, out, err = self.dump(self.start(mode='silent'), '--timeout', '0.3')
        self.assertEqual((status, out), (1, ''))
        self.assertIn('no snapshot', self.one_line(err))

    def test_process_that_ends(self):
        status, _, err = self.dump(self.start(mode='die'), '--timeout', '10')
        self.assertEqual(status, 1)
        self.assertIn('ended before', self.one_line(err))


if __name__ == '__main__':
    unittest.main()
