#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The preload library as the loader sees it: usage test_preload.py LIBRARY HOOKS.DEF

Programs without CUDA must not notice it, and its ELF file must need and show nothing else.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

LIBRARY = HOOKS = None
PYTHON = sys.executable


def environment(preload=True, **more):
    """A clean environment: ours is not what is tested."""
    env = {'PATH': os.environ.get('PATH', '/usr/bin:/bin'), 'HOME': '/', **more}
    if preload:
        env['LD_PRELOAD'] = LIBRARY
    return env


def run(command, preload=True, cwd=None, **more):
    return subprocess.run(command, env=environment(preload, **more), cwd=cwd,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)


def tool(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True,
                          universal_newlines=True, env=environment(False, LC_ALL='C')).stdout


def hook_rows():
    """(exported name, door, action) of every row of hooks.def."""
    with open(HOOKS, encoding='ascii') as file:
        rows = re.findall(r'^HOOK\((\w+), (\w+), (\w+), (\w+),', file.read(), re.M)
    return [(name + suffix, door, action) for name, variants, door, action in rows
            for suffix in (('', '_ptsz') if variants == 'PTSZ' else ('',))]


def symbols(option):
    """(type, name) rows of the dynamic symbol table."""
    rows = (line.split() for line in tool('nm', '-D', option, LIBRARY).splitlines())
    return [(row[-2], row[-1]) for row in rows if row]


class Programs(unittest.TestCase):
    """Nothing in a program without CUDA tells that the library is there."""

    COMMANDS = (
        ['/bin/true'],
        ['/bin/false'],
        ['/bin/sh', '-c', 'echo out; echo err >&2; exit 7'],
        ['bash', '-c', 'x=$(echo a | cat); (exit 3); echo "$x $?"; ls /proc/self/fd | wc -l'],
        [PYTHON, '-c', 'import os, threading; print(len(os.listdir("/proc/self/task")), '
                       'len(os.listdir("/proc/self/fd")), threading.active_count())'],
        [PYTHON, '-c', 'import os; pid = os.fork()\n'
                       'if pid == 0: os._exit(5)\n'
                       'print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))'],
        [PYTHON, '-c', 'import os, signal; print(signal.getsignal(signal.SIGUSR1)); '
                       'os.kill(os.getpid(), signal.SIGUSR1)'],
    )

    def same(self, command, **more):
        with tempfile.TemporaryDirectory() as folder:
            plain = run(command, preload=False, cwd=folder, **more)
            hooked = run(command, cwd=folder, **more)
            self.assertEqual(os.listdir(folder), [], 'a file appeared')
        self.assertEqual((hooked.returncode, hooked.stdout, hooked.stderr),
                         (plain.returncode, plain.stdout, plain.stderr))

    def test_output_status_threads_and_files_are_the_same(self):
        for command in self.COMMANDS:
            with self.subTest(command=command):
                self.same(command)

    def test_every_symbol_can_be_bound_at_once(self):
        self.same(['/bin/true'], LD_BIND_NOW='1')

    def test_bad_variables_are_not_complained_about(self):
        self.same([PYTHON, '-c', 'print(1)'], CCA_MODE='nonsense', CCA_NO_SUCH_VARIABLE='1')

    def test_the_library_may_be_turned_off(self):
        self.same(['bash', '-c', 'echo $CCA_MODE'], CCA_MODE='off')


class File(unittest.TestCase):
    """What the ELF file needs and shows."""

    def test_nothing_is_needed_but_libc(self):
        dynamic = tool('readelf', '-d', LIBRARY)
        needed = re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic)
        self.assertEqual([name for name in needed if not name.startswith('ld-linux')],
                         ['libc.so.6'])
        self.assertNotIn('TEXTREL', dynamic)
        self.assertNotIn('RPATH', dynamic)
        self.assertNotIn('RUNPATH', dynamic)

    def test_exports_are_the_hooks_and_our_own_names(self):
        hooks = {name for name, *_ in hook_rows()} | {'dlsym', 'dlclose'}
        exported = {name for _, name in symbols('--defined-only')}
        self.assertGreater(len(hooks), 50)
        self.assertEqual({name for name in exported if not name.startswith('cca_')}, hooks)
        self.assertIn('cca_api_1', exported)

    def test_older_names_are_followed_like_the_newer_ones(self):
        actions = {name: action for name, _, action in hook_rows()}
        for new in [name for name in actions if re.search('_v[2-9]$', name)]:
            for old in [name for name in actions if name == new[:-3]]:
                with self.subTest(name=old):
                    self.assertEqual(actions[old], actions[new])

    def test_exports_carry_no_version(self):
        self.assertNotIn('Version definition', tool('readelf', '-V', LIBRARY))

    def test_nothing_of_cuda_or_of_an_unwinder_is_undefined(self):
        undefined = [name for _, name in symbols('--undefined-only')]
        self.assertEqual([name for name in undefined
                          if re.match(r'cu[A-Z]|cuda|unw_|_Unwind_|_U', name)], [])

    def test_malloc_is_not_even_imported(self):
        names = {name.split('@')[0] for _, name in symbols('--undefined-only')}
        self.assertIn('pthread_create', names)
        self.assertEqual(names & {'malloc', 'calloc', 'realloc', 'free', 'printf', 'fopen'}, set())

    def test_segments_are_as_strict_as_they_can_be(self):
        headers = tool('readelf', '-lW', LIBRARY)
        self.assertIn('GNU_RELRO', headers)
        self.assertRegex(headers, r'GNU_STACK.* RW +0x')
        self.assertNotRegex(headers, r'LOAD.* RWE ')


class Cost(unittest.TestCase):
    PAIRS, LIMIT_MS, TRIES = 100, 1.0, 12

    @staticmethod
    def run_ms(env):
        """Processor time of one run: time on the clock says more about the neighbours."""
        pid = os.posix_spawn('/bin/true', ['/bin/true'], env)
        usage = os.wait4(pid, 0)[2]
        return (usage.ru_utime + usage.ru_stime) * 1e3

    def test_loading_costs_less_than_a_millisecond(self):
        for _ in range(self.TRIES):
            plain, hooked = [], []
            for _ in range(self.PAIRS):
                plain.append(self.run_ms(environment(False)))
                hooked.append(self.run_ms(environment()))
            median = statistics.median(b - a for a, b in zip(plain, hooked))
            # On a busy machine every figure grows; the quiet tenth of the runs still tells.
            quiet = statistics.quantiles(hooked, n=10)[0] - statistics.quantiles(plain, n=10)[0]
            print(f'loading costs {median:.3f} ms, {quiet:.3f} ms in the quiet tenth, '
                  f'of {statistics.median(plain):.3f} ms', file=sys.stderr)
            if min(median, quiet) < self.LIMIT_MS:
                return
        self.fail(f'loading costs {median:.3f} ms')


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    LIBRARY, HOOKS = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
