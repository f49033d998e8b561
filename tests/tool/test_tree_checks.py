# SPDX-License-Identifier: MIT
"""The scripts that check the tree itself: layers and formatting."""
import os
import shutil
import subprocess
import unittest

from support import ROOT, SCRIPTS, FolderTest

import check_layers


class Layers(FolderTest):
    def setUp(self):
        super().setUp()
        for name in ('src/base/log.h', 'src/config/config.h', 'src/device/device.h',
                     'src/device/cuda_table.h', 'src/observe/unwind.h', 'src/alloc/allocator.h',
                     'src/alloc/block.h', 'src/snapshot/model.h', 'src/process/process.h',
                     'include/cca/cca.h', 'preload/hook.h', 'tests/support/test.h'):
            self.write(name, '')

    def found(self, path, text):
        self.write(path, text)
        lines = check_layers.broken_includes(self.folder)
        os.remove(self.path(path))
        return lines

    def test_what_is_allowed(self):
        for path, includes in (
                ('src/base/log.c', ('"base/log.h"', '"log.h"', '<stdio.h>')),
                ('src/config/config.c', ('"config/config.h"', '"base/log.h"')),
                ('src/device/cuda_table.c', ('<cuda.h>', '"base/log.h"', '<cuda_runtime_api.h>')),
                ('src/alloc/block.c', ('"config/config.h"', '"observe/unwind.h"',
                                       '"device/device.h"')),
                ('src/snapshot/capture.c', ('"alloc/block.h"', '"config/config.h"')),
                ('src/process/process.c', ('"alloc/block.h"', '"cca/cca.h"', '"snapshot/model.h"')),
                ('preload/hook_runtime.c', ('"hook.h"', '"alloc/allocator.h"', '<cuda.h>',
                                            '"process/process.h"', '"device/cuda_table.h"')),
                ('include/cca/cca_types.h', ('<stdint.h>', '"cca.h"'))):
            with self.subTest(path):
                text = ''.join('#include %s\n' % name for name in includes)
                self.assertEqual(self.found(path, text), [])

    def test_what_is_forbidden(self):
        for path, include in (
                ('src/base/log.c', '"config/config.h"'), ('src/base/log.c', '"../config/config.h"'),
                ('src/config/config.c', '"observe/unwind.h"'), ('src/config/config.c', '<cuda.h>'),
                ('src/device/cuda_table.c', '"observe/unwind.h"'),
                ('src/observe/unwind.c', '"alloc/block.h"'),
                ('src/alloc/block.c', '"device/cuda_table.h"'),
                ('src/alloc/block.c', '"snapshot/model.h"'),
                ('src/snapshot/walk.c', '"alloc/block.h"'),
                ('src/snapshot/walk.c', '<alloc/block.h>'),
                ('src/snapshot/capture.c', '"process/process.h"'),
                ('src/process/process.c', '"preload/hook.h"'),
                ('src/process/process.c', '"cuda.h"'),
                ('preload/hook_runtime.c', '"alloc/block.h"'),
                ('preload/hook_runtime.c', '"config/config.h"'),
                ('include/cca/cca_types.h', '"base/log.h"'),
                ('src/alloc/block.c', '"tests/support/test.h"')):
            with self.subTest(path=path, include=include):
                lines = self.found(path, '/* a\n b */\n#include %s\n' % include)
                self.assertEqual(len(lines), 1, lines)
                self.assertTrue(lines[0].startswith(path + ':3: '), lines)

    def test_includes_in_comments_do_not_count(self):
        self.assertEqual(self.found('src/base/log.c', '/*\n#include "alloc/block.h"\n*/\n'), [])


class Format(FolderTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path('scripts'))
        shutil.copy(os.path.join(SCRIPTS, 'format.sh'), self.path('scripts'))
        shutil.copy(os.path.join(ROOT, '.clang-format'), self.path('.clang-format'))

    def run_it(self, *words, path=None):
        done = subprocess.run(['sh', self.path('scripts', 'format.sh'), *words], cwd='/',
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={'PATH': path or os.environ['PATH']})
        return done.returncode, done.stdout.decode()

    def skip_without_the_tool(self):
        if 'skipped' in self.run_it('--check')[1]:
            self.skipTest('no clang-format 14')

    def test_formats_and_checks(self):
        self.write('src/a.c', 'int  x ;\n')
        self.skip_without_the_tool()
        self.assertNotEqual(self.run_it('--check')[0], 0)
        self.assertEqual(self.run_it(), (0, ''))
        self.assertEqual(self.run_it('--check'), (0, ''))
        with open(self.path('src', 'a.c')) as stream:
            self.assertEqual(stream.read(), 'int x;\n')

    def test_another_version_is_skipped_in_one_line(self):
        os.mkdir(self.path('bin'))
        for name in ('sed', 'dirname', 'find'):
            os.symlink(shutil.which(name), self.path('bin', name))
        fake = self.write('bin/clang-format', '#!/bin/sh\necho "clang-format version 19.1.0"\n')
        shell = shutil.which('sh')
        os.symlink(shell, self.path('bin', 'sh'))
        os.chmod(fake, 0o755)
        self.write('src/a.c', 'int  x ;\n')
        status, out = self.run_it('--check', path=self.path('bin'))
        self.assertEqual((status, out.count('\n')), (0, 1))
        self.assertIn('skipped', out)
        os.remove(fake)
        self.assertIn('none is installed', self.run_it(path=self.path('bin'))[1])

    def test_bad_usage(self):
        self.write('src/a.c', '')
        self.skip_without_the_tool()
        self.assertEqual(self.run_it('--what')[0], 2)


if __name__ == '__main__':
    unittest.main()
