"""numpy on the CPU: data, ways, clocks."""

import statistics
import time

from .case import SIZES, UNITS, Expectation, wrap


class Numpy:
    def __init__(self, numpy, elements_bytes):
        self.numpy, self.bytes = numpy, elements_bytes
        self.types = {
            "f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64, "i8": numpy.int8, "i32": numpy.int32,
        }
        self.source = None
        self.washed = numpy.ones(elements_bytes // 8, dtype=numpy.int64)

    def fill(self, dtype, count, seed):
        generator = self.numpy.random.default_rng(seed)
        if dtype == "f16":  # of mean 0, so that running sums stay within the type
            values = 2 * generator.integers(-1024, 1024, count, dtype="int16").astype("float32") + 1
            return (values * 2.0 ** generator.integers(0, 4, count, dtype="int8") * 2.0**-14).astype("float16")
        if dtype == "f32":
            return generator.integers(-(1 << 23), 1 << 23, count, dtype="int32").astype("float32") * self.numpy.float32(2.0**-23)
        if dtype == "f64":
            return generator.integers(-(1 << 52), 1 << 52, count) * 2.0**-52
        if dtype == "i8":
            return generator.integers(-128, 128, count, dtype="int8")
        return generator.integers(-(1 << 31), (1 << 31) - 1, count, dtype="int32")

    def prepare(self, case):
        self.cached = case.cached
        if case.dtype not in self.types:
            return
        source = (case.dtype, case.inputs)
        if source != self.source:
            count = max(self.bytes // SIZES[case.dtype], case.n)
            self.data = [self.fill(case.dtype, count, seed) for seed in range(case.inputs)]
            self.source = source
        self.inputs = [x[: case.n] for x in self.data]
        self.expected = Expectation(case, self.inputs, self.expect, self.prefixes)

    def expect(self, case, parts):
        integer = case.out not in UNITS
        x = parts[0].astype("int64" if integer else "float64")
        if case.fold == "dot":
            x = x * parts[1].astype("float64")
        if case.fold == "filtered_sum":
            x = x.clip(min=0)
        if case.fold == "min_max":
            least, most = float(x.min()), float(x.max())
            return [least, most], [abs(least), abs(most)]
        magnitude = float(abs(x).sum())
        if case.fold == "mean_var":
            return [float(x.mean()), float(x.var())], [magnitude / len(x), float((x * x).mean())]
        total = int(x.sum()) if integer else float(x.sum())
        return [wrap(total) if case.out == "i32" else total], [magnitude]

    def prefixes(self, case, part, positions):
        x = part.astype("float64" if case.out in UNITS else "int64")
        magnitudes = abs(x).cumsum()[positions].tolist()
        values = (self.numpy.maximum.accumulate(x) if case.fold == "inclusive_max" else x.cumsum())[positions]
        return [wrap(v) if case.out == "i32" else v for v in values.tolist()], magnitudes

    def function(self, case):
        numpy, axis, shape = self.numpy, case.axis(), case.shape()
        out = self.types[case.out]
        inner = numpy.float32 if case.out == "f16" else out

        def matrix(x):
            return x.reshape(shape)

        if case.fold == "inclusive_sum":
            return lambda x: (matrix(x).cumsum(axis, dtype=inner).astype(out, copy=False),)
        if case.fold == "inclusive_max":
            return lambda x: (numpy.maximum.accumulate(matrix(x), axis),)
        if case.fold == "mean_var":
            return lambda x: (
                matrix(x).mean(axis, dtype=inner).astype(out), matrix(x).var(axis, dtype=inner).astype(out)
            )
        if case.fold == "dot":
            subscripts = "ij,ij->j" if case.axis0 else "ij,ij->i"
            return lambda x, y: (numpy.einsum(subscripts, matrix(x), matrix(y), dtype=inner).astype(out),)
        if case.fold == "min_max":
            return lambda x: (matrix(x).min(axis), matrix(x).max(axis))
        if case.fold == "filtered_sum":
            return lambda x: (matrix(x).sum(axis, dtype=inner, where=matrix(x) > 0).astype(out),)
        return lambda x: (matrix(x).sum(axis, dtype=inner).astype(out, copy=False),)

    def names(self, case):
        return [] if case.in_place or case.fold == "exclusive_sum" else ["numpy"]

    def ways(self, case):
        def make():
            if case.dtype not in self.types:
                raise TypeError(f"numpy has no {case.dtype}")
            return self.function(case)

        return [(name, f"numpy {self.numpy.__version__}", make) for name in self.names(case)]

    def results(self, case, function):
        del case
        return [o.reshape(-1)[self.expected.sample].astype("float64").tolist() for o in function(*self.inputs)]

    def copy_gbps(self):
        return None

    def time(self, function, least, seconds, ring_bytes=0):
        del ring_bytes
        wash = None if self.cached else self.washed.sum  # takes the place of the inputs in the caches
        return time_on_cpu(lambda: function(*self.inputs), wash, min(least, 3), seconds)


def time_on_cpu(run, wash, least, seconds):
    """The median of some calls in milliseconds, each behind a `wash`; without one, of some batches of
    calls in a row, a millisecond each, which find their inputs in the caches."""
    times, began = [], time.perf_counter()
    run()
    calls = 1
    if wash is None:
        start = time.perf_counter()
        run()
        calls = max(1, int(1e-3 / max(1e-7, time.perf_counter() - start)))
    while len(times) < least or time.perf_counter() - began < seconds and len(times) < 100:
        if wash:
            wash()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - start) * 1e3 / calls)
    return statistics.median(times)
