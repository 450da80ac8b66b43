"""Models of all kinds to try things with, and the bytes of what they learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.persistence.model import to_parts

#: Where processes are started, so that they find the battery.
ROOT = Path(__file__).resolve().parent.parent

STRATEGIES = ("independent", "multioutput", "project", "relabel")


@dataclass
class Sample:
    """A model and what it is fitted to."""

    name: str
    model: Any
    X: Any
    Y: Any
    sample_weight: Any = None

    def fit(self, **changes: Any) -> Any:
        """A new model with these parameters changed, fitted."""
        model = type(self.model)(**{**self.model.get_params(deep=False), **changes})
        return model.fit(self.X, self.Y, self.sample_weight)


def samples(seed: int, n_rows: int, strategy: str, **parameters: Any) -> Iterator[Sample]:
    """Models of all losses and ways to train, of data drawn from the seed.

    From some thousand rows on, kernels are cut into pieces and threads take part.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 8))
    X[rng.random(X.shape) < 0.05] = np.nan
    Z = np.nan_to_num(X) @ rng.normal(size=(8, 20)) + rng.normal(size=(n_rows, 20))
    labels = (Z > 1).astype(int)
    weight = rng.exponential(size=n_rows)
    with_holes = np.where(rng.random(Z.shape) < 0.3, np.nan, Z)
    counts = np.round(np.exp(Z / 4))
    common = {
        "strategy": strategy,
        "random_state": seed,
        "max_iter": 5,
        "max_leaf_nodes": 8,
        "subsample": 0.7 if seed % 3 == 0 else 1.0,
        "max_features": 0.5 if seed % 3 == 1 else 1.0,
        **parameters,
    }
    constraints = {"categorical_features": [7], "monotonic_cst": [1, -1, 0, 0, 0, 0, 0, 0]}
    categories = X.copy()
    categories[:, 7] = np.round(3 * X[:, 7])
    stopping = {"early_stopping": True, "n_iter_no_change": 2}
    one_by_one = {"early_stopping": "per_output", "n_iter_no_change": 1}
    several = ["squared_error"] * 10 + ["poisson"] * 5 + ["log_loss"] * 5
    mixed = np.column_stack([Z[:, :10], counts[:, 10:15], labels[:, 15:]])
    classes = np.argmax(Z[:, :5], axis=1)
    yield Sample("squared error", ManyBoostRegressor(**common), X, Z, weight)
    yield Sample("missing targets", ManyBoostRegressor(**common), X, with_holes)
    yield Sample("absolute error", ManyBoostRegressor("absolute_error", **common), X, Z)
    line_search = {**common, "step": "line_search"}
    yield Sample("line search", ManyBoostRegressor("poisson", **line_search), X, counts)
    yield Sample("constraints", ManyBoostRegressor(**{**common, **constraints}), categories, Z)
    yield Sample("several losses", ManyBoostRegressor(several, **common), X, mixed, weight)
    yield Sample("labels", ManyBoostClassifier(**{**common, **stopping}), X, labels)
    yield Sample("labels one by one", ManyBoostClassifier(**{**common, **one_by_one}), X, labels)
    yield Sample("classes", ManyBoostClassifier(**common), X, classes, weight)


def model_bytes(model: Any) -> bytes:
    """All that was learned, as a model file holds it; how it was run is no part of it."""
    parameters = model.get_params(deep=False)
    how = {"n_jobs": None, "verbose": 0, "callbacks": None, "checkpoint": None}
    model.set_params(**{name: value for name, value in how.items() if name in parameters})
    try:
        return b"".join(to_parts(model, "all"))
    finally:
        model.set_params(**{name: parameters[name] for name in how if name in parameters})
