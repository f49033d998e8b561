#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory that others see: second processes, devices with peer access, memory pools. Caching goes on."""
import os
import unittest

import harness
from harness import Case, live_blocks

SETTINGS = {"CCA_DUMP_ON": "none"}
CACHING = {mode: harness.MODES[mode] for mode in ("strict", "fence")}
RIGHT = "the other sees the right bytes"


class Processes(Case):
    """The exported block lies inside a segment, unless it has one of its own."""

    SIZES = (64 << 10, 1 << 20, 3 << 20)
    #: Of programs that do not refer to the call, nothing is known beforehand.
    UNKNOWN = "ipc_looked_up"

    def ipc(self, size, *args, program="ipc", **env):
        return self.run_program(program, size, *args, env={**SETTINGS, **env})

    def test_a_block_that_shares_its_segment_is_refused(self):
        for mode in ("auto", "refuse"):
            run = self.ipc(1 << 20, program=self.UNKNOWN, CCA_IPC=mode)
            self.assertIn("-> 1, last error 1 1", run.stdout)
            self.assertIn("does not fill its segment", run.stderr)
            self.assertNotIn("the other", run.stdout)

    def test_after_the_first_refusal_blocks_have_segments_of_their_own(self):
        """The next pair is right, but not where refusal is what was asked for."""
        run = self.ipc(1 << 20, "again", program=self.UNKNOWN)
        self.assertEqual(run.stdout.count("-> 1, last error 1 1"), 1, run.stdout)
        self.assertEqual(run.stdout.count(RIGHT), 1, run.stdout)
        self.assertIn("which later blocks have from now on", run.stderr)
        run = self.ipc(1 << 20, "again", program=self.UNKNOWN, CCA_IPC="refuse")
        self.assertEqual(run.stdout.count("-> 1, last error 1 1"), 2, run.stdout)

    def test_programs_that_refer_to_the_call_get_dedicated_blocks(self):
        for program in ("ipc", "ipc_driver"):
            for size in self.SIZES:
                self.compare(program, size, env=SETTINGS)
            run = self.ipc(1 << 20, program=program, CCA_LOG_LEVEL="info")
            self.assertIn("blocks get segments of their own, as the program refers to cu", run.stderr)
            self.assertIn(RIGHT, run.stdout)

    def test_libraries_that_refer_to_the_call_count(self):
        exporter = harness.program("libexporter.so")
        run = self.ipc(1 << 20, program=self.UNKNOWN, CCA_LOG_LEVEL="info",
                       LD_PRELOAD=harness.PRELOAD + ":" + exporter)
        self.assertIn("libexporter.so refers to cudaIpcGetMemHandle", run.stderr)
        self.assertIn(RIGHT, run.stdout)

    def test_other_programs_share_segments(self):
        _, calls = self.calls("threads", 100, 1, env=SETTINGS)
        _, dedicated = self.calls("threads", 100, 1, env={**SETTINGS, "CCA_IPC": "dedicated"})
        self.assertLess(calls["cuMemAlloc_v2"], dedicated["cuMemAlloc_v2"])

    def exported(self, *args, **env):
        self.ipc(1 << 20, *args, CCA_DUMP_ON="exit", **env)
        snapshot = self.only_snapshot()
        blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]
                  if block.get("exported")]
        os.remove(self.files("cca-*.pickle")[0])
        return blocks, live_blocks(snapshot)

    def test_exported_blocks_are_marked_in_the_snapshot(self):
        for mode in CACHING.values():
            blocks, live = self.exported("keep", **mode)
            self.assertEqual(len(live), 1)
            self.assertEqual(blocks, live)
        self.ipc(1 << 20, "keep", CCA_DUMP_ON="exit")
        run = self.run_program(harness.TOOL, "show", self.files("cca-*.pickle")[0], preload=False)
        self.assertIn("in 1 live block; other processes may use them", run.stdout)
        self.assertIn("said      blocks get segments of their own", run.stdout)
        os.remove(self.files("cca-*.pickle")[0])
        # What lies at the address afterwards is another block.
        blocks, live = self.exported("fresh")
        self.assertEqual((len(live), blocks), (2, []))
        self.assertEqual(self.exported()[0], [])

    def test_dedicated_blocks_are_exported_alone(self):
        for size in self.SIZES:
            bare = self.run_program(self.UNKNOWN, size, preload=False)
            self.assertIn(RIGHT, bare.stdout)
            for mode, settings in CACHING.items():
                with self.subTest(size=size, mode=mode):
                    run = self.ipc(size, program=self.UNKNOWN, CCA_IPC="dedicated", **settings)
                    self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)

    def test_ranks_get_dedicated_blocks_by_themselves(self):
        run = self.ipc(1 << 20, program=self.UNKNOWN, RANK="3")
        self.assertIn(RIGHT, run.stdout)
        run = self.ipc(1 << 20, program=self.UNKNOWN, RANK="3", CCA_IPC="refuse")
        self.assertNotIn(RIGHT, run.stdout)

    def test_dedicated_blocks_are_cached(self):
        _, calls = self.calls("threads", 100, 1, env={**SETTINGS, "CCA_IPC": "dedicated"})
        _, bare = self.calls("threads", 100, 1, preload=False)
        self.assertLess(calls["cuMemAlloc_v2"] * 3, bare["cuMemAlloc_v2"])
        self.compare("threads", 100, env={**SETTINGS, "CCA_IPC": "dedicated"})

    def test_a_program_that_passes_the_offset_on(self):
        for size in self.SIZES:
            self.compare(self.UNKNOWN, size, "offset", env=SETTINGS)
        self.assertNotIn(RIGHT, self.ipc(1 << 20, "offset", CCA_IPC="refuse").stdout)

    def test_forward_means_the_segment(self):
        self.assertIn("the other sees OTHER bytes", self.ipc(1 << 20, CCA_IPC="forward").stdout)
        self.assertIn(RIGHT, self.ipc(1 << 20, "offset", CCA_IPC="forward").stdout)


