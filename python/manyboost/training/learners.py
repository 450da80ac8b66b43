"""Weak learners: the built-in tree, or any scikit-learn regressor in its place.

A learner is fitted to split gradients and answers with a :class:`WeakModel`. Trees put every row in
a leaf, and what a leaf predicts is decided afterwards; other learners predict by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from manyboost import _core
from manyboost.arrays import F32, F64, I8, U32
from manyboost.data.features import Table, compressed, for_kernels
from manyboost.data.stored import StoredTable, new_file
from manyboost.data.weights import Weights
from manyboost.training.strategies import Strategy

#: Trees whose leaves are found in one pass over the rows, and rows times trees, at most.
_TREES_AT_ONCE, _LEAVES_AT_ONCE = 32, 1 << 21


@dataclass
class Leaves:
    """A weak model that puts rows in leaves."""

    leaf_of_row: U32  # (n_rows,): of all training rows
    leaf_weights: F64  # (n_leaves,): of the rows that it was fitted to
    tree: Any
    known: NDArray[Any] | None = None  # leaf numbers of another library's tree, in order

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaf_weights)


@dataclass
class Predictions:
    """A weak model that predicts by itself: ``values`` (n_rows, n_columns)."""

    values: F32
    estimator: Any


WeakModel = Leaves | Predictions


@dataclass
class TreeLearner:
    """Grows built-in trees on binned features."""

    pool: _core.Pool
    features: _core.Features
    grower: _core.Grower
    keeps_columns = False
    grows = True

    @staticmethod
    def bin(
        pool: _core.Pool, X: Table, weight: F64 | None, max_bins: int, n_categories: U32 | None
    ) -> _core.Features:
        """Find cuts in single-precision features and bin them."""
        if isinstance(X, StoredTable):
            path, n_rows = new_file(X.path.parent, "bins"), len(X)
            binner = _core.ColumnBinner(pool, path, n_rows, weight, max_bins, n_categories)
            return X.binned(pool, binner)
        if sparse.issparse(X):
            columns = compressed(X.tocsc())
            return _core.Features.fit_sparse(pool, columns, X.shape[0], weight, max_bins)
        return _core.Features.fit(pool, X, weight, max_bins, n_categories)

    def prepare(self, X: Table) -> _core.Features:
        """Other data in the form that :meth:`leaves_of` takes."""
        if isinstance(X, StoredTable):
            return bin_stored(self.pool, X, self.features)
        if sparse.issparse(X):
            return self.features.bin_sparse(self.pool, compressed(X.tocsc()), X.shape[0])
        return self.features.bin(self.pool, X)

    def fit(
        self, z: F32, weight: F32 | None, rows: U32 | None, m: int, output: int, signs: I8 | None
    ) -> WeakModel:
        """Grow a tree on split gradients ``z`` (n_rows, n_components).

        ``weight`` is that of rows (n_rows,), or of components like ``z``, which then contains it.
        ``signs`` (n_features,) are monotonic constraints on a tree with one component.
        """
        tree = self.grower.grow(self.pool, z, weight, rows, m, output, signs)
        return Leaves(tree.leaf_of_row, tree.leaf_weights, tree)

    def leaves_of(self, model: Leaves, data: Any) -> U32:
        """Return the leaf of each row of prepared data."""
        return np.asarray(model.tree.apply(self.pool, data))


def bin_stored(pool: _core.Pool, X: StoredTable, features: _core.Features) -> _core.Features:
    """Bin features in a file with the cuts of others, into another file."""
    path = new_file(X.path.parent, "bins")
    return X.binned(pool, _core.ColumnBinner.known(path, len(X), features))


@dataclass
class ReplayLearner:
    """Puts rows in the leaves of known trees, one tree after the other, instead of growing them."""

    pool: _core.Pool
    trees: _core.Ensemble
    X: Table
    keeps_columns = False
    grows = False

    def __post_init__(self) -> None:
        self._sizes = self.trees.tree_sizes()
        # Leaves of some trees that follow each other (n_trees, n_rows), and the first of them.
        self._found, self._first = np.empty((0, self.X.shape[0]), np.uint32), 0

    def prepare(self, X: Table) -> Table:
        """Other data in the form that :meth:`leaves_of` takes: as it is."""
        return X

    def fit(
        self, z: F32, weight: F32 | None, rows: U32 | None, m: int, output: int, signs: I8 | None
    ) -> WeakModel:
        """Fill the tree of round ``m``, for one output or all, with the rows."""
        by_output = self.trees.kind == "per_output"
        tree = m * self.trees.n_outputs + output if by_output else m
        leaf_of_row, n_leaves = self._leaves(tree), (int(self._sizes[tree]) + 1) // 2
        # Where cells are weighted, the one component of a tree with one value per leaf has weights.
        weights = Weights(weight[:, 0] if weight is not None and weight.ndim == 2 else weight)
        if rows is not None:
            weights = weights.within(rows, len(leaf_of_row))
        if weights.rows is None:
            leaf_weights = np.bincount(leaf_of_row, minlength=n_leaves).astype(np.float64)
        else:
            cells = np.zeros((len(leaf_of_row), 1), np.float32)
            of_leaves = _core.leaf_weights(self.pool, leaf_of_row, n_leaves, cells, weights)
            leaf_weights = np.ascontiguousarray(of_leaves[:, 0])
        filled = self.trees.refilled(tree, leaf_of_row, leaf_weights)
        return Leaves(leaf_of_row, leaf_weights, filled)

    def _leaves(self, tree: int) -> U32:
        """Return the leaf of each row in a tree; those of the next trees are found with it."""
        place = tree - self._first
        if not 0 <= place < len(self._found):
            X, self._first, place = self.X, tree, 0
            n_trees = max(1, min(_TREES_AT_ONCE, _LEAVES_AT_ONCE // max(1, X.shape[0])))
            trees = tree, min(tree + n_trees, len(self._sizes))
            blocks = X.blocks() if isinstance(X, StoredTable) else [(0, for_kernels(X))]
            found = [self.trees.leaves(self.pool, block, *trees).T for _, block in blocks]
            self._found = np.ascontiguousarray(np.concatenate(found, axis=1))
        return np.asarray(self._found[place])

    def leaves_of(self, model: Leaves, data: Table) -> U32:
        """Return the leaf of each row of other data: none are scored meanwhile."""
        raise NotImplementedError


@dataclass
class ForeignLearner:
    """Fits clones of a scikit-learn regressor."""

    estimator: Any
    X: Table
    relabels: bool  # only its leaves are wanted; they come from its method apply
    seed: int
    # Predictions are added as they are, so each output needs its column.
    keeps_columns = True
    grows = True

    def prepare(self, X: Table) -> Table:
        """Other data in the form that predictions take: as it is."""
        return X

    def fit(
        self, z: F32, weight: F32 | None, rows: U32 | None, m: int, output: int, signs: I8 | None
    ) -> WeakModel:
        """Fit a clone to split gradients ``z`` (n_rows, n_components), without constraints."""
        assert signs is None
        estimator = clone(self.estimator)
        # 0: without such a parameter there is nothing to seed.
        if estimator.get_params().get("random_state", 0) is None:
            draw = np.random.default_rng([self.seed, m, output]).integers(2**31)
            estimator.set_params(random_state=int(draw))
        if weight is not None and weight.ndim == 2:
            z, weight, rows = _means_of_one_component(z, weight, rows)
        chosen = slice(None) if rows is None else rows
        target = z[chosen].astype(np.float64)
        target = target[:, 0] if z.shape[1] == 1 else target
        arguments = {}
        if weight is not None:
            if not has_fit_parameter(estimator, "sample_weight"):
                raise without_weights(estimator)
            arguments["sample_weight"] = weight[chosen].astype(np.float64)
        estimator.fit(self.X[chosen], target, **arguments)
        if not self.relabels:
            return Predictions(predict_columns(estimator, self.X, z.shape[1]), estimator)
        ids = _leaf_ids(estimator, self.X)
        known, leaf_of_row = np.unique(ids, return_inverse=True)
        bag = np.zeros(len(ids))
        bag[chosen] = 1.0 if weight is None else weight[chosen]
        counts = np.bincount(leaf_of_row, weights=bag, minlength=len(known))
        leaves = leaf_of_row.astype(np.uint32)
        return Leaves(leaves, counts.astype(np.float64), estimator, known)

    def leaves_of(self, model: Leaves, data: Table) -> U32:
        """Return the leaf of each row of other data."""
        assert model.known is not None
        return known_leaves(model.tree, model.known, data)


Learner: TypeAlias = TreeLearner | ReplayLearner | ForeignLearner


def _means_of_one_component(
    z: F32, weight: F32, rows: U32 | None
) -> tuple[F32, F32, NDArray[Any] | None]:
    """Split gradients, weights by row, and rows of positive weight, for the weighted sums ``z``."""
    omega = weight[:, 0]
    there = omega > 0
    means = np.divide(z[:, 0], omega, out=np.zeros_like(omega), where=there)
    chosen = np.flatnonzero(there) if rows is None else rows[there[rows]]
    return means[:, None], omega, chosen


def without_weights(estimator: Any) -> ValueError:
    """Say that an estimator takes no weights."""
    return ValueError(
        f"sample_weight was given, but {type(estimator).__name__} takes none; leave out "
        "sample_weight or use another estimator."
    )


def check_foreign(
    estimator: Any, strategy: Strategy, n_outputs: int, n_components: int, *, by_cell: bool
) -> None:
    """Refuse an estimator that a strategy cannot use; ``by_cell``: cells of a row have weights."""
    name = type(estimator).__name__
    if isinstance(estimator, type) or not hasattr(estimator, "predict"):
        raise ValueError(
            f"estimator={estimator!r} is not a regressor; pass an instance with fit and predict, "
            "such as Ridge()."
        )
    if strategy.relabels and not hasattr(estimator, "apply"):
        raise ValueError(
            f"strategy={strategy.name!r} needs the leaves of a tree, but {name} has no method "
            "apply; use strategy='project', or an estimator with apply such as "
            "DecisionTreeRegressor()."
        )
    tagged = hasattr(estimator, "__sklearn_tags__")
    takes_one = tagged and not get_tags(estimator).target_tags.multi_output
    n_columns = strategy.n_grown_columns(n_outputs, n_components)
    if not strategy.projects and n_columns > 1 and takes_one:
        raise ValueError(
            f"strategy={strategy.name!r} needs an estimator for several outputs, but {name} takes "
            "one; use strategy='project' or 'independent', or another estimator."
        )
    if by_cell and n_columns > 1:
        raise ValueError(
            f"{name} would be fitted to {n_columns} columns whose missing targets or weights of "
            "cells it cannot take; use strategy='project' or 'independent', n_components=1, or the "
            "built-in tree (estimator=None)."
        )
    weighted = by_cell and strategy.shares_trees
    if weighted and not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"Missing targets or weights of cells become weights of rows, but {name} takes none; "
            "use strategy='independent' or another estimator."
        )


def predict_columns(estimator: Any, X: Table, n_columns: int) -> F32:
    """Return the predictions of an estimator as a matrix, or say why they are not usable."""
    values = np.asarray(estimator.predict(X), dtype=np.float32)
    values = values[:, None] if values.ndim == 1 else values
    name = type(estimator).__name__
    if values.shape != (X.shape[0], n_columns):
        raise ValueError(
            f"{name} predicted an array of shape {values.shape} where "
            f"{(X.shape[0], n_columns)} was needed; it must handle Y with several columns, or use "
            "strategy='project'."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} predicted NaN or infinity; it cannot be boosted.")
    return np.ascontiguousarray(values)


def _leaf_ids(estimator: Any, X: Table) -> NDArray[Any]:
    ids = np.asarray(estimator.apply(X))
    if ids.shape != (X.shape[0],):
        raise ValueError(
            f"{type(estimator).__name__}.apply returned an array of shape {ids.shape}; "
            "strategy='relabel' needs one leaf per row, from a single tree."
        )
    return ids


def known_leaves(estimator: Any, known: NDArray[Any], X: Table) -> U32:
    """Return the places of leaves among those ``known`` from training."""
    ids = _leaf_ids(estimator, X)
    leaves = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    if not np.array_equal(known[leaves], ids):
        raise ValueError(
            f"{type(estimator).__name__}.apply returned a leaf that held no training row."
        )
    return leaves.astype(np.uint32)
