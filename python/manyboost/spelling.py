"""Names and numbers that users give, and suggestions for names that do not exist."""

from __future__ import annotations

import difflib
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Characters of a name that are shown in a list.
_LONG = 60
#: Names that are listed where none is likely, and questions that are asked at once.
_MOST_NAMES, _MOST_PAIRS = 20, 5


def nearest(name: str, known: Iterable[str], other: str | None = None) -> str:
    """Return the end of a sentence about an unknown name: a suggestion, or the known names.

    ``other`` says what else would do.

    >>> nearest("freidman", ["friedman", "multilabel"])
    "did you mean 'friedman'?"
    >>> nearest("x", ["friedman", "multilabel"])
    "available: 'friedman', 'multilabel'."
    """
    names = list(known)
    likely = closest(name, names)
    if likely:
        return f"did you mean {likely!r}?"
    return f"available: {listing(names, _MOST_NAMES)}{f', or {other}' if other else ''}."


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another one, or None.

    Upper and lower case and the signs between words do not matter. Names are alike by their
    letters; else by their words, in any order; else if one contains the other.

    >>> closest("cal500", ["CAL500", "yeast"])
    'CAL500'
    >>> closest("temp_avg", ["avg temp", "temp_max"])
    'avg temp'
    >>> closest("annual_income", ["age", "income"])
    'income'
    """
    words = {each: re.findall(r"[^\W_]+", each.lower()) for each in [name, *known]}
    wanted = words.pop(name)
    joined = {"".join(parts): each for each, parts in reversed(words.items())}
    for each, parts in words.items():
        if sorted(parts) == sorted(wanted):
            return each
    if close := difflib.get_close_matches("".join(wanted), joined, n=1):
        return joined[close[0]]
    parts_of = (each for each, parts in words.items() if _contain(parts, wanted))
    return next(parts_of, None)


def _contain(some: list[str], others: list[str]) -> bool:
    """Whether one of two lists of words has all words of the other, and these are no numbers."""
    few, many = sorted([set(some), set(others)], key=len)
    return few <= many and any(not word.isdigit() and len(word) > 1 for word in few)


def likely_pairs(unknown: Iterable[str], missing: Iterable[str]) -> str | None:
    """Return a question whether missing names were meant by unknown ones, if some are alike.

    >>> likely_pairs(["hieght", "x"], ["height", "weight"])
    "did you mean 'height' for 'hieght'?"
    """
    left, meant = list(missing), []
    for each in unknown:
        if (likely := closest(each, left)) is not None:
            left.remove(likely)
            meant.append(f"{likely!r} for {each!r}")
    return f"did you mean {', '.join(meant[:_MOST_PAIRS])}?" if meant else None


def number_of(
    argument: str, given: Any, thing: str, n_things: int, places: Mapping[str, int] | None
) -> int:
    """Return the number of a feature or output that an argument gives by name or number.

    ``thing`` is "feature" or "output"; ``places`` are the numbers of the names.
    """
    data = "X" if thing == "feature" else "y"
    if isinstance(given, str):
        if places is None:
            what = f"{argument} names the {thing} {given!r}, but {data} has no {thing} names"
            remedy = f"give its number from 0 to {n_things - 1}, or fit on a data frame."
            raise ValueError(f"{what}; {remedy}")
        if given not in places:
            what = f"{argument} names the {thing} {given!r}, which {data} does not have"
            raise ValueError(f"{what}; {nearest(given, places)}")
        return places[given]
    if isinstance(given, bool) or not isinstance(given, numbers.Integral):
        what = f"{argument} has {given!r} in place of {'a' if data == 'X' else 'an'} {thing}"
        raise ValueError(f"{what}; give its number or its name.")
    if not 0 <= int(given) < n_things:
        known = f"{data} has the {thing}s 0 to {n_things - 1}."
        raise ValueError(f"{argument} has the {thing} {given}; {known}")
    return int(given)


def listing(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """Return quoted names, the first few if there are many, and the beginning of long ones.

    >>> listing(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(_quoted(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _quoted(name: Any) -> str:
    is_long = isinstance(name, str) and len(name) > _LONG
    return repr(f"{name[: _LONG - 1]}…" if is_long else name)
