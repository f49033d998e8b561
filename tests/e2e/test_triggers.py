#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What makes the library speak and write: signals, the end, the clock, requests to a running program;
and what it says then."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import Case, live_blocks

TRIM, RESET_PEAKS = 1, 2
CONTROL = signal.SIGRTMAX - 3


class Running(Case):
    def start_script(self, *commands, env=None):
        """Runs the commands up to `ready`; the program then sleeps."""
        process = self.start("script", *commands, env=env)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def finish(self, process):
        stdout, stderr = process.communicate(timeout=60)
        return harness.Run(process, stdout, stderr)


class Ends(Running):
    def test_term_writes_and_keeps_its_status(self):
        process = self.start_script("m:a:1Mi", "ready", "sleep:20000", env={"CCA_DUMP_ON": "term"})
        process.send_signal(signal.SIGTERM)
        run = self.finish(process)
        self.assertEqual(run.status, -signal.SIGTERM, run.stderr)
        snapshot = self.only_snapshot()
        self.assertEqual(snapshot["cca"]["cause"], "term")
        self.assertEqual(len(live_blocks(snapshot)), 1)

    def test_term_is_the_programs_own_when_not_asked_for(self):
        process = self.start_script("m:a:1Mi", "ready", "sleep:20000")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).status, -signal.SIGTERM)
        self.assertEqual(self.files(), [])

    def test_abort_writes_and_keeps_its_status(self):
        run = self.run_program("script", "m:a:1Mi", "abort", env={"CCA_DUMP_ON": "abort"})
        self.assertEqual(run.status, -signal.SIGABRT, run.stderr)
        snapshot = self.only_snapshot()
        self.assertEqual(snapshot["cca"]["cause"], "abort")
        self.assertEqual(len(live_blocks(snapshot)), 1)

    def test_kill_by_abort_ends_the_program_too(self):
        process = self.start_script("m:a:1Mi", "ready", "sleep:20000", env={"CCA_DUMP_ON": "abort"})
        process.send_signal(signal.SIGABRT)
        self.assertEqual(self.finish(process).status, -signal.SIGABRT)
        self.assertEqual(self.only_snapshot()["cca"]["cause"], "abort")

    def test_no_word_no_file(self):
        run = self.run_program("script", "m:a:1Mi", "abort")
        self.assertEqual(run.status, -signal.SIGABRT)
        self.assertEqual(self.files(), [])


class ByTheClock(Running):
    def test_snapshots_at_an_interval(self):
        process = self.start_script("m:a:1Mi", "ready", "sleep:20000",
                                    env={"CCA_DUMP_ON": "interval:1"})
        paths = self.wait_for_file(count=2)
        for path in paths[:2]:
            self.assertEqual(self.load(path)["cca"]["cause"], "interval")
        self.assertIsNone(process.poll())

    def test_an_idle_cache_is_given_back(self):
        process = self.start_script("loop:3:4Mi", "ready", "sleep:20000",
                                    env={"CCA_TRIM_IDLE_MS": "100", "CCA_DUMP_ON": "signal"})
        end = time.monotonic() + 10
        reserved, count = 1, 0
        while reserved and time.monotonic() < end:
            time.sleep(0.1)
            process.send_signal(signal.SIGUSR1)
            count += 1
            snapshot = self.load(self.wait_for_file(count=count)[-1])
            reserved = snapshot["cca"]["stats"][0]["reserved_bytes.all.current"]
        self.assertEqual(reserved, 0)
        self.assertEqual(snapshot["cca"]["stats"][0]["reserved_bytes.all.peak"], 20 << 20)

    def test_an_active_cache_is_kept(self):
        self.run_program("script", *["loop:1:4Mi", "sleep:20"] * 20,
                         env={"CCA_TRIM_IDLE_MS": "2000"})
        self.assertEqual(self.only_snapshot()["cca"]["counters"][0]["driver_allocs"], 1)

    def test_metrics(self):
        name = "m-%p.prom"
        process = self.start_script("m:a:1Mi", "loop:9:4Mi", "ready", "sleep:20000",
                                    env={"CCA_METRICS_FILE": name, "CCA_METRICS_INTERVAL": "1"})
        path = self.wait_for_file("m-*.prom")[0]
        self.assertEqual(path, os.path.join(self.folder, "m-%d.prom" % process.pid))
        with open(path) as file:
            text = file.read()
        check_metrics(self, text)
        self.assertIn('cca_allocated_bytes{device="0",pool="all"} 1048576\n', text)
        self.assertIn('cca_allocs_total{device="0",pool="large"} 9\n', text)
        self.assertIn('cca_ooms_total{device="0"} 0\n', text)

    def test_metrics_at_exit_replace_the_file(self):
        path = os.path.join(self.folder, "m.prom")
        with open(path, "w") as file:
            file.write("old")
        self.run_program("script", "m:a:1Mi", env={"CCA_METRICS_FILE": "m.prom"})
        with open(path) as file:
            check_metrics(self, file.read())
        self.assertEqual([name for name in os.listdir(self.folder) if "tmp" in name], [])

    def test_metrics_that_cannot_be_written(self):
        run = self.run_program("script", "m:a:1Mi", env={"CCA_METRICS_FILE": "/proc/no/m.prom"})
        self.assertEqual(run.status, 0)
        self.assertEqual(run.stderr.count("no metrics in /proc/no/m.prom"), 1)


