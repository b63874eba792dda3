"""Sums of segments of data-dependent lengths: numpy.add.reduceat, torch.segment_reduce, torch.index_add.

Lengths follow the distributions of the suite `ragged`; the segments themselves are drawn here.
"""

from .case import SIZES, UNITS, Wrong, wrap
from .numpy_peer import Numpy
from .torch_peer import Torch

HEADS = "heads_"
EMPTY = 1_000_000  # segments, of which one has all elements


class RaggedCase:
    """A row's computation: sums of segments that offsets tell, or flags at their first elements."""

    scan, cached, outputs, inputs = False, False, 1, 1

    def __init__(self, row):
        self.op, self.dtype, self.out = row["op"], row["dtype"], row["out_dtype"]
        self.lengths = self.op.removeprefix("sum_")
        self.heads = self.lengths.startswith(HEADS)
        self.lengths = self.lengths.removeprefix(HEADS)
        self.n, self.segment, self.ceiling_ms = row["n"], row["segment"], row["ceiling_ms"]
        self.moved = row["gbps"] * row["ms"] * 1e6
        size = f"/{self.segment}" if self.lengths in ("geometric", "constant") else ""
        self.name = f"{'heads' if self.heads else 'ragged'}/{self.lengths}/{self.dtype}{size}"

    def bytes_written(self):
        return self.n // max(1, self.segment) * SIZES[self.out]

    def bytes(self):
        return self.moved

    def key(self):
        return (self.op, self.dtype, self.out, self.n, self.segment, False)


def cases_of(rows):
    """The cases in the file that these peers compute; none of them scans segments."""
    ours = [r for r in rows if r["impl"] == "chainfold" and r["plan_kind"] == "chosen" and r["ceiling_ms"]]
    return [RaggedCase(row) for row in ours if row["op"].startswith("sum_")]


