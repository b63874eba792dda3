"""Throughput against the segment size as pictures."""

import os

from results_json import Unusable

from .rows import FINITE, is_axis0, label, position, size_text


def pictures(groups):
    """The groups as they are drawn: whole inputs of several lengths have a picture of their own."""
    result = {}
    for name, rows in groups.items():
        rows = [r for r in rows if r["impl"] != FINITE]
        if not rows:
            continue
        longest = max(r["n"] for r in rows)
        wholes = [r for r in rows if r["segment"] == "whole"]
        result[name] = [r for r in rows if r not in wholes or r["n"] == longest]
        if len({r["n"] for r in wholes}) > 2:
            result[name + "/whole"] = wholes
    return result


def pyplot():
    try:
        import matplotlib
    except ImportError as problem:
        raise Unusable(f"pictures need matplotlib ({problem}): python3 -m pip install matplotlib") from problem

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "chainfold"  # the same file for the same rows
    import matplotlib.pyplot as plt

    return plt


def save(figure, folder, name):
    """Both formats; returns the path of the SVG."""
    figure.tight_layout()
    base = os.path.join(folder, name.replace("/", "-"))
    figure.savefig(base + ".svg", metadata={"Date": None})
    figure.savefig(base + ".png", dpi=120)
    pyplot().close(figure)
    return base + ".svg"


def axis_label(name, rows):
    if is_axis0(rows[0]):
        return "columns"
    return "elements" if name.endswith("whole") else "elements a segment (rightmost: all in one)"


def draw(head, name, rows, folder):
    lines, ceiling = {}, {}
    for row in rows:
        lines.setdefault(label(row), {})[position(row)] = row["gbps"]
        ceiling[position(row)] = row["gbps"] / row["ratio"]
    figure, axes = pyplot().subplots(figsize=(9, 5))
    points = sorted(ceiling.items())
    axes.plot(*zip(*points), color="black", linewidth=1, linestyle="--", label="what memory allows")
    names = sorted(lines, key=lambda line: (not line.startswith("ours ("), not line.startswith("ours"), line))
    for line in names:
        ours = line.startswith("ours (")
        points = sorted(lines[line].items())
        axes.plot(*zip(*points), marker="o", markersize=4 if ours else 3, linewidth=2.2 if ours else 1.1, label=line)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(axis_label(name, rows))
    axes.set_ylabel("GB/s of input and output")
    axes.set_title(f"{name}, n = {size_text(max(r['n'] for r in rows))}, {head['device']}")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")
    return save(figure, folder, name)
