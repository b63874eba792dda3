#!/usr/bin/env python3
"""Tests of the benchmark's scripts on made-up files of results; run by ctest."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peers
import plot
from plotting import papers, strategies, table
from plotting.pictures import pictures
from plotting.rows import by_case, case_name, grouped, heading
from python_peers import torch_ways
from python_peers.case import Case, Expectation, Wrong, cases_of, places_of, sample_of
from python_peers.ragged import RaggedCase, RaggedNumpy
from results_json import load

try:
    import numpy
except ImportError:
    numpy = None
try:
    import matplotlib
except ImportError:
    matplotlib = None

HEAD = {
    "suite": "reduce", "target": "cpu", "device": "a device", "driver": "1", "cuda": "none", "commit": "0123456789abcdef",
    "clean": True, "date": "2026-01-01T00:00:00Z", "read_gbps": 100.0, "write_gbps": 50.0, "copy_gbps": 66.0,
}


def row(op="sum", dtype="f16", segment=64, n=6400, impl="chainfold", kind="chosen", ms=1.0, plan="rows warps=8 mma", **more):
    result = {
        "suite": "reduce", "op": op, "dtype": dtype, "out_dtype": dtype, "n": n, "segment": segment, "impl": impl,
        "plan": plan, "plan_kind": kind, "ms": ms, "repeats": 9, "gbps": 10.0 / ms, "ceiling_ms": 0.5, "ratio": 0.5 / ms,
        "max_err_u": 0.25, "pj_per_element": None,
    }
    result.update(more)
    return result


def missing(reason, **more):
    return row(**more) | {"ms": None, "gbps": None, "ceiling_ms": None, "ratio": None, "missing": reason}


def peer(impl, ms, **more):
    return row(impl=impl, kind="", ms=ms, plan="call", **more)


class TemporaryFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "results.json")

    def store(self, rows, **head):
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"head": {**HEAD, **head}, "rows": rows}, file)

    def call(self, main, *arguments):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            self.status = main([self.path, *arguments])
        return output.getvalue()


class CaseTest(unittest.TestCase):
    def test_columns_are_cut_down_the_rows(self):
        case = Case(row(op="sum_axis0", segment=3, n=12), 12)
        self.assertEqual((case.name, case.fold, case.segments), ("axis0/f16/4", "sum", 4))
        self.assertEqual((case.shape(), case.axis()), ((3, 4), 0))
        self.assertEqual(case.part(list(range(12)), 1), [1, 5, 9])
        self.assertEqual(case.bytes(), 12 * 2 + 4 * 2)

    def test_scans_write_what_they_read(self):
        rows = [
            row(op="inclusive_sum", segment=64, n=6400), row(op="inclusive_sum", segment="whole", n=6400),
            row(op="inclusive_sum", segment="whole", n=64), row(op="exclusive_sum", segment=64),
            row(op="inclusive_max"), row(op="inclusive_sum_in_place"), row(op="sum_behind", segment=64),
        ]
        cases = cases_of(rows)
        names = ["scan/f16/64", "scan/f16/whole", "scan_small/f16/64", "scan_exclusive/f16/64", "scan_max/f16/64", "scan_in_place/f16/64"]
        self.assertEqual([c.name for c in cases], names)
        self.assertEqual(cases[0].bytes(), 2 * 6400 * 2)
        self.assertEqual(torch_ways.names(cases[0], True), ["torch.cumsum", "torch.compile"])
        for case in cases[3:]:
            self.assertEqual(torch_ways.names(case, True), [])
        drawn = [case_name(r).rsplit("/", 1)[0] if r["segment"] == "whole" else case_name(r) for r in rows]
        self.assertEqual(drawn, ["scan/f16/64", "scan/f16/whole", "scan/f16/whole"] + names[3:] + ["scan_behind/f16/64"])

    def test_places_of_scans(self):
        case = Case(row(op="inclusive_sum", segment="whole", n=1000), 1000)
        places = places_of(case, [0])[0]
        self.assertEqual((places[0], places[-1]), (0, 999))
        for place in (31, 32, 511, 512):
            self.assertIn(place, places)
        self.assertEqual(len(places), len(set(places)))

    def test_prefixes_are_held_against_the_expected(self):
        case = Case(row(op="inclusive_sum", dtype="f32", segment=4, n=8), 8)

        def prefixes(_, part, positions):
            sums = [sum(part[: p + 1]) for p in positions]
            return sums, sums

        expected = Expectation(case, [[1.0] * 4 + [2.0] * 4], None, prefixes)
        self.assertEqual(expected.sample, list(range(8)))
        right = [1.0, 2.0, 3.0, 4.0, 2.0, 4.0, 6.0, 8.0]
        self.assertEqual(expected.check(case, [right]), 0)
        with self.assertRaises(Wrong):
            expected.check(case, [right[:4] + [right[3] + r for r in right[4:]]])

    def test_segments_and_whole_inputs(self):
        rows = [row(segment="whole", n=64), row(segment="whole", n=6400), row(cached=True)]
        self.assertEqual([c.name for c in cases_of(rows)], ["sum/f16/whole/64", "sum/f16/whole", "sum/f16/64/cache"])
        case = cases_of(rows)[2]
        self.assertEqual(case.part(list(range(6400)), 2), list(range(128, 192)))

    def test_only_what_ours_was_measured_for_is_a_case(self):
        rows = [row(kind="forced"), row(ceiling_ms=None), peer("cub", 1.0)]
        self.assertEqual(cases_of(rows), [])

    def test_a_sample_has_the_ends(self):
        case = Case(row(n=64 * 10**6), 64 * 10**6)
        sample = sample_of(case)
        self.assertEqual((sample[0], sample[-1]), (0, 10**6 - 1))
        self.assertLessEqual(len(sample), 500)

    def test_results_are_held_against_the_expected(self):
        case = Case(row(dtype="f32", segment=4, n=8), 8)
        expected = Expectation(case, [[1.0] * 4 + [2.0] * 4], lambda _, parts: ([sum(parts[0])], [sum(parts[0])]))
        self.assertEqual(expected.check(case, [[4.0, 8.0]]), 0)
        self.assertAlmostEqual(expected.check(case, [[4.0 + 2.0**-22, 8.0]]), 1.0)
        with self.assertRaises(Wrong):
            expected.check(case, [[4.001, 8.0]])
        with self.assertRaises(Wrong):
            expected.check(case, [[float("nan"), 8.0]])


class TorchWaysTest(unittest.TestCase):
    def test_products_of_matrices(self):
        for more, there in (
            ({"segment": 64}, True),
            ({"op": "sum_axis0", "segment": 100}, True),
            ({"op": "dot", "segment": 64}, True),
            ({"op": "mean_var", "segment": 64}, False),
            ({"dtype": "f32", "segment": "whole"}, True),
            ({"segment": "whole", "out_dtype": "f32"}, False),
            ({"dtype": "i8", "segment": 64, "out_dtype": "i32"}, True),
            ({"dtype": "i8", "segment": 777, "out_dtype": "i32"}, False),
        ):
            case = Case(row(**more), 6400)
            self.assertEqual("cuBLAS" in torch_ways.names(case, True), there, more)
            self.assertNotIn("cuBLAS", torch_ways.names(case, False))

    def test_each_fold_has_its_name(self):
        self.assertEqual(torch_ways.names(Case(row(op="mean_var"), 6400), False), ["torch.var_mean", "torch.compile"])


@unittest.skipUnless(numpy, "numpy is not installed")
class PeersTest(TemporaryFile):
    ROWS = [
        row(), row(op="sum_axis0", dtype="f32", segment=64), row(op="dot", dtype="f16"), row(op="min_max"),
        row(op="mean_var"), row(op="filtered_sum"), row(dtype="i8", out_dtype="i32"), row(cached=True, n=640),
    ]

    def test_every_fold_is_measured_once(self):
        self.store(self.ROWS)
        self.call(peers.main, "--impl", "numpy", "--seconds", "0.001")
        mine = [r for r in load(self.path)["rows"] if r["impl"] == "numpy"]
        self.assertEqual([r["op"] for r in mine], [r["op"] for r in self.ROWS])
        for measured in mine:
            self.assertNotIn("missing", measured)
            self.assertGreater(measured["ms"], 0)
            self.assertEqual(measured["ceiling_ms"], 0.5)
        self.assertTrue(mine[-1]["cached"])
        self.assertEqual(self.call(peers.main, "--impl", "numpy"), "")
        self.assertEqual(len(load(self.path)["rows"]), 2 * len(self.ROWS))

    def test_a_budget_leaves_the_rest(self):
        self.store(self.ROWS)
        output = self.call(peers.main, "--impl", "numpy", "--seconds", "0.001", "--budget", "1e-9")
        self.assertIn("8 cases are left", output)

    def test_what_is_not_there_says_so(self):
        self.store([row(dtype="bf16")])
        self.assertIn("missing: TypeError: numpy has no bf16", self.call(peers.main, "--impl", "numpy"))
        self.assertIsNone(load(self.path)["rows"][1]["ms"])

    def test_scans_are_measured_where_there_are_any(self):
        scans = [
            row(op="inclusive_sum"), row(op="inclusive_sum", segment="whole"), row(op="inclusive_max"),
            row(op="inclusive_sum", dtype="i32", segment=777, n=7770), row(op="exclusive_sum"),
        ]
        self.store(scans, suite="scan")
        self.call(peers.main, "--impl", "numpy", "--seconds", "0.001")
        mine = load(self.path)["rows"][len(scans) :]
        self.assertEqual([(r["op"], r["dtype"], r["suite"], r.get("missing")) for r in mine], [
            (r["op"], r["dtype"], "scan", None) for r in scans[:-1]
        ])
        text = self.call(plot.main, "--table")
        self.assertIn("### scan/f16", text)
        self.assertIn("### scan_exclusive/f16", text)

    def test_segments_of_other_lengths_are_measured(self):
        lengths = ["geometric", "constant", "zipf", "0_to_10", "giant", "heads_geometric"]
        ragged = [row(op=f"sum_{name}", dtype="f32", out_dtype="f32", segment=8, n=20000) for name in lengths]
        ragged += [row(op="sum_all_but_one_empty", dtype="i32", out_dtype="i32", segment=1, n=5000)]
        ragged += [row(op="inclusive_sum_geometric", dtype="f32", out_dtype="f32", segment=8, n=20000)]
        self.store(ragged, suite="ragged")
        self.call(peers.main, "--impl", "numpy", "--seconds", "0.001")
        mine = load(self.path)["rows"][len(ragged) :]
        self.assertEqual([(r["op"], r["impl"], r.get("missing")) for r in mine], [
            (r["op"], "numpy.add.reduceat", None) for r in ragged[:-1]
        ])
        self.assertTrue(all(r["ms"] > 0 for r in mine))

    def test_a_wrong_sum_of_a_segment_is_seen(self):
        case = RaggedCase(row(op="sum_geometric", dtype="f32", out_dtype="f32", segment=8, n=20000))
        backend = RaggedNumpy(numpy, 1 << 20)
        backend.prepare(case)
        right = backend.results(case, backend.function(case))
        backend.expected.check(case, right)
        right[0][1] += 1e-3
        with self.assertRaises(Wrong):
            backend.expected.check(case, right)

    def test_other_suites_are_refused(self):
        self.store(self.ROWS, suite="papers")
        self.assertIn("only reduce, scan and ragged", self.call(peers.main))
        self.assertEqual(self.status, 1)


class TableTest(TemporaryFile):
    def test_what_is_lost_is_bold(self):
        rows = [row(), peer("cub", 0.5), row(segment=32), peer("cub", 2.0, segment=32), row(kind="forced", ms=0.1)]
        text = table.table(HEAD, grouped(rows, ""))
        self.assertIn("| **64** | 6400 | **10** | 0.500 | rows mma | 0.25 | 20 | **2.00** |", text)
        self.assertIn("| 32 | 6400 | 10 | 0.500 | rows mma | 0.25 | 5 | 0.50 |", text)
        self.assertNotIn("containing", text)

    def test_columns_are_listed_by_their_number(self):
        text = table.table(HEAD, grouped([row(op="sum_axis0", segment=64, n=6400)], ""))
        self.assertIn("| C | n |", text)
        self.assertIn("| 100 | 6400 |", text)

    def test_containment(self):
        rows = [row(ms=1.01), row(impl="chainfold-finite", ms=1.0), row(segment=8, ms=1.1), row(segment=8, impl="chainfold-finite", ms=1.0)]
        text = table.table(HEAD, grouped(rows, ""))
        self.assertIn("| sum/f16/64 | rows warps=8 mma | 1.0100 | 1.0000 | +1.0 % |", text)
        self.assertIn("| **+10.0 %** |", text)

    def test_rows_from_cache_stand_alone(self):
        groups = grouped([row(), row(cached=True)], "")
        self.assertEqual(list(groups), ["sum/f16", "sum/f16/cache"])
        self.assertEqual(len(by_case([row(), row(cached=True)])), 2)
        self.assertEqual(len(by_case([row(), row(offset=1)])), 2)

    def test_void_and_missing_rows_are_left_out(self):
        self.store([row(), peer("cub", 0.5, void=True), missing("no torch", impl="torch.sum", kind="")])
        text = self.call(plot.main, "--table")
        self.assertNotIn("cub", text)
        self.assertIn("| - |", text)


class StrategiesTest(unittest.TestCase):
    def test_what_each_was_good_for(self):
        head = {**HEAD, "strategies": ["rows", "parts", "staged", "split", "recurrence"]}
        rows = [
            row(ms=1.0), row(kind="forced", plan="parts warps=4", ms=2.0), row(kind="forced", plan="staged x", ms=1.04),
            row(segment=8, ms=1.0), row(segment=8, kind="forced", plan="parts warps=4", ms=1.25),
            missing("no memory\nat all", segment=8, kind="forced", plan="split"),
            peer("cub", 0.1),
        ]
        text = strategies.report(head, rows)
        self.assertIn("| rows | 2 | 1.000 | sum/f16/64 | 2 | the fastest in a row |", text)
        self.assertIn("| parts | 2 | 0.800 | sum/f16/8 | 0 | **never within 5% of the best in any row** |", text)
        self.assertIn("| staged | 1 | 0.962 | sum/f16/64 | 1 |  |", text)
        self.assertIn("| split | 0 | - | - | 0 | **failed in every row** |", text)
        self.assertIn("| recurrence | 0 | - | - | 0 | **ran in no row of this file** |", text)
        self.assertIn("| sum/f16/8 | forced | split | missing | - | - | no memory |", text)

    def test_names_of_rows(self):
        self.assertEqual(case_name(row(segment="whole", n=1 << 20)), "sum/f16/whole/2^20")
        self.assertEqual(case_name(row(op="sum_axis0", segment=64, n=6400, cached=True)), "axis0/f16/100/cache")


def experiment(name, plan="", kind="pinned", data="normal", n=1 << 20, segment="whole", ms=0.01, **more):
    return row(plan=plan, kind=kind, n=n, segment=segment, ms=ms, experiment=name, data=data, **more)


EXPERIMENTS = [
    experiment("recurrence", "recurrence warps=1 chain=1 bytes=16 mma", ms=0.02),
    experiment("recurrence", "recurrence warps=32 chain=2 bytes=16 mma", ms=0.01),
    experiment("split", "split warps=16 depth=4 blocks=2 fraction=50 product=1", ms=0.03),
    experiment("split", "parts warps=8 simt", ms=0.04),
    experiment("variants", "recurrence warps=1 chain=5", data="uniform", overflow=True),
    experiment("variants", "parts warps=8 mma", kind="chosen", data="uniform", err_percent=1.5e-6),
    experiment("variants", "parts warps=8 mma", kind="chosen", err_percent=0.0),
    experiment("variants", "parts warps=8 simt", ms=0.02, err_percent=2e-4),
    experiment("segments", "reduction16 warps=8 rows=4 mma", segment=16, data="signed"),
    experiment("segments", "call", kind="", impl="cub", segment=16, data="signed", ms=0.1),
    experiment("segments", "parts warps=8 mma", kind="chosen", out_dtype="f32", data="signed"),
    experiment("scan_variants", "look_back warps=8 simt", kind="chosen", err_percent=1e-5, ms=0.04),
    experiment("scan_variants", "scan256n warps=8 chain=0 product=1 mma", segment=1 << 20, err_percent=3e-2),
    experiment("scan_segments", "scan16 warps=8 rows=4 mma", segment=16, data="signed"),
    experiment("scan_segments", "look_back warps=8 mma", data="signed", ms=0.02),
]


class TroubleTest(TemporaryFile):
    """What cannot be used is a line that names it and the fix."""

    def says(self, main, *arguments, status=1):
        output = self.call(main, *arguments)
        self.assertEqual(self.status, status, output)
        self.assertEqual(len(output.splitlines()), 1, output)
        return output

    def test_files_that_are_none(self):
        for main in (plot.main, peers.main):
            self.assertIn(f"{self.path} cannot be read: No such file", self.says(main))
        for text, words in (("no json", "is not JSON"), ("\xff", "is not JSON"), ("[]", "is no file of results"), ('{"head": {}}', "is no file of results")):
            with open(self.path, "w", encoding="latin-1") as file:
                file.write(text)
            for main in (plot.main, peers.main):
                self.assertRegex(self.says(main), f"error: {self.path} {words}.*name a file that chainfold_bench wrote")

    def test_pages_and_folders_that_are_none(self):
        self.store(EXPERIMENTS, suite="papers")
        page = os.path.join(self.folder, "none", "papers.md")
        self.assertIn(f"{page}: No such file", self.says(plot.main, "--papers", page))
        page = os.path.join(self.folder, "papers.md")
        with open(page, "w", encoding="utf-8") as file:
            file.write("no marks")
        self.assertIn(f"{page} has no place for results", self.says(plot.main, "--papers", page))
        self.assertIn(f"{self.path}: File exists", self.says(plot.main, "--out", self.path))

    def test_expressions_that_are_none(self):
        self.store([row()])
        for main in (plot.main, peers.main):
            self.assertIn("'(' is no regular expression", self.says(main, "--only", "(", status=2))

    def test_no_matplotlib(self):
        self.store([row()])
        with unittest.mock.patch.dict(sys.modules, {"matplotlib": None}):
            self.assertIn("pictures need matplotlib", self.says(plot.main))
            self.assertIn("### sum/f16", self.call(plot.main, "--table"))

    def test_an_unknown_commit_is_no_change(self):
        self.assertNotIn("tree with changes", heading({**HEAD, "commit": "unknown", "clean": None}))
        self.assertIn("tree with changes", heading({**HEAD, "clean": False}))


class PapersTest(TemporaryFile):
    def test_the_page_is_filled_between_its_marks(self):
        page = f"before\n{papers.BEGIN}\nold\n{papers.END}\nafter\n"
        text = papers.fill(page, HEAD, EXPERIMENTS)
        self.assertTrue(text.startswith(f"before\n{papers.BEGIN}\na device"))
        self.assertTrue(text.endswith(f"{papers.END}\nafter\n"))
        self.assertNotIn("old", text)
        self.assertIn("| threads a block | R = 1 | R = 2 |\n|---|---|---|\n| 32 | 20.00 | - |\n| 1024 | - | **10.00** |", text)
        self.assertIn("### single_pass: microseconds\n\nnot measured yet", text)
        self.assertIn("| n | 0 % | 50 % |\n|---|---|---|\n| 2^20 | 40.00 | 30.00 |", text)
        self.assertIn("| n | ours | recurrence |\n|---|---|---|\n| 2^20 | 1.5e-06 | overflow |", text)
        self.assertIn("| n | ours | lanes alone |\n|---|---|---|\n| 2^20 | 104.9 | 52.4 |", text)
        self.assertIn("| S | ours | cub | reduction16 |\n|---|---|---|---|\n| 16 | - | 10.5 | 104.9 |\n| 2^20 | 104.9 | - | - |", text)
        self.assertIn("| n | ours | scan256n |\n|---|---|---|\n| 2^20 | 26.2 | 104.9 |", text)
        self.assertIn("| n | ours | scan256n |\n|---|---|---|\n| 2^20 | 1e-05 | 0.03 |", text)
        self.assertIn("| S | ours, tensor cores | scan16 |\n|---|---|---|\n| 16 | - | 104.9 |\n| 2^20 | 52.4 | - |", text)
        self.assertEqual(papers.fill(text, HEAD, EXPERIMENTS), text)

    def test_the_page_of_the_tree_has_marks(self):
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(root, "docs", "papers.md"), encoding="utf-8") as file:
            self.assertIn("a device", papers.fill(file.read(), HEAD, EXPERIMENTS))

    def test_only_files_of_the_suite_fill_a_page(self):
        self.store([row()])
        self.assertIn("is of the suite reduce", self.call(plot.main, "--papers", os.path.join(self.folder, "none.md")))
        self.assertEqual(self.status, 1)

    @unittest.skipUnless(matplotlib, "matplotlib is not installed")
    def test_each_experiment_has_a_picture(self):
        self.store(EXPERIMENTS, suite="papers")
        output = self.call(plot.main)
        names = {os.path.basename(line) for line in output.splitlines()}
        expected = {"recurrence-2^20", "split-2^20", "variants", "speedup", "error-normal", "error-uniform", "segments"}
        expected |= {"scan_variants", "scan-error-normal", "scan_segments"}
        self.assertEqual(names, {f"papers-{name}.svg" for name in expected})
        for name in names:
            self.assertGreater(os.path.getsize(os.path.join(self.folder, name)), 1000)


class PicturesTest(TemporaryFile):
    def test_short_inputs_have_their_own(self):
        wholes = [row(segment="whole", n=1 << k) for k in (10, 12, 14)]
        groups = pictures(grouped([row(n=1 << 14), *wholes, row(impl="chainfold-finite", n=1 << 14)], ""))
        self.assertEqual({name: len(rows) for name, rows in groups.items()}, {"sum/f16": 2, "sum/f16/whole": 3})

    @unittest.skipUnless(matplotlib, "matplotlib is not installed")
    def test_files_are_written(self):
        self.store([row(), peer("cub", 2.0), row(op="sum_axis0", segment=64)])
        output = self.call(plot.main)
        self.assertEqual([os.path.basename(line) for line in output.splitlines()], ["sum-f16.svg", "sum_axis0-f16.svg"])


FAKE_BENCH = """#!/bin/bash
while (($#)); do case $1 in --only) only=$2 ;; --out) out=$2 ;; esac; shift; done
for name in papers/2^16 other/a; do
  grep -qP -- "${only:-.}" <<<"$name" || continue
  echo "[1/2] $name, n = 5"
  echo "$name" >>"$out"
  [[ $name != papers* ]] || sleep 100
done
echo "1 cases, 2 rows measured, 0 were in the file already"
"""
FAKE_TESTS = """#!/bin/bash
for argument in "$@"; do
  case $argument in
    --gtest_list_tests) printf 'Suite.\\n  Good\\n  Crash\\nAll/Other.\\n  P/0  # GetParam() = 3\\n'; exit ;;
    *Crash) kill -SEGV $$ ;;
    --gtest_filter=*/0) echo 'no device'; echo '[  SKIPPED ] it (0 ms)'; exit ;;
  esac
