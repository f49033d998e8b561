#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How processes begin, multiply and end, and who else may be in them. The behaviours are those of the
table "The life of a process" in preload/README.md."""
import os
import re
import shutil
import stat
import subprocess
import sys
import unittest

import harness
from harness import Case

QUIET = {"CCA_DUMP_ON": "none"}


class Children(Case):
    def test_a_fork_of_a_program_with_a_context(self):
        for end in ("exit", "_exit"):
            self.compare("life", "fork", end, env=QUIET)

    def test_a_forked_child_writes_no_snapshot_and_no_summary(self):
        run = self.run_program("life", "fork", "exit")
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(self.only_snapshot()["cca"]["pid"], run.pid)
        self.assertEqual(run.stderr.count("cca: device 0"), 1, run.stderr)

    def test_vfork_exec_spawn_and_system(self):
        self.compare("life", "others", env=QUIET)

    def test_exec_takes_the_program_away_and_nothing_is_written_for_it(self):
        self.compare("life", "exec", env=QUIET)
        run = self.run_program("life", "exec")
        self.assertEqual(run.stderr.count("cca: device 0"), 1, run.stderr)
        self.assertEqual(self.only_snapshot()["cca"]["command_line"][1:], ["threads"])

    def test_a_daemon_is_served(self):
        self.compare("life", "daemon", env=QUIET)
        self.run_program("life", "daemon")
        self.wait_for_file("daemon")
        snapshot = self.load(self.wait_for_file()[0])
        counters = snapshot["cca"]["counters"][0]
        self.assertEqual((counters["allocs"], counters["passed_through"]), (1, 0))

    def test_two_hundred_forks_from_a_busy_program(self):
        """D18: no deadlock although other threads are inside the library's locks."""
        self.compare("forkbusy", harness.program("libsmall.so"), 1000 if harness.FULL else 200,
                     modes={"strict": {}, "fence": harness.MODES["fence"]}, env=QUIET, timeout=300)


class Ends(Case):
    def test_every_way_to_end(self):
        for how in ("atexit", "exit", "quick_exit", "_exit", "_Exit", "abort", "kill", "segv",
                    "main_ends", "return"):
            self.compare("life", "end", how, env=QUIET)

    def test_a_snapshot_is_written_where_destructors_run(self):
        for how in ("atexit", "exit", "main_ends", "return"):
            with self.subTest(how=how):
                run = self.run_program("life", "end", how, env={"CCA_DUMP_FILE": how})
                self.assertEqual(len(self.files(how + ".pickle")), 1, run.stderr)
                self.load(self.files(how + ".pickle")[0])

    def test_threads_that_free_as_they_end(self):
        self.compare("life", "threads", env=QUIET)

    def test_a_reset_in_the_middle(self):
        self.compare("life", "reset", env=QUIET)


class Loading(Case):
    """CUDA that comes later than the program."""

    worker = harness.program("libworker.so")

    def test_plug_ins_of_every_kind(self):
        for how in ("local", "global", "deepbind", "namespace", "again"):
            bare, _ = self.compare("late", how, self.worker, env=QUIET)
            self.assertIn("worked: 0", bare.stdout)

    def test_the_runtime_by_hand(self):
        for how in ("runtime", "runtime_again"):
            bare, _ = self.compare("late", how, env=QUIET)
            self.assertIn("used", bare.stdout)

    def test_plug_ins_are_served(self):
        for how in ("local", "global", "again"):
            with self.subTest(how=how):
                _, calls = self.calls("late", how, self.worker, env=QUIET)
                self.assertEqual(calls["cuMemAlloc_v2"], 1)


