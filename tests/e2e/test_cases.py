#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cases that users have met with other allocators in between, by their numbers: D07 sizes near the top of size_t,
D08 zero bytes and null, D09 wrong pointers, D10 errors left behind, D11 no memory pools, D12
allocation during a capture, D16 the figure for free memory, D18 forks and ranks, D20 doors."""
import os
import signal
import unittest

import harness
from harness import Case

SETTINGS = {"CCA_DUMP_ON": "none"}
CACHING = {mode: harness.MODES[mode] for mode in ("strict", "fence")}
MIB = 1 << 20
GIB = 1 << 30

#: What must not be called on our behalf while a stream captures.
FORBIDDEN_IN_CAPTURE = (
    "cuEventQuery", "cuEventSynchronize", "cuEventRecord", "cuCtxRecordEvent", "cuCtxSynchronize",
    "cuStreamSynchronize", "cuStreamQuery", "cuMemFree_v2")


class Corner(Case):
    def figures(self, corner, **env):
        """The statistics, counters and events after a corner was gone through."""
        run = self.run_program("corners", corner, env={**env, "CCA_DUMP_ON": "exit"})
        self.assertEqual(run.status, 0, run.stdout + run.stderr)
        return run, self.only_snapshot()


class D07(Corner):
    def test_as_natively(self):
        self.compare("corners", "large", env=SETTINGS)

    def test_sizes_that_wrap_are_failures_and_no_calls(self):
        _, calls = self.calls("corners", "large", env={"CCA_DUMP_ON": "exit"})
        self.assertEqual(self.only_snapshot()["cca"]["stats"][0]["num_ooms"], 5)
        self.assertLessEqual(calls["cuMemAlloc_v2"], 1 + 5)


class D08(Corner):
    def test_zero_bytes_and_null(self):
        bare, _ = self.compare("corners", "zero", env=SETTINGS)
        self.assertEqual(bare.stdout.splitlines(), [
            "cudaMalloc(&p, 0) -> 0, last error 0 0", "pointer is null",
            "cudaFree(p) -> 0, last error 0 0", "cudaFree(NULL) -> 0, last error 0 0",
            "cudaMalloc(NULL, 16) -> 1, last error 1 1"])

    def test_the_accounts_do_not_move(self):
        for mode, settings in CACHING.items():
            run, snapshot = self.figures("accounts", CCA_DUMP_FILE=mode, **settings)
            stats = snapshot["cca"]["stats"][0]
            for name in ("allocation.all.allocated", "allocation.all.current"):
                self.assertEqual(stats[name], 1, (mode, name))
            self.assertEqual(stats["requested_bytes.all.allocated"], MIB)
            self.assertFalse([entry for entry in snapshot["device_traces"][0]
                              if entry["size"] == 0])

    def only_snapshot(self):
        files = self.files("*.pickle")
        snapshot = self.load(files[-1])
        for path in files:
            os.remove(path)
        return snapshot


class D09(Corner):
    def test_double_inner_and_foreign_frees(self):
        bare, _ = self.compare("corners", "frees", env=SETTINGS)
        self.assertIn("cudaFree(a) -> 0, last error 0 0\ncudaFree(a) -> 1, last error 1 1\n",
                      bare.stdout)
        self.assertIn("cudaFree((char *)b + 256) -> 1, last error 1 1\ntwo blocks are two\n",
                      bare.stdout)
        for foreign in ("managed", "pitched", "node"):
            self.assertIn("cudaFree(%s) -> 0" % foreign, bare.stdout)

    def test_foreign_pointers_reach_the_driver_and_ours_do_not(self):
        """Managed (twice), pitched, node (twice) and the null one; the rest at the exit of the
        cache, if at all."""
        trace = os.path.join(self.folder, "trace")
        self.run_program("corners", "frees", env={**SETTINGS, "SIMCUDA_TRACE": trace})
        with open(trace) as file:
            frees = [line.split()[1] for line in file if line.startswith("cuMemFree_v2 ")]
        self.assertEqual(frees, ["0", "1", "0", "0", "1"])

    def test_the_accounts_know_right_frees_only(self):
        _, snapshot = self.figures("frees")
        stats = snapshot["cca"]["stats"][0]
        self.assertEqual(stats["allocation.all.current"], 0)
        self.assertEqual(stats["allocated_bytes.all.current"], 0)
        # cudaMalloc three times, cuMemAlloc, cudaMallocAsync
        self.assertEqual(stats["allocation.all.allocated"], 5)
        self.assertEqual(stats["allocation.all.freed"], 5)


class D10(Corner):
    def test_a_retry_inside_leaves_no_error(self):
        self.compare("corners", "error", env=SETTINGS)

    def test_a_first_raw_allocation_that_fails(self):
        """The driver refuses once; what was cached goes back, and the second call works."""
        for mode, settings in CACHING.items():
            with self.subTest(mode=mode):
                run, snapshot = self.figures("retry", SIMCUDA_FAIL="cuMemAlloc_v2:n=2:code=2",
                                             CCA_DUMP_FILE="cca-" + mode, **settings)
                self.assertEqual(run.stdout.splitlines(), [
                    "cudaMalloc(&p, 300 * MIB) -> 0, last error 0 0",
                    "a bad launch: 9", "malloc 0", "still there: 9 9"])
                self.assertEqual(snapshot["cca"]["stats"][0]["num_alloc_retries"], 1)
                self.assertEqual(snapshot["cca"]["stats"][0]["num_ooms"], 0)
                os.remove(self.files("cca-*.pickle")[0])


class D11(Corner):
    env = {"SIMCUDA_WITHOUT": "cuMemAllocAsync,cuMemFreeAsync"}

    def test_served_from_the_cache(self):
        bare = self.run_program("corners", "ordered", preload=False, env=self.env)
        self.assertEqual(bare.stdout, "no pools: 36\n")
        for mode, settings in CACHING.items():
            run = self.run_program("corners", "ordered", env={**SETTINGS, **self.env, **settings})
            self.assertEqual((run.status, run.stdout), (0, "twenty blocks\n"), mode)

    def test_by_the_attribute(self):
        """As devices without pools are: the calls are there and answer 801."""
        env = {"SIMCUDA_FAIL": "cuMemAllocAsync:every=1:code=801,cuMemFreeAsync:every=1:code=801"}
        bare = self.run_program("corners", "ordered", preload=False, env=env)
        self.assertEqual(bare.stdout, "no pools: 801\n")
        for mode, settings in CACHING.items():
            run = self.run_program("corners", "ordered", env={**SETTINGS, **env, **settings})
            self.assertEqual((run.status, run.stdout), (0, "twenty blocks\n"), mode)

    def test_the_raw_answer_for_those_who_test_their_own_fallback(self):
        run = self.run_program("corners", "ordered",
                               env={**SETTINGS, **self.env, "CCA_ASYNC": "forward"})
        self.assertEqual(run.stdout, "no pools: 36\n")


class D12(Case):
    """cudaMalloc on a thread whose stream captures."""

    def in_capture(self, mode, state, launches=1000, **env):
        return self.run_program("incapture", mode, state, launches, env={**SETTINGS, **env})

    def test_cold_it_is_as_natively(self):
        """Nothing is cached: memory comes by the driver, which refuses or not."""
        for mode, code in (("global", 900), ("thread", 900), ("relaxed", 0)):
            bare, _ = self.compare("incapture", mode, "cold", 100, env=SETTINGS)
            self.assertIn("malloc -> %d" % code, bare.stdout)

    def test_warm_the_block_stays_the_graphs(self):
        """Natively refused outside relaxed mode; from the cache there is nothing to refuse."""
        for mode in ("global", "thread", "relaxed"):
            for name, settings in CACHING.items():
                with self.subTest(capture=mode, mode=name):
                    run = self.in_capture(mode, "warm", **settings)
                    self.assertEqual(run.stdout.splitlines(), [
                        "malloc -> 0", "status 1", "end -> 0", "1000 launches, 1000 right",
                        "free -> 0"], run.stderr)
                    self.assertEqual(run.status, 0, run.stderr)
                    self.assertNotIn("caching ends", run.stderr)

    def test_nothing_is_asked_waited_for_or_given_back_meanwhile(self):
        trace = os.path.join(self.folder, "trace")
        for mode in ("global", "thread", "relaxed"):
            for name, settings in CACHING.items():
                for state in ("warm", "cold"):
                    with self.subTest(capture=mode, mode=name, state=state):
                        self.in_capture(mode, state, 1, SIMCUDA_TRACE=trace, **settings)
                        with open(trace) as file:
                            calls = [line.split()[0] for line in file]
                        os.remove(trace)
                        begin = next(i for i, call in enumerate(calls)
                                     if call.startswith("cuStreamBeginCapture"))
                        end = next(i for i, call in enumerate(calls)
                                   if call.startswith("cuStreamEndCapture"))
                        self.assertGreater(end - begin, 1)
                        self.assertEqual([call for call in calls[begin:end]
                                          if call in FORBIDDEN_IN_CAPTURE], [])


class D16(Corner):
    def test_what_was_freed_counts_as_free(self):
        bare, _ = self.compare("corners", "information", env=SETTINGS)
        self.assertIn("free memory is back", bare.stdout)

    def test_with_a_limit_free_memory_is_what_is_left_of_it(self):
        for mode, settings in CACHING.items():
            run = self.run_program("corners", "limited", env={
                **SETTINGS, **settings, "CCA_MEMORY_LIMIT": "4G"})
            self.assertEqual(run.stdout, "first: within the limit\nheld: within the limit\n"
                                         "freed: within the limit\n90 % of it -> 0\n", mode)

    def test_raw_figures_show_the_cache_as_used(self):
        for mode, settings in CACHING.items():
            run = self.run_program("corners", "information",
                                   env={**SETTINGS, **settings, "CCA_MEM_GET_INFO": "raw"})
            self.assertIn("free memory is NOT back", run.stdout, mode)

    def test_the_snapshot_adds_up_to_the_same(self):
        """Free for the program = free for the driver + the cache that is not in use."""
        process = self.start("corners", "cached", env={"CCA_DUMP_ON": "signal"})
        told = int(process.stdout.readline().split()[-1])
        process.send_signal(signal.SIGUSR1)
        device = self.load(self.wait_for_file()[0])["cca"]["devices"][0]
        process.kill()
        process.communicate()
        self.assertGreaterEqual(device["cached"], GIB)
        self.assertEqual(told, device["free"] + device["cached"])


class D18(Case):
    """Forks and ranks: one file for each process that uses CUDA, none for children that do not."""

    RANKS = 8
    TRIES = 1000 if harness.FULL else 200

    def test_eight_processes_with_three_children_each(self):
        processes = [self.start("life", "family", 3, env={"RANK": str(rank)})
                     for rank in range(self.RANKS)]
        for process in processes:
            stdout, stderr = process.communicate(timeout=120)
            self.assertEqual((process.returncode, stdout), (0, "3 children ended well\n"), stderr)
        self.assertEqual(len(self.files("*")), self.RANKS, self.files("*"))
        seen = {}
        for path in self.files():
            own = self.load(path)["cca"]
            seen[own["pid"]] = own["rank"]
            self.assertTrue(os.path.basename(path).startswith(
                "cca-%s-%d-" % (own["host"], own["pid"])), path)
        self.assertEqual(set(seen), {process.pid for process in processes})
        self.assertEqual(sorted(seen.values()), list(range(self.RANKS)))

    def test_one_name_for_all_of_them(self):
        """Nothing in the name tells them apart: none is written over."""
        processes = [self.start("life", "family", 1, env={
            "RANK": str(rank), "CCA_DUMP_FILE": "same"}) for rank in range(self.RANKS)]
        for process in processes:
            process.communicate(timeout=120)
        files = self.files("*")
        self.assertEqual(len(files), self.RANKS, files)
        self.assertEqual(sorted(self.load(path)["cca"]["rank"] for path in files),
                         list(range(self.RANKS)))

    def test_the_rank_in_the_name(self):
        self.run_program("life", "family", 0, env={"RANK": "5", "CCA_DUMP_FILE": "of-%r"})
        self.assertEqual([os.path.basename(path) for path in self.files("*")], ["of-5.pickle"])

    def test_forks_while_other_threads_are_inside(self):
        bare, _ = self.compare("forkbusy", harness.program("libsmall.so"), self.TRIES, modes=CACHING,
                               env=SETTINGS, timeout=600)
        self.assertEqual(bare.stdout, "%d children ended well\n" % self.TRIES)


class D20(Case):
    """However a program reaches CUDA, it is served; where it cannot be, it is told why."""

    def served(self, name, *args, at_most=14, env=None):
        self.compare(name, *args, env={**SETTINGS, **(env or {})})
        for mode, settings in CACHING.items():
            with self.subTest(program=name, args=args, mode=mode):
                run, calls = self.calls(name, *args, env={**SETTINGS, **settings, **(env or {})})
                self.assertNotIn("caching ends", run.stderr)
                self.assertLessEqual(calls["cuMemAlloc_v2"], at_most)

    def test_a_static_runtime(self):
        self.served("basic_static")

    def test_b_runtime_opened_locally(self):
        self.served("doors", "local")
        self.served("late", "local", harness.program("libworker.so"))

    def test_c_entry_points(self):
        for way in ("entry", "resolver", "old", "driver"):
            self.served("doors", way)

    def test_d_two_runtimes_each_frees_what_the_other_gave(self):
        self.served("doors", "several", at_most=40)
        self.served("tworuntimes")

    def test_e_look_ups_inside_look_ups(self):
        """Another hook of dlsym behind ours asks for the same names again, and so does what stands
        in front of the driver."""
        behind = harness.PRELOAD + ":" + harness.program("libdlsymfront.so")
        self.compare("basic", env={**SETTINGS, "LD_PRELOAD": behind})
        self.compare("doors", "driver", env={**SETTINGS, "LD_PRELOAD": behind})

    def test_a_bypassed_door_is_told_on_stderr_and_in_the_snapshot(self):
        front = harness.program("libdlsymfront.so") + ":" + harness.PRELOAD
        bare = self.run_program("basic", preload=False)
        run = self.run_program("basic", env={"LD_PRELOAD": front})
        self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)
        told = [line for line in run.stderr.splitlines() if "caching ends" in line]
        self.assertEqual(len(told), 1, run.stderr)
        messages = self.only_snapshot()["cca"]["messages"]
        self.assertIn(told[0], ["cca: " + message for message in messages])
        self.assertIn("dlsym", told[0])

    def test_a_process_in_which_nothing_was_hooked(self):
        run = self.run_program("late", "deepbind", harness.program("libworker.so"))
        told = [line for line in run.stderr.splitlines() if "RTLD_DEEPBIND" in line]
        self.assertEqual(len(told), 1, run.stderr)


if __name__ == "__main__":
    harness.main()
