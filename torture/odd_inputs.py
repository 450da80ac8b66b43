"""Odd values and odd containers for features, targets and weights, and what becomes of them.

An oddity changes an ordinary array and says what should happen: a refusal with certain words, or
the answer to its meaning, an ordinary array of double precision. A container holds values in some
other way, which must not matter.
"""

from __future__ import annotations

import decimal
import fractions
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from torture.clarity import check_refusal

PLACES = ("X", "Y", "sample_weight", "X_val", "Y_val", "predict")
KINDS = ("regressor", "labels", "classes")
FEATURES = ("X", "X_val", "predict")
TARGETS = ("Y", "Y_val")

Array = np.ndarray[Any, Any]


class CannotHold(Exception):
    """A container that has no place for such values."""


# ---------------------------------------------------------------------- ordinary data


@dataclass
class Data:
    """The arguments of a fit and of a prediction."""

    kind: str
    X: Any
    Y: Any
    sample_weight: Any = None
    X_val: Any = None
    Y_val: Any = None
    predict: Any = None

    def __getitem__(self, place: str) -> Any:
        return getattr(self, place)

    def replaced(self, **places: Any) -> Data:
        return Data(**{**vars(self), **places})


def ordinary(kind: str, n_rows: int = 24, seed: int = 0) -> Data:
    """Small data with a signal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n_rows, 3)).round(3)
    Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2]]) + 0.1 * rng.normal(size=(2 * n_rows, 2))
    if kind == "labels":
        Y = (Y > 0).astype(np.float64)
    if kind == "classes":
        Y = np.array(["a", "b", "c"])[np.clip(np.round(Y[:, 0]) + 1, 0, 2).astype(int)]
        Y[:3] = Y[n_rows : n_rows + 3] = ["a", "b", "c"]
    weight = rng.uniform(0.5, 2, size=n_rows)
    first, second = slice(0, n_rows), slice(n_rows, None)
    return Data(kind, X[first], Y[first], weight, X[second], Y[second], X[second][:5])


# ---------------------------------------------------------------------- odd values


@dataclass(frozen=True)
class Oddity:
    """``make`` turns an ordinary array into an odd one.

    ``refusal`` has words of the expected refusal, "" for any; None: it is taken as ``meaning``
    (the same numbers in double precision unless given) would be.
    """

    name: str
    make: Callable[[Array], Any]
    refusal: str | None = None
    meaning: Callable[[Array], Array] | None = None

    def numbers(self, ordinary: Array) -> Array:
        if self.meaning is not None:
            return self.meaning(ordinary)
        return np.ascontiguousarray(self.make(ordinary), dtype=np.float64)


def _put(value: Any, *place: Any, dtype: Any = None) -> Callable[[Array], Array]:
    def make(array: Array) -> Array:
        array = array.astype(dtype or array.dtype)
        array[place if array.ndim == len(place) else place[0]] = value
        return array

    return make


def _filled(value: Any, dtype: Any = None) -> Callable[[Array], Array]:
    return lambda array: np.full(array.shape, value, dtype=dtype)


def _objects(change: Callable[[Any], Any], at: tuple[int, ...] | None = None) -> Any:
    """An array of objects: all values changed, or the one in a place."""

    def make(array: Array) -> Array:
        objects = np.empty(array.shape, object)
        objects[...] = array.tolist()
        for place in [at[: array.ndim]] if at else np.ndindex(array.shape):
            objects[place] = change(objects[place])
        return objects

    return make


def _nan(*place: Any) -> Callable[[Array], Array]:
    return _put(np.nan, *place, dtype=np.float64)


ALL = slice(None)
_LARGE_LONG = np.longdouble("1e4000") if np.finfo(np.longdouble).max > 1e308 else np.inf

NUMBERS = (
    Oddity("plain", lambda a: a),
    Oddity("single precision", lambda a: a.astype(np.float32)),
    Oddity("half precision", lambda a: a.astype(np.float16)),
    Oddity("long double", lambda a: a.astype(np.longdouble)),
    Oddity("integers", lambda a: np.round(10 * a).astype(np.int64)),
    Oddity("bytes as integers", lambda a: np.round(10 * a).astype(np.int8)),
    Oddity("large unsigned integers", lambda a: (np.abs(a) * 1e18).astype(np.uint64)),
    Oddity("truth values", lambda a: a > 0),
    Oddity("objects that are floats", _objects(float)),
    Oddity("objects that are fractions", _objects(fractions.Fraction)),
    Oddity("objects that are decimals", _objects(lambda v: decimal.Decimal(repr(v)))),
    Oddity("objects with None", _objects(lambda v: None, at=(1, 1)), meaning=_nan(1, 1)),
    Oddity("objects with pandas.NA", _objects(lambda v: pd.NA, at=(1, 1)), meaning=_nan(1, 1)),
    Oddity("objects with huge integers", _objects(lambda v: 10**400, at=(1, 1)), ""),
    Oddity("objects with text", _objects(lambda v: "x", at=(1, 1)), "not numbers"),
    Oddity("objects with lists", _objects(lambda v: [1.0], at=(1, 1)), ""),
    Oddity("objects with dicts", _objects(lambda v: {}, at=(1, 1)), ""),
    Oddity("objects with complex numbers", _objects(lambda v: 1j, at=(1, 1)), ""),
    Oddity("text", lambda a: np.full(a.shape, "word"), "not numbers"),
    Oddity("numbers as text", lambda a: a.astype(str), "not numbers"),
    Oddity("numbers as bytes", lambda a: a.astype(str).astype("S"), "not numbers"),
    Oddity("complex numbers", lambda a: a + 1j, "omplex"),
    Oddity("dates", lambda a: np.full(a.shape, np.datetime64("2024-01-01")), "not numbers"),
    Oddity("spans of time", lambda a: np.full(a.shape, np.timedelta64(3, "D")), "not numbers"),
    Oddity("records", lambda a: np.zeros(a.shape, [("u", float), ("v", float)]), ""),
    Oddity("raw bytes", lambda a: np.zeros(a.shape, "V8"), ""),
    Oddity("three dimensions", lambda a: a.reshape((*a.shape, 1, 1)[:3]), ""),
)

_RANGE = (
    Oddity("infinity", _put(np.inf, 1, 1), "infinite"),
    Oddity("minus infinity", _put(-np.inf, 1, 1), "infinite"),
    Oddity("1e300", _put(1e300, 1, 1), "single precision"),
    Oddity("minus 1e300", _put(-1e300, 1, 1), "single precision"),
    Oddity("beyond double", _put(_LARGE_LONG, 1, 1, dtype=np.longdouble), "infinite"),
    Oddity("largest single", _put(float(np.finfo(np.float32).max), 1, 1)),
    Oddity("smallest of all", _filled(5e-324)),
    Oddity("subnormals", lambda a: a * 1e-310),
    Oddity("subnormals in single precision", lambda a: a * 1e-40),
    Oddity("neighbours", lambda a: 1 + np.round(10 * a) * 2.0**-23),
    Oddity("zeros of both signs", lambda a: np.where(a > 0, 0.0, -0.0)),
    Oddity("constant", _filled(3.7)),
)

_ODD_FEATURES = (
    *NUMBERS,
    *(replace(o, refusal=None) for o in _RANGE),
    Oddity("a missing value", _nan(1, 1)),
    Oddity("a missing row", _nan(1, ALL)),
    Oddity("a missing column", _nan(ALL, 1)),
    Oddity("all missing", _filled(np.nan)),
    Oddity("no rows", lambda a: a[:0], "no rows"),
    Oddity("no columns", lambda a: a[:, :0], "0 feature(s)"),
    Oddity("one dimension", lambda a: a[:, 0], "dimension"),
    Oddity("a number", lambda a: a[0, 0], "pass an array"),
    Oddity("None", lambda a: None, ""),
)

_ODD_TARGETS = (
    *NUMBERS,
    *(o for o in _RANGE if o.name != "largest single"),
    Oddity("largest single", _put(float(np.finfo(np.float32).max), 1, 1), "single precision"),
    Oddity("largest of all", lambda a: np.where(a > 0, 1e37, -1e37)),
    Oddity("a missing value", _nan(1, 1)),
    Oddity("a missing row", _nan(1, ALL)),
    Oddity("a missing column", _nan(ALL, 1), "no observed value"),
    Oddity("all missing", _filled(np.nan), "no observed value"),
    Oddity("no outputs", lambda a: a[:, :0], "no outputs"),
    Oddity("one output", lambda a: a[:, :1]),
    Oddity("one dimension", lambda a: a[:, 0]),
    Oddity("too few rows", lambda a: a[:-1], "inconsistent"),
    Oddity("a number", lambda a: a[0, 0], "dimension"),
    Oddity("None", lambda a: None, "None"),
)

_INDICATOR = (
    Oddity("plain", lambda a: a),
    Oddity("integers", lambda a: a.astype(np.int64)),
    Oddity("bytes as integers", lambda a: a.astype(np.uint8)),
    Oddity("truth values", lambda a: a > 0),
    Oddity("half precision", lambda a: a.astype(np.float16)),
    Oddity("objects that are floats", _objects(float)),
    Oddity("objects with None", _objects(lambda v: None, at=(1, 1)), meaning=_nan(1, 1)),
    Oddity("a missing value", _nan(1, 1)),
    Oddity("a missing row", _nan(1, ALL)),
    Oddity("a missing column", _nan(ALL, 1), "no observed value"),
    Oddity("all missing", _filled(np.nan), "no observed value"),
    Oddity("all absent", _filled(0.0)),
    Oddity("all present", _filled(1.0)),
    Oddity("a two", _put(2.0, 1, 1), "indicator"),
    Oddity("a half", _put(0.5, 1, 1), "labels are 0 or 1"),
    Oddity("minus one", _put(-1.0, 1, 1), "indicator"),
    Oddity("a label of 255", _put(255.0, 1, 1), "indicator"),
    Oddity("infinity", _put(np.inf, 1, 1), ""),
    Oddity("text", lambda a: a.astype(str), meaning=lambda a: a.astype(str)),
    Oddity("objects with lists", _objects(lambda v: [1], at=(1, 1)), ""),
    Oddity("complex numbers", lambda a: a + 1j, ""),
    Oddity("dates", lambda a: np.full(a.shape, np.datetime64("2024-01-01")), ""),
    Oddity("records", lambda a: np.zeros(a.shape, [("u", float), ("v", float)]), ""),
    Oddity("no outputs", lambda a: a[:, :0], "no outputs"),
    Oddity("three dimensions", lambda a: a[:, :, None], "dimension"),
    Oddity("too few rows", lambda a: a[:-1], "inconsistent"),
    Oddity("a number", lambda a: a[0, 0], "dimension"),
    Oddity("None", lambda a: None, "None"),
)


def _numbered(array: Array) -> Array:
    return np.unique(array, return_inverse=True)[1].astype(np.float64)


# The meaning of classes is what they are, not which numbers stand for them.
_CLASSES = (
    Oddity("plain", lambda a: a, meaning=_numbered),
    Oddity("objects that are text", lambda a: a.astype(object), meaning=_numbered),
    Oddity("bytes", lambda a: a.astype("S"), "bytes"),
    Oddity("integers", lambda a: _numbered(a).astype(np.int64), meaning=_numbered),
    Oddity("huge integers", lambda a: _numbered(a).astype(np.int64) + 2**60, meaning=_numbered),
    Oddity("whole floats", _numbered, meaning=_numbered),
    Oddity("truth values", lambda a: a == "a"),
    Oddity("objects with None", _objects(lambda v: None, at=(1,)), "missing"),
    Oddity("missing floats", lambda a: _nan(1)(_numbered(a)), "missing"),
    Oddity("objects of two types", _objects(lambda v: 3, at=(1,)), ""),
    Oddity("objects with lists", _objects(lambda v: [1], at=(1,)), ""),
    Oddity("broken numbers", lambda a: _numbered(a) + 0.5, "Unknown label type"),
    Oddity("infinity", lambda a: _put(np.inf, 1)(_numbered(a)), "infinite"),
    Oddity("one class", lambda a: np.full(len(a), "a"), "one class"),
    Oddity("complex numbers", lambda a: _numbered(a) + 1j, ""),
    Oddity("dates", lambda a: np.full(len(a), np.datetime64("2024-01-01")), ""),
    Oddity("records", lambda a: np.zeros(len(a), [("u", float), ("v", float)]), ""),
    Oddity("three dimensions", lambda a: a[:, None, None], "dimension"),
    Oddity("too few rows", lambda a: a[:-1], "inconsistent"),
    Oddity("a number", lambda a: np.array(3.0), "dimension"),
    Oddity("None", lambda a: None, "None"),
)

_WEIGHTS = (
    *(o for o in NUMBERS if o.name not in ("objects with None", "objects with pandas.NA")),
    Oddity("ones", np.ones_like),
    Oddity("some zeros", _put(0.0, slice(2, 5))),
    Oddity("all zero", np.zeros_like, "zero"),
    Oddity("zeros of both signs", lambda a: np.where(np.arange(len(a)) % 2, -0.0, a)),
    Oddity("a number for all", lambda a: 2.0, meaning=lambda a: np.full(len(a), 2.0)),
    Oddity("negative", _put(-1e-300, 1), "negative"),
    Oddity("a missing weight", _nan(1), "missing"),
    Oddity("objects with None", _objects(lambda v: None, at=(1,)), ""),
    Oddity("objects with pandas.NA", _objects(lambda v: pd.NA, at=(1,)), ""),
    Oddity("infinity", _put(np.inf, 1), "infinite"),
    Oddity("minus infinity", _put(-np.inf, 1), "negative"),
    Oddity("1e300", _put(1e300, 1), "single precision"),
    Oddity("1e-300", _put(1e-300, 1), "single precision"),
    Oddity("subnormals in single precision", lambda a: a * 1e-40),
    Oddity("largest single", lambda a: np.full(len(a), float(np.finfo(np.float32).max))),
    Oddity("tiny to huge", lambda a: np.geomspace(1e-12, 1e12, len(a))),
    Oddity("too few", lambda a: a[:-1], "shape"),
    Oddity("none", lambda a: a[:0], "shape"),
)


def oddities(kind: str, place: str) -> tuple[Oddity, ...]:
    """The odd values to try in a place."""
    if place in FEATURES:
        return _ODD_FEATURES
    if place == "sample_weight":
        return _WEIGHTS
    return {"regressor": _ODD_TARGETS, "labels": _INDICATOR, "classes": _CLASSES}[kind]


# ---------------------------------------------------------------------- containers


@dataclass(frozen=True)
class Container:
    """``hold`` puts an array into something else, or raises :class:`CannotHold`."""

    name: str
    hold: Callable[[Array], Any]
    family: str = "dense"


def _numeric(array: Any, dimensions: tuple[int, ...] = (1, 2)) -> Array:
    if not isinstance(array, np.ndarray) or array.ndim not in dimensions:
        raise CannotHold
    if array.dtype.kind not in "fiub":
        raise CannotHold
    return array


def _any_array(array: Any) -> Array:
    if not isinstance(array, np.ndarray) or array.ndim == 0:
        raise CannotHold
    return array


def _strided(array: Any) -> Array:
    """Every other row and column of a larger array with nonsense between."""
    array = _any_array(array)
    larger = np.empty(tuple(2 * n for n in array.shape), array.dtype)
    larger[...] = array.flat[0] if array.size else 0
    view = larger[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def _reversed(array: Any) -> Array:
    """The same array, kept backwards."""
    backwards = tuple(slice(None, None, -1) for _ in _any_array(array).shape)
    return array[backwards].copy()[backwards]


def _read_only(array: Any) -> Array:
    array = _any_array(array).copy()
    array.flags.writeable = False
    return array


def _memory_map(array: Any) -> Array:
    array = _any_array(array)
    if array.dtype.hasobject or array.size == 0:
        raise CannotHold
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "array"
        path.write_bytes(array.tobytes())
        # (The file is unlinked, and lives as long as it is mapped.)
        return np.memmap(path, array.dtype, mode="r", shape=array.shape)


def _masked(array: Any) -> Array:
    """NaN becomes a masked place with nonsense beneath."""
    array = _any_array(array)
    if array.dtype.kind != "f":
        return np.ma.MaskedArray(array)
    missing = np.isnan(array)
    return np.ma.MaskedArray(np.where(missing, 1e6, array).astype(array.dtype), missing)


def _other_order(array: Any) -> Array:
    array = _any_array(array)
    return array.astype(array.dtype.newbyteorder("S")) if array.dtype.kind in "fiuc" else array


class _Subclass(np.ndarray):  # type: ignore[type-arg]
    """An array of another name."""


def _sparse(form: str, *, as_array: bool) -> Callable[[Array], Any]:
    def hold(array: Array) -> Any:
        array = _numeric(array, (2,))
        if array.dtype in (np.float16, np.longdouble):
            raise CannotHold
        return getattr(sparse, f"{form}_{'array' if as_array else 'matrix'}")(array)

    return hold


def _untidy_rows(array: Array) -> Any:
    """CSR with places stored twice, not in order, zeros stored, long indices."""
    array = _numeric(array, (2,))
    if array.dtype in (np.float16, np.longdouble) or array.dtype.kind == "b":
        raise CannotHold
    n, p = array.shape
    backwards = np.arange(p)[::-1]
    indices = np.tile(np.concatenate([backwards, backwards]), n).astype(np.int64)
    data = np.concatenate([array[:, backwards], np.zeros_like(array)], axis=1).ravel()
    indptr = (2 * p * np.arange(n + 1)).astype(np.int64)
    return sparse.csr_array((data, indices, indptr), shape=array.shape)


def _names(array: Array) -> list[str]:
    return [f"column {j}" for j in range(array.shape[1])]


def _pandas(array: Array) -> Any:
    array = _any_array(array)
    if array.ndim == 1:
        return pd.Series(array, name="y")
    if array.ndim != 2:
        raise CannotHold
    return pd.DataFrame(array, columns=_names(array))


def _pandas_as(dtype: str) -> Callable[[Array], Any]:
    def hold(array: Array) -> Any:
        exact = _numeric(array).astype(np.float64)
        if array.dtype.kind in "iu" and not np.array_equal(exact.astype(array.dtype), array):
            raise CannotHold
        return _pandas(exact).astype(dtype)

    return hold


def _pandas_sparse(array: Array) -> Any:
    array = _numeric(array, (2,)).astype(np.float64)
    return pd.DataFrame(
        {name: pd.arrays.SparseArray(array[:, j]) for j, name in enumerate(_names(array))}
    )


def _pandas_numbered(array: Array) -> Any:
    array = _any_array(array)
    if array.ndim != 2:
        raise CannotHold
    rng = np.random.default_rng(0)
    return pd.DataFrame(array, index=rng.permutation(len(array)))


def _pandas_twice(array: Array) -> Any:
    array = _any_array(array)
    if array.ndim != 2 or array.shape[1] < 2:
        raise CannotHold
    return pd.DataFrame(array, columns=["same"] * array.shape[1])


def _polars(array: Array) -> Any:
    array = _numeric(array)
    if array.dtype in (np.float16, np.longdouble):
        raise CannotHold
    if array.ndim == 1:
        return pl.Series("y", array)
    return pl.DataFrame({name: array[:, j].copy() for j, name in enumerate(_names(array))})


def _polars_nulls(array: Array) -> Any:
    frame = _polars(array)
    return frame.fill_nan(None) if array.dtype.kind == "f" else frame


CONTAINERS = (
    Container("array", lambda a: a),
    Container("Fortran order", lambda a: np.asfortranarray(_any_array(a))),
    Container("backwards", _reversed),
    Container("strided", _strided),
    Container("read-only", _read_only),
    Container("memory map", _memory_map),
    Container("masked", _masked),
    Container("other byte order", _other_order),
    Container("subclass", lambda a: _any_array(a).view(_Subclass)),
    Container("list", lambda a: _any_array(a).tolist()),
    Container("tuples", lambda a: tuple(map(tuple, _numeric(a, (2,)).tolist()))),
    *(
        Container(f"{form} {'array' if as_array else 'matrix'}", hold, "sparse")
        for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for as_array in (False, True)
        for hold in [_sparse(form, as_array=as_array)]
    ),
    Container("untidy rows", _untidy_rows, "sparse"),
    Container("pandas", _pandas, "pandas"),
    Container("pandas with NA", _pandas_as("Float64"), "pandas"),
    Container("pandas objects", _pandas_as("object"), "pandas"),
    Container("pandas sparse", _pandas_sparse, "pandas"),
    Container("pandas numbered", _pandas_numbered, "pandas"),
    Container("matrix", lambda a: np.asmatrix(_numeric(a, (2,)))),
    Container("pandas with a name twice", _pandas_twice, "twice"),
    Container("polars", _polars, "polars"),
    Container("polars with nulls", _polars_nulls, "polars"),
)


def hold(container: Container, array: Any) -> Any:
    """The array in the container; :class:`CannotHold` if it has no place for it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return container.hold(array)
    except CannotHold:
        raise
    except Exception as error:
        # (What a library does not put together is no input.)
        raise CannotHold from error


