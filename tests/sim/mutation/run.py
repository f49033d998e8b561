# SPDX-License-Identifier: MIT
"""run.py BUILD [--quick | NAME...]: does a rule notice each deliberate defect?

For every SIM_DEFECT(name) in the driver, the one file that has it is compiled anew with the defect,
linked with the other objects of the build, and the rules are run over the library until one
disagrees. BUILD is the build folder."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVER = os.path.join(os.path.dirname(HERE), 'driver')
QUICK = ('pools_reuse_too_early', 'captures_allow_frees', 'only_two_writes_meet')


def defects():
    """{name: source}, each name once."""
    found = {}
    for source in sorted(os.listdir(DRIVER)):
        if not source.endswith('.c'):
            continue
        with open(os.path.join(DRIVER, source), encoding='utf-8') as text:
            for name in re.findall(r'SIM_DEFECT\((\w+)\)', text.read()):
                if found.setdefault(name, source) != source:
                    sys.exit('%s is in two files' % name)
    return found


class Builder:
    """Makes libraries with one defect each out of the objects of a build."""

    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as text:
            self.commands = {entry['file']: entry for entry in json.load(text)
                             if 'libcuda.so.1.p' in entry['output']}

    def make(self, name, source):
        """The folder with the library."""
        entry = next(entry for path, entry in self.commands.items()
                     if os.path.realpath(os.path.join(self.build, path)) ==
                     os.path.realpath(os.path.join(DRIVER, source)))
        folder = os.path.join(self.scratch, name)
        os.mkdir(folder)
        command = shlex.split(entry['command'])
        changed = os.path.join(folder, 'changed.o')
        command[command.index('-o') + 1] = changed
        subprocess.run(command + ['-DSIM_DEFECT_%s=1' % name], cwd=self.build, check=True)
        objects = [changed if other['output'] == entry['output'] else other['output']
                   for other in self.commands.values()]
        flags = [flag for flag in command if flag.startswith('-fsanitize')]
        subprocess.run([command[0] if 'ccache' not in command[0] else command[1], '-shared',
                        '-Wl,-Bsymbolic',
                        '-Wl,--version-script=' + os.path.join(DRIVER, 'cuda.map'),
                        '-Wl,-soname,libcuda.so.1', '-o', os.path.join(folder, 'libcuda.so.1')] +
                       flags + objects + ['-lpthread', '-ldl'], cwd=self.build, check=True)
        return folder


def judge(build, folder):
    """The first rule that disagrees, or None."""
    place = os.path.join(build, 'tests', 'sim')
    environment = dict(os.environ, LD_LIBRARY_PATH=folder + ':' + place)
    done = subprocess.run([os.path.join(place, 'conformance', 'sim_rules'), '--stop'], text=True,
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False)
    caught = re.search(r'^not ok \d+ - rule (\S+):', done.stdout, re.M)
    return caught.group(1) if caught else None


def main():
    build, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    found = defects()
    if wanted == ['--quick']:
        wanted = list(QUICK)
    elif not wanted and os.environ.get('CCA_TEST_LEVEL', 'normal') != 'full':
        sys.exit(77)
    names = wanted or sorted(found)
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        builder = Builder(build, scratch)
        for number, name in enumerate(names, 1):
            rule = judge(build, builder.make(name, found[name]))
            missed += rule is None
            print('%s %d - defect %s: %s' % ('ok' if rule else 'not ok', number, name,
                                             'caught by ' + rule if rule else 'not noticed'),
                  flush=True)
    print('1..%d' % len(names))
    sys.exit(1 if missed else 0)


main()
