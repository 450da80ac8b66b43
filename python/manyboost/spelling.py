"""Suggestions for names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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


def listing(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """Return quoted names, the first few if there are many.

    Examples
    --------
    >>> listing(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
