# SPDX-License-Identifier: MIT
"""Every verb on snapshots with something odd in any place: an answer or one line, no traceback."""
import json
import os
import random
import unittest

from support import FolderTest, call_tool, golden_data, put

ODD = ('gone', None, 'text', [1], {'a': 1}, -1.5, -7, 2 ** 70, True, [[]], [None])
ROUNDS = 1500 if os.environ.get('CCA_TEST_LEVEL') == 'full' else 150
SEED = 11
VERBS = (('show',), ('show', '--json'), ('stats',), ('trace', '--stacks'), ('segments',),
         ('memory', '--at', 'peak'), ('leaks',), ('flamegraph', '--at', 'churn'),
         ('report', '-o', '-'), ('merge',), ('export', '--to', 'pickle', '-o', os.devnull),
         ('export', '--to', 'json'), ('export', '--to', 'chrome-trace'),
         ('export', '--to', 'prometheus'), ('symbolize', '-o', os.devnull))


def places(value, here=()):
    """Paths to everything in the data, of long lists to the first and the last item."""
    if isinstance(value, dict):
        for key in value:
            yield here + (key,)
            yield from places(value[key], here + (key,))
    elif isinstance(value, list):
        for index in sorted({0, len(value) - 1} & set(range(len(value)))):
            yield here + (index,)
            yield from places(value[index], here + (index,))


class Damage(FolderTest):
    def test_every_verb_answers_or_says_one_line(self):
        rng = random.Random(SEED)
        for name in ('normal', 'leaky', 'out_of_memory', 'pytorch'):
            text = json.dumps(golden_data(name))
            found = list(places(json.loads(text)))
            for _ in range(ROUNDS // 4):
                data = json.loads(text)
                place, odd = rng.choice(found), rng.choice(ODD)
                put(data, place, odd)
                path = self.write('odd.json', json.dumps(data))
                for words in VERBS:
                    with self.subTest(name=name, place=place, odd=odd, verb=words):
                        status, _, err = call_tool(*words, path)
                        self.assertIn(status, (0, 1, 2))
                        if status == 2:
                            self.one_line(err)
                        else:
                            self.assertEqual(err, '')


if __name__ == '__main__':
    unittest.main()
