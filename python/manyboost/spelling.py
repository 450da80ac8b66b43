"""Names and numbers that users give, and suggestions for names that do not exist."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable, Mapping
from typing import Any


def nearest(name: str, known: Iterable[str], most: int = 20) -> str:
    """Return the end of a sentence about an unknown name: a suggestion, or the known names.

    Examples
    --------
    >>> nearest("freidman", ["friedman", "multilabel"])
    "did you mean 'friedman'?"
    >>> nearest("x", ["friedman", "multilabel"])
    "available: 'friedman', 'multilabel'."
    """
    names = list(known)
    likely = closest(name, names)
    if likely is not None:
        return f"did you mean {likely!r}?"
    return f"available: {listing(names, most)}."


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another one in any case, or None.

    Examples
    --------
    >>> closest("cal500", ["CAL500", "yeast"])
    'CAL500'
    """
    names = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return names[close[0]] if close else None


def number_of(
    argument: str, given: Any, thing: str, n_things: int, places: Mapping[str, int] | None
) -> int:
    """Return the number of a feature or output that an argument gives by name or number.

    ``thing`` is "feature" or "output"; ``places`` are the numbers of the names.
    """
    data = "X" if thing == "feature" else "y"
    if isinstance(given, str):
        if places is None:
            raise ValueError(
                f"{argument} names the {thing} {given!r}, but {data} has no {thing} names; give "
                f"its number from 0 to {n_things - 1}, or fit on a data frame."
            )
        if given not in places:
            raise ValueError(
                f"{argument} names the {thing} {given!r}, which {data} does not have; "
                f"{nearest(given, places)}"
            )
        return places[given]
    if isinstance(given, bool) or not isinstance(given, numbers.Integral):
        raise ValueError(
            f"{argument} has {given!r} in place of {'a' if data == 'X' else 'an'} {thing}; give "
            "its number or its name."
        )
    if not 0 <= int(given) < n_things:
        raise ValueError(
            f"{argument} has the {thing} {given}; {data} has the {thing}s 0 to {n_things - 1}."
        )
    return int(given)


def listing(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """Return quoted names, the first few if there are many.

    Examples
    --------
    >>> listing(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
