"""The whole method in plain, slow NumPy (float64): the oracle for every kernel and for the loop.

Three parts: the losses (gradients, baselines, line searches), the tree (`grow_tree`), and at the
end `boost`, the loop over rounds with its four strategies; start reading there.

Shapes: n rows, p features, d outputs (K classes for softmax), q components. Throughout,
r is the negative gradient of the loss at the raw predictions f, h its diagonal hessian,
g the direction given by the trees of a round, w the weights: one per row (n,), or one per cell
(n, d), which is zero where a target is missing.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

RAW_LIMIT = 15.0  # largest |baseline| of a label, count or class
SEARCH_LIMIT = 80.0  # |rho * g| beyond which no minimiser is looked for
STEP_LIMIT = 10.0  # |rho * g| taken where there is none
TIE = 1e-9  # gains closer than this (relative) are equal
NO_GAIN = 1e-12  # gains below this share of the node's sum of w z^2 are zero


# Losses ---------------------------------------------------------------------------------------


def lower_quantile(values, weight, mass):
    """Smallest of `values` (n,) at which the cumulative `weight` (n,) reaches `mass`."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order]) >= mass * (1 - 1e-12)  # 0.55 * 100 is 55.00000000000001
    return values[order][np.argmax(reached)]


def cells_of(weight):
    """Weights (n,) or (n, c) as a matrix that multiplies cells."""
    return weight[:, None] if weight.ndim == 1 else weight


def column_of(weight, j):
    """Weights (n,) of the cells of output j."""
    return weight if weight.ndim == 1 else weight[:, j]


def divide(a, b):
    """a / b, 0 where b is 0."""
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.zeros(a.shape), where=b != 0)


def signs(y):
    """Labels 0/1 as -1/+1."""
    return 2.0 * y - 1.0


class Loss:
    """A loss that is a sum over outputs; y and f are (n, d) and so are all results.

    Subclasses define `value`, `residual` (the negative gradient r), `hessian` and `baseline`.
    """

    default_l2 = 0.0  # lambda of Newton steps
    splits_by_curvature = False  # the tree of one output is grown by Newton's gain
    level = None  # the quantile a leaf holds, for losses without curvature

    def prepare(self, Y, weight):
        """The loss with everything it takes from the training data, fixed for the whole fit."""
        return self

    def of_output(self, j):
        """The loss of output j alone."""
        return self

    def line_search(self, y, f, g, weight):
        """rho (d,): each rho_j minimises sum_i w_ij loss(y_ij, f_ij + rho_j g_ij)."""
        rho = np.zeros(f.shape[1])
        for j in range(f.shape[1]):
            w = column_of(weight, j)
            # Rows without weight or direction have no say in the step...
            rows = (w > 0) & (g[:, j] != 0)
            if np.sum(w * g[:, j] ** 2) > 0:
                # ... but it must not carry any row too far.
                reach = np.abs(g[cells_of(weight).any(axis=1), j]).max()
                cells = (y[rows, j], f[rows, j], g[rows, j], w[rows])
                rho[j] = self.search_output(j, *cells, reach)
        return rho

    def search_output(self, j, y, f, g, weight, reach):
        """rho_j for a smooth convex loss: the root of its derivative; y, f, g, weight are (m,)."""

        def slope(rho):
            return -np.sum(weight * g * self.residual(y, f + rho * g))

        downhill = -np.sign(slope(0.0))
        if downhill == 0:
            return 0.0
        unit = downhill / reach
        far = SEARCH_LIMIT * unit
        if downhill * slope(far) <= 0:
            return STEP_LIMIT * unit
        return brentq(slope, 0.0, far, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=1000)


class SquaredError(Loss):
    """0.5 (y - f)^2."""

    def value(self, y, f):
        return 0.5 * (y - f) ** 2

    def residual(self, y, f):
        return y - f

    def hessian(self, y, f):
        return np.ones_like(f)

    def baseline(self, Y, weight):
        return np.average(Y, axis=0, weights=weight)

    def search_output(self, j, y, f, g, weight, reach):
        return np.sum(weight * self.residual(y, f) * g) / np.sum(weight * g**2)


class SquaredLabels(SquaredError):
    """Squared error on labels 0/1 read as -1/+1."""

    def value(self, y, f):
        return super().value(signs(y), f)

    def residual(self, y, f):
        return super().residual(signs(y), f)

    def baseline(self, Y, weight):
        return super().baseline(signs(Y), weight)


