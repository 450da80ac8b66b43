"""Calibrators in a model file."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from manyboost.persistence.container import AnyArray, broken
from manyboost.persistence.features import pieces
from manyboost.persistence.parts import Source
from manyboost.persistence.schema import Array, finite, within
from manyboost.training.calibrators import Isotonics, Sigmoids


def _attribute(kind: type, name: str) -> Any:
    """Return what gets an array of a calibrator, if the model has one of this kind."""

    def get(source: Source) -> AnyArray | None:
        calibrator = source.model._calibrator
        return getattr(calibrator, name) if isinstance(calibrator, kind) else None

    return get


_optional = partial(Array, optional=True)
ARRAYS = [
    _optional("sigmoid_slopes", "f8", "d", _attribute(Sigmoids, "slope")),
    _optional("sigmoid_intercepts", "f8", "d", _attribute(Sigmoids, "intercept")),
    _optional("isotonic_counts", "u4", "d", _attribute(Isotonics, "counts")),
    _optional("isotonic_knots", "f8", "knots", _attribute(Isotonics, "knots")),
    _optional("isotonic_values", "f8", "knots", _attribute(Isotonics, "values")),
]


def read(found: SimpleNamespace) -> Sigmoids | Isotonics | None:
    """Check the calibrator of a file, if it has one."""
    sigmoids = found.sigmoid_slopes, found.sigmoid_intercepts
    isotonics = found.isotonic_counts, found.isotonic_knots, found.isotonic_values
    given = [[each is not None for each in arrays] for arrays in (sigmoids, isotonics)]
    if not any(map(any, given)):
        return None
    if [any(each) for each in given] != [all(each) for each in given] or all(map(any, given)):
        broken("it does not have all arrays of its calibrator")
    classes = found.targets.get("kind")
    if classes not in ("binary", "multilabel") or not found.n_members:
        broken("it has a calibrator that its outputs cannot have")
    return _sigmoids(*sigmoids) if all(given[0]) else _isotonics(*isotonics)


def _sigmoids(slope: AnyArray, intercept: AnyArray) -> Sigmoids:
    known = ~np.isnan(slope)
    if (known != ~np.isnan(intercept)).any():
        broken("a sigmoid of its calibrator has a slope or an intercept alone")
    within(finite(slope[known]), 0, np.inf)
    finite(intercept[known])
    return Sigmoids(slope, intercept)


def _isotonics(counts: AnyArray, knots: AnyArray, values: AnyArray) -> Isotonics:
    within(finite(values), 0, 1)
    curves = zip(pieces(finite(knots), counts), pieces(values, counts), strict=True)
    for x, p in curves:
        if (np.diff(x) <= 0).any() or (np.diff(p) < 0).any():
            broken("a curve of its calibrator is out of order")
    return Isotonics(counts.astype(np.intp), knots, values)
