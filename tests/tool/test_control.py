# SPDX-License-Identifier: MIT
"""cca trim and cca reset-peak, against a program that tells which order reached it."""
import json
import unittest

from support import FolderTest, call_tool, clean_environment

SOURCE = '''#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile sig_atomic_t order = -1;
static void handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    order = info->si_code == SI_QUEUE ? info->si_value.sival_int : -2;
}
int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
    if (argc > 2) {
        sigaction(atoi(argv[2]), &action, NULL);
    }
    printf("ready\\n");
    fflush(stdout);
    while (order == -1) {
        usleep(1000);
    }
    printf("order %d\\n", (int)order);
    return 0;
}
'''


class Control(FolderTest):
    def start(self, number=61, library='libcca_preload.so', **extra):
        program = self.compile('stand_in', SOURCE)
        words = [program, self.write(library, 'x' * 4096)] + ([str(number)] if number else [])
        return self.start_ready(words, env=clean_environment(**extra))

    def test_orders_reach_the_program(self):
        for verb, order in (('trim', b'order 1\n'), ('reset-peak', b'order 2\n')):
            process = self.start()
            status, out, err = call_tool(verb, str(process.pid))
            self.assertEqual((status, err), (0, ''))
            self.assertIn(str(process.pid), out)
            self.assertEqual(process.stdout.readline(), order)

    def test_json_and_another_signal(self):
        process = self.start(number=40, CCA_CONTROL_SIGNAL='40')
        _, out, _ = call_tool('trim', '--json', str(process.pid))
        self.assertEqual(json.loads(out), {'pid': process.pid, 'signal': 'SIGRTMIN+6',
                                           'order': 'trim'})
        self.assertEqual(process.stdout.readline(), b'order 1\n')

    def refused(self, process, expected):
        for verb in ('trim', 'reset-peak'):
            status, out, err = call_tool(verb, str(process.pid))
            self.assertEqual((status, out), (2, ''))
            self.assertIn(expected, self.one_line(err))
            self.assertIsNone(process.poll())

    def test_refuses_where_the_signal_would_end_the_program(self):
        self.refused(self.start(number=None), 'does not handle SIGRTMAX-3')
        self.refused(self.start(library='libother.so'), 'does not have libcca_preload.so loaded')
        self.refused(self.start(CCA_CONTROL_SIGNAL='none'), 'CCA_CONTROL_SIGNAL=none')

    def test_no_such_process(self):
        for pid in ('0', '4194305'):
            status, _, err = call_tool('trim', pid)
            self.assertEqual(status, 2)
            self.one_line(err)


if __name__ == '__main__':
    unittest.main()
