#!/usr/bin/env python3
"""Adds the peers that live in Python to a file of results.

usage: peers.py FILE.json [--only REGEX] [--impl REGEX] [--seconds N] [--budget N] [--mode MODE]

Reads the cases that `chainfold_bench --suite reduce --out FILE.json` measured and measures each of
them again by torch.sum and its likes, torch.compile (Inductor, on a GPU through Triton), cuBLAS (the
data, as a matrix, times ones) and, on the CPU, numpy. Every result is held against sums in f64 on a
sample of segments before it is timed. A row that the file has is not measured again; the file is
written after every case. The ceiling of a row is the one that the file tells for the same case.
"""

import argparse
import json
import os
import random
import re
import statistics
import sys
import time

UNITS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i32": 4, "i64": 8}
OUTPUTS = {"mean_var": 2, "min_max": 2}
BEYOND_CACHES = 256 << 20


class Wrong(Exception):
    """A result that is further off than rounding explains."""


class Case:
    def __init__(self, row, largest):
        self.op, self.dtype, self.out = row["op"], row["dtype"], row["out_dtype"]
        self.n, self.segment = row["n"], row["segment"]
        self.ceiling_ms = row["ceiling_ms"]
        self.whole = self.segment == "whole"
        self.length = self.n if self.whole else self.segment
        self.segments = self.n // self.length
        self.inputs = 2 if self.op == "dot" else 1
        self.outputs = OUTPUTS.get(self.op, 1)
        short = self.whole and self.n < largest
        self.name = f"{self.op}/{self.dtype}/{self.segment}" + (f"/{self.n}" if short else "")

    def bytes(self):
        written = self.segments * SIZES[self.out] * self.outputs
        return self.n * SIZES[self.dtype] * self.inputs + written

    def key(self):
        return (self.op, self.dtype, self.out, self.n, self.segment)


def cases_of(rows):
    """The cases in the file, in its order: those that ours was measured for."""
    ours = [r for r in rows if r["impl"] == "chainfold" and r["plan_kind"] == "chosen" and r["ceiling_ms"]]
    largest = {}
    for row in ours:
        key = (row["op"], row["dtype"])
        largest[key] = max(largest.get(key, 0), row["n"])
    return [Case(row, largest[row["op"], row["dtype"]]) for row in ours]


def check(case, expected, actual, magnitudes):
    """The largest error in units of rounding times the sum of absolute values; raises Wrong."""
    largest = 0.0
    exact = case.op == "min_max" or case.out not in UNITS
    inner = UNITS["f64" if case.out == "f64" else "f32"]
    own = 64 if case.op == "mean_var" else 4
    for output, values in enumerate(expected):
        for i, value in enumerate(values):
            error = abs(actual[output][i] - value)
            allowed = 0.0
            if not exact:
                allowed = (min(case.length, 4096) + own) * inner * magnitudes[output][i]
                if SIZES[case.out] == 2:
                    allowed += UNITS[case.out] * abs(value) + 2.0**-25
            if not error <= allowed:
                raise Wrong(f"output {output} of sample {i} is {actual[output][i]}, in f64 it is {value}")
            if case.out in UNITS and magnitudes[output][i] > 0:
                largest = max(largest, error / (UNITS[case.out] * magnitudes[output][i]))
    return largest


