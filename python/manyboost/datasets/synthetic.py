"""Synthetic problems with a known output structure, drawn with NumPy alone.

Three are the regression problems of the synthetic experiments of Joly, Wehenkel and Geurts, built
on Friedman's function; one is a multi-label problem of low rank, one has very many sparse labels.
"""

from __future__ import annotations

import math
import numbers
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64

Distribution: TypeAlias = Literal["uniform", "normal"]
RandomStateLike: TypeAlias = int | np.random.Generator | np.random.RandomState | None

_SCORE_NOISE = 0.3  # standard deviation; the noiseless scores have standard deviation 1
_FORM_FEATURES = 2  # in each random linear form: few, so that trees need few splits to follow it


def make_friedman1_chain(
    n_rows: int = 300,
    *,
    n_outputs: int = 16,
    noise: float = 1.0,
    distribution: Distribution = "uniform",
    noisy_outputs: bool = False,
    random_state: RandomStateLike = None,
) -> tuple[F64, F64]:
    """Draw friedman1-chain: each output is the previous one plus noise.

    y₁ = f(x) + ε₁ and yⱼ = yⱼ₋₁ + εⱼ, with f(x) = 10 sin(π x₁ x₂) + 20 (x₃ − 0.5)² + 10 x₄ + 5 x₅.
    The first output has the least noise; the best model learns it and predicts it for all outputs.

    Parameters
    ----------
    n_rows, n_outputs : int, default=300, 16
        Numbers of rows and outputs.
    noise : float, default=1.0
        Standard deviation of each εⱼ.
    distribution : {"uniform", "normal"}, default="uniform"
        Of the features: uniform on [0, 1], which reproduces the scores of the paper, or standard
        normal, as its text says.
    noisy_outputs : bool, default=False
        Append a copy of every output with permuted rows, each copy permuted on its own: outputs
        of the same distribution that cannot be predicted.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Source of randomness; an int gives the same data at every call.

    Returns
    -------
    X : ndarray of shape (n_rows, 5)
    Y : ndarray of shape (n_rows, n_outputs) or (n_rows, 2 * n_outputs)

    Examples
    --------
    >>> from manyboost.datasets import make_friedman1_chain
    >>> X, Y = make_friedman1_chain(100, n_outputs=4, random_state=0)
    >>> X.shape, Y.shape
    ((100, 5), (100, 4))
    """
    common = n_rows, n_outputs, noise, distribution, noisy_outputs, random_state
    return _friedman1("chain", *common)


def make_friedman1_group(
    n_rows: int = 300,
    *,
    n_outputs: int = 16,
    noise: float = 1.0,
    distribution: Distribution = "uniform",
    noisy_outputs: bool = False,
    random_state: RandomStateLike = None,
) -> tuple[F64, F64]:
    """Draw friedman1-group: one signal in all outputs, independent noise in each.

    yⱼ = f(x) + εⱼ. Averaging the outputs reduces the noise; the best model learns that average.
    For f, the parameters and the result, see :func:`make_friedman1_chain`.

    Examples
    --------
    >>> X, Y = make_friedman1_group(100, n_outputs=4, noisy_outputs=True, random_state=0)
    >>> X.shape, Y.shape
    ((100, 5), (100, 8))
    """
    common = n_rows, n_outputs, noise, distribution, noisy_outputs, random_state
    return _friedman1("group", *common)


def make_friedman1_ind(
    n_rows: int = 300,
    *,
    n_outputs: int = 16,
    noise: float = 1.0,
    distribution: Distribution = "uniform",
    noisy_outputs: bool = False,
    random_state: RandomStateLike = None,
) -> tuple[F64, F64]:
    """Draw friedman1-ind: every output depends on five features of its own.

    yⱼ = f(xⱼ) + εⱼ, where xⱼ are the columns ``5 * j`` to ``5 * j + 4`` of X, which has
    ``5 * n_outputs``. The outputs share nothing; the best model is one for each output. For f, the
    parameters and the result, see :func:`make_friedman1_chain`.

    Examples
    --------
    >>> X, Y = make_friedman1_ind(100, n_outputs=4, random_state=0)
    >>> X.shape, Y.shape
    ((100, 20), (100, 4))
    """
    common = n_rows, n_outputs, noise, distribution, noisy_outputs, random_state
    return _friedman1("ind", *common)


