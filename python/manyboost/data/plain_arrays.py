"""Arrays of any kind as arrays of plain numbers: masked ones, objects, text, dates.

What is missing (masked, None, pandas.NA) becomes NaN; what is not a number is refused by the place
where it stands, instead of what NumPy makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Makes an error of a place (row, or row and column), what it holds, and the rest of the sentence.
Holds = Callable[[tuple[int, ...], str, str], ValueError]


def unmasked(values: Any) -> NDArray[Any]:
    """Return an array with NaN in masked places, None if it does not hold numbers."""
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    mask, data = np.ma.getmaskarray(values), np.asarray(values.data)
    if mask.dtype != bool or not mask.any():
        return data
    if data.dtype.kind in "biuf":
        return np.where(mask, np.nan, data)
    objects = data.astype(object)
    objects[mask] = None
    return objects


def stacked(rows: Any, name: str) -> NDArray[Any]:
    """Return lists, or lists of lists, as an array; refuse those that do not make one."""
    try:
        return unmasked(rows)
    except ValueError:
        raise ValueError(
            f"{name} is a list of rows that do not make a table; every row must hold the same "
            "number of values."
        ) from None


def plain_numbers(values: NDArray[Any], name: str, holds: Holds, remedy: str) -> NDArray[Any]:
    """Return an array of floats, integers or truth values for one of any kind.

    ``holds(place, what, rest)`` makes the error for a value that is not a number.
    """
    values = unmasked(values)
    refuse_type(values, name)
    if values.dtype.kind in "SU" or (values.dtype == object and _has_text(values)):
        place = _first_text(values)
        text = values[place]
        if not _is_word(text):
            remedy = "turn it into numbers with astype(float)"
        raise holds(place, f"text ({str(text)!r})", f", not numbers; {remedy}.")
    if values.dtype == object:
        return _floats(values, holds, remedy)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        # (What is beyond double precision becomes infinite, and is refused as such.)
        with np.errstate(over="ignore"):
            return values.astype(np.float64)
    return values


def refuse_type(values: NDArray[Any], name: str) -> None:
    """Refuse arrays of a type that could be taken for numbers."""
    if values.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds {values.dtype} values, not numbers; turn them into numbers, such as the "
            "days since a date."
        )
    if values.dtype.kind == "c":
        # scikit-learn's words, which its checks look for, and ours.
        raise ValueError(
            f"Complex data not supported: {name} holds {values.dtype} values; pass their real and "
            "imaginary parts, or what else matters of them, as columns of their own."
        )
    if values.dtype.kind == "V":
        raise ValueError(
            f"{name} is an array of records ({values.dtype}); pass an array of numbers, with a "
            "column for each field."
        )


def as_float(value: Any) -> float | None:
    """Return a number of any type, NaN if it is missing, None if it is something else.

    OverflowError: it is a number, but none of double precision.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return float("nan")
    if isinstance(value, np.generic | np.ndarray) and (
        value.ndim or value.dtype.kind not in "biuf"
    ):
        return None
    if isinstance(value, str | bytes) or not hasattr(type(value), "__float__"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _floats(values: NDArray[Any], holds: Holds, remedy: str) -> NDArray[np.float64]:
    floats = np.empty(values.size, np.float64)
    for k, value in enumerate(values.ravel()):
        try:
            number = as_float(value)
        except OverflowError:
            what = "a number beyond double precision (1.8e308)"
            raise holds(_place(k, values), what, "; divide it by a constant.") from None
        if number is None:
            what = f"{type(value).__name__} values (such as {str(value)[:50]!r})"
            # The type and the last words are those that scikit-learn's checks look for.
            rest = f", not numbers; {remedy}, since an argument must be a string or a real number."
            raise TypeError(str(holds(_place(k, values), what, rest)))
        floats[k] = number
    return floats.reshape(values.shape)


def _place(k: int, values: NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.unravel_index(k, values.shape))


def _has_text(values: NDArray[Any]) -> bool:
    return any(issubclass(each, str | bytes) for each in set(map(type, values.ravel().tolist())))


def _first_text(values: NDArray[Any]) -> tuple[int, ...]:
    """Place of the first text, column by column, rather one that does not spell a number."""
    for is_wanted in (_is_word, lambda value: isinstance(value, str | bytes)):
        places = np.argwhere(np.vectorize(is_wanted, otypes=[bool])(values).T)
        if len(places):
            return tuple(int(k) for k in places[0][::-1])
    raise AssertionError("there is no text")


def _is_word(value: Any) -> bool:
    """Whether a value is a text that does not spell a number."""
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False
