"""Numbers of all sizes, very many rows, very rare labels, held against slow exact sums."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from torture.figures import Figure
from torture.models import STRATEGIES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from reference import (
    Node,
    Split,
    Tree,
    best_split,
    boost,
    cells_of,
    cut_points,
    make_loss,
    split_gains,
    split_statistics,
    starting_point,
)

TITLE = "numerical"
PROMISE = (
    "Weights and outputs of all sizes, ten million rows and labels with one positive in a million "
    "give the numbers of plain double precision, or of longer sums, within a stated error."
)

Array = np.ndarray[Any, Any]


def run(long: bool, seed: int) -> list[Figure]:
    scales = dict(scale_cases(long, seed))
    errors = {name: both for name, both in scales.items() if both is not None}
    infinite = [name for name, both in errors.items() if not np.isfinite(both).all()]
    splits, leaves = (max(errors, key=lambda name: errors[name][which]) for which in range(2))
    rows, labels = (10_000_000, 1_000_000) if long else (100_000, 20_000)
    many = [many_rows(rows, seed, strategy) for strategy in STRATEGIES]
    rare = [rare_label(labels, seed, loss) for loss in ("log_loss", "exponential")]
    return [
        Figure("weights 1e-12 … 1e12, outputs 1e-30 … 1e30: not finite", "0",
               ", ".join(infinite) or "0", not infinite, len(scales)),
        within("the same: what the reference's splits gain more, of the sum of squares", 1e-8,
               errors[splits][0], len(errors), splits),
        within("the same: difference from the reference, of an output's scale", 5e-6,
               errors[leaves][1], len(errors), leaves),
        within(f"{rows:,} rows × 4 features: difference from long sums, of an output's scale",
               1e-6, max(many), len(many)),
        within(f"one positive in {labels:,}: difference from long sums, of a leaf's value",
               1e-5, max(rare), len(rare)),
        within("outputs around 1e9, noise of 1e-3: difference from the reference, of the noise",
               1e-5, far_from_zero(seed), 1),
    ]  # fmt: skip


def within(what: str, most: float, error: float, cases: int, where: str = "") -> Figure:
    place = f" ({where})" if where else ""
    return Figure(what, f"at most {most:g}", f"{error:.1e}{place}", error <= most, cases)


# ---------------------------------------------------------------------- scales

SCALES = np.array([1e-30, 1.0, 1e30])
N_ROUNDS = 4


def scale_cases(long: bool, seed: int) -> Iterator[tuple[str, tuple[float, float] | None]]:
    """Name and errors of each case."""
    losses = ("squared_error", "absolute_error", "huber", "quantile")
    for strategy in STRATEGIES:
        for step in ("line_search", "newton") if long else ("newton",):
            for loss in losses if long else losses[:1]:
                if (loss, step) == ("huber", "newton"):
                    # Curvature is zero beyond δ: with weights of all sizes, a leaf is worth a heavy
                    # row's residual over a light row's curvature, whoever computes it.
                    continue
                for weights in ("one", "1e-12", "1e12", "mixed", "cells"):
                    name = f"{strategy}, {step}, {loss}, weights {weights}"
                    yield name, scale_errors(strategy, step, loss, weights, seed)


def well_posed(step: str, loss: str, weights: str) -> bool:
    """Whether rounding errors stay what they are.

    A row of nearly half of all weight is the median, and its gradient is zero there. Whether a step
    along a leaf's mean of 1e-16 leaves it there decides about the next tree.
    """
    pinball = loss in ("absolute_error", "quantile")
    return not (pinball and step == "line_search" and weights == "mixed")


def weights_of(name: str, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    around_one = rng.uniform(1, 3, size=shape[0])
    if name == "mixed":
        return rng.permutation(np.geomspace(1e-12, 1e12, shape[0]))
    if name == "cells":
        return around_one[:, None] * np.array([1e12, 1.0, 1e-12]) * rng.uniform(1, 2, shape)
    return around_one * (1.0 if name == "one" else float(name))


def scale_errors(
    strategy: str, step: str, loss: str, weights: str, seed: int
) -> tuple[float, float] | None:
    """What better splits would have gained, and the largest difference from the reference.

    The difference is a weighted root mean square, of that of each output. None where only being
    finite can be asked for.
    """
    rng = np.random.default_rng(seed)
    n, d = 90, len(SCALES)
    X = rng.normal(size=(n, 4)).astype(np.float32).astype(np.float64)
    signal = np.column_stack([np.sin(2 * X[:, 0]) + j * X[:, 1] + X[:, 2] ** 2 for j in range(d)])
    Y = (signal + 0.5 * rng.normal(size=(n, d))) * SCALES
    weight = weights_of(weights, rng, Y.shape).astype(np.float32).astype(np.float64)
    matrices = rng.normal(size=(N_ROUNDS, 1, d))
    drawn = iter(matrices)
    model = ManyBoostRegressor(
        loss=loss,
        strategy=strategy,
        step=step,
        projection=lambda q, d, rng: next(drawn),
        max_iter=N_ROUNDS,
        learning_rate=0.3,
        max_leaf_nodes=5,
        min_samples_leaf=3,
        early_stopping=False,
        random_state=0,
        n_jobs=1,
    ).fit(X, Y, weight)
    found = model.predict(X)
    if not (np.isfinite(found).all() and np.isfinite(model.train_score_).all()):
        return float("inf"), float("inf")
    if not well_posed(step, loss, weights):
        return None
    by_cell = np.broadcast_to(weight if weight.ndim == 2 else weight[:, None], Y.shape)
    followed = Followed(model)
    expected = boost(
        X,
        Y,
        strategy=strategy,
        loss=make_loss(loss),
        step=step,
        projections=matrices,
        max_iter=N_ROUNDS,
        learning_rate=0.3,
        max_leaf_nodes=5,
        min_samples_leaf=3,
        sample_weight=weight,
        output_weight=importance(make_loss(loss), Y, weight),
        grow=followed,
    ).raw
    # In units of each output, so that squares stay within range.
    difference = (found - expected) / SCALES
    spread = (Y - np.average(Y, axis=0, weights=by_cell)) / SCALES
    squares = (by_cell * difference**2).sum(axis=0) / (by_cell * spread**2).sum(axis=0)
    return followed.missed, float(np.sqrt(squares).max())


class Followed:
    """Grows the trees of a model again, asking of each split how much more another would gain.

    A row of weight 1e-12 changes a gain in its last digits, if at all: on which side of a split it
    falls is chance, and trees of later rounds depend on it. So the reference takes the splits of
    the model, which must gain as much as its own do.
    """

    def __init__(self, model: ManyBoostRegressor) -> None:
        self.ensemble = model._built_in_trees("the battery")
        self.n_grown = 0
        self.missed = 0.0  # the most, as a share of what there is to explain at the root

    def __call__(self, X: Array, Z: Array, weight: Array, **limits: Any) -> Tree:
        X = np.asarray(X, dtype=np.float32)
        feature, threshold, left, missing_left, *_ = self.ensemble.tree(self.n_grown)
        self.n_grown += 1
        cuts = [cut_points(x) for x in X.T]
        fewest = limits["min_samples_leaf"]
        tree = Tree([Node(np.arange(len(X)), 0) for _ in feature])
        gains = np.zeros(len(feature))  # of the splits that were made
        best = np.zeros(len(feature))  # of those that could have been
        for i, node in enumerate(tree.nodes):  # parents come before their children
            split = best_split(X, Z, weight, node.rows, cuts, fewest, 0.0)
            best[i] = 0.0 if split is None else split.gain
            if left[i] == 0:
                continue
            node.split = Split(0.0, feature[i], threshold[i], missing_left[i])
            node.left, node.right = int(left[i]), int(left[i]) + 1
            goes_left = node.split.goes_left(X[node.rows])
            statistics = split_statistics(Z, weight, node.rows)
            sums = statistics[goes_left].sum(axis=0, keepdims=True)
            gains[i] = split_gains(sums, statistics.sum(axis=0), fewest)[0]
            tree.nodes[node.left].rows = node.rows[goes_left]
            tree.nodes[node.right].rows = node.rows[~goes_left]
        self.compare(gains, best, left, float(np.sum(cells_of(weight) * Z**2)))
        return tree

    def compare(self, gains: Array, best: Array, left: Array, scale: float) -> None:
        """Each split is the best of its node, and no leaf should have been split instead."""
        made = np.flatnonzero(left)
        leaves = np.flatnonzero(left == 0)
        later = [best[leaf] - gains[made[left[made] > leaf]] for leaf in leaves]
        short = [best[made] - gains[made], *later]
        self.missed = max(self.missed, float(np.concatenate(short).max(initial=0.0)) / scale)


def importance(loss: Any, Y: Array, weight: Array) -> Array:
    """What output_scaling="auto" is to the reference: the inverse variance of residuals."""
    prepared, baseline = starting_point(loss, Y, weight)
    r = prepared.residual(Y, np.tile(baseline, (len(Y), 1)))
    w = np.broadcast_to(weight if weight.ndim == 2 else weight[:, None], Y.shape)
    mean = (w * r).sum(axis=0) / w.sum(axis=0)
    variance = (w * (r / SCALES) ** 2).sum(axis=0) / w.sum(axis=0) - (mean / SCALES) ** 2
    return 1 / (variance * SCALES**2)


# ---------------------------------------------------------------------- very many rows


def sums_by_leaf(leaf: Array, values: Array) -> Array:
    """Sums (n_leaves, c) of values (n, c), in the longest floats that there are."""
    order = np.argsort(leaf, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(leaf[order]) > 0])
    columns = [np.add.reduceat(column[order].astype(np.longdouble), starts) for column in values.T]
    return np.stack(columns, axis=1)


def leaves_of(raw: Array) -> Array:
    """The leaf of each row, told by what a tree predicts."""
    return np.unique(raw, return_inverse=True)[1]


def many_rows(n_rows: int, seed: int, strategy: str) -> float:
    """One round: what the leaves hold, against sums in long doubles."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    Y = np.column_stack([X[:, 0] + X[:, 1], np.abs(X[:, 2])]).astype(np.float64)
    Y += rng.normal(size=Y.shape)
    model = ManyBoostRegressor(
        strategy=strategy, max_iter=1, learning_rate=1.0, early_stopping=False, random_state=0
    ).fit(X, Y)
    found = model.predict(X)
    mean = Y.astype(np.longdouble).mean(axis=0)
    worst = float(np.abs(model.baseline_ - mean).max())
    for j in range(Y.shape[1]):
        leaf = leaves_of(found[:, j])
        ones = np.ones((n_rows, 1))
        counts = sums_by_leaf(leaf, ones)[:, 0]
        first = np.unique(leaf, return_index=True)[1]
        if strategy != "project":
            expected = sums_by_leaf(leaf, Y[:, [j]])[:, 0] / counts
        else:
            # One value a leaf for all outputs: its step is the best multiple of it.
            direction = (found[first, j] - model.baseline_[j]).astype(np.longdouble)
            sums = sums_by_leaf(leaf, Y[:, [j]])[:, 0] - counts * mean[j]
            best = (direction * sums).sum() / (counts * direction**2).sum()
            expected = mean[j] + best * direction
        worst = max(worst, float(np.abs(found[first, j] - expected).max()))
    return worst / float(Y.std(axis=0).min())


