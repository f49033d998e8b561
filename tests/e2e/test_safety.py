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
MODES = {mode: harness.MODES[mode] for mode in ("strict", "fence")}


class Reuse(Case):
    def virtual(self, seed, **env):
        return {"SIMCUDA_TIME": "virtual", "SIMCUDA_SEED": str(seed), "CCA_DUMP_ON": "none",
                # what waits here waits for ever: nothing runs while nobody asks
                "CCA_PENDING_MAX": "256G", **env}

    def check(self, rounds, seed, env):
        """Right without the library, and the same with it."""
        bare, _ = self.compare("reuse", rounds, 8, seed, modes=MODES, timeout=600, env=env)
        self.assertEqual(bare.status, 0, bare.stdout + bare.stderr)

    def test_ten_thousand_rounds_with_eight_threads(self):
        self.check(ROUNDS, 1, self.virtual(1))

    def test_other_seeds(self):
        for seed in range(2, 30 if harness.FULL else 5):
            with self.subTest(seed=seed):
                self.check(500, seed, self.virtual(seed, SIMCUDA_VIRTUAL_PROGRESS="3"))

    def test_two_devices_without_peer_access(self):
        for seed in range(1, 20 if harness.FULL else 3):
            with self.subTest(seed=seed):
                self.check(1000, seed, self.virtual(seed, SIMCUDA_DEVICES="2"))

    def test_real_time(self):
        self.check(300, 7, {"CCA_DUMP_ON": "none"})

    def test_two_devices_in_real_time(self):
        self.check(300, 8, {"CCA_DUMP_ON": "none", "SIMCUDA_DEVICES": "2"})

    def test_without_the_fence_the_same_program_is_caught(self):
        """The library built with its fence taken out (-DCCA_DEFECT_no_fence)."""
        for devices in (1, 2):
            for mode, settings in MODES.items():
                with self.subTest(mode=mode, devices=devices):
                    run = self.run_program("reuse", 500, 8, 1, timeout=600, env={
                        **self.virtual(1, SIMCUDA_DEVICES=str(devices)), **settings,
                        "LD_PRELOAD": harness.SABOTAGED})
                    self.assertIn("simcuda: violation", run.stderr)
                    self.assertNotEqual(run.status, 0)

    def test_in_fence_mode_a_kernel_that_never_ends_hangs_no_free(self):
        run = self.run_program("reuse", 50, 1, 1, "endless", timeout=120,
                               env={"CCA_DUMP_ON": "none", **harness.MODES["fence"]})
        self.assertEqual(run.status, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    harness.main()
