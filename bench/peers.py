#!/usr/bin/env python3
"""Adds the peers that live in Python to a file of results.

usage: peers.py FILE.json [--only REGEX] [--impl REGEX] [--seconds N] [--budget N] [--mode MODE]

Reads the cases that `chainfold_bench --suite reduce` (or scan, or ragged) `--out FILE.json` measured and
measures each of them again by torch.sum, torch.cumsum and their likes, torch.compile (Inductor, on a GPU through Triton),
cuBLAS (the data, as a matrix, times ones) and, on the CPU, numpy. Ragged sums are torch's segment_reduce and index_add, and
numpy's add.reduceat. Every result is held against sums in f64 on a
sample of segments (of scans: of elements) before it is timed. A row that the file has is not measured again; the file is
written after every case. The ceiling of a row is the one that the file tells for the same case.
"""

import argparse
import re
import sys
import time

from python_peers.case import SIZES, cases_of
from python_peers.measure import backends_for, measure_case, ragged_backends, show
from python_peers.ragged import cases_of as ragged_cases
from python_peers.results import Rows, save
from results_json import load, run


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="what chainfold_bench --suite reduce, scan or ragged wrote; rows are added to it")
    parser.add_argument("--only", default="", help="regular expression: only cases such as 'sum/f16/64'")
    parser.add_argument("--impl", default="", help="regular expression: only peers such as 'torch.sum', 'cuBLAS'")
    parser.add_argument("--seconds", type=float, default=0.02, help="time spent on the repeats of a row")
    parser.add_argument("--budget", type=float, default=0, help="stop after so many seconds; the same call goes on")
    parser.add_argument("--mode", default="default", help="of torch.compile, such as max-autotune-no-cudagraphs")
    return parser.parse_args(arguments)


def main(arguments=None):
    return run(add_peers, arguments)


def add_peers(arguments):
    options = parse(arguments)
    began = time.monotonic()
    content = load(options.file)
    suite = content["head"]["suite"]
    if suite not in ("reduce", "scan", "ragged"):
        print(f"{options.file} is of the suite {suite}; only reduce, scan and ragged have peers in Python", file=sys.stderr)
        return 1
    rows = Rows(content["rows"])
    ragged = suite == "ragged"
    everything = (ragged_cases if ragged else cases_of)(content["rows"])
    cases = [case for case in everything if re.search(options.only, case.name)]
    if not cases:
        print(f"no case of {options.file} matches --only '{options.only}'", file=sys.stderr)
        return 1
    elements_bytes = max(case.n * SIZES[case.dtype] for case in everything)
    backends = (ragged_backends if ragged else backends_for)(content["head"]["target"], elements_bytes, options.mode)

    def wanted(case, impl):
        return re.search(options.impl, impl) and not rows.done(case, impl)

    todo = [c for c in cases if any(wanted(c, name) for b in backends for name in b.names(c))]
    for k, case in enumerate(todo):
        spent = time.monotonic() - began
        if options.budget and spent > options.budget:
            print(f"{len(todo) - k} cases are left: time is up; run the same again")
            break
        left = f", about {spent / k * (len(todo) - k):.0f} s left" if k else ""
        print(f"[{k + 1}/{len(todo)}] {case.name}, n = {case.n}{left}", flush=True)
        for row in measure_case(suite, case, backends, wanted, options.seconds, 0.01):
            rows.put(row)
            show(case, row)
        save(options.file, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
