"""Targets: numbers to predict, their offsets, and the names of outputs."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from manyboost.arrays import F64
from manyboost.data import frames, plain_arrays
from manyboost.data.cells import refuse_cells
from manyboost.data.features import ANY_VALUES, Table
from manyboost.data.stored import CheckedTargets
from manyboost.spelling import closest, number_of

#: The largest target and offset: their differences, and the steps of a line search along them,
#: stay within single precision.
LARGEST_TARGET = 1e37
_VALUE = "has the value {:g}"


def check_targets(y: Any, X: Table, name: str = "y") -> F64:
    """Return regression targets as an array of floats (n,) or (n, d); NaN is missing.

    float32 stays float32, for very many outputs; kernels read it as double precision.
    """
    if isinstance(y, CheckedTargets):
        check_shape(y.shape, X, name)
        return y.array
    plain_arrays.refuse_sparse(y, name, "missing values")
    Y = check_outputs(y, X, name, numeric=True)
    rest = f", beyond {LARGEST_TARGET:g}, too large for single precision; divide it by a constant."
    names = frames.column_names(y, name)
    refuse_cells(Y, lambda block: np.abs(block) > LARGEST_TARGET, name, _VALUE, rest, names)
    return Y


def check_offset(
    offset: Any,
    X: Table,
    n_outputs: int,
    output_names: Sequence[str] | None,
    *,
    softmax: bool = False,
    name: str = "offset",
) -> F64:
    """Return an offset of the raw predictions, (n,) or (n, d), as an array (n, d)."""
    check_output_order(offset, output_names, name)
    array = plain_arrays.dense_floats(offset, name, "missing values")
    n_rows = X.shape[0]
    if softmax and array.ndim == 1:
        what = f"{name} has shape {array.shape}, but classes need an offset for each output"
        raise ValueError(f"{what}; it must have the shape {(n_rows, n_outputs)}.")
    if array.shape not in ((n_rows,), (n_rows, 1), (n_rows, n_outputs)):
        wanted = f"one number for each of the {n_rows} rows, or the shape {(n_rows, n_outputs)}"
        raise ValueError(f"{name} has shape {np.shape(offset)}; it must have {wanted}.")
    rest = f"; it must hold finite numbers of at most {LARGEST_TARGET:g}."
    refuse_cells(array, lambda block: ~(np.abs(block) <= LARGEST_TARGET), name, _VALUE, rest)
    return np.broadcast_to(array if array.ndim == 2 else array[:, None], (n_rows, n_outputs))


def check_outputs(y: Any, X: Table, name: str, *, numeric: bool) -> NDArray[Any]:
    """Return targets (``numeric``), labels or classes (of any type) as an array (n,) or (n, d)."""
    if y is None:
        # scikit-learn's checks look for these words.
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None."
        )
    names = frames.column_names(y, name)
    if frames.is_frame(y):
        y = frames.densified_frame(y)
        if not numeric and y.shape[1] == 1:  # a single column of classes stays as it is
            y = frames.value_columns(y, name)[0][:, None]
        elif (frame := frames.open_frame(y, name)) is not None:
            remedy = "turn it into numbers, 0 and 1 for labels, or drop it"
            y = frames.CategoryLabels().encode(frame, name, remedy)
    elif numeric:
        remedy = "encode it, or use ManyBoostClassifier for classes"
        y = plain_arrays.plain_numbers(plain_arrays.stacked(y, name), name, remedy)
    else:
        y = _read_classes(y, name)
    dtype = (np.float64, np.float32) if numeric else None
    try:
        y = check_array(
            y, dtype=dtype, order="C", ensure_2d=False, allow_nd=True, input_name=name, **ANY_VALUES
        )
    except ValueError as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(f"{name} must hold numbers: {reason}.") from None
    y = np.require(y, None, "A")
    check_shape(y.shape, X, name)
    if y.dtype.kind == "f":
        refuse_cells(y, np.isinf, name, "has an infinite value (inf)", names=names)
    return np.asarray(y)


def _read_classes(y: Any, name: str) -> Any:
    """Return an array of classes or labels, of their own type, for a list, series or array."""
    if isinstance(y, list | tuple):
        is_text = [isinstance(each, str) for each in y]
        if any(is_text) and not all(is_text):
            # NumPy would turn the others into text, NaN included.
            return np.fromiter(y, object, len(y))
        array = plain_arrays.stacked(y, name)
        y = plain_arrays.unchanged(y) if array.ndim == 1 else array
    # (scikit-learn would turn whole numbers of nullable types into floats.)
    y = plain_arrays.unmasked(y)
    if y.dtype.kind in "cV":
        plain_arrays.refuse_type(y, name)
    return y


def check_shape(shape: tuple[int, ...], X: Table, name: str) -> None:
    """Refuse targets that are no vector or matrix with the rows of X and at least one column."""
    if len(shape) not in (1, 2):
        raise ValueError(f"{name} has {len(shape)} dimension(s); it must have one or two.")
    if shape[1:] == (0,):
        raise ValueError(f"{name} has no outputs (0 columns); it needs at least one.")
    if shape[0] != X.shape[0]:
        features = "X_val" if name == "Y_val" else "X"
        problem = "Found input variables with inconsistent numbers of samples"
        counts = f"{features} has {X.shape[0]} rows and {name} has {shape[0]}"
        raise ValueError(f"{problem}: {counts}; they must have the same number.")


def check_output_names(y: Any, known: Sequence[str] | None, name: str) -> None:
    """Refuse outputs with other names, or in another order, than those of fit."""
    names = frames.target_names(y, name) if frames.is_frame(y) else None
    if names is None or known is None or list(known) == names:
        return
    if frames.list_column(y, name) is not None:  # sets of labels, which have the names
        return
    missing = [each for each in known if each not in names]
    for given, expected in zip(names, known, strict=False):
        if given not in known:
            likely = closest(given, missing)
            hint = f"did you mean {likely!r}?" if likely else f"output {expected!r} was expected."
            raise ValueError(f"{name} has the output {given!r}, which fit did not see; {hint}")
    if missing:
        raise ValueError(f"{name} lacks the output {missing[0]!r} of fit; add it.")
    check_output_order(y, known, name)


def check_output_order(data: Any, known: Sequence[str] | None, name: str) -> None:
    """Refuse a frame that has the outputs of fit in another order; other names are no outputs."""
    names = frames.target_names(data, name) if frames.is_frame(data) else None
    if names is None or known is None or list(known) == names or set(known) != set(names):
        return
    problem = f"{name} has the outputs of fit in another order ({', '.join(map(repr, names[:5]))})"
    raise ValueError(f"{problem}; select them in the order of fit.")


def resolve_outputs(outputs: Any, names: Sequence[str] | None, n_outputs: int) -> list[int]:
    """Return the numbers of outputs that are given by name or number."""
    if isinstance(outputs, str | bytes | numbers.Number) or not isinstance(outputs, Iterable):
        raise ValueError(
            f"outputs={outputs!r} is not a list; pass a list of the names or numbers of outputs."
        )
    places = None if names is None else {each: j for j, each in enumerate(names)}
    found: dict[int, None] = {}
    for each in outputs:
        j = number_of("outputs", each, "output", n_outputs, places)
        if j in found:
            raise ValueError(f"outputs asks for {each!r} twice; ask for it once.")
        found[j] = None
    if not found:
        raise ValueError("outputs is empty; ask for at least one, or leave it out for all.")
    return list(found)
