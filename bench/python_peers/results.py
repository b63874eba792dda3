"""The file of results: rows by their keys, written by a rename."""

import json
import os


def save(path, content):
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
    os.replace(temporary, path)


def row_key(row):
    case = (row["op"], row["dtype"], row["out_dtype"], row["n"], row["segment"], bool(row.get("cached")))
    return (*case, row["impl"], row["plan_kind"])


def is_done(row):
    return row is not None and row.get("ms") is not None and not row.get("void")


class Rows:
    """The rows of a file, of which peers add and replace their own."""

    def __init__(self, rows):
        self.rows = rows
        self.index = {row_key(row): i for i, row in enumerate(rows) if row["plan_kind"] == ""}

    def done(self, case, impl):
        at = self.index.get((*case.key(), impl, ""))
        return at is not None and is_done(self.rows[at])

    def put(self, row):
        key = row_key(row)
        if key in self.index:
            self.rows[self.index[key]] = row
        else:
            self.index[key] = len(self.rows)
            self.rows.append(row)
