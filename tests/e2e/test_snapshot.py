#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Snapshots: on a signal, at exit, on out-of-memory; what is in them; and the tool on them."""
import json
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import Case, live_blocks


class OnSignal(Case):
    def start_leaky(self, env=None):
        process = self.start("leaky", 20, env=env)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_a_file_within_a_second_that_python_loads(self):
        process = self.start_leaky()
        began = time.monotonic()
        process.send_signal(signal.SIGUSR1)
        path = self.wait_for_file()[0]
        self.assertLess(time.monotonic() - began, 1.0)
        snapshot = self.load(path)
        self.assertEqual(snapshot["cca"]["cause"], "signal")
        self.assertEqual(snapshot["cca"]["pid"], process.pid)
        self.assertIsNone(process.poll())

    def test_blocks_tile_segments_and_live_blocks_name_the_program(self):
        process = self.start_leaky()
        process.send_signal(signal.SIGUSR1)
        snapshot = self.load(self.wait_for_file()[0])
        for segment in snapshot["segments"]:
            self.assertEqual(sum(b["size"] for b in segment["blocks"]), segment["total_size"])
        blocks = live_blocks(snapshot)
        self.assertEqual(len(blocks), 3)
        for block in blocks:
            names = [frame["name"] for frame in block["frames"]]
            self.assertEqual(names[:2], ["keep_one_block", "leak_in_a_loop"])
            self.assertIn("main", names)

    def test_the_last_trace_entry_is_not_lost(self):
        process = self.start_leaky()
        process.send_signal(signal.SIGUSR1)
        snapshot = self.load(self.wait_for_file()[0])
        trace = snapshot["device_traces"][0]
        # 30 allocations in one segment; 27 frees, the last of them the very last event
        self.assertEqual(len(trace), 1 + 30 + 2 * 27)
        self.assertEqual(trace[-1]["action"], "free_completed")
        self.assertEqual([e["action"] for e in trace].count("alloc"), 30)

    def test_several_signals_give_several_files_and_none_is_overwritten(self):
        process = self.start_leaky()
        for count in range(1, 4):
            process.send_signal(signal.SIGUSR1)
            self.wait_for_file(count=count)
        for path in self.files():
            self.load(path)

    def test_a_handler_of_the_program_is_left_alone(self):
        run = self.run_program("handler", "before")
        self.assertEqual((run.status, run.stdout), (0, "handled 1\n"), run.stderr)
        run = self.run_program("handler", "after")
        self.assertEqual((run.status, run.stdout), (0, "handled 1\n"), run.stderr)
        self.assertEqual(self.files("*signal*"), [])

    def test_the_tool_dumps_a_running_process(self):
        process = self.start_leaky()
        dump = subprocess.run([harness.TOOL, "dump", str(process.pid)], capture_output=True, text=True,
                              cwd=self.folder, timeout=20)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        path = dump.stdout.strip()
        self.assertEqual(self.load(path)["cca"]["cause"], "signal")


class AtExit(Case):
    def test_leaks_are_live_blocks(self):
        run = self.run_program("leaky")
        snapshot = self.only_snapshot()
        self.assertEqual(snapshot["cca"]["cause"], "exit")
        self.assertEqual(len(live_blocks(snapshot)), 3)
        self.assertIn("3 blocks leaked", run.stderr)

    def test_statistics_are_in_the_file(self):
        self.run_program("leaky")
        snapshot = self.only_snapshot()
        stats = snapshot["cca"]["stats"][0]
        self.assertEqual(stats["allocation.all.allocated"], 30)
        self.assertEqual(stats["allocation.all.current"], 3)
        self.assertEqual(stats["allocated_bytes.all.current"], 3 << 16)
        self.assertEqual(stats["max_split_size"], -1)
        counters = snapshot["cca"]["counters"][0]
        self.assertEqual(counters["driver_allocs"], 1)
        self.assertEqual(counters["hits"], 29)

    def test_every_format(self):
        self.run_program("leaky", env={"CCA_DUMP_FORMAT": "pickle,json,text"})
        self.assertEqual(len(self.files("cca-*.pickle") + self.files("cca-*.json") +
                             self.files("cca-*.txt")), 3)
        snapshot = self.load(self.files("cca-*.pickle")[0])
        with open(self.files("cca-*.json")[0]) as file:
            twin = json.load(file)
        self.assertEqual(json.loads(json.dumps(snapshot)), twin)
        with open(self.files("cca-*.txt")[0]) as file:
            self.assertIn("keep_one_block", file.read())

    def test_nothing_is_written_when_nothing_is_wanted(self):
        for value in ("none", ""):
            self.run_program("leaky", env={"CCA_DUMP_ON": value})
        self.assertEqual(self.files(), [])

    def test_summary_can_be_silenced(self):
        run = self.run_program("leaky", env={"CCA_SUMMARY": "0"})
        self.assertEqual(run.stderr, "")

    def test_no_fragment_of_a_file_is_left_behind(self):
        self.run_program("leaky")
        self.assertEqual(len(os.listdir(self.folder)), 1)

    def test_an_unwritable_folder_falls_back(self):
        tmp = os.path.join(self.folder, "tmp")
        os.mkdir(tmp)
        run = self.run_program("leaky", env={"CCA_DUMP_FILE": "/proc/nowhere/x", "TMPDIR": tmp})
        self.assertEqual(run.status, 7)
        self.assertEqual(len(os.listdir(tmp)), 1, run.stderr)
        self.assertIn(tmp, run.stderr)


class OnOutOfMemory(Case):
    def test_a_snapshot_is_written(self):
        run = self.run_program("errors", env={"CCA_DUMP_ON": "oom"})
        self.assertEqual(run.status, 0)
        files = self.files()
        self.assertEqual(len(files), 1, run.stderr)
        self.assertEqual(self.load(files[0])["cca"]["cause"], "oom")


class Descriptors(Case):
    def test_files_of_a_program_that_closes_everything_hold_only_its_own(self):
        for mode in ("strict", "fence"):
            run = self.run_program("closefds", "a.txt", "b.txt", env=harness.MODES[mode])
            self.assertEqual(run.status, 0, (run.stdout, run.stderr))
            for name, text in (("a.txt", "first\n"), ("b.txt", "second\n")):
                with open(os.path.join(self.folder, name)) as file:
                    self.assertEqual(file.read(), text)
        self.assertTrue(self.files())


class Show(Case):
    def test_one_screen(self):
        self.run_program("leaky")
        show = subprocess.run([harness.TOOL, "show", self.files()[0]], capture_output=True, text=True)
        self.assertEqual(show.returncode, 0, show.stderr)
        self.assertIn("keep_one_block", show.stdout)
        self.assertLessEqual(len(show.stdout.splitlines()), 50)

    def test_run_sets_everything_up(self):
        run = subprocess.run([harness.TOOL, "run", "-o", "out", "--", harness.program("leaky")],
                             cwd=self.folder, env=self.environment({}, False), capture_output=True,
                             text=True, timeout=60)
        self.assertEqual(run.returncode, 7, run.stderr)
        self.assertEqual(len(self.files("out/cca-*.pickle")), 1)


if __name__ == "__main__":
    harness.main()