def sample_of(case):
    """Segments to look at: the first, the last and random ones."""
    wanted = min(case.segments, 500, max(3, (1 << 23) // case.length))
    chosen = {0, case.segments - 1}
    chosen.update(random.Random(1).randrange(case.segments) for _ in range(wanted - 2))
    return sorted(chosen)


def wrap(value):
    """An integer as the i32 that is left of it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class Torch:
    """torch on a GPU or the CPU: data, ways, clocks."""

    def __init__(self, torch, device, elements_bytes, mode):
        self.torch, self.device, self.mode = torch, device, mode
        self.gpu = device == "cuda"
        self.bytes = elements_bytes
        self.types = {
            "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
            "i8": torch.int8, "i32": torch.int32, "i64": torch.int64,
        }
        self.source, self.data = None, []
        if self.gpu:
            matmul = torch.backends.cuda.matmul
            matmul.allow_tf32 = False
            matmul.allow_fp16_reduced_precision_reduction = False
            matmul.allow_bf16_reduced_precision_reduction = False

    def fill(self, dtype, count, seed):
        """Random signed data, each an integer times a power of two, so that f64 adds it exactly."""
        torch = self.torch
        generator = torch.Generator(device=self.device).manual_seed(seed)
        out = torch.empty(count, dtype=self.types[dtype], device=self.device)
        step = 1 << 26
        for begin in range(0, count, step):
            part = out[begin : begin + step]

            def integers(low, high):
                return torch.randint(low, high, part.shape, generator=generator, device=self.device)

            if dtype == "f16":
                values = integers(-2048, 2048) * 2 ** integers(0, 4) * 2.0**-14
            elif dtype == "bf16":
                values = integers(-256, 256) * 2 ** integers(0, 4) * 2.0**-11
            elif dtype == "f32":
                values = integers(-(1 << 23), 1 << 23) * 2.0**-23
            elif dtype == "f64":
                values = integers(-(1 << 52), 1 << 52).double() * 2.0**-52
            elif dtype == "i8":
                values = integers(-128, 128)
            else:
                values = integers(-(1 << 31), 1 << 31)
            part.copy_(values)
        return out

    def prepare(self, case):
        """Slices of the inputs that are taken in turn, and expected values of a sample."""
        source = (case.dtype, case.inputs)
        if source != self.source:
            self.source, self.data, self.sets = None, [], []
            if self.gpu:
                self.torch.cuda.empty_cache()
            count = max(self.bytes // SIZES[case.dtype], case.n)
            self.data = [self.fill(case.dtype, count, seed) for seed in range(case.inputs)]
            self.source = source
        slices = max(1, min(64, len(self.data[0]) // case.n))
        self.sets = [[x[k * case.n : (k + 1) * case.n] for x in self.data] for k in range(slices)]
        self.turn = 0
        self.expect(case)

    def next_inputs(self):
        self.turn = (self.turn + 1) % len(self.sets)
        return self.sets[self.turn]

    def expect(self, case):
        self.sample = sample_of(case)
        self.expected = [[] for _ in range(case.outputs)]
        self.magnitudes = [[] for _ in range(case.outputs)]
        for segment in self.sample:
            begin, end = segment * case.length, (segment + 1) * case.length
            values, magnitudes = self.expect_range(case, [x[begin:end] for x in self.sets[0]])
            for output in range(case.outputs):
                self.expected[output].append(values[output])
                self.magnitudes[output].append(magnitudes[output])

    def expect_range(self, case, parts):
        step = 1 << 26
        total = magnitude = squares = 0
        least, most = float("inf"), -float("inf")
        integer = case.out not in UNITS
        for begin in range(0, case.length, step):
            x = parts[0][begin : begin + step]
            x = x.long() if integer else x.double()
            if case.op == "dot":
                x = x * parts[1][begin : begin + step].double()
            if case.op == "filtered_sum":
                x = x.clamp(min=0)
            total += x.sum().item()
            magnitude += x.abs().sum().item()
            if case.op == "mean_var":
                squares += (x * x).sum().item()
            if case.op == "min_max":
                least, most = min(least, x.min().item()), max(most, x.max().item())
        n = case.length
        if case.op == "min_max":
            return [least, most], [abs(least), abs(most)]
        if case.op == "mean_var":
            mean = total / n
            return [mean, squares / n - mean * mean], [magnitude / n, squares / n]
        return [wrap(total) if case.out == "i32" else total], [magnitude]

    def function(self, case, eager):
        """What computes the case from flat inputs, as a user would write it."""
        torch, op, out = self.torch, case.op, self.types[case.out]

        def rows(x):
            return x.view(1, -1) if case.whole else x.view(-1, case.length)

        if op == "sum":
            if case.dtype == case.out and case.out in UNITS:
                return lambda x: (rows(x).sum(1),)
            return lambda x: (rows(x).sum(1, dtype=out),)
        if op == "mean_var":

            def mean_var(x):
                variance, mean = torch.var_mean(rows(x), 1, correction=0)
                return mean, variance

            return mean_var
        if op == "dot":  # products of f16 are rounded unless they are asked for in f32
            return lambda x, y: ((rows(x).float() * rows(y).float()).sum(1).to(out),)
        if op == "min_max":
            if eager:
                return lambda x: tuple(torch.aminmax(rows(x), dim=1))
            return lambda x: (rows(x).amin(1), rows(x).amax(1))
        return lambda x: (torch.where(rows(x) > 0, rows(x), 0).sum(1),)

    def ways(self, case):
        """(impl, what is called, maker of a function of the inputs) for a case."""
        torch = self.torch
        eager = {"mean_var": "torch.var_mean", "min_max": "torch.aminmax"}.get(case.op, "torch.sum")
        ways = [(eager, f"torch {torch.__version__}", lambda: self.function(case, True))]
        if self.gpu and not case.whole and case.out in UNITS and case.dtype == case.out:
            if case.op == "sum":
                ways.append(("cuBLAS", "torch.mm or torch.mv with ones", lambda: self.times_ones(case)))
            elif case.op == "dot":
                ways.append(("cuBLAS", "torch.bmm", lambda: self.batched(case)))
        ways.append(("torch.compile", f"Inductor, mode {self.mode}", lambda: self.compiled(case)))
        return ways

    def compiled(self, case):
        torch = self.torch
        torch._dynamo.reset()  # every shape is compiled for itself
        mode = None if self.mode == "default" else self.mode
        return torch.compile(self.function(case, False), dynamic=False, mode=mode)

    def times_ones(self, case):
        torch = self.torch
        ones = torch.ones(case.length, dtype=self.types[case.dtype], device=self.device)
        column = ones[:, None]
        forms = [
            lambda x: (torch.mm(x.view(-1, case.length), column).view(-1),),
            lambda x: (torch.mv(x.view(-1, case.length), ones),),
        ]


        def pace(form):
            try:
                return self.time(form, 3, 0)
            except RuntimeError:  # cuBLAS has no such product: the other one decides
                return float("inf")

        return min(forms, key=pace)

    def batched(self, case):
        torch, s = self.torch, case.length
        return lambda x, y: (torch.bmm(x.view(-1, 1, s), y.view(-1, s, 1)).view(-1),)

    def results(self, case, function):
        """Values of the sample, from the first slice."""
        outputs = function(*self.sets[0])
        index = self.torch.tensor(self.sample, device=self.device)
        values = [o.reshape(-1)[index] for o in outputs]
        return [(v.double() if case.out in UNITS else v.long()).tolist() for v in values]

    def time(self, function, least, seconds, ring_bytes=0):
        """The median of some runs in milliseconds; each follows an untimed one. Results are kept for
        some runs, so that they are not written to the same memory again and again."""
        torch = self.torch
        kept, most = [], max(2, min(16, BEYOND_CACHES // max(1, ring_bytes)))

        def run():
            kept.append(function(*self.next_inputs()))
            if len(kept) > most:
                kept.pop(0)

        if not self.gpu:
            times = []
            began = time.perf_counter()
            run()
            while len(times) < least or time.perf_counter() - began < seconds and len(times) < 100:
                self.wash()
                start = time.perf_counter()
                run()
                times.append((time.perf_counter() - start) * 1e3)
            return statistics.median(times)

        def round_():
            torch.cuda._sleep(500_000)  # the device is busy while the host queues what follows
            run()
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            return begin.elapsed_time(end)

        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        round_()
        once = round_()
        repeats = int(max(3 if once > 20 else least, min(300, seconds * 1e3 / once)))
        return statistics.median(round_() for _ in range(repeats))

    def wash(self):
        """Takes the place of the inputs in the caches of the CPU."""
        if not hasattr(self, "washed"):
            self.washed = self.torch.ones(self.bytes // 8, dtype=self.torch.int64)
        self.washed.sum()

    def copy_gbps(self):
        """What moves through memory in a copy, to see whether the machine is the same as before.
        Only on a GPU: it takes long on the CPU, whose memory others use as well."""
        if not self.gpu:
            return None
        if not hasattr(self, "copied"):
            words = self.bytes // 8
            self.copied = [self.torch.ones(words, dtype=self.torch.int64, device=self.device) for _ in (0, 1)]
        source, target = self.copied
        inputs, self.sets, self.turn = self.sets, [[source]], 0
        try:
            began = time.perf_counter()
            while time.perf_counter() - began < 0.04:  # clocks that fell while the host compiled rise
                target.copy_(source)
                self.torch.cuda.synchronize()
            ms = self.time(lambda x: target.copy_(x), 11, 0.02)
        finally:
            self.sets = inputs
        return 2 * source.numel() * 8 / ms * 1e-6


class Numpy:
    """numpy on the CPU: data, ways, clocks."""

    def __init__(self, numpy, elements_bytes):
        self.numpy, self.bytes = numpy, elements_bytes
        self.types = {
            "f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64, "i8": numpy.int8, "i32": numpy.int32,
        }
        self.source = None
        self.washed = numpy.ones(elements_bytes // 8, dtype=numpy.int64)

    def fill(self, dtype, count, seed):
        generator = self.numpy.random.default_rng(seed)
        if dtype == "f16":
            values = generator.integers(-2048, 2048, count, dtype="int16").astype("float32")
            return (values * 2.0 ** generator.integers(0, 4, count, dtype="int8") * 2.0**-14).astype("float16")
        if dtype == "f32":
            return generator.integers(-(1 << 23), 1 << 23, count, dtype="int32").astype("float32") * self.numpy.float32(2.0**-23)
        if dtype == "f64":
            return generator.integers(-(1 << 52), 1 << 52, count) * 2.0**-52
        if dtype == "i8":
            return generator.integers(-128, 128, count, dtype="int8")
        return generator.integers(-(1 << 31), (1 << 31) - 1, count, dtype="int32")

    def prepare(self, case):
        source = (case.dtype, case.inputs)
        if case.dtype not in self.types:
            self.data = None
            return
        if source != self.source:
            count = max(self.bytes // SIZES[case.dtype], case.n)
            self.data = [self.fill(case.dtype, count, seed) for seed in range(case.inputs)]
            self.source = source
        self.inputs = [x[: case.n] for x in self.data]
        self.sample = sample_of(case)
        self.expected = [[] for _ in range(case.outputs)]
        self.magnitudes = [[] for _ in range(case.outputs)]
        for segment in self.sample:
            begin, end = segment * case.length, (segment + 1) * case.length
            values, magnitudes = self.expect_range(case, [x[begin:end] for x in self.inputs])
            for output in range(case.outputs):
                self.expected[output].append(values[output])
                self.magnitudes[output].append(magnitudes[output])

    def expect_range(self, case, parts):
        integer = case.out not in UNITS
        x = parts[0].astype("int64" if integer else "float64")
        if case.op == "dot":
            x = x * parts[1].astype("float64")
        if case.op == "filtered_sum":
            x = x.clip(min=0)
        if case.op == "min_max":
            least, most = float(x.min()), float(x.max())
            return [least, most], [abs(least), abs(most)]
        magnitude = float(abs(x).sum())
        if case.op == "mean_var":
            return [float(x.mean()), float(x.var())], [magnitude / len(x), float((x * x).mean())]
        total = int(x.sum()) if integer else float(x.sum())
        return [wrap(total) if case.out == "i32" else total], [magnitude]

    def function(self, case):
        numpy = self.numpy
        out = self.types[case.out]
        inner = numpy.float32 if case.out == "f16" else out

        def rows(x):
            return x.reshape(1, -1) if case.whole else x.reshape(-1, case.length)

        if case.op == "mean_var":
            return lambda x: (rows(x).mean(1, dtype=inner).astype(out), rows(x).var(1, dtype=inner).astype(out))
        if case.op == "dot":
            return lambda x, y: (numpy.einsum("ij,ij->i", rows(x), rows(y), dtype=inner).astype(out),)
        if case.op == "min_max":
            return lambda x: (rows(x).min(1), rows(x).max(1))
        if case.op == "filtered_sum":
            return lambda x: (rows(x).sum(1, dtype=inner, where=rows(x) > 0).astype(out),)
        return lambda x: (rows(x).sum(1, dtype=inner).astype(out, copy=False),)

    def ways(self, case):
        def make():
            if case.dtype not in self.types:
                raise TypeError(f"numpy has no {case.dtype}")
            return self.function(case)

        return [("numpy", f"numpy {self.numpy.__version__}", make)]

    def results(self, case, function):
        return [o.reshape(-1)[self.sample].astype("float64").tolist() for o in function(*self.inputs)]

    def copy_gbps(self):
        return None

    def time(self, function, least, seconds, ring_bytes=0):
        del ring_bytes
        times, began = [], time.perf_counter()
        while len(times) < min(least, 3) or time.perf_counter() - began < seconds and len(times) < 100:
            self.washed.sum()  # takes the place of the inputs in the caches
            start = time.perf_counter()
            function(*self.inputs)
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times)


class Missing:
    """Stands for a library that is not there: its rows say so."""

    def __init__(self, impls, reason):
        self.impls, self.reason = impls, reason

    def prepare(self, case):
        pass

    def ways(self, case):
        def fail():
            raise ImportError(self.reason)

        return [(impl, "", fail) for impl in self.impls]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, content):
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
    os.replace(temporary, path)


def row_key(row):
    return (row["op"], row["dtype"], row["out_dtype"], row["n"], row["segment"], row["impl"], row["plan_kind"])


def is_done(row):
    return row is not None and row.get("ms") is not None and not row.get("void")


def reason_of(problem):
    lines = str(problem).splitlines()
    return f"{type(problem).__name__}: {lines[0] if lines else ''}"


def entrant(backend, case, impl, plan, make):
    """A row of the file without times, and the function to be timed (none where it is missing)."""
    row = {
        "suite": "reduce", "op": case.op, "dtype": case.dtype, "out_dtype": case.out, "n": case.n,
        "segment": case.segment, "impl": impl, "plan": plan, "plan_kind": "", "ms": None, "gbps": None,
        "ceiling_ms": None, "ratio": None, "max_err_u": None, "pj_per_element": None,
    }
    try:
        function = make()
        error = check(case, backend.expected, backend.results(case, function), backend.magnitudes)
        row["max_err_u"] = error if case.out in UNITS else None
        return row, function
    except Wrong as problem:
        row["missing"] = f"wrong: {problem}"
    except Exception as problem:  # noqa: BLE001  whatever a library raises, its row is missing
        row["missing"] = reason_of(problem)
    return row, None


def measure(backend, case, row, function, seconds):
    written = case.segments * SIZES[case.out] * case.outputs
    try:
        ms = backend.time(function, 9, seconds, written)
    except Exception as problem:  # noqa: BLE001
        row["missing"] = reason_of(problem)
    else:
        row.update(ms=ms, gbps=case.bytes() / ms * 1e-6, ceiling_ms=case.ceiling_ms, ratio=case.ceiling_ms / ms)


def show(case, row):
    if "missing" in row:
        text = f"missing: {row['missing']}"
    else:
        error = "-" if row["max_err_u"] is None else f"{row['max_err_u']:.3g}"
        text = f"{row['ms']:10.4f} ms {row['gbps']:8.1f} GB/s {row['ratio']:6.3f} of the ceiling  err {error:>8} u"
        text += "  VOID" if row.get("void") else ""
    print(f"  {case.name:<24} {row['impl']:<20} {text}", flush=True)


def backends_for(target, elements_bytes, mode):
    torch_impls = ["torch.sum", "torch.compile"]
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin take the cores of the next one
    try:
        import torch

        if target == "gpu" and not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
        backends = [Torch(torch, "cuda" if target == "gpu" else "cpu", elements_bytes, mode)]
    except ImportError as problem:
        backends = [Missing(torch_impls + (["cuBLAS"] if target == "gpu" else []), str(problem))]
    if target == "cpu":
        try:
            import numpy

            backends.append(Numpy(numpy, elements_bytes))
        except ImportError as problem:
            backends.append(Missing(["numpy"], str(problem)))
    return backends


def measure_case(case, backends, wanted, seconds, limit):
    """Rows for one case, measured once more where a copy was not as fast after it as before."""
    rows = []
    for backend in backends:
        ways = [way for way in backend.ways(case) if wanted(case, way[0])]
        if not ways:
            continue
        backend.prepare(case)
        entrants = [entrant(backend, case, *way) for way in ways]
        rows += [row for row, _ in entrants]
        there = [(row, function) for row, function in entrants if function]
        for attempt in (0, 1) if there else ():
            before = backend.copy_gbps()
            for row, function in there:
                measure(backend, case, row, function, seconds)
            after = backend.copy_gbps()
            if not before or abs(before - after) <= limit * min(before, after):
                break
            print(f"  void: copy {before:.1f} then {after:.1f} GB/s{'; measured again' if attempt == 0 else ''}", flush=True)
            if attempt:
                for row, _ in there:
                    row["void"] = True
    return rows


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="what chainfold_bench --suite reduce wrote; rows are added to it")
    parser.add_argument("--only", default="", help="regular expression: only cases such as 'sum/f16/64'")
    parser.add_argument("--impl", default="", help="regular expression: only peers such as 'torch.sum', 'cuBLAS'")
    parser.add_argument("--seconds", type=float, default=0.02, help="time spent on the repeats of a row")
    parser.add_argument("--budget", type=float, default=0, help="stop after so many seconds; the same call goes on")
    parser.add_argument("--mode", default="default", help="of torch.compile, such as max-autotune-no-cudagraphs")
    options = parser.parse_args(arguments)

    began = time.monotonic()
    content = load(options.file)
    target = content["head"]["target"]
    rows = content["rows"]
    index = {row_key(row): i for i, row in enumerate(rows) if row["plan_kind"] == ""}
    cases = [case for case in cases_of(rows) if re.search(options.only, case.name)]
    if not cases:
        print("no case of the file matches")
        return 1
    elements_bytes = max(case.n * SIZES[case.dtype] for case in cases_of(rows))
    backends = backends_for(target, elements_bytes, options.mode)

    def wanted(case, impl):
        if not re.search(options.impl, impl):
            return False
        old = index.get((*case.key(), impl, ""))
        return old is None or not is_done(rows[old])

    todo = [c for c in cases if any(wanted(c, way[0]) for b in backends for way in b.ways(c))]
    for k, case in enumerate(todo):
        spent = time.monotonic() - began
        if options.budget and spent > options.budget:
            print(f"{len(todo) - k} cases are left: time is up; run the same again")
            break
        left = f", about {spent / k * (len(todo) - k):.0f} s left" if k else ""
        print(f"[{k + 1}/{len(todo)}] {case.name}, n = {case.n}{left}", flush=True)
        for row in measure_case(case, backends, wanted, options.seconds, 0.01):
            key = row_key(row)
            if key in index:
                rows[index[key]] = row
            else:
                index[key] = len(rows)
                rows.append(row)
            show(case, row)
        save(options.file, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
