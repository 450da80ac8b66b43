"""Scores of the validation rows: the loss, or scikit-learn's scorers on the model in the making.

A scorer is a callable (estimator, X, y) → number, higher is better. While a model is trained, the
estimator it gets is a :class:`RunningRegressor` or :class:`RunningClassifier`: it answers for
exactly the validation rows, from the raw predictions that training keeps for them anyway.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64
from manyboost.data.cells import MISSING_LABEL

LOSS = "loss"


class RunningRegressor:
    """A regressor in the middle of training, which predicts the validation rows ``X``.

    ``raw`` returns their present raw predictions (n_rows, n_outputs); the estimator has all else
    that predictions need.
    """

    def __init__(self, estimator: Any, X: Any, raw: Callable[[], F64]) -> None:
        self._estimator, self._X, self._raw = estimator, X, raw

    def __getattr__(self, name: str) -> Any:
        # Classes, tags, names of features: as the estimator has them.
        if name.startswith("_") and not name.startswith("__sklearn_"):
            raise AttributeError(name)
        if callable(getattr(type(self._estimator), name, None)) and not name.startswith("__"):
            raise AttributeError(f"a model in training has no method {name}")
        return getattr(self._estimator, name)

    def _raw_of(self, X: Any) -> F64:
        if X is not self._X:
            raise ValueError(
                "A model in training predicts the validation rows alone; pass a scorer's X on as "
                "it is."
            )
        return self._raw()

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions for the validation rows."""
        return np.asarray(self._estimator._shaped(self._raw_of(X)))


class RunningClassifier(RunningRegressor):
    """A classifier in the middle of training, which predicts the validation rows."""

    _estimator_type = "classifier"  # scikit-learn 1.6 looks at it

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes or labels of the validation rows."""
        return np.asarray(self._estimator._labels(self._raw_of(X)))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities for the validation rows; a list for several columns of classes."""
        return self._estimator._probabilities(self._raw_of(X))

    def decision_function(self, X: Any) -> F64:
        """Raw predictions of the validation rows."""
        return np.asarray(self._estimator._decision(self._raw_of(X)))

    def predict_top_k(self, X: Any, k: int) -> tuple[NDArray[Any], F64]:
        """Return the k best labels or classes of the validation rows, and their scores."""
        self._estimator._refuse_columns("predict_top_k", "predict_proba")
        best, scores = self._estimator._ranked(self._raw_of(X), k)
        return self._estimator.classes_[best], scores


class RunningRanker(RunningRegressor):
    """A classifier of sparse labels in the middle of training, which ranks those of some rows."""

    def __init__(self, estimator: Any, X: Any, ranked: Callable[[int], tuple[Any, Any]]) -> None:
        super().__init__(estimator, X, lambda: np.empty(0))
        self._ranked = ranked

    def predict_top_k(self, X: Any, k: int) -> tuple[Any, Any]:
        """Return the k best labels of each of the validation rows, and their scores."""
        self._raw_of(X)
        return self._ranked(k)


def now_and_then(measure: Callable[[], float], every: int) -> Callable[[], float]:
    """Return a measure that looks every few rounds, and says the same between."""
    calls, last = 0, math.nan

    def measured() -> float:
        nonlocal calls, last
        if calls % every == 0:
            last = measure()
        calls += 1
        return last

    return measured


@dataclass(frozen=True)
class Scorer:
    """A name, and how to find the present score; ``measure`` is None for the loss."""

    name: str
    measure: Callable[[], float] | None


def is_scoring(value: Any) -> bool:
    """Whether a value is a scorer or its name; None is the estimator's own score."""
    if value is None:
        return True
    if isinstance(value, str) and value == LOSS:
        return True
    if isinstance(value, str):
        from sklearn.metrics import get_scorer_names

        return value in get_scorer_names()
    return callable(value) and not isinstance(value, type)


def as_list(scoring: Any) -> list[Any]:
    """Scorers as a list."""
    return list(scoring) if isinstance(scoring, list | tuple) else [scoring]


