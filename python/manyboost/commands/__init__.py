"""The verbs of the command line, one module each.

A module has ``SUMMARY`` (one line), ``configure(parser)`` and ``run(arguments)``; it is entered
in :data:`manyboost.cli.VERBS`. Whatever is slow to import is imported in ``run``.
"""

from __future__ import annotations

import argparse
import difflib
import math
import sys
from collections.abc import Iterable


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
    return f"there are {', '.join(names.values())}."


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not known, and suggest one that is."""
    known = list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            raise UsageError(f"There is no {kind} {name!r}; {nearest(name, known)}")


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
