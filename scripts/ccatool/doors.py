# SPDX-License-Identifier: MIT
"""Which ways into CUDA a program uses, which of them the library serves, and what stops it.

A door is a way in which a program reaches CUDA's memory calls: the shared runtime, the driver, a
static runtime inside the program. The library stands behind all of them, as long as the program's
look-ups come by it. Read from files alone.
"""
import os
import re

from . import program as programs
from .linkage import Resolver

RUNTIME_NAME = re.compile(r'libcudart\.so(\.|$)')
DRIVER_NAME = re.compile(r'libcuda\.so(\.|$)')
ASAN_NAME = re.compile(r'(libasan\.so|libclang_rt\.asan)')
# Parts of CUDA and of the C library: what they hold inside tells nothing about the program.
NOT_SEARCHED = re.compile(r'(libcudart|libcuda|libnvidia\S*|libcca_preload|libc|libm|libdl|librt'
                          r'|libpthread|libstdc\+\+|libgcc_s|ld-linux\S*)[.-]')
STATIC_MARKS = (b'cuGetProcAddress', b'libcuda.so.1', b'cudaErrorMemoryAllocation')
LOOKUP_MARKS = (b'libcuda.so',)
LOOKUP_HOMES = re.compile(r'(libc|libdl|libcca_preload)[.-]')
MEMORY_CALLS = re.compile(r'cu(da)?(Malloc|Free|MemAlloc|MemFree)')

TITLES = {
    'runtime': 'shared CUDA runtime',
    'driver': 'CUDA driver, linked',
    'static': 'static CUDA runtime inside',
}


class Report:
    """What was found out about one program."""

    def __init__(self, program):
        self.program = program
        self.libraries = []
        self.doors = {name: [] for name in TITLES}   # door -> evidence, one sentence each
        self.asan = None                             # path or name of the shared ASan runtime
        self.loads_later = False                     # imports dlopen: may bring CUDA in at run time
        self.uses_namespaces = False                 # imports dlmopen
        self.lookup_hooks = []                       # libraries that define dlsym themselves
        self.calls = []                              # memory calls that are bound by the loader
        self.stops = []
        self.notes = []

    @property
    def is_served(self):
        return not self.stops


def examine(program, environment):
    """The Report of a Program."""
    report = Report(program)
    report.stops += programs.obstacles(program)
    if program.image is None:
        report.stops.append('cannot be read: nothing can be told')
        return report
    report.libraries = Resolver(program.image, environment).libraries()
    for library in report.libraries:
        if library.path is None and not DRIVER_NAME.match(library.name):
            report.notes.append('%s (needed by %s) was not found' % (
                library.name, os.path.basename(library.asked_by)))
        if ASAN_NAME.match(library.name):
            report.asan = library.path or library.name
    find_doors(report)
    judge(report)
    return report


def objects(report):
    """(name, image) of the program and of every library that was found."""
    yield os.path.basename(report.program.image_path), report.program.image
    for library in report.libraries:
        if library.image is not None:
            yield library.name, library.image


def find_doors(report):
    calls = set()
    for name, image in objects(report):
        shared = [needed for needed in image.needed if RUNTIME_NAME.match(needed)]
        driver = [needed for needed in image.needed if DRIVER_NAME.match(needed)]
        if shared:
            report.doors['runtime'].append('%s needs %s' % (name, shared[0]))
        if NOT_SEARCHED.match(name):
            continue
        if driver:
            report.doors['driver'].append('%s needs %s' % (name, driver[0]))
        if all(image.holds(mark) for mark in STATIC_MARKS):
            report.doors['static'].append('%s carries one' % name)
        elif not driver and all(image.holds(mark) for mark in LOOKUP_MARKS):
            report.doors['driver'].append('%s names libcuda.so' % name)
        imports, exports = image.symbols()
        calls |= {call for call in imports if MEMORY_CALLS.match(call)}
        report.loads_later = report.loads_later or bool(imports & {'dlopen', 'dlmopen'})
        report.uses_namespaces = report.uses_namespaces or 'dlmopen' in imports
        if 'dlsym' in exports and not LOOKUP_HOMES.match(name):
            report.lookup_hooks.append(name)
    report.calls = sorted(calls)


def judge(report):
    """Turns the doors into findings: sentences that stop the library, or that are good to know."""
    open_doors = [name for name in TITLES if report.doors[name]]
    for name in report.lookup_hooks:
        report.notes.append('%s hooks dlsym, too: look-ups that it answers pass by the library'
                            % name)
    if report.uses_namespaces:
        report.notes.append('imports dlmopen: CUDA in a namespace of its own passes by the library')
    if not open_doors and not report.stops:
        if report.loads_later:
            report.notes.append('no CUDA in sight, but the program loads libraries at run time: '
                                'CUDA among them is served')
        else:
            report.stops.append('uses no CUDA: neither the program nor its libraries name it')
    if report.asan:
        report.notes.append('AddressSanitizer: start it with `cca run`, which preloads %s first' % (
            os.path.basename(report.asan)))
