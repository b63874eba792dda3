#!/usr/bin/env python3
"""Draws a file of results: throughput against the segment size, and a table in Markdown.

usage: plot.py FILE.json [--out FOLDER] [--only REGEX] [--table [FILE.md]]

For each operation and type of a `chainfold_bench --suite reduce` file, FOLDER (default: beside the
file) gets NAME.svg and NAME.png: gigabytes of input and output a second by implementation, the
segment size on a logarithmic axis, and what the memory allows as a line. With --table, ours stands
beside the peers instead (on stdout, or in FILE.md), and what we lose is bold. Void and missing rows
are left out of both.
"""

import argparse
import json
import os
import re
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    rows = [r for r in content["rows"] if r.get("ms") and r.get("gbps") and not r.get("void")]
    return content["head"], rows


def is_ours(row):
    return row["impl"] == "chainfold"


def label(row):
    """One line of the plot: the peer, or our way of planning."""
    if not is_ours(row):
        return row["impl"]
    kind = row["plan_kind"]
    return f"ours, {row['plan'].split(' ')[0]}" if kind == "forced" else f"ours ({kind})"


def short_plan(row):
    words = row["plan"].split(" ")
    return f"{words[0]} {words[-1]}" if len(words) > 1 else words[0]


def size_text(n):
    if isinstance(n, int) and n >= 1 << 16 and n & (n - 1) == 0:
        return f"2^{n.bit_length() - 1}"
    return str(n)


def grouped(rows, only):
    """{"sum/f16": rows}, in the order of the file."""
    groups = {}
    for row in rows:
        name = f"{row['op']}/{row['dtype']}"
        if re.search(only, name):
            groups.setdefault(name, []).append(row)
    return groups


def pictures(groups):
    """The groups as they are drawn: whole inputs of several lengths have a picture of their own."""
    result = {}
    for name, rows in groups.items():
        longest = max(r["n"] for r in rows)
        wholes = [r for r in rows if r["segment"] == "whole"]
        result[name] = [r for r in rows if r not in wholes or r["n"] == longest]
        if len({r["n"] for r in wholes}) > 2:
            result[name + "/whole"] = wholes
    return result


def position(row):
    """Where on the axis of segment sizes a row stands: whole inputs by their length."""
    return row["n"] if row["segment"] == "whole" else row["segment"]


def draw(head, name, rows, folder):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "chainfold"  # the same file for the same rows
    import matplotlib.pyplot as plt

    lines, ceiling = {}, {}
    for row in rows:
        lines.setdefault(label(row), {})[position(row)] = row["gbps"]
        ceiling[position(row)] = row["gbps"] / row["ratio"]
    figure, axes = plt.subplots(figsize=(9, 5))
    points = sorted(ceiling.items())
    axes.plot(*zip(*points), color="black", linewidth=1, linestyle="--", label="what memory allows")
    names = sorted(lines, key=lambda line: (not line.startswith("ours ("), not line.startswith("ours"), line))
    for line in names:
        ours = line.startswith("ours (")
        points = sorted(lines[line].items())
        axes.plot(*zip(*points), marker="o", markersize=4 if ours else 3, linewidth=2.2 if ours else 1.1, label=line)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("elements" if name.endswith("whole") else "elements a segment (rightmost: all in one)")
    axes.set_ylabel("GB/s of input and output")
    axes.set_title(f"{name}, n = {size_text(max(r['n'] for r in rows))}, {head['device']}")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    base = os.path.join(folder, name.replace("/", "-"))
    figure.savefig(base + ".svg", metadata={"Date": None})
    figure.savefig(base + ".png", dpi=120)
    plt.close(figure)
    return base


def table(head, groups):
    """Ours (the fastest row that is not forced) beside the peers, a section for each group."""
    dirty = "" if head["clean"] else ", tree with changes"
    text = [
        f"{head['device']}, driver {head['driver']}, CUDA {head['cuda']}, commit {head['commit'][:12]}{dirty}, {head['date']}. "
        f"Read {head['read_gbps']:.0f}, copy {head['copy_gbps']:.0f} GB/s. GB/s of input and output; "
        "ratio: of what memory allows. **Bold**: a peer is faster.",
    ]
    for name, rows in groups.items():
        peers = sorted({r["impl"] for r in rows if not is_ours(r)})
        columns = ["S", "n", "ours", "ratio", "plan", "err (u)"] + peers + ["best peer / ours"]
        text += ["", f"### {name}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        cases = {}
        for row in rows:
            cases.setdefault((row["segment"], row["n"]), []).append(row)
        for (segment, n), case in sorted(cases.items(), key=lambda c: (c[0][0] == "whole", position(c[1][0]), c[0][1])):
            ours = [r for r in case if is_ours(r) and r["plan_kind"] != "forced"]
            if not ours:
                continue
            best = min(ours, key=lambda r: r["ms"])
            others = {r["impl"]: r for r in case if not is_ours(r)}
            error = "-" if best["max_err_u"] is None else f"{best['max_err_u']:.2g}"
            lost = any(r["ms"] < best["ms"] for r in others.values())
            cells = [str(segment), size_text(n), f"{best['gbps']:.0f}", f"{best['ratio']:.3f}", short_plan(best), error]
            cells += [f"{others[p]['gbps']:.0f}" if p in others else "-" for p in peers]
            cells.append(f"{best['ms'] / min(r['ms'] for r in others.values()):.2f}" if others else "-")
            if lost:
                cells = [f"**{c}**" if i in (0, 2, len(cells) - 1) else c for i, c in enumerate(cells)]
            text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--out", help="folder for the pictures (default: where the file is)")
    parser.add_argument("--only", default="", help="regular expression: only groups such as 'sum/f16'")
    parser.add_argument("--table", nargs="?", const="-", help="write the table in Markdown instead of pictures")
    options = parser.parse_args(arguments)
    head, rows = load(options.file)
    groups = grouped(rows, options.only)
    if not groups:
        print("no measured row matches", file=sys.stderr)
        return 1
    if options.table:
        text = table(head, groups)
        if options.table == "-":
            print(text, end="")
        else:
            with open(options.table, "w", encoding="utf-8") as file:
                file.write(text)
        return 0
    folder = options.out or os.path.dirname(os.path.abspath(options.file))
    os.makedirs(folder, exist_ok=True)
    for name, group in pictures(groups).items():
        print(draw(head, name, group, folder) + ".svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
