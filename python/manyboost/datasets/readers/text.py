"""Lines of text files, plain or gzip-compressed, and errors that say which line is meant."""

from __future__ import annotations

import gzip
import math
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

PathLike: TypeAlias = str | os.PathLike[str]

#: Stands for standard input where lines of text are read.
STDIN = Path("-")

_GZIP_MAGIC = b"\x1f\x8b"
_ENDINGS = (
    ".gz", ".arff", ".csv", ".tsv", ".parquet", ".pq", ".npz", ".svm", ".svmlight", ".libsvm",
    ".txt",
)  # fmt: skip


class LineError(ValueError):
    """A line of a file is not what the format asks for."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{file_name(path)}, line {line}: {what}")


def file_name(path: Path) -> str:
    """Return what errors call a file."""
    return "standard input" if path == STDIN else path.name


def numbered_lines(path: Path, encoding: str = "utf-8-sig") -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1; line ends are kept.

    The default encoding is UTF-8, whether or not the file begins with a byte order mark. The path
    ``-`` is standard input.
    """
    number = 0
    try:
        with _opened(path) as file, _decompressed(file) as lines:
            for number, raw in enumerate(lines, start=1):
                # Only the first line can carry the mark.
                yield number, raw.decode(encoding if number == 1 else encoding.removesuffix("-sig"))
    except UnicodeDecodeError as error:
        raise LineError(
            path, number, f"the text is not {error.encoding}; pass the encoding of the file."
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise LineError(
            path, number + 1, "the gzip stream is damaged or cut short; get the file again."
        ) from None


def _opened(path: Path) -> AbstractContextManager[Any]:
    return nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb")


def _decompressed(file: Any) -> AbstractContextManager[Any]:
    # (Looking ahead takes nothing from standard input.)
    return gzip.open(file) if file.peek(2)[:2] == _GZIP_MAGIC else nullcontext(file)


def number(text: str) -> float:
    """Read a finite decimal number; anything else, "nan" and "1_000" included, is an error."""
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError(text)
    return value


def stem(path: PathLike) -> str:
    """Return the name of a file without the endings of the formats read here."""
    name = Path(path).name
    while name.lower().endswith(_ENDINGS) and "." in name[1:]:
        name = name[: name.rindex(".")]
    return name
