# SPDX-License-Identifier: MIT
import os
import re
import unittest

from support import ROOT

from ccatool import signals, variables


class Rows(unittest.TestCase):
    def setUp(self):
        self.known = variables.known()

    def test_every_row_of_the_definition_is_understood(self):
        with open(os.path.join(ROOT, 'src', 'config', 'options.def')) as stream:
            source = re.sub(r'/\*.*?\*/', '', stream.read(), flags=re.S)
        names = re.findall(r'^[A-Z]+\(\w+, *(CCA_\w+)', source, flags=re.M)
        self.assertEqual(list(self.known), names)
        self.assertIn('CCA_MODE', names)

    def test_every_default_is_a_value_of_its_own_row(self):
        for name, row in self.known.items():
            with self.subTest(name):
                self.assertIsNotNone(row.effective(row.default))
                self.assertNotIn('CCA_', row.default)

    def test_values(self):
        for name, text, value in (
                ('CCA_SUMMARY', 'OFF', '0'), ('CCA_SUMMARY', 'maybe', None),
                ('CCA_MAX_SPLIT_SIZE', '1 GiB', str(1 << 30)), ('CCA_MAX_SPLIT_SIZE', '1M', None),
                ('CCA_MAX_SPLIT_SIZE', 'unlimited', 'unlimited'),
                ('CCA_MAX_SPLIT_SIZE', '9999999999G', None),
                ('CCA_DUMP_ON', '', 'none'), ('CCA_DUMP_ON', 'exit,signal', 'signal,exit'),
                ('CCA_DUMP_SIGNAL', 'SIGUSR2', 'SIGUSR2'), ('CCA_DUMP_SIGNAL', 'USR9', None),
                ('CCA_DUMP_SIGNAL', 'none', 'none'), ('CCA_STACK_DEPTH', '0', None),
                ('CCA_STACK_DEPTH', '12', '12'), ('CCA_MODE', 'fast', None)):
            with self.subTest(name + '=' + text):
                self.assertEqual(self.known[name].effective(text), value)

    def test_short_and_full_names(self):
        self.assertEqual(variables.full_name('mode'), 'CCA_MODE')
        self.assertEqual(variables.full_name('CCA_MODE'), 'CCA_MODE')


class Signals(unittest.TestCase):
    def test_names_and_numbers(self):
        for text, number in (('USR1', 10), ('SIGUSR2', 12), ('usr1', 10), ('10', 10), ('RTMIN', 34),
                             ('RTMIN+2', 36), ('SIGRTMAX-3', 61), ('64', 64), ('65', None),
                             ('0', None),
                             ('RTMIN+31', None), ('RTMAX+1', None), ('', None), ('_DFL', None)):
            with self.subTest(text):
                self.assertEqual(signals.number_of(text), number)

    def test_names_read_back(self):
        for number in (10, 12, 34, 36, 61, 64):
            self.assertEqual(signals.number_of(signals.name_of(number)), number)


if __name__ == '__main__':
    unittest.main()
