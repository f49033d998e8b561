# SPDX-License-Identifier: MIT
import json
import os
import unittest

from support import FolderTest, clean_environment, run_tool

from ccatool import elf
from ccatool.linkage import Resolver

RUNTIME = '''
int cudaMalloc(void **p, unsigned long n) { (void)p; (void)n; return 0; }
int cudaFree(void *p) { (void)p; return 0; }
'''
USER = '''
int cudaMalloc(void **, unsigned long); int cudaFree(void *);
int main(void) { void *p = 0; return cudaMalloc(&p, 100) + cudaFree(p); }
'''
STATIC_RUNTIME = '''
const char *marks[] = {"cuGetProcAddress", "libcuda.so.1", "cudaErrorMemoryAllocation"};
int main(int argc, char **argv) { (void)argv; return marks[argc - 1][0] == 0; }
'''
DRIVER = 'int cuMemAlloc_v2(void **p, unsigned long n) { (void)p; (void)n; return 0; }'
DRIVER_USER = '''
int cuMemAlloc_v2(void **, unsigned long);
int main(void) { void *p = 0; return cuMemAlloc_v2(&p, 100); }
'''


class ElfReader(FolderTest):
    def test_true(self):
        image = elf.read('/bin/true')
        self.assertEqual(image.bits, 64)
        self.assertFalse(image.is_static)
        self.assertIn('libc.so.6', image.needed)
        self.assertTrue(any(name.startswith('exit') or name == '__libc_start_main'
                            for name in image.symbols()[0]))

    def test_static(self):
        image = elf.read(self.compile('static', 'int main(void) { return 0; }', '-static'))
        self.assertTrue(image.is_static)
        self.assertEqual(image.needed, [])

    def test_static_pie(self):
        image = elf.read(self.compile('pie', 'int main(void) { return 0; }', '-static-pie'))
        self.assertTrue(image.is_static)

    def test_soname_runpath_and_exports(self):
        library = self.compile('libx.so.1', 'int cca_test_x;', '-shared', '-fPIC',
                               '-Wl,-soname,libx.so.1', '-Wl,-rpath,$ORIGIN/lib:/opt/y',
                               '-Wl,--enable-new-dtags')
        image = elf.read(library)
        self.assertEqual(image.soname, 'libx.so.1')
        self.assertEqual(image.runpath, ['$ORIGIN/lib', '/opt/y'])
        self.assertIn('cca_test_x', image.symbols()[1])

    def test_not_elf_and_damaged(self):
        with self.assertRaises(elf.NotElf):
            elf.Elf(self.write('text', 'just some text, long enough to be looked at'))
        with self.assertRaises(elf.NotElf):
            elf.Elf(self.write('empty', ''))
        with open('/bin/true', 'rb') as stream:
            data = stream.read()
        for length in (20, 40, 64, 100, 200):
            with self.subTest(length), self.assertRaises(elf.Damaged):
                elf.Elf(self.write('cut', data[:length]))

    def test_random_damage_raises_nothing_else(self):
        import random
        rng = random.Random(7)
        with open('/bin/true', 'rb') as stream:
            data = stream.read()
        for _ in range(300):
            damaged = bytearray(data)
            for _ in range(8):
                damaged[rng.randrange(min(2048, len(data)))] = rng.randrange(256)
            try:
                image = elf.Elf(self.write('x', bytes(damaged)))
                image.symbols()
                image.holds(b'libcuda')
            except (elf.NotElf, elf.Damaged):
                pass

    def test_libraries_resolve_through_every_way(self):
        os.makedirs(self.path('lib'))
        inner = self.compile('lib/libinner.so', 'int cca_inner;', '-shared', '-fPIC')
        self.compile('lib/libouter.so',
                     'extern int cca_inner; int *cca_outer(void) { return &cca_inner; }',
                     '-shared', '-fPIC', inner, '-Wl,-soname,libouter.so', '-Wl,--no-as-needed')
        source = 'int *cca_outer(void); int main(void) { return cca_outer() == 0; }'
        flags = ('-L' + self.path('lib'), '-louter', '-Wl,--allow-shlib-undefined')
        for tags, environment in ((('-Wl,-rpath,$ORIGIN/lib', '-Wl,--enable-new-dtags'), {}),
                                  (('-Wl,-rpath,$ORIGIN/lib', '-Wl,--disable-new-dtags'), {}),
                                  ((), {'LD_LIBRARY_PATH': self.path('lib')})):
            with self.subTest(tags):
                image = elf.read(self.compile('app', source, *flags, *tags))
                found = {library.name: library.path
                         for library in Resolver(image, environment).libraries()}
                self.assertEqual(found['libouter.so'], self.path('lib', 'libouter.so'))
                self.assertTrue(found['libc.so.6'])

    def test_a_missing_library_has_no_path(self):
        self.compile('libgone.so', 'int cca_gone(void) { return 0; }', '-shared', '-fPIC')
        app = self.compile('app', 'int cca_gone(void); int main(void) { return cca_gone(); }',
                           '-L' + self.folder, '-lgone')
        found = {library.name: library.path for library in Resolver(elf.read(app), {}).libraries()}
        self.assertIsNone(found['libgone.so'])


