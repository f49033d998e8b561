#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CCA_MODE=count and its neighbours: everything passes through, the accounts are kept, and the
estimate says what caching would have done."""
import re
import unittest

import harness
from harness import Case, live_blocks

COUNT = {"CCA_MODE": "count"}


class Count(Case):
    def test_the_driver_is_called_as_without_the_library(self):
        """The same number of calls of every function that changes anything."""
        _, bare = self.calls("threads", 50, preload=False)
        _, counted = self.calls("threads", 50, env=COUNT)
        for name in ("cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocAsync", "cuMemFreeAsync",
                     "cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyDtoH_v2"):
            self.assertEqual(counted.get(name, 0), bare.get(name, 0), name)
        for name in ("cuCtxRecordEvent", "cuEventRecord", "cuEventSynchronize"):
            self.assertEqual(counted.get(name, 0), 0, name)

    def test_each_allocation_is_a_segment_with_one_block(self):
        self.run_program("leaky", env=COUNT)
        snapshot = self.only_snapshot()
        self.assertEqual(len(live_blocks(snapshot)), 3)
        for segment in snapshot["segments"]:
            self.assertEqual(len(segment["blocks"]), 1)
            self.assertEqual(segment["blocks"][0]["size"], segment["total_size"])
            self.assertTrue(segment["blocks"][0]["frames"])
        actions = [entry["action"] for entry in snapshot["device_traces"][0]]
        for action, count in (("segment_alloc", 30), ("alloc", 30), ("free_requested", 27),
                              ("free_completed", 27), ("segment_free", 27)):
            self.assertEqual(actions.count(action), count, action)

    def test_the_estimate_is_what_the_cache_does(self):
        """One thread, so that both runs see the same sequence."""
        self.run_program("threads", 100, 1, env={"CCA_DUMP_FILE": "cca-a", "CCA_FREE_SYNC": "strict"})
        self.run_program("threads", 100, 1, env={"CCA_DUMP_FILE": "cca-b", **COUNT})
        cached, counted = (self.load(path) for path in self.files("cca-*.pickle"))
        counters, estimate = cached["cca"]["counters"][0], counted["cca"]["estimate"][0]
        self.assertGreater(counters["hits"], 90)
        for name in ("allocs", "hits", "driver_allocs", "driver_frees"):
            self.assertEqual(estimate[name], counters[name], name)
        self.assertEqual(estimate["reserved_peak"],
                         cached["cca"]["stats"][0]["reserved_bytes.all.peak"])
        self.assertEqual(estimate["frees"], estimate["allocs"])
        self.assertNotIn("estimate", cached["cca"])

    def test_time_in_driver_calls_is_measured(self):
        run = self.run_program("leaky", env={
            **COUNT, "SIMCUDA_SLOW": "cuMemAlloc_v2:us=2000,cuMemFree_v2:us=1000"})
        estimate = self.only_snapshot()["cca"]["estimate"][0]
        self.assertGreater(estimate["alloc_time_us"], 30 * 2000)
        self.assertGreater(estimate["free_time_us"], 27 * 1000)
        self.assertEqual(estimate["hits"], 29)
        line = re.search(r"30 allocations, all passed to the driver in ([\d.]+) ms, and 27 frees in "
                         r"([\d.]+) ms; with caching 96.7 % from the cache, 56 driver calls saved "
                         r"\(about ([\d.]+) ms\), peak 2.00 MiB reserved", run.stderr)
        self.assertTrue(line, run.stderr)
        # The histogram has two slots a factor of two: the median of 2 ms is 1 to 4 ms.
        self.assertGreater(float(line[3]), 29)
        self.assertLess(float(line[3]), 29 * 6)

    def test_native_means_the_same(self):
        run = self.run_program("leaky", env={"CCA_FREE_SYNC": "native"})
        self.assertIn("30 allocations, all passed to the driver", run.stderr)
        self.assertIn("with caching 96.7 % from the cache", run.stderr)

    def test_a_device_reset_does_not_confuse_it(self):
        self.compare("reset", modes={"count": COUNT})

    def test_several_devices_have_an_estimate_each(self):
        self.run_program("devices", env={**COUNT, "SIMCUDA_DEVICES": "3"})
        snapshot = self.only_snapshot()
        for estimate, counters in zip(snapshot["cca"]["estimate"], snapshot["cca"]["counters"]):
            self.assertEqual(estimate["allocs"], counters["allocs"])

    def test_eight_threads(self):
        self.compare("threads", 200, modes={"count": COUNT})


class Async(Case):
    """CCA_ASYNC=forward: the real calls and their errors come through."""

    def test_every_call_reaches_the_driver(self):
        env = {"CCA_ASYNC": "forward"}
        _, bare = self.calls("async", preload=False)
        _, forwarded = self.calls("async", env=env)
        _, served = self.calls("async")
        self.assertEqual(forwarded["cuMemAllocAsync"], bare["cuMemAllocAsync"])
        # What cudaMalloc gave is ours, however it is freed.
        self.assertGreater(forwarded["cuMemFreeAsync"], served.get("cuMemFreeAsync", 0))
        self.assertLess(served.get("cuMemAllocAsync", 0), bare["cuMemAllocAsync"])
        self.compare("async", env=env)


if __name__ == "__main__":
    harness.main()
