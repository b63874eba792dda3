"""torch on a GPU or the CPU: data and clocks."""

import statistics
import time

from . import torch_ways
from .case import SIZES, UNITS, Expectation, wrap
from .numpy_peer import time_on_cpu

BEYOND_CACHES = 256 << 20
# Timed runs that are queued together, as chainfold_bench queues those of a round: a device that rests after
# each has a faster clock. Of runs that take so long that the host queues the next ones meanwhile.
PAIRS, QUEUED_MS = 8, 0.2


class Torch:
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

            if dtype == "f16":  # of mean 0, so that running sums stay within the type
                values = (2 * integers(-1024, 1024) + 1) * 2 ** integers(0, 4) * 2.0**-14
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
        self.cached = case.cached
        source = (case.dtype, case.inputs)
        if source != self.source:
            self.source, self.data, self.sets = None, [], []
            if self.gpu:
                self.torch.cuda.empty_cache()
            count = max(self.bytes // SIZES[case.dtype], case.n)
            self.data = [self.fill(case.dtype, count, seed) for seed in range(case.inputs)]
            self.source = source
        slices = 1 if case.cached else max(1, min(64, len(self.data[0]) // case.n))
        self.sets = [[x[k * case.n : (k + 1) * case.n] for x in self.data] for k in range(slices)]
        self.turn = 0
        self.expected = Expectation(case, self.sets[0], self.expect, self.prefixes)

    def next_inputs(self):
        self.turn = (self.turn + 1) % len(self.sets)
        return self.sets[self.turn]

    def expect(self, case, parts):
        step = 1 << 26
        total = magnitude = squares = 0
        least, most = float("inf"), -float("inf")
        integer = case.out not in UNITS
        for begin in range(0, case.length, step):
            x = parts[0][begin : begin + step]
            x = x.long() if integer else x.double()
            if case.fold == "dot":
                x = x * parts[1][begin : begin + step].double()
            if case.fold == "filtered_sum":
                x = x.clamp(min=0)
            total += x.sum().item()
            magnitude += x.abs().sum().item()
            if case.fold == "mean_var":
                squares += (x * x).sum().item()
            if case.fold == "min_max":
                least, most = min(least, x.min().item()), max(most, x.max().item())
        n = case.length
        if case.fold == "min_max":
            return [least, most], [abs(least), abs(most)]
        if case.fold == "mean_var":
            mean = total / n
            return [mean, squares / n - mean * mean], [magnitude / n, squares / n]
        return [wrap(total) if case.out == "i32" else total], [magnitude]

    def prefixes(self, case, part, positions):
        """Running sums and sums of absolute values at some positions, piece by piece."""
        torch, step = self.torch, 1 << 26
        values, magnitudes, total, magnitude = [], [], 0, 0
        for begin in range(0, case.length, step):
            x = part[begin : begin + step]
            x = x.double() if case.out in UNITS else x.long()
            here = [p - begin for p in positions if begin <= p < begin + step]
            index = torch.tensor(here, dtype=torch.int64, device=self.device)
            sums, sizes = x.cumsum(0), x.abs().cumsum(0)
            values += [total + v for v in sums[index].tolist()]
            magnitudes += [magnitude + v for v in sizes[index].tolist()]
            total, magnitude = total + sums[-1].item(), magnitude + sizes[-1].item()
        return [wrap(v) if case.out == "i32" else v for v in values], magnitudes

    def names(self, case):
        return torch_ways.names(case, self.gpu)

    def ways(self, case):
        """(impl, what is called, maker of a function of the inputs) for a case."""
        torch = self.torch
        makers = {
            "cuBLAS": ("a product of matrices", lambda: self.product(case)),
            "torch.compile": (
                f"Inductor, mode {self.mode}",
                lambda: torch_ways.compiled(torch, self.types, case, self.mode),
            ),
        }
        eager = (f"torch {torch.__version__}", lambda: torch_ways.function(torch, self.types, case, True))
        return [(name, *makers.get(name, eager)) for name in self.names(case)]

    def product(self, case):
        def pace(form):
            try:
                return self.time(form, 3, 0)
            except RuntimeError:  # cuBLAS has no such product: the other one decides
                return float("inf")

        return torch_ways.product(self.torch, self.types, case, self.device, pace)

    def results(self, case, function):
        """Values of the sample, from the first slice."""
        outputs = function(*self.sets[0])
        index = self.torch.tensor(self.expected.sample, device=self.device)
        values = [o.reshape(-1)[index] for o in outputs]
        return [(v.double() if case.out in UNITS else v.long()).tolist() for v in values]

    def time(self, function, least, seconds, ring_bytes=0):
        """The median of some runs in milliseconds; each follows an untimed one, and a round of them a
        read of other memory, which leaves caches as chainfold_bench finds them and keeps the device busy
        while the host queues what follows. Results are kept for some runs, so that they are not written to
        the same memory again and again."""
        torch = self.torch
        kept, most = [], max(2, min(16, BEYOND_CACHES // max(1, ring_bytes)))

        def run():
            kept.append(function(*self.next_inputs()))
            if len(kept) > most:
                kept.pop(0)

        if not self.gpu:
            return time_on_cpu(run, None if self.cached else self.wash, least, seconds)

        def round_(count):
            self.other_memory()[0].sum()
            for begin, end in events[:count]:
                run()
                begin.record()
                run()
                end.record()
            torch.cuda.synchronize()
            return [begin.elapsed_time(end) for begin, end in events[:count]]

        def event():
            return torch.cuda.Event(enable_timing=True)

        events = [(event(), event()) for _ in range(PAIRS)]
        round_(1)
        once = round_(1)[0]
        repeats = int(max(3 if once > 20 else least, min(300, seconds * 1e3 / once)))
        pairs = PAIRS if QUEUED_MS < once <= 20 else 1
        rounds = -(-repeats // pairs)
        return statistics.median(ms for _ in range(rounds) for ms in round_(pairs))

    def wash(self):
        """Takes the place of the inputs in the caches of the CPU."""
        if not hasattr(self, "washed"):
            self.washed = self.torch.ones(self.bytes // 8, dtype=self.torch.int64)
        self.washed.sum()

    def other_memory(self):
        """Two tensors as large as the largest input, and so large that a read of one outlasts what the
        host does meanwhile; no case uses them."""
        if not hasattr(self, "others"):
            words = max(self.bytes, 1 << 30) // 8
            self.others = [self.torch.ones(words, dtype=self.torch.int64, device=self.device) for _ in (0, 1)]
        return self.others

    def copy_gbps(self):
        """What moves through memory in a copy, to see whether the machine is the same as before.
        Only on a GPU: it takes long on the CPU, whose memory others use as well."""
        if not self.gpu:
            return None
        source, target = self.other_memory()
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
