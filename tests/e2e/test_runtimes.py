#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs over other runtimes do what those over the shared one of 13 do: with the runtime inside,
as nvcc links by default, and over that of 11, which finds the driver in its own ways."""
import subprocess
import unittest

import harness
from harness import Case

#: Programs of which there are two, and what they run with.
TWINS = {
    "async": [],
    "basic": [],
    "devices": [],
    "errors": [],
    "loop": ["200"],
    "reset": [],
    "reuse": [],
    "threads": ["200"],
}


class Static(Case):
    def needed(self, name):
        done = subprocess.run(["readelf", "-dW", harness.program(name)], capture_output=True,
                              text=True, check=True)
        return done.stdout

    def test_no_runtime_is_needed_and_none_of_its_names_is_seen(self):
        for name in filter(harness.has_program, (twin + "_static" for twin in TWINS)):
            with self.subTest(program=name):
                self.assertNotIn("libcudart", self.needed(name))
                self.assertNotIn("libcuda.so", self.needed(name))
                symbols = subprocess.run(["readelf", "-W", "--dyn-syms", harness.program(name)],
                                         capture_output=True, text=True, check=True).stdout
                self.assertNotIn("cuda", symbols)

    def test_equal_results(self):
        for name, args in TWINS.items():
            if not harness.has_program(name):
                continue
            env = {"SIMCUDA_DEVICES": "2"} if name == "devices" else {}
            with self.subTest(program=name):
                shared = self.run_program(name, *args, preload=False, env=env)
                static = self.run_program(name + "_static", *args, preload=False, env=env)
                self.assertEqual(static.stdout, shared.stdout)
                self.assertEqual(static.status, shared.status)
                self.assertNotEqual(shared.stdout, "")

    def test_nothing_changes_under_the_library(self):
        for name, args in TWINS.items():
            if harness.has_program(name + "_static"):
                env = {"SIMCUDA_DEVICES": "2"} if name == "devices" else {}
                self.compare(name + "_static", *args, env=env)


class Release11(Case):
    PROGRAMS = {"async": [], "basic": [], "threads": ["200"]}

    def each(self):
        for name, args in self.PROGRAMS.items():
            for release in ("11.2", "11.8"):
                yield name, args, {"SIMCUDART_RELEASE": release, "SIMCUDA_DRIVER": release}

    def test_equal_results(self):
        for name, args, env in self.each():
            with self.subTest(program=name, env=env):
                newest = self.run_program(name, *args, preload=False)
                older = self.run_program(name + "_11", *args, preload=False, env=env)
                self.assertEqual((older.stdout, older.status), (newest.stdout, newest.status))
                self.assertNotEqual(newest.stdout, "")

    def test_nothing_changes_under_the_library(self):
        for name, args, env in self.each():
            self.compare(name + "_11", *args, env=env)


if __name__ == "__main__":
    harness.main()
