"""Data frames in and out: pandas, polars, and whatever else narwhals reads.

Every column of a frame becomes a column of numbers or is refused by name, with the remedy. Frames
are told from arrays without importing a frame library; narwhals (the extra ``frames``) is imported
when a frame comes.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.comm import Comm
from manyboost.data.named import NamedTable
from manyboost.data.plain_arrays import as_float

#: Types whose numbers single precision holds exactly.
_SMALL = ("Boolean", "Float32", "Int8", "Int16", "UInt8", "UInt16")

_ENCODE = "encode it (OrdinalEncoder, OneHotEncoder) or drop it"
#: What to do about columns of a type that is not numeric.
_REMEDIES = {
    "Date": "turn it into numbers (such as the days since a date) or drop it",
    "Datetime": "turn it into numbers (such as the days since a date) or drop it",
    "Duration": "turn it into numbers (such as its total seconds) or drop it",
    "Time": "turn it into numbers (such as the seconds since midnight) or drop it",
    "List": "spread it over numeric columns or drop it",
    "Array": "spread it over numeric columns or drop it",
    "Struct": "spread it over numeric columns or drop it",
    "String": f"cast it to a categorical type, name it in categorical_features, {_ENCODE}",
    "Categorical": f"name it in categorical_features, {_ENCODE}",
    "Enum": f"name it in categorical_features, {_ENCODE}",
}


def is_frame(data: Any) -> bool:
    """Whether data have named columns, told by their type alone."""
    return hasattr(type(data), "columns") and not isinstance(data, np.ndarray)


def is_series(data: Any) -> bool:
    """Whether data are one column that may have a name, told by their type alone."""
    return hasattr(type(data), "name") and hasattr(type(data), "to_numpy")


def column_names(data: Any, name: str = "X") -> list[str] | None:
    """Names of the columns of a frame, or of a series; None if there are none or not all are text.

    A name that comes twice is refused.
    """
    if is_series(data):
        return [data.name] if isinstance(data.name, str) and data.name else None
    if not is_frame(data):
        return None
    if type(data).__name__ == "LazyFrame":
        raise ValueError(
            f"{name} is a lazy frame, which holds no values yet; pass {name}.collect()."
        )
    names = list(data.column_names if hasattr(data, "column_names") else data.columns)
    seen: set[Any] = set()
    for each in names:
        if each in seen:
            raise ValueError(f"{name} has two columns named {each!r}; rename or drop one.")
        seen.add(each)
    return names if names and all(isinstance(each, str) for each in names) else None


def spread_out(data: Any) -> Any:
    """Return a frame of pandas without columns that leave places empty; others as they are."""
    dtypes = list(getattr(data, "dtypes", []))
    if not any(map(_is_sparse, dtypes)):
        return data
    columns = zip(data.columns, dtypes, strict=True)
    return data.astype({column: dtype.subtype for column, dtype in columns if _is_sparse(dtype)})


def _is_sparse(dtype: Any) -> bool:
    return type(dtype).__name__ == "SparseDtype"


def _empty_places_are_zeros(data: Any) -> bool:
    dtypes = list(getattr(data, "dtypes", []))
    return bool(dtypes) and all(_is_sparse(dtype) and dtype.fill_value == 0 for dtype in dtypes)


def open_frame(data: Any, name: str = "X") -> Any | None:
    """Return the frame as narwhals shows it; a named table as it is.

    None for frames that scikit-learn is left to convert: those of pandas whose empty places are
    all zeros, and of pandas and polars if narwhals is not installed.
    """
    if isinstance(data, NamedTable):
        return data
    if _empty_places_are_zeros(data):
        return None
    data = spread_out(data)
    try:
        narwhals = importlib.import_module("narwhals.stable.v2")
    except ImportError:
        if type(data).__module__.partition(".")[0] in ("pandas", "polars"):
            return None
        raise ImportError(
            f"{name} is a {_type_of(data)}, which takes narwhals to read; install it: pip install "
            "'manyboost[frames]'."
        ) from None
    try:
        return narwhals.from_native(data, eager_only=True)
    except TypeError:
        raise ValueError(
            f"{name} is a {_type_of(data)}, which is not a frame in memory; pass a frame of pandas "
            "or polars, a pyarrow table or an array."
        ) from None


def _type_of(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"


def category_columns(frame: Any) -> list[int]:
    """Places of the columns whose type says that they hold categories."""
    if isinstance(frame, NamedTable):
        return sorted(frame.categories)
    return [j for j, column in enumerate(frame.iter_columns()) if _kind(column) in _CATEGORICAL]


_CATEGORICAL = ("Categorical", "Enum")


def is_numeric(frame: Any, j: int) -> bool:
    """Whether a column holds numbers or truth values."""
    if isinstance(frame, NamedTable):
        return j not in frame.categories
    dtype = list(frame.iter_columns())[j].dtype
    return bool(dtype.is_numeric()) or type(dtype).__name__ == "Boolean"


@dataclass(frozen=True)
class CategoryLabels:
    """The category columns of a frame and their labels, as fit saw them.

    Attributes
    ----------
    of_column : dict
        By the place of a category column its labels, sorted; their places are the codes.
    """

    of_column: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Any, columns: Iterable[int]) -> CategoryLabels:
        """Find the labels of the given columns."""
        if isinstance(frame, NamedTable):
            return cls({j: _sorted_labels(frame.labels(j)) for j in columns})
        all_columns = list(frame.iter_columns())
        return cls({j: _sorted_labels(all_columns[j].unique().to_list()) for j in columns})

    def united(self, comm: Comm) -> CategoryLabels:
        """Return the labels of all ranks."""
        if comm.size == 1:
            return self
        parts = [dict(labels.of_column) for labels in comm.gather(self)]
        return CategoryLabels({j: _sorted_labels(chain(*(p[j] for p in parts))) for j in parts[0]})

    def encode(self, frame: Any, name: str = "X", remedy: str | None = None) -> Any:
        """Numbers (n_rows, n_columns) of a frame: values, or codes of labels.

        Missing values and labels that fit did not see are NaN. The numbers are float32 if all are
        exact in single precision, else float64. ``remedy`` says what to do about a column that
        is refused, instead of what its type suggests.
        """
        if isinstance(frame, NamedTable):
            return frame.encode(self.of_column, name)
        columns = list(frame.iter_columns())
        if (
            not self.of_column
            and columns
            and all(_kind(c) in ("Float32", "Float64") for c in columns)
        ):
            values = np.asarray(frame.to_numpy())
            if values.dtype.kind == "f":
                return values
        small = all(_kind(c) in _SMALL for j, c in enumerate(columns) if j not in self.of_column)
        # By columns, as frames are kept.
        values = np.empty((len(columns), len(frame)), np.float32 if small else np.float64)
        for j, column in enumerate(columns):
            labels = self.of_column.get(j)
            if labels is None:
                values[j] = _numbers(column, name, remedy)
            else:
                values[j] = _codes(column, labels, name)
        return values.T


def _kind(column: Any) -> str:
    """Name of the type of a column, without its parameters."""
    return type(column.dtype).__name__


def _sorted_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    known = {label for label in labels if not is_missing(label)}
    try:
        return tuple(sorted(known))
    except TypeError:
        return tuple(sorted(known, key=lambda label: (type(label).__name__, str(label))))


def _codes(column: Any, labels: Sequence[Any], name: str) -> NDArray[np.float32]:
    numeric = column.dtype.is_numeric() or _kind(column) == "Boolean"
    if numeric and labels and not any(map(_is_number, labels)):
        values = [value for value in column.to_list() if not is_missing(value)]
        if values:
            raise ValueError(
                f"Column {column.name!r} of {name} holds numbers ({values[0]!r}), but held "
                f"categories such as {labels[0]!r} in fit; pass the labels that the numbers stand "
                "for."
            )
    code_of = {label: float(code) for code, label in enumerate(labels)}
    codes = (code_of.get(label, np.nan) for label in column.to_list())
    return np.fromiter(codes, np.float32, len(column))


def _numbers(column: Any, name: str, remedy: str | None) -> NDArray[np.float64]:
    """Values of a column as floats, NaN where missing, or a refusal by the column's name."""
    kind = _kind(column)
    if kind == "Boolean" or column.dtype.is_numeric():
        return np.asarray(column.cast(_double()).to_numpy(), dtype=np.float64)
    dtype = getattr(column.to_native(), "dtype", kind)
    if kind == "Unknown" and str(dtype).startswith("float"):  # long doubles
        with np.errstate(over="ignore"):
            return np.asarray(column.to_numpy()).astype(np.float64)
    # (Objects that are all missing are taken for text.)
    if kind == "Object" or (str(dtype) == "object" and column.is_null().all()):
        values = column.to_list()
        try:
            numbers = [as_float(value) for value in values]
        except OverflowError:
            raise ValueError(
                f"Column {column.name!r} of {name} holds a number beyond double precision "
                "(1.8e308); divide it by a constant."
            ) from None
        if None not in numbers:
            return np.array(numbers, dtype=np.float64)
        other = values[numbers.index(None)]
        what = f"{type(other).__name__} values (such as {str(other)[:50]!r})"
    else:
        what = f"{dtype} values"
    remedy = remedy or _REMEDIES.get(kind, _ENCODE)
    raise ValueError(f"Column {column.name!r} of {name} holds {what}, not numbers; {remedy}.")


def _double() -> Any:
    return importlib.import_module("narwhals.stable.v2").Float64


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_) and not isinstance(value, complex)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    is_unlike_itself = value != value
    return isinstance(is_unlike_itself, bool | np.bool_) and bool(is_unlike_itself)


def nearest(name: Any, known: Iterable[str]) -> str | None:
    """The known name that is most like another, if one is."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return close[0] if close else None


def make_frame(library: str, values: NDArray[Any], names: Sequence[str], like: Any) -> Any:
    """Return values (n_rows, n_columns) as a frame of a library, with the index of ``like``."""
    try:
        module = importlib.import_module(library)
    except ImportError:
        raise ImportError(
            f"set_output asked for frames of {library}, which is not installed; install it: pip "
            f"install {library}."
        ) from None
    if library == "polars":
        return module.DataFrame(values, schema=list(names))
    index = like.index if isinstance(like, module.DataFrame) else None
    return module.DataFrame(values, columns=list(names), index=index)
