# SPDX-License-Identifier: MIT
import json
import os
import re
import shutil
import subprocess
import unittest

from support import FolderTest, call_tool, golden_data

from ccatool import build_id, symbolizer

SOURCE = '''#include <stdlib.h>
void *volatile kept;
static inline __attribute__((always_inline)) void take(unsigned long n)
{
    kept = malloc(n);
}
void *outer(unsigned long n)
{
    take(n);
    return (char *)kept + 1;
}
'''
BASE = 0x7f1200000000


class Parse(unittest.TestCase):
    def test_the_forms_of_the_three_programs(self):
        text = ('0x00000000000011d3\ntake\n/src/a.c:5\nouter\n/src/a.c:9 (discriminator 2)\n'
                '0x11e0\n??\n??:0\n0x11e8\nmain\n/src/b.c:12:7\n')
        self.assertEqual(symbolizer.parse(text), {
            0x11d3: [('take', '/src/a.c', 5), ('outer', '/src/a.c', 9)],
            0x11e8: [('main', '/src/b.c', 12)]})

    def test_odd_places(self):
        self.assertEqual(symbolizer.place_of('??:0'), ('', 0))
        self.assertEqual(symbolizer.place_of('??:?'), ('', 0))
        self.assertEqual(symbolizer.place_of('/a b:c/d.c:7'), ('/a b:c/d.c', 7))
        self.assertEqual(symbolizer.place_of('x.c:?'), ('x.c', 0))


class Symbolize(FolderTest):
    def setUp(self):
        super().setUp()
        self.library = self.compile('libapp.so', SOURCE, '-shared', '-fPIC', '-g', '-O1',
                                    '-Wl,--build-id')
        if not shutil.which('objdump'):
            self.skipTest('no objdump')
        text = subprocess.run(['objdump', '-d', self.library], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        body = text[text.index('<outer>:'):]
        call = re.search(r'^\s*([0-9a-f]+):.*\bcall\b.*\n\s*([0-9a-f]+):', body, re.M)
        self.offset = int(call.group(2), 16)
        self.data = golden_data('leaky')
        self.data['cca']['modules'] = [{'path': '/opt/app/libapp.so', 'base': BASE,
                                        'build_id': build_id.build_id_of(self.library)}]
        for segment in self.data['segments']:
            segment['frames'] = []
            for block in segment['blocks']:
                block['frames'] = [self.frame()] if block['frames'] else []
        for entry in self.data['device_traces'][0]:
            entry['frames'] = [self.frame()]

    def frame(self):
        return {'name': 'libapp.so+0x1', 'filename': '/opt/app/libapp.so', 'line': 0,
                'address': BASE + self.offset}

    def symbolize(self, *words, out='out.pickle'):
        path = self.write('in.json', json.dumps(self.data))
        return call_tool('symbolize', '-o', self.path(out), *words, path)

    def test_build_id_is_what_the_linker_wrote(self):
        self.assertRegex(build_id.build_id_of(self.library), r'^[0-9a-f]{40}$')
        self.assertEqual(build_id.build_id_of(__file__), '')

    def test_each_program_finds_the_line_and_the_inlined_function(self):
        tried = 0
        for program, _ in symbolizer.PROGRAMS:
            if not shutil.which(program):
                continue
            tried += 1
            with self.subTest(program):
                status, out, err = self.symbolize('--with', program, '--debug-dir', self.folder)
                self.assertEqual((status, err), (0, ''), out)
                _, text, _ = call_tool('memory', self.path('out.pickle'))
                self.assertIn('take (libapp.so.c:5)\n      outer (libapp.so.c:9)', text)
        if not tried:
            self.skipTest('none of the three programs is installed')

    def needs_a_program(self):
        if not any(shutil.which(program) for program, _ in symbolizer.PROGRAMS):
            self.skipTest('none of the three programs is installed')

    def test_another_build_is_not_used(self):
        self.needs_a_program()
        self.data['cca']['modules'][0]['build_id'] = '00' * 20
        status, out, _ = self.symbolize('--debug-dir', self.folder)
        self.assertEqual(status, 1)
        self.assertIn('libapp.so: is another build', out)
        _, text, _ = call_tool('memory', self.path('out.pickle'))
        self.assertNotIn('libapp.so.c', text)

    def test_file_that_is_not_there(self):
        self.needs_a_program()
        status, out, _ = self.symbolize('--json', out='out.json')
        self.assertEqual(status, 1)
        self.assertEqual(json.loads(out)['missing'],
                         [{'module': '/opt/app/libapp.so', 'reason': 'not found'}])

    def test_debug_files_by_build_id(self):
        self.needs_a_program()
        wanted = self.data['cca']['modules'][0]['build_id']
        place = self.path('debug', '.build-id', wanted[:2], wanted[2:] + '.debug')
        os.makedirs(os.path.dirname(place))
        shutil.move(self.library, place)
        status, _, err = self.symbolize('--debug-dir', self.path('debug'))
        self.assertEqual((status, err), (0, ''))

    def test_snapshot_without_addresses_is_one_line(self):
        self.needs_a_program()
        for entry in self.data['device_traces'][0]:
            del entry['frames'][0]['address']
        for segment in self.data['segments']:
            for block in segment['blocks']:
                block['frames'] = []
        status, _, err = self.symbolize()
        self.assertEqual(status, 2)
        self.assertIn('no addresses', self.one_line(err))
        del self.data['cca']['modules']
        status, _, err = self.symbolize()
        self.assertEqual(status, 2)
        self.assertIn('names no modules', self.one_line(err))


if __name__ == '__main__':
    unittest.main()