class Quantile(Loss):
    """Pinball loss: level * u for u = y - f > 0, (level - 1) * u for u < 0, times `scale`."""

    def __init__(self, level, scale=1.0):
        self.level = level
        self.scale = scale

    def value(self, y, f):
        u = y - f
        return self.scale * np.where(u > 0, self.level, self.level - 1) * u

    def residual(self, y, f):
        u = y - f
        return self.scale * (self.level * (u > 0) + (self.level - 1) * (u < 0))

    def hessian(self, y, f):
        return np.zeros_like(f)

    def baseline(self, Y, weight):
        return np.array([lower_quantile(y, weight, self.level * weight.sum()) for y in Y.T])

    def search_output(self, j, y, f, g, weight, reach):
        # The derivative rises by w|g| at each breakpoint, from -mass at rho = -infinity.
        steepness = weight * np.abs(g)
        mass = np.sum(steepness * np.where(g > 0, self.level, 1 - self.level))
        return lower_quantile((y - f) / g, steepness, mass)


class Huber(Loss):
    """0.5 u^2 for |u| = |y - f| <= delta, delta (|u| - delta / 2) beyond; delta scalar or (d,)."""

    def __init__(self, delta=None):
        self.delta = delta

    def prepare(self, Y, weight):
        if self.delta is not None:
            return self
        centre = Quantile(0.5).baseline(Y, weight)
        distance = np.abs(Y - centre)
        delta = Quantile(0.5).baseline(distance, weight)
        # Most values equal the median: a delta of zero would be no loss at all.
        delta = np.where(delta > 0, delta, Quantile(0.9).baseline(distance, weight))
        largest = distance[weight > 0].max(axis=0)
        return Huber(np.where(delta > 0, delta, np.where(largest > 0, largest, 1.0)))

    def of_output(self, j):
        return self if np.ndim(self.delta) == 0 else Huber(self.delta[j])

    def value(self, y, f):
        u = np.abs(y - f)
        return np.where(u <= self.delta, 0.5 * u**2, self.delta * (u - 0.5 * self.delta))

    def residual(self, y, f):
        return np.clip(y - f, -self.delta, self.delta)

    def hessian(self, y, f):
        return 1.0 * (np.abs(y - f) <= self.delta)

    def baseline(self, Y, weight):
        loss = self.prepare(Y, weight)
        return loss.line_search(Y, np.zeros_like(Y), np.ones_like(Y), weight)

    def search_output(self, j, y, f, g, weight, reach):
        """The smallest root of the derivative, which is piecewise linear: exact."""
        delta = self.delta if np.ndim(self.delta) == 0 else self.delta[j]
        u = y - f
        breaks = np.sort(np.concatenate([(u - delta) / g, (u + delta) / g]))
        slope = [-np.sum(weight * g * np.clip(u - t * g, -delta, delta)) for t in breaks]
        zero = 1e-14 * np.sum(weight * np.abs(g) * delta)
        k = np.argmax(np.array(slope) >= -zero)  # k > 0: all rows pull the same way at breaks[0]
        return np.interp(0.0, slope[k - 1 : k + 1], breaks[k - 1 : k + 1])


class Poisson(Loss):
    """exp(f) - y f; f is the log of the mean."""

    default_l2 = 1.0

    def value(self, y, f):
        return np.exp(f) - y * f

    def residual(self, y, f):
        return y - np.exp(f)

    def hessian(self, y, f):
        return np.exp(f)

    def baseline(self, Y, weight):
        with np.errstate(divide="ignore"):
            log_mean = np.log(np.average(Y, axis=0, weights=weight))
        return np.clip(log_mean, -RAW_LIMIT, RAW_LIMIT)


class Tweedie(Loss):
    """Half the deviance with variance mean**power, 1 < power <= 2; f is the log of the mean."""

    default_l2 = 1.0

    def __init__(self, power):
        self.power = power

    def terms(self, y, f):
        return y * np.exp((1 - self.power) * f), np.exp((2 - self.power) * f)

    def value(self, y, f):
        a, b = self.terms(y, f)
        return a / (self.power - 1) + (f if self.power == 2 else b / (2 - self.power))

    def residual(self, y, f):
        a, b = self.terms(y, f)
        return a - b

    def hessian(self, y, f):
        a, b = self.terms(y, f)
        return (self.power - 1) * a + (2 - self.power) * b

    def baseline(self, Y, weight):
        return Poisson().baseline(Y, weight)