def turns_into_something_else(container: Container, oddity: Oddity, kind: str, place: str) -> bool:
    """Whether what the container makes of the values is something else that is allowed."""
    if container.name in ("list", "tuples") and place in TARGETS:
        # Lists of text are labels in sets, lists of records are rows of an indicator.
        return (kind, oddity.name) in (("labels", "text"), ("classes", "records"))
    # Columns of text in a frame are categories.
    is_text = oddity.name in ("text", "numbers as text")
    return container.family == "pandas" and place == "X" and is_text


def container_refusal(container: Container, place: str, kind: str) -> str | None:
    """Words with which a container is refused, whatever it holds; None if it is not."""
    if container.family == "twice":
        return "two columns named"
    is_dense = place == "sample_weight" or (place in TARGETS and kind == "regressor")
    return "sparse matrix" if container.family == "sparse" and is_dense else None


# ---------------------------------------------------------------------- what becomes of them


def fingerprint(data: Any) -> Any:
    """All that may be seen of data, to tell whether it was changed."""
    if data is None or isinstance(data, str | int | float):
        return repr(data)
    if isinstance(data, list | tuple):
        return type(data), [fingerprint(each) for each in data]
    if isinstance(data, np.ma.MaskedArray):
        return "masked", fingerprint(data.data), fingerprint(np.ma.getmaskarray(data))
    if isinstance(data, np.ndarray):
        content = repr(data.tolist()) if data.dtype.hasobject else data.tobytes()
        return data.dtype, data.shape, data.strides, data.flags.writeable, content
    if sparse.issparse(data):
        if data.format == "dok":
            return data.shape, data.dtype, repr(sorted(data.items()))
        return data.shape, {name: fingerprint(a) for name, a in _sparse_parts(data)}
    if isinstance(data, pd.DataFrame):
        columns = [fingerprint(data.iloc[:, j]) for j in range(data.shape[1])]
        return list(data.columns), data.index.tolist(), columns
    if isinstance(data, pd.Series):
        return data.name, str(data.dtype), pickle.dumps(data.tolist())
    if isinstance(data, pl.DataFrame):
        return data.columns, [fingerprint(column) for column in data.get_columns()]
    if isinstance(data, pl.Series):
        return data.name, str(data.dtype), pickle.dumps(data.to_list())
    return repr(data)


