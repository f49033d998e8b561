# SPDX-License-Identifier: MIT
"""Where the tool's other half lies (the preload library) and which version both are."""
import os
import re

from .failure import Failure

LIBRARY_NAME = 'libcca_preload.so'

# Filled in by the build; untouched in the source tree.
LIBDIR = '@CCA_LIBDIR@'
LIBDIR_FROM_PACKAGE = '@CCA_LIBDIR_FROM_PACKAGE@'
BUILT_VERSION = '@CCA_VERSION@'

PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def library_candidates():
    """Paths at which the library may be: build tree, a moved installation, the configured one."""
    folders = [os.path.join(PACKAGE_PARENT, LIBDIR_FROM_PACKAGE), LIBDIR]
    if os.path.basename(PACKAGE_PARENT) == 'scripts':
        tree = os.path.dirname(PACKAGE_PARENT)
        folders = [os.path.join(tree, 'preload'), os.path.join(tree, 'build', 'preload')] + folders
    return [os.path.normpath(os.path.join(folder, LIBRARY_NAME)) for folder in folders
            if '@' not in folder]


def find_library():
    """The absolute path of the preload library, in a form that LD_PRELOAD can hold."""
    for path in library_candidates():
        if os.path.isfile(path):
            return checked_for_preload(path)
    places = dict.fromkeys(os.path.dirname(path) for path in library_candidates())
    raise Failure('%s not found: looked in %s' % (LIBRARY_NAME, ', '.join(places)))


def checked_for_preload(path):
    """The absolute path; LD_PRELOAD has no way to quote a blank or a colon."""
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise Failure('%s: no such library' % path)
    if re.search(r'[\s:]', path):
        raise Failure('%s: LD_PRELOAD cannot hold a path with a blank or a colon' % path)
    return path


def version():
    """The version as text."""
    if not BUILT_VERSION.startswith('@'):
        return BUILT_VERSION
    header = os.path.join(os.path.dirname(PACKAGE_PARENT), 'include', 'cca', 'cca_version.h')
    try:
        with open(header, encoding='utf-8') as stream:
            match = re.search(r'CCA_VERSION_STRING "([^"]*)"', stream.read())
    except OSError:
        match = None
    return match.group(1) if match else 'unknown'
