"""A case measured by all libraries that are there."""

import os

from . import torch_ways
from .case import UNITS, Wrong


class Missing:
    """Stands for a library that is not there: its rows say so."""

    def __init__(self, names, reason):
        self.names, self.reason = names, reason

    def prepare(self, case):
        pass

    def ways(self, case):
        def fail():
            raise ImportError(self.reason)

        return [(impl, "", fail) for impl in self.names(case)]


def import_torch(gpu):
    """torch; ImportError where it is not there, or sees no GPU that is asked for."""
    import torch

    if gpu and not torch.cuda.is_available():
        raise ImportError("torch sees no GPU")
    return torch


def ragged_backends(target, elements_bytes, mode):
    """Those of the suite ragged, whose segments numpy draws."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin take the cores of the next one
    gpu = target == "gpu"
    import numpy

    from .ragged import RaggedNumpy, RaggedTorch

    backends = [] if gpu else [RaggedNumpy(numpy, elements_bytes)]
    try:
        torch = import_torch(gpu)
    except ImportError as problem:
        return [Missing(lambda case: ["torch.index_add", "torch.segment_reduce"], str(problem)), *backends]
    return [RaggedTorch(numpy, torch, "cuda" if gpu else "cpu", elements_bytes, mode), *backends]


def backends_for(target, elements_bytes, mode):
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin take the cores of the next one
    gpu = target == "gpu"
    try:
        torch = import_torch(gpu)

        from .torch_peer import Torch

        backends = [Torch(torch, "cuda" if gpu else "cpu", elements_bytes, mode)]
    except ImportError as problem:
        backends = [Missing(lambda case: torch_ways.names(case, gpu), str(problem))]
    if gpu:
        return backends
    try:
        import numpy

        from .numpy_peer import Numpy

        return backends + [Numpy(numpy, elements_bytes)]
    except ImportError as problem:
        return backends + [Missing(lambda case: ["numpy"], str(problem))]


def reason_of(problem):
    lines = str(problem).splitlines()
    return f"{type(problem).__name__}: {lines[0] if lines else ''}"


def entrant(suite, backend, case, impl, plan, make):
    """A row of the file without times, and the function to be timed (none where it is missing)."""
    row = {
        "suite": suite, "op": case.op, "dtype": case.dtype, "out_dtype": case.out, "n": case.n,
        "segment": case.segment, "impl": impl, "plan": plan, "plan_kind": "", "ms": None, "gbps": None,
        "ceiling_ms": None, "ratio": None, "max_err_u": None, "pj_per_element": None,
    }
    if case.cached:
        row["cached"] = True
    try:
        function = make()
        error = backend.expected.check(case, backend.results(case, function))
        row["max_err_u"] = error if case.out in UNITS else None
        return row, function
    except Wrong as problem:
        row["missing"] = f"wrong: {problem}"
    except Exception as problem:  # noqa: BLE001  whatever a library raises, its row is missing
        row["missing"] = reason_of(problem)
    return row, None


def time_row(backend, case, row, function, seconds):
    try:
        ms = backend.time(function, 9, seconds, case.bytes_written())
    except Exception as problem:  # noqa: BLE001
        row["missing"] = reason_of(problem)
    else:
        row.update(ms=ms, gbps=case.bytes() / ms * 1e-6, ceiling_ms=case.ceiling_ms, ratio=case.ceiling_ms / ms)


def measure_case(suite, case, backends, wanted, seconds, limit):
    """Rows for one case, measured once more where a copy was not as fast after it as before."""
    rows = []
    for backend in backends:
        ways = [way for way in backend.ways(case) if wanted(case, way[0])]
        if not ways:
            continue
        backend.prepare(case)
        entrants = [entrant(suite, backend, case, *way) for way in ways]
        rows += [row for row, _ in entrants]
        there = [(row, function) for row, function in entrants if function]
        for attempt in (0, 1) if there else ():
            before = backend.copy_gbps()
            for row, function in there:
                time_row(backend, case, row, function, seconds)
            after = backend.copy_gbps()
            if not before or abs(before - after) <= limit * min(before, after):
                break
            print(f"  void: copy {before:.1f} then {after:.1f} GB/s{'; measured again' if attempt == 0 else ''}", flush=True)
            if attempt:
                for row, _ in there:
                    row["void"] = True
    return rows


def show(case, row):
    if "missing" in row:
        text = f"missing: {row['missing']}"
    else:
        error = "-" if row["max_err_u"] is None else f"{row['max_err_u']:.3g}"
        text = f"{row['ms']:10.4f} ms {row['gbps']:8.1f} GB/s {row['ratio']:6.3f} of the ceiling  err {error:>8} u"
        text += "  VOID" if row.get("void") else ""
    print(f"  {case.name:<24} {row['impl']:<20} {text}", flush=True)
