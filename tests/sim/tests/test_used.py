# SPDX-License-Identifier: MIT
"""test_used.py NAMES USED DRIVER RUNTIME13 RUNTIME12 ARCHIVE: what programs call is there.

USED lists the functions that 131 public CUDA programs call, and those that frameworks do. Each must
be exported and have a body behind it, in every runtime of its time, with its per-thread twins."""
import re
import subprocess
import sys
import unittest

NAMES, USED, DRIVER, RUNTIME13, RUNTIME12, ARCHIVE = sys.argv[1:7]
#: Of release 13, or in 12 under another name.
NEW_IN_13 = {"__cudaGetKernel", "__cudaLaunchKernel", "__cudaLaunchKernel_ptsz",
             "cudaGetDeviceProperties"}
IN_12_ALONE = {"cudaGetDeviceProperties_v2", "cudaMemAdvise_v2", "cudaMemPrefetchAsync_v2",
               "cudaGraphAddNode_v2", "cudaStreamGetCaptureInfo_v2", "cudaStreamGetCaptureInfo_v3"}


def read(path):
    with open(path, encoding="utf-8") as lines:
        return set(lines.read().split())


def symbols(path):
    """(global names, all names) that the file defines."""
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^[0-9a-f]+ ([A-Za-z]) ([^@\n]+)", lines, re.MULTILINE)
    return {name for kind, name in found if kind == "T"}, {name for _, name in found}


def plain(name):
    return re.sub("_pt[ds][sz]$", "", name)


USED_NAMES = read(USED)
OF_RUNTIME = {name for name in USED_NAMES if not re.match("cu[A-Z]", name)}
TWINS = {name for name in read(NAMES) if plain(name) != name and plain(name) in OF_RUNTIME}


class Used(unittest.TestCase):
    def check_runtime(self, path, wanted):
        exported, defined = symbols(path)
        self.assertFalse(wanted - exported, "not exported")
        by_hand = {name for name in wanted if name.startswith("__cudaReg") or "rt_" + plain(name)
                   not in defined}
        # These have no body of another name; see HANDMADE in gen_runtime.py.
        self.assertLessEqual(by_hand, {
            "__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd", "__cudaRegisterFunction",
            "__cudaRegisterManagedVar", "__cudaRegisterVar", "__cudaUnregisterFatBinary",
            "__cudaInitModule", "__cudaPopCallConfiguration", "__cudaPushCallConfiguration",
            "cudaCreateChannelDesc", "cudaGetErrorName", "cudaGetErrorString"})

    def test_release_13(self):
        self.assertGreater(len(OF_RUNTIME), 120)
        self.assertGreater(len(TWINS), 20)
        self.check_runtime(RUNTIME13, OF_RUNTIME | TWINS)

    def test_the_archive(self):
        self.check_runtime(ARCHIVE, OF_RUNTIME | TWINS)

    def test_release_12(self):
        self.check_runtime(RUNTIME12, (OF_RUNTIME | TWINS) - NEW_IN_13)
        self.assertFalse(IN_12_ALONE - symbols(RUNTIME12)[0])
        self.assertFalse(NEW_IN_13 & symbols(RUNTIME12)[0])

    def test_the_driver(self):
        exported, defined = symbols(DRIVER)
        wanted = USED_NAMES - OF_RUNTIME
        self.assertGreater(len(wanted), 20)
        self.assertFalse(wanted - exported)
        self.assertFalse({name for name in wanted if "sim_" + name not in defined})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