class LogLoss(Loss):
    """log(1 + exp(-s f)), s = 2y - 1; f is the log-odds."""

    default_l2 = 1.0
    splits_by_curvature = True

    def value(self, y, f):
        return np.logaddexp(0.0, -signs(y) * f)

    def residual(self, y, f):
        return signs(y) * expit(-signs(y) * f)  # y - expit(f), without the cancellation

    def hessian(self, y, f):
        return expit(f) * expit(-f)

    def baseline(self, Y, weight):
        positive, negative = weight @ Y, weight @ (1.0 - Y)
        with np.errstate(divide="ignore"):
            log_odds = np.log(positive) - np.log(negative)
        return np.clip(log_odds, -RAW_LIMIT, RAW_LIMIT)


class Exponential(LogLoss):
    """exp(-s f / 2), s = 2y - 1; f is the log-odds, so the baseline is that of the log loss."""

    splits_by_curvature = False

    def value(self, y, f):
        return np.exp(-0.5 * signs(y) * f)

    def residual(self, y, f):
        return 0.5 * signs(y) * np.exp(-0.5 * signs(y) * f)

    def hessian(self, y, f):
        return 0.25 * np.exp(-0.5 * signs(y) * f)


class Softmax(Loss):
    """-log p_y, p = softmax(f); y (n,) holds class indices, f is (n, K), `value` is (n,)."""

    default_l2 = 1.0
    splits_by_curvature = True

    def value(self, y, f):
        lead = f - np.take_along_axis(f, y[:, None], axis=1)  # over the true class
        others = np.where(np.eye(f.shape[1])[y] == 1, -np.inf, lead)
        return np.logaddexp(0.0, logsumexp(others, axis=1))

    def residual(self, y, f):
        return np.where(np.eye(f.shape[1])[y] == 1, other_classes(f), -softmax(f, axis=1))

    def hessian(self, y, f):
        return softmax(f, axis=1) * other_classes(f)

    def baseline(self, Y, weight):
        frequency = np.bincount(Y, weights=weight) / weight.sum()
        with np.errstate(divide="ignore"):
            raw = np.maximum(np.log(frequency), -RAW_LIMIT)
        return np.clip(raw - raw.mean(), -RAW_LIMIT, RAW_LIMIT)

    def line_search(self, y, f, g, weight):
        """rho (K,): the joint minimiser with |rho_k g_ik| <= 10 in every row (Newton)."""
        used = weight > 0
        y, f, g, weight = y[used], f[used], g[used], weight[used]
        with np.errstate(divide="ignore"):
            bound = STEP_LIMIT / np.abs(g).max(axis=0)
        rho = np.zeros(f.shape[1])
        for _ in range(500):
            raw, before = f + rho * g, rho
            gradient = -np.sum(weight[:, None] * g * self.residual(y, raw), axis=0)
            newton = newton_step(gradient, self.curvature_along(raw, g, weight), rho, bound)
            rho = self.move(y, f, g, weight, rho, newton, bound)
            if np.all(np.abs(rho - before) <= 1e-14 * np.abs(rho).max()):
                break
        return rho

    def curvature_along(self, raw, g, weight):
        """Hessian (K, K) of the weighted loss in rho."""
        pg = softmax(raw, axis=1) * g
        curvature = -(weight[:, None] * pg).T @ pg
        np.fill_diagonal(curvature, weight @ (self.hessian(None, raw) * g**2))
        return curvature

    def move(self, y, f, g, weight, rho, newton, bound):
        """rho + newton, cut off at the first bound it meets and halved until no loss is added."""

        def total(rho):
            return np.sum(weight * self.value(y, f + rho * g))

        moving = newton != 0
        room = (np.copysign(bound, newton) - rho)[moving] / newton[moving]
        share, start = min(1.0, room.min(initial=1.0)), total(rho)
        for halvings in range(60):
            moved = rho + share / 2**halvings * newton
            moved = np.where(np.abs(moved) > (1 - 1e-12) * bound, np.copysign(bound, moved), moved)
            # The slack lets the last Newton steps, below the rounding of the loss, pass.
            if total(moved) <= start * (1 + 1e-13):
                return moved
        return rho


def newton_step(gradient, curvature, rho, bound):
    """The Newton step (K,) of minimum norm among the classes that do not push out of bounds."""
    free = np.isfinite(bound) & ((np.abs(rho) < bound) | (gradient * rho > 0))
    while True:
        step = np.zeros_like(rho)
        step[free] = minimum_norm_solution(curvature[np.ix_(free, free)], -gradient[free])
        leaving = (np.abs(rho) >= bound) & (step * rho > 0)
        if not leaving.any():
            return step
        free &= ~leaving


