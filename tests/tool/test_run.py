# SPDX-License-Identifier: MIT
import os
import stat
import unittest

from support import TOOL, FolderTest, clean_environment, run_tool

from ccatool import verb_run
from ccatool.main import split_command

SHOW_ENVIRONMENT = ('/usr/bin/env',)


class PreloadList(unittest.TestCase):
    def test_behind_what_is_there(self):
        self.assertEqual(verb_run.preload_list('', '/l/our.so', False, None), '/l/our.so')
        self.assertEqual(verb_run.preload_list('a.so b.so:c.so', '/l/our.so', False, None),
                         'a.so:b.so:c.so:/l/our.so')

    def test_first(self):
        self.assertEqual(verb_run.preload_list('a.so', '/l/our.so', True, None), '/l/our.so:a.so')

    def test_never_twice(self):
        given = '/x/libcca_preload.so:a.so'
        self.assertEqual(verb_run.preload_list(given, '/l/libcca_preload.so', False, None), given)
        self.assertEqual(verb_run.preload_list('a.so:/x/libcca_preload.so', '/l/libcca_preload.so',
                                               True, None), '/x/libcca_preload.so:a.so')

    def test_asan_before_all(self):
        self.assertEqual(verb_run.preload_list('a.so', '/l/our.so', True, '/lib/libasan.so.8'),
                         '/lib/libasan.so.8:/l/our.so:a.so')
        self.assertEqual(verb_run.preload_list('libasan.so.8 a.so', '/l/our.so', False,
                                               '/lib/libasan.so.8'),
                         '/lib/libasan.so.8:a.so:/l/our.so')


class SplitCommand(unittest.TestCase):
    def test_parts(self):
        values = ('-o', '--set')
        for words, options, command in (
                ('-o d -- app x', '-o d', 'app x'), ('-o d app -o x', '-o d', 'app -o x'),
                ('app -- x', '', 'app -- x'), ('--set=A=1 app', '--set=A=1', 'app'),
                ('-- -odd', '', '-odd'), ('--first', '--first', ''), ('-o', '-o', '')):
            with self.subTest(words):
                self.assertEqual(split_command(words.split(), values),
                                 (options.split(), command.split()))


