#!/usr/bin/env python3
"""Checks the example tpch_q6 against DuckDB: the published constants and four other sets.

Makes the columns at a small scale factor once, runs both programs with the same constants and compares
their answers as exact decimal strings. Ends with status 77 and a line "SKIPPED: why" where DuckDB or
the generator is not installed.
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CONSTANT_SETS = {
    "the published constants": [],
    "another year, high discounts, any quantity": [
        "--ship-from=9131", "--ship-to=9496", "--discount-from=8", "--discount-to=10",
        "--quantity-below=10000"],
    "one day": ["--ship-from=9000", "--ship-to=9001", "--discount-from=2", "--discount-to=9"],
    "everything": [
        "--ship-from=0", "--ship-to=20000", "--discount-from=0", "--discount-to=100",
        "--quantity-below=1000000"],
    "nothing: the last day comes before the first": ["--ship-from=9131", "--ship-to=8766"],
}


def run(command):
    """What a program prints as JSON; its failure ends the check."""
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{' '.join(map(str, command))}\nended with {result.returncode}: {result.stderr}")
        sys.exit(1)
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="the example's binary")
    parser.add_argument("--data", required=True, help="folder for the columns; made if missing")
    parser.add_argument("--scale-factor", default="0.1")
    arguments = parser.parse_args()
    for module in ("duckdb", "pyarrow", "numpy"):
        if importlib.util.find_spec(module) is None:
            print(f"SKIPPED: the Python package {module} is not installed; run scripts/setup.sh")
            sys.exit(77)

    subprocess.run([sys.executable, HERE / "make_data.py", arguments.data,
                    f"--scale-factor={arguments.scale_factor}"], check=True)
    wrong = 0
    for name, constants in CONSTANT_SETS.items():
        ours = run([arguments.program, arguments.data, "--json", *constants])["answer"]
        theirs = run([sys.executable, HERE / "duckdb_q6.py", arguments.data, "--repeats=1",
                      *constants])["answer"]
        print(f"{'right' if ours == theirs else 'WRONG'}: {name}: chainfold {ours}, DuckDB {theirs}")
        wrong += ours != theirs
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
