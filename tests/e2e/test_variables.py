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
    "CCA_ASYNC": "never", "CCA_MAX_SPLIT_SIZE": "1M", "CCA_MEMORY_LIMIT": "-5",
    "CCA_OOM_WAIT_MS": "soon", "CCA_MEM_GET_INFO": "true", "CCA_HISTORY": "some",
    "CCA_CONTEXT": "deep", "CCA_MAX_ENTRIES": "0", "CCA_STACK_DEPTH": "1000",
    "CCA_UNWINDER": "magic", "CCA_DUMP_SIGNAL": "SIGNOPE", "CCA_DUMP_ON": "sometimes",
    "CCA_DUMP_FORMAT": "xml", "CCA_SYMBOLIZE": "all", "CCA_LOG_LEVEL": "loud",
    "CCA_SUMMARY": "2", "CCA_VERIFY": "x", "CCA_CONF": "max_split_size_mb:1",
    "CCA_MAX_NON_SPLIT_ROUNDING": "lots", "CCA_ROUNDUP_POWER2_DIVISIONS": "3",
    "CCA_GARBAGE_COLLECTION_THRESHOLD": "2", "CCA_LARGE_SEGMENT_SIZE": "2M",
    "CCA_MEMORY_FRACTION": "0", "CCA_CACHE_LIMIT": "few", "CCA_OOM_REJECT": "never",
}


class Variables(Case):
    def names(self):
        with open(os.path.join(harness.SOURCE, "src", "config", "options.def")) as file:
            return re.findall(r"^[A-Z]+\(\w+, (CCA_\w+),", file.read(), re.M)

    def test_every_variable_has_a_bad_value_here(self):
        takes_anything = {"CCA_DUMP_FILE"}
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
