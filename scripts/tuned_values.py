#!/usr/bin/env python3
"""Checks that docs/tuned-values.md tells of every tuned value, and of none that is not there.

usage: scripts/tuned_values.py [ROOT]
The values are the fields of the structs in codegen/choose/tuned/; their names are compared. The exit status is 1 where one has no row
on the page, or where the page names one that no struct has.
"""

import argparse
import re
import sys
from pathlib import Path

STRUCT = re.compile(r"^struct (Tuned\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`(Tuned\w+::\w+)`")


def fields_of(body):
    """Names of the fields that a struct's body declares: several a declaration, with initial values in braces."""
    body = re.sub(r"//[^\n]*", "", body)
    while (without := re.sub(r"\{[^{}]*\}", "", body)) != body:
        body = without
    for declaration in body.split(";"):
        names = re.sub(r"^\s*(?:std::array<[^>]*>|[\w:]+)\s+", "", declaration)
        yield from (name.split("=")[0].strip() for name in names.split(",") if name.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    values = set()
    for header in sorted((root / "codegen/choose/tuned").glob("*.hpp")):
        for struct, body in STRUCT.findall(header.read_text()):
            values.update(f"{struct}::{field}" for field in fields_of(body))
    named = set(NAMED.findall((root / "docs/tuned-values.md").read_text()))
    for value in sorted(values - named):
        print(f"docs/tuned-values.md: no row for {value}")
    for value in sorted(named - values):
        print(f"docs/tuned-values.md: there is no {value} in codegen/choose/tuned")
    print(f"tuned values: {len(values)}, {len(values ^ named)} faults")
    return 1 if values != named or not values else 0


if __name__ == "__main__":
    sys.exit(main())
