# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: runs the programs, with and without the library, on the simulated
CUDA, and reads what they leave. The build folder comes in CCA_BUILD_DIR."""
import glob
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.environ["CCA_BUILD_DIR"]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PRELOAD = os.path.join(BUILD, "preload", "libcca_preload.so")
SABOTAGED = os.path.join(BUILD, "tests", "e2e", "libcca_preload_no_fence.so")
SIM = os.path.join(BUILD, "tests", "sim")
TOOL = os.path.join(BUILD, "scripts", "cca")
CHECK_PICKLE = os.path.join(SOURCE, "scripts", "check_pickle.py")
LEVEL = os.environ.get("CCA_TEST_LEVEL", "normal")
FULL = LEVEL == "full"

#: Every way the library can be set up that must change nothing a program sees.
MODES = {
    "strict": {},
    "fence": {"CCA_FREE_SYNC": "fence"},
    "native": {"CCA_FREE_SYNC": "native"},
    "count": {"CCA_MODE": "count"},
    "off": {"CCA_DISABLE": "1"},
}


def program(name):
    return os.path.join(BUILD, "tests", "e2e", "programs", name)


def has_program(name):
    return os.access(program(name), os.X_OK)


class Run:
    def __init__(self, process, stdout, stderr):
        self.pid = process.pid
        self.status = process.returncode
        self.stdout = stdout
        self.stderr = stderr


class Case(unittest.TestCase):
    """A test with a folder of its own, in which programs run and snapshots appear."""

    maxDiff = 4000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cca-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def environment(self, extra, preload):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CCA_", "SIMCUDA_", "LD_"))}
        env["LD_LIBRARY_PATH"] = SIM
        if preload:
            env["LD_PRELOAD"] = PRELOAD
        env.update(extra)
        return env

    def start(self, name, *args, preload=True, env=None, stderr=subprocess.PIPE,
              stdin=subprocess.DEVNULL, **popen):
        command = [program(name) if os.sep not in name else name] + [str(a) for a in args]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment(env or {}, preload),
                                stdin=stdin, stdout=subprocess.PIPE,
                                stderr=stderr, text=True, **popen)

    def run_program(self, name, *args, preload=True, env=None, timeout=120):
        process = self.start(name, *args, preload=preload, env=env)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            self.fail("%s hangs\n%s%s" % (name, stdout, stderr))
        return Run(process, stdout, stderr)

    def compare(self, name, *args, env=None, modes=MODES, timeout=120):
        """Exit status and stdout are those of the unhooked run, in every mode."""
        bare = self.run_program(name, *args, preload=False, env=env, timeout=timeout)
        self.assertNotIn("WRONG", bare.stdout)
        self.assertNotIn("simcuda: violation", bare.stderr)
        runs = {}
        for mode, settings in modes.items():
            with self.subTest(program=name, args=args, mode=mode):
                run = self.run_program(name, *args, env={**(env or {}), **settings}, timeout=timeout)
                self.assertEqual(run.stdout, bare.stdout, run.stderr)
                self.assertEqual(run.status, bare.status, run.stderr)
                self.assertNotIn("simcuda: violation", run.stderr)
                runs[mode] = run
        return bare, runs

    def files(self, pattern="cca-*"):
        return sorted(glob.glob(os.path.join(self.folder, pattern)))

    def load(self, path):
        """The snapshot, read by Python's own pickle, after the strict checker has passed it."""
        check = subprocess.run([sys.executable, CHECK_PICKLE, path], capture_output=True, text=True)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        with open(path, "rb") as file:
            return pickle.load(file)

    def only_snapshot(self):
        files = self.files("cca-*.pickle")
        self.assertEqual(len(files), 1, files)
        return self.load(files[0])

    def wait_for_file(self, pattern="cca-*.pickle", seconds=10, count=1):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            files = self.files(pattern)
            if len(files) >= count:
                return files
            time.sleep(0.01)
        self.fail("no %s after %s s: %s" % (pattern, seconds, os.listdir(self.folder)))

    def calls(self, name, *args, preload=True, env=None):
        """How often each function of the simulated driver was called."""
        log = os.path.join(self.folder, "calls.%d" % time.monotonic_ns())
        run = self.run_program(name, *args, preload=preload, env={**(env or {}), "SIMCUDA_LOG": log})
        counts = {}
        with open(log) as file:
            for line in file:
                function, number = line.split()
                counts[function] = int(number)
        return run, counts


def live_blocks(snapshot):
    return [block for segment in snapshot["segments"] for block in segment["blocks"]
            if block["state"] == "active_allocated"]


def main():
    unittest.main(verbosity=1)
