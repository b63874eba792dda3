#!/usr/bin/env python3
"""Checks which room includes which: the table below, against every #include of the sources.

usage: scripts/rooms.py [--graph] [ROOT]
  --graph  prints the edges that there are, room by room, instead of judging them
A room is a folder; a file belongs to the deepest room that holds it. A line of the table names what its
files may include besides their own room: rooms, or single headers. The exit status is 1 where an include
is not allowed, where a folder is no room, or where a room has no README.md.
"""

import argparse
import re
import sys
from pathlib import Path

SEES = {
    "codegen/base": [],
    "codegen/target": ["codegen/base"],
    "codegen/graph": ["codegen/base"],
    "codegen/plan": ["codegen/base", "codegen/target", "codegen/graph"],
    "codegen/choose/tuned": [],
    "codegen/choose": ["codegen/base", "codegen/target", "codegen/graph", "codegen/plan", "codegen/choose/tuned"],
    "codegen/program": ["codegen/base", "codegen/target"],
    "codegen/passes": ["codegen/base", "codegen/program"],
    "codegen/emit/cuda": ["codegen/base", "codegen/target", "codegen/program"],
    "codegen/emit/llvm": ["codegen/base", "codegen/target", "codegen/program"],
    "codegen/interp": ["codegen/base", "codegen/target", "codegen/program"],
}
# Lowerings guess nothing. The kit is everybody's, and the strategies' rooms know nothing of each other.
LOWERED = ["codegen/base", "codegen/target", "codegen/graph", "codegen/plan", "codegen/program"]
SEES["codegen/lower/tile"] = LOWERED
for family in ("fold", "scan", "published"):
    SEES[f"codegen/lower/{family}"] = [*LOWERED, "codegen/lower/tile"]
# But offsets are checked and read in one way, whoever folds their segments.
SEES["codegen/lower/published"] += ["codegen/lower/fold/path_bounds.hpp", "codegen/lower/fold/segment_bounds.hpp"]
SEES["codegen/lower"] = [*LOWERED, *(room for room in SEES if room.startswith("codegen/lower/"))]
SEES["codegen"] = [room for room in SEES if room.startswith("codegen/")]

LANGUAGE = ["codegen/base", "codegen/graph"]
SEES["dsl"] = LANGUAGE
SEES["runtime/host"] = ["codegen/base"]
SEES["runtime/cache"] = []
SEES["runtime/device"] = ["codegen/base", "runtime/host"]
SEES["runtime/jit"] = ["codegen/base", "codegen/target", "runtime/host", "runtime/cache"]
SEES["runtime/launch"] = ["codegen/base", "codegen/target", "codegen/graph", "codegen/plan", "codegen/program",
                          "codegen/compile.hpp", "runtime/host", "runtime/cache", "runtime/device", "runtime/jit"]
SEES["runtime/tuning"] = [*SEES["runtime/launch"], "codegen/choose/choose.hpp", "codegen/estimate.hpp",
                          "runtime/launch"]
SEES["runtime/cpu_plugin"] = ["runtime/jit/cpu_plugin_abi.h"]
SEES["runtime"] = [*SEES["runtime/tuning"], "codegen/legalize.hpp", "codegen/explain.hpp", "dsl/over.hpp",
                   "runtime/tuning"]

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]chainfold/([^">]+)[">]', re.MULTILINE)


def room_of(path):
    """The deepest room that holds the file; None for one that is in none."""
    folder = path.rpartition("/")[0]
    while folder and folder not in SEES:
        folder = folder.rpartition("/")[0]
    return folder or None


def sources(root):
    for top in ("dsl", "codegen", "runtime"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".h"):
                yield path.relative_to(root).as_posix()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="store_true", help="print the edges that there are")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    wrong = [f"{room}: has no README.md" for room in SEES if not (options.root / room / "README.md").is_file()]
    edges, files = {}, 0
    for name in sources(options.root):
        files += 1
        room = room_of(name)
        if name.rpartition("/")[0] != room:
            wrong.append(f"{name}: its folder is no room of the table")
        for included in INCLUDE.findall((options.root / name).read_text()):
            other = room_of(included)
            if other == room:
                continue
            edges.setdefault(room, set()).add(other or included)
            if other not in SEES[room] and included not in SEES[room]:
                wrong.append(f"{name}: {room} may not include {included}")
    if options.graph:
        for room in sorted(edges):
            print(f"{room}: {' '.join(sorted(edges[room]))}")
        return 0
    for line in wrong:
        print(line)
    print(f"rooms: {files} files in {len(SEES)} rooms, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
