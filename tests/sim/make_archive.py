# SPDX-License-Identifier: MIT
"""make_archive.py ARCHIVE PARTS COMPILER...: all members of PARTS as one object in an archive.

Names that begin with cuda or __cuda stay global, so that a program's references find them; all
others become local and cannot meet names of the program, as in NVIDIA's libcudart_static.a."""
import os
import subprocess
import sys


def main():
    archive, parts = sys.argv[1:3]
    compiler = sys.argv[3:]
    whole = archive + '.o'
    subprocess.run(compiler + ['-r', '-nostdlib', '-o', whole, '-Wl,--whole-archive', parts,
                               '-Wl,--no-whole-archive'], check=True)
    subprocess.run(['objcopy', '--wildcard', '--keep-global-symbol=cuda*',
                    '--keep-global-symbol=__cuda*', whole], check=True)
    if os.path.exists(archive):
        os.remove(archive)
    subprocess.run(['ar', 'rcsD', archive, whole], check=True)
    os.remove(whole)


main()
