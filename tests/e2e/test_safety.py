#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Freed memory is never given to new work while old work may still use it.

The simulated CUDA judges by order, not by luck: two unordered uses of the same bytes are a violation
whether or not they happen to meet. In virtual time the old kernel has not run at all when the new
memset is submitted."""
import unittest

import harness
from harness import Case

ROUNDS = 10000


class Reuse(Case):
    def run_rounds(self, rounds, mode, seed, **env):
        return self.run_program("reuse", rounds, 8, seed, timeout=600, env={
            "SIMCUDA_TIME": "virtual", "SIMCUDA_SEED": str(seed), "CCA_DUMP_ON": "none",
            # what waits here waits for ever: nothing runs while nobody asks
            "CCA_PENDING_MAX": "256G", **harness.MODES[mode], **env})

    def test_ten_thousand_rounds_with_eight_threads(self):
        for mode in ("strict", "fence"):
            with self.subTest(mode=mode):
                run = self.run_rounds(ROUNDS, mode, 1)
                self.assertNotIn("simcuda: violation", run.stderr)
                self.assertEqual(run.status, 0, run.stdout + run.stderr)

    def test_other_seeds(self):
        for seed in range(2, 30 if harness.FULL else 5):
            for mode in ("strict", "fence"):
                with self.subTest(mode=mode, seed=seed):
                    run = self.run_rounds(500, mode, seed, SIMCUDA_VIRTUAL_PROGRESS="3")
                    self.assertEqual(run.status, 0, run.stdout + run.stderr)

    def test_real_time(self):
        for mode in ("strict", "fence"):
            with self.subTest(mode=mode):
                run = self.run_program("reuse", 300, 8, 7, timeout=600, env={
                    "CCA_DUMP_ON": "none", **harness.MODES[mode]})
                self.assertEqual(run.status, 0, run.stdout + run.stderr)

    def test_the_unhooked_program_is_correct(self):
        run = self.run_program("reuse", 500, 8, 3, preload=False, timeout=600,
                               env={"SIMCUDA_TIME": "virtual"})
        self.assertEqual(run.status, 0, run.stdout + run.stderr)

    def test_without_the_fence_the_same_program_is_caught(self):
        """The library built with its fence taken out (-Dsabotage=no_fence)."""
        run = self.run_rounds(500, "fence", 1, LD_PRELOAD=harness.SABOTAGED)
        self.assertIn("simcuda: violation", run.stderr)
        self.assertNotEqual(run.status, 0)

    def test_in_fence_mode_a_kernel_that_never_ends_hangs_no_free(self):
        run = self.run_program("reuse", 50, 1, 1, "endless", timeout=120,
                               env={"CCA_DUMP_ON": "none", **harness.MODES["fence"]})
        self.assertEqual(run.status, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    harness.main()
