# SPDX-License-Identifier: MIT
"""gen_runtime.py HEADER SOURCE NAMES RELEASE COMPILER...: exported functions of the thin runtime.

NAMES lists every name that the library of this version exports. Those with a prototype in the
headers get an entry that calls rt_<name> when somebody wrote that; those written by hand (see
HANDMADE) export themselves; the rest only says that it is not written."""
import re
import sys

import gen_common as common

HANDMADE = {'__cudaRegisterFatBinary', '__cudaRegisterFatBinaryEnd', '__cudaUnregisterFatBinary',
            '__cudaRegisterFunction', '__cudaRegisterVar', '__cudaRegisterManagedVar',
            '__cudaRegisterHostVar', '__cudaRegisterUnifiedTable', '__cudaInitModule',
            '__cudaPushCallConfiguration', '__cudaPopCallConfiguration', '__cudaGetProcAddress',
            'cudaCreateChannelDesc', 'cudaGetErrorName', 'cudaGetErrorString'}
LAUNCH = ('cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, '
          'cudaStream_t stream')
ENTRY_POINT = ('const char *symbol, void **funcPtr, unsigned long long flags, '
               'enum cudaDriverEntryPointQueryResult *driverStatus')
EXTRA = {'__cudaGetKernel': 'cudaKernel_t *kernel, const void *entryFuncAddr',
         '__cudaLaunchKernel': LAUNCH, '__cudaLaunchKernel_ptsz': LAUNCH,
         'cudaGetDriverEntryPoint': ENTRY_POINT, 'cudaGetDriverEntryPoint_ptsz': ENTRY_POINT}
# They report the last error and must not become it.
QUERIES = {'cudaGetLastError', 'cudaPeekAtLastError'}

# What release 12 lacks, or has in another shape: runtime/older.c exports that.
NOT_IN_12 = {'__cudaGetKernel', '__cudaLaunchKernel', '__cudaLaunchKernel_ptsz',
             'cudaGetDeviceProperties', 'cudaMemAdvise', 'cudaMemPrefetchAsync',
             'cudaMemPrefetchAsync_ptsz', 'cudaStreamGetCaptureInfo',
             'cudaStreamGetCaptureInfo_ptsz', 'cudaStreamUpdateCaptureDependencies',
             'cudaStreamUpdateCaptureDependencies_ptsz', 'cudaGraphGetEdges',
             'cudaGraphNodeGetDependencies', 'cudaGraphNodeGetDependentNodes',
             'cudaGraphAddDependencies', 'cudaGraphRemoveDependencies', 'cudaGraphAddNode',
             'cudaMemcpyBatchAsync', 'cudaMemcpyBatchAsync_ptsz'}

# What the devices here do not have: cudaErrorNotSupported is the answer, as the driver's is.
ABSENT = re.compile(r'cuda(EGL|GL|VDPAU|Graphics)|cudaEventCreateFromEGLSync|'
                    r'cuda\w*External(Memory|Semaphore)|cuda\w+NvSciSync|cuda\w+SparseProperties|'
                    r'cudaArrayGetPlane|cuda\w+AsyncNotification')

header_path, source_path, names_path, release = sys.argv[1:5]
compiler = sys.argv[5:]
includes = '#include <cuda_runtime_api.h>\n#include <cuda_profiler_api.h>\n'
plain_text = common.preprocess(compiler, includes)
thread_text = common.preprocess(compiler,
                                '#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n' + includes)
functions = {name: args for name, (_, args) in
             list(common.prototypes(plain_text, 'cudaError_t', 'cuda').items()) +
             list(common.prototypes(thread_text, 'cudaError_t', 'cuda').items())}
functions.update(EXTRA)
with open(names_path, encoding='utf-8') as lines:
    names = sorted(set(lines.read().split()) - HANDMADE - (NOT_IN_12 if release == '12' else set()))


def plain(name):
    return re.sub(r'_pt[ds][sz]$', '', name)


def unwritten(name, index):
    """What a function returns that has no body."""
    return 'cudaErrorNotSupported' if ABSENT.match(name) else 'rt_call_unwritten(%d)' % index


header = ['/* Generated from the toolkit headers. */', '#ifndef RT_API_H', '#define RT_API_H',
          '#include <cuda_runtime_api.h>', '#include <cuda_profiler_api.h>']
source = ['/* Generated from the toolkit headers. */', '#include "call.h"', '#include "rt_api.h"']
for name in sorted({plain(name) for name in functions}):
    args = functions.get(name, functions.get(name + '_ptsz', functions.get(name + '_ptds')))
    header.append('__attribute__((weak, visibility("hidden"))) cudaError_t rt_%s(%s);' %
                  (name, args))
header.append('#endif')
for index, name in enumerate(names):
    if name not in functions:
        source.append('RT_EXPORT cudaError_t %s(void);\nRT_EXPORT cudaError_t %s(void)\n{\n'
                      '    return %s;\n}' % (name, name, unwritten(name, index)))
        continue
    body, args = 'rt_' + plain(name), functions[name]
    if name in EXTRA or name not in common.prototypes(plain_text, 'cudaError_t', 'cuda'):
        source.append('RT_EXPORT cudaError_t %s(%s);' % (name, args))
    source.append('RT_EXPORT cudaError_t %s(%s)\n{\n    struct rt_call call;\n'
                  '    rt_call_begin(&call, %d, %s);\n    if (%s != NULL) {\n'
                  '        return %s(&call, %s(%s));\n    }\n'
                  '    return rt_call_end(&call, %s);\n}' %
                  (name, args, index, 'false' if plain(name) == name else 'true', body,
                   'rt_call_leave' if name in QUERIES else 'rt_call_end', body,
                   ', '.join(common.arguments(args)),
                   unwritten(name, index)))
source.append('const char *const rt_names[] = {')
source += ['    "%s",' % name for name in names]
source += ['};', 'const unsigned rt_name_count = %d;' % len(names), 'bool rt_is_unwritten[%d];' %
           len(names), 'const struct rt_error_name rt_error_names[] = {']
# Where the driver has the same code it has the same text.
texts = {value: name.replace('CUDA_ERROR_', '').replace('_', ' ').lower() for name, value in
         common.enumerators(common.preprocess(compiler, '#include <cuda.h>\n'), 'CUresult')}
for name, value in common.enumerators(plain_text, 'cudaError'):
    words = re.sub('(?<!^)([A-Z])', r' \1', name.replace('cudaError', '')).lower()
    words = texts.get(value, words) if value != 0 else 'no error'
    source.append('    {%d, "%s", "%s"},' % (value, name, words or 'no error'))
source += ['    {-1, NULL, NULL},', '};']
common.write_if_changed(header_path, header)
common.write_if_changed(source_path, source)
