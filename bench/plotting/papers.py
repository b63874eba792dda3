"""The experiments of the papers: pictures, and tables for docs/papers.md."""

import re

from results_json import Unusable

from .pictures import pyplot, save
from .rows import heading, is_ours, markdown_table, position, size_text, strategy

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
NOT_YET = "not measured yet"
LANES = "lanes alone"
OURS = "ours"
OURS_MMA = "ours, tensor cores"
OWN_SCANS = ("scan_tile", "scan_run", "scan_block", "look_back", "propagate")


def line_of(row):
    """Who computed it: a published strategy, lanes alone, our own plan, or the peer."""
    if not is_ours(row):
        return row["impl"]
    if row["plan_kind"] == "chosen":
        return OURS
    return {"parts": LANES, **dict.fromkeys(OWN_SCANS, OURS_MMA)}.get(strategy(row), strategy(row))


def decision(row, name):
    found = re.search(rf"\b{name}=(\d+)", row["plan"])
    return int(found.group(1)) if found else None


def threads(row):
    return 32 * decision(row, "warps")


def billions(row):
    """Elements a second."""
    return row["n"] / row["ms"] * 1e-6


def of(rows, experiment):
    """{n: rows} of an experiment, in the order of n."""
    chosen = {}
    for row in rows:
        if row.get("experiment") == experiment:
            chosen.setdefault(row["n"], []).append(row)
    return dict(sorted(chosen.items()))


def curves(rows, x, y):
    """{line: sorted points}, without rows that have no y."""
    lines = {}
    for row in rows:
        if y(row) is not None:
            lines.setdefault(line_of(row), []).append((x(row), y(row)))
    return {line: sorted(points) for line, points in sorted(lines.items(), key=lambda item: (item[0] != OURS, item[0]))}


def picture(lines, folder, name, xlabel, ylabel, title, logy=False):
    figure, axes = pyplot().subplots(figsize=(9, 5))
    for line, points in lines.items():
        style = {"linewidth": 2.2 if line == OURS else 1.2, "markersize": 3 if len(points) > 1 else 7}
        if line.startswith("cub"):
            style |= {"color": "black", "linestyle": "--"}
        axes.plot(*zip(*points), marker="o", label=line, **style)
    axes.set_xscale("log" if xlabel != PERCENT else "linear", **({"base": 2} if xlabel != PERCENT else {}))
    if logy:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.05 * max(y for points in lines.values() for _, y in points))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return save(figure, folder, "papers-" + name)


PERCENT = "per cent of the elements on tensor cores"
ALL_IN_ONE = "elements a segment (rightmost: all in one)"
RATE = "billions of elements a second"


def draw(head, rows, folder):
    """A picture for each experiment that has rows; yields their paths."""
    device = head["device"]
    for experiment in ("recurrence", "single_pass"):
        for n, group in of(rows, experiment).items():
            lines = {}
            for row in group:
                lines.setdefault(f"R = {decision(row, 'chain')}", []).append((threads(row), row["ms"] * 1e3))
            lines = {line: sorted(points) for line, points in sorted(lines.items())}
            title = f"{experiment}, n = {size_text(n)}, {device}"
            yield picture(lines, folder, f"{experiment}-{size_text(n)}", "threads a block", "microseconds", title)
    for n, group in of(rows, "split").items():
        share = [r for r in group if line_of(r) == "split"]
        lines = curves(share, lambda r: decision(r, "fraction"), lambda r: r["ms"] * 1e3)
        for row in group:
            if line_of(row) == LANES:
                lines[LANES] = [(0, row["ms"] * 1e3), (100, row["ms"] * 1e3)]
        if lines:
            yield picture(lines, folder, f"split-{size_text(n)}", PERCENT, "microseconds", f"split, n = {size_text(n)}, {device}")
    yield from draw_variants(device, rows, folder)
    scans = [row for group in of(rows, "scan_variants").values() for row in group]
    yield from draw_sizes(scans, folder, "scan_variants", f"scans of everything, {device}")
    yield from draw_errors(scans, folder, "scan-error", device)
    lines = curves([r for group in of(rows, "scan_segments").values() for r in group], position, billions)
    if lines:
        yield picture(lines, folder, "scan_segments", ALL_IN_ONE, RATE, f"scans of segments, {device}")
    lines = curves([r for group in of(rows, "segments").values() for r in group], position, billions)
    if lines:
        yield picture(lines, folder, "segments", ALL_IN_ONE, RATE, f"sums of segments, {device}")


def draw_sizes(rows, folder, name, title):
    normal = [row for row in rows if row["data"] == "normal"]
    if normal:
        yield picture(curves(normal, lambda r: r["n"], billions), folder, name, "elements", RATE, title)


