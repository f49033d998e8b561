# SPDX-License-Identifier: MIT
"""Finds the libraries a program starts with, the way the dynamic loader would."""
import os
import struct

from . import elf

CACHE_PATH = '/etc/ld.so.cache'
CACHE_MAGIC = b'glibc-ld.so.cache1.1'
DEFAULT_DIRS = ('/lib64', '/usr/lib64', '/lib', '/usr/lib')
MULTIARCH = {'x86-64': 'x86_64-linux-gnu', 'aarch64': 'aarch64-linux-gnu', 'i386': 'i386-linux-gnu'}


class Library:
    """One needed library: its name, who asked for it, where it was found (None: nowhere)."""

    def __init__(self, name, asked_by, path, image):
        self.name = name
        self.asked_by = asked_by
        self.path = path
        self.image = image


def read_cache(path=CACHE_PATH):
    """Library name -> paths, from ldconfig's cache; empty where there is none that we know."""
    try:
        with open(path, 'rb') as stream:
            data = stream.read()
    except OSError:
        return {}
    start = data.find(CACHE_MAGIC)
    if start < 0:
        return {}
    found = {}
    try:
        (count,) = struct.unpack_from('<I', data, start + 20)
        for index in range(count):
            _, key, value = struct.unpack_from('<iII', data, start + 48 + index * 24)
            name, place = cache_text(data, start + key), cache_text(data, start + value)
            found.setdefault(name, []).append(place)
    except (struct.error, ValueError):
        return {}
    return found


def cache_text(data, place):
    return data[place:data.index(b'\0', place)].decode('utf-8', 'replace')


class Resolver:
    """Walks NEEDED entries breadth first. `environment` gives LD_LIBRARY_PATH."""

    def __init__(self, image, environment):
        self._root = image
        self._cache = read_cache()
        text = environment.get('LD_LIBRARY_PATH', '')
        self._environment_dirs = [part or '.' for part in text.replace(';', ':').split(':')] \
            if text else []

    def libraries(self):
        """Every library needed, each once, in load order."""
        found = {}
        queue = [(self._root, [self._root])]
        while queue:
            image, chain = queue.pop(0)
            for name in image.needed:
                if name in found:
                    continue
                path, library = self._find(name, image, chain)
                found[name] = Library(name, image.path, path, library)
                if library is not None:
                    queue.append((library, chain + [library]))
        return list(found.values())

    def _find(self, name, image, chain):
        if '/' in name:
            candidates = [self._expanded(name, image)]
        else:
            candidates = [os.path.join(place, name) for place in self._dirs(image, chain)]
            if not image.skips_default_dirs:
                candidates += self._cache.get(name, [])
                candidates += [os.path.join(place, name) for place in self._default_dirs()]
        for path in candidates:
            library = self._fitting(path)
            if library is not None:
                return os.path.abspath(path), library
        return None, None

    def _dirs(self, image, chain):
        dirs = []
        if not image.runpath:
            for owner in reversed(chain):
                dirs += [self._expanded(place, owner) for place in owner.rpath]
        dirs += self._environment_dirs
        dirs += [self._expanded(place, image) for place in image.runpath]
        return dirs

    def _default_dirs(self):
        triplet = MULTIARCH.get(self._root.machine)
        if triplet:
            yield '/lib/' + triplet
            yield '/usr/lib/' + triplet
        yield from DEFAULT_DIRS

    def _expanded(self, text, owner):
        origin = os.path.dirname(os.path.realpath(owner.path))
        lib = 'lib/' + MULTIARCH.get(self._root.machine, '')
        for token, value in (('ORIGIN', origin), ('LIB', lib), ('PLATFORM', os.uname().machine)):
            text = text.replace('${%s}' % token, value).replace('$' + token, value)
        return text

    def _fitting(self, path):
        """The image at the path when the program's loader would take it."""
        try:
            image = elf.Elf(path)
        except (OSError, elf.NotElf, elf.Damaged):
            return None
        fits = image.bits == self._root.bits and image.machine == self._root.machine
        return image if fits else None
