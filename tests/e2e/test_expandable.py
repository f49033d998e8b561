#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Segments that grow by mapping, under real programs."""
import unittest

import harness
from harness import Case

MODES = {mode: harness.MODES[mode] for mode in ("strict", "fence")}
ON = {"CCA_EXPANDABLE_SEGMENTS": "1"}
QUIET = {**ON, "CCA_DUMP_ON": "none"}
MIB = 1 << 20


class Programs(Case):
    def test_results_are_those_of_the_unhooked_run(self):
        for name in ("basic", "reuse", "async", "threads", "devices", "reset", "grow"):
            self.compare(name, modes=MODES, env={**QUIET, "SIMCUDA_DEVICES": "2"})

    def test_growing_blocks_leave_no_segments_behind_that_are_too_small(self):
        env = {"CCA_DUMP_ON": "none"}
        plain, _ = self.counts({**env, "CCA_EXPANDABLE_SEGMENTS": "0"})
        grown, calls = self.counts({**env, **ON})
        self.assertLess(grown, 0.7 * plain)
        self.assertEqual(calls.get("cuMemAlloc_v2", 0), 0, calls)
        self.assertEqual(calls["cuMemMap"], calls["cuMemCreate"])
        self.assertEqual(calls["cuMemRelease"], calls["cuMemCreate"])

    def counts(self, env):
        """Bytes held at the most, and calls of the driver."""
        run, calls = self.calls("grow", env=env)
        self.assertEqual(run.status, 0, run.stdout + run.stderr)
        reserved = run.stderr.split("allocated, ")[1].split(" MiB reserved")[0]
        return float(reserved), calls

    def test_the_words_of_the_settings_string_do_the_same(self):
        run, calls = self.calls("grow", env={"CCA_CONF": "expandable_segments:True",
                                             "CCA_DUMP_ON": "none"})
        self.assertEqual(run.status, 0, run.stderr)
        self.assertIn("cuMemMap", calls)
        _, calls = self.calls("grow", env={"CCA_CONF": "expandable_segments:True",
                                           "CCA_EXPANDABLE_SEGMENTS": "0", "CCA_DUMP_ON": "none"})
        self.assertNotIn("cuMemMap", calls)

    def test_peers_use_what_is_mapped_before_and_after_they_are_enabled(self):
        self.compare("peer_mapped", modes=MODES, env={**QUIET, "SIMCUDA_DEVICES": "2"})

    def test_where_nothing_can_be_mapped_ordinary_segments_serve_and_one_line_says_so(self):
        for missing in ("cuMemMap", "cuMemGetAllocationGranularity"):
            run, calls = self.calls("grow", env={**QUIET, "SIMCUDA_WITHOUT": missing})
            self.assertEqual(run.status, 0, run.stderr)
            self.assertEqual(run.stderr.count("expandable segments need a driver"), 1, run.stderr)
            self.assertIn("cuMemAlloc_v2", calls)
            self.assertNotIn("cuMemCreate", calls)

    def test_memory_that_runs_out_is_reported_as_natively(self):
        env = {**QUIET, "SIMCUDA_MEM": "64M"}
        bare = self.run_program("grow", preload=False, env=env)
        self.assertIn("cudaErrorMemoryAllocation", bare.stdout)
        self.compare("grow", modes=MODES, env=env)

    def test_a_block_has_no_handle_for_other_processes(self):
        run = self.run_program("grow", "ipc", env=QUIET)
        self.assertIn("get(&handle, kept[1]) -> 1,", run.stdout)
        self.assertEqual(run.stderr.count("refused for"), 1, run.stderr)

    def test_a_reset_gives_mapped_memory_back(self):
        _, plain = self.calls("reset", env={**QUIET, "CCA_EXPANDABLE_SEGMENTS": "0"})
        run, calls = self.calls("reset", env=QUIET)
        self.assertEqual(run.status, 0, run.stdout + run.stderr)
        self.assertIn("cuMemUnmap", calls)
        self.assertNotIn("cuMemUnmap", plain)


class Snapshot(Case):
    def test_each_mapped_stretch_is_a_segment(self):
        run = self.run_program("grow", env={**ON, "SIMCUDA_MEM": "288M"})
        self.assertEqual(run.status, 0, run.stdout + run.stderr)
        snapshot = self.only_snapshot()
        self.assertTrue(snapshot["allocator_settings"]["expandable_segments"])
        segments = snapshot["segments"]
        self.assertTrue(segments and all(s["is_expandable"] for s in segments))
        self.assertEqual({s["total_size"] % (2 * MIB) for s in segments}, {0})
        self.assertTrue(any(s["frames"] for s in segments))
        actions = [entry["action"] for entry in snapshot["device_traces"][0]]
        self.assertIn("segment_map", actions)
        self.assertNotIn("segment_alloc", actions)
        stats = snapshot["cca"]["stats"][0]
        self.assertEqual(stats["segment.all.allocated"], 0)
        self.assertEqual(stats["inactive_split.all.allocated"], 0)
        self.assertEqual(stats["reserved_bytes.all.current"],
                         sum(s["total_size"] for s in segments))
        self.assertEqual(stats["num_device_alloc"], actions.count("segment_map"))

    def test_memory_that_went_back_is_in_the_history(self):
        run = self.run_program("grow", env={**ON, "CCA_CACHE_LIMIT": "0"})
        self.assertEqual(run.status, 0, run.stdout + run.stderr)
        snapshot = self.only_snapshot()
        trace = snapshot["device_traces"][0]
        self.assertTrue(any(e["action"] == "segment_unmap" and e["size"] % (20 * MIB) == 0
                            for e in trace))
        held = sum(e["size"] * {"segment_map": 1, "segment_unmap": -1}.get(e["action"], 0)
                   for e in trace)
        self.assertEqual(held, sum(s["total_size"] for s in snapshot["segments"]))


if __name__ == "__main__":
    harness.main()
