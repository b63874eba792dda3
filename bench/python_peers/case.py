"""Cases of a file of results, and what their results must be."""

import random

UNITS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i32": 4, "i64": 8}
OUTPUTS = {"mean_var": 2, "min_max": 2}
AXIS0 = "_axis0"
IN_PLACE = "_in_place"
# Scans have a value an element; their cases are called so.
SCANS = {"inclusive_sum": "scan", "exclusive_sum": "scan_exclusive", "inclusive_max": "scan_max"}
# Scans whose elements depend on all of their segment, which no single call computes.
WITHOUT_PEERS = ("sum_behind", "sum_both_ways")


class Wrong(Exception):
    """A result that is further off than rounding explains."""


class Case:
    """A row's computation. Segments are the rows of a matrix, or with `axis0` its columns; then
    `segment` of the file is the number of rows that each of them folds."""

    def __init__(self, row, largest):
        self.op, self.dtype, self.out = row["op"], row["dtype"], row["out_dtype"]
        self.axis0 = self.op.endswith(AXIS0)
        self.in_place = self.op.endswith(IN_PLACE)
        self.fold = self.op.removesuffix(AXIS0).removesuffix(IN_PLACE)
        self.scan = self.fold in SCANS
        self.n, self.segment = row["n"], row["segment"]
        self.ceiling_ms = row["ceiling_ms"]
        self.cached = bool(row.get("cached"))
        self.whole = self.segment == "whole"
        self.length = self.n if self.whole else self.segment
        self.segments = self.n // self.length
        self.inputs = 2 if self.fold == "dot" else 1
        self.outputs = OUTPUTS.get(self.fold, 1)
        short = self.whole and self.n < largest and not self.cached
        first, size = (("axis0", self.segments) if self.axis0 else (self.op, self.segment))
        self.name = f"{first}/{self.dtype}/{size}" + (f"/{self.n}" if short else "") + ("/cache" if self.cached else "")
        if self.scan:
            first = "scan_in_place" if self.in_place else SCANS[self.fold]
            self.name = f"scan_small/{self.dtype}/{self.n}" if short else f"{first}/{self.dtype}/{size}"

    def bytes_written(self):
        return (self.n if self.scan else self.segments) * SIZES[self.out] * self.outputs

    def bytes(self):
        return self.n * SIZES[self.dtype] * self.inputs + self.bytes_written()

    def key(self):
        return (self.op, self.dtype, self.out, self.n, self.segment, self.cached)

    def part(self, x, segment):
        """The elements of a segment, or column, of a flat array."""
        if self.axis0:
            return x[segment : self.n : self.segments]
        return x[segment * self.length : (segment + 1) * self.length]

    def shape(self):
        """The flat array as a matrix, which is folded along axis()."""
        return (self.length, self.segments) if self.axis0 else (self.segments, self.length)

    def axis(self):
        return 0 if self.axis0 else 1


def cases_of(rows):
    """The cases in the file that peers compute, in its order: those that ours was measured for."""
    ours = [r for r in rows if r["impl"] == "chainfold" and r["plan_kind"] == "chosen" and r["ceiling_ms"]]
    ours = [r for r in ours if r["op"] not in WITHOUT_PEERS]
    largest = {}
    for row in ours:
        key = (row["op"], row["dtype"])
        largest[key] = max(largest.get(key, 0), row["n"])
    return [Case(row, largest[row["op"], row["dtype"]]) for row in ours]


def sample_of(case):
    """Segments to look at: the first, the last and random ones."""
    wanted = min(case.segments, 500, max(3, (1 << 23) // case.length))
    chosen = {0, case.segments - 1}
    chosen.update(random.Random(1).randrange(case.segments) for _ in range(wanted - 2))
    return sorted(chosen)


def places_of(case, segments):
    """Of a scan, the elements to look at in each of these segments: the ends, random ones, and those
    around powers of two, where tiles meet."""
    wanted = min(case.length, max(4, 1000 // len(segments)))
    generator, places = random.Random(2), {}
    for segment in segments:
        chosen = {0, case.length - 1}
        chosen.update(generator.randrange(case.length) for _ in range(wanted - 2))
        if len(segments) <= 8:
            powers = [1 << k for k in range(1, case.length.bit_length()) if 1 << k < case.length]
            chosen.update(powers + [power - 1 for power in powers])
        places[segment] = sorted(chosen)
    return places


def wrap(value):
    """An integer as the i32 that is left of it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class Expectation:
    """The values of a sample of segments, from `expect(case, parts of the inputs)`: for every output
    a value and the sum of absolute values behind it. Of scans the sample is of elements, whose values
    and sums are from `prefixes(case, part of the input, positions in the segment)`."""

    def __init__(self, case, inputs, expect, prefixes=None):
        self.sample = sample_of(case)
        self.values = [[] for _ in range(case.outputs)]
        self.magnitudes = [[] for _ in range(case.outputs)]
        if case.scan:
            places = places_of(case, self.sample)
            self.sample = []
            for segment, positions in places.items():
                values, magnitudes = prefixes(case, case.part(inputs[0], segment), positions)
                self.sample += [segment * case.length + p for p in positions]
                self.values[0] += values
                self.magnitudes[0] += magnitudes
            return
        for segment in self.sample:
            values, magnitudes = expect(case, [case.part(x, segment) for x in inputs])
            for output in range(case.outputs):
                self.values[output].append(values[output])
                self.magnitudes[output].append(magnitudes[output])

    def check(self, case, actual):
        """The largest error in units of rounding times the sum of absolute values; raises Wrong."""
        largest = 0.0
        exact = case.fold in ("min_max", "inclusive_max") or case.out not in UNITS
        inner = UNITS["f64" if case.out == "f64" else "f32"]
        own = 64 if case.fold == "mean_var" else 4
        for output, values in enumerate(self.values):
            for i, value in enumerate(values):
                error, magnitude = abs(actual[output][i] - value), self.magnitudes[output][i]
                allowed = 0.0
                if not exact:
                    allowed = (min(case.length, 32 if case.scan else 4096) + own) * inner * magnitude
                    if case.scan and SIZES[case.out] == 2:  # torch adds 16-bit floats as such
                        allowed += 8 * UNITS[case.out] * magnitude
                    if SIZES[case.out] == 2:
                        allowed += UNITS[case.out] * abs(value) + 2.0**-25
                if not error <= allowed:
                    raise Wrong(f"output {output} of sample {i} is {actual[output][i]}, in f64 it is {value}")
                if case.out in UNITS and magnitude > 0:
                    largest = max(largest, error / (UNITS[case.out] * magnitude))
        return largest