def offsets_of(numpy, case):
    """Where segments begin and end, an i64 array."""
    generator, n, mean = numpy.random.default_rng(7), case.n, case.segment
    if case.lengths == "all_but_one_empty":
        half = EMPTY // 2
        return numpy.concatenate([numpy.zeros(half, "int64"), numpy.full(EMPTY - half + 1, n, "int64")])
    count = 2 * n // max(1, mean) + 1000
    if case.lengths == "constant":
        lengths = numpy.full(count, mean)
    elif case.lengths == "geometric":
        lengths = generator.geometric(1 / (mean + 1), count) - 1
    elif case.lengths == "zipf":
        lengths = numpy.minimum(1 << 22, 1 / (1 - generator.random(n))).astype("int64")
    elif case.lengths == "0_to_10":
        lengths = generator.integers(0, 11, count)
    elif case.lengths == "giant":  # one of three quarters of all, where an eighth has come before
        lengths = generator.integers(0, 17, count)
        lengths[numpy.searchsorted(lengths.cumsum(), n // 8) + 1] = n - n // 4
    else:
        raise ValueError(f"no such lengths: {case.lengths}")
    ends = lengths.cumsum()
    ends = numpy.concatenate([ends[: numpy.searchsorted(ends, n)], [n]]).astype("int64")
    offsets = numpy.concatenate([[0], ends])
    return numpy.unique(offsets) if case.heads else offsets


class RaggedExpectation:
    """Exact sums of some segments: the longest, the first, the last and others."""

    def __init__(self, numpy, case, x, offsets):
        lengths = numpy.diff(offsets)
        count = len(lengths)
        chosen = {0, count - 1, int(lengths.argmax())}
        chosen.update(numpy.random.default_rng(3).integers(0, count, 200).tolist())
        self.sample, self.lengths = sorted(chosen), []
        self.values, self.magnitudes = [], []
        integer = case.out not in UNITS
        for segment in self.sample:
            part = x[offsets[segment] : offsets[segment + 1]].astype("int64" if integer else "float64")
            total = int(part.sum()) if integer else float(part.sum())
            self.values.append(wrap(total) if case.out == "i32" else total)
            self.magnitudes.append(float(abs(part).sum()))
            self.lengths.append(len(part))

    def check(self, case, actual):
        """The largest error in units of rounding times the sum of absolute values; raises Wrong."""
        largest = 0.0
        for i, value in enumerate(self.values):
            error, magnitude = abs(actual[0][i] - value), self.magnitudes[i]
            unit = UNITS.get(case.out, 0.0)
            if not error <= max(self.lengths[i], 4) * unit * magnitude:
                raise Wrong(f"segment {self.sample[i]} is {actual[0][i]}, it should be {value}")
            if magnitude > 0 and unit > 0:
                largest = max(largest, error / (unit * magnitude))
        return largest


class RaggedNumpy(Numpy):
    def prepare(self, case):
        self.cached = False
        self.offsets = offsets_of(self.numpy, case)
        self.inputs = [self.fill(case.dtype, case.n, 0)]
        self.expected = RaggedExpectation(self.numpy, case, self.inputs[0], self.offsets)
        self.flags = self.numpy.zeros(case.n, dtype="bool")
        self.flags[self.offsets[:-1][self.offsets[:-1] < case.n]] = True

    def names(self, case):
        return ["numpy.add.reduceat"] if case.dtype in self.types else []

    def ways(self, case):
        return [(name, f"numpy {self.numpy.__version__}", lambda: self.function(case)) for name in self.names(case)]

    def function(self, case):
        numpy, out = self.numpy, self.types[case.out]
        if case.heads:
            return lambda x: (numpy.add.reduceat(x, numpy.flatnonzero(self.flags), dtype=out),)

        def sums(x):
            begins, ends = self.offsets[:-1], self.offsets[1:]
            result = numpy.zeros(len(begins), dtype=out)
            some = begins < ends  # of an empty segment reduceat gives an element
            result[some] = numpy.add.reduceat(x, begins[some], dtype=out)
            return (result,)

        return sums


class RaggedTorch(Torch):
    """`numpy` draws the segments."""

    def __init__(self, numpy, *arguments):
        super().__init__(*arguments)
        self.numpy = numpy

    def prepare(self, case):
        torch = self.torch
        self.cached = False
        x = self.fill(case.dtype, case.n, 0)
        offsets = offsets_of(self.numpy, case)
        self.expected = RaggedExpectation(self.numpy, case, x.cpu().numpy(), offsets)
        self.segments = len(offsets) - 1
        self.offsets = torch.from_numpy(offsets).to(self.device)
        lengths = self.offsets.diff()
        # A user of index_add keeps a segment's number beside each element.
        self.rows = torch.repeat_interleave(torch.arange(self.segments, device=self.device), lengths)
        self.flags = torch.zeros(case.n, dtype=torch.bool, device=self.device)
        begins = self.offsets[:-1]
        self.flags[begins[begins < case.n]] = True
        self.sets, self.turn = [[x]], 0

    def names(self, case):
        if case.heads:
            return ["torch.index_add"]
        return ["torch.index_add"] + (["torch.segment_reduce"] if case.out in UNITS else [])

    def ways(self, case):
        return [(name, f"torch {self.torch.__version__}", lambda name=name: self.function(case, name)) for name in self.names(case)]

    def function(self, case, name):
        torch, out = self.torch, self.types[case.out]
        if name == "torch.segment_reduce":
            return lambda x: (torch.segment_reduce(x, "sum", offsets=self.offsets, initial=0),)

        def add(x, rows, count):
            return (torch.zeros(count, dtype=out, device=self.device).index_add_(0, rows, x),)

        if not case.heads:
            return lambda x: add(x, self.rows, self.segments)

        def of_flags(x):
            rows = self.flags.cumsum(0) - 1
            return add(x, rows, int(rows[-1]) + 1)

        return of_flags
