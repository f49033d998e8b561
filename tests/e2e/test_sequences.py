#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same random sequences of the memory API with the library and without: every code that is
returned, and the runtime's last error behind every call, are equal."""
import unittest

import harness
from harness import Case

COUNT = 20000 if harness.FULL else 2000
#: So many of these are played in the modes beside the default one.
FEW = COUNT if harness.FULL else 300

#: The differences that are wanted: (call, native code, code under the library), and why. A sequence
#: is compared up to its first one, since what follows depends on it.
WANTED = {
    ("mallocAsync", 36, 0): "served where the driver has no pools",
    ("mallocAsync(1T)", 36, 2): "the same, out of memory",
    ("freeAsync", 36, 0): "the same",
}


def parse(text):
    return [tuple(line.split(" ")) for line in text.splitlines()]


def by_sequence(lines):
    sequences = {}
    for line in lines:
        sequences.setdefault(line[0].partition(".")[0], []).append(line)
    return sequences


def is_wanted(left, right):
    return left is not None and right is not None and left[:-2] == right[:-2] and \
        (" ".join(left[1:-2]), int(left[-2]), int(right[-2])) in WANTED


class Sequences(Case):
    def check(self, count, *args, env=None, modes=("strict",)):
        env = {"CCA_DUMP_ON": "none", **(env or {})}
        bare = self.run_program("sequences", 1, count, *args, preload=False, env=env, timeout=300)
        self.assertEqual(bare.status, 0, bare.stderr)
        native = by_sequence(parse(bare.stdout))
        self.assertEqual(len(native), count + 1)
        for mode in modes:
            with self.subTest(mode=mode, args=args):
                run = self.run_program("sequences", 1, count, *args, timeout=300,
                                       env={**env, **harness.MODES[mode]})
                self.assertEqual(run.status, 0, run.stderr)
                self.assertNotIn("simcuda: violation", run.stderr)
                self.assertNotIn("WRONG", run.stdout)
                self.compare_sequences(native, by_sequence(parse(run.stdout)))

    def compare_sequences(self, native, hooked):
        self.assertEqual(native.keys(), hooked.keys())
        for number, lines in native.items():
            for left, right in zip(lines + [None], hooked[number] + [None]):
                if left == right:
                    continue
                if is_wanted(left, right):
                    break
                self.fail("sequence %s: %s, under the library %s" % (number, left, right))

    def test_two_thousand(self):
        self.check(COUNT)

    def test_two_thousand_without_captures(self):
        self.check(COUNT, "plain")

    def test_two_devices(self):
        self.check(COUNT, env={"SIMCUDA_DEVICES": "2"})

    def test_in_every_mode(self):
        self.check(FEW, modes=harness.MODES, env={"SIMCUDA_DEVICES": "2"})
        self.check(FEW, "plain", modes=harness.MODES)

    def test_with_delays(self):
        self.check(FEW // 3, "timed", env={"SIMCUDA_KERNEL_US": "100", "SIMCUDA_COPY_US": "200"},
                   modes=("strict", "fence"))

    def test_older_drivers(self):
        for without in ("cuCtxRecordEvent", "cuStreamGetId", "cuMemAllocAsync"):
            self.check(FEW, env={"SIMCUDA_WITHOUT": without})


if __name__ == "__main__":
    harness.main()
