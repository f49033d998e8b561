#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/gpu-check: it says when there is no GPU, and its dry run measures all it should."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "scripts", "gpu-check")
BUILD = os.path.abspath(os.environ["CCA_BUILD_DIR"])
IS_FULL = os.environ.get("CCA_TEST_LEVEL") == "full"
SECTIONS = ["simulated", "device", "note", "context_event", "coverage", "waits", "lookup",
            "capture", "errors", "memory", "streams", "overhead", "doors", "libraries", "rules"]


def check(*arguments, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("CCA_", "SIMCUDA", "LD_"))}
    environment.update(variables)
    return subprocess.run([sys.executable, SCRIPT, "--build", BUILD, *arguments], env=environment,
                          capture_output=True, text=True, timeout=900, check=False)


def leaves(tree):
    for value in tree.values():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield value


class GpuCheck(unittest.TestCase):
    maxDiff = 4000

    def dry_run(self, *arguments, **variables):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            done = check("--simulated", "--quick", "--json", path, *arguments, **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, encoding="utf-8") as report:
                return json.load(report), done.stderr

    def test_the_simulated_driver_is_no_gpu(self):
        done = check(LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"))
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("no GPU", done.stderr)

    def test_a_dry_run_measures_everything_and_says_what_it_is(self):
        report, told = self.dry_run(*["--nvcc"] if IS_FULL and "nvcc" in sys.argv else [])
        self.assertEqual(list(report), SECTIONS)
        self.assertIs(report["simulated"], True)
        self.assertIn("dry run", report["note"])
        self.assertEqual(report["libraries"], "not measured")
        self.assertFalse([text for text in leaves(report)
                          if isinstance(text, str) and text.startswith("status")])
        for streams in ("1", "16", "128"):
            times = report["context_event"]["streams_" + streams]["busy"]
            self.assertGreater(times["context_ns"], 0)
        self.assertEqual(set(report["coverage"].values()), {True})
        self.assertGreater(report["lookup"]["equal"], 400)
        self.assertEqual(report["waits"]["cudaFree"]["non_blocking"]["waits"], True)
        self.assertEqual(report["capture"]["relaxed"]["cudaMalloc"],
                         {"result": 0, "end_capture": 0})
        self.assertEqual(report["capture"]["global"]["cudaMalloc"]["result"], 900)
        self.assertTrue(report["doors"]["probe"]["is_served"])
        for times in report["overhead"].values():
            self.assertEqual(len(times), 6)
            self.assertTrue(all(time > 0 for time in times.values()), times)
        self.assertEqual(report["rules"]["differs"], [])
        self.assertGreater(report["rules"]["agrees"], 10)
        self.assertIn("agrees       stream.", told)

    def test_what_the_driver_lacks_has_no_number(self):
        report, _ = self.dry_run(SIMCUDA_DRIVER="12.4", SIMCUDART_COMPAT="1")
        self.assertEqual(report["context_event"]["streams_1"]["idle"], {"error": 801})
        self.assertEqual(set(report["coverage"].values()), {"error 801"})

    def test_a_probe_that_stops_says_why(self):
        report, _ = self.dry_run(SIMCUDA_FAIL="cuStreamCreateWithPriority:every=1:code=2")
        self.assertIn("status 1", report["context_event"]["stopped"])
        self.assertIn("error 2", report["context_event"]["stopped"])
        self.assertNotIn("streams_1", report["context_event"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
