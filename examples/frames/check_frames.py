#!/usr/bin/env python3
"""Checks the example frames: files of every supported type against Python's own arithmetic, files that
must be refused against the message. Needs nothing but the standard library."""

import argparse
import array
import csv
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import wave

# type of the .npy: (struct code, a random value, relative error of the result: float or double)
TYPES = {
    "<f2": ("e", lambda: random.uniform(-4, 4), 2e-6),
    "<f4": ("f", lambda: random.uniform(-4, 4), 2e-6),
    "<f8": ("d", lambda: random.uniform(-4, 4), 1e-14),
    "|i1": ("b", lambda: random.randint(-128, 127), 2e-6),
    "<i2": ("h", lambda: random.randint(-32768, 32767), 2e-6),
    "<i4": ("i", lambda: random.randint(-(2**31), 2**31 - 1), 1e-14),
}


def write_npy(path, values, kind="<f4", shape=None, code=None, cut=0):
    """A .npy file by hand; returns the values as they can be read back."""
    data = struct.pack(f"<{len(values)}{code or TYPES[kind][0]}", *values)
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape or (len(values),)}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                     + data[: len(data) - cut])
    return list(struct.unpack(f"<{len(values)}{code or TYPES[kind][0]}", data))


def write_wav(path, channels):
    """A 16-bit PCM file of equally long channels."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(len(channels))
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(array.array("h", [v for frame in zip(*channels) for v in frame]).tobytes())


def write_float_wav(path, values):
    data = struct.pack(f"<{len(values)}f", *values)
    fmt = struct.pack("<HHIIHH", 3, 1, 8000, 32000, 4, 32)
    chunks = b"fmt " + struct.pack("<I", len(fmt)) + fmt
    chunks += b"LIST" + struct.pack("<I", 3) + b"odd\0"  # a chunk of odd length, padded
    chunks += b"data" + struct.pack("<I", len(data)) + data
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
    return list(struct.unpack(f"<{len(values)}f", data))


def expected(values, frame):
    for begin in range(0, len(values), frame):
        part = values[begin : begin + frame]
        yield math.fsum(part) / len(part), math.sqrt(math.fsum(v * v for v in part) / len(part))


class Check:
    def __init__(self, program, folder):
        self.program, self.folder, self.failures, self.checks = program, folder, 0, 0

    def report(self, good, text):
        self.checks += 1
        self.failures += not good
        print(f"{'right' if good else 'WRONG'}: {text}")

    def run(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)

    def levels(self, name, path, values, frame, relative, *options):
        out = self.folder / "levels.csv"
        result = self.run(path, "--frame", frame, "--csv", out, *options)
        if result.returncode:
            self.report(False, f"{name}, frames of {frame}: {result.stderr.strip()}")
            return
        with open(out, newline="") as file:
            rows = [(float(row["mean"]), float(row["rms"])) for row in csv.DictReader(file)]
        want = list(expected(values, frame))
        worst = 0.0
        for (mean, rms), (true_mean, true_rms) in zip(rows, want):
            scale = max(true_rms, 1e-300)  # the mean cancels: its error is relative to the elements
            worst = max(worst, abs(mean - true_mean) / scale, abs(rms - true_rms) / scale)
        self.report(len(rows) == len(want) and worst <= relative,
                    f"{name}, {len(values)} samples in frames of {frame}: {len(rows)} frames, "
                    f"worst error {worst:.2g}")

    def refused(self, name, words, *arguments):
        result = self.run(*arguments)
        good = result.returncode != 0 and words in result.stderr and not result.stdout
        self.report(good, f"{name} is refused: {result.stderr.strip() or 'no message'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    random.seed(2)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check = Check(program, folder)
        for kind, (_, value, relative) in TYPES.items():
            path = folder / f"{kind[1:]}.npy"
            values = write_npy(path, [value() for _ in range(5003)], kind)
            for frame in (1, 7, 64, 1000, 5003, 8000):
                check.levels(f".npy of {kind}", path, values, frame, relative)
        left = [random.randint(-32768, 32767) for _ in range(4096 + 5)]
        right = [random.randint(-100, 100) for _ in left]
        write_wav(folder / "two.wav", [left, right])
        check.levels("WAV, left channel", folder / "two.wav", left, 64, 2e-6)
        check.levels("WAV, right channel", folder / "two.wav", right, 64, 2e-6, "--channel", 1)
        values = write_float_wav(folder / "float.wav", [random.uniform(-1, 1) for _ in range(640)])
        check.levels("WAV of floats", folder / "float.wav", values, 64, 2e-6)
        generated = check.run()
        check.report(generated.returncode == 0 and "125 frames" in generated.stdout,
                     "without a file a signal of 8000 samples is generated")

        write_npy(folder / "big.npy", [1.0], ">f4", code="f")
        check.refused("a big-endian array", "'>f4'", folder / "big.npy")
        write_npy(folder / "flat.npy", [1.0] * 6, shape=(2, 3))
        check.refused("a matrix", "(2, 3)", folder / "flat.npy")
        write_npy(folder / "cut.npy", [1.0] * 6, cut=1)
        check.refused("a cut array", "cut off", folder / "cut.npy")
        (folder / "text.wav").write_text("no sound at all")
        check.refused("a text file", "not a WAV file", folder / "text.wav")
        with wave.open(str(folder / "deep.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(3)
            file.setframerate(8000)
            file.writeframes(b"\0" * 30)
        check.refused("24-bit PCM", "24 bits", folder / "deep.wav")
        check.refused("a channel too many", "channel 2 of 2", folder / "two.wav", "--channel", 2)
        check.refused("a missing file", "could not be opened", folder / "none.npy")
        check.refused("an unknown ending", ".wav or .npy", folder / "x.mp3")
        check.refused("a frame of no samples", "at least 1", "--frame", 0)
    print(f"{check.checks - check.failures} of {check.checks} checks passed")
    sys.exit(1 if check.failures else 0)


if __name__ == "__main__":
    main()
