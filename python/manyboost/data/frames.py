"""Data frames in and out: pandas, polars, and every other library that narwhals reads."""

from __future__ import annotations

import importlib
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F32, F64, Mask
from manyboost.comm import Comm
from manyboost.data.cells import column_name, unknown_category
from manyboost.data.named import NamedTable, densified
from manyboost.data.plain_arrays import as_float, is_missing
from manyboost.spelling import number_of

#: Types whose numbers are exact in single precision.
_SMALL = ("Boolean", "Float32", "Int8", "Int16", "UInt8", "UInt16")
_CATEGORICAL = ("Categorical", "Enum")
#: Parameters that may be series or frames, whose values go by the names in them.
NAMED_PARAMETERS = ("categorical_features", "monotonic_cst", "output_weight")
#: Types of rows that may be sets of labels.
LISTS = (list, tuple, set, frozenset)

ENCODE = "encode it (OrdinalEncoder, OneHotEncoder) or drop it"
_NUMBERS = "turn it into numbers (such as {}) or drop it"
_NAME = f"name it in categorical_features, {ENCODE}"
#: What to do about columns of a type that is not numeric.
_REMEDIES = {
    **dict.fromkeys(("Date", "Datetime"), _NUMBERS.format("the days since a date")),
    "Duration": _NUMBERS.format("its total seconds"),
    "Time": _NUMBERS.format("the seconds since midnight"),
    **dict.fromkeys(("List", "Array", "Struct"), "spread it over numeric columns or drop it"),
    **dict.fromkeys(_CATEGORICAL, _NAME),
    "String": f"cast it to a categorical type, {_NAME}",
}


def is_frame(data: Any) -> bool:
    """Whether data have named columns; only their type is looked at."""
    return hasattr(type(data), "columns") and not isinstance(data, np.ndarray)


def is_series(data: Any) -> bool:
    """Whether data are one column that may have a name; only their type is looked at."""
    return hasattr(type(data), "name") and hasattr(type(data), "to_numpy")


def list_column(data: Any, name: str) -> list[Any] | None:
    """Return the rows of a frame's only column if it holds lists or sets, else None."""
    if not is_frame(data) or getattr(data, "shape", ())[1:] != (1,):
        return None
    frame = open_frame(data, name)
    if frame is None or isinstance(frame, NamedTable):
        return None
    (column,) = frame.iter_columns()
    rows = column.to_list() if _kind(column) in ("List", "Array", "Object") else []
    return rows if any(isinstance(each, (*LISTS, np.ndarray)) for each in rows) else None