class Run(FolderTest):
    def setUp(self):
        super().setUp()
        self.library = self.compile('libcca_preload.so', 'int cca_test_library;',
                                    '-shared', '-fPIC')

    def run_it(self, *words, **extra):
        return run_tool('run', '--library', self.library, *words, cwd=self.folder,
                        env=clean_environment(**extra))

    def environment_of(self, *words, **extra):
        status, out, err = self.run_it(*words, '--', *SHOW_ENVIRONMENT, **extra)
        self.assertEqual((status, err), (0, ''))
        return dict(line.split('=', 1) for line in out.splitlines() if '=' in line)

    def test_preload_and_variables_reach_the_program(self):
        found = self.environment_of('--set', 'MAX_SPLIT_SIZE=512M', '--set', 'CCA_HISTORY=off',
                                    '--set', 'log-level=info', '--mode', 'count')
        self.assertEqual(found['LD_PRELOAD'], self.library)
        self.assertEqual(found['CCA_MAX_SPLIT_SIZE'], '512M')
        self.assertEqual(found['CCA_HISTORY'], 'off')
        self.assertEqual(found['CCA_LOG_LEVEL'], 'info')
        self.assertEqual(found['CCA_MODE'], 'count')

    def test_existing_entries_stay_in_front(self):
        other = self.compile('other.so', 'int cca_test_other;', '-shared', '-fPIC')
        self.assertEqual(self.environment_of(LD_PRELOAD=other)['LD_PRELOAD'],
                         other + ':' + self.library)
        self.assertEqual(self.environment_of('--first', LD_PRELOAD=other)['LD_PRELOAD'],
                         self.library + ':' + other)

    def test_output_folder_is_made_and_named(self):
        found = self.environment_of('-o', 'a/b')
        self.assertTrue(os.path.isdir(self.path('a', 'b')))
        self.assertEqual(os.path.realpath(os.path.dirname(found['CCA_DUMP_FILE'])),
                         os.path.realpath(self.path('a', 'b')))
        self.assertTrue(found['CCA_DUMP_FILE'].endswith('/a/b/cca-%h-%p-%n'))

    def test_output_folder_joins_the_users_pattern(self):
        found = self.environment_of('-o', 'd', CCA_DUMP_FILE='x/mine-%p')
        self.assertTrue(found['CCA_DUMP_FILE'].endswith('/d/x/mine-%p'))
        self.assertTrue(os.path.isdir(self.path('d', 'x')))
        found = self.environment_of('-o', 'd', '--set', 'DUMP_FILE=/tmp/mine-%p')
        self.assertTrue(found['CCA_DUMP_FILE'].endswith('/d/mine-%p'))

    def test_percent_in_the_output_folder_is_not_a_part_of_the_pattern(self):
        found = self.environment_of('-o', 'a%p')
        self.assertTrue(os.path.isdir(self.path('a%p')))
        self.assertTrue(found['CCA_DUMP_FILE'].endswith('/a%%p/cca-%h-%p-%n'))

    def test_output_that_cannot_be(self):
        self.write('file', '')
        for words in (('-o', 'file'), ('-o', 'file/x')):
            status, _, err = self.run_it(*words, 'true')
            self.assertEqual(status, 2)
            self.one_line(err, 'cca: -o ')

    def test_status_and_arguments_are_the_programs(self):
        status, out, _ = self.run_it('--', 'sh', '-c', 'printf %s "$1"; exit 7', 'x', '--first')
        self.assertEqual((status, out), (7, '--first'))

    def test_program_not_found(self):
        for word in ('no-such-program-here', './none'):
            status, _, err = self.run_it(word)
            self.assertEqual(status, 127)
            self.assertIn('not found', self.one_line(err))

    def test_program_not_executable(self):
        plain = self.write('plain', 'text')
        status, _, err = self.run_it(plain)
        self.assertEqual(status, 126)
        self.assertIn('not executable', self.one_line(err))
        os.chmod(plain, 0o755)
        status, _, err = self.run_it(plain)
        self.assertEqual(status, 126)
        self.assertIn('neither ELF nor', self.one_line(err))
        status, _, err = self.run_it(self.folder)
        self.assertEqual(status, 126)

    def test_script_runs_and_one_without_interpreter_is_not_found(self):
        script = self.write('script', '#!/bin/sh\necho "$LD_PRELOAD"\n')
        os.chmod(script, 0o755)
        self.assertEqual(self.run_it(script)[:2], (0, self.library + '\n'))
        script = self.write('script2', '#!/no/such/shell\n')
        os.chmod(script, 0o755)
        status, _, err = self.run_it(script)
        self.assertEqual(status, 127)
        self.one_line(err)

    def test_static_program_is_refused_unless_forced(self):
        static = self.compile('static', 'int main(void) { return 3; }', '-static')
        status, _, err = self.run_it(static)
        self.assertEqual(status, 2)
        self.assertEqual(err, 'cca: %s is statically linked: LD_PRELOAD cannot reach it\n' % static)
        self.assertEqual(self.run_it('--force', static)[0], 3)

    def test_32_bit_program_is_refused(self):
        # A made-up 32-bit header with no segments: enough for the reader, which never runs it.
        header = b'\x7fELF\x01\x01\x01' + bytes(9) + b'\x02\0\x03\0\x01\0\0\0' + bytes(32)
        path = self.write('app32', header)
        os.chmod(path, 0o755)
        status, _, err = self.run_it(path)
        self.assertEqual(status, 2)
        self.assertIn('is a 32-bit program', self.one_line(err))

    def test_asan_runtime_comes_first(self):
        program = self.compile('asan', 'int main(void) { return 0; }', '-fsanitize=address')
        from ccatool import program as programs
        found = verb_run.asan_runtime(programs.resolve(program))
        if found is None:
            self.skipTest('this compiler links the ASan runtime statically')
        self.assertTrue(os.path.isfile(found))
        self.assertEqual(self.run_it(program)[0], 0)

    def test_bad_settings(self):
        for text, expected in (('MODE', 'NAME=VALUE'), ('MODEE=off', 'did you mean CCA_MODE')):
            status, _, err = self.run_it('--set', text, 'true')
            self.assertEqual(status, 2)
            self.assertIn(expected, self.one_line(err))

    def test_library_path_that_ld_preload_cannot_hold(self):
        os.mkdir(self.path('a b'))
        path = self.write('a b/libcca_preload.so', '')
        status, _, err = run_tool('run', '--library', path, 'true')
        self.assertEqual(status, 2)
        self.assertIn('blank or a colon', self.one_line(err))

    def test_set_user_id_program_is_refused_to_others(self):
        from ccatool import program as programs
        path = self.write('tool', '')
        os.chmod(path, stat.S_ISUID | 0o755)
        if not os.stat(path).st_mode & stat.S_ISUID:
            self.skipTest('the folder takes no set-user-ID files')
        self.assertIsNone(programs.secure_reason(path))
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
            os.chmod(path, stat.S_ISUID | 0o755)
            if not os.statvfs(path).f_flag & os.ST_NOSUID:
                self.assertEqual(programs.secure_reason(path), 'is set-user-ID')


class BuiltLibrary(FolderTest):
    def test_the_built_tool_finds_the_built_library(self):
        built = os.path.join(os.path.dirname(os.path.dirname(TOOL)), 'preload', 'libcca_preload.so')
        if not os.path.isfile(built):
            self.skipTest('no library beside this tool')
        status, out, err = run_tool('run', '--', *SHOW_ENVIRONMENT)
        self.assertEqual((status, err), (0, ''))
        self.assertIn('LD_PRELOAD=%s\n' % built, out)


class ShowConfig(FolderTest):
    def rows(self, *words, **extra):
        status, out, err = run_tool('run', *words, '--show-config', env=clean_environment(**extra))
        self.assertEqual((status, err), (0, ''))
        return {line.split(None, 1)[0]: ' '.join(line.split(None, 1)[1].split())
                for line in out.splitlines()}

    def test_sources_of_values(self):
        rows = self.rows('--set', 'MAX_SPLIT_SIZE=512M', CCA_HISTORY='state',
                         CCA_MAX_ENTRIES='many', CCA_NONSENSE='1', CCA_CONTEXT='')
        self.assertEqual(rows['CCA_MAX_SPLIT_SIZE'], '536870912 command line')
        self.assertEqual(rows['CCA_HISTORY'], 'state environment')
        self.assertEqual(rows['CCA_MAX_ENTRIES'], '100000 default; bad value many')
        self.assertEqual(rows['CCA_NONSENSE'], '1 unknown, ignored')
        self.assertEqual(rows['CCA_CONTEXT'], 'alloc default')

    def test_variables_that_overrule_the_mode(self):
        self.assertEqual(self.rows(CCA_DISABLE='yes')['CCA_MODE'], 'off CCA_DISABLE=1')
        self.assertEqual(self.rows(CCA_FREE_SYNC='native')['CCA_MODE'],
                         'count CCA_FREE_SYNC=native')

    def test_output_folder_shows(self):
        self.assertIn('/somewhere/cca-%h-%p-%n', self.rows('-o', '/somewhere')['CCA_DUMP_FILE'])


if __name__ == '__main__':
    unittest.main()
