#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks who includes whom: usage check_layers.py [ROOT]

Prints one line per include that the table forbids, with status 1; a closing line otherwise.
"""
import os
import re
import sys

# Folder -> what its files may include beside their own folder: folders (ending in /) and headers.
TABLE = {
    'src/base': (),
    'src/config': ('base/',),
    'src/device': ('base/',),
    'src/observe': ('base/',),
    'src/alloc': ('base/', 'config/', 'observe/', 'device/device.h'),
    'src/snapshot': ('base/', 'observe/'),
    'src/process': ('base/', 'config/', 'device/', 'observe/', 'alloc/', 'snapshot/', 'cca/'),
    'preload': ('process/', 'base/', 'alloc/allocator.h', 'device/cuda_table.h',
                'device/cuda_device.h',
                'device/cuda_error.h', 'observe/unwind.h'),
    'include/cca': (),
}
# Single files that may include more than their folder.
EXCEPTIONS = {'src/snapshot/capture.c': ('alloc/', 'config/')}
CUDA_FOLDERS = ('src/device', 'preload')
CUDA_HEADER = re.compile(r'(cuda|cudart|cu[A-Z_]|driver_types|vector_types|nv)\w*\.h$|cuda\w*/')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
SUFFIXES = ('.c', '.h', '.def', '.inc', '.S')


def sources(root):
    """(folder of the table, path relative to root) of every file that the table covers."""
    for folder in TABLE:
        for place, folders, names in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    yield folder, os.path.relpath(os.path.join(place, name), root)


def resolve(root, path, name):
    """An include in quotes as `layer/file.h`: ours by its place in the tree, others as written."""
    beside = os.path.join(os.path.dirname(path), name)
    for candidate in (beside, os.path.join('src', name), os.path.join('include', name), name):
        if os.path.isfile(os.path.join(root, candidate)):
            candidate = os.path.normpath(candidate)
            for top in ('src/', 'include/'):
                if candidate.startswith(top):
                    return candidate[len(top):]
            return candidate
    return os.path.normpath(name)


def allowed(folder, path, target):
    own = folder[len('src/'):] if folder.startswith('src/') else folder
    own = own[len('include/'):] if own.startswith('include/') else own
    permitted = (own + '/',) + TABLE[folder] + EXCEPTIONS.get(path, ())
    return any(target.startswith(entry) if entry.endswith('/') else target == entry
               for entry in permitted)


def is_ours(root, target):
    tops = [folder.split('/')[-1] for folder in TABLE] + ['tests', 'scripts']
    return target.split('/')[0] in tops or any(
        os.path.isfile(os.path.join(root, top, target)) for top in ('src', 'include', ''))


def broken_includes(root):
    """Lines about every include that the table forbids."""
    found = []
    for folder, path in sources(root):
        with open(os.path.join(root, path), encoding='utf-8', errors='replace') as stream:
            text = re.sub(r'/\*.*?\*/', lambda match: '\n' * match.group().count('\n'),
                          stream.read(), flags=re.S)
        for match in INCLUDE.finditer(text):
            line = text.count('\n', 0, match.start()) + 1
            name = match.group(1) or match.group(2)
            target = resolve(root, path, name) if match.group(1) else name
            if CUDA_HEADER.match(target) and not is_ours(root, target):
                if folder not in CUDA_FOLDERS:
                    found.append('%s:%d: %s: CUDA headers belong to %s' % (
                        path, line, name, ' and '.join(CUDA_FOLDERS)))
            elif (match.group(1) or is_ours(root, target)) and not allowed(folder, path, target):
                found.append('%s:%d: %s may not include %s' % (path, line, folder, target))
    return found


def main(argv):
    root = argv[0] if argv else os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = broken_includes(root)
    for line in found:
        print(line)
    if found:
        return 1
    print('layers: %d files, fine' % len(list(sources(root))))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
