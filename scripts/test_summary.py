#!/usr/bin/env python3
"""Sums the results of a folder: ctest's JUnit files (*.xml) and single checks (*.check).

Prints why tests were skipped, which failed, and what these say; the last line reads "N passed, N failed, N skipped".
Exits with 1 if anything failed or nothing ran.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(case):
    """What GoogleTest printed below "file:line: Skipped" or a script after "SKIPPED: "."""
    output = case.findtext("system-out") or ""
    reason = re.search(r": Skipped\n(.*?)\n\[  SKIPPED \]", output, re.DOTALL)
    reason = reason or re.search(r"^SKIPPED: (.*)$", output, re.MULTILINE)
    if reason and reason.group(1).strip():
        return " ".join(reason.group(1).split())
    return case.find("skipped").get("message", "no reason given")


def cases(path):
    """The test cases of a JUnit file."""
    # Output of a failing test may hold characters that XML does not allow.
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "?", path.read_text(errors="replace"))
    return ElementTree.fromstring(text).iter("testcase")


def telling(case, most=12):
    """Of a failing test's output the lines that tell: from the first failure or report on, else its last ones."""
    lines = (case.findtext("system-out") or "").splitlines()
    strong = re.compile(r": Failure|^==\d+==|runtime error:|SUMMARY:|Assertion|terminate called")
    weak = re.compile(r"^FAILED|[Ee]rror[: ]")
    told = next((found for mark in (strong, weak)
                 if (found := [i for i, line in enumerate(lines) if mark.search(line)])), [])
    begin = told[0] if told else max(0, len(lines) - most)
    return [line[:200] for line in lines[begin : begin + most]]


def main():
    folder = pathlib.Path(sys.argv[1])
    passed, failed, reasons = 0, [], collections.defaultdict(list)
    for path in sorted(folder.glob("*.xml")):
        for case in cases(path):
            name = f"{path.stem}: {case.get('name')}"
            if case.find("skipped") is not None:
                reasons[skip_reason(case)].append(name)
            elif case.get("status") == "run":
                passed += 1
            else:
                failed.append((name, telling(case)))
    for path in sorted(folder.glob("*.check")):
        if path.read_text().strip() == "passed":
            passed += 1
        else:
            failed.append((path.stem, []))

    for reason, names in reasons.items():
        print(f"{len(names)} skipped: {reason} ({names[0]}{', ...' if len(names) > 1 else ''})")
    for name, lines in failed:
        print(f"FAILED {name}")
        for line in lines:
            print(f"    {line}")
    print(f"{passed} passed, {len(failed)} failed, {sum(map(len, reasons.values()))} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
