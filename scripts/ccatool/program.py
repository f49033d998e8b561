# SPDX-License-Identifier: MIT
"""From the word a user typed to the ELF file that will run, and what would keep LD_PRELOAD out."""
import os
import shutil
import stat

from . import elf
from .failure import Failure, reason

NOT_FOUND = 127
NOT_EXECUTABLE = 126
SCRIPT_DEPTH = 5


class Program:
    """The file that was named, and the program that runs it (itself, or a script's interpreter)."""

    def __init__(self, path, image_path, image):
        self.path = path
        self.image_path = image_path
        self.image = image


def locate(word):
    """The path that exec would take for a command word; Failure 127 or 126 as a shell has it."""
    if '/' in word:
        if not os.path.exists(word):
            raise Failure('%s: not found' % word, NOT_FOUND)
        path = word
    else:
        path = shutil.which(word)
        if path is None:
            path = shutil.which(word, mode=os.F_OK)
        if path is None:
            raise Failure('%s: not found in PATH' % word, NOT_FOUND)
    if os.path.isdir(path):
        raise Failure('%s: is a directory' % word, NOT_EXECUTABLE)
    if not os.access(path, os.X_OK):
        raise Failure('%s: not executable' % word, NOT_EXECUTABLE)
    return path


def script_interpreter(path):
    """The program that a `#!` line names, or None."""
    with open(path, 'rb') as stream:
        line = stream.readline(256)
    if not line.startswith(b'#!'):
        return None
    words = line[2:].split()
    if not words:
        return None
    name = os.fsdecode(words[0])
    if os.path.basename(name) == 'env':
        rest = [os.fsdecode(word) for word in words[1:]]
        rest = [word for word in rest if not word.startswith('-') and '=' not in word]
        return shutil.which(rest[0]) if rest else name
    return name


def resolve(word):
    """The Program behind a command word. A file that cannot be read has the image None."""
    path = locate(word)
    image_path = path
    for _ in range(SCRIPT_DEPTH):
        try:
            return Program(path, image_path, elf.Elf(image_path))
        except PermissionError:
            return Program(path, image_path, None)
        except OSError as error:
            raise Failure('%s: %s' % (image_path, reason(error)), NOT_EXECUTABLE) from error
        except elf.Damaged as error:
            raise Failure('%s: damaged ELF file' % image_path, NOT_EXECUTABLE) from error
        except elf.NotElf as error:
            following = script_interpreter(image_path)
            if following is None:
                raise Failure('%s: not a program (neither ELF nor a script with #!)' % image_path,
                              NOT_EXECUTABLE) from error
            if not os.path.exists(following):
                raise Failure('%s: its interpreter %s does not exist' % (path, following),
                              NOT_FOUND) from error
            image_path = following
    raise Failure('%s: too many nested interpreters' % path, NOT_EXECUTABLE)


def is_loader(path):
    """Whether the file is the dynamic loader itself, which preloads although it has no loader."""
    name = os.path.basename(os.path.realpath(path))
    return name.startswith(('ld-linux', 'ld-2', 'ld.so', 'ld64'))


def secure_reason(path):
    """Why the loader will run this file in secure mode and ignore LD_PRELOAD, or None."""
    info = os.stat(path)
    try:
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            return None
    except OSError:
        pass
    if info.st_mode & stat.S_ISUID and info.st_uid != os.geteuid():
        return 'is set-user-ID'
    if info.st_mode & stat.S_ISGID and info.st_mode & stat.S_IXGRP and info.st_gid != os.getegid():
        return 'is set-group-ID'
    if os.geteuid() != 0 and has_capabilities(path):
        return 'has file capabilities'
    return None


def has_capabilities(path):
    try:
        return bool(os.getxattr(path, 'security.capability'))
    except OSError:
        return False


def obstacles(program):
    """What would keep LD_PRELOAD from reaching the program: a list of plain sentences."""
    image = program.image
    found = []
    if image is not None:
        if image.bits != 64:
            found.append('is a %d-bit program: the library is 64-bit only' % image.bits)
        elif image.machine != own_machine():
            found.append('is built for %s: the library is for %s' % (image.machine, own_machine()))
        if image.is_static and not is_loader(program.image_path):
            found.append('is statically linked: LD_PRELOAD cannot reach it')
        if image.interpreter and 'musl' in image.interpreter:
            found.append('runs on musl (%s): the library needs glibc' % image.interpreter)
    secure = secure_reason(program.image_path)
    if secure:
        found.append('%s: the loader ignores LD_PRELOAD' % secure)
    return found


def own_machine():
    return {'x86_64': 'x86-64', 'amd64': 'x86-64'}.get(os.uname().machine, os.uname().machine)
