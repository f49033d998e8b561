# SPDX-License-Identifier: MIT
"""Where a process will put its next snapshot: CCA_DUMP_FILE turned into file name patterns."""
import glob
import os
import re

from . import variables

# What the library puts behind a pattern that names a folder only.
DEFAULT_NAME = 'cca-%h-%p-%n'
SUFFIXES = {'pickle': '.pickle', 'json': '.json', 'text': '.txt'}


def as_glob(pattern, pid):
    """The pattern with the pid filled in, everything else that varies as a wildcard."""
    if pattern.endswith('/'):
        pattern += DEFAULT_NAME

    def filled_in(match):
        text = match.group()
        if text == '%p':
            return str(pid)
        if text == '%%':
            return '%'
        return '*' if text[0] == '%' and text[1:] else glob.escape(text)

    return re.sub(r'%[hprnetc%]|.', filled_in, pattern, flags=re.S)


class DumpFiles:
    """The files that a process may write, and those of them that were there before."""

    def __init__(self, process):
        environment = process.environment()
        rows = variables.known()
        pattern = environment.get('CCA_DUMP_FILE') or rows['CCA_DUMP_FILE'].default
        formats = rows['CCA_DUMP_FORMAT'].effective(environment.get('CCA_DUMP_FORMAT') or 'pickle')
        self.suffixes = [SUFFIXES[word] for word in (formats or 'pickle').split(',')
                         if word in SUFFIXES] or ['.pickle']
        root = process.root()
        folder = process.working_directory()
        spare = environment.get('TMPDIR') or '/tmp'
        name = as_glob(pattern, process.own_pid())
        self._globs = [root + os.path.join(glob.escape(folder), name),
                       root + os.path.join(glob.escape(spare), os.path.basename(name))]
        self._before = self._present()

    def folders(self):
        """The places that are looked at, for messages."""
        return sorted({os.path.dirname(pattern) for pattern in self._globs})

    def _present(self):
        """(path, inode) of all fitting files; a number may stand before the suffix."""
        found = set()
        for pattern in self._globs:
            for suffix in self.suffixes:
                for form in (pattern + suffix, pattern + '-[0-9]*' + suffix):
                    for path in glob.glob(form):
                        try:
                            found.add((path, os.stat(path).st_ino))
                        except OSError:
                            pass
        return found

    def new(self):
        """Paths that were not there when this object was made, sorted."""
        return sorted({path for path, _ in self._present() - self._before})
