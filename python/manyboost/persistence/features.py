"""What a model file says about features: categories, their labels, and cuts in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from manyboost.data.categories import Categories
from manyboost.data.cells import column_name
from manyboost.data.frames import CategoryLabels
from manyboost.persistence.container import AnyArray, broken
from manyboost.persistence.parts import Source
from manyboost.persistence.schema import Array, Contents, finite, within
from manyboost.persistence.values import Unstorable

# The bits of split_feature without flags.
_FEATURE_BITS = np.uint32((1 << 30) - 1)


def stored_labels(source: Source) -> list[Any]:
    """Return the labels of columns of categories, encoded."""
    columns = sorted(source.model._category_labels.of_column.items())
    return [[int(j), _encoded(source, j, labels)] for j, labels in columns]


def _encoded(source: Source, j: int, labels: Sequence[Any]) -> Any:
    """Return the labels of a column, encoded; refuse what is neither text nor a number."""
    try:
        for label in labels:
            if not isinstance(label, str | int | float):
                raise Unstorable(f"a value of type {type(label).__name__}")
        return source.encoder.encode(list(labels))
    except Unstorable as unstorable:
        name = column_name(j, getattr(source.model, "feature_names_in_", None))
        what = f"Column {name} has categories that a model file cannot hold ({unstorable})"
        raise ValueError(f"{what}; turn them into text.") from None


def _tables(source: Source) -> dict[int, AnyArray]:
    return dict(sorted(source.progress.categories.tables.items()))


def _grouped(source: Source) -> dict[int, AnyArray]:
    return dict(sorted(source.progress.categories.grouped.items()))


def _cuts(source: Source) -> dict[int, AnyArray]:
    return source.progress.categories.cuts


def _joined(lists: dict[int, AnyArray]) -> AnyArray | None:
    return np.concatenate(list(lists.values())) if lists else None


_optional = partial(Array, optional=True)
ARRAYS = [
    _optional("category_features", "u4", "c", lambda s: list(_tables(s)) or None),
    _optional("category_counts", "u4", "c", lambda s: list(map(len, _tables(s).values())) or None),
    _optional("category_values", "f8", "*", lambda s: _joined(_tables(s))),
    _optional("group_features", "u4", "g", lambda s: list(_grouped(s)) or None),
    _optional("group_codes", "u1", "*", lambda s: _joined(_grouped(s))),
    _optional("cut_features", "u4", "f", lambda s: list(_cuts(s)) or None),
    _optional("cut_counts", "u4", "f", lambda s: list(map(len, _cuts(s).values())) or None),
    _optional("cut_values", "f8", "*", lambda s: _joined(_cuts(s))),
]


def read_categories(found: SimpleNamespace) -> Categories:
    """Return the categories and cuts of the features."""
    tables = _read_lists(found, "category", "categories")
    cuts = _read_lists(found, "cut", "cuts")
    if tables.keys() & cuts.keys():
        broken("a feature has both categories and cuts")
    return Categories(found.n_features, tables, cuts, _read_groups(found, tables))


def _read_groups(found: SimpleNamespace, tables: dict[int, AnyArray]) -> dict[int, AnyArray]:
    """Return the codes of categories of which some share one, by feature."""
    features, codes = found.group_features, found.group_codes
    grouped = {}
    if (features is None) != (codes is None):
        broken("it does not have all arrays of its rare categories")
    if features is not None:
        numbers = features.tolist()
        if not numbers or numbers != sorted(set(numbers)) or not tables.keys() >= set(numbers):
            broken("its features with rare categories are out of order")
        lengths = np.array([len(tables[j]) for j in numbers], np.uint32)
        grouped = dict(zip(numbers, pieces(codes, lengths), strict=True))
    for own in grouped.values():
        last = own.max(initial=0)
        if not np.array_equal(own[own < last], np.arange(last)) or (own == last).sum() < 2:
            broken("the codes of its rare categories are out of order")
    if any(len(table) > 255 for j, table in tables.items() if j not in grouped):
        broken("a feature has more than 255 categories")
    return grouped


def check_codes(found: SimpleNamespace, cuts: dict[int, AnyArray]) -> None:
    """Refuse splits between codes that a feature with cuts does not have."""
    feature, threshold = found.split_feature & _FEATURE_BITS, found.split_threshold
    for j, values in cuts.items():
        coded = threshold[(feature == j) & np.isfinite(threshold)]
        place = np.floor(coded.astype(np.float64)) + np.searchsorted(values, 0.0)
        if ((place < 0) | (place >= len(values))).any():
            broken(f"it has splits by cuts that feature {j} does not have")


def _read_lists(found: SimpleNamespace, name: str, what: str) -> dict[int, AnyArray]:
    """Return ascending numbers of some features, by feature."""
    parts = [getattr(found, f"{name}_{part}") for part in ("features", "counts", "values")]
    n_missing = sum(part is None for part in parts)
    if n_missing == 3:
        return {}
    if n_missing:
        broken(f"it does not have all arrays of its {what}")
    features = parts[0].tolist()
    most = 255 if name == "cut" else 2**32 - 1  # rare categories share a code
    lists = pieces(finite(parts[2]), within(parts[1], 0, most))
    if features != sorted(set(features)) or not features or features[-1] >= found.n_features:
        broken(f"its features with {what} are out of order")
    if any((np.diff(each) <= 0).any() for each in lists):
        broken(f"its {what} are out of order")
    return dict(zip(features, lists, strict=True))


def pieces(flat: AnyArray, counts: AnyArray) -> list[AnyArray]:
    """Cut an array into pieces of the given lengths."""
    if counts.sum(dtype=np.uint64) != len(flat):
        broken("it has lists whose lengths do not fit")
    return np.split(flat, counts.cumsum(dtype=np.intp)[:-1]) if len(counts) else []


def read_labels(file: Contents, categories: Categories) -> CategoryLabels:
    """Return the labels of columns of categories."""
    of_column: dict[int, tuple[Any, ...]] = {}
    for pair in file.found.category_labels:
        match pair:
            case [j, list() as stored] if type(j) is int and j in categories.tables:
                labels = of_column[j] = tuple(file.decode(stored))
            case _:
                broken("it has labels of no categorical feature")
        # (NaN is missing, and differs from itself.)
        simple = all(isinstance(label, str | int | float) and label == label for label in labels)
        if not simple or len(set(labels)) != len(labels):
            broken(f"the labels of feature {j} are not different texts or numbers")
        if not np.array_equal(categories.tables[j], np.arange(len(labels))):
            broken(f"the labels of feature {j} are not those of its categories")
    if [pair[0] for pair in file.found.category_labels] != sorted(of_column):
        broken("its labels are out of order")
    return CategoryLabels(of_column)
