#!/usr/bin/env python3
"""Runs TPC-H query 6 in DuckDB over the columns that make_data.py wrote, as a second opinion.

The columns are loaded as DECIMAL(15,2) and DATE into an in-memory table first; only the query is
timed. Prints one JSON object: the exact answer as a decimal string, the median and all times in
milliseconds, DuckDB's version and threads, rows and constants. The constants are the integers that the
columns hold (days since 1970-01-01, hundredths); their defaults are those of the published answer.
"""

import argparse
import datetime
import decimal
import json
import pathlib
import statistics
import sys
import time

QUERY = """
SELECT sum(l_extendedprice * l_discount) FROM lineitem
WHERE l_shipdate >= $ship_from::DATE AND l_shipdate < $ship_to::DATE
  AND l_discount BETWEEN $discount_from::DECIMAL(15,2) AND $discount_to::DECIMAL(15,2)
  AND l_quantity < $quantity_below::DECIMAL(15,2)
"""


def fail(text):
    print(f"duckdb_q6: error: {text}", file=sys.stderr)
    sys.exit(1)


def read_columns(folder):
    """The four columns as an Arrow table of DATE and DECIMAL(15,2), and the number of rows."""
    import numpy as np
    import pyarrow as pa

    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        fail(f"no readable manifest.json in {folder} ({error}); run make_data.py first")
    rows, arrays = manifest["rows"], {}
    for name, column in manifest["columns"].items():
        values = np.fromfile(folder / column["file"], dtype={"i32": "<i4", "i64": "<i8"}[column["type"]])
        if len(values) != rows:
            fail(f"{column['file']} has {len(values)} values, the manifest says {rows}")
        if column["type"] == "i32":
            arrays[name] = pa.array(values, pa.int32()).cast(pa.date32())
            continue
        if column["scale"] != 100:
            fail(f"{name} is scaled by {column['scale']}; 100 is expected")
        wide = np.empty((rows, 2), dtype="<i8")  # decimal128: low word, then the sign
        wide[:, 0], wide[:, 1] = values, values >> 63
        arrays[name] = pa.Array.from_buffers(pa.decimal128(15, 2), rows,
                                             [None, pa.py_buffer(wide)])
    return pa.table(arrays), rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path, help="folder that make_data.py wrote")
    parser.add_argument("--ship-from", type=int, default=8766, help="first day (default: 1994-01-01)")
    parser.add_argument("--ship-to", type=int, default=9131, help="day after the last one")
    parser.add_argument("--discount-from", type=int, default=5, help="hundredths, included")
    parser.add_argument("--discount-to", type=int, default=7, help="hundredths, included")
    parser.add_argument("--quantity-below", type=int, default=2400, help="hundredths, excluded")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs, after one untimed")
    parser.add_argument("--threads", type=int, help="DuckDB's threads (default: all cores)")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        fail("--repeats must be at least 1")

    import duckdb

    table, rows = read_columns(arguments.data)
    connection = duckdb.connect(":memory:")
    if arguments.threads:
        connection.execute(f"SET threads = {arguments.threads}")
    connection.register("columns", table)
    connection.execute("CREATE TABLE lineitem AS SELECT * FROM columns")
    connection.unregister("columns")
    del table

    epoch = datetime.date(1970, 1, 1)
    hundredths = decimal.Decimal("0.01")
    constants = {
        "ship_from": epoch + datetime.timedelta(days=arguments.ship_from),
        "ship_to": epoch + datetime.timedelta(days=arguments.ship_to),
        "discount_from": arguments.discount_from * hundredths,
        "discount_to": arguments.discount_to * hundredths,
        "quantity_below": arguments.quantity_below * hundredths,
    }
    times, answers = [], set()
    for _ in range(arguments.repeats + 1):
        start = time.perf_counter()
        answers.add(connection.execute(QUERY, constants).fetchone()[0])
        times.append(1e3 * (time.perf_counter() - start))
    if len(answers) != 1:
        fail(f"DuckDB gave different answers: {answers}")
    answer = answers.pop()
    threads = connection.execute("SELECT current_setting('threads')").fetchone()[0]
    print(json.dumps({
        "answer": str(answer if answer is not None else decimal.Decimal("0.0000")),
        "ms": round(statistics.median(times[1:]), 3),
        "all_ms": [round(value, 3) for value in times[1:]],
        "version": duckdb.__version__,
        "threads": int(threads),
        "rows": rows,
        "constants": {name: str(value) for name, value in constants.items()},
    }))


if __name__ == "__main__":
    main()
