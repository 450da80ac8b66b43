"""Arrays of any type as arrays of plain numbers; what is missing (None, masked) becomes NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64
from manyboost.data.cells import cell_error


def unmasked(values: Any) -> NDArray[Any]:
    """Return an array with NaN, or None in an array without numbers, for masked values.

    Text of NumPy's StringDType becomes objects, which all else knows.
    """
    is_masked = isinstance(values, np.ma.MaskedArray)
    data = np.asarray(values.data if is_masked else values)
    data = data.astype(object) if data.dtype.kind == "T" else data
    mask = np.ma.getmaskarray(values) if is_masked else np.False_
    if mask.dtype != bool or not mask.any():
        return data
    missing: Any = np.nan if data.dtype.kind in "biuf" else None
    return np.where(mask, missing, data)


def unchanged(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array of labels, of objects if floats would change whole numbers beside them."""
    array = np.array(values)
    if array.dtype.kind != "f" or array.tolist() == list(values):
        return array
    return np.fromiter(values, object, len(values))


def stacked(rows: Any, name: str) -> NDArray[Any]:
    """Return an array for a list, or a list of lists of the same length."""
    try:
        return unmasked(rows)
    except ValueError:
        problem = f"{name} is a list of rows that do not make a table"
        raise ValueError(f"{problem}; every row must hold the same number of values.") from None


def plain_numbers(
    values: NDArray[Any], name: str, remedy: str, *, by_column: bool = False
) -> NDArray[Any]:
    """Return numbers or booleans for an array of any type; ``remedy`` is what to do about others.

    Errors name the row and output of a value, or with ``by_column`` its column.
    """
    values = unmasked(values)
    refuse_type(values, name)

    def error(place: tuple[int, ...], what: str, rest: str) -> ValueError:
        if by_column:
            return ValueError(f"Column {place[1]} of {name} holds {what}{rest}")
        problem = f"{name} holds {what}"
        return cell_error(name, problem, place, rest) if place else ValueError(problem + rest)

    types = set(map(type, values.ravel().tolist())) if values.dtype == object else set()
    if values.dtype.kind in "SU" or any(issubclass(each, str | bytes) for each in types):
        place = _first_text(values)
        text = values[place]
        if not _is_word(text):
            remedy = "turn it into numbers with astype(float)"
        raise error(place, f"text ({str(text)!r})", f", not numbers; {remedy}.")
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        # Values beyond double precision become infinite.
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


def dense_floats(values: Any, name: str, empty_cells: str) -> F64:
    """Return weights or offsets as an aligned array."""
    refuse_sparse(values, name, empty_cells)
    plain = plain_numbers(stacked(values, name), name, "pass numbers")
    return np.require(np.asarray(plain, dtype=np.float64), None, "A")


def refuse_sparse(values: Any, name: str, empty_cells: str) -> None:
    """Refuse a sparse matrix; its ``empty_cells`` could be something else than zeros."""
    if sparse.issparse(values):
        problem = f"{name} is a sparse matrix, whose empty cells could be zeros or {empty_cells}"
        raise ValueError(f"{problem}; pass a dense array, with {name}.toarray() if they are zeros.")


def refuse_type(values: NDArray[Any], name: str) -> None:
    """Refuse arrays of a type that could be mistaken for numbers."""
    held = f"{name} holds {values.dtype} values"
    dates = f"{held}, not numbers; turn them into numbers, such as the days since a date."
    reasons = {
        "m": dates,
        "M": dates,
        # scikit-learn's checks look for the first four words.
        "c": f"Complex data not supported: {held}; pass their real and imaginary parts as separate "
        "columns.",
        "V": f"{name} is an array of records ({values.dtype}); pass an array of numbers, with a "
        "column for each field.",
    }
    if values.dtype.kind in reasons:
        raise ValueError(reasons[values.dtype.kind])


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    differs_from_itself = value != value
    return isinstance(differs_from_itself, bool | np.bool_) and bool(differs_from_itself)


def as_float(value: Any) -> float | None:
    """Return a number as a float (or OverflowError), NaN if missing, None if no number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return float("nan")
    if isinstance(value, np.generic | np.ndarray):
        is_number = not value.ndim and value.dtype.kind in "biuf"
    else:
        is_number = not isinstance(value, str | bytes) and hasattr(type(value), "__float__")
    if not is_number:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _first_text(values: NDArray[Any]) -> tuple[int, ...]:
    """Return the index of the first text, column by column; prefer one that spells no number."""
    cells = values.T
    texts = (place for place, value in np.ndenumerate(cells) if isinstance(value, str | bytes))
    return min(texts, key=lambda place: not _is_word(cells[place]))[::-1]


def _is_word(value: Any) -> bool:
    """Whether a value is text that does not spell a number."""
    if isinstance(value, str | bytes):
        try:
            float(value)
        except ValueError:
            return True
    return False