def check_metrics(case, text):
    """Prometheus' rules for the text, and promtool's word where it is installed."""
    types, seen = {}, set()
    case.assertTrue(text.endswith("\n"))
    for line in text.splitlines():
        match = re.fullmatch(r"# (HELP|TYPE) ([a-z_:]+) (.+)", line)
        if match:
            kind, name, rest = match.groups()
            case.assertRegex(name, r"^cca_[a-z_]+$")
            if kind == "TYPE":
                case.assertIn(rest, ("counter", "gauge"))
                case.assertNotIn(name, types)
                case.assertEqual(rest == "counter", name.endswith("_total"), name)
                types[name] = rest
            continue
        match = re.fullmatch(r'([a-z_]+)(?:\{((?:[a-z]+="[^"\\]*",?)*)\})? (\d+(?:\.\d+)?)', line)
        case.assertTrue(match, line)
        case.assertEqual(match.group(1), list(types)[-1])
        case.assertNotIn((match.group(1), match.group(2)), seen)
        seen.add((match.group(1), match.group(2)))
    promtool = shutil.which(os.environ.get("PROMTOOL", "promtool"))
    if promtool:
        check = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True,
                               text=True)
        case.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""))


class Control(Running):
    def control(self, process, value):
        """As `cca trim` and `cca reset-peak` do it."""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(libc.sigqueue(process.pid, CONTROL, ctypes.c_void_p(value)), 0)

    def snapshot_when(self, process, holds):
        end = time.monotonic() + 10
        count = 0
        while time.monotonic() < end:
            process.send_signal(signal.SIGUSR1)
            count += 1
            snapshot = self.load(self.wait_for_file(count=count)[-1])
            if holds(snapshot["cca"]["stats"][0]):
                return snapshot
        self.fail("it did not come about")

    def test_trim(self):
        process = self.start_script("m:a:1Mi", "loop:1:30Mi", "ready", "sleep:20000")
        self.control(process, TRIM)
        snapshot = self.snapshot_when(process, lambda s: s["segment.all.current"] == 1)
        self.assertEqual(snapshot["cca"]["stats"][0]["num_device_free"], 1)

    def test_reset_peaks(self):
        process = self.start_script("m:a:1Mi", "loop:1:30Mi", "ready", "sleep:20000")
        self.control(process, RESET_PEAKS)
        self.snapshot_when(process, lambda s: s["allocated_bytes.all.peak"] == 1 << 20)

    def tool(self, *words):
        done = subprocess.run([harness.TOOL, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_the_tool_asks_dumps_and_reads(self):
        process = self.start_script("m:a:1Mi", "loop:1:30Mi", "ready", "sleep:20000")
        self.tool("trim", str(process.pid))
        self.tool("reset-peak", str(process.pid))
        self.snapshot_when(process, lambda s: s["segment.all.current"] == 1
                           and s["allocated_bytes.all.peak"] == 1 << 20)
        path = self.tool("dump", str(process.pid)).strip()
        device = json.loads(self.tool("show", "--json", path))["devices"][0]
        self.assertEqual((device["live_bytes"], device["live_peak_bytes"]), (1 << 20, 1 << 20))
        self.assertIn("</html>", self.tool("report", "-o", "-", path))

    def test_other_values_and_senders_mean_nothing(self):
        process = self.start_script("loop:1:30Mi", "ready", "sleep:20000")
        self.control(process, 7)
        process.send_signal(CONTROL)
        snapshot = self.snapshot_when(process, lambda s: True)
        self.assertEqual(snapshot["cca"]["stats"][0]["segment.all.current"], 1)
        self.assertEqual(snapshot["cca"]["stats"][0]["allocated_bytes.all.peak"], 30 << 20)


class Contents(Running):
    def test_who_holds_the_device(self):
        process = self.start_script("m:a:1Mi", "loop:1:30Mi", "ready", "sleep:20000")
        process.send_signal(signal.SIGUSR1)
        row = self.load(self.wait_for_file()[0])["cca"]["devices"][0]
        self.assertEqual((row["total"], row["reserved"]), (16 << 30, 32 << 20))
        self.assertEqual((row["allocated"], row["pending"], row["cached"]), (1 << 20, 0, 31 << 20))
        self.assertGreater(row["free_time_us"], 0)
        self.assertEqual(row["total"] - row["free"],
                         row["reserved"] + row["unmanaged"] + row["other"])

    def test_only_the_last_events(self):
        self.run_program("script", "m:a:1Mi", "loop:20:4Mi", env={"CCA_DUMP_LAST": "5"})
        snapshot = self.only_snapshot()
        self.assertEqual(len(snapshot["device_traces"][0]), 5)
        counters = snapshot["cca"]["counters"][0]
        self.assertEqual(counters["cut_entries"], 2 + 1 + 60 - 5)
        self.assertEqual(counters["lost_entries"], counters["cut_entries"])
        self.assertTrue(snapshot["allocator_settings"]["trace_alloc_overflowed"])

    def test_no_command_line(self):
        self.run_program("script", "m:a:1Mi", env={"CCA_DUMP_ARGS": "0"})
        self.assertEqual(self.only_snapshot()["cca"]["command_line"], [])
        with open(self.files()[0], "rb") as file:
            self.assertNotIn(b"m:a:1Mi", file.read())

    def test_skipped_actions(self):
        self.run_program("script", "m:a:1Mi", "m:b:1000Gi", "f:a",
                         env={"CCA_SKIP_ACTIONS": "oom", "CCA_DUMP_ON": "exit"})
        snapshot = self.only_snapshot()
        actions = [entry["action"] for entry in snapshot["device_traces"][0]]
        self.assertEqual(actions, ["segment_alloc", "alloc", "free_requested", "free_completed"])
        self.assertEqual(snapshot["cca"]["counters"][0]["skipped_entries"], 1)
        self.assertEqual(snapshot["cca"]["stats"][0]["num_ooms"], 1)

    def test_everything_skipped_is_still_a_snapshot(self):
        replayed = ("alloc,free_requested,free_completed,segment_alloc,segment_free,segment_map,"
                    "segment_unmap")
        self.run_program("script", "m:a:1Mi", "loop:3:4Mi", env={"CCA_SKIP_ACTIONS": replayed})
        snapshot = self.only_snapshot()
        self.assertEqual(snapshot["device_traces"][0], [])
        self.assertEqual(len(live_blocks(snapshot)), 1)

    def test_the_time_of_the_peak(self):
        self.run_program("script", "m:a:1Mi", "loop:1:8Mi", "m:b:2Mi")
        snapshot = self.only_snapshot()
        peak = snapshot["cca"]["peak"][0]
        self.assertEqual(peak["bytes"], 9 << 20)
        trace = snapshot["device_traces"][0]
        self.assertEqual([e["size"] for e in trace if e["time_us"] == peak["time_us"] and
                          e["action"] == "alloc"], [8 << 20])


class Log(Running):
    def test_messages_go_to_a_file(self):
        run = self.run_program("script", "m:a:1Mi",
                               env={"CCA_LOG_FILE": "log.txt", "CCA_LOG_LEVEL": "info", "CCA_X": "1"})
        self.assertEqual(run.stderr, "")
        with open(os.path.join(self.folder, "log.txt")) as file:
            text = file.read()
        for part in ("CCA_X '1': unknown", "version 0.1.0", "cca: device 0: peak", "cca: snapshot"):
            self.assertIn(part, text)

    def test_a_file_that_cannot_be_opened(self):
        run = self.run_program("script", "m:a:1Mi", env={"CCA_LOG_FILE": "/proc/no/log"})
        self.assertIn("cca: CCA_LOG_FILE '/proc/no/log': not writable, using stderr", run.stderr)
        self.assertIn("cca: device 0: peak", run.stderr)

    def test_a_program_without_cuda_leaves_no_file(self):
        self.run_program("/bin/true", env={"CCA_LOG_FILE": "log.txt", "CCA_METRICS_FILE": "m.prom"})
        self.assertEqual(os.listdir(self.folder), [])


class FileSizeLimit(Running):
    """RLIMIT_FSIZE: a write that is too large ends a process by SIGXFSZ, unless it says otherwise."""

    def test_the_program_ends_as_without_the_library(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        process = self.start("script", "m:a:1Mi", "x:100:1Ki",
                             env={"CCA_METRICS_FILE": "m.prom"}, preexec_fn=limit)
        _, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertRegex(stderr, r"cca: .*(snapshot|writ).*File too large")
        self.assertEqual([f for f in os.listdir(self.folder) if f.endswith(".pickle") or ".tmp" in f], [])


class NobodyReads(Running):
    def test_a_full_pipe_on_stderr_holds_nobody(self):
        ours, theirs = os.pipe()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        os.set_blocking(theirs, False)
        try:
            while True:
                os.write(theirs, b"x" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(theirs, True)
        process = self.start("script", "x:100:1Mi", stderr=theirs)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(self.files("*.pickle")), 1)


class Leaks(Running):
    def test_by_call_stack_with_age(self):
        run = self.run_program("script", "m:a:3Mi", "x:2:1Mi", "m:b:5Mi", "f:b")
        self.assertRegex(run.stderr, r"cca: device 0: leaked 3\.00 MiB in 1 block, \d+\.\d\d s old: "
                         r"allocate < obey < main")
        self.assertRegex(run.stderr, r"leaked 2\.00 MiB in 2 blocks, the oldest \d+\.\d\d s old: "
                         r"allocate < allocate_many < obey < main")
        self.assertNotIn("5.00 MiB in", run.stderr)

    def test_without_a_snapshot_too(self):
        run = self.run_program("script", "m:a:3Mi", env={"CCA_DUMP_ON": "none"})
        self.assertIn("leaked 3.00 MiB in 1 block", run.stderr)
        self.assertEqual(self.files(), [])

    def test_none(self):
        run = self.run_program("script", "loop:3:1Mi")
        self.assertIn("0 blocks leaked", run.stderr)
        self.assertNotIn(": leaked ", run.stderr)

    def test_silence(self):
        run = self.run_program("script", "m:a:3Mi", env={"CCA_SUMMARY": "0"})
        self.assertEqual(run.stderr, "")


class OutOfMemory(Running):
    STRANDED = ("m:p:530Mi", "f:p", "x:10:270Mi")
    STRANDED_ENV = {"CCA_MEMORY_LIMIT": "2900M"}
    CRUMBS = ("m:p:11643387904", "f:p", "x:640:18Mi", "f:x:23", "m:q:10Gi")
    CRUMBS_ENV = {"SIMCUDA_MEM": "32G", "CCA_MEMORY_LIMIT": "20G"}

    def paragraph(self, run):
        match = re.search(r"cca: out of memory on device 0: .*\n(?:  .*\n)*", run.stderr)
        self.assertTrue(match, run.stderr)
        return match.group(0)

    def follow(self, text, commands, env):
        """Runs again with the setting that was advised."""
        advised = re.search(r"(CCA_\w+)=(\w+) would help", text)
        self.assertTrue(advised, text)
        return self.run_program("script", *commands, env={**env, advised.group(1): advised.group(2)})

    def test_a_stranded_remainder(self):
        run = self.run_program("script", *self.STRANDED, env=self.STRANDED_ENV)
        self.assertEqual(run.stdout, "x10 fails 2\n")
        text = self.paragraph(run)
        self.assertIn("270.00 MiB asked for", text)
        self.assertIn("limit 2.83 GiB", text)
        self.assertIn("held by the program 2.37 GiB", text)
        self.assertIn("largest free block 260.00 MiB", text)
        self.assertIn("lost to fragmentation 260.00 MiB (9.7 %)", text)
        self.assertIn("2.37 GiB in 9 blocks by allocate < allocate_many < obey < main", text)
        again = self.follow(text, self.STRANDED, self.STRANDED_ENV)
        self.assertEqual(again.stdout, "")
        self.assertNotIn("out of memory", again.stderr)

    def test_a_giant_segment_pinned_by_crumbs(self):
        run = self.run_program("script", *self.CRUMBS, env=self.CRUMBS_ENV)
        self.assertEqual(run.stdout, "q fails 2\n")
        text = self.paragraph(run)
        self.assertIn("largest free block 396.00 MiB", text)
        self.assertIn("held by the program 486.00 MiB", text)
        again = self.follow(text, self.CRUMBS, self.CRUMBS_ENV)
        self.assertEqual(again.stdout, "")

    def test_what_no_setting_helps(self):
        run = self.run_program("script", "m:a:1Gi", "m:b:40Gi")
        text = self.paragraph(run)
        self.assertIn("40.00 GiB asked for; 15.00 GiB of 16.00 GiB free", text)
        self.assertNotIn("would help", text)

    def test_a_limit(self):
        run = self.run_program("script", "m:a:1Gi", "m:b:1Gi", env={"CCA_MEMORY_LIMIT": "1500M"})
        self.assertIn("(CCA_MEMORY_LIMIT or CCA_MEMORY_FRACTION) of 2.00 GiB or more would help",
                      self.paragraph(run))

    def test_the_file_says_the_same(self):
        self.run_program("script", *self.STRANDED, env={**self.STRANDED_ENV, "CCA_DUMP_ON": "oom"})
        snapshot = self.only_snapshot()
        oom = snapshot["cca"]["oom"]
        self.assertEqual((snapshot["cca"]["cause"], oom["device"]), ("oom", 0))
        self.assertEqual((oom["requested"], oom["largest_free"]), (270 << 20, 260 << 20))
        self.assertIn("CCA_MAX_SPLIT_SIZE=512M", oom["advice"])
        self.assertEqual(snapshot["device_traces"][0][-1]["action"], "oom")

    def test_once_in_ten_seconds(self):
        run = self.run_program("script", *["m:b:40Gi"] * 5)
        self.assertEqual(run.stderr.count("out of memory on device"), 1)
        self.assertEqual(len(self.files("cca-*-0.pickle")), 1)

    def test_in_time_and_before_the_program_dies(self):
        began = time.monotonic()
        run = self.run_program("script", "loop:100:1Mi", "m:b:40Gi", "abort")
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(run.status, -signal.SIGABRT)
        self.paragraph(run)

    def test_without_a_file(self):
        run = self.run_program("script", "m:b:40Gi", env={"CCA_DUMP_ON": "none"})
        self.paragraph(run)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    harness.main()
