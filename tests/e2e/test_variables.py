#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Variables: bad values give one line that names them, and change nothing else."""
import os
import re
import unittest

import harness
from harness import Case

#: A bad value for every variable there is.
BAD = {
    "CCA_MODE": "fast", "CCA_DISABLE": "maybe", "CCA_FREE_SYNC": "lax", "CCA_PENDING_MAX": "1X",
    "CCA_CHILDREN": "some", "CCA_ASYNC": "never", "CCA_IPC": "share", "CCA_MAX_SPLIT_SIZE": "1M", "CCA_MEMORY_LIMIT": "-5",
    "CCA_OOM_WAIT_MS": "soon", "CCA_MEM_GET_INFO": "true", "CCA_HISTORY": "some",
    "CCA_CONTEXT": "deep", "CCA_MAX_ENTRIES": "0", "CCA_STACK_DEPTH": "1000",
    "CCA_UNWINDER": "magic", "CCA_DUMP_SIGNAL": "SIGNOPE", "CCA_DUMP_ON": "sometimes",
    "CCA_DUMP_FORMAT": "xml", "CCA_SYMBOLIZE": "all", "CCA_LOG_LEVEL": "loud",
    "CCA_SUMMARY": "2", "CCA_VERIFY": "x", "CCA_CONF": "max_split_size_mb:1",
    "CCA_MAX_NON_SPLIT_ROUNDING": "lots", "CCA_ROUNDUP_POWER2_DIVISIONS": "3",
    "CCA_GARBAGE_COLLECTION_THRESHOLD": "2", "CCA_LARGE_SEGMENT_SIZE": "2M",
    "CCA_MEMORY_FRACTION": "0", "CCA_CACHE_LIMIT": "few", "CCA_OOM_REJECT": "never",
    "CCA_GRAPH_CAPTURE_REUSE": "2", "CCA_EXPANDABLE_SEGMENTS": "2", "CCA_TRIM_IDLE_MS": "soon",
    "CCA_SKIP_ACTIONS": "malloc",
    "CCA_DUMP_SIGNAL_FORCE": "hard", "CCA_CONTROL_SIGNAL": "KILL", "CCA_DUMP_LAST": "-1",
    "CCA_DUMP_ARGS": "some", "CCA_METRICS_INTERVAL": "0", "CCA_PIN_MODULES": "often",
}


class Variables(Case):
    def names(self):
        with open(os.path.join(harness.SOURCE, "src", "config", "options.def")) as file:
            return re.findall(r"^[A-Z]+\(\w+, (CCA_\w+),", file.read(), re.M)

    def test_every_variable_has_a_bad_value_here(self):
        takes_anything = {"CCA_DUMP_FILE", "CCA_PROGRAMS", "CCA_METRICS_FILE", "CCA_LOG_FILE"}
        self.assertEqual(set(self.names()) - takes_anything, set(BAD))

    def test_a_bad_value_gives_one_line_with_the_variable_and_the_default(self):
        bare = self.run_program("leaky", preload=False)
        for name, value in BAD.items():
            with self.subTest(variable=name):
                run = self.run_program("leaky", env={name: value, **({} if name == "CCA_SUMMARY" else
                                                                     {"CCA_SUMMARY": "0"})})
                lines = [line for line in run.stderr.splitlines() if name in line]
                self.assertEqual(len(lines), 1, run.stderr)
                self.assertIn(value, lines[0])
                self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout))

    def test_an_unknown_variable_gives_one_line(self):
        run = self.run_program("leaky", env={"CCA_MAX_SPLITSIZE": "1G"})
        self.assertEqual(len([l for l in run.stderr.splitlines() if "CCA_MAX_SPLITSIZE" in l]), 1)

    def test_a_program_without_cuda_is_told_nothing(self):
        run = self.run_program("/bin/true", env={"CCA_MODE": "fast", "CCA_NONSENSE": "1"})
        self.assertEqual((run.status, run.stdout, run.stderr), (0, "", ""))

    def test_programs_that_are_left_out_are_left_alone(self):
        for globs, is_chosen in (("leaky", True), ("leak*", True), ("basic,leaky", True),
                                 ("basic", False), ("!leaky", False), ("*,!leak?", False),
                                 ("!basic", True), ("/leaky", False)):
            with self.subTest(globs=globs):
                run = self.run_program("leaky", env={"CCA_PROGRAMS": globs,
                                                     "CCA_DUMP_FILE": "left-%n"})
                self.assertEqual(run.status, 7)
                self.assertEqual("cca:" in run.stderr, is_chosen, run.stderr)
                for path in self.files("left-*"):
                    os.remove(path)
                    self.assertTrue(is_chosen)

    def child_preload(self, preload, **env):
        """What a child of a shell that runs under the library has in LD_PRELOAD."""
        run = self.run_program("/bin/sh", "-c", "exec env", env={"LD_PRELOAD": preload, **env})
        self.assertEqual((run.status, run.stderr), (0, ""))
        found = [line for line in run.stdout.splitlines() if line.startswith("LD_PRELOAD=")]
        return found[0].partition("=")[2] if found else None

    def test_children_may_do_without(self):
        other = harness.program("libsmall.so")
        link = os.path.join(self.folder, "link.so")
        os.symlink(harness.PRELOAD, link)
        for preload, left in ((harness.PRELOAD, None), (link, None),
                              (other + ":" + harness.PRELOAD, other),
                              (harness.PRELOAD + ":" + other, other),
                              (other + " " + harness.PRELOAD + " " + other, other + " " + other)):
            with self.subTest(preload=preload):
                self.assertEqual(self.child_preload(preload), preload)
                self.assertEqual(self.child_preload(preload, CCA_CHILDREN="0"), left)

    def test_children_of_a_program_that_is_left_out_keep_it(self):
        self.assertEqual(self.child_preload(harness.PRELOAD, CCA_CHILDREN="0",
                                            CCA_PROGRAMS="leaky"), harness.PRELOAD)

    def test_the_program_itself_is_served_when_its_children_are_not(self):
        run = self.run_program("leaky", env={"CCA_CHILDREN": "0"})
        self.assertIn("allocations from the cache", run.stderr)

    def test_the_limit_holds(self):
        run = self.run_program("basic", env={"CCA_MEMORY_LIMIT": "8M"})
        self.assertIn("cudaErrorMemoryAllocation", run.stdout)

    def test_the_readme_lists_every_variable(self):
        with open(os.path.join(harness.SOURCE, "README.md")) as file:
            readme = file.read()
        for name in self.names():
            self.assertIn("`%s`" % name, readme)


if __name__ == "__main__":
    harness.main()
