"""Similarity of outputs, and the training rows behind a prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manyboost import _core
from manyboost.arrays import F64, U32


def leaf_shares(model: _core.Ensemble, tree: int) -> F64:
    """Return the share of the training rows in each leaf of a tree (n_leaves,)."""
    _, _, left, _, cover, _, _ = model.tree(tree)
    covers = cover[left == 0].astype(np.float64)
    return np.asarray(covers / covers.sum() if covers.sum() > 0 else np.ones_like(covers))


def output_products(model: _core.Ensemble, n_outputs: int) -> F64:
    """Return the covariances of what trees add to the outputs, summed over the trees.

    The result is (n_outputs, n_outputs). The trees must be shared by all outputs.
    """
    steps = model.steps().astype(np.float64)
    products = np.zeros((n_outputs, n_outputs))
    variances = np.zeros(len(steps))
    for tree in range(len(model.tree_sizes())):
        shares = leaf_shares(model, tree)[:, None]
        values = model.leaf_values(tree).astype(np.float64)
        values -= (shares * values).sum(axis=0)
        if len(steps):
            variances[tree] = (shares * values**2).sum()
        else:
            products += values.T @ (shares * values)
    if len(steps):
        products = steps.T @ (variances[:, None] * steps)
    return (products + products.T) / 2


def cosines(products: F64) -> F64:
    """Divide products of vectors by their lengths: 1 on the diagonal, 0 for zero vectors."""
    lengths = np.sqrt(np.diag(products))
    scale = np.outer(lengths, lengths)
    result = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    np.fill_diagonal(result, 1.0)
    return np.asarray(np.clip(result, -1.0, 1.0))


@dataclass
class LinearRounds:
    """Boosting with squared error as a linear function of the targets.

    For given trees, a round changes the residuals r of the training rows to r − μ A r and adds
    μ a·r to the prediction of a row. With leaf means, A averages over the leaf of each row. With
    one value g for each leaf and a step ρ for each output, A projects on g.
    """

    model: _core.Ensemble
    leaves: U32  # (n_rows, n_trees), of the rows to predict
    training_leaves: U32  # (n_train, n_trees)
    learning_rate: float
    l2: float

    def weights(self, trees: range, weight: F64, within: Callable[[int], F64]) -> F64:
        """Return the weights (n_rows, n_train) of the training targets in the predictions.

        ``trees`` are those of an output, round by round; ``weight`` (n_train,) has the weights of
        the rows, and ``within(m)`` the same with zeros for rows that round m was not fitted to.
        """
        n_train, n_rows = len(self.training_leaves), len(self.leaves)
        # Backwards: the weights of the residuals before a round in the final predictions.
        counts = np.zeros((n_train, n_rows))
        step = self._along_values if len(self.model.steps()) else self._by_leaf
        for m in reversed(range(len(trees))):
            step(trees[m], within(m), counts)
        start = weight / weight.sum()
        counts += start[:, None] * (1 - counts.sum(axis=0))
        return counts.T

    def _by_leaf(self, tree: int, weight: F64, counts: F64) -> None:
        of_row, of_train = self.leaves[:, tree], self.training_leaves[:, tree]
        n_leaves = len(self.model.leaf_values(tree))
        total = np.bincount(of_train, weight, n_leaves) + self.l2
        share = np.divide(weight, total[of_train], out=np.zeros_like(weight), where=weight > 0)
        n_train, n_rows = counts.shape
        places = of_train, np.arange(n_train)
        members = sparse.csr_matrix((np.ones(n_train), places), (n_leaves, n_train))
        by_leaf = -(members @ counts)
        by_leaf[of_row, np.arange(n_rows)] += 1
        counts += (self.learning_rate * share)[:, None] * by_leaf[of_train]

    def _along_values(self, tree: int, weight: F64, counts: F64) -> None:
        values = self.model.leaf_values(tree)[:, 0].astype(np.float64)
        of_row, of_train = values[self.leaves[:, tree]], values[self.training_leaves[:, tree]]
        length = (weight * of_train**2).sum() + self.l2 * (values**2).mean()
        if length > 0:
            along = self.learning_rate * weight * of_train / length
            counts += np.outer(along, of_row - of_train @ counts)
