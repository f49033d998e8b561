# SPDX-License-Identifier: MIT
"""What both generators share: the toolkit's headers as the compiler sees them, and prototypes."""
import re
import subprocess
import sys


def preprocess(compiler, text):
    """The text after the preprocessor, on one line, without line markers."""
    done = subprocess.run(compiler + ['-E', '-P', '-x', 'c', '-'], input=text, text=True,
                          stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit('cannot preprocess the CUDA headers')
    return re.sub(r'\s+', ' ', done.stdout)


def prototypes(text, returns, prefix):
    """{name: (return type, parameters)} of every function declared with one of the types."""
    pattern = (r'(?<![\w*])(' + returns + r') ?(?:__attribute__\(\([^)]*\)\) ?)*(' + prefix +
               r'\w+) ?\(([^;{}]*?)\) ?;')
    return {name: (kind.strip(), args.strip()) for kind, name, args in re.findall(pattern, text)}


def arguments(parameters):
    """The argument names of a parameter list, to pass them on."""
    if parameters in ('void', ''):
        return []
    return [re.search(r'(\w+)(?: ?\[[^]]*\])*$', part.strip()).group(1)
            for part in parameters.split(',')]


def enumerators(text, type_name):
    """[(name, value)] of a C enum whose tag or typedef is type_name."""
    body = re.search(r'enum (?:\w+ )?\{([^}]*)\} ?' + type_name + r' ?;', text) or \
        re.search(r'enum ' + type_name + r' \{([^}]*)\}', text)
    return [(name, int(value, 0)) for name, value in
            re.findall(r'(\w+) ?= ?(0x[0-9a-fA-F]+|\d+)', body.group(1))]


def write_if_changed(path, lines):
    with open(path, 'w', encoding='utf-8') as out:
        out.write('\n'.join(lines) + '\n')
