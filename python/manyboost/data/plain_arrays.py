"""Arrays of any type as arrays of plain numbers: masked arrays, objects, text, dates.

Missing values (masked, None, pandas.NA) become NaN. Anything that is not a number is refused with
its position, before NumPy can turn it into something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.data.cells import cell_error


def unmasked(values: Any) -> NDArray[Any]:
    """Return an array with NaN, or None in an array without numbers, for masked values."""
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
    """Return an array for a list, or a list of lists of the same length."""
    try:
        return unmasked(rows)
    except ValueError:
        raise ValueError(
            f"{name} is a list of rows that do not make a table; every row must hold the same "
            "number of values."
        ) from None


def plain_numbers(
    values: NDArray[Any], name: str, remedy: str, *, by_column: bool = False
) -> NDArray[Any]:
    """Return an array of floats, integers or booleans for an array of any type.

    ``remedy`` ends the error about a value that is not a number. ``by_column`` makes the error
    name the column of the value instead of its row and output.
    """
    values = unmasked(values)
    refuse_type(values, name)

    def error(place: tuple[int, ...], what: str, rest: str) -> ValueError:
        if by_column:
            return ValueError(f"Column {place[1]} of {name} holds {what}{rest}")
        problem = f"{name} holds {what}"
        return cell_error(name, problem, place, rest) if place else ValueError(problem + rest)

    if values.dtype.kind in "SU" or (values.dtype == object and _has_text(values)):
        place = _first_text(values)
        text = values[place]
        if not _is_word(text):
            remedy = "turn it into numbers with astype(float)"
        raise error(place, f"text ({str(text)!r})", f", not numbers; {remedy}.")
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        # Values beyond double precision become infinite, which is refused later.
        with np.errstate(over="ignore"):
            return values.astype(np.float64)
    if values.dtype != object:
        return values
    floats = np.empty(values.shape, np.float64)
    for place, value in np.ndenumerate(values):
        try:
            number = as_float(value)
        except OverflowError:
            what = "a number beyond double precision (1.8e308)"
            raise error(place, what, "; divide it by a constant.") from None
        if number is None:
            what = f"{type(value).__name__} values (such as {str(value)[:50]!r})"
            # scikit-learn's checks look for this type of error and these last words.
            rest = f", not numbers; {remedy}, since an argument must be a string or a real number."
            raise TypeError(str(error(place, what, rest)))
        floats[place] = number
    return floats


def refuse_type(values: NDArray[Any], name: str) -> None:
    """Refuse arrays of a type that could be mistaken for numbers."""
    if values.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds {values.dtype} values, not numbers; turn them into numbers, such as the "
            "days since a date."
        )
    if values.dtype.kind == "c":
        # scikit-learn's checks look for the first four words.
        raise ValueError(
            f"Complex data not supported: {name} holds {values.dtype} values; pass their real and "
            "imaginary parts as separate columns."
        )
    if values.dtype.kind == "V":
        raise ValueError(
            f"{name} is an array of records ({values.dtype}); pass an array of numbers, with a "
            "column for each field."
        )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    differs_from_itself = value != value
    return isinstance(differs_from_itself, bool | np.bool_) and bool(differs_from_itself)


def as_float(value: Any) -> float | None:
    """Return a number of any type as a float, NaN if it is missing, None if it is no number.

    A number beyond double precision raises OverflowError.
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


def _has_text(values: NDArray[Any]) -> bool:
    return any(issubclass(each, str | bytes) for each in set(map(type, values.ravel().tolist())))


def _first_text(values: NDArray[Any]) -> tuple[int, ...]:
    """Return the index of the first text, column by column; prefer one that spells no number."""
    for is_wanted in (_is_word, lambda value: isinstance(value, str | bytes)):
        places = np.argwhere(np.vectorize(is_wanted, otypes=[bool])(values).T)
        if len(places):
            return tuple(int(k) for k in places[0][::-1])
    raise AssertionError("there is no text")


def _is_word(value: Any) -> bool:
    """Whether a value is text that does not spell a number."""
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False
