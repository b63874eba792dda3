#!/usr/bin/env python3
"""Times first results of two builds in turn.

usage: bench/compile_times.py BEFORE AFTER [--rounds N] [--out FILE] [-- ARGUMENTS]
  BEFORE, AFTER  build folders, with bin/chainfold_compile_times and lib/
  --rounds N     medians of so many runs of each (default 3)
  --out FILE     write the medians as JSON
  ARGUMENTS      of chainfold_compile_times, such as --target=gpu or --elements=20000000
Prints a row an expression, and how the medians of all compare.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def rows_of(build, arguments):
    """One run of a build's program: name to milliseconds, and the run's head."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "rows.json"
        program = pathlib.Path(build) / "bin" / "chainfold_compile_times"
        environment = dict(os.environ, LD_LIBRARY_PATH=str(pathlib.Path(build).resolve() / "lib"))
        done = subprocess.run(
            [program, "--repeats=1", f"--out={out}", *arguments],
            env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{program} failed: {done.stderr.strip()}")
        run = json.loads(out.read_text())
    rows = run.pop("rows")
    return {row["name"]: row["first_ms"] for row in rows}, run


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:split])
    arguments = sys.argv[split + 1:]
    times = {"before": {}, "after": {}}
    head = {}
    for turn in range(options.rounds):
        for which in ("before", "after"):
            found, head = rows_of(getattr(options, which), arguments)
            for name, milliseconds in found.items():
                times[which].setdefault(name, []).append(milliseconds)
        print(f"round {turn + 1} of {options.rounds} is done", file=sys.stderr)
    rows = []
    for name, before in times["before"].items():
        if name not in times["after"]:
            continue
        row = {"name": name, "before_ms": round(statistics.median(before), 1),
               "after_ms": round(statistics.median(times["after"][name]), 1)}
        rows.append(row)
        print(f"{name:34} {row['before_ms']:9.1f} {row['after_ms']:9.1f} {row['after_ms'] / row['before_ms']:6.2f}")
    if not rows:
        sys.exit("the two builds have no expression in common")
    summary = {}
    for which in ("before_ms", "after_ms"):
        values = sorted(row[which] for row in rows)
        summary[which] = {"median": round(statistics.median(values), 1),
                          "ninth_tenth": values[round(0.9 * (len(values) - 1))], "most": values[-1]}
        print(f"{which}: median {summary[which]['median']}, ninth tenth {summary[which]['ninth_tenth']}, "
              f"most {summary[which]['most']}")
    if options.out:
        text = json.dumps({**head, "rounds": options.rounds, "summary": summary, "rows": rows}, indent=1)
        pathlib.Path(options.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