done
echo '[       OK ] it (1 ms)'
"""


class GpuScriptsTest(TemporaryFile):
    """The scripts for a machine with a GPU, with programs that are made up."""

    def run_script(self, script, *arguments):
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        result = subprocess.run(
            [os.path.join(root, script), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90
        )
        return result.returncode, result.stdout

    def program(self, name, text):
        os.makedirs(os.path.join(self.folder, "bin"), exist_ok=True)
        path = os.path.join(self.folder, "bin", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def test_a_case_that_hangs_is_left_out(self):
        self.program("chainfold_bench", FAKE_BENCH)
        status, text = self.run_script("bench/gpu.sh", "--seconds", "60", "--stall", "2", self.folder, self.folder, "papers")
        self.assertEqual(status, 1, text)
        self.assertIn("papers/2^16 HANGS and is left out", text)
        self.assertIn("2 rows measured", text)
        with open(os.path.join(self.folder, "papers", "papers.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "papers/2^16\nother/a\n")

    def test_what_is_asked_for_must_be_there(self):
        status, text = self.run_script("bench/gpu.sh", self.folder, self.folder, "papers")
        self.assertEqual(status, 1)
        self.assertIn("chainfold_bench is missing", text)
        self.program("chainfold_bench", FAKE_BENCH)
        self.assertIn("there is no step 'nothing'", self.run_script("bench/gpu.sh", self.folder, self.folder, "nothing")[1])

    def test_a_test_that_crashes_costs_only_itself(self):
        self.program("chainfold_gpu_tests", FAKE_TESTS)
        out = os.path.join(self.folder, "out")
        status, text = self.run_script("scripts/gpu-check.sh", "--seconds", "60", "--stages", "tests bench", self.folder, out)
        self.assertEqual(status, 1, text)
        with open(os.path.join(out, "summary.txt"), encoding="utf-8") as file:
            tests, bench = file.read().splitlines()
        self.assertRegex(tests, r"tests +FAILED +1 of 3 tests, 1 skipped, .*FAILED: Suite.Crash; HANGS: $")
        self.assertRegex(bench, r"bench +NOT RUN .*chainfold_bench is missing")
        self.assertIn("failures.txt", os.listdir(out))
        self.assertIn("logs.tar.gz", os.listdir(out))


if __name__ == "__main__":
    unittest.main()
