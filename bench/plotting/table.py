"""Ours beside the peers, and what containing NaN and infinities costs, in Markdown."""

from .rows import (
    FINITE, by_case, case_name, heading, is_axis0, is_ours, is_peer, markdown_table, position, short_plan, size, size_text,
)

CONTAINMENT_LIMIT = 2  # percent


def table(head, groups):
    """Ours (the fastest row that is not forced) beside the peers, a section for each group."""
    text = [heading(head) + " GB/s of input and output; ratio: of what memory allows. **Bold**: a peer is faster."]
    for name, rows in groups.items():
        text += section(name, rows)
    text += containment([row for rows in groups.values() for row in rows])
    return "\n".join(text) + "\n"


def section(name, rows):
    peers = sorted({r["impl"] for r in rows if is_peer(r)})
    columns = ["C" if is_axis0(rows[0]) else "S", "n", "ours", "ratio", "plan", "err (u)"] + peers + ["best peer / ours"]
    lines = []
    cases = by_case(rows).values()
    for case in sorted(cases, key=lambda c: (c[0]["segment"] == "whole", position(c[0]), c[0]["n"])):
        ours = [r for r in case if is_ours(r) and r["plan_kind"] != "forced"]
        if not ours:
            continue
        best = min(ours, key=lambda r: r["ms"])
        others = {r["impl"]: r for r in case if is_peer(r)}
        error = "-" if best["max_err_u"] is None else f"{best['max_err_u']:.2g}"
        lost = any(r["ms"] < best["ms"] for r in others.values())
        cells = [str(size(best)), size_text(best["n"]), f"{best['gbps']:.0f}", f"{best['ratio']:.3f}", short_plan(best), error]
        cells += [f"{others[p]['gbps']:.0f}" if p in others else "-" for p in peers]
        cells.append(f"{best['ms'] / min(r['ms'] for r in others.values()):.2f}" if others else "-")
        if lost:
            cells = [f"**{c}**" if i in (0, 2, len(cells) - 1) else c for i, c in enumerate(cells)]
        lines.append(cells)
    return ["", f"### {name}", ""] + markdown_table(columns, lines) if lines else []


def containment(rows):
    """Each case that ran with assume_finite as well: the difference of the same plan's times."""
    lines = []
    for case in by_case(rows).values():
        guarded = [r for r in case if is_ours(r) and r["plan_kind"] == "chosen"]
        finite = [r for r in case if r["impl"] == FINITE]
        if not guarded or not finite:
            continue
        cost = 100 * (guarded[0]["ms"] / finite[0]["ms"] - 1)
        text = f"{cost:+.1f} %"
        cells = [case_name(guarded[0]), guarded[0]["plan"], f"{guarded[0]['ms']:.4f}", f"{finite[0]['ms']:.4f}"]
        lines.append(cells + [f"**{text}**" if cost > CONTAINMENT_LIMIT else text])
    if not lines:
        return []
    title = ["", "### What containing NaN and infinities costs", ""]
    title += [f"The plan with its guard and with `NonFinite::assume_finite`. **Bold**: above {CONTAINMENT_LIMIT} %.", ""]
    return title + markdown_table(["case", "plan", "guarded ms", "assume_finite ms", "cost"], lines)
