#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""However a program reaches CUDA, it is served, and sees what it would have seen without."""
import unittest

import harness
from harness import Case

CACHING = {mode: harness.MODES[mode] for mode in ("strict", "fence")}


class Doors(Case):
    def served(self, name, *args, bare_at_least=100, at_most=14):
        """Equal to the unhooked run in every mode; the driver is hardly asked where caching is on."""
        self.compare(name, *args)
        _, bare = self.calls(name, *args, preload=False)
        self.assertGreaterEqual(bare["cuMemAlloc_v2"], bare_at_least)
        for mode, settings in CACHING.items():
            with self.subTest(program=name, args=args, mode=mode):
                run, hooked = self.calls(name, *args, env=settings)
                self.assertNotIn("caching ends", run.stderr)
                self.assertLessEqual(hooked["cuMemAlloc_v2"], at_most)

    def test_static_runtime(self):
        self.served("basic_static", bare_at_least=20)
        self.served("threads_static", 200)

    def test_static_runtime_fails_alike(self):
        self.served("errors_static", bare_at_least=5)

    def test_driver_linked(self):
        self.served("driver")

    def test_driver_found_by_dlsym(self):
        self.served("doors", "driver")

    def test_driver_found_by_its_resolvers(self):
        self.served("doors", "resolver")
        self.served("doors", "old")

    def test_runtime_opened_locally(self):
        self.served("doors", "local")

    def test_driver_entry_points_of_the_runtime(self):
        self.served("doors", "entry")

    def test_several_runtimes(self):
        self.served("doors", "several", bare_at_least=200, at_most=40)

    def test_one_door_frees_what_another_gave(self):
        self.served("doors", "mixed", bare_at_least=400, at_most=50)

    def test_a_context_of_the_programs_own_is_served_beside_the_primary_one(self):
        _, runs = self.compare("doors", "other")
        self.assertNotIn("caching ends", runs["strict"].stderr)

    def test_older_runtimes(self):
        for release in ("11.2", "11.8"):
            env = {"SIMCUDART_RELEASE": release}
            self.compare("doors", "several", env=env)
            for name in ("basic_11", "async_11", "threads_11"):
                if harness.has_program(name):
                    self.compare(name, env=env)

    def test_in_virtual_time(self):
        self.compare("driver", env={"SIMCUDA_TIME": "virtual"})

    def test_older_drivers(self):
        for without in ("cuCtxRecordEvent", "cuStreamGetId", "cuCtxRecordEvent,cuStreamGetId"):
            self.compare("driver", env={"SIMCUDA_WITHOUT": without})


class Coverage(Case):
    def coverage(self, name, *args):
        run = self.run_program(name, *args, env={"CCA_DUMP_ON": "exit"})
        self.assertIn(run.status, (0, 5), run.stderr)
        return self.only_snapshot()["cca"]["hook_coverage"]

    def test_a_call_through_both_doors_is_counted_once(self):
        rows = self.coverage("basic")
        served = rows["cudaMalloc"]["served"]
        self.assertGreater(served, 20)
        self.assertEqual(rows["cudaMalloc"]["door"], "runtime")
        self.assertEqual(rows["cuMemAlloc_v2"]["seen"], 0, rows["cuMemAlloc_v2"])

    def test_driver_calls_are_counted_at_the_driver_door(self):
        rows = self.coverage("driver")
        self.assertGreater(rows["cuMemAlloc_v2"]["served"], 400)
        self.assertGreater(rows["cuMemAllocAsync"]["served"], 600)
        self.assertEqual(rows["cuStreamBeginCapture_v2"]["passed"], 1)
        self.assertEqual(rows["cudaMalloc"]["seen"], 0)
        self.assertEqual({row["missed"] for row in rows.values()}, {0})

    def test_level_info_shows_what_was_seen(self):
        run = self.run_program("basic", env={"CCA_LOG_LEVEL": "info"})
        self.assertIn("cca: cudaMalloc (runtime door): 27 seen, 27 served, 0 passed, 0 missed",
                      run.stderr)
        self.assertNotIn("cuMemAlloc_v2", run.stderr)

    def test_stacks_name_the_program_through_every_door(self):
        for name, caller in (("driver", "keep_one"), ("basic_static", "main")):
            with self.subTest(program=name):
                self.run_program(name, env={"CCA_DUMP_FILE": name, "CCA_DUMP_ON": "exit"})
                snapshot = self.load(self.files(name + ".pickle")[0])
                stacks = [[frame["name"] for frame in entry["frames"]]
                          for entry in snapshot["device_traces"][0] if entry["action"] == "alloc"]
                self.assertTrue(any(caller in stack for stack in stacks), stacks[:3])
                self.assertFalse(any("cca_" in frame for stack in stacks for frame in stack))


class Bypassed(Case):
    """The driver door is missed: no caching, one line, and nothing goes wrong."""

    def bypassed(self, name, *args, env=None):
        bare = self.run_program(name, *args, preload=False)
        for mode, settings in CACHING.items():
            run = self.run_program(name, *args, env={**(env or {}), **settings})
            self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)
            lines = [line for line in run.stderr.splitlines() if "come back" in line]
            self.assertEqual(len(lines), 1, run.stderr)
            self.assertIn("caching ends", lines[0])
            self.assertIn("all passed to the driver", run.stderr)

    def test_another_hook_of_dlsym_in_front(self):
        front = harness.program("libdlsymfront.so")
        for name in ("basic", "async", "threads"):
            self.bypassed(name, env={"LD_PRELOAD": front + ":" + harness.PRELOAD})


class Unseen(Case):
    """Nothing was hooked: told when CUDA was in use, and only then."""

    def told(self, name, *args, env=None):
        bare = self.run_program(name, *args, preload=False)
        run = self.run_program(name, *args, env=env)
        self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)
        self.assertEqual(self.files(), [])
        return [line for line in run.stderr.splitlines() if "no memory call of it came by" in line]

    def test_a_library_that_was_bound_past_this_one(self):
        self.assertEqual(len(self.told("late", "deepbind", harness.program("libworker.so"))), 1)

    def test_look_ups_that_another_hook_answers(self):
        front = harness.program("libdlsymfront.so") + ":" + harness.PRELOAD
        self.assertEqual(len(self.told("doors", "driver", env={"LD_PRELOAD": front})), 1)

    def test_a_driver_that_is_only_loaded(self):
        driver = harness.PRELOAD + ":" + harness.SIM + "/libcuda.so.1"
        self.assertEqual(self.told("doors", env={"LD_PRELOAD": driver}), [])

    def test_a_program_without_cuda(self):
        self.assertEqual(self.told("doors"), [])


if __name__ == "__main__":
    harness.main()