def column_names(data: Any, name: str = "X") -> list[str] | None:
    """Return the names of the columns, unless they are not all text; refuse duplicates.

    Levels of a MultiIndex are joined: ("sales", 1) is "sales_1".
    """
    if is_series(data):
        return [data.name] if isinstance(data.name, str) and data.name else None
    if not is_frame(data):
        return None
    if type(data).__name__ == "LazyFrame":
        raise ValueError(
            f"{name} is a lazy frame, which holds no values yet; pass {name}.collect()."
        )
    columns = data.column_names if hasattr(data, "column_names") else data.columns
    names = list(map(_joined, columns))
    if twice := [each for each, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{name} has two columns named {twice[0]!r}; rename or drop one.")
    return names if names and all(isinstance(each, str) for each in names) else None


def _joined(label: Any) -> Any:
    return "_".join(map(str, label)) if isinstance(label, tuple) else label


def by_position(
    parameter: str,
    value: Any,
    features: Iterable[Any] | None,
    outputs: Iterable[Any] | None = None,
) -> Any:
    """Return the value of a parameter as one whose values go by position, as those of a list do.

    The values of a series or frame come in the order of the features and outputs that it names. If
    it names none of them, or only counts from zero, they stay where they are.
    """
    if isinstance(value, Mapping):  # of features: the signs of each output
        return {
            key: _by_name(parameter, each, output=outputs) if is_series(each) else each
            for key, each in value.items()
        }
    has_names = is_series(value) or is_frame(value)
    if not has_names or (parameter == "categorical_features" and not are_flags(value)):
        return value
    if parameter == "output_weight":
        return _by_name(parameter, value, output=outputs)
    if is_frame(value):
        return _by_name(parameter, value, output=outputs, feature=features)
    return _by_name(parameter, value, feature=features)


def are_flags(values: Iterable[Any]) -> bool:
    """Whether all values are booleans."""
    return all(isinstance(value, bool | np.bool_) for value in values)


def _by_name(parameter: str, source: Any, **known: Iterable[Any] | None) -> NDArray[Any]:
    """Return the values of a series or frame; ``known`` has the names along each axis."""
    values = np.asarray(source)
    found: list[Any] = [getattr(source, "index", None), getattr(source, "columns", None)]
    for axis, (thing, names) in enumerate(known.items()):
        if names is None or found[axis] is None:
            continue
        given = [str(_joined(each)) for each in found[axis]]
        places = {str(name): j for j, name in enumerate(names)}
        is_count = given == list(map(str, range(len(given))))
        if is_count or given == list(places) or places.keys().isdisjoint(given):
            continue
        order = [number_of(parameter, each, thing, len(places), places) for each in given]
        if len(set(order)) < len(order):
            twice = Counter(given).most_common(1)[0][0]
            raise ValueError(f"{parameter} has the {thing} {twice!r} twice; give it once.")
        values = np.take(values, np.argsort(order), axis)
    return values


def target_labels(y: Any, name: str = "y") -> list[Any] | None:
    """Return the names of targets: text, or whole numbers such as horizons.

    Numbers that only count the columns from zero are no names.
    """
    names = column_names(y, name)
    if names is not None or not is_frame(y):
        return names
    columns = list(y.columns)
    is_count = columns == list(range(len(columns)))
    is_whole = all(isinstance(each, numbers.Integral) for each in columns)
    return columns if is_whole and not is_count else None


def target_names(y: Any, name: str = "y") -> list[str] | None:
    """Return the names of targets as text."""
    labels = target_labels(y, name)
    return None if labels is None else list(map(str, labels))


def densified_frame(data: Any) -> Any:
    """Return a pandas frame with its sparse columns made dense; other data as they are."""
    dtypes = enumerate(getattr(data, "dtypes", []))
    dense = {data.columns[j]: dtype.subtype for j, dtype in dtypes if _is_sparse(dtype)}
    return data.astype(dense) if dense else data


def _is_sparse(dtype: Any) -> bool:
    return type(dtype).__name__ == "SparseDtype"


def open_frame(data: Any, name: str = "X") -> Any | None:
    """Return the narwhals view of a frame, or a :class:`NamedTable` as it is.

    None stands for frames that scikit-learn converts: pandas frames whose columns are all sparse
    with zeros left out, and frames of pandas and polars if narwhals is not installed.
    """
    if isinstance(data, NamedTable):
        return data
    dtypes = list(getattr(data, "dtypes", []))
    if dtypes and all(_is_sparse(dtype) and dtype.fill_value == 0 for dtype in dtypes):
        return None
    data = densified_frame(data)
    type_name = f"{type(data).__module__}.{type(data).__qualname__}"
    try:
        narwhals = importlib.import_module("narwhals.stable.v2")
    except ImportError:
        if type_name.startswith(("pandas.", "polars.")):
            return None
        problem = f"{name} is a {type_name}, which takes narwhals to read"
        raise ImportError(f"{problem}; install it: pip install 'manyboost[frames]'.") from None
    try:
        return narwhals.from_native(data, eager_only=True)
    except TypeError:
        problem = f"{name} is a {type_name}, which is not a frame in memory"
        remedy = "pass a frame of pandas or polars, a pyarrow table or an array."
        raise ValueError(f"{problem}; {remedy}") from None


def holds_labels(data: Any, name: str) -> bool:
    """Whether a frame has columns of categories or text."""
    column_names(data, name)  # refuses two of the same name
    frame = open_frame(data, name)
    return frame is not None and bool(label_columns(frame, None))


def value_columns(data: Any, name: str) -> list[NDArray[Any]]:
    """Return the columns of a frame: numbers, or objects of any types."""
    frame = open_frame(data, name)
    if frame is None:
        return list(np.asarray(data).T)
    if isinstance(frame, NamedTable):
        return list(densified(frame.values).T)
    return list(map(_values, frame.iter_columns()))


def _values(column: Any) -> NDArray[Any]:
    # As floats, whole numbers beside missing ones could be mixed up.
    is_plain = _holds_numbers(column) and not column.is_null().any()
    values = np.asarray(column.to_numpy()) if is_plain else np.empty(0, object)
    is_plain = values.dtype.kind in "biuf"
    return values if is_plain else np.fromiter(column.to_list(), object, len(column))


def label_columns(frame: Any, chosen: Mask | None) -> list[int]:
    """Return the columns of categories or text (None), or the chosen ones that hold labels.

    Numbers are categories without labels, which an array can hold too, unless doubles mix them up.
    """
    if isinstance(frame, NamedTable):
        return [j for j in sorted(frame.categories) if chosen is None or chosen[j]]
    columns = enumerate(frame.iter_columns())
    if chosen is None:
        return [j for j, column in columns if _holds_labels(column)]
    return [j for j, column in columns if chosen[j] and not _holds_doubles(column)]


@dataclass(frozen=True)
class CategoryLabels:
    """The sorted labels of the category columns of a frame in fit; a label's index is its code."""

    of_column: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Any, columns: Iterable[int]) -> CategoryLabels:
        """Find the labels of the given columns of a frame or array."""
        if isinstance(frame, NamedTable):
            return cls({j: _sorted_labels(frame.labels(j)) for j in columns})
        if isinstance(frame, np.ndarray):
            return cls({j: _sorted_labels(frame[:, j].tolist()) for j in columns})
        return cls({j: _sorted_labels(frame[:, j].unique().to_list()) for j in columns})

    def united(self, comm: Comm) -> CategoryLabels:
        """Return the labels of all ranks."""
        if comm.size == 1:
            return self
        parts = [dict(labels.of_column) for labels in comm.gather(self)]
        return CategoryLabels({j: _sorted_labels(chain(*(p[j] for p in parts))) for j in parts[0]})

    def encode(
        self,
        frame: Any,
        name: str = "X",
        remedy: str | None = None,
        *,
        refuse_unknown: bool = False,
    ) -> Any:
        """Return the numbers of a frame, with codes for labels; NaN: missing or unknown.

        They are float32 if exact. ``remedy`` ends the error about a column that is not numeric.
        """
        if isinstance(frame, NamedTable):
            return frame.encode(self.of_column, name, refuse_unknown=refuse_unknown)
        columns = list(frame.iter_columns())
        all_floats = all(_kind(column) in ("Float32", "Float64") for column in columns)
        if columns and all_floats and not self.of_column:
            values = np.asarray(frame.to_numpy())
            if values.dtype.kind == "f":
                return values
        small = all(_kind(c) in _SMALL for j, c in enumerate(columns) if j not in self.of_column)
        # Column by column, as frames store them.
        values = np.empty((len(columns), len(frame)), np.float32 if small else np.float64)
        for j, column in enumerate(columns):
            if j in self.of_column:
                where, numeric = (repr(column.name), name), _holds_numbers(column)
                values[j] = _codes(
                    column.to_list(), self.of_column[j], where, numeric, refuse_unknown
                )
            else:
                values[j] = _numbers(column, name, remedy)
        return values.T

    def encode_array(
        self, X: NDArray[Any], names: Any, name: str, *, refuse_unknown: bool = False
    ) -> NDArray[Any]:
        """Return an array of numbers or objects with codes in place of the labels that it holds."""
        if not self.of_column or X.shape[1] <= max(self.of_column):
            return X
        is_numeric = X.dtype.kind in "biuf"
        encoded = X.astype(np.float64 if is_numeric else object)
        for j, labels in self.of_column.items():
            where = column_name(j, names), name
            encoded[:, j] = _codes(X[:, j].tolist(), labels, where, is_numeric, refuse_unknown)
        return encoded


