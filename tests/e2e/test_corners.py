#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Corners of the memory API where allocators in between have been wrong: zero bytes, frees of what is
not a block, sizes that wrap, errors left behind, free memory, devices without pools."""
import unittest

import harness
from harness import Case

SETTINGS = {"CCA_DUMP_ON": "none"}
CACHING = {mode: harness.MODES[mode] for mode in ("strict", "fence")}


class Corners(Case):
    def test_as_natively(self):
        for corner in ("zero", "frees", "large", "error", "information"):
            self.compare("corners", corner, env=SETTINGS)

    def test_wrong_calls_leave_the_accounts_alone(self):
        self.run_program("corners", "frees")
        snapshot = self.only_snapshot()
        stats = snapshot["cca"]["stats"][0]
        self.assertEqual(stats["allocation.all.current"], 0)
        self.assertEqual(stats["allocated_bytes.all.current"], 0)
        self.assertFalse([entry for entry in snapshot["device_traces"][0] if entry["size"] == 0])

    def test_sizes_that_wrap_are_failures_and_no_calls(self):
        _, calls = self.calls("corners", "large", env={"CCA_DUMP_ON": "exit"})
        self.assertEqual(self.only_snapshot()["cca"]["stats"][0]["num_ooms"], 5)
        self.assertLessEqual(calls["cuMemAlloc_v2"], 1 + 5)

    def test_with_a_limit_free_memory_is_what_is_left_of_it(self):
        run = self.run_program("corners", "information", env={**SETTINGS, "CCA_MEMORY_LIMIT": "4G"})
        self.assertIn("cudaMalloc(&p, after / 10 * 9) -> 0", run.stdout)

    def test_raw_figures_show_the_cache_as_used(self):
        for mode, settings in CACHING.items():
            run = self.run_program("corners", "information",
                                   env={**SETTINGS, **settings, "CCA_MEM_GET_INFO": "raw"})
            self.assertIn("free memory is NOT back", run.stdout, mode)

    def test_a_device_without_pools(self):
        """D11: served from the cache, unless the program's own fallback is to be tested."""
        env = {**SETTINGS, "SIMCUDA_WITHOUT": "cuMemAllocAsync,cuMemFreeAsync"}
        bare = self.run_program("corners", "ordered", preload=False, env=env)
        self.assertIn("no pools", bare.stdout)
        for mode, settings in CACHING.items():
            run = self.run_program("corners", "ordered", env={**env, **settings})
            self.assertEqual((run.status, run.stdout), (0, "twenty blocks\n"), mode)
        run = self.run_program("corners", "ordered", env={**env, "CCA_ASYNC": "forward"})
        self.assertEqual(run.stdout, bare.stdout)


if __name__ == "__main__":
    harness.main()
