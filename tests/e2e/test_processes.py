#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forks, exits, plug-ins and device resets at awkward moments."""
import os
import unittest

import harness
from harness import Case

MODES = {mode: harness.MODES[mode] for mode in ("strict", "fence")}
SETTINGS = {"CCA_DUMP_ON": "none"}

#: Answers that are no errors: not ready.
ORDINARY = {("cuEventQuery", 600), ("cuStreamQuery", 600)}


class Forks(Case):
    def test_children_of_a_busy_program_load_libraries(self):
        bare, _ = self.compare("forkbusy", harness.program("libsmall.so"), 100, modes=MODES,
                               env=SETTINGS)
        self.assertEqual(bare.stdout, "100 children ended well\n")

    def test_children_release_while_a_thread_looks_for_contexts(self):
        env = {**SETTINGS, "SIMCUDA_DEVICES": "2",
               "SIMCUDA_SLOW": "cuDevicePrimaryCtxGetState:us=1000"}
        bare, _ = self.compare("forkbusy", harness.program("libsmall.so"), 20, "release",
                               modes=MODES, env=env)
        self.assertEqual(bare.stdout, "20 children ended well\n")


class Exits(Case):
    #: What a free may wait in takes half a second.
    slow = {"SIMCUDA_SLOW": ",".join(name + ":us=500000" for name in (
        "cuMemFree_v2", "cuEventSynchronize", "cuCtxSynchronize"))}

    def test_exit_in_a_signal_handler_during_a_free(self):
        bare = self.run_program("exitwait", preload=False, env=self.slow, timeout=30)
        self.assertEqual(bare.stdout, "freed at exit: 0 0\n")
        self.assertEqual(bare.status, 5)
        for mode, settings in MODES.items():
            with self.subTest(mode=mode):
                run = self.run_program("exitwait", timeout=30, env={
                    **self.slow, **settings, "CCA_DUMP_FILE": mode + "-%p"})
                self.assertEqual(run.stdout, bare.stdout, run.stderr)
                self.assertEqual(run.status, bare.status, run.stderr)
                files = self.files(mode + "-*.pickle")
                self.assertEqual(len(files), 1, run.stderr)
                self.load(files[0])


class PlugIns(Case):
    def test_a_constructor_that_waits_for_an_allocating_thread(self):
        for first in ((), ("first",)):
            bare, _ = self.compare("plugin", harness.program("libplug.so"), *first, modes=MODES,
                                   timeout=30, env=SETTINGS)
            self.assertEqual(bare.stdout, "loaded: yes\nallocated and freed: 0\n")


class Resets(Case):
    def failures(self, trace):
        """The driver calls that returned an error, by name and code."""
        with open(trace) as file:
            calls = {(line.split()[0], int(line.split()[1])) for line in file
                     if not line.startswith("look-up ")}
        os.remove(trace)
        return {call for call in calls if call[1] != 0} - ORDINARY

    def test_of_one_device_while_the_other_is_used(self):
        trace = os.path.join(self.folder, "trace")
        env = {**SETTINGS, "SIMCUDA_DEVICES": "2", "SIMCUDA_TRACE": trace}
        bare = self.run_program("resetrace", 100, preload=False, env=env)
        self.assertEqual(bare.status, 0, bare.stdout)
        native = self.failures(trace)
        for mode, settings in MODES.items():
            with self.subTest(mode=mode):
                run = self.run_program("resetrace", 100, env={**env, **settings})
                self.assertEqual(run.stdout, bare.stdout, run.stderr)
                self.assertEqual(run.status, bare.status, run.stderr)
                self.assertNotIn("simcuda: violation", run.stderr)
                self.assertEqual(self.failures(trace) - native, set())

    def test_a_context_comes_up_again_before_its_last_release_returns(self):
        for way in ([], ["at once"]):
            bare, _ = self.compare("successor", *way, timeout=30)
            self.assertEqual(bare.stdout, "fine\n")


if __name__ == "__main__":
    harness.main()
