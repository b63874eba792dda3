"""Reads files of results; what cannot be used says so in a line."""

import json
import re
import sys


class Unusable(Exception):
    """A file or a library that is not what the script needs; the text names it and the fix."""


def load(path):
    """Head and rows, as `chainfold_bench --out` wrote them."""
    fix = "name a file that chainfold_bench wrote with --out"
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as problem:
        raise Unusable(f"{path} cannot be read: {problem.strerror}; {fix}") from problem
    except ValueError as problem:  # of JSON or of UTF-8
        raise Unusable(f"{path} is not JSON ({problem}); {fix}") from problem
    head = content.get("head") if isinstance(content, dict) else None
    if not isinstance(head, dict) or "suite" not in head or not isinstance(content.get("rows"), list):
        raise Unusable(f"{path} is no file of results: it has no head or no rows; {fix}")
    return content


def run(main, arguments):
    """The exit status of main(arguments): 1 behind a line on stderr where something cannot be used, 2 where
    an expression is wrong."""
    try:
        return main(arguments)
    except Unusable as problem:
        print(f"error: {problem}", file=sys.stderr)
    except OSError as problem:
        print(f"error: {problem.filename}: {problem.strerror}; name a file that can be read and written", file=sys.stderr)
    except re.error as problem:
        print(f"error: '{problem.pattern}' is no regular expression: {problem}", file=sys.stderr)
        return 2
    return 1
