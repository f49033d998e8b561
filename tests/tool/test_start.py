# SPDX-License-Identifier: MIT
"""How the tool starts: from anywhere, with any Python we promise, with usage that helps."""
import ast
import os
import shutil
import subprocess
import unittest

from support import ROOT, SCRIPTS, TOOL, FolderTest, clean_environment, run_tool

VERBS = ('run', 'check', 'dump', 'trim', 'reset-peak', 'show', 'stats', 'trace', 'segments',
         'memory', 'flamegraph', 'compare', 'leaks', 'report', 'symbolize', 'merge', 'export')


class Start(FolderTest):
    def start(self, path):
        done = subprocess.run([path, '--version'], cwd='/', env=clean_environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_starts_by_itself_from_any_folder(self):
        status, out, err = self.start(TOOL)
        self.assertEqual((status, err), (0, ''))
        self.assertRegex(out, r'^cca \d+\.\d+\.\d+\n$')

    def test_starts_through_a_symlink(self):
        os.symlink(TOOL, self.path('link'))
        self.assertEqual(self.start(self.path('link'))[0], 0)

    def test_starts_where_it_was_installed_or_moved(self):
        """bindir/cca with the package in ../share/cca, wherever that tree lies."""
        if TOOL == os.path.join(SCRIPTS, 'cca'):
            self.skipTest('only a built tool knows where it is installed')
        with open(TOOL) as stream:
            if "'../share/cca'" not in stream.read():
                self.skipTest('configured for other folders')
        package = self.path('moved', 'share', 'cca', 'ccatool')
        shutil.copytree(os.path.join(os.path.dirname(TOOL), 'ccatool'), package)
        os.makedirs(self.path('moved', 'bin'))
        shutil.copy(TOOL, self.path('moved', 'bin', 'cca'))
        status, out, err = self.start(self.path('moved', 'bin', 'cca'))
        self.assertEqual((status, err), (0, ''))

    def test_missing_package_is_one_line(self):
        shutil.copy(os.path.join(SCRIPTS, 'cca'), self.path('cca'))
        status, _, err = self.start(self.path('cca'))
        self.assertEqual(status, 2)
        self.one_line(err, 'cca: package ccatool not found')

    def test_help_of_the_tool_and_of_every_verb(self):
        status, out, _ = run_tool('--help')
        self.assertEqual(status, 0)
        for verb in VERBS:
            self.assertIn('\n  %s ' % verb, out)
            status, text, err = run_tool(verb, '--help')
            self.assertEqual((status, err), (0, ''))
            self.assertTrue(text.startswith('usage: cca ' + verb))

    def test_bad_usage_is_status_2(self):
        self.assertEqual(run_tool()[0], 2)
        for words in (('nonsense',), ('show',), ('show', '--what', 'x'), ('dump', 'abc'), ('run',),
                      ('check',), ('run', '--mode', 'fast', 'true')):
            with self.subTest(words):
                status, out, err = run_tool(*words)
                self.assertEqual((status, out), (2, ''))
                self.assertNotIn('Traceback', err)

    def test_every_script_is_python_3_9(self):
        found = 0
        for top in (SCRIPTS, os.path.join(ROOT, 'tests', 'tool')):
            for place, _, names in os.walk(top):
                for name in names:
                    path = os.path.join(place, name)
                    if not name.endswith('.py') and path != os.path.join(SCRIPTS, 'cca'):
                        continue
                    with open(path, encoding='utf-8') as stream:
                        ast.parse(stream.read(), path, feature_version=(3, 9))
                    found += 1
        self.assertGreater(found, 20)

    def test_the_build_copies_every_module(self):
        with open(os.path.join(SCRIPTS, 'ccatool', 'meson.build')) as stream:
            listed = stream.read()
        for name in os.listdir(os.path.join(SCRIPTS, 'ccatool')):
            if name.endswith('.py'):
                self.assertIn("'%s'" % name, listed)


if __name__ == '__main__':
    unittest.main()
