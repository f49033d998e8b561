# SPDX-License-Identifier: MIT
"""A small reader of ELF files: only what tells how a program is linked. Runs nothing of it."""
import mmap
import os
import struct

from .failure import Failure, reason

PT_DYNAMIC, PT_INTERP = 2, 3
DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME = 1, 5, 10, 14
DT_RPATH, DT_RUNPATH, DT_FLAGS_1 = 15, 29, 0x6ffffffb
DF_1_NODEFLIB = 0x800
PT_LOAD = 1
SHT_DYNSYM = 11
MACHINES = {3: 'i386', 40: 'arm', 62: 'x86-64', 183: 'aarch64', 21: 'ppc64', 243: 'riscv'}


class NotElf(Exception):
    """The file is something else."""


class Damaged(Exception):
    """The file says ELF and then contradicts itself."""


class Elf:
    """What one file says of itself. Public fields are final after the constructor."""

    def __init__(self, path):
        self.path = path
        with open(path, 'rb') as stream:
            if os.fstat(stream.fileno()).st_size < 20:
                raise NotElf()
            self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        if self._bytes[:4] != b'\x7fELF':
            raise NotElf()
        try:
            self._read()
        except (struct.error, IndexError, ValueError) as error:
            raise Damaged() from error

    def _read(self):
        self.bits = {1: 32, 2: 64}[self._bytes[4]] if self._bytes[4] in (1, 2) else 0
        if not self.bits:
            raise Damaged()
        self._order = '>' if self._bytes[5] == 2 else '<'
        wide = self.bits == 64
        self.type, machine = self._unpack('HH', 16)
        self.machine = MACHINES.get(machine, 'machine %d' % machine)
        table = self._unpack('QQ' if wide else 'II', 32 if wide else 28)
        counts = self._unpack('HHHHH', 54 if wide else 42)
        self._read_segments(table[0], counts[0], counts[1])
        self._read_dynamic()
        self._section_table = (table[1], counts[2], counts[3])
        self._symbols = None

    def _unpack(self, form, offset):
        if offset > len(self._bytes):
            raise Damaged()
        return struct.unpack_from(self._order + form, self._bytes, offset)

    def _read_segments(self, offset, entry_size, count):
        """Keeps (type, file offset, address, size in the file) of every program header."""
        self._segments = []
        for index in range(count):
            place = offset + index * entry_size
            if self.bits == 64:
                kind, _, start, address, _, length = self._unpack('IIQQQQ', place)
            else:
                kind, start, address, _, length = self._unpack('IIIII', place)
            self._segments.append((kind, start, address, length))
        self.interpreter = None
        for kind, start, _, length in self._segments:
            if kind == PT_INTERP:
                self.interpreter = self._bytes[start:start + length].rstrip(b'\0').decode(
                    'utf-8', 'replace')

    def _file_offset(self, address):
        for kind, start, base, length in self._segments:
            if kind == PT_LOAD and base <= address < base + length:
                return address - base + start
        raise Damaged()

    def _read_dynamic(self):
        form, step = ('qQ', 16) if self.bits == 64 else ('iI', 8)
        entries = []
        self.has_dynamic = False
        for kind, start, _, length in self._segments:
            if kind != PT_DYNAMIC:
                continue
            self.has_dynamic = True
            for place in range(start, start + length - step + 1, step):
                tag, value = self._unpack(form, place)
                if tag == 0:
                    break
                entries.append((tag, value))
        tags = dict(entries)
        strings = self._file_offset(tags[DT_STRTAB]) if DT_STRTAB in tags else 0

        def texts(wanted):
            return [self._string(strings + value) for tag, value in entries if tag == wanted]

        self.needed = texts(DT_NEEDED)
        self.soname = (texts(DT_SONAME) or [None])[0]
        self.runpath = [part for text in texts(DT_RUNPATH) for part in text.split(':') if part]
        self.rpath = [part for text in texts(DT_RPATH) for part in text.split(':') if part]
        if self.runpath:
            self.rpath = []
        self.skips_default_dirs = bool(tags.get(DT_FLAGS_1, 0) & DF_1_NODEFLIB)

    def _string(self, offset):
        if offset > len(self._bytes):
            raise Damaged()
        end = self._bytes.find(b'\0', offset)
        return self._bytes[offset:end].decode('utf-8', 'replace')

    def _read_symbols(self):
        imports, exports = set(), set()
        offset, entry_size, count = self._section_table
        wide = self.bits == 64
        headers = [self._unpack('IIQQQQII' if wide else 'IIIIIIII', offset + index * entry_size)
                   for index in range(count)] if offset else []
        for header in headers:
            if header[1] != SHT_DYNSYM or header[6] >= len(headers):
                continue
            strings = headers[header[6]][4]
            form, step = ('IBBHQQ', 24) if wide else ('IIIBBH', 16)
            for place in range(header[4], header[4] + header[5] - step + 1, step):
                symbol = self._unpack(form, place)
                section = symbol[3] if wide else symbol[5]
                name = self._string(strings + symbol[0])
                (exports if section else imports).add(name)
        return imports, exports

    def symbols(self):
        """Names of the dynamic symbols that are asked for and that are offered: two sets."""
        if self._symbols is None:
            try:
                self._symbols = self._read_symbols()
            except (struct.error, Damaged):
                self._symbols = set(), set()
        return self._symbols

    @property
    def is_static(self):
        """No interpreter: the kernel starts it without a loader, so nothing is preloaded."""
        return self.interpreter is None

    def holds(self, text):
        """Whether the bytes stand anywhere in the file."""
        return self._bytes.find(text) >= 0


def read(path):
    """The Elf of a path, or a Failure. NotElf passes through."""
    try:
        return Elf(path)
    except OSError as error:
        raise Failure('%s: %s' % (path, reason(error))) from error
    except Damaged as error:
        raise Failure('%s: damaged ELF file' % path) from error
