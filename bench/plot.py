#!/usr/bin/env python3
"""Draws a file of results, or tells it in Markdown.

usage: plot.py FILE.json [--out FOLDER] [--only REGEX]
       plot.py FILE.json --table [FILE.md] | --strategies [FILE.md]
       plot.py FILE.json --papers FILE.md

For each operation and type of a `chainfold_bench --suite reduce` or `scan` file, FOLDER (default: beside the
file) gets NAME.svg and NAME.png: gigabytes of input and output a second by implementation, the
segment size on a logarithmic axis, and what the memory allows as a line; of a file of the suite
`papers`, a picture for each experiment: throughput, R and block sizes, the share of tensor cores,
errors. With --table, ours stands beside the peers instead (on stdout, or in FILE.md), what we lose
is bold, and what containing NaN and infinities costs is told at the end. With --strategies, each
strategy of the plans: where it ran, and how close it came to the fastest. With --papers, the results
of the experiments are put into a page, between its two marks.
Void and missing rows are left out.
"""

import argparse
import os
import sys

from plotting import papers, strategies
from plotting.pictures import draw, pictures
from plotting.rows import grouped, is_measured
from plotting.table import table
from results_json import load, run


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--out", help="folder for the pictures (default: where the file is)")
    parser.add_argument("--only", default="", help="regular expression: only groups such as 'sum/f16'")
    parser.add_argument("--table", nargs="?", const="-", help="write the table in Markdown instead of pictures")
    parser.add_argument("--strategies", nargs="?", const="-", help="write what each strategy was good for, in Markdown")
    parser.add_argument("--papers", metavar="FILE.md", help="replace what stands between the marks of this page")
    return parser.parse_args(arguments)


def write(path, text):
    if path == "-":
        print(text, end="")
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments=None):
    return run(tell, arguments)


def tell(arguments):
    options = parse(arguments)
    content = load(options.file)
    head, everything = content["head"], content["rows"]
    rows = [row for row in everything if is_measured(row)]
    folder = options.out or os.path.dirname(os.path.abspath(options.file))
    if head["suite"] == "papers":
        if options.papers:
            with open(options.papers, encoding="utf-8") as file:
                page = file.read()
            write(options.papers, papers.fill(page, head, rows, options.papers))
            return 0
        os.makedirs(folder, exist_ok=True)
        for picture in papers.draw(head, rows, folder):
            print(picture)
        return 0
    if options.papers:
        print(f"{options.file} is of the suite {head['suite']}; --papers takes one of the suite papers", file=sys.stderr)
        return 1
    if options.strategies:
        write(options.strategies, strategies.report(head, everything))
        return 0
    groups = grouped(rows, options.only)
    if not groups:
        print("no measured row matches", file=sys.stderr)
        return 1
    if options.table:
        write(options.table, table(head, groups))
        return 0
    os.makedirs(folder, exist_ok=True)
    for name, group in pictures(groups).items():
        print(draw(head, name, group, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