def _sparse_parts(data: Any) -> Iterator[tuple[str, Any]]:
    for name in ("data", "indices", "indptr", "row", "col", "offsets", "rows"):
        part = getattr(data, name, None)
        if isinstance(part, np.ndarray):
            yield name, part


_PARAMETERS = {"max_iter": 2, "min_samples_leaf": 2, "random_state": 0, "n_jobs": 1}


def answer(data: Data, **parameters: Any) -> Array:
    """Fit, predict, and return the predictions; they and the training score must be finite."""
    make = ManyBoostRegressor if data.kind == "regressor" else ManyBoostClassifier
    model: Any = make(**{**_PARAMETERS, **parameters})
    arguments = {} if data.X_val is None else {"X_val": data.X_val, "Y_val": data.Y_val}
    model.fit(data.X, data.Y, sample_weight=data.sample_weight, **arguments)
    if not np.isfinite(model.train_score_).all():
        raise ArithmeticError(f"the training score is {model.train_score_}")
    rows = data.X if data.predict is None else data.predict
    if data.kind == "regressor":
        values = np.asarray(model.predict(rows))
    else:
        found = model.predict_proba(rows)  # of several columns of classes: an array for each
        if isinstance(found, list):
            found = np.concatenate([np.ravel(each) for each in found])
        values = np.asarray(found)
        model.predict(rows)
    if not np.isfinite(values).all():
        raise ArithmeticError("predictions are not finite")
    return values


#: Warnings that say what a caller should know and hide no loss.
_FAIR_WARNINGS = ("feature names", "A column-vector", "Training ended with a mean loss")


def outcome(data: Data, **parameters: Any) -> tuple[str, Any]:
    """("answer", predictions) or ("refused", sentence); anything else is an error."""
    before = {place: fingerprint(data[place]) for place in PLACES}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: tuple[str, Any] = ("answer", answer(data, **parameters))
        except (ValueError, TypeError) as error:
            check_refusal(error)
            result = ("refused", str(error))
    for place in PLACES:
        if fingerprint(data[place]) != before[place]:
            raise InputChanged(f"{place} was changed")
    for warning in caught:
        if not any(words in str(warning.message) for words in _FAIR_WARNINGS):
            raise UnfairWarning(f"{warning.category.__name__}: {warning.message}")
    return result


class InputChanged(Exception):
    """Data that a call was given are other data after it."""


class UnfairWarning(Exception):
    """A warning that is no business of the user, or hides that something was lost."""
