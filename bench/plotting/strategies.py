"""What each strategy of the plans was good for."""

from .rows import by_case, case_name, heading, is_measured, is_ours, markdown_table, strategy

CLOSE = 0.95  # of the fastest of ours


def report(head, rows):
    """Each strategy that the program knows: the rows where it ran, and its speed by the fastest of
    ours in each."""
    runs, failures = collect(rows)
    known = list(head.get("strategies", []))
    names = known + sorted((set(runs) | set(failures)) - set(known))
    text = [
        heading(head) + " The fastest plan of ours in a row has 1.", "",
        f"A strategy is close where it reaches {CLOSE:g}. Rows where the rules or a tuning took it count as well as rows "
        "where it was forced.", "",
    ]
    summary = []
    for name in names:
        mine = sorted(runs.get(name, []), key=lambda run: -run["share"])
        close = sum(run["share"] >= CLOSE for run in mine)
        best = f"{mine[0]['share']:.3f}" if mine else "-"
        summary.append([name, str(len(mine)), best, mine[0]["case"] if mine else "-", str(close), verdict(mine, failures.get(name, []))])
    text += markdown_table(["strategy", "rows", "best", "there", "close in", ""], summary)
    for name in names:
        text += section(name, runs.get(name, []), failures.get(name, []))
    return "\n".join(text) + "\n"


def verdict(runs, failures):
    if not runs:
        return "**failed in every row**" if failures else "**ran in no row of this file**"
    if runs[0]["share"] < CLOSE:
        return "**never within 5% of the best in any row**"
    return "the fastest in a row" if runs[0]["share"] == 1 else ""


def collect(rows):
    """{strategy: runs}, {strategy: failed rows}."""
    runs, failures = {}, {}
    for case in by_case(rows).values():
        ours = [r for r in case if is_ours(r)]
        measured = [r for r in ours if is_measured(r)]
        for row in ours:
            if row.get("missing"):
                failures.setdefault(strategy(row), []).append(row)
        if not measured:
            continue
        fastest = min(measured, key=lambda r: r["ms"])
        for row in measured:
            runs.setdefault(strategy(row), []).append({
                "case": case_name(row), "row": row, "share": fastest["ms"] / row["ms"], "fastest": strategy(fastest),
            })
    return runs, failures


def section(name, runs, failures):
    lines = [
        [r["case"], r["row"]["plan_kind"], r["row"]["plan"], f"{r['row']['ms']:.4f}", f"{r['row']['ratio']:.3f}", f"{r['share']:.3f}", r["fastest"]]
        for r in runs
    ]
    lines += [[case_name(r), r["plan_kind"], r["plan"], "missing", "-", "-", r["missing"].splitlines()[0]] for r in failures]
    if not lines:
        return []
    columns = ["row", "how", "plan", "ms", "of the ceiling", "of the fastest", "the fastest"]
    return ["", f"### {name}", ""] + markdown_table(columns, lines)