def _kind(column: Any) -> str:
    """Return the name of a column's type, without its parameters."""
    return type(column.dtype).__name__


def _native_type(column: Any) -> Any:
    return getattr(column.to_native(), "dtype", _kind(column))


def _holds_numbers(column: Any) -> bool:
    return bool(column.dtype.is_numeric()) or _kind(column) == "Boolean"


def _holds_doubles(column: Any) -> bool:
    """Whether a column holds numbers that double precision does not mix up."""
    if not column.dtype.is_integer() or column.is_null().all():
        return _holds_numbers(column)
    return bool(column.min() >= -(2**53) and column.max() <= 2**53)


def has_large_integers(column: NDArray[Any]) -> bool:
    """Whether a column of an array holds whole numbers that double precision may mix up."""
    if column.dtype.kind in "iu" and column.size:
        return bool(column.min() < -(2**53) or column.max() > 2**53)
    values = column.tolist() if column.dtype == object else ()
    return any(isinstance(each, numbers.Integral) and abs(int(each)) > 2**53 for each in values)


def _holds_labels(column: Any) -> bool:
    """Whether a column holds categories or text."""
    if _kind(column) in _CATEGORICAL:
        return True
    # narwhals takes a column of objects that are all missing for text.
    unsure = str(_native_type(column)) == "object"
    return _kind(column) == "String" and not (unsure and column.is_null().all())