def other_classes(f):
    """1 - softmax(f), (n, K), as a sum: without the cancellation where a class is certain."""
    return softmax(f, axis=1) @ (1.0 - np.eye(f.shape[1]))


def minimum_norm_solution(matrix, vector):
    """x (m,) of least norm with matrix @ x = vector; the matrix is positive semidefinite.

    What is flat is decided with a unit diagonal, so that a rare class is not taken for it.
    """
    if len(vector) == 0:
        return vector
    diagonal = np.diag(matrix)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    curvature, axes = np.linalg.eigh(scale[:, None] * matrix * scale)
    flat = curvature <= 1e-12 * curvature.max()
    steep = axes[:, ~flat]
    x = scale * (steep @ (steep.T @ (scale * vector) / curvature[~flat]))
    idle = scale[:, None] * axes[:, flat]  # directions that change nothing
    return x - idle @ np.linalg.lstsq(idle, x, rcond=None)[0]


def make_loss(name, *, quantile=0.5, huber_delta=None, power=1.5):
    """The loss called `name`."""
    losses = {
        "squared_error": SquaredError,
        "absolute_error": lambda: Quantile(0.5, scale=2.0),
        "huber": lambda: Huber(huber_delta),
        "quantile": lambda: Quantile(quantile),
        "poisson": Poisson,
        "gamma": lambda: Tweedie(2.0),
        "tweedie": lambda: Tweedie(power),
        "log_loss": LogLoss,
        "exponential": Exponential,
        "squared_labels": SquaredLabels,
        "softmax": Softmax,
    }
    return losses[name]()


