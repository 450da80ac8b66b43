"""Targets: numbers to predict, their offsets, and the names of outputs."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from manyboost.data.cells import cell_error, first_cell
from manyboost.data.features import Table
from manyboost.data.frames import (
    CategoryLabels,
    column_names,
    densified_frame,
    is_frame,
    is_series,
    open_frame,
)
from manyboost.data.plain_arrays import plain_numbers, refuse_type, stacked, unmasked
from manyboost.data.stored import CheckedTargets
from manyboost.spelling import closest

F64 = NDArray[np.float64]

#: The largest target and offset: their differences, and the steps of a line search along them,
#: stay within single precision.
LARGEST_TARGET = 1e37


def check_targets(y: Any, X: Table, name: str = "y") -> F64:
    """Return regression targets as a float64 array (n,) or (n, d); NaN is missing."""
    if isinstance(y, CheckedTargets):
        check_length(len(y.array), X, name)
        return y.array
    if sparse.issparse(y):
        raise ValueError(
            f"{name} is a sparse matrix, whose empty cells could be zeros or missing values; pass "
            f"a dense array, with {name}.toarray() if they are zeros."
        )
    Y = check_outputs(y, X, name, numeric=True)
    refuse_large(Y, name, column_names(y, name))
    return Y


def refuse_large(Y: NDArray[Any], name: str, names: Sequence[str] | None = None) -> None:
    """Refuse numbers that are infinite or beyond :data:`LARGEST_TARGET`."""
    place = first_cell(Y, lambda block: np.abs(block, dtype=np.float64) > LARGEST_TARGET)
    if place is None:
        return
    value = Y[tuple(place)]
    if np.isinf(value):
        refuse_cell(name, "an infinite value (inf)", place, names)
    rest = (
        f", beyond {LARGEST_TARGET:g}, for which single precision has room; divide it by a "
        "constant."
    )
    raise cell_error(name, f"{name} has the value {value:g}", place, rest, names)


def check_offset(
    offset: Any, X: Table, n_outputs: int, *, softmax: bool = False, name: str = "offset"
) -> F64:
    """Return an offset of the raw predictions, (n,) or (n, d), as an array (n, d)."""
    if sparse.issparse(offset):
        raise ValueError(f"{name} is a sparse matrix; pass a dense array, with {name}.toarray().")
    plain = plain_numbers(stacked(offset, name), name, "pass numbers")
    array = np.require(np.asarray(plain, dtype=np.float64), None, "A")
    n_rows = X.shape[0]
    if softmax and array.ndim == 1:
        raise ValueError(
            f"{name} has shape {array.shape}, but the same offset for all {n_outputs} classes "
            f"would change nothing; it must have the shape {(n_rows, n_outputs)}."
        )
    if array.shape == (n_rows,):
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != n_rows or array.shape[1] not in (1, n_outputs):
        raise ValueError(
            f"{name} has shape {np.shape(offset)}; it must have one number for each of the "
            f"{n_rows} rows, or one for each row and output, {(n_rows, n_outputs)}."
        )
    bad = ~(np.abs(array) <= LARGEST_TARGET)
    if bad.any():
        place = np.argwhere(bad)[0]
        rest = (
            f"; it must hold finite numbers of at most {LARGEST_TARGET:g}, which single precision "
            "has room for."
        )
        raise cell_error(name, f"{name} has the value {array[tuple(place)]:g}", place[:1], rest)
    return np.broadcast_to(array, (n_rows, n_outputs))


# ------------------------------------------------------------------ numbers, labels and classes


def check_outputs(y: Any, X: Table, name: str, *, numeric: bool) -> NDArray[Any]:
    """Return targets, labels or classes as an array (n,) or (n, d) without infinite values.

    The result is float64 if it must be ``numeric``; else a single column may hold classes of any
    type.
    """
    if y is None:
        # scikit-learn's checks look for these words.
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None."
        )
    names = column_names(y, name)
    if is_frame(y):
        y = _read_frame(y, name, numeric=numeric)
    else:
        y = _read_numbers(y, name) if numeric else _read_classes(y, name)
    try:
        y = check_array(
            y,
            dtype=np.float64 if numeric else None,
            order="C",
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except ValueError as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(f"{name} must hold numbers: {reason}.") from None
    y = np.require(y, None, "A")
    if y.ndim not in (1, 2):
        raise ValueError(f"{name} has {y.ndim} dimension(s); it must have one or two.")
    check_length(len(y), X, name)
    if y.ndim == 2:
        refuse_no_outputs(y, name)
    if y.dtype.kind == "f" and (place := first_cell(y, np.isinf)) is not None:
        refuse_cell(name, "an infinite value (inf)", place, names)
    return np.asarray(y)


def _read_frame(y: Any, name: str, *, numeric: bool) -> Any:
    """Return the numbers of a frame, or the frame if it is a single column of classes."""
    refuse_no_outputs(y, name)
    y = densified_frame(y)
    if y.shape[1] == 1 and not numeric:
        return y
    frame = open_frame(y, name)
    remedy = "turn it into numbers, 0 and 1 for labels, or drop it"
    return y if frame is None else CategoryLabels().encode(frame, name, remedy)


def _read_numbers(y: Any, name: str) -> Any:
    """Return an array of numbers for a list, series or array; NaN is missing."""
    if isinstance(y, list | tuple) or is_series(y):
        y = stacked(y, name)
    if not isinstance(y, np.ndarray):
        return y
    return plain_numbers(y, name, "encode it, or use ManyBoostClassifier for classes")


def _read_classes(y: Any, name: str) -> Any:
    """Return an array of classes or labels, of their own type, for a list, series or array."""
    if isinstance(y, list | tuple):
        is_text = [isinstance(each, str) for each in y]
        if any(is_text) and not all(is_text):
            # NumPy would turn the others into text, NaN included.
            objects = np.empty(len(y), object)
            objects[:] = y
            return objects
        y = stacked(y, name)
    if is_series(y) and str(y.dtype).startswith("complex"):
        y = np.asarray(y)
    if not isinstance(y, np.ndarray):
        return y
    y = unmasked(y)
    if y.dtype.kind in "cV":
        refuse_type(y, name)
    return y


def check_length(n_rows: int, X: Table, name: str) -> None:
    """Refuse targets with another number of rows than the features."""
    if n_rows != X.shape[0]:
        features = "X_val" if name == "Y_val" else "X"
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {features} has "
            f"{X.shape[0]} rows and {name} has {n_rows}; they must have the same number."
        )


def refuse_no_outputs(y: Any, name: str) -> None:
    """Refuse a frame or matrix without columns."""
    if y.shape[1] == 0:
        raise ValueError(f"{name} has no outputs (0 columns); it needs at least one.")


def refuse_cell(
    name: str, what: str, place: NDArray[np.intp], names: Sequence[str] | None = None
) -> None:
    """Refuse the value of one cell."""
    rest = "; drop such rows or fill them in before fit."
    raise cell_error(name, f"{name} has {what}", place, rest, names)


# ------------------------------------------------------------------ names of outputs


def check_output_names(y: Any, known: Sequence[str] | None, name: str) -> None:
    """Refuse outputs with other names, or in another order, than those of fit."""
    names = column_names(y, name) if is_frame(y) else None
    if names is None or known is None or list(known) == names:
        return
    for given, expected in zip(names, known, strict=False):
        if given not in known:
            likely = closest(given, [each for each in known if each not in names])
            hint = f"did you mean {likely!r}?" if likely else f"output {expected!r} was expected."
            raise ValueError(f"{name} has the output {given!r}, which fit did not see; {hint}")
    missing = [each for each in known if each not in names]
    if missing:
        raise ValueError(f"{name} lacks the output {missing[0]!r} of fit; add it.")
    raise ValueError(
        f"{name} has the outputs of fit in another order ({', '.join(map(repr, names[:5]))}); "
        "select them in the order of output_names_."
    )


def resolve_outputs(outputs: Any, names: Sequence[str] | None, n_outputs: int) -> list[int]:
    """Return the numbers of outputs that are given by name or number."""
    if isinstance(outputs, str | bytes | numbers.Number) or not isinstance(outputs, Iterable):
        raise ValueError(
            f"outputs={outputs!r} is not a list; pass a list of the names or numbers of outputs."
        )
    number_of = None if names is None else {each: j for j, each in enumerate(names)}
    found: dict[int, None] = {}
    for each in outputs:
        j = _output_number(each, number_of, n_outputs)
        if j in found:
            raise ValueError(f"outputs asks for {each!r} twice; ask for it once.")
        found[j] = None
    if not found:
        raise ValueError("outputs is empty; ask for at least one, or leave it out for all.")
    return list(found)


def _output_number(output: Any, number_of: Mapping[str, int] | None, n_outputs: int) -> int:
    if isinstance(output, str):
        if number_of is None:
            raise ValueError(
                f"outputs asks for {output!r}, but the outputs have no names; ask by numbers from "
                f"0 to {n_outputs - 1}, or fit on a frame of outputs."
            )
        if output not in number_of:
            likely = closest(output, number_of)
            hint = f"did you mean {likely!r}?" if likely else "see output_names_."
            raise ValueError(f"There is no output {output!r}; {hint}")
        return number_of[output]
    whole = isinstance(output, int | np.integer) and not isinstance(output, bool | np.bool_)
    if not (whole and 0 <= output < n_outputs):
        raise ValueError(
            f"outputs asks for {output!r}; outputs are asked for by name or by a number from 0 to "
            f"{n_outputs - 1}."
        )
    return int(output)
