#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `cca show` says of real programs, and that its advice helps when it is followed."""
import json
import subprocess
import time

import harness
from harness import Case

MIB = 1 << 20


class Advice(Case):
    def tool(self, *words):
        done = subprocess.run([harness.TOOL, *words], capture_output=True, text=True,
                              cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def shown(self, kind, **env):
        """What show says of a run of `cases`: its only device, and its hints by finding."""
        name = "shot-%d" % len(self.files("shot-*"))
        run = self.run_program("cases", kind, env={"CCA_DUMP_FILE": name, **env})
        self.assertEqual(run.status, 0, run.stderr)
        data = json.loads(self.tool("show", "--json", name + ".pickle"))
        device, = data["devices"]
        return device, {hint["finding"]: hint for hint in data["hints"]}

    def follow(self, kind, finding):
        """The finding is there, and gone when its advice is followed; returns both devices."""
        before, hints = self.shown(kind)
        self.assertIn(finding, hints)
        option, _, value = hints[finding]["set"].partition("=")
        after, hints = self.shown(kind, **{option: value})
        self.assertNotIn(finding, hints)
        return before, after

    def test_crumbs_are_cured_by_whole_blocks(self):
        before, after = self.follow("crumbs", "fragmented")
        self.assertAlmostEqual(before["fragmentation"], 1 - 396 / 1110, 2)
        self.assertEqual(before["fragmentation_cause"], "crumbs")
        self.assertEqual((before["returnable_bytes"], before["servable_bytes"]), (0, 396 * MIB))
        self.assertEqual(after["fragmentation_cause"], "none")

    def test_ever_larger_requests_are_cured_by_segments_that_grow(self):
        """481, 538 and 600 MiB in turn: all three are kept, 2.7 times what was ever live."""
        before, after = self.follow("growing", "segments too small for what came later")
        self.assertEqual(before["live_peak_bytes"], 600 * MIB)
        self.assertAlmostEqual(before["reserved_to_live_peak"], 2.7, 1)
        self.assertEqual(after["reserved_to_live_peak"], 1)
        self.assertIn("2.7 times live at the peak", self.tool("show", "shot-0.pickle"))

    def waiting(self, *steps, **env):
        """A `script` that has done its steps; returns its process, and what gives its device."""
        process = self.start("script", *steps, "ready", "sleep:20000", env=env)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")

        def device():
            path = self.tool("dump", str(process.pid)).strip()
            return json.loads(self.tool("show", "--json", path))["devices"][0]
        return process, device

    def reserved_after_trim(self, process, device, wanted):
        self.tool("trim", str(process.pid))
        end = time.monotonic() + 10
        while device()["reserved_bytes"] != wanted and time.monotonic() < end:
            time.sleep(0.05)
        return device()["reserved_bytes"]

    def test_a_trim_gives_the_too_small_segments_back(self):
        process, device = self.waiting("loop:1:4812Mi", "loop:1:5378Mi", "loop:1:6004Mi",
                                       SIMCUDA_MEM="20G")
        before = device()
        self.assertEqual((before["reserved_bytes"], before["live_peak_bytes"]),
                         (16194 * MIB, 6004 * MIB))
        self.assertAlmostEqual(before["reserved_to_live_peak"], 2.7, 1)
        self.assertEqual(before["returnable_bytes"], before["reserved_bytes"])
        self.assertEqual(before["servable_bytes"], 6004 * MIB)
        self.assertEqual(self.reserved_after_trim(process, device, 0), 0)

    def test_a_trim_gives_back_what_is_called_returnable_of_expandable_segments(self):
        """Whole pages of 20 MiB: 80 of the 90 MiB freed before b, 40 of the 50 after it."""
        process, device = self.waiting("m:a:90Mi", "m:b:10Mi", "m:c:50Mi", "m:d:30Mi", "f:a",
                                       "f:c", CCA_EXPANDABLE_SEGMENTS="1")
        before = device()
        self.assertEqual((before["reserved_bytes"], before["returnable_bytes"]),
                         (180 * MIB, 120 * MIB))
        self.assertEqual(self.reserved_after_trim(process, device, 60 * MIB), 60 * MIB)
        self.assertEqual(device()["returnable_bytes"], 0)

    def test_what_is_kept_is_named_and_no_setting_is(self):
        device, hints = self.shown("keeping")
        self.assertIsNone(hints["growing"]["set"])
        self.assertIn("keep_result", hints["growing"]["evidence"])
        self.assertIn("not freed at exit", hints)
        self.assertEqual(device["growth"]["frames"][-1]["name"].split("+")[0], "_start")

    def test_a_healthy_program_has_no_hints(self):
        device, hints = self.shown("training")
        self.assertEqual(hints, {})
        self.assertTrue(device["growth_known"])
        self.assertIsNone(device["growth"])
        self.assertEqual(device["fragmentation_cause"], "none")


if __name__ == "__main__":
    harness.main()
