"""Names that users write: the nearest known name, and columns chosen by name or pattern."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any


def column_name(j: int, names: Any = None) -> str:
    """Return what an error calls a feature or an output: its name, or its number without names."""
    return str(j) if names is None else repr(str(names[j]))


def nearest(name: Any, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, whatever the case, or None.

    Examples
    --------
    >>> nearest("Freidman", ["friedman", "multilabel"])
    'friedman'
    """
    # Of names that differ only in case, the first one stays.
    lower = {each.lower(): each for each in reversed(list(known))}
    close = difflib.get_close_matches(str(name).lower(), lower, n=1)
    return lower[close[0]] if close else None


def did_you_mean(name: Any, known: Iterable[str], otherwise: str | None = None) -> str:
    """Return the end of an error about an unknown name: a suggestion, or what is known.

    Examples
    --------
    >>> did_you_mean("freidman", ["friedman", "multilabel"])
    "did you mean 'friedman'?"
    >>> did_you_mean("x", ["friedman", "multilabel"])
    'there are friedman, multilabel.'
    """
    known = list(known)
    likely = nearest(name, known)
    if likely is not None:
        return f"did you mean {likely!r}?"
    return f"{listing(known)}." if otherwise is None else otherwise


def listing(names: Sequence[str], most: int = 20) -> str:
    """Return what there is, at most so many names of it."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"there are {', '.join(names[:most])}{more}"


class UnknownColumn(ValueError):
    """A name or pattern matches no column."""


def select(wanted: str | Iterable[str], names: Sequence[str], file: str, what: str) -> list[int]:
    """Return the indices of columns, by name or else by shell pattern, in the order asked for.

    ``what`` introduces the pattern in an error, such as ``targets=``.

    Examples
    --------
    >>> select(["y*", "a"], ["a", "y1", "y2"], "train.csv", "targets=")
    [1, 2, 0]
    """
    found: dict[int, None] = {}
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        exact = [j for j, name in enumerate(names) if name == pattern]
        matches = exact or [j for j, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not matches:
            hint = did_you_mean(pattern, names)
            raise UnknownColumn(f"{what}{pattern!r} matches no column of {file}; {hint}")
        found.update(dict.fromkeys(matches))
    return list(found)
