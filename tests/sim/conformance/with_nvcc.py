# SPDX-License-Identifier: MIT
"""with_nvcc.py NVCC INCLUDE LIBRARIES: builds the rules as CUDA programs are built, runs them.

LIBRARIES is the folder of the simulator. On a machine with a device, give a folder without one:
then the rules judge NVIDIA's driver and runtime."""
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    nvcc, include, libraries = sys.argv[1:4]
    if os.environ.get('CCA_TEST_LEVEL', 'normal') != 'full':
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'rules')
        sources = [os.path.join(HERE, 'kernels.cu'), os.path.join(HERE, 'needs.c'),
                   os.path.join(HERE, 'rule.c'),
                   os.path.join(HERE, '..', 'tests', 'check.c')]
        stubs = os.path.join(include, '..', 'lib64', 'stubs')
        subprocess.run([nvcc, '-arch=sm_80', '-cudart', 'shared', '-I', include, '-D_GNU_SOURCE',
                        '-o', program] + sources + sorted(glob.glob(HERE + '/rules_*.c')) +
                       ['-L' + stubs, '-lcuda'], check=True)
        environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
        sys.exit(subprocess.run([program], env=environment, check=False).returncode)


main()
