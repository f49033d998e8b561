# SPDX-License-Identifier: MIT
"""with_nvcc.py NVCC INCLUDE LIBRARIES: builds the rules as CUDA programs are built, over the shared
runtime of the folder LIBRARIES and over its static archive, and runs both: the verdicts must be
good, and equal."""
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def build_and_run(nvcc, include, libraries, runtime):
    """(verdicts, status) of the rules over that runtime."""
    sources = [os.path.join(HERE, name) for name in ('kernels.cu', 'needs.c', 'process.c', 'rule.c')]
    sources += sorted(glob.glob(HERE + '/rules_*.c'))
    sources.append(os.path.join(HERE, '..', 'tests', 'check.c'))
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'rules')
        stubs = os.path.join(include, '..', 'lib64', 'stubs')
        subprocess.run([nvcc, '-arch=sm_80', '-I', include, '-D_GNU_SOURCE', '-o', program] +
                       sources + runtime + ['-L' + stubs, '-lcuda'], check=True)
        done = subprocess.run([program, '--once'], env=dict(os.environ, LD_LIBRARY_PATH=libraries),
                              stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout, done.returncode


def main():
    nvcc, include, libraries = sys.argv[1:4]
    if os.environ.get('CCA_TEST_LEVEL', 'normal') != 'full':
        sys.exit(77)
    archive = os.path.join(libraries, 'libcudart_static.a')
    shared = build_and_run(nvcc, include, libraries, ['-cudart', 'shared'])
    static = build_and_run(nvcc, include, libraries, ['-cudart', 'none', archive])
    print(shared[0])
    if shared != static:
        sys.exit('the static archive differs:\n' + static[0])
    sys.exit(shared[1])


main()
