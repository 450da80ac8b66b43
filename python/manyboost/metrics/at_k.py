"""Metrics for very many labels: only the best few labels of each row count.

Precision, recall and discounted gain at k, also weighted by how likely a label is observed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64
from manyboost.data.cells import row_blocks
from manyboost.data.labels import Sparsity, indicator, read_label_sets
from manyboost.data.sparse_labels import SparseLabels
from manyboost.data.targets import check_output_names
from manyboost.data.weights import check_weight
from manyboost.spelling import nearest


@dataclass(frozen=True)
class TopKScorer:
    """A scorer of the k best labels of each row, for ``scoring=`` of the estimators and of others.

    In early stopping it can score a part of the validation rows, and only every few rounds, where
    labels stay sparse; elsewhere it scores all of them in every round.

    Parameters
    ----------
    metric : {"precision", "recall", "ndcg"}
        :func:`precision_at_k`, :func:`recall_at_k` or :func:`ndcg_at_k`.
    k : int
        How many labels of a row count.
    every : int, default=1
        In early stopping where labels stay sparse, score every so many rounds; in between, the last
        score is kept.
    n_rows : int, optional
        In early stopping where labels stay sparse, the maximum number of validation rows to score,
        drawn at random; None: all.

    Examples
    --------
    >>> from manyboost import ManyBoostClassifier
    >>> from manyboost.datasets import make_many_labels
    >>> from manyboost.metrics import TopKScorer
    >>> X, Y = make_many_labels(2000, n_labels=5000, n_topics=10, random_state=0)
    >>> scorer = TopKScorer("precision", 3, every=2, n_rows=200)
    >>> model = ManyBoostClassifier(
    ...     "squared_error", max_leaf_outputs=10, max_iter=6, scoring=scorer, early_stopping=True,
    ...     learning_rate=0.5, random_state=0,
    ... ).fit(X, Y)
    >>> model.validation_score_.shape
    (7,)
    """

    metric: str
    k: int
    every: int = 1
    n_rows: int | None = None

    def __post_init__(self) -> None:
        if self.metric not in _TOP_K:
            raise ValueError(f"metric={self.metric!r} is unknown; {nearest(self.metric, _TOP_K)}")
        for name in ("k", "every", "n_rows"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and value >= 1) and not (name == "n_rows" and value is None):
                raise ValueError(f"{name}={value!r} is not allowed; it must be an integer above 0.")

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted model on rows; y is an indicator, or holds sets of labels."""
        check_output_names(y, getattr(estimator, "output_names_", None), "y")
        best, _ = estimator.predict_top_k(X, self.k)
        classes = np.asarray(estimator.classes_)
        numbers = np.asarray(best)
        if not np.array_equal(classes, np.arange(len(classes))):
            order = np.argsort(classes)
            numbers = order[np.searchsorted(classes, numbers, sorter=order)]
        if (sets := read_label_sets(y)) is not None:
            labels = indicator(sets, classes, "y", Sparsity(0))
            assert isinstance(labels, SparseLabels)
            y = labels.matrix()
        metric = _TOP_K[self.metric]
        return metric(y, numbers.astype(np.int64), self.k, sample_weight=sample_weight)

    @property
    def __name__(self) -> str:
        """What records of scores call it."""
        return f"{self.metric}_at_{self.k}"


def precision_at_k(y_true: Any, y_pred: Any, k: int, *, sample_weight: Any = None) -> float:
    """Return the mean share of true labels among the k best of each row.

    Parameters
    ----------
    y_true : array-like or sparse matrix of shape (n_rows, n_labels)
        Indicator of 0 and 1. Rows without a label count as 0.
    y_pred : array-like of shape (n_rows, n_labels) or (n_rows, at least k)
        Scores, as floats: higher is better, and of equal scores the first label wins. Or, as
        integers, the numbers of the best labels of each row, best first, as
        ``predict_top_k`` returns them for an indicator without names.
    k : int
        How many labels of a row count.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    float

    Examples
    --------
    >>> from manyboost.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.8, 0.1], [0.2, 0.7, 0.6]], k=2)
    0.5
    """
    top = _TopLabels(y_true, y_pred, k, sample_weight)
    return top.mean(top.hits.sum(axis=1) / k, np.ones(top.n_rows))


def recall_at_k(y_true: Any, y_pred: Any, k: int, *, sample_weight: Any = None) -> float:
    """Return the mean share of the true labels of a row that are among its k best.

    Rows without a label do not count. Parameters are those of :func:`precision_at_k`.
    """
    top = _TopLabels(y_true, y_pred, k, sample_weight)
    shares = top.hits.sum(axis=1) / np.maximum(top.n_true, 1)
    return top.mean(shares, top.n_true > 0)


