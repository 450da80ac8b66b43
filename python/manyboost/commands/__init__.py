"""The verbs of the command line, one module each.

A module has ``SUMMARY`` (one line), ``configure(parser)`` and ``run(arguments)``; it is entered
in :data:`manyboost.cli.VERBS`. Whatever is slow to import is imported in ``run``.
"""

from __future__ import annotations

import argparse
import difflib
import io
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TextIO


class UsageError(Exception):
    """The command was not understood; the message says what to write instead."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a message that says how to go on."""


def show(text: str = "") -> None:
    """Write a line of the result to standard output."""
    sys.stdout.write(f"{text}\n")


def tell(text: str) -> None:
    """Write a line about the work to standard error."""
    sys.stderr.write(f"{text}\n")


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that begins with what there is not.

    Examples
    --------
    >>> nearest("freidman", ["friedman", "multilabel"])
    "did you mean 'friedman'?"
    >>> nearest("x", ["friedman", "multilabel"])
    'there are friedman, multilabel.'
    """
    names = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    if close:
        return f"did you mean {names[close[0]]!r}?"
    shown, most = list(names.values()), 20
    more = f" and {len(shown) - most:,} more" if len(shown) > most else ""
    return f"there are {', '.join(shown[:most])}{more}."


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not known, and suggest one that is."""
    known = list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            raise UsageError(f"There is no {kind} {name!r}; {nearest(name, known)}")


def patterns(option: str, wanted: Iterable[str], known: Sequence[str], place: str) -> list[int]:
    """Places of names, or of all that match a shell pattern where nothing is called so.

    Examples
    --------
    >>> patterns("--target", ["y*", "a"], ["a", "y1", "y2"], "train.csv")
    [1, 2, 0]
    """
    found: dict[int, None] = {}
    for pattern in wanted:
        exact = [i for i, name in enumerate(known) if name == pattern]
        matches = exact or [i for i, name in enumerate(known) if fnmatchcase(name, pattern)]
        if not matches:
            raise UsageError(
                f"{option} {pattern!r} matches no column of {place}; {nearest(pattern, known)}"
            )
        found.update(dict.fromkeys(matches))
    return list(found)


def count(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "row"), count(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def written(path: str | None) -> Iterator[TextIO]:
    """Open a file for text, which appears whole or not at all; None or ``-`` is standard output."""
    if path is None or path == "-":
        yield sys.stdout
        return
    from manyboost.persistence.files import replacing

    with replacing(path) as file:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield stream
        stream.detach()


def check_output(output: str | None, *inputs: str | None) -> None:
    """Refuse an output file that is also read, under any name or link."""
    from manyboost.persistence.files import same_regular_file

    if output is not None and same_regular_file(output, filter(None, inputs)) is not None:
        raise UsageError(f"-o {output!r} is a file that is read; name another file to write to.")


# ------------------------------------------------------------------ types of arguments


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError("give at least one name")
    return found


def positive_int(text: str) -> int:
    """A whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def positive_float(text: str) -> float:
    """A number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number
