# SPDX-License-Identifier: MIT
"""What /proc tells about another process."""
import os

from .failure import Failure, reason


class Process:
    """A running process, by its number. Each question reads /proc anew."""

    def __init__(self, pid):
        self.pid = pid
        self._folder = '/proc/%d' % pid
        if not os.path.isdir(self._folder):
            raise Failure('no process %d' % pid)

    def _read(self, name):
        try:
            with open(os.path.join(self._folder, name), 'rb') as stream:
                return stream.read()
        except (FileNotFoundError, ProcessLookupError) as error:
            raise Failure('no process %d' % self.pid) from error
        except OSError as error:
            raise Failure('process %d: %s' % (self.pid, reason(error))) from error

    def is_alive(self):
        """False once it has ended, also while its parent has not yet asked."""
        try:
            return self.status().get('State', 'Z')[0] not in 'ZX'
        except Failure:
            return False

    def status(self):
        lines = self._read('status').decode('utf-8', 'replace').splitlines()
        return {name: value.strip() for name, _, value in (line.partition(':') for line in lines)}

    def maps_file(self, name):
        """Whether a file of that name is mapped, also one that was replaced on disk since."""
        for line in self._read('maps').splitlines():
            path = line.split(None, 5)[5:] or [b'']
            text = os.fsdecode(path[0])
            if text.endswith(' (deleted)'):
                text = text[:-len(' (deleted)')]
            if os.path.basename(text) == name:
                return True
        return False

    def environment(self):
        """The variables that the process was started with."""
        entries = (entry.partition(b'=') for entry in self._read('environ').split(b'\0') if entry)
        return {os.fsdecode(name): os.fsdecode(value) for name, _, value in entries}

    def catches(self, number):
        """Whether the process has a handler for the signal."""
        return bool(int(self.status().get('SigCgt', '0'), 16) >> (number - 1) & 1)

    def own_pid(self):
        """Its number as it sees it itself: another one inside a container."""
        return int(self.status().get('NSpid', str(self.pid)).split()[-1])

    def working_directory(self):
        try:
            return os.readlink(os.path.join(self._folder, 'cwd'))
        except OSError as error:
            raise Failure('process %d: %s' % (self.pid, reason(error))) from error

    def root(self):
        """What to put before its paths to reach them from here: '' without a root of its own."""
        path = os.path.join(self._folder, 'root')
        try:
            inside, outside = os.stat(path), os.stat('/')
        except OSError:
            return ''
        same = (inside.st_dev, inside.st_ino) == (outside.st_dev, outside.st_ino)
        return '' if same else path
