# SPDX-License-Identifier: MIT
"""What the tool says of the golden snapshots, compared to the letter."""
import os
import unittest

from golden import TEXTS, expected_texts
from support import GOLDEN, FolderTest, call_tool, golden_names, golden_pickle


class Texts(FolderTest):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(GOLDEN)

    def test_every_verb_on_every_golden_snapshot(self):
        for name, suffix, words in expected_texts():
            with self.subTest(name=name, words=words):
                status, out, err = call_tool(*words)
                self.assertEqual(err, '')
                self.assertIn(status, (0, 1) if words[0] == 'leaks' else (0,))
                with open(os.path.join(GOLDEN, '%s.%s' % (name, suffix))) as stream:
                    self.assertEqual(out, stream.read())

    def test_no_line_is_wider_than_a_hundred_columns(self):
        for name in golden_names():
            with open(os.path.join(GOLDEN, name + '.txt')) as stream:
                for line in stream:
                    self.assertLessEqual(len(line.rstrip('\n')), 100, line)

    def test_a_screen_holds_what_show_says(self):
        for name in golden_names():
            with open(os.path.join(GOLDEN, name + '.txt')) as stream:
                self.assertLessEqual(len(stream.readlines()), 50)

    def test_pickles_say_the_same(self):
        self.write('crumbs.json', golden_pickle('crumbs'))
        os.chdir(self.folder)
        for suffix, words in TEXTS.items():
            if words[-1].endswith('.json'):
                continue        # needs a second snapshot
            _, out, err = call_tool(*words, 'crumbs.json')
            self.assertEqual(err, '')
            with open(os.path.join(GOLDEN, 'crumbs.' + suffix)) as stream:
                self.assertEqual(out, stream.read(), words)


if __name__ == '__main__':
    unittest.main()
