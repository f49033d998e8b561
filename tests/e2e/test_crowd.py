#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Others must not fail because the cache holds memory idle: what CUDA needs for calls that are not
served it gets back, and is asked once more."""
import unittest

import harness
from harness import Case

SETTINGS = {"CCA_DUMP_ON": "none"}
CACHING = {mode: harness.MODES[mode] for mode in ("strict", "fence")}


class Memory(Case):
    """12 of 16 GiB are idle in the cache, 10 GiB are asked for in another way."""

    def test_ten_gigabytes_in_every_other_way(self):
        for way in ("pitch", "volume", "managed", "array", "array3d", "physical", "pool"):
            bare, runs = self.compare("crowd", way, env=SETTINGS, timeout=30)
            self.assertGreaterEqual(bare.stdout.count("-> 0"), 2)
            for run in runs.values():
                self.assertNotIn("1 retries", run.stderr)

    def test_the_cache_held_it(self):
        """Without giving back the same calls would fail."""
        for way, function in (("array3d", "cuArray3DCreate_v2"), ("physical", "cuMemCreate"),
                              ("pitch", "cuMemAllocPitch_v2")):
            _, calls = self.calls("crowd", way, env=SETTINGS)
            self.assertEqual(calls[function], 2, way)
            self.assertGreaterEqual(calls["cuMemFree_v2"], 10)

    def test_during_a_capture_nothing_goes_back(self):
        """What is refused then is refused, and the capture is whole: see test_sequences.py."""
        self.compare("crowd", "capture", env=SETTINGS, timeout=30)


class Accounts(Case):
    """Live memory that is not served, by the call it was had with and the object that asked."""

    def test_the_snapshot_lists_it(self):
        self.run_program("crowd", "keep")
        rows = {row["api"]: row for row in self.only_snapshot()["cca"]["unmanaged"]}
        for row in rows.values():
            self.assertEqual(row["library"], "crowd")
        self.assertEqual((rows["cuMemAllocManaged"]["bytes"], rows["cuMemAllocManaged"]["count"]),
                         (3 << 20, 1))
        self.assertEqual(rows["cuMemAllocPitch_v2"]["bytes"], 1024 * 1000)
        self.assertEqual(rows["cuArray3DCreate_v2"]["bytes"], 256 * 256 * 4)
        self.assertEqual(rows["cuMemCreate"]["bytes"], 4 << 20)
        self.assertEqual(rows["cuMemHostAlloc"]["device"], -1)
        self.assertEqual(rows["cuMemHostAlloc"]["bytes"], 1 << 20)

    def test_what_was_freed_is_not_there(self):
        for way in ("pitch", "managed", "array", "physical", "pool"):
            self.run_program("crowd", way, env={"CCA_DUMP_FILE": way})
            snapshot = self.load(self.files(way + ".pickle")[0])
            self.assertEqual(snapshot["cca"]["unmanaged"], [], way)


class ByTheWay(Case):
    """Calls that fail once for want of memory, by order of the simulator."""

    #: Function, and whether the device has memory of ours to give back.
    calls_made = ("cuStreamCreate", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuLaunchKernel",
                  "cuLibraryLoadData")

    def test_is_tried_again_after_a_release(self):
        clean = self.run_program("crowd", "small", preload=False)
        for function in self.calls_made:
            with self.subTest(function=function):
                fail = {**SETTINGS, "SIMCUDA_FAIL": function + ":n=1:code=2"}
                bare = self.run_program("crowd", "small", preload=False, env=fail)
                self.assertIn(" -> 2", bare.stdout)
                run, calls = self.calls("crowd", "small", env=fail)
                self.assertNotIn("-> 2", run.stdout)
                self.assertEqual(run.stdout, clean.stdout)
                self.assertEqual(calls[function], 2)

    def test_fails_as_natively_when_there_is_nothing_to_give_back(self):
        for function in self.calls_made:
            fail = {**SETTINGS, "SIMCUDA_FAIL": function + ":n=1:code=2"}
            self.compare("crowd", "small", "empty", env=fail)

    def test_another_error_is_not_tried_again(self):
        fail = {**SETTINGS, "SIMCUDA_FAIL": "cuStreamCreate:n=1:code=304"}
        run, calls = self.calls("crowd", "small", env=fail)
        self.assertIn("cuStreamCreate -> 304", run.stdout)
        self.assertEqual(calls["cuStreamCreate"], 1)


if __name__ == "__main__":
    harness.main()
