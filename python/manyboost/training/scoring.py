"""Scores of the validation rows: the loss, or scikit-learn's scorers on the model in the making.

A scorer is a callable (estimator, X, y) → number, higher is better. While a model is trained, the
estimator it gets is a :class:`RunningRegressor` or :class:`RunningClassifier`: it answers for
exactly the validation rows, from the raw predictions that training keeps for them anyway.
"""

from __future__ import annotations

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
    """A regressor in the middle of training, which predicts the validation rows.

    Parameters
    ----------
    estimator : estimator
        With all that predictions need besides the raw ones.
    X : the validation rows
    raw : callable
        Returns the present raw predictions of these rows (n_rows, n_outputs).
    """

    def __init__(self, estimator: Any, X: Any, raw: Callable[[], F64]) -> None:
        self._estimator = estimator
        self._X = X
        self._raw = raw

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

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes or labels of the validation rows."""
        return np.asarray(self._estimator._labels(self._raw_of(X)))

    def predict_proba(self, X: Any) -> F64:
        """Probabilities for the validation rows."""
        return np.asarray(self._estimator._probabilities(self._raw_of(X)))

    def decision_function(self, X: Any) -> F64:
        """Raw predictions of the validation rows."""
        return np.asarray(self._estimator._decision(self._raw_of(X)))


@dataclass(frozen=True)
class Scorer:
    """A name, and how to find the present score; ``measure`` is None for the loss."""

    name: str
    measure: Callable[[], float] | None


def is_scoring(value: Any) -> bool:
    """Whether a value is a scorer or its name."""
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
        name = each if isinstance(each, str) else _name(each)
        while any(name == scorer.name for scorer in scorers):
            name += "_"
        if each == LOSS:
            scorers.append(Scorer(name, None))
            continue
        arguments = {}
        score = _find(each) if isinstance(each, str) else each
        if weight is not None:
            if not _takes_weights(score):
                raise ValueError(
                    f"The validation rows have weights, but the scorer {name} takes no "
                    "sample_weight; use another scorer, or rows without weights."
                )
            arguments["sample_weight"] = weight
        if by_cell:
            if _takes_outputs(score):
                score = _by_output(score, weight)
            elif _averages_labels(score):
                score = _by_label(score, weight)
            else:
                raise ValueError(
                    f"The validation rows have missing targets, or cells with weights of their "
                    f"own, which the scorer {name} cannot take; use 'loss', a metric of "
                    "scikit-learn that averages over outputs (such as 'r2') or labels (such as "
                    "'f1_macro' or 'roc_auc'), or validation rows that are complete and weighted "
                    "as a whole."
                )
            arguments = {}
        if isinstance(each, str):
            score = _explained(score, name)
        scorers.append(Scorer(name, _measure(score, name, running, X, y, arguments)))
    return scorers


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


def _find(name: str) -> Any:
    # (Importing it takes as long as everything else.)
    from sklearn.metrics import get_scorer

    return get_scorer(name)


class _Column:
    """A running estimator whose prediction is already known."""

    def __init__(self, running: RunningRegressor, prediction: NDArray[Any]) -> None:
        self._running, self._prediction = running, prediction

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running, name)

    def predict(self, X: Any) -> NDArray[Any]:
        return self._prediction


def _by_output(score: Any, weight: NDArray[Any] | None) -> Callable[..., float]:
    """The mean of a scorer over the outputs, each on the rows where it is observed."""

    def mean(running: RunningRegressor, X: Any, y: Any) -> float:
        def of_column(y: Any, predictions: Any, **arguments: Any) -> float:
            return float(score(_Column(running, predictions), X, y, **arguments))

        return mean_over_outputs(of_column, y, running.predict(X), weight)

    return mean


def _by_label(scorer: Any, weight: NDArray[Any] | None) -> Callable[..., float]:
    """The mean of a metric over the labels, each on the rows where it is observed."""
    metric, constants = scorer._score_func, dict(scorer._kwargs)
    if "pos_label" in constants:
        # Of classes: one label is two of them, of which presence counts.
        constants |= {"average": "binary", "pos_label": 1}
    ranks = scorer._response_method != "predict"

    def of_label(y: Any, response: Any, **arguments: Any) -> float:
        return float(scorer._sign * metric(y.astype(np.int64), response, **arguments, **constants))

    def mean(running: RunningClassifier, X: Any, y: Any) -> float:
        response = running.decision_function(X) if ranks else running.predict(X)
        labels = np.where(y == MISSING_LABEL, np.nan, y)
        return mean_over_outputs(of_label, labels, response, weight)

    return mean


def _averages_labels(scorer: Any) -> bool:
    """Whether a scorer of scikit-learn wraps a metric of which it takes the mean over labels."""
    metric = getattr(scorer, "_score_func", None)
    if metric is None or "average" not in (known := inspect.signature(metric).parameters):
        return False
    return bool(scorer._kwargs.get("average", known["average"].default) == "macro")


def _takes_outputs(scorer: Any) -> bool:
    """Whether a scorer of scikit-learn wraps a metric that averages over regression outputs."""
    metric = getattr(scorer, "_score_func", None)
    return metric is not None and "multioutput" in inspect.signature(metric).parameters


def _explained(score: Any, name: str) -> Any:
    """A scorer of scikit-learn whose errors say that it does not go with the targets."""

    def explained(*given: Any, **arguments: Any) -> Any:
        try:
            return score(*given, **arguments)
        except (ValueError, TypeError, AttributeError) as error:
            reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
            raise ValueError(
                f"scoring={name!r} does not go with these targets ({reason}); use another scorer, "
                "or 'loss'."
            ) from None

    return explained


def _measure(
    score: Any, name: str, running: RunningRegressor, X: Any, y: Any, arguments: dict[str, Any]
) -> Callable[[], float]:
    def measure() -> float:
        value = score(running, X, y, **arguments)
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise ValueError(
                f"The scorer {name} returned {value!r} for the validation rows; it must return a "
                "number, higher where the model is better."
            )
        return number

    return measure


def _name(scorer: Any) -> str:
    metric = getattr(scorer, "_score_func", scorer)
    return str(getattr(metric, "__name__", type(metric).__name__))


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer, or the metric that a scorer of scikit-learn wraps, takes sample_weight."""
    parameters = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)
