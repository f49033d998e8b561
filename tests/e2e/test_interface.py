#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that take part through the C interface: every answer, in every form of linking, with the
library and without; graphs over memory of private pools."""
import os
import unittest

import harness
from harness import Case

FORMS = ("partner", "partner_pie", "partner_no_pie", "partner_no_pic", "partner_cpp")

#: Work goes on when somebody asks about it, as for a fence.
VIRTUAL = {"SIMCUDA_TIME": "virtual", "SIMCUDA_VIRTUAL_PROGRESS": "2"}


class Answers(Case):
    def check(self, program, how, *args, preload=True, env=None):
        with self.subTest(program=program, how=how):
            run = self.run_program(program, how, *args, preload=preload, env=env)
            self.assertEqual(run.stdout, "%s: 0 wrong\n" % how, run.stderr)
            self.assertEqual(run.status, 0)
            self.assertNotIn("simcuda: violation", run.stderr)
            return run

    def test_with_the_library_in_every_form(self):
        for program in FORMS:
            if harness.has_program(program):
                self.check(program, "cached")

    def test_without_the_library_in_every_form(self):
        for program in FORMS:
            if harness.has_program(program):
                self.check(program, "absent", preload=False)

    def test_where_frees_do_not_wait(self):
        self.check("partner", "cached", env={"CCA_FREE_SYNC": "fence"})

    def test_in_virtual_time(self):
        self.check("partner", "cached", "unblocked", env=VIRTUAL)

    def test_without_context_events(self):
        self.check("partner", "cached", env={"SIMCUDA_WITHOUT": "cuCtxRecordEvent"})

    def test_over_segments_that_grow(self):
        self.check("partner", "cached", env={"CCA_EXPANDABLE_SEGMENTS": "1"})

    def test_while_the_library_only_counts(self):
        self.check("partner", "counting", env={"CCA_MODE": "count"})

    def test_a_library_that_is_off_has_no_device(self):
        run = self.check("partner", "off", env={"CCA_DISABLE": "1"})
        self.assertEqual(run.stderr, "")

    def test_a_pool_has_a_snapshot_of_its_own(self):
        self.check("partner", "cached")
        snapshot = self.load(os.path.join(self.folder, "pool.pickle"))
        pools = {segment["segment_pool_id"] for segment in snapshot["segments"]}
        self.assertEqual(pools, {(0, 1)})
        sizes = sorted(block["requested_size"] for block in harness.live_blocks(snapshot))
        self.assertEqual(sizes, [1 << 20, 3 << 20, 3 << 20])
        entries = snapshot["device_traces"][0]
        self.assertEqual({entry["pool_id"] for entry in entries}, {(0, 1)})
        self.assertEqual([entry["action"] for entry in entries].count("alloc"), 3)

    def test_a_snapshot_shows_the_settings_as_they_are(self):
        self.check("partner", "cached", env={"CCA_CONF": "max_split_size_mb:32"})
        changed = self.load(os.path.join(self.folder, "set.pickle"))
        settings = changed["allocator_settings"]
        self.assertEqual(settings["max_split_size"], 64 << 20)
        self.assertEqual(settings["garbage_collection_threshold"], 0.5)
        self.assertEqual(settings["roundup_power2_divisions"]["256"], 4)
        self.assertIs(settings["graph_capture_record_stream_reuse"], True)
        self.assertTrue(settings["PYTORCH_CUDA_ALLOC_CONF"].startswith("max_split_size_mb:64,"))
        self.assertEqual(changed["cca"]["settings"]["CCA_MAX_SPLIT_SIZE"], str(64 << 20))
        device = changed["cca"]["counters"][0]
        self.assertEqual((device["memory_fraction"], device["limit_bytes"]), (0.5, 8 << 30))
        # What a string resets is reset, what it keeps is kept.
        reset = self.load(os.path.join(self.folder, "reset.pickle"))
        settings = reset["allocator_settings"]
        self.assertEqual(settings["max_split_size"], -1)
        self.assertEqual(settings["garbage_collection_threshold"], 0)
        self.assertEqual(settings["roundup_power2_divisions"]["256"], 0)
        self.assertIs(settings["graph_capture_record_stream_reuse"], True)
        self.assertEqual(settings["PYTORCH_CUDA_ALLOC_CONF"], "")
        self.assertEqual(reset["cca"]["settings"]["CCA_MAX_SPLIT_SIZE"], "unlimited")
        device = reset["cca"]["counters"][0]
        self.assertEqual((device["memory_fraction"], device["limit_bytes"]), (1, 0))


class Graphs(Case):
    def replay(self, count, **env):
        bare = self.run_program("graphpool", count, preload=False)
        self.assertEqual(bare.stdout, "%d replays, 0 wrong numbers\n" % count, bare.stderr)
        run = self.run_program("graphpool", count, env=env)
        self.assertEqual((run.stdout, run.status), (bare.stdout, 0), run.stderr)
        self.assertNotIn("simcuda: violation", run.stderr)
        self.assertNotIn("caching ends", run.stderr)
        return run.stderr

    def test_a_thousand_replays_beside_eager_memory(self):
        said = self.replay(1000)
        # The temporary memory of the graph: nothing that two streams use comes back in the capture.
        self.assertIn("12 temporary addresses, 0 bytes reserved", said)

    def test_reuse_inside_the_capture(self):
        said = self.replay(1000, CCA_GRAPH_CAPTURE_REUSE="1")
        self.assertIn("2 temporary addresses, 0 bytes reserved", said)

    def test_where_frees_do_not_wait(self):
        self.replay(50, CCA_FREE_SYNC="fence", CCA_GRAPH_CAPTURE_REUSE="1")

    def test_in_virtual_time(self):
        self.replay(50, CCA_GRAPH_CAPTURE_REUSE="1", **VIRTUAL)

    def test_over_segments_that_grow(self):
        said = self.replay(50, CCA_EXPANDABLE_SEGMENTS="1", CCA_GRAPH_CAPTURE_REUSE="1")
        self.assertIn("2 temporary addresses, 0 bytes reserved", said)

    def test_a_driver_that_does_not_tell_of_captures(self):
        said = self.replay(20, SIMCUDA_WITHOUT="cuStreamGetCaptureInfo_v2",
                           CCA_GRAPH_CAPTURE_REUSE="1")
        self.assertIn("12 temporary addresses", said)


if __name__ == "__main__":
    harness.main()
