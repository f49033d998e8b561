# SPDX-License-Identifier: MIT
"""Man pages and completion: made from the rows, whole, and read by the programs they are for."""
import os
import re
import shutil
import subprocess
import sys
import unittest

from support import GOLDEN, ROOT, SCRIPTS, FolderTest, clean_environment

from ccatool import prometheus, variables
from ccatool.main import VERBS

BASH = shutil.which('bash')


def made(name):
    done = subprocess.run([sys.executable, os.path.join(SCRIPTS, 'make_docs.py'), name],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    return done.stdout.decode()


class ManPages(FolderTest):
    def test_every_verb_and_every_option_of_it(self):
        page = made('cca.1').replace('\\-', '-')
        for name in VERBS:
            self.assertIn('\n.SS %s\n' % name, page)
        for option in ('--timeout', '--show-config', '--to', '--debug-dir', '--since', '--at'):
            self.assertIn('\\fB%s\\fP' % option, page)

    def test_every_variable_and_every_hook(self):
        page = made('libcca_preload.7').replace('\\-', '-')
        for name in variables.known():
            self.assertRegex(page, r'\.TP\n\\fB%s\\fP.*\n(?!\. Default).+Default: ' % name)
        for name, *_ in list(prometheus.pool_metrics()) + list(prometheus.device_metrics()):
            self.assertIn('\n.TP\n\\fB%s\\fP\n' % name, page)
        with open(os.path.join(ROOT, 'preload', 'hooks.def')) as stream:
            for hook in re.findall(r'^HOOK\((\w+),', stream.read(), re.M):
                self.assertIn(hook, page)

    @unittest.skipUnless(shutil.which('groff'), 'groff is not installed')
    def test_groff_has_no_complaint(self):
        for name in ('cca.1', 'libcca_preload.7'):
            done = subprocess.run(['groff', '-man', '-Tutf8', '-ww', '-z'],
                                  input=made(name).encode(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            self.assertEqual(done.stdout, b'', name)

    def test_bad_usage(self):
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, 'make_docs.py'), 'x'],
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)


@unittest.skipUnless(BASH, 'bash is not installed')
class Completion(FolderTest):
    def complete(self, *words):
        """What bash offers for the last word of a line."""
        script = made('completion') + (
            '\ncompopt() { :; }\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_cca\n'
            'printf "%%s\\n" "${COMPREPLY[@]}"\n' % (
                ' '.join("'%s'" % word for word in words), len(words) - 1))
        done = subprocess.run([BASH, '--norc', '-c', script], cwd=self.folder,
                              env=clean_environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.stderr, b'')
        return set(done.stdout.decode().split())

    def test_verbs(self):
        self.assertEqual(self.complete('cca', 're'), {'reset-peak', 'report'})
        self.assertLessEqual(set(VERBS), self.complete('cca', ''))

    def test_options_and_their_words(self):
        self.assertIn('--timeout', self.complete('cca', 'dump', '--t'))
        self.assertEqual(self.complete('cca', 'export', '--to', 'p'), {'pickle', 'prometheus'})
        self.assertEqual(self.complete('cca', 'run', '--set', 'FREE'), {'FREE_SYNC='})

    def test_files_and_processes(self):
        self.write('shot.pickle', '')
        self.assertEqual(self.complete('cca', 'show', 'sh'), {'shot.pickle'})
        self.assertIn(str(os.getpid()), self.complete('cca', 'dump', str(os.getpid())))


class Readme(unittest.TestCase):
    def test_every_verb_is_in_it(self):
        with open(os.path.join(ROOT, 'README.md')) as stream:
            text = stream.read()
        for name in VERBS:
            self.assertRegex(text, '`(cca )?%s\\b' % name)

    def test_its_screens_are_what_show_says(self):
        with open(os.path.join(ROOT, 'README.md')) as stream:
            text = stream.read()
        for name in ('keeping', 'crumbs', 'growing'):
            with open(os.path.join(GOLDEN, name + '.txt')) as stream:
                self.assertIn('\n```\n%s```\n' % stream.read(), text, name)

    def test_defaults_of_its_table_are_those_of_the_rows(self):
        with open(os.path.join(ROOT, 'README.md')) as stream:
            rows = dict(re.findall(r'^\| `(CCA_\w+)` \|\s*([^|]*?)\s*\|', stream.read(), re.M))
        for name, row in variables.known().items():
            with self.subTest(name):
                default = rows[name].strip('`')
                if row.kind in ('SIZE', 'UINT') and row.default.isdigit():
                    shown = variables.size_of(re.sub(r' (s|ms)$', '', default))
                    self.assertEqual(shown, int(row.default))
                elif row.kind == 'RATIO':
                    self.assertEqual(float(default), float(row.default))
                else:
                    # What names nothing is `none` in the rows, and may be blank in the table.
                    self.assertIn(row.default, {default} | {'': {'none'}, 'all': {''}}.get(
                        default, set()))


if __name__ == '__main__':
    unittest.main()
