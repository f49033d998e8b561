#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures and graphs: never disturbed, and no end of caching."""
import unittest

import harness
from harness import Case

CACHING = {mode: harness.MODES[mode] for mode in ("strict", "fence")}


class Captures(Case):
    def undisturbed(self, *args, env=None):
        bare, runs = self.compare("graphs", *args, env=env)
        self.assertEqual(bare.status, 0, bare.stdout)
        for mode in CACHING:
            self.assertNotIn("caching ends", runs[mode].stderr)

    def test_a_graph_is_launched_while_others_free_and_allocate(self):
        self.undisturbed("replay", 1000)

    def test_graphs_are_captured_while_others_free_and_allocate(self):
        self.undisturbed("capture", 200 if harness.FULL else 60)

    def test_with_kernels_that_take_time(self):
        self.undisturbed("replay", 200, env={"SIMCUDA_COPY_US": "30"})
        self.undisturbed("capture", 20, env={"SIMCUDA_COPY_US": "30"})

    def test_memory_calls_inside_a_capture(self):
        self.undisturbed("calls")

    def test_without_context_events(self):
        for way in (("replay", 100), ("capture", 20), ("calls",)):
            self.undisturbed(*way, env={"SIMCUDA_WITHOUT": "cuCtxRecordEvent"})

    def test_memory_comes_back_beside_a_long_capture_of_another_thread(self):
        for settings in ({}, {"CCA_PENDING_MAX": "16g"}):
            for kib in (48 << 10, 3 << 10, 640):
                self.undisturbed("beside", kib, env={"SIMCUDA_MEM": "1g", **settings})
            self.undisturbed("cached", env={"SIMCUDA_MEM": "1g", **settings})

    def test_memory_comes_back_beside_a_long_capture_with_expandable_segments(self):
        for kib in (3 << 10, 640):
            self.undisturbed("beside", kib, env={"SIMCUDA_MEM": "1g", "CCA_CONF": "expandable_segments:True"})

    def test_memory_comes_back_beside_a_long_capture_without_context_events(self):
        self.undisturbed("beside", 3 << 10, env={"SIMCUDA_MEM": "1g", "SIMCUDA_WITHOUT": "cuCtxRecordEvent"})

    def test_a_capture_that_never_ends_by_itself(self):
        for way in ("reset", "destroy"):
            self.undisturbed(way)

    def test_of_a_stream_that_gets_the_handle_of_a_destroyed_one(self):
        bare, _ = self.compare("takeover", timeout=30)
        self.assertEqual(sorted(bare.stdout.splitlines()), [
            "destroy: 0", "end of the capture: 0", "free: 0", "the same handle: yes"])

    def test_many_captures_at_once(self):
        self.undisturbed("many", 200)

    def test_a_capture_that_became_invalid(self):
        for driver in ({}, *({"SIMCUDA_DRIVER": old, "SIMCUDART_COMPAT": "1"} for old in ("12.2", "11.8"))):
            self.undisturbed("invalid", env=driver)


if __name__ == "__main__":
    harness.main()
