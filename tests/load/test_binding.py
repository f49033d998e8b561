#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forwarded calls reach the runtime that the program would have reached without the library:
usage test_binding.py LIBRARY FOLDER
"""
import os
import subprocess
import sys
import unittest

LIBRARY = FOLDER = None


def part(name):
    return os.path.join(FOLDER, name)


def run(command, *preload):
    env = {'PATH': os.environ.get('PATH', '/usr/bin:/bin')}
    if preload:
        env['LD_PRELOAD'] = ':'.join(preload)
    result = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=60, check=False,
                            universal_newlines=True)
    return result.returncode, result.stdout


class Binding(unittest.TestCase):

    def same(self, program, *plugins, behind=()):
        command = [part(program)] + [part(f'libplugin{release}.so') for release in plugins]
        native = run(command, *behind)
        self.assertEqual(native[0], 0, native[1])
        self.assertEqual(run(command, LIBRARY, *behind), native)
        return native[1]

    def test_a_linked_program_reaches_its_runtime(self):
        self.assertIn('main 12 12 12 12\nold 12 12', self.same('linked12'))
        self.assertIn('main 13 13 13 13', self.same('linked13'))

    def test_a_plugin_reaches_its_own_runtime(self):
        output = self.same('unlinked', '12', '13', '12')
        self.assertIn('plugin12.so 12012 12012', output)
        self.assertIn('plugin13.so 13013 13013', output)

    def test_a_plugin_that_holds_a_runtime_reaches_that_one(self):
        command = [part('unlinked')] + [part(f'libplugin{name}.so') for name in ('12', 'own')]
        native = run(command)
        self.assertIn('pluginown.so 55055 55055', native[1])
        status, output = run(command, LIBRARY)
        self.assertEqual((status, output.replace('stays', 'goes')), native)

    def test_a_constructor_may_wait_for_a_thread_that_calls(self):
        """The thread must not need the loader, which the loading thread keeps busy."""
        output = self.same('linked12', 'starter')
        self.assertIn('pluginstarter.so 12012 12012', output)

    def test_forked_children_may_load_libraries(self):
        native = run([part('forker'), part('libplugin12.so')])
        self.assertEqual(native, (0, 'every child loaded it\n'))
        self.assertEqual(run([part('forker'), part('libplugin12.so')], LIBRARY), native)

    def test_two_releases_live_side_by_side(self):
        for program in ('linked12', 'linked13'):
            for plugins in (['12', '13'], ['13', '12', '13']):
                with self.subTest(program=program, plugins=plugins):
                    self.same(program, *plugins)

    def test_a_caller_is_not_kept_loaded(self):
        self.assertNotIn('stays', self.same('linked12', '13', '13', '12'))

    def test_another_interposer_behind_is_not_skipped(self):
        output = self.same('linked12', behind=[part('libinterposer.so')])
        self.assertIn('main 77 77 12 77', output)

    def test_another_interposer_in_front_still_reaches_us(self):
        native = run([part('linked12')], part('libinterposer.so'))
        self.assertEqual(run([part('linked12')], part('libinterposer.so'), LIBRARY), native)


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    LIBRARY, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
