#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The history under hard conditions: a ring that wraps, many processes in one folder, signals that
others own, stacks by every unwinder, and everything at once."""
import ctypes
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import Case, live_blocks


def module(name):
    path = harness.program("lib%s.so" % name)
    return path if os.path.exists(path) else harness.program(name + ".so")


class Ring(Case):
    def test_what_a_ring_that_wrapped_says(self):
        self.run_program("script", "m:keep:2Mi", "loop:20:2Mi", env={"CCA_MAX_ENTRIES": "8"})
        snapshot = self.only_snapshot()
        trace = snapshot["device_traces"][0]
        self.assertEqual(len(trace), 8)
        times = [entry["time_us"] for entry in trace]
        self.assertEqual(times, sorted(times))
        self.assertTrue(snapshot["allocator_settings"]["trace_alloc_overflowed"])
        self.assertEqual(snapshot["allocator_settings"]["trace_alloc_max_entries"], 8)
        # one segment and the block kept; then 20 times alloc, free_requested, free_completed
        self.assertEqual(snapshot["cca"]["counters"][0]["lost_entries"], 2 + 60 - 8)
        blocks = live_blocks(snapshot)
        self.assertEqual([block["requested_size"] for block in blocks], [2 << 20])
        self.assertEqual([frame["name"] for frame in blocks[0]["frames"]][:3],
                         ["allocate", "obey", "main"])


class ManyProcesses(Case):
    def test_children_and_ranks_in_one_folder(self):
        processes = [self.start("script", "m:a:1Mi", "loop:5:1Mi", env={"RANK": str(rank),
                                                                         "CCA_DUMP_FILE": "all"})
                     for rank in range(8)]
        for process in processes:
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
        files = self.files("all*.pickle")
        self.assertEqual(len(files), 8)
        ranks = sorted(self.load(path)["cca"]["rank"] for path in files)
        self.assertEqual(ranks, list(range(8)))
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".tmp")], [])

    def test_names_tell_ranks_apart(self):
        for rank in (0, 1):
            self.run_program("script", "m:a:1Mi", env={"SLURM_PROCID": str(rank),
                                                       "CCA_DUMP_FILE": "r%r"})
        self.assertEqual([os.path.basename(path) for path in self.files("r*")],
                         ["r0.pickle", "r1.pickle"])


class OwnedSignals(Case):
    def test_forced_over_a_handler_and_chained(self):
        run = self.run_program("handler", "before", env={"CCA_DUMP_SIGNAL_FORCE": "1",
                                                         "CCA_DUMP_ON": "signal"})
        self.assertEqual((run.status, run.stdout), (0, "handled 1\n"), run.stderr)
        self.assertEqual(self.only_snapshot()["cca"]["cause"], "signal")

    def test_a_later_handler_wins_and_the_summary_says_so(self):
        run = self.run_program("handler", "after", env={"CCA_DUMP_ON": "signal"})
        self.assertEqual((run.status, run.stdout), (0, "handled 1\n"), run.stderr)
        self.assertIn("replaced the handler of the dump signal", run.stderr)
        self.assertEqual(self.files(), [])

    def test_another_signal_and_none(self):
        for name, number in (("USR2", signal.SIGUSR2), ("RTMIN+3", signal.SIGRTMIN + 3)):
            process = self.start("script", "m:a:1Mi", "ready", "sleep:20000",
                                 env={"CCA_DUMP_SIGNAL": name, "CCA_DUMP_FILE": name})
            process.stdout.readline()
            process.send_signal(number)
            self.wait_for_file(name + "*.pickle")
            process.kill()
            process.communicate()
        process = self.start("script", "m:a:1Mi", "ready", "sleep:20000",
                             env={"CCA_DUMP_SIGNAL": "none"})
        process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, -signal.SIGUSR1)

    def test_a_hundred_signals_to_a_busy_program(self):
        process = self.start("script", "m:a:1Mi", "ready", *["loop:20000:1Mi"] * 4, "exit:5",
                             env={"CCA_DUMP_ON": "signal"})
        process.stdout.readline()
        sent = 0
        while sent < 100 and process.poll() is None:
            process.send_signal(signal.SIGUSR1)
            sent += 1
            time.sleep(0.003)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 5)
        files = self.files()
        self.assertGreaterEqual(len(files), 1)
        for path in files[:5]:
            self.load(path)


class Failures(Case):
    def test_a_limit_of_the_file_size_leaves_no_file_and_one_line(self):
        """Also where the signal of that limit keeps its action, which would end the program."""
        for trap in ('trap "" XFSZ; ', ""):
            script = 'ulimit -f 8; %sexec "$@"' % trap
            run = self.run_program("/bin/bash", "-c", script, "bash", harness.program("script"),
                                   "m:a:1Mi", "loop:2000:1Mi", "exit:4",
                                   env={"CCA_METRICS_FILE": "m.prom"})
            self.assertEqual(run.status, 4, run.stderr)
            self.assertEqual(os.listdir(self.folder), ["m.prom"])
            os.remove(os.path.join(self.folder, "m.prom"))
            self.assertEqual(run.stderr.count("no snapshot "), 1, run.stderr)

    def mounted(self, options, *steps, more="", env=None):
        """A run whose folder is a file system of its own, as `ls` shows it at the end."""
        script = ('mount -t tmpfs -o %s none "$0" || exit 77; cd "$0"; %s "$@"; status=$?; ls -A; '
                  'exit $status' % (options, more))
        run = self.run_program("/usr/bin/unshare", "-rm", "/bin/bash", "-c", script, self.folder,
                               harness.program("script"), *steps, env=env)
        if run.status == 77 or "unshare" in run.stderr:
            self.skipTest("nothing can be mounted here")
        return run

    def test_a_full_disk_leaves_no_file_and_one_line(self):
        run = self.mounted("size=64k", "m:a:1Mi", "loop:2000:1Mi", "exit:4",
                           env={"TMPDIR": self.folder})
        self.assertEqual((run.status, run.stdout), (4, ""), run.stderr)
        self.assertEqual(run.stderr.count("no snapshot "), 1, run.stderr)
        self.assertIn("No space left", run.stderr)

    def test_a_read_only_folder_gives_way_to_tmpdir(self):
        with tempfile.TemporaryDirectory() as other:
            run = self.mounted("size=1m", "m:a:1Mi", "exit:4", env={"TMPDIR": other},
                               more='mount -o remount,ro "$0" || exit 77; cd "$0"; ')
            self.assertEqual((run.status, run.stdout), (4, ""), run.stderr)
            self.assertIn("the folder of the snapshot is not writable: it is " + other, run.stderr)
            self.load(glob.glob(os.path.join(other, "*.pickle"))[0])

    def test_a_missing_folder_gives_way_to_tmpdir(self):
        with tempfile.TemporaryDirectory() as other:
            run = self.run_program("script", "m:a:1Mi", "exit:4", env={
                "TMPDIR": other, "CCA_DUMP_FILE": "nowhere/at/all"})
            self.assertEqual(run.status, 4, run.stderr)
            self.assertIn(os.path.join(other, "all.pickle"), run.stderr)
            self.load(os.path.join(other, "all.pickle"))

    def test_the_size_is_told_before(self):
        run = self.run_program("script", "m:a:1Mi", "loop:5000:1Mi", env={
            "CCA_LOG_LEVEL": "info", "CCA_DUMP_FORMAT": "pickle,json"})
        told = re.findall(r"a snapshot of about ([\d.]+) (KiB|MiB) is written", run.stderr)
        self.assertEqual(len(told), 2, run.stderr)
        for (number, unit), suffix in zip(told, ("pickle", "json")):
            size = os.path.getsize(self.files("cca-*." + suffix)[0])
            about = float(number) * (1 << (10 if unit == "KiB" else 20))
            self.assertLess(abs(about - size), size / 3, (about, size))

    def test_killed_at_any_moment(self):
        for delay in range(12):
            process = self.start("script", "m:a:1Mi", "loop:20000:1Mi", "ready", "sleep:20000",
                                 env={"CCA_DUMP_FILE": "k%d" % delay})
            process.stdout.readline()
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.01 * delay)
            process.kill()
            process.communicate()
        for path in self.files("k*.pickle"):
            self.load(path)


class Stacks(Case):
    def frames(self, env, program="leaky"):
        run = self.run_program(program, env=env)
        snapshot = self.only_snapshot()
        os.remove(self.files()[0])
        return run, snapshot, live_blocks(snapshot)[0]["frames"]

    def test_by_libgcc_as_by_libunwind(self):
        _, snapshot, expected = self.frames({"CCA_UNWINDER": "libunwind"})
        self.assertEqual(snapshot["cca"]["unwinder"], "libunwind")
        _, snapshot, frames = self.frames({"CCA_UNWINDER": "libgcc"})
        self.assertEqual(snapshot["cca"]["unwinder"], "libgcc")
        self.assertEqual([frame["name"] for frame in frames], [f["name"] for f in expected])
        self.assertEqual(snapshot["cca"]["counters"][0]["missing_stacks"], 0)

    def test_by_frame_pointers_a_program_goes_on(self):
        run, snapshot, _ = self.frames({"CCA_UNWINDER": "fp"})
        self.assertEqual((run.status, snapshot["cca"]["unwinder"]), (7, "fp"))

    def test_none(self):
        _, snapshot, frames = self.frames({"CCA_UNWINDER": "none"})
        self.assertEqual((snapshot["cca"]["unwinder"], frames), ("none", []))

    @unittest.skipUnless(harness.has_program("shapes"), "no C++ compiler")
    def test_names_of_c_plus_plus(self):
        names = [frame["name"] for frame in self.frames({}, "shapes")[2]]
        self.assertEqual(names[:2], ["shapes::Store::take(unsigned long)",
                                     "void* shapes::make<double>(unsigned long)"])
        self.assertRegex(names[2], r"main::\{lambda\(.*\)#1\}::operator\(\)")
        self.assertEqual(names[3], "main")

    @unittest.skipUnless(harness.has_program("shapes"), "no C++ compiler")
    def test_lines(self):
        run, snapshot, frames = self.frames({"CCA_SYMBOLIZE": "lines"}, "shapes")
        if "without libbacktrace" in run.stderr:
            self.skipTest("built without libbacktrace")
        self.assertEqual(snapshot["cca"]["symbolized"], "lines")
        source = os.path.join(harness.SOURCE, "tests", "e2e", "programs", "shapes.cpp")
        with open(source) as file:
            lines = file.read().splitlines()
        for frame, text in zip(frames, ("cudaMalloc(&p, bytes)", "store.take(", "make<double>(",
                                        "lambda(1000)")):
            self.assertEqual(os.path.basename(frame["filename"]), "shapes.cpp", frame)
            self.assertIn(text, lines[frame["line"] - 1], frame)

    def test_python_with_ctypes(self):
        code = ("import ctypes; c = ctypes.CDLL('libcudart.so.13'); p = ctypes.c_void_p()\n"
                "assert c.cudaMalloc(ctypes.byref(p), 1 << 20) == 0")
        run = self.run_program(sys.executable, "-c", code, env={"CCA_PROGRAMS": "*"})
        self.assertEqual(run.status, 0, run.stderr)
        frames = live_blocks(self.only_snapshot())[0]["frames"]
        self.assertIn("ffi_call", [frame["name"] for frame in frames])


@unittest.skipUnless(os.path.exists(module("throwing")), "no C++ compiler")
class Unwinding(Case):
    """The library unwinds by an unwinder of its own; the program's must not meet it."""

    UNWINDERS = {name: {"CCA_UNWINDER": name} for name in ("libunwind", "libgcc", "fp")}

    def check(self, expected, name, *args, timeout=120):
        bare, runs = self.compare(name, *args, modes=self.UNWINDERS, timeout=timeout)
        self.assertEqual((bare.status, bare.stdout), expected, bare.stderr)
        self.assertEqual(len(runs), 3)
        for path in self.files("cca-*.pickle"):
            self.assertEqual(live_blocks(self.load(path)), [])

    def test_through_a_c_program(self):
        self.check((3, "thrown 0\nended 0\nthrown 0\n"), "throws", module("throwing"))

    @unittest.skipUnless(harness.has_program("throws_static"), "needs gcc")
    def test_through_a_program_with_an_unwinder_inside(self):
        self.check((3, "thrown 0\nended 0\n"), "throws_static")

    def test_through_python(self):
        code = ("import ctypes, sys; c = ctypes.CDLL(%r)\n"
                "print(c.throw_often(200), c.end_threads(20), flush=True)" % module("throwing"))
        self.check((0, "0 0\n"), sys.executable, "-c", code)


