#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlsym under the library answers as without it: usage test_lookup.py LIBRARY SOURCES SIM CC...

The parts are compiled here, once for every way that could change how dlsym is called.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY = SOURCES = SIM = CC = FOLDER = None
WAYS = {'O0': ['-O0'], 'Og': ['-Og'], 'O2': ['-O2'], 'O2 tail': ['-O2', '-foptimize-sibling-calls'],
        'asan': ['-O1', '-fsanitize=address'], 'ubsan': ['-O1', '-fsanitize=undefined'],
        'tsan': ['-O1', '-fsanitize=thread']}
HAS_DRIVER = any(os.path.exists(os.path.join(place, 'libcuda.so.1')) for place in
                 ('/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/lib64'))

# valgrind gives up at forms of DWARF 5 that newer compilers than itself write.
UNREADABLE = 'Possibly corrupted debuginfo file'
UNREADABLE_REASON = "valgrind cannot read this compiler's debug information"


def build(output, *arguments):
    return subprocess.run([*CC, '-o', os.path.join(FOLDER, output), *arguments, '-ldl'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def build_chain(way, flags):
    """The program and two libraries that stand in a row behind it; None when they cannot be."""
    source = os.path.join(SOURCES, 'lookup.c')
    for who in ('1', '2'):
        if build(f'lib{way}{who}.so', *flags, '-shared', '-fPIC', f'-DWHO={who}',
                 source).returncode != 0:
            return None
    done = build(way, *flags, source, '-Wl,--no-as-needed', f'-L{FOLDER}', f'-l:lib{way}1.so',
                 f'-l:lib{way}2.so', '-Wl,-rpath,$ORIGIN')
    return os.path.join(FOLDER, way) if done.returncode == 0 else None


def run(command, preload=(), wrap=(), **more):
    env = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'LD_LIBRARY_PATH': '/nonexistent',
           'ASAN_OPTIONS': 'detect_leaks=0', **more}
    if preload:
        env['LD_PRELOAD'] = ':'.join(preload)
    result = subprocess.run([*wrap, *command], env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                            check=False, universal_newlines=True)
    return result.returncode, result.stdout


def shared_sanitizer(program):
    """A sanitizer's runtime that must come first."""
    needed = subprocess.run(['ldd', program], stdout=subprocess.PIPE, check=True,
                            universal_newlines=True).stdout
    return [line.split()[2] for line in needed.splitlines() if 'libasan' in line]


class Chains(unittest.TestCase):
    def same(self, command, **more):
        first = shared_sanitizer(command[0])
        native = run(command, first, **more)
        self.expect_readable(native[1])
        self.assertEqual(native[0], 0, native[1])
        self.assertIn('chains 21 21\n', native[1])
        hooked = run(command, [*first, LIBRARY], **more)
        self.expect_readable(hooked[1])
        self.assertEqual(hooked, native)
        return native[1]

    def expect_readable(self, output):
        if UNREADABLE in output:
            self.skipTest(UNREADABLE_REASON)

    def program(self, way):
        program = build_chain(way.replace(' ', '-'), WAYS[way])
        if program is None:
            self.skipTest('this compiler cannot build it')
        return program

    def test_next_and_default_mean_what_they_meant(self):
        for way in WAYS:
            with self.subTest(way=way):
                output = self.same([self.program(way)])
                if not HAS_DRIVER:
                    self.assertNotIn('there', output)

    def test_a_library_opened_locally_is_found_by_its_handle_alone(self):
        output = self.same([self.program('O2'), os.path.join(SIM, 'libcuda.so.1')])
        self.assertIn('handle cuMemAlloc_v2 there, no error', output)
        self.assertIn('default cuMemAlloc_v2 absent, an error', output)

    def test_with_the_library_turned_off(self):
        for setting in ({'CCA_MODE': 'off'}, {'CCA_DISABLE': '1'}):
            self.same([self.program('O0'), os.path.join(SIM, 'libcuda.so.1')], **setting)

    def test_a_driver_in_the_program_is_found(self):
        """Then our names are no more than what the program would have found."""
        source = os.path.join(SOURCES, 'lookup.c')
        self.assertEqual(build('linked', '-O0', source, '-Wl,--no-as-needed', f'-L{SIM}',
                               '-l:libcuda.so.1', f'-Wl,-rpath,{SIM}').returncode, 0)
        native = run([os.path.join(FOLDER, 'linked')])
        self.assertIn('default cuMemAlloc_v2 there, no error', native[1])
        self.assertEqual(run([os.path.join(FOLDER, 'linked')], [LIBRARY]), native)

    @unittest.skipUnless(shutil.which('valgrind'), 'no valgrind')
    def test_under_valgrind(self):
        wrap = ['valgrind', '-q', '--error-exitcode=9']
        self.same([self.program('O0'), os.path.join(SIM, 'libcuda.so.1')], wrap=wrap)


@unittest.skipIf(HAS_DRIVER, 'a driver is installed')
class Weak(unittest.TestCase):
    """Weak references become strong: their calls get CUDA's own kind of answer."""

    def test_calls_report_that_cuda_cannot_start(self):
        self.assertEqual(build('weak', os.path.join(SOURCES, 'weak.c')).returncode, 0)
        command = [os.path.join(FOLDER, 'weak')]
        status, output = run(command)
        self.assertEqual(status, 0)
        self.assertEqual({line.split()[1] for line in output.splitlines()}, {'-1'})
        for setting in ({}, {'CCA_MODE': 'off'}):
            status, output = run(command, [LIBRARY], **setting)
            self.assertEqual(status, 0, output)
            self.assertEqual({line.split()[1] for line in output.splitlines()}, {'3'}, output)


class Stub(unittest.TestCase):
    """The stub alone, also for a processor that is not this one."""

    def check(self, compiler, folder, runner=()):
        where = os.path.join(FOLDER, folder)
        os.makedirs(where)
        source = os.path.join(SOURCES, 'stub.c')
        parts = {
            'libstub.so': ['-O2', '-fvisibility=hidden', '-shared', '-fPIC', source,
                           os.path.join(SOURCES, '..', '..', 'preload', 'dlsym.S')],
            'lib1.so': ['-O0', '-shared', '-fPIC', '-DWHO=1', os.path.join(SOURCES, 'lookup.c')],
            'lib2.so': ['-O0', '-shared', '-fPIC', '-DWHO=2', os.path.join(SOURCES, 'lookup.c')],
            'answered': ['-O1', '-DMAIN', source],
            'chain': ['-O0', os.path.join(SOURCES, 'lookup.c'), '-Wl,--no-as-needed',
                      os.path.join(where, 'lib1.so'), os.path.join(where, 'lib2.so')],
        }
        for name, arguments in parts.items():
            done = subprocess.run([*compiler, '-D_GNU_SOURCE', '-o', os.path.join(where, name),
                                   *arguments, '-ldl'], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
        stub = os.path.join(where, 'libstub.so')

        def start(name, preload):
            # An emulator must not get them itself.
            inner = [f'LD_LIBRARY_PATH={where}'] + ([f'LD_PRELOAD={stub}'] if preload else [])
            wrap = [*runner, *(word for one in inner for word in ('-E', one))] if runner else [
                'env', *inner]
            return run([os.path.join(where, name)], wrap=wrap)

        native = start('chain', False)
        self.assertIn('chains 21 21\n', native[1])
        self.assertEqual(start('chain', True), native)
        self.assertEqual(start('answered', False), (0, 'answered 0, other absent\n'))
        self.assertEqual(start('answered', True), (0, 'answered 42, other absent\n'))

    def test_of_this_processor(self):
        self.check(CC, 'stub-here')

    @unittest.skipUnless(os.environ.get('CCA_TEST_LEVEL') == 'full', 'only in full')
    def test_of_aarch64(self):
        if not (shutil.which('aarch64-linux-gnu-gcc') and shutil.which('qemu-aarch64') and
                os.path.exists('/usr/aarch64-linux-gnu/include/stdio.h')):
            self.skipTest('no cross compiler, no C library for it, or no emulator')
        self.check(['aarch64-linux-gnu-gcc'], 'stub-aarch64',
                   ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu'])


class Newer(unittest.TestCase):
    """Forms of functions that came after this library pass by, and one line tells so."""

    def run_both(self, name):
        source = os.path.join(SOURCES, 'newer.c')
        folder = os.path.join(FOLDER, 'newer-driver')
        os.makedirs(folder, exist_ok=True)
        self.assertEqual(build('newer-driver/libcuda.so.1', '-DDRIVER', '-shared', '-fPIC',
                               '-Wl,-soname,libcuda.so.1', source).returncode, 0)
        self.assertEqual(build('newer', source).returncode, 0)
        command = [os.path.join(FOLDER, 'newer'), name]
        native = run(command, LD_LIBRARY_PATH=folder)
        self.assertIn(' 77\n' if name == 'cuMemAlloc' else ' 0\n', native[1])
        hooked = run(command, [LIBRARY], LD_LIBRARY_PATH=folder)
        said = [line for line in hooked[1].splitlines() if line.startswith('cca: ')]
        seen = ''.join(line + '\n' for line in hooked[1].splitlines() if line not in said)
        self.assertEqual((hooked[0], seen), native)
        return said

    def test_they_pass_by_and_it_is_told_once(self):
        said = self.run_both('cuMemAlloc')
        self.assertEqual(len(said), 1, said)
        self.assertIn('newer form of cuMemAlloc than cuMemAlloc_v2', said[0])

    def test_captures_too(self):
        said = self.run_both('cuStreamBeginCapture')
        self.assertEqual(len(said), 2, said)
        self.assertIn('newer form of cuStreamBeginCapture than cuStreamBeginCapture', said[0])

    def test_another_way_to_begin_a_capture(self):
        said = self.run_both('cuStreamBeginOtherCapture')
        self.assertIn('cca: cuStreamBeginOtherCapture is not known here, but begins captures: '
                      'nothing is cached', said)


@unittest.skipUnless(shutil.which('valgrind'), 'no valgrind')
class Cost(unittest.TestCase):
    LIMIT, CALLS = 30, 2000

    def instructions(self, preload):
        out = os.path.join(FOLDER, 'callgrind.out')
        counts = []
        for calls in (0, self.CALLS):
            status, output = run([os.path.join(FOLDER, 'many'), str(calls)], preload,
                                 wrap=['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}'])
            if UNREADABLE in output:
                self.skipTest(UNREADABLE_REASON)
            self.assertEqual(status, 0, output)
            counts.append(int(output.split('Collected :')[1].split()[0]))
        return (counts[1] - counts[0]) / self.CALLS

    def test_names_of_others_cost_next_to_nothing(self):
        self.assertEqual(build('many', '-O1', os.path.join(SOURCES, 'many.c')).returncode, 0)
        native, hooked = self.instructions(()), self.instructions((LIBRARY,))
        print(f'dlsym takes {native:.0f} instructions, {hooked - native:+.1f} with the library',
              file=sys.stderr)
        self.assertLessEqual(hooked - native, self.LIMIT)


if __name__ == '__main__':
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    LIBRARY, SOURCES, SIM = (os.path.abspath(path) for path in sys.argv[1:4])
    CC = sys.argv[4:]
    with tempfile.TemporaryDirectory(prefix='cca-lookup-') as FOLDER:
        unittest.main(argv=sys.argv[:1])
