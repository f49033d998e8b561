# SPDX-License-Identifier: MIT
"""gen_driver.py HEADER SOURCE COMPILER...: the exported cu* functions of the simulated driver.

Every function that cuda.h declares gets an exported entry which does the bookkeeping of call.h and
then calls sim_<name>, when somebody wrote that. Weak declarations tell at link time who did. The
table of (base name, version, per-thread flag) comes from the names in cudaTypedefs.h."""
import re
import sys

import gen_common as common

header_path, source_path, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
text = common.preprocess(compiler, '#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n'
                         '#include <cudaProfiler.h>\n#include <cudaTypedefs.h>\n')
functions = common.prototypes(text, 'CUresult', 'cu[A-Z]')
versions = {}
for base, version, suffix in set(re.findall(r'PFN_(cu[A-Z]\w*?)_v(\d{4,5})(_pts[zd]|_ptds)?\)',
                                            text)):
    versions.setdefault((base, suffix), []).append(int(version))

# name -> (base, version, per-thread); the n-th suffix belongs to the n-th version.
rows = {}
for (base, suffix), found in sorted(versions.items()):
    names = [base + v + suffix for v in ('', '_v2', '_v3', '_v4', '_v5')
             if base + v + suffix in functions]
    count = min(len(names), len(found))
    for version, name in zip(sorted(found)[-count:], names[-count:]):
        rows[name] = (base, version, 1 if suffix else 0)
for name in functions:
    rows.setdefault(name, (name, 0, 1 if re.search('_pt[ds][sz]$', name) else 0))


def plain(name):
    return re.sub(r'_pt[ds][sz]$', '', name)


def candidates(name):
    """Whose body may serve this name: its own, the plain form, the next version of equal shape."""
    found = [name]
    base = plain(name)
    if base != name and base in functions:
        found.append(base)
    newer = base + '_v2'
    if newer in functions and functions[newer] == functions[base]:
        found.append(newer)
    return found


# What the simulated device does not have, and says so: not the same as not being written.
ABSENT = re.compile(r'cuMulticast|cu\w+SparseProperties|cuMemMapArrayAsync|cuGraphics|cuCheckpoint|'
                    r'cu\w*External(Memory|Semaphore)|cuMemBatchDecompress|cuTensorMap|cu\w+NvSciSync|'
                    r'cuMemGetHandleForAddressRange|cuArrayGetPlane')


header = ['/* Generated from the toolkit headers. */', '#ifndef SIM_API_H', '#define SIM_API_H',
          '#include <cuda.h>', '#include <cudaProfiler.h>']
source = ['/* Generated from the toolkit headers. */', '#include "call.h"', '#include "sim_api.h"',
          '#include "sim_written.h"']
for name, (_, args) in sorted(functions.items()):
    header.append('__attribute__((weak, visibility("hidden"))) CUresult sim_%s(%s);' % (name, args))
header.append('#endif')
names = sorted(functions)
STRUCTS = ('CUipcEventHandle', 'CUipcMemHandle', 'CUmemLocation', 'float')


def note(parameters):
    """Code that tells the trace the arguments, those passed by value as structures left out."""
    named = [(argument, part.strip()) for argument, part in
             zip(common.arguments(parameters), parameters.split(','))
             if part.strip().split(' ')[0] not in STRUCTS or '*' in part]
    if not named:
        return ''
    return ('    if (sim_is_noting) {\n        static const char *const names[] = {%s};\n'
            '        const uint64_t values[] = {%s};\n        sim_call_arguments(%d, names, values);\n'
            '    }\n' % (', '.join('"%s"' % argument for argument, _ in named),
                         ', '.join('(uint64_t)%s' % argument for argument, _ in named),
                         len(named)))


for index, name in enumerate(names):
    args = functions[name][1]
    source.append('__attribute__((visibility("default"))) CUresult %s(%s)' % (name, args))
    source.append('{\n    struct sim_call call;\n' + note(args) +
                  '    CUresult status = sim_call_begin(&call, &sim_functions[%d], '
                  '__builtin_return_address(0));\n'
                  '    if (status != CUDA_SUCCESS) {\n'
                  '        return sim_call_end(&call, status);\n    }' % index)
    for candidate in candidates(name):
        source.append('    if (sim_%s != NULL) {\n        return sim_call_end(&call, sim_%s(%s));'
                      '\n    }' % (candidate, candidate, ', '.join(common.arguments(args))))
    source.append('    return sim_call_end(&call, %s);\n}' %
                  ('CUDA_ERROR_NOT_SUPPORTED' if ABSENT.match(name)
                   else 'sim_call_unwritten(&call)'))
source.append('struct sim_function sim_functions[] = {')
for name in names:
    base, version, per_thread = rows[name]
    source.append('    {.name = "%s", .base = "%s", .version = %d, .per_thread = %d, '
                  '.entry = (void (*)(void))%s},' % (name, base, version, per_thread, name))
source += ['};', 'bool sim_is_written(unsigned index)', '{', '    switch (index) {']
for index, name in enumerate(names):
    source.append('    case %d: return %s;' % (index, ' || '.join(
        'sim_%s != NULL' % candidate for candidate in candidates(name))))
source += ['    default: return false;', '    }', '}']
source += ['const unsigned sim_function_count = %d;' % len(names),
           'const struct sim_error_name sim_error_names[] = {']
for name, value in common.enumerators(text, 'CUresult'):
    words = name.replace('CUDA_ERROR_', '').replace('_', ' ').lower()
    source.append('    {%d, "%s", "%s"},' % (value, name, words))
source += ['    {-1, NULL, NULL},', '};']
common.write_if_changed(header_path, header)
common.write_if_changed(source_path, source)
