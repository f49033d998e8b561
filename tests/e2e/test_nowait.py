#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls that return at once while the device is busy still do: a host function occupies a stream
until the call has returned, so that any wait for the device is a hang, which the program reports."""
import unittest

import harness
from harness import Case

DRIVERS = {
    "newest": {},
    "12.4, no context events": {"SIMCUDA_DRIVER": "12.4", "SIMCUDART_COMPAT": "1"},
    "no stream ids": {"SIMCUDA_WITHOUT": "cuStreamGetId"},
}
SETTINGS = {"CCA_DUMP_ON": "none", "CCA_OOM_WAIT_MS": "300"}
MODES = {mode: harness.MODES[mode] for mode in ("strict", "fence")}


class NoWait(Case):
    def check(self, *names, **env):
        for driver, settings in DRIVERS.items():
            for name in names:
                with self.subTest(driver=driver):
                    bare, _ = self.compare("nowait", name, modes=MODES, timeout=30,
                                           env={**SETTINGS, **settings, **env})
                    self.assertIn("at once", bare.stdout)
                    self.assertEqual(bare.status, 0)

    def test_stream_ordered_allocation(self):
        self.check("malloc-free-async")

    def test_stream_ordered_allocation_on_default_streams(self):
        self.check("malloc-free-async-default")

    def test_free_of_stream_ordered_memory(self):
        """Only memory of cudaMalloc is waited for."""
        self.check("free-of-async", "free-of-async-after-pool")

    def test_stream_ordered_free(self):
        self.check("free-async", "free-async-after-pool")

    def test_stream_ordered_free_of_other_memory(self):
        self.check("free-async-of-malloc")

    def test_stream_destruction(self):
        self.check("stream-destroy", "stream-destroy-freed-there")

    def test_capture(self):
        self.check("capture")

    def test_pools(self):
        self.check("pool-get", "pool-set", "pool-create")

    def test_peer_access(self):
        self.check("peer", SIMCUDA_DEVICES="2")

    def test_allocation_from_the_cache(self):
        self.check("malloc")

    def test_allocation_that_must_fail(self):
        """Waits CCA_OOM_WAIT_MS at most."""
        self.check("malloc-too-much", "malloc-too-much-pending")

    def test_what_may_go_back_to_the_driver(self):
        """Its free waits: not where the program's own call does not."""
        self.check("malloc-that-fits", SIMCUDA_MEM="1g")
        self.check("free-async-and-wait", CCA_CACHE_LIMIT="1m")
        self.check("free-async-and-wait", CCA_MEMORY_LIMIT="300m", CCA_GARBAGE_COLLECTION_THRESHOLD="0.1")

    def test_queries(self):
        self.check("mem-get-info", "event-query")

    def test_allocation_that_must_give_segments_back(self):
        """The driver frees nothing while work runs: out of memory is allowed then, a hang is not. A
        driver without context events cannot be asked whether it is idle: there the allocation, which
        would otherwise fail, gives memory back with the driver's own wait, as the README says."""
        for driver, settings in DRIVERS.items():
            if "no context events" in driver:
                continue
            for mode, how in MODES.items():
                with self.subTest(driver=driver, mode=mode):
                    run = self.run_program("nowait", "malloc-over-holes", timeout=30,
                                           env={**SETTINGS, **settings, **how})
                    self.assertRegex(run.stdout, "-> (0, last error 0 0|2, last error 2 2)\n")
                    self.assertIn("at once", run.stdout)
                    self.assertEqual(run.status, 0)

    def test_strict_free_waits_as_the_native_one(self):
        bare, _ = self.compare("nowait", "free", 1, modes={"strict": {}}, timeout=30, env=SETTINGS)
        self.assertEqual(bare.stdout, "HANG\n")

    def test_fence_free_does_not_wait(self):
        run = self.run_program("nowait", "free", timeout=30,
                               env={**SETTINGS, **harness.MODES["fence"]})
        self.assertEqual(run.stdout, "cudaFree(p) -> 0, last error 0 0\n"
                                     "cudaFree(q) -> 0, last error 0 0\nfree: at once\n")
        self.assertEqual(run.status, 0)


if __name__ == "__main__":
    harness.main()