class Peers(Case):
    def test_a_free_waits_for_the_peer(self):
        """As NVIDIA's driver does, which the simulated one does not."""
        run = self.run_program("peer", env={**SETTINGS, "SIMCUDA_DEVICES": "2"})
        self.assertIn("the other device is done", run.stdout)
        self.assertIn("reused memory: right", run.stdout)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertNotIn("caching ends", run.stderr)

    def test_in_fence_mode_memory_waits_for_the_peer(self):
        run = self.run_program("peer", env={**SETTINGS, "SIMCUDA_DEVICES": "2",
                                            **harness.MODES["fence"]})
        self.assertIn("reused memory: right", run.stdout)
        self.assertEqual(run.status, 0, run.stderr)

    def test_a_wait_for_one_device_is_silent_about_the_other(self):
        for mode in CACHING:
            run = self.run_program("farfree", env={**SETTINGS, "SIMCUDA_DEVICES": "2", **harness.MODES[mode]})
            self.assertEqual((run.status, run.stdout), (0, "new memory: right\n"), run.stderr)

    def test_access_by_the_default_pool(self):
        """Memory that is out already is opened, later memory is CUDA's own."""
        env = {**SETTINGS, "SIMCUDA_DEVICES": "2"}
        self.compare("peer", "pool", env=env)
        _, calls = self.calls("peer", "pool", env=env)
        self.assertEqual(calls["cuMemAllocAsync"], 1)

    def test_access_that_the_program_enables_beside_its_pool(self):
        bare, _ = self.compare("peer", "enable", env={**SETTINGS, "SIMCUDA_DEVICES": "2"})
        self.assertEqual(bare.status, 0, bare.stdout)


class Pools(Case):
    def test_a_threshold_ends_nothing(self):
        _, runs = self.compare("valve", "pool", env=SETTINGS)
        for mode in CACHING:
            self.assertNotIn("caching ends", runs[mode].stderr)


if __name__ == "__main__":
    harness.main()