class Stopped(Case):
    def test_a_thread_that_a_debugger_stopped_in_an_allocation(self):
        """The dump goes without its heap and says so; other devices are whole."""
        process = self.start("stopped", env={"SIMCUDA_DEVICES": "2"}, stdin=subprocess.PIPE)
        thread = int(process.stdout.readline())
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long] * 4
        PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
        self.assertEqual(libc.ptrace(PTRACE_SEIZE, thread, 0, 0), 0, ctypes.get_errno())
        self.assertEqual(libc.ptrace(PTRACE_INTERRUPT, thread, 0, 0), 0)
        self.assertEqual(os.waitpid(thread, 0x40000000)[0], thread)  # __WALL
        process.send_signal(signal.SIGUSR1)
        path = self.wait_for_file(seconds=30)[0]
        snapshot = self.load(path)
        self.assertTrue(snapshot["cca"]["is_partial"])
        self.assertEqual([device["partial"] for device in snapshot["cca"]["devices"]],
                         [True, False])
        self.assertEqual([block["requested_size"] for block in live_blocks(snapshot)], [2000])
        libc.ptrace(PTRACE_DETACH, thread, 0, 0)
        stdout, stderr = process.communicate("go\n", timeout=60)
        self.assertEqual((process.returncode, stdout), (5, "went on\n"), stderr)
        whole = self.load([name for name in self.files("cca-*.pickle") if name != path][0])
        self.assertFalse(whole["cca"]["is_partial"])
        self.assertEqual(len(live_blocks(whole)), 2)


