#!/usr/bin/env python3
"""Names the tests of a JUnit file of ctest that failed because the leak check's tracer crashed.

Prints a regular expression for ctest -R, or nothing. A test, or a shard of them, is named only if it
passed itself and no sanitizer found anything: every other failure stays one.
"""

import pathlib
import re
import sys

import test_summary

CRASH = re.compile(
    r"Tracer caught signal \d+.*LeakSanitizer has encountered a fatal error", re.DOTALL)
PASSED = re.compile(r"^\[  PASSED  \] \d+ test", re.MULTILINE)
OWN_FAILURE = re.compile(
    r"\[  FAILED  \]|: runtime error: |ERROR: (AddressSanitizer|LeakSanitizer: detected)")


def tracer_crashed(case):
    output = case.findtext("system-out") or ""
    return (case.get("status") == "fail" and CRASH.search(output) and PASSED.search(output)
            and not OWN_FAILURE.search(output))


def main():
    names = [case.get("name") for case in test_summary.cases(pathlib.Path(sys.argv[1]))
             if tracer_crashed(case)]
    if names:
        print("^(" + "|".join(re.sub(r"([^A-Za-z0-9_/])", r"\\\1", name) for name in names) + ")$")


if __name__ == "__main__":
    main()
