# SPDX-License-Identifier: MIT
"""real_runtime.py RUNTIME: NVIDIA's own runtime over the simulated driver.

It is not meant to start there: it checks the driver it finds. What counts is that it asks for all
its functions, gets answers, and gives up with an error of its own."""
import ctypes
import sys


def main():
    # Held, since the runtime lets go of the driver when it gives up.
    driver = ctypes.CDLL('libcuda.so.1')
    runtime = ctypes.CDLL(sys.argv[1])
    count = ctypes.c_int(-1)
    result = runtime.cudaGetDeviceCount(ctypes.byref(count))
    driver.simcuda_call_count.restype = ctypes.c_uint64
    driver.simcuda_violations.restype = ctypes.c_uint64
    lookups = driver.simcuda_call_count(b'cuGetProcAddress_v2')
    print('%d look-ups, then error %d' % (lookups, result))
    sys.exit(0 if result != 0 and lookups > 300 and driver.simcuda_violations() == 0 else 1)


main()
