#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What hooks follow beside allocations, on the simulated CUDA:
usage test_hooks.py LIBRARY FOLDER SIM
"""
import os
import subprocess
import sys
import unittest

LIBRARY = FOLDER = SIM = None


def run(name, *args, preload=(), **more):
    env = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'LD_LIBRARY_PATH': SIM,
           'CCA_DUMP_ON': '', 'CCA_SUMMARY': '0', **more}
    if preload:
        env['LD_PRELOAD'] = ':'.join(preload)
    result = subprocess.run([os.path.join(FOLDER, name), *args], env=env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=60, check=False,
                            universal_newlines=True)
    return result.returncode, result.stdout, result.stderr


class Inside(unittest.TestCase):
    """A free that comes while its thread is in the middle of a hook."""

    def test_memory_of_ours_never_reaches_the_driver(self):
        for door in ('free', 'async', 'driver', 'driver_async'):
            with self.subTest(door=door):
                status, output, errors = run(
                    'inside', door, preload=(LIBRARY, os.path.join(FOLDER, 'libcallback.so')))
                self.assertEqual((status, output), (0, 'freed 0, neighbour 0 0 0\n'), errors)


class Captures(unittest.TestCase):
    """Once no capture is under way, the cache gives its memory back to the driver."""

    def same(self, *way):
        native = run('captures', *way, SIMCUDA_MEMORY='16G')
        self.assertEqual(native[0], 0)
        self.assertTrue(native[1].endswith('malloc 0\n'), native)
        hooked = run('captures', *way, preload=(LIBRARY,), SIMCUDA_MEMORY='16G')
        self.assertEqual(hooked[:2], native[:2], hooked[2])

    def test_ends_are_seen_at_both_doors(self):
        self.same('plain')
        self.same('driver')
        self.same('many')

    def test_what_does_not_begin_need_not_end(self):
        self.same('refused')
        self.same('twice')

    def test_an_end_that_fails_may_be_one(self):
        self.same('elsewhere')
        self.same('invalid')

    def test_captures_before_the_first_allocation_are_followed(self):
        self.same('plain', 'early')
        self.same('twice', 'early')


class Waits(unittest.TestCase):
    """A wait for a stream proves what was freed in its order, and nothing else."""

    def blocks(self, stream):
        status, output, errors = run('waits', stream, preload=(LIBRARY,))
        self.assertEqual(status, 0, errors)
        return output

    def test_the_stream_itself(self):
        self.assertEqual(self.blocks('same'), '0 1\n')
        self.assertEqual(self.blocks('other'), '0 2\n')

    def test_the_streams_of_threads_differ(self):
        self.assertEqual(self.blocks('own'), '0 1\n')
        self.assertEqual(self.blocks('own elsewhere'), '0 2\n')


if __name__ == '__main__':
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    LIBRARY, FOLDER, SIM = (os.path.abspath(path) for path in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
