#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Contexts that the program makes itself are served like primary ones: each has a heap, which dies
with it; its work counts when memory of another is freed."""
import unittest

import harness
from harness import Case

CACHING = {mode: harness.MODES[mode] for mode in ("strict", "fence")}


class Contexts(Case):
    def equal(self, scene, **env):
        return self.compare("contexts", scene, env=env)[1]

    def both_times(self, scene):
        for time in ("real", "virtual"):
            for mode, run in self.equal(scene, SIMCUDA_TIME=time).items():
                with self.subTest(scene=scene, time=time, mode=mode):
                    self.assertNotIn("caching ends", run.stderr)

    def test_one_context_is_served_from_the_cache(self):
        self.both_times("one")
        _, bare = self.calls("contexts", "one", preload=False)
        self.assertGreaterEqual(bare["cuMemAlloc_v2"], 300)
        for mode, settings in CACHING.items():
            with self.subTest(mode=mode):
                _, hooked = self.calls("contexts", "one", env=settings)
                self.assertLessEqual(hooked["cuMemAlloc_v2"], 14)

    def test_a_context_works_while_others_come_and_go(self):
        self.both_times("generations")
        for mode, settings in CACHING.items():
            with self.subTest(mode=mode):
                _, hooked = self.calls("contexts", "generations", env=settings)
                self.assertLessEqual(hooked["cuMemAlloc_v2"], 100)

    def test_a_context_moves_between_threads_and_its_memory_is_freed_elsewhere(self):
        self.both_times("migrate")

    def test_work_of_another_context_is_waited_for(self):
        self.both_times("cross")

    def test_the_default_streams_of_two_contexts_are_two(self):
        self.both_times("defaults")

    def test_memory_in_stream_order_outlives_its_context(self):
        self.both_times("outlive")

    def test_beside_the_primary_context(self):
        self.both_times("primary")

    def test_what_one_context_holds_idle_is_there_for_the_other(self):
        self.equal("hoard", SIMCUDA_MEM="2G")

    def test_the_limit_counts_all_contexts_of_the_device(self):
        run = self.run_program("contexts", "hoard", env={"CCA_MEMORY_LIMIT": "1500M"})
        self.assertEqual(run.status, 0, run.stdout + run.stderr)
        snapshot = self.only_snapshot()
        reserved = snapshot["cca"]["stats"][0]["reserved_bytes.all.peak"]
        self.assertLessEqual(reserved, 1500 << 20)

    def test_a_context_that_refuses_to_end_keeps_what_it_has(self):
        self.equal("refused", SIMCUDA_FAIL="cuCtxDestroy_v2:n=1:code=400,"
                                           "cuDevicePrimaryCtxReset_v2:n=1:code=400")

    def test_contexts_one_after_the_other_without_end(self):
        for mode, run in self.equal("many").items():
            self.assertNotIn("caching ends", run.stderr, mode)

    def test_what_is_allocated_during_a_reset_is_gone_after_it(self):
        self.equal("reset", SIMCUDA_SLOW="cuDevicePrimaryCtxReset_v2:us=60000")

    def test_before_12_5_a_second_context_ends_caching(self):
        for scene in ("cross", "defaults", "generations", "migrate"):
            runs = self.equal(scene, SIMCUDA_DRIVER="12.4")
            self.assertIn("caching ends: a second context", runs["strict"].stderr)
        for mode, run in self.equal("one", SIMCUDA_DRIVER="12.4").items():
            self.assertNotIn("caching ends", run.stderr, mode)

    def test_both_contexts_stand_in_one_account(self):
        self.run_program("contexts", "migrate")
        snapshot = self.only_snapshot()
        stats = snapshot["cca"]["stats"]
        self.assertEqual(len(stats), 1)
        self.assertEqual(stats[0]["allocation.all.allocated"], 5 * 21)
        self.assertEqual(stats[0]["allocation.all.current"], 0)
        self.assertEqual(len(snapshot["device_traces"]), 1)


class Faults(Case):
    """An error that looks fatal is not always this context's, or fatal."""

    MODES = {mode: harness.MODES[mode] for mode in ("strict", "fence")}

    def test_one_allocation_that_fails_as_if_all_were_over(self):
        for code in (46, 101, 999):
            bare = self.run_program("onefault", "once", preload=False,
                                    env={"SIMCUDA_FAIL": "cuMemAlloc_v2:n=3:code=%d" % code})
            self.assertIn("what was kept is right", bare.stdout)
            for mode, settings in self.MODES.items():
                with self.subTest(code=code, mode=mode):
                    run = self.run_program("onefault", "once", env={
                        **settings, "SIMCUDA_FAIL": "cuMemAlloc_v2:n=2:code=%d" % code})
                    self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout),
                                     run.stderr)

    def test_another_context_is_lost_and_current(self):
        self.compare("onefault", "other", modes=self.MODES, env={
            "SIMCUDA_DEVICES": "2", "SIMCUDA_FAIL": "cuMemsetD8_v2:n=2:code=700:sticky=1"})

    def test_calls_that_only_the_library_makes_may_fail_now_and_then(self):
        for fault in ("cuCtxRecordEvent", "cuEventQuery", "cuEventSynchronize"):
            for name in ("basic", "async"):
                bare = self.run_program(name, preload=False)
                for mode, settings in self.MODES.items():
                    with self.subTest(fault=fault, name=name, mode=mode):
                        run = self.run_program(name, env={
                            **settings, "SIMCUDA_FAIL": fault + ":every=3:code=999"})
                        self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout),
                                         run.stderr)


if __name__ == "__main__":
    harness.main()