def draw_errors(rows, folder, name, device):
    for data in ("normal", "uniform"):
        # A logarithmic axis has no zero.
        lines = curves([r for r in rows if r["data"] == data], lambda r: r["n"], lambda r: r.get("err_percent") or None)
        if lines:
            yield picture(lines, folder, f"{name}-{data}", "elements", "error in per cent", f"{data} data, {device}", logy=True)


def draw_variants(device, rows, folder):
    variants = [row for group in of(rows, "variants").values() for row in group]
    title = f"sums of everything, {device}"
    yield from draw_sizes(variants, folder, "variants", title)
    normal = [row for row in variants if row["data"] == "normal"]
    if normal:
        lanes = {row["n"]: row["ms"] for row in normal if line_of(row) == LANES}
        known = [row for row in normal if row["n"] in lanes]
        if known:
            lines = curves(known, lambda r: r["n"], lambda r: lanes[r["n"]] / r["ms"])
            yield picture(lines, folder, "speedup", "elements", "times as fast as lanes alone", title)
    yield from draw_errors(variants, folder, "error", device)


def fill(page, head, rows, name="the page"):
    """The page with the tables of these rows between its marks."""
    if BEGIN not in page or END not in page:
        raise Unusable(f"{name} has no place for results: put a line '{BEGIN}' and a line '{END}' there")
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:begin] + "\n" + tables(head, rows) + page[end:]


def tables(head, rows):
    text = [heading(head), ""]
    for experiment in ("recurrence", "single_pass"):
        text += chain_tables(experiment, of(rows, experiment))
    text += split_table(of(rows, "split"))
    for prefix, everything, segments in (("", "Variants", "Segments"), ("scan_", "Scans of everything", "Scans of segments")):
        variants = of(rows, prefix + "variants")
        text += by_line(f"{everything}: billions of elements a second, normal data", variants, "n", billions, "normal")
        for data in ("normal", "uniform"):
            text += by_line(f"{everything}: error in per cent, {data} data", variants, "n", error_text, data)
        sizes = by_position(rows, prefix + "segments")
        text += by_line(f"{segments}: billions of elements a second", sizes, "S", billions, "signed")
    return "\n".join(text) + "\n"


def by_position(rows, experiment):
    """{segment size: rows}; everything in one is as long as it is."""
    sizes = {}
    for row in (row for group in of(rows, experiment).values() for row in group):
        sizes.setdefault(position(row), []).append(row)
    return dict(sorted(sizes.items()))


def section(title, columns, lines):
    return [f"### {title}", ""] + (markdown_table(columns, lines) if lines else [NOT_YET]) + [""]


def error_text(row):
    if row.get("overflow"):
        return "overflow"
    return "-" if row.get("err_percent") is None else f"{row['err_percent']:.2g}"


def chain_tables(experiment, groups):
    """Microseconds by block size and length of chains; the least is bold."""
    if not groups:
        return section(f"{experiment}: microseconds", [], [])
    text = []
    for n, rows in groups.items():
        chains = sorted({decision(row, "chain") for row in rows})
        best = min(row["ms"] for row in rows)
        cells = {}
        for row in rows:
            value = f"{row['ms'] * 1e3:.2f}"
            cells[threads(row), decision(row, "chain")] = f"**{value}**" if row["ms"] == best else value
        blocks = sorted({block for block, _ in cells})
        lines = [[str(block)] + [cells.get((block, chain), "-") for chain in chains] for block in blocks]
        text += section(f"{experiment}: microseconds, n = {size_text(n)}", ["threads a block"] + [f"R = {c}" for c in chains], lines)
    return text


def split_table(groups):
    shares = sorted({decision(r, "fraction") for rows in groups.values() for r in rows if line_of(r) == "split"})
    lines = []
    for n, rows in groups.items():
        times = {decision(r, "fraction"): f"{r['ms'] * 1e3:.2f}" for r in rows}  # lanes alone have no fraction
        lines.append([size_text(n)] + [times.get(share, "-") for share in [None, *shares]])
    return section("split: microseconds by the share on tensor cores", ["n", "0 %"] + [f"{s} %" for s in shares], lines)


def by_line(title, groups, key, value, data):
    """A line for each size, a column for each implementation."""
    rows = [row for group in groups.values() for row in group if row["data"] == data]
    columns = list(dict.fromkeys(sorted((line_of(row) for row in rows), key=lambda line: (line != OURS, line))))
    lines = []
    for size, group in groups.items():
        cells = {line_of(row): value(row) for row in group if row["data"] == data}
        if cells:
            shown = [cells.get(column, "-") for column in columns]
            lines.append([size_text(size)] + [cell if isinstance(cell, str) else f"{cell:.1f}" for cell in shown])
    return section(title, [key] + columns, lines)
