"""Conditions on the values of parameters, with the words and the type that say what they ask."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Check:
    """A condition on a value: its type, the words for it, and the values if they are few."""

    type: str
    words: str
    holds: Callable[[Any], bool]
    choices: tuple[Any, ...] = ()


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number, and not True or False."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and value == value


def is_list(value: Any, holds: Callable[[Any], bool], *types: type) -> bool:
    """Whether a value is a list with entries, all of which pass a test."""
    is_list = isinstance(value, (list, tuple, *types)) and getattr(value, "ndim", 1) == 1
    return is_list and len(value) > 0 and all(map(holds, value))


def integer(low: int, high: int | None = None) -> Check:
    """Whole numbers from ``low`` to ``high``."""
    words = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"

    def holds(value: Any) -> bool:
        return is_integer(value) and value >= low and (high is None or value <= high)

    return Check("int", words, holds)


def real(low: float, high: float = float("inf"), *, include_low: bool = True) -> Check:
    """Numbers from ``low`` to ``high``, the lower bound included or not, the upper one included."""
    words = f"a number {'at least' if include_low else 'above'} {low:g}"
    if high != float("inf"):
        words += f" and at most {high:g}"

    def holds(value: Any) -> bool:
        inside = _is_real(value) and low <= value <= high and value < float("inf")
        return bool(inside and (include_low or value > low))

    return Check("float", words, holds)


def one_of(*options: Any) -> Check:
    """One of the given values."""
    words = " or ".join(repr(option) for option in options)

    def holds(value: Any) -> bool:
        return any(type(value) is type(option) and value == option for option in options)

    return Check("", words, holds, options)


def name_in(records: Mapping[str, Any], *others: str) -> Check:
    """A name of one of the records, or of the others."""
    options = (*records, *others)
    words = " or ".join(map(repr, options))

    def holds(value: Any) -> bool:
        return isinstance(value, str) and (value in records or value in others)

    return Check("", words, holds, options)


def kind(name: str, words: str, *types: type) -> Check:
    """Instances of the given types."""

    def holds(value: Any) -> bool:
        return isinstance(value, types) and not isinstance(value, type)

    return Check(name, words, holds)


def _is_fraction(value: Any) -> bool:
    return _is_real(value) and not is_integer(value) and 0 < value <= 1


fraction = Check("float", "a float in (0, 1]", _is_fraction)
boolean = Check(
    "bool", "True or False", lambda value: isinstance(value, bool | np.bool_), (True, False)
)
none = one_of(None)


def is_array_like(value: Any) -> bool:
    """Whether a value is a sequence of others, and not a text or a mapping."""
    is_other = isinstance(value, str | bytes | Mapping) or getattr(value, "ndim", 1) == 0
    return isinstance(value, Iterable) and isinstance(value, Sized) and not is_other


def is_flat(value: Any) -> bool:
    """Whether a value is a sequence of scalars."""
    return is_array_like(value) and not any(map(is_array_like, value))


def is_level(value: Any) -> bool:
    """Whether a value is a number strictly between 0 and 1."""
    return _is_real(value) and 0 < value < 1


def are_levels(value: Any) -> bool:
    """Whether a value is a list of levels in ascending order."""
    return is_list(value, is_level, np.ndarray) and bool(np.all(np.diff(value) > 0))


def is_splitter(value: Any) -> bool:
    """Whether a value splits rows as scikit-learn's splitters do."""
    return callable(getattr(value, "split", None)) and not isinstance(value, str | bytes | type)


def is_client(value: Any) -> bool:
    """Whether a value is a client of a Dask cluster."""
    # By name: Dask is not imported for those who do not use it.
    names = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__}
    return ("distributed", "Client") in names


def is_output_weight(value: Any) -> bool:
    """Whether a value has a weight for each output."""
    try:
        weights = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    # A square root is taken in single precision.
    fits = (weights == 0) | ((weights > 1e-60) & (weights < 1e60))
    return bool(weights.ndim == 1 and fits.all() and weights.any())
