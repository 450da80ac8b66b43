"""Names of files, text files, plain or gzip-compressed, and errors that say which line is meant."""

from __future__ import annotations

import codecs
import gzip
import io
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

#: Formats by the ending of the file name, without that of compression.
ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".arff": "arff",
    ".npz": "npz", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip


class TextFile:
    """The lines of a file, with their ends; ``line`` is the number of the current one, from 1.

    A byte order mark at the beginning is left out.
    """

    def __init__(self, path: PathLike, encoding: str = "utf-8-sig") -> None:
        self.path, self.name, self.line = Path(path), file_name(path), 0
        self._encoding = known_encoding(encoding).removesuffix("-sig")

    def __iter__(self) -> Iterator[str]:
        encoding = self._encoding
        try:
            with _opened(self.path) as file, _decompressed(file) as lines:
                if encoding.startswith(("utf-16", "utf-32")):
                    # Ends of lines have two bytes.
                    lines = io.TextIOWrapper(lines, encoding, newline="\n")
                for self.line, raw in enumerate(lines, start=1):
                    text = raw if isinstance(raw, str) else raw.decode(encoding)
                    yield text.removeprefix("\ufeff") if self.line == 1 else text
        except UnicodeError:
            others = [each for each in ("utf-8", "cp1252", "utf-16") if each != encoding][:2]
            what = f"the text is not {encoding}; pass the encoding of the file"
            raise self.error(f"{what}, such as {' or '.join(others)}.", self.line or 1) from None
        except (EOFError, gzip.BadGzipFile, zlib.error):
            what = "the gzip stream is damaged or cut short; get the file again."
            raise self.error(what, self.line + 1) from None

    def error(self, what: str, line: int | None = None) -> ValueError:
        """Return an error about a line, by default the current one."""
        return ValueError(f"{self.name}, line {self.line if line is None else line}: {what}")


def _opened(path: Path) -> AbstractContextManager[Any]:
    if path != STDIN:
        return path.open("rb")
    if sys.stdin is None:
        raise ValueError("Standard input is closed; pass the name of a file.")
    return nullcontext(sys.stdin.buffer)


def _decompressed(file: Any) -> AbstractContextManager[Any]:
    # Looking ahead takes nothing from standard input.
    return gzip.open(file) if file.peek(2)[:2] == b"\x1f\x8b" else nullcontext(file)


def known_encoding(name: str) -> str:
    """Return the usual name of an encoding of text; refuse others."""
    try:
        "".encode(name)  # some codecs are no encodings of text
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        what = f"encoding {name!r} is not known"
        raise ValueError(f"{what}; use a name such as utf-8, cp1252, latin-1 or utf-16.") from None


def check_delimiter(text: str) -> str:
    """Return the character between cells of a CSV file; refuse what cannot be one."""
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        what = f"delimiter {text!r} cannot separate cells"
        raise ValueError(f"{what}; use one character of ASCII, such as ; or a tab.")
    return text


def file_name(path: PathLike) -> str:
    """Return what errors call a file."""
    return "standard input" if Path(path) == STDIN else Path(path).name


def format_of(path: PathLike) -> str | None:
    """Return the format that the ending of a file stands for, if any; standard input is CSV."""
    if Path(path) == STDIN:
        return "csv"
    endings = [ending for ending in Path(path).suffixes if ending.lower() != ".gz"]
    return ENDINGS.get(endings[-1].lower()) if endings else None


def number(text: str) -> float:
    """Read a decimal number or "inf"; anything else, "nan" and "1_000" included, is an error."""
    value = float(text)
    # (1e400 is no infinite number, but one that is beyond double precision.)
    is_beyond = math.isinf(value) and "inf" not in text.lower()
    if math.isnan(value) or is_beyond or "_" in text:
        raise ValueError(text)
    return value


def excerpt(text: str) -> str:
    """Quote text of a file, shortened to fit a message."""
    return repr(text if len(text) <= 40 else text[:39] + "…")


def set_name(path: PathLike, name: str | None = None) -> str:
    """Return the name of a data set: by default that of its file, without known endings."""
    if name is None:
        name = Path(path).name
        while Path(name).suffix.lower() in (*ENDINGS, ".gz", ".txt"):
            name = Path(name).stem
    return name
