#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Deliberate defects in what keeps reuse safe (base/defect.h), compiled in one at a time: the program
that the table names must then go wrong. Three in every run, all with CCA_TEST_LEVEL=full.

For each defect the one file that has it is compiled anew and linked with the other objects of the
library."""
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import Case

VIRTUAL = {"SIMCUDA_TIME": "virtual", "SIMCUDA_SEED": "1", "CCA_DUMP_ON": "none",
           "CCA_PENDING_MAX": "256G"}
FENCE = {**VIRTUAL, "CCA_FREE_SYNC": "fence"}
REAL = {"CCA_DUMP_ON": "none", "CCA_FREE_SYNC": "fence"}
TWO = {"SIMCUDA_DEVICES": "2"}

#: Which program notices the defect: its arguments and settings.
NOTICED_BY = {
    "no_fence": (("reuse", 500, 8, 1), FENCE),
    "other_contexts_are_not_marked": (("contexts", "cross"), VIRTUAL),
    "the_first_mark_is_enough": (("reuse", 300, 8, 7), {**REAL, **TWO}),
    "what_is_not_ready_is_over": (("reuse", 500, 8, 1), FENCE),
    "frees_join_unrecorded": (("reuse", 2000, 8, 1), FENCE),
    "a_rekey_does_not_wait": (("reuse", 500, 8, 1), FENCE),
    "a_stream_stands_for_all": (("reuse", 500, 8, 1), FENCE),
    "a_wait_covers_other_contexts": (("contexts", "defaults"), VIRTUAL),
    "memory_outlives_its_context": (("contexts", "generations"), VIRTUAL),
    "memory_goes_back_unproven": (("reuse", 50, 1, 1, "full"), {
        **REAL, "CCA_CONF": "expandable_segments:True", "SIMCUDA_MEM": "256M"}),
    "captures_close_nothing": (("graphs", "calls"), VIRTUAL),
    "what_is_set_aside_is_over": (("reuse", 50, 1, 1, "captured"), VIRTUAL),
    "events_cover_the_legacy_stream_alone": (("reuse", 500, 8, 1), FENCE),
}
QUICK = ("other_contexts_are_not_marked", "what_is_not_ready_is_over", "memory_outlives_its_context")


def defects():
    """{name: source}: every CCA_DEFECT(name) of the library's sources, each in one file."""
    found = {}
    for folder in ("src", "preload"):
        for where, _, names in os.walk(os.path.join(harness.SOURCE, folder)):
            for name in names:
                path = os.path.join(where, name)
                if not name.endswith((".c", ".h")) or name == "defect.h":
                    continue
                with open(path, encoding="utf-8") as text:
                    for defect in re.findall(r"CCA_DEFECT\((\w+)\)", text.read()):
                        if found.setdefault(defect, path) != path:
                            raise ValueError("%s is in two files" % defect)
    return found


class Builder:
    """Makes libraries with one defect each out of the objects of the build."""

    def __init__(self, scratch):
        self.scratch = scratch
        with open(os.path.join(harness.BUILD, "compile_commands.json"), encoding="utf-8") as text:
            self.commands = {os.path.realpath(os.path.join(harness.BUILD, entry["file"])): entry
                             for entry in json.load(text)
                             if "libcca_core.a.p" in entry["output"] or
                             "preload/libcca_preload.so.p" in entry["output"]}
        lines = subprocess.run(["ninja", "-C", harness.BUILD, "-t", "commands",
                                "preload/libcca_preload.so"],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        self.link = next(shlex.split(line) for line in reversed(lines)
                         if "-o preload/libcca_preload.so " in line)

    def make(self, name, source):
        """The path of the library."""
        entry = self.commands[os.path.realpath(source)]
        changed = os.path.join(self.scratch, name + ".o")
        library = os.path.join(self.scratch, name + ".so")
        compile_it = shlex.split(entry["command"])
        compile_it[compile_it.index("-o") + 1] = changed
        subprocess.run(compile_it + ["-DCCA_DEFECT_%s=1" % name], cwd=harness.BUILD, check=True)
        link = [changed if word == entry["output"] else word for word in self.link]
        link[link.index("-o") + 1] = library
        subprocess.run(link, cwd=harness.BUILD, check=True)
        return library


def differs(run, bare):
    return ("simcuda: violation" in run.stderr or run.stdout != bare.stdout or
            run.status != bare.status)


class Defects(Case):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="cca-defects-")
        cls.builder = Builder(cls.scratch)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch, True)

    def test_each_defect_has_a_program_that_notices_it(self):
        self.assertEqual(sorted(defects()), sorted(NOTICED_BY))

    def test_each_defect_is_noticed(self):
        """And only the defect: without it the same program goes right."""
        sources = defects()
        for name in NOTICED_BY if harness.FULL else QUICK:
            arguments, env = NOTICED_BY[name]
            with self.subTest(defect=name):
                bare = self.run_program(*arguments, preload=False, env=env)
                right = self.run_program(*arguments, env=env)
                wrong = self.run_program(*arguments, env={
                    **env, "LD_PRELOAD": self.builder.make(name, sources[name])})
                self.assertFalse(differs(right, bare), right.stdout + right.stderr)
                self.assertTrue(differs(wrong, bare), wrong.stdout + wrong.stderr)


if __name__ == "__main__":
    harness.main()