class Company(Case):
    """Other libraries in the process."""

    def test_another_interposer_in_either_order(self):
        for name in ("libother.so", "libother_unseen.so"):
            with self.subTest(name=name):
                self.interpose(harness.program(name))

    def interpose(self, other):
        bare = self.run_program("basic", preload=False)
        alone = self.run_program("basic", preload=False, env={"LD_PRELOAD": other})
        self.assertEqual((alone.status, alone.stdout), (bare.status, bare.stdout))
        seen = {}
        for order in ((other, harness.PRELOAD), (harness.PRELOAD, other)):
            for mode, settings in harness.MODES.items():
                with self.subTest(order=order, mode=mode):
                    run = self.run_program("basic", env={**QUIET, **settings,
                                                         "LD_PRELOAD": ":".join(order)})
                    self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout))
                    seen[order[0], mode] = int(
                        re.search(r"other: (\d+) and \d+", run.stderr)[1])
        native = int(re.search(r"other: (\d+) and \d+", alone.stderr)[1])
        # In front of us it sees what the program calls, behind us what is passed on.
        self.assertEqual(seen[other, "strict"], native)
        self.assertEqual(seen[harness.PRELOAD, "count"], native)
        self.assertLess(seen[harness.PRELOAD, "strict"], native)

    def test_another_copy_in_front(self):
        copy = os.path.join(self.folder, "libcopy.so")
        shutil.copy(harness.PRELOAD, copy)
        bare = self.run_program("basic", preload=False)
        run = self.run_program("basic", env={**QUIET, "LD_PRELOAD": copy + ":" + harness.PRELOAD})
        self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)

    def test_another_library_with_names_of_the_driver(self):
        """What a runtime finds by the driver's handle stays the driver's own, behind us as well."""
        shim = harness.program("libshim.so")
        for name in ("async", "basic", "basic_static"):
            bare = self.run_program(name, preload=False, env={"LD_PRELOAD": shim})
            for order in ((shim, harness.PRELOAD), (harness.PRELOAD, shim)):
                for mode, settings in harness.MODES.items():
                    with self.subTest(program=name, order=order, mode=mode):
                        run = self.run_program(name, env={**QUIET, **settings,
                                                          "LD_PRELOAD": ":".join(order)})
                        self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout))

    def test_a_checker_or_debugger_makes_it_only_count(self):
        for name, words in (("libsanitizer-collection.so", "compute-sanitizer"),
                            ("libcudadebugger.so", "debugger")):
            with self.subTest(name=name):
                _, bare = self.calls("threads", 20, preload=False)
                run, calls = self.calls("threads", 20, env={
                    **QUIET, "LD_PRELOAD": harness.program(name) + ":" + harness.PRELOAD})
                self.assertEqual(calls["cuMemAlloc_v2"], bare["cuMemAlloc_v2"])
                lines = [line for line in run.stderr.splitlines() if words in line]
                self.assertEqual(len(lines), 1, run.stderr)
                self.assertIn("nothing is cached", lines[0])
                self.assertIn("with caching", run.stderr)

    def test_an_integrated_gpu_is_only_counted(self):
        env = {**QUIET, "SIMCUDA_INTEGRATED": "1"}
        self.compare("threads", 20, env=env)
        run, calls = self.calls("threads", 20, env=env)
        self.assertGreater(calls["cuMemAlloc_v2"], 100)
        self.assertEqual(run.stderr.count("integrated GPU"), 1, run.stderr)
        self.assertNotIn("integrated GPU", self.run_program(
            "threads", 20, env={**env, "CCA_MODE": "count"}).stderr)

    @unittest.skipUnless(harness.has_program("basic_asan"), "no AddressSanitizer")
    def test_address_sanitizer_through_the_tool(self):
        for name, args in (("basic", ()), ("threads", ("50",))):
            bare = self.run_program(name + "_asan", *args, preload=False)
            run = self.run_program(harness.TOOL, "run", "--", harness.program(name + "_asan"), *args,
                                   preload=False)
            self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)
            self.assertNotIn("ERROR", run.stderr)
            self.assertIn("from the cache", run.stderr)


class Others(Case):
    @unittest.skipUnless(harness.has_program("nolibs"), "no static libc")
    def test_a_static_program_is_quietly_out_of_reach(self):
        run = self.run_program("nolibs")
        self.assertEqual((run.status, run.stdout, run.stderr), (9, "static\n", ""))
        self.assertEqual(self.files(), [])

    def test_more_rights_than_the_user_turn_it_off(self):
        """The library is linked in: with more rights the loader ignores LD_PRELOAD by itself."""
        if os.getuid() != 0:
            self.skipTest("needs root to give a program rights")
        plain = self.run_program("linked", preload=False)
        self.assertIn("cca: device 0", plain.stderr)
        secure = os.path.join(self.folder, "secure")
        shutil.copy(harness.program("linked"), secure)
        os.chmod(secure, 0o755 | stat.S_ISUID)
        os.chmod(self.folder, 0o777)
        for path in self.files():
            os.remove(path)
        program = ("import os, sys\nos.setgid(65534)\nos.setuid(65534)\n"
                   "os.execv(sys.argv[1], sys.argv[1:])")
        done = subprocess.run([sys.executable, "-c", program, secure], cwd=self.folder, text=True,
                              env=self.environment({"CCA_MODE": "nonsense", "CCA_UNKNOWN": "1"},
                                                   False), capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, plain.stdout, ""))
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    harness.main()