# Trees ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Rows with x <= threshold go left; missing values left if `missing_left`.

    For a categorical feature x is the place of the category in `order`, which holds the categories
    of the node; others are missing.
    """

    gain: float
    feature: int
    threshold: float
    missing_left: bool
    order: tuple | None = None

    def goes_left(self, X):
        """Boolean (n,) for float32 X (n, p)."""
        x = X[:, self.feature]
        x = x if self.order is None else places(x, self.order)
        return np.where(np.isnan(x), self.missing_left, x <= self.threshold)


@dataclass
class Node:
    """`rows` are the training rows of positive weight; a leaf has no split and no children."""

    rows: np.ndarray
    depth: int
    split: Split | None = None
    left: int = -1
    right: int = -1


@dataclass
class Tree:
    """Nodes in order of creation, node 0 the root; leaves are numbered in order of node id."""

    nodes: list = field(default_factory=list)

    @property
    def leaf_nodes(self):
        """Node id of each leaf, (n_leaves,)."""
        return np.array([i for i, node in enumerate(self.nodes) if node.split is None])

    @property
    def n_leaves(self):
        return len(self.leaf_nodes)

    def apply(self, X):
        """Leaf number (n,) of each row of X (n, p)."""
        X = np.asarray(X, dtype=np.float32)
        node_of = np.zeros(len(X), dtype=int)
        for i, node in enumerate(self.nodes):  # parents come before their children
            if node.split is not None:
                here = node_of == i
                node_of[here] = np.where(node.split.goes_left(X[here]), node.left, node.right)
        return np.searchsorted(self.leaf_nodes, node_of)


def cut_points(x):
    """Midpoints (float32) between the distinct values of x (n,), lower <= midpoint < upper."""
    values = np.unique(x[~np.isnan(x)])
    lower, upper = values[:-1], values[1:]
    middle = (0.5 * (lower.astype(float) + upper)).astype(np.float32)
    # Only between neighbouring floats can rounding reach the upper value.
    return np.where(middle >= upper, lower, middle)


def split_gains(left, total, min_samples_leaf):
    """Gain (c,) of candidates; `left` (c, 1 + 2q), `total` (1 + 2q,) are [rows, sum w, sum w z].

    Zero where a side has too few rows; a component without weight on a side gains nothing.
    """
    right, q = total - left, (len(total) - 1) // 2
    enough = (left[:, 0] >= min_samples_leaf) & (right[:, 0] >= min_samples_leaf)
    gains = np.zeros(len(left))
    weight_left, sum_left = left[enough, 1 : 1 + q], left[enough, 1 + q :]
    weight_right, sum_right = right[enough, 1 : 1 + q], right[enough, 1 + q :]
    # What is left of a weight when all of it is taken off again is rounding.
    least = 1e-12 * total[1 : 1 + q]
    both = (weight_left > least) & (weight_right > least)
    contrast = np.where(both, sum_left * weight_right - sum_right * weight_left, 0.0)
    scale = weight_left * weight_right * (weight_left + weight_right)
    gains[enough] = (contrast**2 / np.where(both, scale, 1.0)).sum(axis=1)
    return gains


def feature_splits(feature, x, statistics, cuts, min_samples_leaf):
    """All splits of one node on one feature, in order of preference.

    x (m,) are the feature's values in the node, statistics (m, 1 + 2q) hold [1, w, w z] of each
    row, cuts (c,) are the candidate thresholds.
    """
    missing = np.isnan(x)
    order = np.flatnonzero(~missing)[np.argsort(x[~missing], kind="stable")]
    none = np.zeros((1, statistics.shape[1]))
    prefix = np.concatenate([none, np.cumsum(statistics[order], axis=0)])
    n_below = np.searchsorted(x[order], cuts, side="right")
    # With no value below it, a cut would only tell missing values from others: the last candidate.
    cuts, left = cuts[n_below > 0], prefix[n_below[n_below > 0]]
    total = statistics.sum(axis=0)

    if not missing.any():
        missing_left = left[:, 0] >= total[0] - left[:, 0]
        thresholds = cuts
    else:
        # Per threshold: missing right, missing left; at the end: missing alone on the right.
        with_missing = left + statistics[missing].sum(axis=0)
        left = np.stack([left, with_missing], axis=1).reshape(-1, statistics.shape[1])
        left = np.concatenate([left, prefix[-1:]])
        missing_left = np.append(np.tile([False, True], len(cuts)), False)
        thresholds = np.append(np.repeat(cuts, 2), np.inf)

    gains = split_gains(left, total, min_samples_leaf)
    columns = (gains.tolist(), thresholds.tolist(), missing_left.tolist())
    return [Split(gain, feature, t, to_left) for gain, t, to_left in zip(*columns, strict=True)]


def places(x, order):
    """Place (n,) of each category x (n,) in `order`, NaN where it is not there."""
    place = {category: float(k) for k, category in enumerate(order)}
    return np.array([place.get(category, np.nan) for category in x.tolist()])


def category_order(x, statistics):
    """The categories of x (m,) along their mean gradients; statistics (m, 2 + q) as below.

    With several components: along the first principal direction of the means.
    """
    categories = np.unique(x[~np.isnan(x)])
    sums = np.stack([statistics[x == c].sum(axis=0) for c in categories])
    weight, means = sums[:, 1], sums[:, 2:] / sums[:, 1:2]
    centred = means - np.average(means, axis=0, weights=weight)
    direction = np.linalg.eigh((weight[:, None] * centred).T @ centred)[1][:, -1]
    return tuple(categories[np.argsort(centred @ direction, kind="stable")].tolist())


def row_variance(Z, weight):
    """Mean over the components of Σ (w z)² / Σ w, over all rows of a tree."""
    w = np.broadcast_to(cells_of(weight), Z.shape)
    return np.mean(divide(((w * Z) ** 2).sum(axis=0), w.sum(axis=0)))


def gain_by_chance(k, q, p):
    """What the best set of k categories gains on q components of noise, in variances of a row,
    beyond what the best of p numbers does.

    Two categories are as good as a number.
    """
    by_categories = 2 / np.pi * (max(k - 2, 0) + 2 * np.sqrt(max(k - 2, 0) * (q - 1)))
    by_numbers = 2 * np.log(p) + 2 * np.sqrt((q - 1) * np.log(p))
    return max(0.0, by_categories - by_numbers)


def category_splits(feature, x, statistics, min_samples_leaf, variance, p):
    """All splits of one node by sets of categories: cuts in the order of the categories.

    What they gain by chance, beyond what the best of p features does, is taken off.
    """
    if np.isnan(x).all():
        return []
    order = category_order(x, statistics)
    cuts = np.arange(len(order) - 1) + 0.5
    splits = feature_splits(feature, places(x, order), statistics, cuts, min_samples_leaf)
    chance = variance * gain_by_chance(len(order), (statistics.shape[1] - 1) // 2, p)
    return [replace(split, gain=split.gain - chance, order=order) for split in splits]


def tied_for_best(splits):
    """Positions of the splits whose gain equals the largest one, in their order."""
    best = max(split.gain for split in splits)
    return [i for i, split in enumerate(splits) if split.gain >= best * (1 - TIE)]


def split_statistics(Z, weight, rows):
    """[1, w, w z] (m, 1 + 2q) of the m rows of a node, z less its mean.

    Taking the mean off changes no gain, but spares it the rounding errors of a large mean.
    """
    z = Z[rows]
    w = np.broadcast_to(cells_of(weight[rows]), z.shape)
    centred = z - divide((w * z).sum(axis=0), w.sum(axis=0))
    return np.column_stack([np.ones(len(rows)), w, w * centred])


def best_split(
    X, Z, weight, rows, cuts, min_samples_leaf, min_split_gain, categorical=(), variance=0.0
):
    """The best Split of the node holding `rows`, or None if there is none worth making."""
    x, statistics = X[rows], split_statistics(Z, weight, rows)
    splits = []
    for k in range(X.shape[1]):
        if k in categorical:
            parts = x[:, k], statistics, min_samples_leaf, variance, X.shape[1]
            splits += category_splits(k, *parts)
        else:
            splits += feature_splits(k, x[:, k], statistics, cuts[k], min_samples_leaf)
    splits = [split for split in splits if split.gain > 0]
    if not splits:
        return None
    split = splits[tied_for_best(splits)[0]]
    nothing = NO_GAIN * np.sum(cells_of(weight[rows]) * Z[rows] ** 2)
    worth_it = split.gain > nothing and split.gain >= min_split_gain
    return split if worth_it else None


def grow_tree(
    X,
    Z,
    weight,
    max_leaf_nodes=31,
    max_depth=None,
    min_samples_leaf=1,
    min_split_gain=0.0,
    categorical=(),
    best=best_split,
):
    """Tree grown best-first on the split gradients Z (n, q); X (n, p), weight (n,) or (n, q).

    Rows of zero weight give cut points and are otherwise absent. `categorical` are the features
    that hold categories. `best` finds the best split of a node.
    """
    X = np.asarray(X, dtype=np.float32)
    cuts = [cut_points(x) for x in X.T]
    max_leaf_nodes = np.inf if max_leaf_nodes is None else max_leaf_nodes
    max_depth = np.inf if max_depth is None else max_depth
    tree = Tree()
    open_splits = {}  # node id -> the best split of a leaf that may still be expanded

    def add_node(rows, depth):
        tree.nodes.append(Node(rows, depth))
        if depth < max_depth:
            fewest = max(1, min_samples_leaf)
            split = best(X, Z, weight, rows, cuts, fewest, min_split_gain, categorical, variance)
            if split is not None:
                open_splits[len(tree.nodes) - 1] = split
        return len(tree.nodes) - 1

    grown_on = np.flatnonzero(cells_of(weight).any(axis=1))
    variance = row_variance(Z[grown_on], weight[grown_on])
    add_node(grown_on, depth=0)
    while open_splits and tree.n_leaves < max_leaf_nodes:
        ids, splits = list(open_splits), list(open_splits.values())
        tied = [(splits[i], ids[i]) for i in tied_for_best(splits)]
        split, i = min(tied, key=lambda t: (t[0].feature, t[0].threshold, t[0].missing_left, t[1]))
        del open_splits[i]
        node = tree.nodes[i]
        node.split = split
        left = split.goes_left(X[node.rows])
        node.left = add_node(node.rows[left], node.depth + 1)
        node.right = add_node(node.rows[~left], node.depth + 1)
    return tree


# Leaves and steps -----------------------------------------------------------------------------


def leaf_sums(tree, leaf, values):
    """Sums (n_leaves, c) of values (n, c) over the rows of each leaf; leaf (n,)."""
    return np.stack([values[leaf == k].sum(axis=0) for k in range(tree.n_leaves)])


def mean_leaves(tree, leaf, values, weight):
    """Weighted means (n_leaves, c) of values (n, c), 0 where there is no weight."""
    w = np.broadcast_to(cells_of(weight), values.shape)
    return divide(leaf_sums(tree, leaf, w * values), leaf_sums(tree, leaf, w))


def newton_leaves(tree, leaf, r, h, weight, l2):
    """sum w r / (sum w h + l2), (n_leaves, c); the mean of r where that divides by zero."""
    w = np.broadcast_to(cells_of(weight), r.shape)
    numerator = leaf_sums(tree, leaf, w * r)
    denominator = leaf_sums(tree, leaf, w * h) + l2
    flat = denominator == 0
    return divide(numerator, np.where(flat, leaf_sums(tree, leaf, w), denominator))


def quantile_leaves(tree, leaf, u, weight, level):
    """Lower weighted quantile (n_leaves, c) of u = y - f (n, c) in each leaf, 0 without weight."""
    values = np.zeros((tree.n_leaves, u.shape[1]))
    for k, j in np.ndindex(*values.shape):
        w = column_of(weight, j)
        rows = (leaf == k) & (w > 0)
        if rows.any():
            values[k, j] = lower_quantile(u[rows, j], w[rows], level * w[rows].sum())
    return values


def newton_rho(r, h, g, weight, l2, leaf_values):
    """rho (d,) of `project` from g (n, d): sum w r g / (sum w h g^2 + l2 * mean leaf g^2)."""
    w = cells_of(weight)
    numerator, squares = (w * r * g).sum(axis=0), (w * g**2).sum(axis=0)
    denominator = (w * h * g**2).sum(axis=0) + l2 * np.mean(leaf_values**2)
    denominator = np.where(denominator == 0, squares, denominator)
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=squares > 0)


# The loop -------------------------------------------------------------------------------------


@dataclass
class ReferenceModel:
    """A fitted model. Each of `rounds` is a dict with

    trees        list of Tree: d of them for `independent`, else one
    leaf_values  one array per tree: (n_leaves, d) for vector leaves, else (n_leaves, 1)
    rho          (d,), or None where the leaf values are the step (Newton, vector leaves)
    """

    loss: Loss
    baseline: np.ndarray
    learning_rate: float
    rounds: list = field(default_factory=list)
    raw: np.ndarray | None = None
    train_loss: list = field(default_factory=list)

    def predict_raw(self, X, raw=None):
        """Raw predictions (n, d), starting from `raw` (n, d) instead of the baseline if given."""
        raw = np.tile(self.baseline, (len(X), 1)) if raw is None else raw
        for made in self.rounds:
            raw = raw + self.learning_rate * update(made, X)
        return raw


def direction(trees, leaf_values, X):
    """g at the rows of X: (n, d), or (n, 1) for the scalar leaves of `project`."""
    pairs = zip(trees, leaf_values, strict=True)
    return np.hstack([values[tree.apply(X)] for tree, values in pairs])


def update(made, X):
    """What a round adds to the raw predictions before the learning rate, (n, d)."""
    g = direction(made["trees"], made["leaf_values"], X)
    return g if made["rho"] is None else made["rho"] * g


def split_gradients(strategy, r, weight, output_weight, projection):
    """What the trees of a round are grown on: pairs of gradients (n, q) and weights, one per tree.

    Weights are (n,), or (n, q) where cells have weights of their own: a component that sums phi_j
    times output j has a share phi_j^2 / sum phi^2 of its weight from output j.
    """
    d = r.shape[1]
    if strategy == "independent":
        return [(r[:, [j]], column_of(weight, j)) for j in range(d)]
    phi = np.eye(d) if strategy == "multioutput" else np.asarray(projection, dtype=float)
    phi = phi * np.sqrt(output_weight)
    phi = phi[phi.any(axis=1)]
    if weight.ndim == 1:
        return [(r @ phi.T, weight)]
    omega = weight @ (phi**2 / (phi**2).sum(axis=1, keepdims=True)).T
    return [(divide((weight * r) @ phi.T, omega), omega)]


def fit_round(
    X, Y, raw, weight, output_weight, projection, *, strategy, loss, step, l2, rare, grow, limits
):
    """One round: grow on the split gradients, label the leaves, find the step.

    A tree of one output that is ``rare`` (d,) is grown by Newton's gain.
    """
    r, h = loss.residual(Y, raw), loss.hessian(Y, raw)
    split_on = split_gradients(strategy, r, weight, output_weight, projection)
    d = raw.shape[1]
    grow_on = split_on
    if step == "newton" and (strategy == "independent" or d == 1):
        # (Σ w r)² / Σ w h is the gain of the targets r / h with weights w h.
        curvature = np.where(rare, np.maximum(h, 1e-7), 1.0)
        grow_on = [
            (r[:, [j]] / curvature[:, [j]], column_of(weight, j) * curvature[:, j])
            for j in range(d)
        ]
    trees = [grow(X, Z, w, **limits) for Z, w in grow_on]
    leaves = [tree.apply(X) for tree in trees]

    outputs = [[j] for j in range(d)] if strategy == "independent" else [list(range(d))]
    grown = [
        (tree, leaf, j, weight if weight.ndim == 1 else weight[:, j])
        for tree, leaf, j in zip(trees, leaves, outputs, strict=True)
    ]

    if step == "newton" and strategy != "project":
        if loss.level is None:
            values = [newton_leaves(t, leaf, r[:, j], h[:, j], w, l2) for t, leaf, j, w in grown]
        else:
            u = Y - raw
            values = [quantile_leaves(t, leaf, u[:, j], w, loss.level) for t, leaf, j, w in grown]
        return {"trees": trees, "leaf_values": values, "rho": None}

    if strategy == "project":
        values = [mean_leaves(trees[0], leaves[0], *split_on[0])]
    else:
        values = [mean_leaves(t, leaf, r[:, j], w) for t, leaf, j, w in grown]
    g = np.broadcast_to(direction(trees, values, X), raw.shape)
    if step == "newton" and loss.level is None:
        rho = newton_rho(r, h, g, weight, l2, values[0])
    else:
        rho = loss.line_search(Y, raw, g, weight)
    return {"trees": trees, "leaf_values": values, "rho": rho}


def mean_loss(loss, Y, raw, weight):
    """Weighted mean of the loss over the cells, times their number in a row."""
    value = loss.value(Y, raw)
    if value.ndim == 1:
        return np.average(value, weights=weight)
    w = np.broadcast_to(cells_of(weight), value.shape)
    return np.sum(w * value) / (w.sum() / value.shape[1])


def starting_point(loss, Y, weight):
    """The loss with its constants, and the baseline (d,)."""
    if weight.ndim == 1:
        loss = loss.prepare(Y, weight)
        return loss, loss.baseline(Y, weight)
    columns = []
    for j in range(Y.shape[1]):
        rows = weight[:, j] > 0
        y, w = Y[rows][:, [j]], weight[rows, j]
        prepared = loss.of_output(j).prepare(y, w)
        columns.append((prepared, prepared.baseline(y, w)[0]))
    if isinstance(loss, Huber):
        loss = Huber(np.array([np.ravel(prepared.delta)[0] for prepared, _ in columns]))
    return loss, np.array([baseline for _, baseline in columns])


def boost(
    X,
    Y,
    *,
    strategy,
    loss,
    step,
    projections=None,
    max_iter=10,
    learning_rate=0.1,
    max_leaf_nodes=31,
    max_depth=None,
    min_samples_leaf=1,
    l2_regularization=None,
    sample_weight=None,
    output_weight=None,
    raw=None,
    min_split_gain=0.0,
    categorical=(),
    grow=grow_tree,
):
    """Fit `max_iter` rounds to X (n, p; NaN is missing) and Y, and return a ReferenceModel.

    Y is (n, d), NaN where a target is missing, or (n,) class indices for softmax. `projections`
    holds one (q, d) matrix per round for the strategies "project" (q = 1) and "relabel".
    `sample_weight` is (n,) or (n, d). `output_weight` (d,) says how much the squared gradients of
    each output count in the splits of a shared tree; leaves and steps serve each output for itself.
    `raw` (n, d) replaces the baseline as the start, `grow` the way in which trees are grown.
    """
    if strategy not in ("independent", "multioutput", "project", "relabel"):
        raise ValueError(f"unknown strategy {strategy!r}")
    if step not in ("line_search", "newton"):
        raise ValueError(f"unknown step {step!r}")
    Y = np.asarray(Y, dtype=int if isinstance(loss, Softmax) else float)
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    missing = np.isnan(Y)
    if missing.any():
        # Any number will do where the weight is zero.
        weight = np.where(missing, 0.0, cells_of(weight))
        Y = np.where(missing, 0.0, Y)
    loss, baseline = starting_point(loss, Y, weight)
    model = ReferenceModel(loss, baseline, learning_rate)
    raw = np.tile(model.baseline, (len(X), 1)) if raw is None else np.array(raw, dtype=float)
    d = raw.shape[1]
    output_weight = np.ones(d) if output_weight is None else np.asarray(output_weight, dtype=float)
    projections = [None] * max_iter if projections is None else projections
    l2 = loss.default_l2 if l2_regularization is None else l2_regularization
    limits = {
        "max_leaf_nodes": max_leaf_nodes,
        "max_depth": max_depth,
        "min_samples_leaf": min_samples_leaf,
        "min_split_gain": min_split_gain,
        "categorical": categorical,
    }
    rare = np.zeros(d, dtype=bool)
    if loss.splits_by_curvature:
        # p (1 - p) of a share p that is below 0.2 or above 0.8.
        rare = loss.hessian(Y[:1], model.baseline[None, :])[0] < 0.16
    settings = {"strategy": strategy, "loss": loss, "step": step, "l2": l2, "rare": rare}
    settings |= {"grow": grow, "limits": limits}

    model.train_loss.append(mean_loss(loss, Y, raw, weight))
    for m in range(max_iter):
        made = fit_round(X, Y, raw, weight, output_weight, projections[m], **settings)
        raw = raw + learning_rate * update(made, X)
        model.rounds.append(made)
        model.train_loss.append(mean_loss(loss, Y, raw, weight))
    model.raw = raw
    return model
