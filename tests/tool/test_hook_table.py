# SPDX-License-Identifier: MIT
"""The table of hooks: what is made of hooks.def, and how the toolkit's headers check it."""
import os
import subprocess
import sys
import unittest

from support import SCRIPTS, FolderTest

import hook_table

ROWS = '''
HOOK(cudaFree, ONE, RUNTIME, SERVE, 1.0, (void *ptr), (ptr))
HOOK(cuMemAlloc_v2, ONE, DRIVER, SERVE, 3.2, (void), ())
HOOK(cuMemFreeAsync, PTSZ, DRIVER, STATE, 11.2,
     (void), ())
LEAVE("cuMemGet*", "only asks")
'''
TYPEDEFS = '''
typedef CUresult (CUDAAPI *PFN_cuMemAlloc_v2000)(void);
typedef CUresult (CUDAAPI *PFN_cuMemAlloc_v3020)(void);
typedef CUresult (CUDAAPI *PFN_cuMemFreeAsync_v11020)(void);
typedef CUresult (CUDAAPI *PFN_cuMemFreeAsync_v11020_ptsz)(void);
'''
HEADER = '''
CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr);
CUresult CUDAAPI cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult CUDAAPI cuLaunchKernel(void);
'''


class HookTable(FolderTest):
    def test_rows_and_variants(self):
        rows, leaves = hook_table.read(ROWS)
        self.assertEqual([row.names for row in rows],
                         [['cudaFree'], ['cuMemAlloc_v2'], ['cuMemFreeAsync', 'cuMemFreeAsync_ptsz']])
        self.assertEqual(leaves, {'cuMemGet*': 'only asks'})
        self.assertIn('| `cuMemFreeAsync`, `_ptsz` | driver | 11.2 | forwarded, and followed |',
                      hook_table.table(rows, leaves))

    def test_a_wrong_release_is_found(self):
        rows, _ = hook_table.read(ROWS)
        self.assertEqual(hook_table.unconfirmed(rows, TYPEDEFS), [])
        rows, _ = hook_table.read(ROWS.replace('3.2', '4.0').replace('11.2', '11.3'))
        self.assertEqual([line.split(':')[0] for line in hook_table.unconfirmed(rows, TYPEDEFS)],
                         ['cuMemAlloc_v2', 'cuMemFreeAsync'])
        # What came after the headers cannot be confirmed by them.
        self.assertEqual([line.split(':')[0] for line in
                          hook_table.unconfirmed(rows, TYPEDEFS, 11020)], ['cuMemAlloc_v2'])

    def test_a_function_that_nobody_has_judged_is_found(self):
        rows, leaves = hook_table.read(ROWS)
        self.assertEqual(hook_table.unjudged(rows, leaves, HEADER), [])
        newer = HEADER + 'CUresult CUDAAPI cuMemAllocElsewhere_v2(void);\n'
        self.assertEqual(hook_table.unjudged(rows, leaves, newer), ['cuMemAllocElsewhere'])
        self.assertEqual(hook_table.unjudged(rows, {}, HEADER), ['cuMemGetInfo'])

    def test_the_table_is_up_to_date(self):
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, 'hook_table.py'), '--check'],
                              stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_the_toolkit_of_this_machine(self):
        """Headers newer than the ones this was written with may hold more: that is for people."""
        folder = os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'include')
        header = os.path.join(folder, 'cuda.h')
        if not os.path.exists(header) or '#define CUDA_VERSION 13000' not in open(header).read():
            self.skipTest('no headers of 13.0')
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, 'hook_table.py'), '--headers',
                               folder], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ''))


if __name__ == '__main__':
    unittest.main()
