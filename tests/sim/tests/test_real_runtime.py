# SPDX-License-Identifier: MIT
"""test_real_runtime.py SHARED STATIC TOOLKIT_LIBRARIES SIMULATOR ASKED PRELOAD: NVIDIA's own
runtime over the simulated driver, with and without the hooks.

It is not meant to start there. It looks up its functions, asks for the driver's version, makes it
start, asks for private tables, and hands the driver's refusal of these to the program: that is as
far as it comes. Tables would lead it to a check of the driver, which nobody imitates."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

SHARED, STATIC, TOOLKIT, SIMULATOR, ASKED, PRELOAD = map(os.path.abspath, sys.argv[1:7])
NOT_FOUND, INVALID_VALUE, INSUFFICIENT_DRIVER = 500, 1, 35

#: What the headers say of some names that have several forms.
FORMS = {
    ("cuGetProcAddress", 11030, 0): "cuGetProcAddress",
    ("cuGetProcAddress", 12000, 0): "cuGetProcAddress_v2",
    ("cuMemAlloc", 3020, 0): "cuMemAlloc_v2",
    ("cuMemFree", 3020, 0): "cuMemFree_v2",
    ("cuMemAllocAsync", 11020, 0): "cuMemAllocAsync",
    ("cuMemAllocAsync", 11020, 2): "cuMemAllocAsync_ptsz",
    ("cuMemcpy", 4000, 0): "cuMemcpy",
    ("cuMemcpy", 7000, 2): "cuMemcpy_ptds",
    ("cuMemPrefetchAsync", 8000, 0): "cuMemPrefetchAsync",
    ("cuMemPrefetchAsync", 12020, 2): "cuMemPrefetchAsync_v2_ptsz",
    ("cuStreamBeginCapture", 10000, 0): "cuStreamBeginCapture",
    ("cuStreamBeginCapture", 10010, 2): "cuStreamBeginCapture_v2_ptsz",
    ("cuIpcOpenMemHandle", 4010, 0): "cuIpcOpenMemHandle",
    ("cuIpcOpenMemHandle", 11000, 0): "cuIpcOpenMemHandle_v2",
    ("cuDevicePrimaryCtxReset", 7000, 0): "cuDevicePrimaryCtxReset",
    ("cuStreamSynchronize", 7000, 2): "cuStreamSynchronize_ptsz",
    ("cuEventRecord", 2000, 0): "cuEventRecord",
}
#: Interfaces of other libraries: a driver without them.
ELSEWHERE = re.compile("GL|EGL|VDPAU|Egl")
START = {"cuDriverGetVersion", "cuInit", "cuGetExportTable"}
VARIANTS = [("shared", SHARED, False), ("shared, hooks", SHARED, True), ("static", STATIC, False),
            ("static, hooks", STATIC, True)]


def asked():
    with open(ASKED, encoding="utf-8") as lines:
        return re.findall(r"^ASK\((\w+), (\d+), (\d+), \w+\)$", lines.read(), re.MULTILINE)


class RealRuntime(unittest.TestCase):
    def run_program(self, program, has_hooks, **variables):
        """(codes printed, look-ups, other calls), after a clean end."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            env = {k: v for k, v in os.environ.items()
                   if not k.startswith(("CCA_", "SIMCUDA", "LD_"))}
            env.update(variables, LD_LIBRARY_PATH=TOOLKIT + ":" + SIMULATOR, SIMCUDA_TRACE=trace)
            if has_hooks:
                env["LD_PRELOAD"] = PRELOAD
            done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("violation", done.stderr)
            self.assertNotIn("LD_PRELOAD", done.stderr)
            with open(trace, encoding="utf-8") as lines:
                text = lines.read()
        looked_up = re.findall(r"^look-up (\w*) (\d+) (\d+): (\w+)$", text, re.MULTILINE)
        calls = re.findall(r"^(cu\w+) (\d+)$", text, re.MULTILINE)
        return [int(code) for code in done.stdout.split()], looked_up, calls

    def each(self, **variables):
        """One row a variant: its name, whether the hooks are loaded, and what run_program says."""
        return [(name, has_hooks, *self.run_program(program, has_hooks, **variables))
                for name, program, has_hooks in VARIANTS]

    def test_it_passes_on_the_refusal_of_private_tables(self):
        for name, _, codes, _, calls in self.each():
            self.assertEqual(codes, [NOT_FOUND] * 3, name)
            self.assertIn(("cuGetExportTable", str(NOT_FOUND)), calls, name)

    def test_the_code_is_the_drivers(self):
        for name, _, codes, _, _ in self.each(SIMCUDA_FAIL="cuGetExportTable:every=1:code=1"):
            self.assertEqual(codes, [INVALID_VALUE] * 3, name)

    def test_an_older_driver_is_insufficient(self):
        for name, _, codes, _, _ in self.each(SIMCUDA_DRIVER="12.8"):
            self.assertEqual(codes, [INSUFFICIENT_DRIVER] * 3, name)

    def test_it_asks_for_what_the_thin_runtime_asks_for(self):
        wanted = [("", "0", "0")] + asked()
        self.assertEqual(len(wanted), 440)
        for variant, has_hooks, _, looked_up, _ in self.each():
            names = [row[:3] for row in looked_up]
            if has_hooks:
                # They ask on their own account too.
                rest = iter(names)
                self.assertTrue(all(row in rest for row in wanted), variant)
            else:
                self.assertEqual(names, wanted, variant)

    def test_the_answers_are_the_versions_asked_for(self):
        for variant, _, _, looked_up, _ in self.each():
            answers = {(name, int(version), int(flags)): form
                       for name, version, flags, form in looked_up}
            self.assertEqual({row: answers.get(row) for row in FORMS}, FORMS, variant)
            for (name, _, flags), form in answers.items():
                if form == "none":
                    self.assertTrue(name == "" or ELSEWHERE.search(name), name)
                elif flags == 2:
                    self.assertRegex(form, "_pt[ds][sz]$")
                else:
                    self.assertNotRegex(form, "_pt[ds][sz]$")

    def test_nothing_but_the_start_is_called(self):
        for variant, has_hooks, _, _, calls in self.each():
            names = {name for name, _ in calls} - {"cuGetProcAddress_v2"}
            if not has_hooks:
                self.assertEqual(names, START, variant)
            self.assertFalse({name for name in names if re.search("Alloc|Free|Ctx", name)},
                             variant)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