class Check(FolderTest):
    def check(self, *words, **extra):
        status, out, err = run_tool('check', '--json', '--', *words, env=clean_environment(**extra))
        self.assertEqual(err, '')
        return status, json.loads(out)

    def shared_runtime_program(self):
        self.compile('libcudart.so.13', RUNTIME, '-shared', '-fPIC', '-Wl,-soname,libcudart.so.13')
        return self.compile('app', USER, self.path('libcudart.so.13'), '-Wl,-rpath,$ORIGIN')

    def test_shared_runtime_is_served(self):
        status, data = self.check(self.shared_runtime_program())
        self.assertEqual(status, 0)
        self.assertTrue(data['served'])
        self.assertTrue(data['doors']['runtime']['present'])
        self.assertEqual(data['calls'], ['cudaFree', 'cudaMalloc'])
        self.assertEqual(data['stops'], [])
        self.assertEqual((data['bits'], data['static']), (64, False))

    def test_shared_runtime_behind_a_library_is_served(self):
        self.shared_runtime_program()
        self.compile('libmid.so', USER.replace('main', 'cca_mid'), '-shared', '-fPIC',
                     self.path('libcudart.so.13'), '-Wl,-rpath,$ORIGIN')
        app = self.compile('app2', 'int cca_mid(void); int main(void) { return cca_mid(); }',
                           '-L' + self.folder, '-lmid', '-Wl,-rpath,$ORIGIN',
                           '-Wl,-rpath-link,' + self.folder)
        status, data = self.check(app)
        self.assertEqual(status, 0)
        self.assertIn('libmid.so needs libcudart.so.13', data['doors']['runtime']['evidence'])

    def test_text_form(self):
        app = self.shared_runtime_program()
        status, out, err = run_tool('check', app)
        self.assertEqual((status, err), (0, ''))
        self.assertEqual(out.splitlines()[0], app)
        self.assertIn('door       shared CUDA runtime: served (app needs libcudart.so.13)', out)
        self.assertEqual(out.splitlines()[-1], '  verdict    will be served')

    def test_static_runtime_is_served(self):
        status, data = self.check(self.compile('app', STATIC_RUNTIME))
        self.assertEqual((status, data['stops']), (0, []))
        self.assertEqual(data['doors']['static']['evidence'], ['app carries one'])

    def test_driver_is_served(self):
        self.compile('libcuda.so.1', DRIVER, '-shared', '-fPIC', '-Wl,-soname,libcuda.so.1')
        status, data = self.check(self.compile('app', DRIVER_USER, self.path('libcuda.so.1')))
        self.assertEqual((status, data['stops']), (0, []))
        self.assertEqual(data['doors']['driver']['evidence'], ['app needs libcuda.so.1'])
        self.assertFalse(data['doors']['runtime']['present'])

    def test_static_runtime_in_a_library_beside_the_shared_one(self):
        self.shared_runtime_program()
        self.compile('libblas.so', STATIC_RUNTIME.replace('main', 'cca_blas'), '-shared', '-fPIC')
        app = self.compile('app3', USER, self.path('libcudart.so.13'), '-Wl,--no-as-needed',
                           '-L' + self.folder, '-lblas', '-Wl,-rpath,$ORIGIN')
        status, data = self.check(app)
        self.assertEqual(status, 0)
        self.assertEqual(data['doors']['static']['evidence'], ['libblas.so carries one'])

    def test_another_hook_of_dlsym_is_a_note(self):
        self.shared_runtime_program()
        self.compile('libhook.so', 'void *dlsym(void *handle, const char *name) '
                                   '{ return name == 0 ? handle : 0; }', '-shared', '-fPIC')
        app = self.compile('app4', USER, self.path('libcudart.so.13'), '-Wl,--no-as-needed',
                           '-L' + self.folder, '-lhook', '-Wl,-rpath,$ORIGIN')
        status, data = self.check(app)
        self.assertEqual(status, 0)
        self.assertTrue(any('libhook.so hooks dlsym' in note for note in data['notes']))

    def test_a_namespace_of_its_own_is_a_note(self):
        app = self.compile('app5', '#define _GNU_SOURCE\n#include <dlfcn.h>\nint main(void) '
                                   '{ return dlmopen(0, "x", 1) == 0; }', '-ldl')
        _, data = self.check(app)
        self.assertTrue(any('dlmopen' in note for note in data['notes']))

    def test_statically_linked_program(self):
        status, data = self.check(self.compile('static', 'int main(void) { return 0; }', '-static'))
        self.assertEqual(status, 1)
        self.assertIn('is statically linked: LD_PRELOAD cannot reach it', data['stops'])

    def test_no_cuda(self):
        status, data = self.check('/bin/true')
        self.assertEqual(status, 1)
        self.assertIn('uses no CUDA', data['stops'][0])

    def test_program_that_loads_later_cannot_be_told(self):
        app = self.compile('app', '#include <dlfcn.h>\nint main(int c, char **v) '
                                  '{ return dlopen(v[c - 1], RTLD_NOW) != 0; }', '-ldl')
        status, data = self.check(app)
        self.assertEqual(status, 0)
        self.assertTrue(data['loads_libraries_at_run_time'])

    def test_asan_is_a_note(self):
        self.shared_runtime_program()
        app = self.compile('asan', USER, '-fsanitize=address', self.path('libcudart.so.13'),
                           '-Wl,-rpath,$ORIGIN')
        status, data = self.check(app)
        if data['asan'] is None:
            self.skipTest('this compiler links the ASan runtime statically')
        self.assertEqual(status, 0)
        self.assertTrue(any('AddressSanitizer' in note for note in data['notes']))

    def test_script_stands_for_its_interpreter(self):
        script = self.write('script', '#!/usr/bin/env -S sh\n')
        os.chmod(script, 0o755)
        _, data = self.check(script)
        self.assertEqual(os.path.basename(data['image']), 'sh')

    def test_missing_program_is_bad_usage(self):
        status, _, err = run_tool('check', '--', './none')
        self.assertEqual(status, 2)
        self.one_line(err)

    def test_nothing_of_the_program_runs(self):
        app = self.compile('app', '#include <stdio.h>\n'
                                  '__attribute__((constructor)) static void f(void)'
                                  '{ fclose(fopen("%s", "w")); }\nint main(void) { return 0; }'
                           % self.path('ran'))
        self.check(app)
        self.assertFalse(os.path.exists(self.path('ran')))


if __name__ == '__main__':
    unittest.main()