def make_low_rank_multilabel(
    n_rows: int = 1000,
    *,
    n_features: int = 20,
    n_outputs: int = 50,
    rank: int = 5,
    cardinality: float = 3.0,
    random_state: RandomStateLike = None,
) -> tuple[F64, NDArray[np.uint8]]:
    """Draw a multi-label problem: many labels explained by a few nonlinear factors.

    ``rank`` latent factors (sines, products and signs of random linear forms of two features) are
    mixed at random into one score per label, with a little noise. A label goes to the rows with
    its highest scores. The number of rows per label follows a power law, in random order.
    To get training and test rows of the same problem, draw them in one call and split.

    Parameters
    ----------
    n_rows, n_features, n_outputs, rank : int, default=1000, 20, 50, 5
        Numbers of rows (at least 2), standard normal features, labels and latent factors.
    cardinality : float, default=3.0
        Mean number of labels per row, between 0 and ``n_outputs``. Every label is present in some
        row and absent in some if ``n_outputs <= cardinality * n_rows <= n_outputs * (n_rows - 1)``.
    random_state
        See :func:`make_friedman1_chain`.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_outputs), uint8, 1 where the row has the label

    Examples
    --------
    >>> from manyboost.datasets import make_low_rank_multilabel
    >>> X, Y = make_low_rank_multilabel(200, n_outputs=30, cardinality=2.5, random_state=0)
    >>> X.shape, Y.shape, float(Y.sum(axis=1).mean())
    ((200, 20), (200, 30), 2.5)
    """
    _check_integer("n_rows", n_rows, 2)
    for what, value in (("n_features", n_features), ("n_outputs", n_outputs), ("rank", rank)):
        _check_integer(what, value)
    _check_real("cardinality", cardinality)
    if not 0 < cardinality < n_outputs:
        what = f"cardinality={cardinality!r} is not possible with n_outputs={n_outputs}"
        raise ValueError(f"{what}: pass a number between 0 and n_outputs, both excluded.")
    rng = _as_generator(random_state)
    X = rng.standard_normal((n_rows, n_features))
    scores = _latent_factors(rng, X, rank) @ rng.standard_normal((rank, n_outputs))
    scores = scores / np.sqrt(rank) + _SCORE_NOISE * rng.standard_normal(scores.shape)
    counts = rng.permutation(_label_counts(n_rows, n_outputs, cardinality))
    # place[i, j]: how many rows score higher on label j than row i does
    place = np.argsort(np.argsort(-scores, axis=0), axis=0)
    return X, (place < counts).astype(np.uint8)