class Many(Case):
    def test_files_under_eight_busy_threads(self):
        wanted = 200 if harness.FULL else 40
        process = self.start("busy", 8, env={"CCA_DUMP_ON": "signal", "CCA_MAX_ENTRIES": "2000",
                                             "CCA_FREE_SYNC": "fence"}, stdin=subprocess.PIPE)
        process.stdout.readline()
        for count in range(1, wanted + 1):
            process.send_signal(signal.SIGUSR1)
            self.wait_for_file(seconds=30, count=count)
        stdout, stderr = process.communicate("stop\n", timeout=60)
        self.assertEqual((process.returncode, stdout), (0, "wrong 0\n"), stderr)
        files = self.files("cca-*.pickle")
        self.assertEqual(len(files), wanted)
        sys.path.insert(0, os.path.dirname(harness.CHECK_PICKLE))
        from check_pickle import check
        for path in files:
            check(path)  # raises what is wrong


class Storm(Case):
    def test_everything_at_once(self):
        plug = module("stormplug")
        throwing = module("throwing")
        run = self.run_program("storm", 30000 if harness.FULL else 5000, plug,
                               *[throwing] if os.path.exists(throwing) else [], timeout=300,
                               env={"CCA_MAX_ENTRIES": "5000"})
        self.assertEqual((run.status, run.stdout), (9, "wrong 0\n"), run.stderr)
        files = self.files()
        self.assertGreater(len(files), 3)
        for path in files if harness.FULL else files[:: max(1, len(files) // 8)]:
            self.load(path)


if __name__ == "__main__":
    harness.main()