def ndcg_at_k(y_true: Any, y_pred: Any, k: int, *, sample_weight: Any = None) -> float:
    """Return the mean normalised discounted cumulative gain of the k best labels of each row.

    A true label at place l counts 1 / log2(l + 1); the sum is divided by that of a row whose true
    labels come first. Rows without a label do not count. Parameters are those of
    :func:`precision_at_k`.
    """
    top = _TopLabels(y_true, y_pred, k, sample_weight)
    discount = _discounts(k)
    best = np.concatenate([[0.0], np.cumsum(discount)])[np.minimum(top.n_true, k)]
    shares = (top.hits * discount).sum(axis=1) / np.where(best > 0, best, 1.0)
    return top.mean(shares, top.n_true > 0)


_TOP_K: dict[str, Callable[..., float]] = {
    "precision": precision_at_k,
    "recall": recall_at_k,
    "ndcg": ndcg_at_k,
}


def label_propensities(y_train: Any, *, a: float = 0.55, b: float = 1.5) -> F64:
    """Return how likely each label is observed if it is true, from its frequency.

    The model of Jain, Prabhu and Varma (2016): 1 / (1 + C e^(−a log(n_l + b))) for a label of n_l
    rows, with C = (log n − 1) (b + 1)^a for n rows. Their constants are 0.55 and 1.5, for Wikipedia
    0.5 and 0.4, for Amazon 0.6 and 2.6.

    Parameters
    ----------
    y_train : array-like or sparse matrix of shape (n_rows, n_labels)
        Indicator of the labels of the training rows; at least three rows.
    a, b : float
        The constants.

    Returns
    -------
    ndarray of shape (n_labels,)
    """
    indicator = _indicator(y_train, "y_train")
    n_rows = indicator.shape[0]
    if n_rows < 3:
        raise ValueError(f"y_train has {n_rows} rows; propensities are defined from 3 on.")
    counts = np.bincount(indicator.indices, minlength=indicator.shape[1])
    constant = (np.log(n_rows) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + constant * (counts + b) ** -a))


def propensity_scored_precision_at_k(
    y_true: Any,
    y_pred: Any,
    k: int,
    propensities: Any,
    *,
    normalize: bool = True,
    sample_weight: Any = None,
) -> float:
    """Return the precision at k in which a true label counts 1 / its propensity (PSP@k).

    Parameters
    ----------
    y_true, y_pred, k, sample_weight
        As in :func:`precision_at_k`.
    propensities : array-like of shape (n_labels,)
        Propensities of the labels, from :func:`label_propensities`.
    normalize : bool
        Whether to divide by what the best possible ranking reaches, as published tables do.

    Returns
    -------
    float
    """
    top = _TopLabels(y_true, y_pred, k, sample_weight)
    return top.mean_gain(propensities, np.full(k, 1 / k), normalize=normalize)


def propensity_scored_ndcg_at_k(
    y_true: Any,
    y_pred: Any,
    k: int,
    propensities: Any,
    *,
    normalize: bool = True,
    sample_weight: Any = None,
) -> float:
    """Return the discounted gain at k in which a true label counts 1 / its propensity (PSnDCG@k).

    The sum over the places l = 1 … k of 1 / (propensity · log2(l + 1)) is divided by that of
    1 / log2(l + 1). Parameters are those of :func:`propensity_scored_precision_at_k`.
    """
    top = _TopLabels(y_true, y_pred, k, sample_weight)
    share = _discounts(k) / _discounts(k).sum()
    return top.mean_gain(propensities, share, normalize=normalize)


def _discounts(k: int) -> F64:
    return np.asarray(1 / np.log2(np.arange(2, k + 2)))


