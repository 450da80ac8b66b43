"""What verbs print and write: lines, tables, files."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from manyboost.commands.usage import UsageError

_NUMBER = re.compile(r"-|-?[\d,.]+(e[+-]\d+)?")


def show(text: str) -> None:
    """Write a line of the result to standard output."""
    sys.stdout.write(f"{text}\n")


def tell(text: str, *, quiet: bool = False) -> None:
    """Write a line about the progress to standard error, unless the user wants none."""
    if not quiet:
        sys.stderr.write(f"{text}\n")


def count(number: int, noun: str) -> str:
    """Return a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out rows below a header: text to the left, numbers to the right.

    Examples
    --------
    >>> print(table(["output", "r2"], [["heat", 0.91], ["cold", -12.5]]))
    output       r2
    heat     0.9100
    cold   -12.5000
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    aligned = []
    for name, *cells in zip(header, *texts, strict=True):
        side = ">" if all(map(_NUMBER.fullmatch, cells)) else "<"
        aligned.append(f"{side}{max(map(len, [name, *cells]))}")
    lines = (map(format, cells, aligned) for cells in (header, *texts))
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return "-" if cell != cell else f"{cell:.4f}" if abs(cell) < 1e5 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def as_json(value: Any) -> str:
    """Return JSON; NaN is null, and other values without a form in JSON are shown as in Python."""
    return json.dumps(_plain(value), indent=2)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value if isinstance(value, str | int | float | None) else repr(value)


@contextmanager
def written(path: str | None) -> Iterator[TextIO]:
    """Open a text file that appears complete or not at all; None or ``-`` is standard output."""
    if path is None or path == "-":
        yield sys.stdout
        return
    from manyboost.persistence.files import replacing

    with replacing(path) as file:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield stream
        stream.detach()


def check_output(output: str | None, *inputs: str | None) -> None:
    """Refuse an output file that cannot be written, or that is also read under any name or link."""
    from manyboost.persistence.files import same_regular_file

    if output is None or output == "-":
        return
    path = Path(output).resolve()
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {str(Path(output).parent)!r} to write to.")
    problem = None
    if path.is_dir():
        problem = "is a folder"
    elif (path.is_file() or not path.exists()) and not os.access(path.parent, os.W_OK):
        problem = "is in a folder that cannot be written to"
    elif same_regular_file(output, filter(None, inputs)) is not None:
        problem = "is a file that is read"
    if problem is not None:
        raise UsageError(f"-o {output!r} {problem}; name another file to write to.")
