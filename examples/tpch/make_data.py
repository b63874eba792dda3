#!/usr/bin/env python3
"""Makes the four lineitem columns of TPC-H query 6 as raw little-endian integer files.

tpchgen-cli generates lineitem as Parquet; pyarrow reads it back row group by row group. Dates become
i32 days since 1970-01-01, the decimals i64 in hundredths, which is exact because their scale is 2 (a
file with any other scale is refused). manifest.json is written last: a folder that has one which fits
is complete, and a second run does nothing.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import sysconfig
import time

FORMAT = 1
DECIMAL_SCALE = 2
COLUMNS = {
    "l_shipdate": {"file": "l_shipdate.i32", "type": "i32", "unit": "days since 1970-01-01"},
    "l_discount": {"file": "l_discount.i64", "type": "i64", "scale": 10**DECIMAL_SCALE},
    "l_quantity": {"file": "l_quantity.i64", "type": "i64", "scale": 10**DECIMAL_SCALE},
    "l_extendedprice": {"file": "l_extendedprice.i64", "type": "i64", "scale": 10**DECIMAL_SCALE},
}
BYTES = {"i32": 4, "i64": 8}


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(text):
    say(f"make_data: error: {text}")
    sys.exit(1)


def complete(folder, scale_factor):
    """The manifest of `folder` if it describes this scale factor and every column file is whole."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        if manifest["format"] != FORMAT or manifest["scale_factor"] != scale_factor:
            return None
        if manifest["columns"] != COLUMNS:
            return None
        for column in COLUMNS.values():
            if (folder / column["file"]).stat().st_size != manifest["rows"] * BYTES[column["type"]]:
                return None
        return manifest
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_generator():
    """tpchgen-cli of this Python's environment, else of PATH."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    return str(beside) if beside.exists() else "tpchgen-cli"


def generate(folder, scale_factor):
    """Writes lineitem.parquet into `folder`; returns the generator's name and version."""
    tool = find_generator()
    try:
        version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
        subprocess.run([tool, "parquet", f"--scale-factor={scale_factor:g}", "--tables=lineitem",
                        f"--output-dir={folder}", "--overwrite", "--quiet"], check=True)
    except FileNotFoundError:
        fail("tpchgen-cli was not found; run scripts/setup.sh and use the Python in .cache/venv")
    except subprocess.CalledProcessError as error:
        fail(f"tpchgen-cli ended with status {error.returncode}: {error.stderr or 'see above'}")
    return version.stdout.strip()


def check_schema(schema):
    import pyarrow as pa

    for name, column in COLUMNS.items():
        if schema.get_field_index(name) < 0:
            fail(f"the generated file has no column {name}")
        kind = schema.field(name).type
        if column["type"] == "i32":
            if kind != pa.date32():
                fail(f"{name} is {kind}; date32 is expected")
        elif not pa.types.is_decimal128(kind) or kind.scale != DECIMAL_SCALE:
            fail(f"{name} is {kind}; a decimal128 of scale {DECIMAL_SCALE} is expected")


def integers(array, column):
    """The values of one Arrow array as little-endian integers: days, or unscaled decimals."""
    import numpy as np

    name, kind = column["file"], column["type"]
    if array.null_count:
        fail(f"{name} would hold {array.null_count} nulls; lineitem has none")
    values = np.frombuffer(array.buffers()[1], dtype="<i4" if kind == "i32" else "<i8")
    if kind == "i32":
        return values[array.offset : array.offset + len(array)]
    words = values[2 * array.offset : 2 * (array.offset + len(array))]  # 128 bits: low, high
    low, high = words[0::2], words[1::2]
    if not np.array_equal(low >> 63, high):
        fail(f"a value of {name} does not fit into 64 bits")
    return np.ascontiguousarray(low)


def convert(parquet, folder):
    """Appends every row group's columns to the raw files; returns the number of rows."""
    import pyarrow.parquet as pq

    source = pq.ParquetFile(parquet)
    check_schema(source.schema_arrow)
    partial = {name: folder / (column["file"] + ".partial") for name, column in COLUMNS.items()}
    files = {name: open(path, "wb") for name, path in partial.items()}
    groups, told = source.num_row_groups, -1
    rows = 0
    try:
        for group in range(groups):
            table = source.read_row_group(group, columns=list(COLUMNS))
            for name, column in COLUMNS.items():
                for chunk in table.column(name).chunks:
                    files[name].write(integers(chunk, column).tobytes())
            rows += table.num_rows
            tenth = 10 * (group + 1) // groups
            if tenth != told:
                say(f"  converted {100 * (group + 1) // groups:3d}%  {rows:,} rows")
                told = tenth
    finally:
        for file in files.values():
            file.close()
    if rows != source.metadata.num_rows:
        fail(f"read {rows} rows of {source.metadata.num_rows}")
    for name, path in partial.items():
        path.replace(folder / COLUMNS[name]["file"])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=pathlib.Path, help="folder for the column files")
    parser.add_argument("--scale-factor", type=float, default=1.0, metavar="SF",
                        help="TPC-H scale factor; 1 is six million rows, 168 MB (default: 1)")
    parser.add_argument("--keep", action="store_true", help="keep the Parquet file")
    arguments = parser.parse_args()
    if not arguments.scale_factor > 0:
        fail("--scale-factor must be above 0")
    folder, scale_factor = arguments.output, arguments.scale_factor

    parquet = folder / "lineitem.parquet"
    manifest = complete(folder, scale_factor)
    if manifest and (not arguments.keep or parquet.exists()):
        say(f"make_data: {folder} already holds scale factor {scale_factor:g}, "
            f"{manifest['rows']:,} rows")
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").unlink(missing_ok=True)

    start = time.monotonic()
    say(f"make_data: generating lineitem at scale factor {scale_factor:g}")
    generator = generate(folder, scale_factor)
    say(f"make_data: generated in {time.monotonic() - start:.1f} s; converting four columns")
    rows = convert(parquet, folder)
    if not arguments.keep:
        parquet.unlink()
    manifest = {"format": FORMAT, "rows": rows, "scale_factor": scale_factor,
                "byte_order": "little", "generator": generator, "columns": COLUMNS}
    partial = folder / "manifest.json.partial"
    partial.write_text(json.dumps(manifest, indent=2) + "\n")
    partial.replace(folder / "manifest.json")
    say(f"make_data: {rows:,} rows in {folder} after {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