def _sorted_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    known = {label for label in labels if not is_missing(label)}
    try:
        return tuple(sorted(known))
    except TypeError:
        return tuple(sorted(known, key=lambda label: (type(label).__name__, str(label))))


def _codes(
    values: list[Any],
    labels: Sequence[Any],
    where: tuple[str, str],
    is_numeric: bool,
    refuse_unknown: bool,
) -> F32:
    """Return the codes of a column's labels, NaN for missing and unknown ones.

    ``where`` has the names of the column and of the argument.
    """
    number = int | float | np.number | np.bool_
    if is_numeric and labels and not any(isinstance(each, number) for each in labels):
        known = [value for value in values if not is_missing(value)]
        if known:
            problem = f"Column {where[0]} of {where[1]} holds numbers ({known[0]!r})"
            held = f"held categories such as {labels[0]!r} in fit"
            raise ValueError(f"{problem}, but {held}; pass the labels that the numbers stand for.")
    code_of = {label: float(code) for code, label in enumerate(labels)}
    if refuse_unknown:
        for row, value in enumerate(values):
            if value not in code_of and not is_missing(value):
                raise unknown_category(*where, repr(value), row)
    return np.fromiter((code_of.get(value, np.nan) for value in values), np.float32, len(values))


def _is_missing(column: Any) -> bool:
    """Whether all values of a column are missing."""
    try:
        return bool(column.is_null().all())
    except TypeError:  # of pandas, for types that can hold nothing missing, such as raw bytes
        return False


def _numbers(column: Any, name: str, remedy: str | None) -> F64:
    """Return the values of a column as floats, NaN if missing; refuse columns of other types."""
    kind = _kind(column)
    if _holds_numbers(column):
        double = importlib.import_module("narwhals.stable.v2").Float64
        return np.asarray(column.cast(double).to_numpy(), dtype=np.float64)
    if _is_missing(column):  # of whatever type
        return np.full(len(column), np.nan)
    dtype = _native_type(column)
    if kind == "Unknown" and str(dtype).startswith("float"):  # long double
        with np.errstate(over="ignore"):
            return np.asarray(column.to_numpy()).astype(np.float64)
    if kind == "Object":
        values = column.to_list()
        try:
            numbers = [as_float(value) for value in values]
        except OverflowError:
            held = "a number beyond double precision (1.8e308); divide it by a constant."
            raise ValueError(f"Column {column.name!r} of {name} holds {held}") from None
        if None not in numbers:
            return np.array(numbers, dtype=np.float64)
        other = values[numbers.index(None)]
        what = f"{type(other).__name__} values (such as {str(other)[:50]!r})"
    else:
        what = f"{dtype} values"
    remedy = remedy or _REMEDIES.get(kind, ENCODE)
    raise ValueError(f"Column {column.name!r} of {name} holds {what}, not numbers; {remedy}.")


def make_frame(library: str, values: NDArray[Any], names: Sequence[str], like: Any) -> Any:
    """Return values (n_rows, n_columns) as a frame; a pandas frame gets the index of ``like``."""
    try:
        module = importlib.import_module(library)
    except ImportError:
        problem = f"set_output asked for frames of {library}, which is not installed"
        raise ImportError(f"{problem}; install it: pip install {library}.") from None
    data: Any = values
    if values.dtype == object:  # columns of several types, each of which keeps its own
        data = {name: column.tolist() for name, column in zip(names, values.T, strict=True)}
    if library == "polars":
        return module.DataFrame(data, schema=list(names))
    index = like.index if isinstance(like, module.DataFrame) else None
    return module.DataFrame(data, columns=list(names), index=index)