def resolve(
    scoring: Any,
    running: RunningRegressor,
    X: Any,
    y: Any,
    weight: NDArray[Any] | None,
    *,
    partial: bool,
) -> list[Scorer]:
    """Bind scorers to the validation rows.

    ``weight`` is that of rows (n_rows,) or of cells, like ``y``; ``partial`` says that some targets
    are missing. Then, or if cells have weights, a metric that averages over regression outputs or
    over labels is asked output by output, on the rows where each is observed.
    """
    by_cell = partial or (weight is not None and weight.ndim == 2)
    scorers: list[Scorer] = []
    for each in as_list(scoring):
        if each is None:
            each = "accuracy" if isinstance(running, RunningClassifier) else "r2"
            if each == "accuracy" and y.ndim == 2:
                each = accuracy
        name = each if isinstance(each, str) else _name(each)
        while any(name == scorer.name for scorer in scorers):
            name += "_"
        if each == LOSS:
            scorers.append(Scorer(name, None))
            continue
        is_name, score = isinstance(each, str), each
        if is_name:
            # (Importing it takes as long as everything else.)
            from sklearn.metrics import get_scorer

            score = get_scorer(each)
        if weight is not None and not _takes_weights(score):
            raise ValueError(
                f"The validation rows have weights, but the scorer {name} takes no "
                "sample_weight; use another scorer, or rows without weights."
            )
        if y.ndim == 2 and y.shape[1] > 1 and _asks_for_one_class(score):
            raise ValueError(
                f"The scorer {name} is for one class per row, but the validation rows have "
                f"{y.shape[1]} labels, of which it would score the present ones alone; use 'loss', "
                "or a scorer of labels such as 'roc_auc'."
            )
        if by_cell or _lacks_labels(score, y):
            if (mean := observed_mean(score)) is None:
                raise ValueError(
                    "The validation rows have missing targets, or cells with weights of their own, "
                    f"which the scorer {name} cannot take; use 'loss', a metric of scikit-learn "
                    "that averages over outputs (such as 'r2') or labels (such as 'f1_macro' or "
                    "'roc_auc'), or validation rows that are complete and weighted as a whole."
                )
            score = functools.partial(mean, weight=weight)
        elif weight is not None:
            score = functools.partial(score, sample_weight=weight)
        measure = functools.partial(score, running, X, y)
        scorers.append(Scorer(name, _checked(measure, name, is_name=is_name)))
    return scorers


def accuracy(model: Any, X: Any, y: NDArray[Any], sample_weight: Any = None) -> float:
    """Share of rows in which all observed labels, or columns of classes, are right."""
    missing = y == (None if isinstance(model.classes_, list) else MISSING_LABEL)
    right = ((model.predict(X) == y) | missing).all(axis=1)
    return float(np.average(right, weights=sample_weight))


def _observed_accuracy(
    model: Any, X: Any, y: NDArray[Any], *, weight: NDArray[Any] | None
) -> float:
    """Accuracy where cells are missing, and therefore have the weight zero."""
    if weight is None:
        return accuracy(model, X, y)
    cells = weight.reshape(len(weight), -1)
    of_rows = cells.max(axis=1)
    if not np.isclose(cells, of_rows[:, None], rtol=1e-6)[cells > 0].all():
        raise ValueError(
            "scoring=None is the accuracy of whole rows, but cells of the validation rows have "
            "weights of their own; use 'loss', or weights of rows."
        )
    return accuracy(model, X, y, of_rows)


def mean_over_outputs(
    metric: Callable[..., float], Y: F64, predictions: F64, weight: NDArray[Any] | None
) -> float:
    """Mean of a metric over the outputs, each on the rows where it is observed.

    ``weight`` is that of rows (n_rows,) or of cells (n_rows, n_outputs); ``metric`` takes targets,
    predictions and, if there is one, sample_weight.
    """
    scores: list[float] = []
    for j in range(Y.shape[1]):
        there, arguments = ~np.isnan(Y[:, j]), {}
        if weight is not None:
            of_output = weight if weight.ndim == 1 else weight[:, j]
            there &= of_output > 0
            arguments["sample_weight"] = of_output[there]
        if there.any():
            scores.append(metric(Y[there, j], predictions[there, j], **arguments))
    if not scores:
        raise ValueError(
            "y has no observed value of positive weight; at least one cell must hold a value."
        )
    return math.fsum(scores) / len(scores)