# ---------------------------------------------------------------------- rare labels


def rare_label(n_rows: int, seed: int, loss: str) -> float:
    """One positive among all rows beside a common label: baseline and leaves of one round."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    Y = np.zeros((n_rows, 2), np.uint8)
    Y[n_rows // 3, 0] = 1
    Y[:, 1] = X[:, 0] + rng.normal(size=n_rows) > 0
    model = ManyBoostClassifier(
        loss=loss, max_iter=1, learning_rate=1.0, early_stopping=False, step="newton", n_jobs=2
    ).fit(X, Y)
    raw = model.decision_function(X)
    proba = model.predict_proba(X)
    if not (np.isfinite(raw).all() and np.isfinite(proba).all()):
        return float("inf")
    share = Y.astype(np.longdouble).mean(axis=0)
    baseline = np.log(share / (1 - share)).clip(-15, 15)
    worst = float(np.abs(model.baseline_ / baseline - 1).max())
    leaf = leaves_of(raw[:, 1])
    first = np.unique(leaf, return_index=True)[1]
    for j in range(2):
        sign = 2 * Y[:, j].astype(np.longdouble) - 1
        if loss == "log_loss":
            p = 1 / (1 + np.exp(-baseline[j]))
            r, h = Y[:, j] - p, np.full(n_rows, p * (1 - p))
        else:
            e = np.exp(-sign * baseline[j] / 2)
            r, h = sign * e / 2, e / 4
        sums = sums_by_leaf(leaf, np.column_stack([r, h]))
        expected = sums[:, 0] / (sums[:, 1] + 1)
        found = raw[first, j] - model.baseline_[j]
        worst = max(worst, float((np.abs(found - expected) / np.abs(expected).max()).max()))
    return worst


# ---------------------------------------------------------------------- far from zero


def far_from_zero(seed: int) -> float:
    """Small noise on large outputs: what is learned of it is that of the noise alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 4))
    noise = 1e-3 * (X[:, :2] + rng.normal(size=(2000, 2)))
    far = noise + 1e9
    kept = far - 1e9  # what double precision keeps of the noise
    predictions = [
        ManyBoostRegressor(max_iter=20, random_state=0, n_jobs=1).fit(X, Y).predict(X) - offset
        for Y, offset in [(far, 1e9), (kept, 0.0)]
    ]
    # Predictions around 1e9 are themselves rounded to 1e-7, a ten-thousandth of the noise.
    rounding = np.spacing(1e9)
    difference = np.abs(predictions[0] - predictions[1]).max() - rounding
    return max(0.0, float(difference)) / float(noise.std())
