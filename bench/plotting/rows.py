"""Rows of a file of results: which were measured, whose they are, what they are called."""

import re

FINITE = "chainfold-finite"
AXIS0 = "_axis0"
SCANS = {
    "inclusive_sum": "scan", "exclusive_sum": "scan_exclusive", "inclusive_max": "scan_max",
    "inclusive_sum_in_place": "scan_in_place",
    "sum_behind": "scan_behind",
    "sum_both_ways": "scan_both_ways",
}


def is_measured(row):
    return bool(row.get("ms") and row.get("gbps") and not row.get("void"))


def is_ours(row):
    return row["impl"] == "chainfold"


def is_peer(row):
    return not row["impl"].startswith("chainfold")


def is_axis0(row):
    return row["op"].endswith(AXIS0)


def strategy(row):
    return row["plan"].split(" ")[0]


def label(row):
    """One line of the plot: the peer, or our way of planning."""
    if not is_ours(row):
        return row["impl"]
    kind = row["plan_kind"]
    return f"ours, {strategy(row)}" if kind == "forced" else f"ours ({kind})"


def short_plan(row):
    words = row["plan"].split(" ")
    return f"{words[0]} {words[-1]}" if len(words) > 1 else words[0]


def size_text(n):
    if isinstance(n, int) and n >= 1 << 16 and n & (n - 1) == 0:
        return f"2^{n.bit_length() - 1}"
    return str(n)


def size(row):
    """What a row is listed by: the segment size, or the number of columns."""
    return row["n"] // row["segment"] if is_axis0(row) else row["segment"]


def position(row):
    """Where on the axis of sizes a row stands: whole inputs by their length."""
    return row["n"] if row["segment"] == "whole" else size(row)


def case_key(row):
    """What rows share that measure the same computation."""
    return (row["op"], row["dtype"], row["out_dtype"], row["n"], row["segment"], bool(row.get("cached")),
            row.get("offset", 0))


def case_name(row):
    cache = ("/cache" if row.get("cached") else "") + ("/off" if row.get("offset") else "")
    if is_axis0(row):
        return f"axis0/{row['dtype']}/{size(row)}{cache}"
    length = f"/{size_text(row['n'])}" if row["segment"] == "whole" else ""
    return f"{SCANS.get(row['op'], row['op'])}/{row['dtype']}/{row['segment']}{length}{cache}"


def by_case(rows):
    """{key: rows} in the order of the file."""
    cases = {}
    for row in rows:
        cases.setdefault(case_key(row), []).append(row)
    return cases


def grouped(rows, only):
    """{"sum/f16": rows, "sum/f16/cache": rows, "scan/f16": rows}, in the order of the file."""
    groups = {}
    for row in rows:
        name = f"{SCANS.get(row['op'], row['op'])}/{row['dtype']}" + ("/cache" if row.get("cached") else "")
        name += "/off" if row.get("offset") else ""
        if re.search(only, name):
            groups.setdefault(name, []).append(row)
    return groups


def heading(head):
    dirty = ", tree with changes" if head["clean"] is False else ""
    return (
        f"{head['device']}, driver {head['driver']}, CUDA {head['cuda']}, commit {head['commit'][:12]}{dirty}, {head['date']}. "
        f"Read {head['read_gbps']:.0f}, copy {head['copy_gbps']:.0f} GB/s."
    )


def markdown_table(columns, lines):
    """Lines of Markdown from lists of cells."""
    rule = "|" + "---|" * len(columns)
    return ["| " + " | ".join(columns) + " |", rule] + ["| " + " | ".join(cells) + " |" for cells in lines]