def observed_mean(scorer: Any) -> Callable[..., float] | None:
    """The mean of a scorer over outputs or labels, each on the rows where it is observed.

    It takes a model, X, y (NaN, or :data:`MISSING_LABEL` among labels, where a target is missing)
    and ``weight`` (of rows, of cells, or None). None: the scorer is no such mean. The accuracy of
    whole rows counts as one: it uses what is observed of each.
    """
    if scorer is accuracy:
        return _observed_accuracy
    metric: Any = getattr(scorer, "_score_func", None)
    constants = dict(getattr(scorer, "_kwargs", {}))
    known = {} if metric is None else inspect.signature(metric).parameters
    of_labels = "multioutput" not in known
    if of_labels:
        average = known["average"].default if "average" in known else None
        if constants.get("average", average) != "macro":
            return None
        if "pos_label" in constants:
            # Of classes: one label is two of them, of which presence counts.
            constants |= {"average": "binary", "pos_label": 1}
    ranks = of_labels and scorer._response_method != "predict"

    def of_column(y: Any, response: Any, **arguments: Any) -> float:
        y = y.astype(np.int64) if of_labels else y
        return float(scorer._sign * metric(y, response, **arguments, **constants))

    def mean(model: Any, X: Any, y: Any, *, weight: NDArray[Any] | None) -> float:
        response = np.asarray(model.decision_function(X) if ranks else model.predict(X))
        targets = np.where(y == MISSING_LABEL, np.nan, y) if of_labels else y
        targets = targets.reshape(len(targets), -1)
        if response.size != targets.size:
            raise ValueError(
                f"{_name(scorer)} compares one prediction for each output with y, of the shape "
                f"{np.shape(y)}, but the predictions have the shape {response.shape}; for a list "
                "of quantiles use the score of the model, or a callable."
            )
        if _compares_pairs(scorer):
            targets = np.where(_one_sided(targets), np.nan, targets)
            if np.isnan(targets).all():
                raise ValueError("no label has both values in these rows")
        return mean_over_outputs(of_column, targets, response.reshape(targets.shape), weight)

    return mean


def _asks_for_one_class(scorer: Any) -> bool:
    """Whether a scorer reads an indicator as one class per row, and probabilities as of one sum."""
    if getattr(scorer, "_response_method", None) != "predict_proba":
        return False
    return "average" not in inspect.signature(scorer._score_func).parameters


def _compares_pairs(scorer: Any) -> bool:
    """Whether a scorer compares rows that have a label with rows that lack it (ROC AUC)."""
    return _name(scorer) == "roc_auc_score"


def _one_sided(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether all observed rows of a label (NaN: not observed) have it, or all lack it."""
    return np.asarray((~(labels == 0).any(axis=0)) | (~(labels == 1).any(axis=0)))


def _lacks_labels(scorer: Any, y: NDArray[Any]) -> bool:
    """Whether a scorer is not defined for some of several labels, which are then left out."""
    several = y.ndim == 2 and y.shape[1] > 1
    return several and _compares_pairs(scorer) and bool(_one_sided(y).any())


def _checked(measure: Callable[[], Any], name: str, *, is_name: bool) -> Callable[[], float]:
    """A measure that returns a number, or says what is wrong with its scorer."""

    def checked() -> float:
        try:
            value = measure()
        except (ValueError, TypeError, AttributeError) as error:
            if not is_name:
                raise
            reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
            raise ValueError(
                f"scoring={name!r} does not go with these targets ({reason}); use another scorer, "
                "or 'loss'."
            ) from None
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise ValueError(
                f"The scorer {name} returned {value!r} for the validation rows; it must return a "
                "number, higher where the model is better, also where rows lack a class."
            )
        return number

    return checked


def score_name(scoring: Any) -> str:
    """Name of the score that decides on early stopping."""
    first = as_list(scoring)[0]
    if first is None:
        return "score"
    return first if isinstance(first, str) else _name(first)


def _name(scorer: Any) -> str:
    metric = getattr(scorer, "_score_func", scorer)
    return str(getattr(metric, "__name__", type(metric).__name__))


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer, or the metric that a scorer of scikit-learn wraps, takes sample_weight."""
    parameters = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)
