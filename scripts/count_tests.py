#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up single test cases over several Meson test logs and prints the closing line.

usage: count_tests.py LIST BROKEN
LIST has a line "what<TAB>testlog.json" per run; BROKEN is the number of steps that failed otherwise.
A TAP program counts as its test points, a Python unittest program as its tests, anything else as one.
"""
import json
import re
import sys


def tap_counts(text):
    """(passed, failed, skipped) of a TAP output, or None."""
    points = re.findall(r"^\s*(ok|not ok)\b(.*)$", text, re.M)
    if not points:
        return None
    skipped = sum(1 for _, rest in points if re.search(r"#\s*skip", rest, re.I))
    failed = sum(1 for word, rest in points if word == "not ok" and not re.search(r"#\s*skip", rest, re.I))
    return len(points) - failed - skipped, failed, skipped


def unittest_counts(text):
    """(passed, failed, skipped) of Python's unittest, or None."""
    ran = re.search(r"^Ran (\d+) tests?", text, re.M)
    if not ran:
        return None
    def number(word):
        return sum(int(n) for n in re.findall(r"\b%s=(\d+)" % word, text))
    failed = number("failures") + number("errors")
    skipped = number("skipped")
    return int(ran.group(1)) - failed - skipped, failed, skipped


def counts_of(test):
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    result = test["result"]
    if result == "SKIP":
        return 0, 0, 1
    passed, failed, skipped = unittest_counts(text) or tap_counts(text) or (1, 0, 0)
    if result != "OK" and failed == 0:
        failed = 1  # a crash or a time-out
        passed = max(passed - 1, 0)
    return passed, failed, skipped


def main():
    total = [0, 0, 0]
    broken = int(sys.argv[2])
    for line in open(sys.argv[1]):
        what, path = line.rstrip("\n").split("\t")
        sums = [0, 0, 0]
        bad = []
        try:
            tests = [json.loads(entry) for entry in open(path)]
        except (OSError, ValueError) as error:
            print("%s: no test log: %s" % (what, error))
            broken += 1
            continue
        for test in tests:
            counts = counts_of(test)
            sums = [a + b for a, b in zip(sums, counts)]
            if counts[1]:
                bad.append(test["name"])
        print("%s: %d passed, %d failed, %d skipped" % ((what,) + tuple(sums)))
        for name in bad:
            print("  failed: %s" % name)
        total = [a + b for a, b in zip(total, sums)]
    if broken:
        print("steps that failed besides tests: %d" % broken)
    total[1] += broken
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
