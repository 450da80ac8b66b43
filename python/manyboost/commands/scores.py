"""The usual scores of a model: of all outputs together, and of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64, Mask
from manyboost.commands.data import kind_of
from manyboost.data.named import densified

#: Of more labels than this only the best few of each row are looked at.
MOST_LABELS = 5_000
BEST = 5  # labels of a row that count, of very many


@dataclass(frozen=True)
class Scores:
    """Scores of a model on some rows."""

    overall: dict[str, float]  # of all outputs together, by name; the first compares models
    by_output: dict[str, dict[str, float]]  # of each output, by its name
    worst_by: str  # the score that ranks the outputs; higher is better

    def worst(self, n: int) -> list[str]:
        """Return the names of the outputs with the lowest scores; of equals those of most rows.

        Undefined scores come last.
        """

        def order(name: str) -> tuple[bool, float, float]:
            score = self.by_output[name][self.worst_by]
            return bool(np.isnan(score)), score, -self.by_output[name].get("rows", 0)

        return sorted(self.by_output, key=order)[:n]


def predictor(model: Any) -> type[Predictions] | type[Ranking]:
    """Return what scores of a model are made of: its predictions, or the best of its labels."""
    ranks = kind_of(model) == "labels" and model.n_outputs_ > MOST_LABELS
    return Ranking if ranks else Predictions


def score_model(model: Any, predicted: Predictions | Ranking, Y: Any, names: list[str]) -> Scores:
    """Score predictions against true outputs (n_rows,) or (n_rows, n_outputs); may be sparse."""
    if model._hierarchy is not None:
        Y = model._hierarchy.closed(densified(Y))  # as fit and score complete labels
    if isinstance(predicted, Ranking):
        return _ranked(predicted, Y, names)
    Y = densified(Y)
    if all(cell is None or cell != cell for cell in Y.flat):
        raise ValueError("There is nothing to score, as all outputs are missing; fill some in.")
    if predicted.proba is None:
        Y = Y.reshape(len(Y), -1)
        if getattr(model, "_quantiles", None) is not None:
            return _quantiles(predicted.values, Y, model._quantiles, names)
        return _regression(predicted.values.reshape(Y.shape), Y, names)
    if kind_of(model) == "labels":
        return _labels(predicted, Y.astype(np.float64), names)
    if kind_of(model) == "columns":
        return _columns(predicted, Y, model.classes_, names)
    return _classes(predicted, Y, model.classes_)


@dataclass(frozen=True)
class Predictions:
    """Values or labels; for a classifier also probabilities and raw predictions."""

    values: NDArray[Any]
    proba: Any = None
    raw: Any = None

    @classmethod
    def of(cls, model: Any, X: Any) -> Predictions:
        """Predict with a model."""
        if not hasattr(model, "classes_"):
            return cls(model.predict(X))
        proba = model.predict_proba(X)
        if isinstance(proba, list):  # of several columns, side by side
            proba = np.hstack(proba)
        return cls(model.predict(X), proba, model.decision_function(X))

    @classmethod
    def joined(cls, parts: list[Predictions]) -> Predictions:
        """Concatenate predictions of blocks of rows."""
        columns = ([getattr(part, name) for part in parts] for name in ("values", "proba", "raw"))
        joined = [None if each[0] is None else np.concatenate(each) for each in columns]
        return cls(*joined)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ranking:
    """The numbers of the best labels of each row, of very many labels."""

    best: NDArray[np.int64]

    @classmethod
    def of(cls, model: Any, X: Any) -> Ranking:
        """Predict the best labels with a model."""
        best, _ = model.predict_top_k(X, BEST)
        place = {label: j for j, label in enumerate(model.classes_.tolist())}
        return cls(np.array([[place[label] for label in row] for row in best.tolist()], np.int64))

    @classmethod
    def joined(cls, parts: list[Ranking]) -> Ranking:
        """Concatenate the best labels of blocks of rows."""
        return cls(np.concatenate([part.best for part in parts]))


def _ranked(predicted: Ranking, Y: Any, names: list[str]) -> Scores:
    """Return scores of the best labels of each row, and how many of its rows a label is found in.

    Labels that no row has are left out, and so are rows with a missing label.
    """
    from manyboost.metrics import ndcg_at_k, precision_at_k, recall_at_k

    truth, best = sparse.csr_array(Y), predicted.best
    is_whole = np.ones(len(best), bool)
    is_whole[truth.tocoo().row[np.isnan(truth.data)]] = False
    if not is_whole.any():
        raise ValueError("There is nothing to score, as each row lacks a label; fill some in.")
    truth, best = truth[is_whole], best[is_whole]
    overall = {f"precision_at_{k}": precision_at_k(truth, best, k) for k in (1, 3, BEST)}
    overall[f"ndcg_at_{BEST}"] = ndcg_at_k(truth, best, BEST)
    overall[f"recall_at_{BEST}"] = recall_at_k(truth, best, BEST)
    shape, starts = truth.shape, np.arange(len(best) + 1) * BEST
    marks = sparse.csr_array((np.ones(best.size), best.ravel(), starts), shape=shape)
    rows = np.asarray(truth.sum(axis=0)).ravel().astype(np.int64)
    hits = np.asarray((truth * marks).sum(axis=0)).ravel()
    there = np.flatnonzero(rows)
    columns = {f"recall_at_{BEST}": hits[there] / rows[there], "rows": rows[there]}
    return Scores(overall, _by_name(columns, [names[j] for j in there]), f"recall_at_{BEST}")


def _regression(P: F64, Y: F64, names: list[str]) -> Scores:
    observed = ~np.isnan(Y)
    n = observed.sum(axis=0)
    error = np.where(observed, Y - P, 0.0)
    target = np.where(observed, Y, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        square, absolute = (error**2).sum(axis=0) / n, np.abs(error).sum(axis=0) / n
        spread = np.where(observed, target - target.sum(axis=0) / n, 0.0)
        variance = (spread**2).sum(axis=0) / n
        # The same as scikit-learn for a constant target.
        r2 = np.where(variance > 0, 1 - square / variance, np.where(square == 0, 1.0, 0.0))
    r2 = np.where(n > 0, r2, np.nan)
    columns = {"r2": r2, "rmse": np.sqrt(square), "mae": absolute}
    means = {name: float(column[n > 0].mean()) for name, column in columns.items()}
    return Scores(means, _by_name(columns, names), "r2")


def _quantiles(P: F64, Y: F64, levels: list[float], names: list[str]) -> Scores:
    """Return pinball losses, and how often a target is at most its prediction."""
    P = P.reshape(len(Y), Y.shape[1], len(levels))
    error = Y[:, :, None] - P
    alpha = np.array(levels)
    losses = np.maximum(alpha * error, (alpha - 1) * error).mean(axis=2)
    observed = ~np.isnan(Y)
    overall = {"pinball_loss": float(losses[observed].mean())}
    for k, level in enumerate(levels):
        overall[f"below_q{level!r}"] = float((error[observed, k] <= 0).mean())
    columns = {"negative_pinball_loss": -_means(losses)}
    return Scores(overall, _by_name(columns, names), "negative_pinball_loss")


def _labels(predicted: Predictions, Y: F64, names: list[str]) -> Scores:
    from sklearn import metrics

    observed = ~np.isnan(Y)
    truth, found = Y == 1, (predicted.values == 1) & observed
    hits, rows, said = (each.sum(axis=0) for each in (truth & found, truth, found))
    precision, recall, f1 = (
        np.where(observed.any(axis=0), _shares(each, of), np.nan)
        for each, of in ((hits, said), (hits, rows), (2 * hits, rows + said))
    )
    p = np.clip(predicted.proba, np.finfo(float).eps, 1 - np.finfo(float).eps)
    log_loss = -np.log(np.where(truth, p, 1 - p))[observed].mean()
    # Ranking the labels of a row needs several, and all of them.
    whole = observed.all(axis=1)
    overall = {}
    if truth.shape[1] > 1 and whole.any():
        ranked = truth[whole].astype(int), predicted.raw[whole]
        overall = {
            "lrap": float(metrics.label_ranking_average_precision_score(*ranked)),
            "coverage": float(metrics.coverage_error(*ranked)),
            "ranking_loss": float(metrics.label_ranking_loss(*ranked)),
        }
    overall |= {
        "f1_micro": float(_shares(2 * hits.sum(), rows.sum() + said.sum())),
        "f1_macro": float(_means(f1)),
        "hamming_loss": float((truth != found)[observed].mean()),
        "subset_accuracy": _all_right(truth == found, observed),
        "log_loss": float(log_loss),
    }
    columns = {"f1": f1, "precision": precision, "recall": recall, "rows": rows}
    return Scores(overall, _by_name(columns, names), "f1")


def _classes(predicted: Predictions, y: NDArray[Any], classes: NDArray[Any]) -> Scores:
    from sklearn import metrics

    # Numbers of classes, -1 if the model does not know one: numbers and text are scored alike.
    place = {label: k for k, label in enumerate(classes.tolist())}
    true, found = (
        np.array([place.get(label, -1) for label in labels.tolist()])
        for labels in (y, predicted.values)
    )
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        true, found, labels=range(len(classes)), zero_division=0.0
    )
    accuracy, known = float((true == found).mean()), true >= 0
    true, proba = true[known], predicted.proba[known]
    rows = np.bincount(true, minlength=len(classes))
    f1 = np.where((rows > 0) | np.isin(np.arange(len(classes)), found), f1, np.nan)
    overall = {
        "accuracy": accuracy,
        "balanced_accuracy": float(_means(np.where(rows > 0, recall, np.nan))),
        "f1_macro": float(_means(f1)),
    }
    if known.any():
        # Unknown classes have no probability.
        p = proba[np.arange(len(true)), true]
        overall["log_loss"] = float(-np.log(np.clip(p, np.finfo(float).eps, 1)).mean())
    if len(classes) == 2 and (rows > 0).all():
        overall["roc_auc"] = float(metrics.roc_auc_score(true, proba[:, 1]))
    columns = {"f1": f1, "precision": precision, "recall": recall, "rows": rows}
    return Scores(overall, _by_name(columns, [str(each) for each in classes]), "f1")


def _columns(
    predicted: Predictions, Y: NDArray[Any], classes: list[NDArray[Any]], names: list[str]
) -> Scores:
    """Return the scores of each of several columns, on the rows that have a class there."""
    shares = np.split(predicted.proba, np.cumsum(list(map(len, classes)))[:-1], axis=1)
    observed = np.vectorize(lambda cell: cell is not None, otypes=[bool])(Y)
    usual = ("accuracy", "balanced_accuracy", "f1_macro", "log_loss")
    by_output = {}
    for j, name in enumerate(names):
        there = observed[:, j]
        part = Predictions(predicted.values[there, j], shares[j][there])
        found = _classes(part, Y[there, j], classes[j]).overall if there.any() else {}
        by_output[name] = {score: found.get(score, np.nan) for score in usual}
    overall = {
        score: float(_means(np.array([each[score] for each in by_output.values()])))
        for score in usual
    }
    overall["subset_accuracy"] = _all_right(predicted.values == Y, observed)
    return Scores(overall, by_output, "accuracy")


def _all_right(right: Mask, observed: Mask) -> float:
    """Return the share of rows, of those with anything observed, in which all of it is right."""
    return float((right | ~observed)[observed.any(axis=1)].all(axis=1).mean())


def _shares(parts: NDArray[Any], wholes: NDArray[Any]) -> F64:
    """Return parts of wholes, 0 of nothing."""
    return np.asarray(parts / np.maximum(wholes, 1))


def _means(columns: F64) -> F64:
    """Return the mean of what there is in each column, NaN if there is nothing."""
    there = ~np.isnan(columns)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, columns, 0.0).sum(axis=0) / there.sum(axis=0))


def _by_name(columns: dict[str, Any], names: list[str]) -> dict[str, dict[str, float]]:
    return {
        name: {score: column[j].item() for score, column in columns.items()}
        for j, name in enumerate(names)
    }