class _TopLabels:
    """The k best labels of each row, and which of them are true."""

    def __init__(self, y_true: Any, y_pred: Any, k: int, sample_weight: Any) -> None:
        self.truth = _indicator(y_true, "y_true")
        self.n_rows, self.n_labels = self.truth.shape
        self.k = k = _checked_k(k, self.n_labels)
        self.best = _best_labels(y_pred, k, self.truth.shape)
        self.n_true = np.diff(self.truth.indptr)
        # Rows and labels of the true cells as one ascending number each.
        cells = np.repeat(np.arange(self.n_rows), self.n_true) * self.n_labels + self.truth.indices
        wanted = np.arange(self.n_rows)[:, None] * self.n_labels + self.best
        places = np.minimum(np.searchsorted(cells, wanted), max(0, len(cells) - 1))
        self.hits = cells[places] == wanted if len(cells) else np.zeros(wanted.shape, bool)
        self.weight = check_weight(sample_weight, (self.n_rows,), "sample_weight")

    def mean(self, of_rows: F64, counts: Any) -> float:
        """Return the weighted mean over the rows that count."""
        weight = np.asarray(counts, np.float64) * (1.0 if self.weight is None else self.weight)
        total = float(weight.sum())
        if total == 0:
            raise ValueError("y_true has no label in rows of positive weight; pass some.")
        return float((of_rows * weight).sum() / total)

    def mean_gain(self, propensities: Any, share: F64, *, normalize: bool) -> float:
        """Return the mean of the gains, each times the share of its place (k,)."""
        gains, ideal = ((each * share).sum(axis=1) for each in self._gains(propensities))
        if not normalize:
            return self.mean(gains, np.ones(self.n_rows))
        return self.mean(gains, self.n_true > 0) / self.mean(ideal, self.n_true > 0)

    def _gains(self, propensities: Any) -> tuple[F64, F64]:
        """Return 1 / propensity of the hits (n_rows, k), and the largest that each row has."""
        chances = np.asarray(propensities, np.float64)
        if chances.shape != (self.n_labels,) or not ((chances > 0) & (chances <= 1)).all():
            raise ValueError(
                f"propensities has shape {chances.shape} or values outside (0, 1]; it must have "
                f"one such number for each of the {self.n_labels} labels."
            )
        ideal = np.zeros((self.n_rows, self.k))
        of_cells = 1 / chances[self.truth.indices]
        row = np.repeat(np.arange(self.n_rows), self.n_true)
        order = np.lexsort((-of_cells, row))
        place = np.arange(len(order)) - np.repeat(self.truth.indptr[:-1], self.n_true)
        kept = place < self.k
        ideal[row[order][kept], place[kept]] = of_cells[order][kept]
        return self.hits / chances[self.best], ideal


def _checked_k(k: Any, n_labels: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n_labels:
        allowed = f"an integer from 1 to {n_labels}, the number of labels"
        raise ValueError(f"k={k!r} is not allowed; it must be {allowed}.")
    return int(k)


def _indicator(y: Any, name: str) -> Any:
    """Return an indicator as a CSR matrix of ones, with ascending labels in each row."""
    matrix = y if sparse.issparse(y) else np.asarray(y)
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {matrix.shape}; it must have a column for each label.")
    stored = sparse.csr_array(matrix, copy=True)
    stored.sum_duplicates()
    stored.eliminate_zeros()
    if not (stored.data == 1).all():
        value = stored.data[np.argmax(stored.data != 1)]
        raise ValueError(f"{name} has the value {value:g}; it must hold 0 and 1.")
    return stored


def _best_labels(y_pred: Any, k: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return the numbers of the k best labels of each row, best first."""
    if sparse.issparse(y_pred):
        raise ValueError(
            "y_pred is a sparse matrix, whose other scores are not known; pass the labels that "
            "predict_top_k returns, or dense scores."
        )
    array = np.asarray(y_pred)
    if array.dtype.kind == "f":
        if array.shape != shape:
            raise ValueError(f"y_pred has shape {array.shape}, but y_true has {shape}.")
        best = [_ranked(array[rows], k) for rows in row_blocks(*shape)]
        return np.concatenate(best) if best else np.empty((0, k), np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or len(array) != shape[0]:
        raise ValueError(
            f"y_pred is an array of {array.dtype} of shape {array.shape}; it must hold scores of "
            f"the shape {shape} as floats, or numbers of labels as integers, best first."
        )
    if array.shape[1] < k:
        raise ValueError(
            f"y_pred names {array.shape[1]} labels for each row, but k={k}; name at least as many."
        )
    best_labels = array[:, :k].astype(np.int64)
    if ((best_labels < 0) | (best_labels >= shape[1])).any():
        raise ValueError(
            f"y_pred names a label outside 0 … {shape[1] - 1}; pass numbers of labels."
        )
    ordered = np.sort(best_labels, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise ValueError("y_pred names a label twice in a row; each may come once.")
    return best_labels


def _ranked(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return the k best labels of rows of scores, of equals the first."""
    if np.isnan(scores).any():
        raise ValueError("y_pred has a missing score (NaN); fill it in.")
    return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int64)
