#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs see the same with the library as without: exit status, output, error codes, results."""
import unittest

import harness
from harness import Case


class Programs(Case):
    def test_allocate_fill_free(self):
        self.compare("basic")

    def test_error_codes_and_last_error(self):
        self.compare("errors")

    def test_stream_ordered(self):
        self.compare("async")
        self.compare("async", env={"SIMCUDA_KERNEL_US": "200", "SIMCUDA_COPY_US": "50"})

    def test_stream_ordered_in_virtual_time(self):
        self.compare("async", env={"SIMCUDA_TIME": "virtual"})

    def test_eight_threads(self):
        self.compare("threads", 200)

    def test_device_reset(self):
        self.compare("reset")

    def test_several_devices(self):
        self.compare("devices", env={"SIMCUDA_DEVICES": "3"})

    def test_exit_status_of_the_program(self):
        bare, _ = self.compare("leaky")
        self.assertEqual(bare.status, 7)

    @unittest.skipUnless(harness.has_program("loop"), "no nvcc")
    def test_kernels_in_a_loop(self):
        self.compare("loop", 200)

    @unittest.skipUnless(harness.has_program("loop"), "no nvcc")
    def test_a_loop_makes_a_hundred_times_fewer_driver_allocations(self):
        _, bare = self.calls("loop", 1000, preload=False)
        for mode in ("strict", "fence"):
            with self.subTest(mode=mode):
                _, hooked = self.calls("loop", 1000, env=harness.MODES[mode])
                self.assertGreaterEqual(bare["cuMemAlloc_v2"], 2000)
                self.assertLessEqual(hooked["cuMemAlloc_v2"] * 100, bare["cuMemAlloc_v2"])
                self.assertLessEqual(hooked.get("cuMemFree_v2", 0) * 100, bare["cuMemFree_v2"])

    def test_no_malloc_inside_a_hook(self):
        _, runs = self.compare("nomalloc")
        for mode in ("strict", "fence", "count"):
            self.assertRegex(runs[mode].stderr, "watched [1-9]")

    def test_the_cache_serves(self):
        _, hooked = self.calls("threads", 200)
        self.assertLess(hooked["cuMemAlloc_v2"], 60)


class OldDrivers(Case):
    def test_without_context_events(self):
        self.compare("basic", env={"SIMCUDA_WITHOUT": "cuCtxRecordEvent"})
        self.compare("threads", 100, env={"SIMCUDA_WITHOUT": "cuCtxRecordEvent"})
        self.compare("async", env={"SIMCUDA_WITHOUT": "cuCtxRecordEvent"})

    def test_a_second_device_without_context_events_ends_caching(self):
        _, runs = self.compare("devices", env={"SIMCUDA_DEVICES": "2",
                                               "SIMCUDA_WITHOUT": "cuCtxRecordEvent"})
        self.assertIn("caching ends", runs["fence"].stderr)

    def test_without_stream_ids_async_calls_are_forwarded(self):
        self.compare("async", env={"SIMCUDA_WITHOUT": "cuStreamGetId"})


class Valve(Case):
    def test_a_capture_keeps_caching(self):
        _, runs = self.compare("valve", "capture")
        for mode in ("strict", "fence"):
            self.assertNotIn("caching ends", runs[mode].stderr)

    def test_sharing_keeps_caching(self):
        for what in ("peer", "pool", "ipc"):
            _, runs = self.compare("valve", what, env={"SIMCUDA_DEVICES": "2"})
            for mode in ("strict", "fence"):
                self.assertNotIn("caching ends", runs[mode].stderr)

    def test_ipc_of_a_part_of_a_segment_is_refused(self):
        """The one call that fails where the native one succeeds: its handle would mean other bytes."""
        run = self.run_program("valve", "ipc-part")
        self.assertIn("cudaIpcGetMemHandle(&handle, p) -> 1, last error 1 1", run.stdout)
        self.assertIn("does not fill its segment", run.stderr)
        self.assertEqual(run.status, 0)

    def test_nothing_special_keeps_caching(self):
        _, runs = self.compare("valve", "nothing")
        self.assertNotIn("caching ends", runs["strict"].stderr)


if __name__ == "__main__":
    harness.main()