def make_many_labels(
    n_rows: int = 10_000,
    *,
    n_features: int = 1000,
    n_labels: int = 100_000,
    n_topics: int = 200,
    random_state: RandomStateLike = None,
    return_best: bool = False,
) -> Any:
    """Draw a problem of very many labels, five for each row, with sparse features.

    Each row has a topic. It has each of the five features of its topic with probability 0.7, and
    fifteen others drawn from all. Its labels are drawn by Zipf's law, nine in ten from those of its
    topic, the others from all: label j is the (j // n_topics)-th of topic j % n_topics.

    Parameters
    ----------
    n_rows, n_features, n_labels, n_topics : int, default=10000, 1000, 100000, 200
        Numbers of rows, features, labels (at least five for each topic) and topics.
    random_state
        See :func:`make_friedman1_chain`.
    return_best : bool, default=False
        Whether to return the most likely label of each row, too.

    Returns
    -------
    X : csr_matrix of shape (n_rows, n_features), float32
    Y : csr_matrix of shape (n_rows, n_labels), uint8
    best : ndarray of shape (n_rows,)
        If ``return_best``.

    Examples
    --------
    >>> from manyboost.datasets import make_many_labels
    >>> X, Y = make_many_labels(100, n_labels=50_000, random_state=0)
    >>> Y.shape, Y.nnz
    ((100, 50000), 500)
    """
    sizes = {"n_rows": n_rows, "n_features": n_features, "n_topics": n_topics}
    for name, value in sizes.items():
        _check_integer(name, value)
    _check_integer("n_labels", n_labels, 5 * n_topics, ", five for each topic")
    rng = _as_generator(random_state)
    topic = rng.integers(n_topics, size=n_rows)
    signature = rng.integers(n_features, size=(n_topics, 5))
    there = rng.random((n_rows, 5)) < 0.7
    features = np.hstack([signature[topic], rng.integers(n_features, size=(n_rows, 15))])
    kept = np.hstack([there, np.ones((n_rows, 15), bool)])
    X = _indicator_rows(features, kept, n_features).astype(np.float32)
    labels = np.full((n_rows, 0), 0)
    wanted = np.arange(n_rows)
    while len(wanted):  # until each row has five labels that differ
        drawn = _zipf_labels(rng, topic[wanted], n_labels, n_topics)
        if labels.shape[1] == 0:
            labels = drawn
        else:
            labels[wanted] = drawn
        ordered = np.sort(labels[wanted], axis=1)
        wanted = wanted[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
    Y = _indicator_rows(labels, np.ones(labels.shape, bool), n_labels)
    return (X, Y, topic) if return_best else (X, Y)


def _zipf_labels(
    rng: np.random.Generator, topic: NDArray[np.int64], n_labels: int, n_topics: int
) -> NDArray[np.int64]:
    """Draw five labels for each row, some of which may be the same."""
    size = (len(topic), 5)
    # P(rank < r) is about log(r + 1) / log(n + 1) for a density of 1 / (rank + 1).
    own = np.expm1(rng.random(size) * np.log1p(n_labels // n_topics)).astype(np.int64)
    own = np.minimum(own, n_labels // n_topics - 1) * n_topics + topic[:, None]
    any_label = np.expm1(rng.random(size) * np.log1p(n_labels)).astype(np.int64)
    labels = np.where(rng.random(size) < 0.9, own, np.minimum(any_label, n_labels - 1))
    return np.asarray(labels)


def _indicator_rows(columns: NDArray[np.int64], kept: NDArray[np.bool_], width: int) -> Any:
    """Return a CSR matrix with ones at the kept columns of each row; repeated ones count once."""
    starts = np.concatenate([[0], kept.sum(axis=1).cumsum()])
    ones = np.ones(int(starts[-1]), np.uint8)
    matrix = sparse.csr_matrix((ones, columns[kept], starts), shape=(len(columns), width))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _friedman1(
    kind: str, n_rows: int, n_outputs: int, noise: float, distribution: str, noisy: bool, seed: Any
) -> tuple[F64, F64]:
    """Draw a friedman1 problem of the kind "chain", "group" or "ind"."""
    _check_integer("n_rows", n_rows)
    _check_integer("n_outputs", n_outputs)
    _check_real("noise", noise)
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise={noise!r} is not a standard deviation: pass a finite number >= 0.")
    if distribution not in ("uniform", "normal"):
        raise ValueError(f"distribution={distribution!r} is unknown: pass 'uniform' or 'normal'.")
    rng = _as_generator(seed)
    shape = (n_rows, n_outputs if kind == "ind" else 1, 5)
    x = rng.random(shape) if distribution == "uniform" else rng.standard_normal(shape)
    eps = noise * rng.standard_normal((n_rows, n_outputs))
    signal = 10.0 * np.sin(np.pi * x[..., 0] * x[..., 1]) + 20.0 * (x[..., 2] - 0.5) ** 2
    signal = signal + 10.0 * x[..., 3] + 5.0 * x[..., 4]
    Y = signal + (np.cumsum(eps, axis=1) if kind == "chain" else eps)
    if noisy:
        Y = np.hstack([Y, rng.permuted(Y, axis=0)])
    return x.reshape(n_rows, -1), Y


def _latent_factors(rng: np.random.Generator, X: F64, rank: int) -> F64:
    """Nonlinear factors of shape (n_rows, rank), each with mean 0 and variance about 1."""

    def linear_form() -> F64:
        used = rng.choice(X.shape[1], size=min(_FORM_FEATURES, X.shape[1]), replace=False)
        weights = rng.standard_normal(used.size)
        return np.asarray(X[:, used] @ (weights / np.linalg.norm(weights)))

    factors = np.empty((X.shape[0], rank))
    for k in range(rank):
        u, v = linear_form(), linear_form()  # standard normal; E sin²(2u) = (1 − exp(−8)) / 2
        shapes = (math.sqrt(2.0) * np.sin(2.0 * u), u * v, np.sign(u))
        factors[:, k] = shapes[k % len(shapes)]
    return factors


def _label_counts(n_rows: int, n_outputs: int, cardinality: float) -> NDArray[np.int64]:
    """Rows per label, most frequent first, summing to ``cardinality * n_rows`` rounded.

    The odds of label j are c / (j + 1): a power law for the rare labels. c is found by bisection.
    """
    total = cardinality * n_rows
    # Keep every label present and absent somewhere, where that leaves the total reachable.
    fewest = 1 if n_outputs <= total else 0
    most = n_rows - 1 if total <= n_outputs * (n_rows - 1) else n_rows
    label = np.arange(1, n_outputs + 1)

    def counts(log_c: float) -> F64:
        return np.clip(n_rows / (1.0 + label * math.exp(-log_c)), fewest, most)

    low, high = -100.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if counts(middle).sum() < total else (low, middle)
    # Rounding the running sum, not the counts, keeps the total.
    ends = np.floor(np.cumsum(counts(high)) + 0.5).astype(np.int64)
    return np.clip(np.diff(ends, prepend=0), fewest, most)


def _check_integer(name: str, value: Any, minimum: int = 1, other: str = "") -> None:
    remedy = f"pass an int, {minimum} or more{other}."
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is not an integer: {remedy}")
    if value < minimum:
        raise ValueError(f"{name}={value!r} is too small: {remedy}")


def _check_real(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is not a number: pass an int or a float.")


def _as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator for whatever scikit-learn or NumPy users pass as ``random_state``."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, size=4, dtype=np.uint32)
    elif not (random_state is None or isinstance(random_state, np.random.Generator)):
        _check_integer("random_state", random_state, 0, ", or a random generator of NumPy")
    return np.random.default_rng(random_state)
