# SPDX-License-Identifier: MIT
"""same.py PROGRAM OTHER: both print the same and end alike, and print something."""
import subprocess
import sys


def run(program):
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False)
    return done.stdout.splitlines(), done.returncode


def main():
    (first, first_status), (second, second_status) = run(sys.argv[1]), run(sys.argv[2])
    print('%d lines, status %d; %d lines, status %d' % (len(first), first_status, len(second),
                                                        second_status))
    for one, other in zip(first, second):
        if one != other:
            print('- %s\n+ %s' % (one, other))
    sys.exit(0 if first and (first, first_status) == (second, second_status) else 1)


main()
