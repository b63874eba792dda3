#!/usr/bin/env python3
"""Checks the example spmv against SciPy: random sparse matrices with empty and long rows, symmetric and
pattern ones, no rows at all, and files that must be refused against the message. The status is 77 where
SciPy is missing."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import scipy.io
    import scipy.sparse
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def run(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def matrices(random):
    def sparse(rows, columns, density):
        return scipy.sparse.random(rows, columns, density, format="coo", random_state=random)

    yield "random", sparse(997, 1009, 0.01)
    yield "long rows", scipy.sparse.vstack([sparse(500, 4099, 1e-4), sparse(2, 4099, 0.9), sparse(300, 4099, 1e-3)])
    yield "empty", scipy.sparse.coo_array((40, 30))
    yield "no rows", scipy.sparse.coo_array((0, 3))
    yield "one row", sparse(1, 100_003, 0.5)
    square = sparse(301, 301, 0.02)
    yield "symmetric", (square + square.T).tocoo()


def check(program, folder, random):
    for name, matrix in matrices(random):
        x = random.normal(size=matrix.shape[1])
        scipy.io.mmwrite(folder / "a.mtx", matrix, symmetry="symmetric" if name == "symmetric" else "general")
        numpy.savetxt(folder / "x.txt", x, fmt="%.17g")
        result = run(program, "--matrix", folder / "a.mtx", "--vector", folder / "x.txt", "--out", folder / "y.txt")
        assert result.returncode == 0, f"{name}: {result.stdout}{result.stderr}"
        y = numpy.array((folder / "y.txt").read_text().split(), dtype=float)
        exact = matrix.tocsr() @ x
        # SciPy adds one entry after the other, and a file may hold fewer digits than a value.
        allowed = abs(matrix).tocsr() @ abs(x) * (matrix.shape[1] + 8) * 2.0**-53
        assert y.shape == exact.shape, f"{name}: {y.shape} rows, not {exact.shape}"
        assert numpy.all(abs(y - exact) <= allowed), f"{name}: off by {abs(y - exact).max()}"
        print(f"{name}: {matrix.shape[0]} x {matrix.shape[1]}, {matrix.nnz} entries, as SciPy has it")


REFUSED = {
    "%%MatrixMarket matrix array real general\n2 2\n": "coordinate",
    "%%MatrixMarket matrix coordinate complex general\n1 1 0\n": "complex",
    "%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n": "hermitian",
    "%%MatrixMarket matrix coordinate real general\n% no size\n": "rows, columns and entries",
    "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n": "1 of 2 entries",
    "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 4\n": "line 3: entry (1, 3) lies outside",
    "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n": "ROW COLUMN VALUE",
}


def check_refused(program, folder):
    for text, words in REFUSED.items():
        (folder / "bad.mtx").write_text(text)
        result = run(program, "--matrix", folder / "bad.mtx")
        assert result.returncode == 1 and words in result.stderr, f"{text!r}: {result.stderr}"
    result = run(program, "--matrix", folder / "missing.mtx")
    assert result.returncode == 1 and "cannot be read" in result.stderr, result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check(program, folder, numpy.random.default_rng(5))
        check_refused(program, folder)


if __name__ == "__main__":
    main()
