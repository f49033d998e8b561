# SPDX-License-Identifier: MIT
"""Rows of the library's definition files, so that tool and library never disagree.

They are read from the source tree, or from the copies that the build puts beside this file.
"""
import os
import re

from .failure import Failure

FOLDERS = {'options.def': 'config', 'metrics.def': 'process'}
STRING = r'"(?:[^"\\]|\\.)*"'


def rows(name, kinds):
    """(kind, fields) of each row `KIND(field, ...)` of the given kinds, in the file's order."""
    source = re.sub(r'/\*.*?\*/', '', text_of(name), flags=re.S)
    pattern = r'^(%s)\(((?:%s|[^")])*)\)' % ('|'.join(kinds), STRING)
    for match in re.finditer(pattern, source, flags=re.M):
        fields = re.findall(r'(?:%s|[^",])+' % STRING, match.group(2))
        yield match.group(1), [field.strip() for field in fields]


def text_of(name):
    here = os.path.dirname(os.path.realpath(__file__))
    for folder in (here, os.path.join(here, '..', '..', 'src', FOLDERS[name])):
        try:
            with open(os.path.join(folder, name), encoding='utf-8') as stream:
                return stream.read()
        except OSError:
            continue
    raise Failure('%s not found beside the tool' % name)


def unquoted(code):
    """The text of C string literals that stand side by side."""
    return ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', code))
