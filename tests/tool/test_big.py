# SPDX-License-Identifier: MIT
"""Large snapshots: time and memory of `show`, and its progress on a terminal."""
import os
import pickle
import re
import resource
import subprocess
import sys
import unittest

from big_snapshot import make
from support import QUIET, TOOL, FolderTest, clean_environment, crowding, on_terminal

EVENTS = 1000000 if os.environ.get('CCA_TEST_LEVEL') == 'full' else 150000
# For a million events: seconds of a processor, twice as many on a machine that has other work
# (processors that share a core and its caches slow each other down), and resident bytes.
MOST_SECONDS, MOST_BYTES = 10.0, 1200 * 1000 * 1000
START_SECONDS = 0.5
START_BYTES = 60 * 1000 * 1000


class Big(FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.data = pickle.dumps(make(EVENTS), 2)

    def measured(self, *words):
        """(seconds of processor time, resident bytes, output)."""
        script = ('import resource, subprocess, sys; '
                  'done = subprocess.run([sys.executable] + sys.argv[1:], stdout=subprocess.PIPE); '
                  'use = resource.getrusage(resource.RUSAGE_CHILDREN); '
                  'print(done.returncode, use.ru_utime + use.ru_stime, use.ru_maxrss); '
                  'sys.stdout.flush(); sys.stdout.buffer.write(done.stdout)')
        done = subprocess.run([sys.executable, '-c', script, TOOL, *words], timeout=350,
                              stdout=subprocess.PIPE, env=clean_environment())
        head, _, out = done.stdout.decode().partition('\n')
        status, seconds, kilobytes = head.split()
        self.assertEqual(status, '0')
        return float(seconds), int(kilobytes) * 1024, out

    def test_show_in_time_and_memory(self):
        path = self.write('big.pickle', self.data)
        seconds, most, out = self.measured('show', path)
        sys.stderr.write('show of %d events: %.1f s of a processor, %d MB\n' % (
            EVENTS, seconds, most // 1000000))
        self.assertRegex(out, r'history +%s' % format(EVENTS, ',')[:3])
        self.assertLess(seconds / (1 if crowding() < QUIET else 2),
                        MOST_SECONDS * EVENTS / 1e6 + START_SECONDS)
        self.assertLess(most, MOST_BYTES * EVENTS / 1e6 + START_BYTES)

    def test_progress_on_a_terminal(self):
        path = self.write('big.pickle', self.data)
        status, said = on_terminal('stderr', ['show', path], env=clean_environment(TERM='xterm'))
        self.assertEqual(status, 0)
        # Work of less than a second says nothing.
        if resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > 2:
            self.assertTrue(re.search(rb'reading .*big\.pickle|adding up', said), said)
        self.assertFalse(said and not said.endswith(b'\r\x1b[K'), said[-20:])


if __name__ == '__main__':
    unittest.main()
