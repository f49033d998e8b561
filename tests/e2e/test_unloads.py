#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Call stacks through libraries that are gone when the snapshot is written, or in whose place
another one lies: every frame bears the name it had, and never another."""
import os
import shutil

import harness
from harness import Case, live_blocks


class Unloads(Case):
    def copy(self, name, to=None):
        path = os.path.join(self.folder, to or "plugged_%s.so" % name)
        shutil.copy(harness.program("plugged_%s.so" % name), path)
        return path

    def snapshot(self, *steps, env=None):
        self.last = self.run_program("unloads", *steps, env=env)
        self.assertEqual(self.last.status, 0, self.last.stderr)
        self.assertNotIn("WRONG", self.last.stdout)
        return self.only_snapshot()

    @staticmethod
    def stacks(snapshot):
        """The names of each live block's innermost frames, in the order of allocation."""
        blocks = sorted(live_blocks(snapshot), key=lambda block: block["address"])
        return [[frame["name"] for frame in block["frames"][:6]] for block in blocks]

    @staticmethod
    def whole(name):
        return [name + "_local", name + "_inner", name + "_outer", "plugged_allocate",
                "load_and_allocate", "obey"]

    def modules(self, snapshot, name):
        return [module["is_unloaded"] for module in snapshot["cca"]["modules"]
                if module["path"].endswith(name)]

    def test_an_unloaded_library_keeps_its_names(self):
        path = self.copy("alpha")
        snapshot = self.snapshot("load:" + path, "close")
        self.assertEqual(self.stacks(snapshot), [self.whole("alpha")])
        self.assertEqual(self.modules(snapshot, "plugged_alpha.so"), [True])
        self.assertEqual(snapshot["cca"]["unwinder"], "libunwind")
        frame = live_blocks(snapshot)[0]["frames"][0]
        self.assertEqual(frame["filename"], path)

    def test_another_library_in_its_place(self):
        """beta's frames have another size, so that libunwind's memory of alpha would mislead it;
        gamma has alpha's very addresses."""
        for unwinder, after in (("auto", "libgcc"), ("libgcc", "libgcc")):
            with self.subTest(unwinder=unwinder):
                snapshot = self.snapshot(
                    "load:" + self.copy("alpha"), "close", "load:" + self.copy("beta"), "close",
                    "load:" + self.copy("gamma"), env={"CCA_UNWINDER": unwinder})
                self.assertIn("places 1\n", self.last.stdout, "they must lie in one place")
                self.assertEqual(self.stacks(snapshot), [self.whole("alpha"), self.whole("beta"),
                                                         self.whole("gamma")])
                self.assertEqual(snapshot["cca"]["unwinder"], after)
                for name, is_unloaded in (("alpha", True), ("beta", True), ("gamma", False)):
                    self.assertEqual(self.modules(snapshot, "plugged_%s.so" % name), [is_unloaded])
                if unwinder == "auto":
                    self.assertGreater(snapshot["cca"]["counters"][0]["fallback_stacks"], 0)
                os.remove(self.files("cca-*.pickle")[0])

    def test_a_library_whose_file_goes_first_keeps_the_names_it_exports(self):
        path = self.copy("alpha", "temp.so")
        snapshot = self.snapshot("load:" + path, "remove:" + path, "close",
                                 "load:" + self.copy("gamma"))
        first, second = self.stacks(snapshot)
        self.assertRegex(first[0], r"^temp\.so\+0x")
        self.assertEqual(first[1:], self.whole("alpha")[1:])
        self.assertEqual(second, self.whole("gamma"))

    def test_a_library_whose_file_goes_later_keeps_all_names(self):
        path = self.copy("alpha", "temp.so")
        snapshot = self.snapshot("load:" + path, "close", "remove:" + path)
        self.assertEqual(self.stacks(snapshot), [self.whole("alpha")])

    def test_what_comes_back_is_the_same(self):
        path = self.copy("alpha")
        snapshot = self.snapshot("again:200:" + path, "load:" + path)
        self.assertEqual(self.stacks(snapshot), [self.whole("alpha")])
        self.assertEqual(self.modules(snapshot, "plugged_alpha.so"), [False])
        self.assertEqual(snapshot["cca"]["unwinder"], "libunwind")

    def test_a_dlclose_that_is_not_seen_gives_no_wrong_names(self):
        snapshot = self.snapshot("load:" + self.copy("alpha"), "hidden",
                                 "load:" + self.copy("beta"))
        self.assertIn("hidden 1\nplaces 1\n", self.last.stdout)
        first, second = self.stacks(snapshot)
        self.assertEqual(first, self.whole("alpha"))
        self.assertEqual([name for name in second if name.startswith("alpha")], [])

    def test_pinned_libraries_stay(self):
        snapshot = self.snapshot("load:" + self.copy("alpha"), "close", "load:" + self.copy("beta"),
                                 "close", env={"CCA_PIN_MODULES": "1"})
        self.assertIn("places 2\n", self.last.stdout)
        self.assertEqual(sorted(self.stacks(snapshot)), [self.whole("alpha"), self.whole("beta")])
        self.assertEqual(self.modules(snapshot, "plugged_alpha.so"), [False])
        self.assertEqual(snapshot["cca"]["unwinder"], "libunwind")

    def test_destructors_run_as_ever(self):
        for mode in ({}, {"CCA_MODE": "count"}, {"CCA_DISABLE": "1"}):
            run = self.run_program("unloads", "again:20:" + self.copy("alpha"), env=mode)
            self.assertEqual((run.status, run.stdout), (0, "places 1\n"), run.stderr)

    def test_a_file_that_viewers_open(self):
        """Many blocks in a segment, one beyond 32 bits, names that are no text, an idle device."""
        path = os.path.join(self.folder.encode(), b"odd\xff\xfe.so")
        shutil.copy(harness.program("plugged_alpha.so"), path)
        path = os.fsdecode(path)
        snapshot = self.snapshot("many:3000:512", "many:1:%d" % (6 << 30), "load:" + path,
                                 "remove:" + path, "close", env={"SIMCUDA_DEVICES": "2",
                                                                           "CCA_SUMMARY": "0"})
        self.assertEqual(len(snapshot["device_traces"]), 1)  # one list for each device in use
        self.assertEqual(snapshot["allocator_settings"]["max_split_size"], -1)
        blocks = live_blocks(snapshot)
        self.assertEqual(len(blocks), 3002)
        self.assertIn(6 << 30, [block["size"] for block in blocks])
        most = max(len(segment["blocks"]) for segment in snapshot["segments"])
        self.assertGreaterEqual(most, 3000)
        names = {frame["name"] for block in blocks for frame in block["frames"]}
        self.assertTrue([name for name in names if name.startswith("odd\ufffd\ufffd.so+0x")], names)


if __name__ == "__main__":
    harness.main()
