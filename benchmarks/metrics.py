"""Test scores, vectorised: the staged curves evaluate them dozens of times per fit."""

import numpy as np
from scipy.special import logsumexp


def score_name(task: str, n_outputs: int) -> str:
    """What `score` measures for this task; ranking one label alone is what the AUC is for."""
    if task == "multilabel":
        return "LRAP" if n_outputs > 1 else "AUC"
    return {"regression": "macro r²", "multiclass": "accuracy"}[task]


def score(task: str, Y: np.ndarray, raw: np.ndarray) -> float:
    """The test score, higher is better, of raw predictions (n, d)."""
    if task == "regression":
        return macro_r2(Y, raw)
    if task == "multiclass":
        return float(np.mean(raw.argmax(axis=1) == Y))
    if Y.shape[1] == 1:
        return auc(Y[:, 0], raw[:, 0])
    return lrap(Y, raw)


def macro_r2(Y: np.ndarray, prediction: np.ndarray) -> float:
    """Mean over the outputs of 1 − residual / total sum of squares, constant outputs left out."""
    residual = ((Y - prediction) ** 2).sum(axis=0, dtype=np.float64)
    total = ((Y - Y.mean(axis=0, dtype=np.float64)) ** 2).sum(axis=0, dtype=np.float64)
    varied = total > 0
    return float(np.mean(1 - residual[varied] / total[varied]))


def lrap(Y: np.ndarray, raw: np.ndarray) -> float:
    """Label ranking average precision; ties count against the label, as in scikit-learn."""
    n_rows, n_outputs = Y.shape
    ranked = np.sort(raw, axis=1)
    rows, outputs = np.nonzero(Y)
    of_labels = np.split(raw[rows, outputs], np.searchsorted(rows, np.arange(1, n_rows)))
    total = 0.0
    for every, labels in zip(ranked, of_labels, strict=True):
        if 0 < len(labels) < n_outputs:
            labels.sort()
            n_above = len(labels) - labels.searchsorted(labels)
            rank = n_outputs - every.searchsorted(labels)
            total += (n_above / rank).mean()
        else:
            total += 1.0  # nothing to rank
    return float(total / n_rows)


def auc(y: np.ndarray, raw: np.ndarray) -> float:
    """The chance that a positive row is ranked above a negative one, ties counting half."""
    _, group, count = np.unique(raw, return_inverse=True, return_counts=True)
    rank = (count.cumsum() - (count - 1) / 2)[group]
    n_positive = int(y.sum())
    n_negative = len(y) - n_positive
    above = rank[y == 1].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))


def log_loss(y: np.ndarray, raw: np.ndarray) -> float:
    """Mean negative log of the softmax probability of the true class (n,), from raw (n, K)."""
    raw = raw.astype(np.float64)
    return float(np.mean(logsumexp(raw, axis=1) - raw[np.arange(len(y)), y]))
