# SPDX-License-Identifier: MIT
"""run.py BUILD [--quick | --learn | NAME...]: does a rule notice each deliberate defect?

For every SIM_DEFECT(name) in the driver, the one file that has it is compiled anew with the defect,
linked with the other objects of the build, and the rules are run over the library until one
disagrees: first the rule that caught_by.txt names, then all. BUILD is the build folder. --learn
runs all defects and writes that file."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVER = os.path.join(os.path.dirname(HERE), 'driver')
CAUGHT_BY = os.path.join(HERE, 'caught_by.txt')
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


def first_difference(build, folder, rules):
    """The first of the rules (none: of all) that disagrees, or None."""
    place = os.path.join(build, 'tests', 'sim')
    environment = dict(os.environ, LD_LIBRARY_PATH=folder + ':' + place)
    done = subprocess.run([os.path.join(place, 'conformance', 'sim_rules'), '--stop'] + rules,
                          text=True, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    caught = re.search(r'^not ok \d+ - rule (\S+):', done.stdout, re.M)
    return caught.group(1) if caught else None


def known_catchers():
    """{defect: rule}, as the last --learn found them."""
    if not os.path.exists(CAUGHT_BY):
        return {}
    with open(CAUGHT_BY, encoding='utf-8') as lines:
        return dict(line.split() for line in lines if not line.startswith('#'))


def write_catchers(caught):
    with open(CAUGHT_BY, 'w', encoding='utf-8') as out:
        out.write('# Each deliberate defect and the rule that notices it; run.py --learn writes this.\n')
        for name, rule in sorted(caught.items()):
            out.write('%s %s\n' % (name, rule))


def main():
    build, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    found = defects()
    if wanted == ['--quick']:
        wanted = list(QUICK)
    elif not wanted and os.environ.get('CCA_TEST_LEVEL', 'normal') != 'full':
        sys.exit(77)
    is_learning = wanted == ['--learn']
    names = sorted(found) if is_learning or not wanted else wanted
    hints = known_catchers()
    caught = {}
    with tempfile.TemporaryDirectory() as scratch:
        builder = Builder(build, scratch)

        def judge(name):
            folder = builder.make(name, found[name])
            rule = first_difference(build, folder, [hints[name]]) if name in hints else None
            return rule or first_difference(build, folder, [])

        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for number, (name, rule) in enumerate(zip(names, pool.map(judge, names)), 1):
                if rule:
                    caught[name] = rule
                    if is_learning:
                        write_catchers({**hints, **caught})
                print('%s %d - defect %s: %s' % ('ok' if rule else 'not ok', number, name,
                                                 'caught by ' + rule if rule else 'not noticed'),
                      flush=True)
    print('1..%d' % len(names))
    sys.exit(1 if len(caught) < len(names) else 0)


main()
