"""Losses: what a model minimises, and where it starts.

A built-in loss is a row of facts in :data:`REGRESSION_LOSSES` or :data:`LABEL_LOSSES`; its formulas
are kernels of the core. A :class:`Loss` written in Python has the same place in training. Either is
first fitted (:func:`fit_loss`: baseline and constants from the training targets) and then bound to
targets and weights, which gives an :class:`~manyboost.training.objectives.Objective`.

The raw predictions of the trees are kept apart from the baseline. Where adding a constant to an
output moves its minimiser by that constant, targets are kept relative to the baseline as well, so
that outputs far from zero keep their digits in single precision. A row's offset, if there is one,
is subtracted from such targets too; elsewhere raw predictions start from it.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from manyboost import _core
from manyboost.data.cells import MISSING_LABEL, missing_cells, row_blocks
from manyboost.data.stored import mapping, release
from manyboost.data.weights import Weights
from manyboost.training.objectives import (
    BuiltinObjective,
    CustomObjective,
    Facts,
    MixedObjective,
    Objective,
    SquaredResiduals,
    fill_missing,
)
from manyboost.training.steps import Direction, minimise_along, softmax_step

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

# The raw prediction of an output whose label never varies.
BASELINE_LIMIT = 15.0


class Loss:
    """Base class for losses written in Python.

    Subclass it, implement :meth:`value` and :meth:`gradient` and, for Newton steps,
    :meth:`hessian`. Targets come as a float array of shape (n_rows, n_outputs): the numbers of a
    regression, or 0 and 1 for labels and classes. Raw predictions have the same shape. Where
    targets are missing or cells have weights of their own, :meth:`value` must return one loss for
    each cell, and the derivatives of a cell must depend on that cell alone.

    Examples
    --------
    >>> import numpy as np
    >>> from manyboost import Loss, ManyBoostRegressor
    >>> class LogCosh(Loss):
    ...     def value(self, y, raw):
    ...         return np.logaddexp(y - raw, raw - y) - np.log(2)
    ...     def gradient(self, y, raw):
    ...         return np.tanh(raw - y)
    ...     def hessian(self, y, raw):
    ...         return 1 - np.tanh(raw - y) ** 2
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> Y = np.column_stack([X[:, 0], -X[:, 0], X[:, 1]])
    >>> model = ManyBoostRegressor(loss=LogCosh(), random_state=0).fit(X, Y)
    >>> bool(model.score(X, Y) > 0.8)
    True
    """

    def value(self, y: F64, raw: F64) -> F64:
        """Loss of each cell (n_rows, n_outputs), or of each row (n_rows,)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method value(y, raw).")

    def gradient(self, y: F64, raw: F64) -> F64:
        """Return the derivative of the loss with respect to each raw prediction."""
        raise NotImplementedError(f"{type(self).__name__} needs a method gradient(y, raw).")

    def hessian(self, y: F64, raw: F64) -> F64 | None:
        """Second derivative for each raw prediction; None if there is none to use."""
        return None

    def baseline(self, y: F64, sample_weight: F64 | None) -> F64 | None:
        """Constant raw prediction (n_outputs,) to start from; None to have it searched for.

        Here missing targets are NaN, and ``sample_weight`` has the shape of ``y`` where cells have
        weights of their own, else one number for each row.
        """
        return None

    def inverse_link(self, raw: F64) -> F64:
        """Predictions for raw predictions: regression targets, or probabilities of labels."""
        return raw


REGRESSION_LOSSES = {
    "squared_error": Facts("squared_error", centred=True, quadratic=True),
    "absolute_error": Facts("absolute_error", centred=True, curved=False),
    "huber": Facts("huber", centred=True),
    "quantile": Facts("quantile", centred=True, curved=False),
    "poisson": Facts("poisson", centred=False, regularised=True, bounded=True),
}
LABEL_LOSSES = {
    "log_loss": Facts("log_loss", centred=False, regularised=True, bounded=True),
    "exponential": Facts("exponential", centred=False, regularised=True, bounded=True),
    "squared_error": Facts("squared_labels", centred=False, quadratic=True),
}
SOFTMAX = Facts("softmax", centred=False, regularised=True, bounded=True)

# Losses of a list with one loss per output; those of labels take targets of 0 and 1.
LISTED_LOSSES = REGRESSION_LOSSES | {
    name: LABEL_LOSSES[name] for name in ("log_loss", "exponential")
}


class FittedLoss:
    """A loss with its baseline and constants: what a model needs to train and to predict.

    Attributes
    ----------
    baseline : (n_outputs,)
        Constant raw prediction.
    facts : Facts
    custom : Loss or None
        The user's loss, if it is not a built-in one.
    """

    def __init__(
        self,
        facts: Facts,
        baseline: F64,
        *,
        param: F64 | None = None,
        custom: Loss | None = None,
    ) -> None:
        self.facts = facts
        # What the kernels add to raw predictions is single precision; the baseline agrees with it.
        single = baseline.astype(np.float32)
        self.baseline = baseline if facts.centred or custom else single.astype(np.float64)
        self.custom = custom
        d = len(baseline)
        self.param = np.full(d, 0.5) if param is None else param
        self.levels = self.param.astype(np.float32)

    @property
    def centred(self) -> NDArray[np.bool_]:
        """Outputs whose targets are kept relative to baseline and offset (n_outputs,)."""
        return np.full(len(self.baseline), self.facts.centred)

    @property
    def parts(self) -> list[tuple[Facts, tuple[int, int] | None]]:
        """The loss, or losses, and the outputs they belong to: None if it is all."""
        return [(self.facts, None)]

    def kernel(self) -> _core.Objective:
        """The loss as the core knows it."""
        offset = np.zeros_like(self.baseline) if self.facts.centred else self.baseline
        return _core.Objective(self.facts.kernel, offset.astype(np.float32), self.levels)

    def bind(
        self,
        Y: NDArray[Any],
        weights: Weights,
        pool: _core.Pool,
        *,
        offset: F64 | None = None,
        projected: bool = False,
    ) -> Objective:
        """Bind to targets: real (n, d), 0/1 labels (n, d), or class numbers (n,) for softmax.

        ``offset`` (n, d) is part of the raw predictions. ``projected`` says that all a round needs
        are projections and leaf sums of residuals.
        """
        objective = self._bind(without(Y, offset, self.centred), weights, pool, projected)
        if offset is not None and not self.centred.all():
            objective.start = np.where(self.centred, 0, offset).astype(np.float32)
        return objective

    def _bind(
        self, Y: NDArray[Any], weights: Weights, pool: _core.Pool, projected: bool
    ) -> Objective:
        if self.custom is not None:
            return CustomObjective(self, _as_real(Y), weights, pool)
        if Y.dtype.kind == "f":
            centre = np.where(self.centred, self.baseline, 0.0)
            single = _less(Y, centre, pool)
            if single is None:
                j = int(np.argmax(np.fmax.reduce(np.abs(Y - centre), axis=0)))
                raise ValueError(
                    f"Output {j} of Y has values beyond the range of single precision (3e38); "
                    "divide it by a constant."
                )
            Y = single
        squared = self.facts.kernel == "squared_error"
        residuals_suffice = projected and squared and not weights.by_cell
        objective = SquaredResiduals if residuals_suffice else self._objective
        return objective(self, np.ascontiguousarray(Y), weights, pool)

    _objective: Any = BuiltinObjective

    def predict(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Predictions (regression) or probabilities of labels for raw predictions.

        ``outputs`` are those that ``raw`` holds; None: all.
        """
        if self.custom is not None:
            return np.asarray(self.custom.inverse_link(raw), dtype=np.float64)
        match self.facts.kernel:
            case "poisson":
                return np.asarray(np.exp(raw))
            case "log_loss" | "exponential":
                return np.asarray(expit(raw))
            case "squared_labels":
                return np.clip((raw + 1) / 2, 0, 1)
            case "softmax":
                return np.asarray(softmax(raw, axis=1))
            case _:
                return raw


class MixedLoss(FittedLoss):
    """Built-in losses with their baselines, one for each output.

    Attributes
    ----------
    blocks : list of (Facts, (first, last))
        Neighbouring outputs that share a loss, ``last`` not included.
    """

    _objective = MixedObjective

    def __init__(self, fitted: list[FittedLoss]) -> None:
        super().__init__(
            Facts("mixed", centred=True), np.concatenate([loss.baseline for loss in fitted])
        )
        self.fitted = fitted
        self.param = np.concatenate([loss.param for loss in fitted])
        self.levels = self.param.astype(np.float32)
        ends = np.cumsum([len(loss.baseline) for loss in fitted]).tolist()
        outputs = zip([0, *ends], ends, strict=False)
        self.blocks = [(loss.facts, pair) for loss, pair in zip(fitted, outputs, strict=True)]

    @property
    def centred(self) -> NDArray[np.bool_]:
        """Outputs whose targets are kept relative to baseline and offset (n_outputs,)."""
        return np.concatenate([loss.centred for loss in self.fitted])

    @property
    def parts(self) -> list[tuple[Facts, tuple[int, int] | None]]:
        """The losses and the outputs they belong to."""
        return list(self.blocks)

    def kernel(self) -> _core.Objective:
        """The losses as the core knows them."""
        names = [facts.kernel for facts, (start, stop) in self.blocks for _ in range(start, stop)]
        offset = np.where(self.centred, 0, self.baseline).astype(np.float32)
        return _core.Objective(names, offset, self.levels)

    def predict(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Predictions for raw predictions: means, and probabilities of labels."""
        places = np.arange(len(self.baseline)) if outputs is None else np.array(outputs)
        predictions = np.empty_like(raw)
        for loss, (_, (start, stop)) in zip(self.fitted, self.blocks, strict=True):
            columns = (start <= places) & (places < stop)
            predictions[:, columns] = loss.predict(raw[:, columns])
        return predictions


def _less(Y: NDArray[Any], centre: F64, pool: _core.Pool) -> F32 | None:
    """Return Y - centre in single precision, None if it does not fit; what is mapped by blocks."""
    if mapping(Y) is None:
        return _core.centred(pool, np.ascontiguousarray(Y), centre)
    single = np.empty(Y.shape, np.float32)
    for rows in row_blocks(*Y.shape):
        part = _core.centred(pool, np.ascontiguousarray(Y[rows]), centre)
        release(Y)
        if part is None:
            return None
        single[rows] = part
    return single


def without(Y: NDArray[Any], offset: F64 | None, centred: NDArray[np.bool_]) -> NDArray[Any]:
    """Return targets less the offset, for the outputs where it can be subtracted."""
    if offset is None or not centred.any():
        return Y
    return np.asarray(Y - np.where(centred, offset, 0.0))


def fit_loss(
    loss: str | Loss | list[str] | tuple[str, ...],
    Y: NDArray[Any],
    weights: Weights,
    pool: _core.Pool,
    *,
    n_outputs: int,
    quantile: float | F64 = 0.5,
    huber_delta: float | None = None,
    offset: F64 | None = None,
) -> FittedLoss:
    """Find the baseline and constants of a loss on the training targets.

    ``quantile`` is a level, or one for each output; ``offset`` (n, d) is part of the raw
    predictions.
    """
    if isinstance(loss, Loss):
        return _fit_custom(loss, _as_real(Y), weights, pool, offset)
    if not isinstance(loss, str):
        fitted, first = [], 0
        for name, equal in groupby(loss):
            columns = slice(first, first + len(list(equal)))
            first = columns.stop
            part = np.ascontiguousarray(Y[:, columns])
            fitted.append(
                fit_loss(
                    name,
                    part if name in REGRESSION_LOSSES else _as_labels(part),
                    weights.of_outputs(columns),
                    pool,
                    n_outputs=part.shape[1],
                    quantile=np.broadcast_to(quantile, Y.shape[1])[columns],
                    huber_delta=huber_delta,
                    offset=None if offset is None else np.ascontiguousarray(offset[:, columns]),
                )
            )
        return MixedLoss(fitted)
    if Y.dtype == np.uint32:
        fitted_loss = FittedLoss(SOFTMAX, _softmax_baseline(Y, weights, n_outputs, pool))
        return (
            fitted_loss
            if offset is None
            else _shifted_softmax(fitted_loss, Y, weights, pool, offset)
        )

    def observed(offset: F64) -> F64:
        return np.where(missing_cells(Y), np.nan, offset) if weights.partial else offset

    if Y.dtype == np.uint8:
        facts = LABEL_LOSSES[loss]
        share = _column_means(Y, weights, pool)
        if facts.kernel == "squared_labels":
            mean = 0.0 if offset is None else _column_means(observed(offset), weights, pool)
            return FittedLoss(facts, 2 * share - 1 - mean)
        with np.errstate(divide="ignore"):
            log_odds = np.log(share) - np.log1p(-share)
        log_odds = np.clip(log_odds, -BASELINE_LIMIT, BASELINE_LIMIT)
        if offset is not None:
            bound = FittedLoss(facts, log_odds).bind(Y, weights, pool, offset=offset)
            log_odds = log_odds + _constant_step(bound, np.ones(n_outputs), bounded=True)
        return FittedLoss(facts, np.clip(log_odds, -BASELINE_LIMIT, BASELINE_LIMIT))

    facts = REGRESSION_LOSSES[loss]
    if facts.centred:
        Y = without(Y, offset, np.full(n_outputs, True))
    match loss:
        case "squared_error":
            return FittedLoss(facts, _column_means(Y, weights, pool))
        case "absolute_error" | "quantile":
            levels = np.full(n_outputs, quantile if loss == "quantile" else 0.5)
            baseline = _core.column_quantiles(pool, Y, weights, levels)
            return FittedLoss(facts, baseline, param=levels)
        case "poisson":
            means = _column_means(Y, weights, pool)
            with np.errstate(divide="ignore"):
                logs = np.log(means)
            if offset is not None:
                logs = logs - _log_mean(observed(offset), weights, pool)
            return FittedLoss(facts, np.where(means > 0, logs, -BASELINE_LIMIT))
        case _:
            return _fit_huber(facts, Y, weights, pool, huber_delta)


def _log_mean(offset: F64, weights: Weights, pool: _core.Pool) -> F64:
    """Logarithm of the mean of e^offset, of each column."""
    top = pool.largest(np.fmax.reduce(offset, axis=0, initial=-np.inf))
    return np.asarray(top + np.log(_column_means(np.exp(offset - top), weights, pool)))


def _shifted_softmax(
    fitted: FittedLoss, classes: NDArray[Any], weights: Weights, pool: _core.Pool, offset: F64
) -> FittedLoss:
    """Move the baseline to where it belongs in the presence of an offset."""
    objective = fitted.bind(classes, weights, pool, offset=offset)
    assert isinstance(objective, BuiltinObjective)
    ones = np.ones((1, objective.n_outputs), np.float32)
    direction = Direction(np.zeros(objective.n_rows, np.uint32), ones)
    shift = softmax_step(objective, objective.blank_state(), weights, direction)
    moved = fitted.baseline + shift
    return FittedLoss(SOFTMAX, np.clip(moved - moved.mean(), -BASELINE_LIMIT, BASELINE_LIMIT))


def _as_real(Y: NDArray[Any]) -> F64:
    """Return targets or labels as numbers, NaN where they are missing."""
    real = np.ascontiguousarray(Y, dtype=np.float64)
    if Y.dtype == np.uint8:
        real[Y == MISSING_LABEL] = np.nan
    return real


def _as_labels(Y: F64) -> NDArray[np.uint8]:
    """Return numbers 0, 1 and NaN as labels."""
    return np.where(np.isnan(Y), MISSING_LABEL, Y).astype(np.uint8)


def _column_means(Y: NDArray[Any], weights: Weights, pool: _core.Pool) -> F64:
    sums = _core.column_sums(pool, Y, weights)
    if weights.by_cell:
        # Sums of ones, in single precision so that missing numbers stay missing.
        targets = Y if Y.dtype == np.uint8 else Y.astype(np.float32)
        one_leaf = np.zeros(len(Y), np.uint32)
        return np.asarray(sums / _core.leaf_weights(pool, one_leaf, 1, targets, weights)[0])
    return np.asarray(sums / weights.total_of_rows(pool, len(Y)))


def _softmax_baseline(
    classes: NDArray[np.uint32], weights: Weights, n_classes: int, pool: _core.Pool
) -> F64:
    ones = np.ones((len(classes), 1), np.float32)
    heaviest = np.array([weights.heaviest(pool)])
    sums, _ = _core.leaf_sums(
        pool, classes, n_classes, ones, None, weights, heaviest, heaviest, None
    )
    counts = sums[:, 0]
    with np.errstate(divide="ignore"):
        logs = np.log(counts / counts.sum())
    logs -= logs[counts > 0].mean()
    return np.asarray(np.clip(logs, -BASELINE_LIMIT, BASELINE_LIMIT))


def _fit_huber(
    facts: Facts, Y: F64, weights: Weights, pool: _core.Pool, delta: float | None
) -> FittedLoss:
    n_outputs = Y.shape[1]
    medians = _core.column_quantiles(pool, Y, weights, np.full(n_outputs, 0.5))
    if delta is None:
        deltas = _core.column_quantiles(pool, Y, weights, np.full(n_outputs, 0.9), medians)
        # An output that hardly varies: any positive δ serves.
        widest = pool.largest(np.fmax.reduce(np.abs(Y - medians), axis=0, initial=0))
        deltas = np.where(deltas > 0, deltas, np.where(widest > 0, widest, 1.0))
    else:
        deltas = np.full(n_outputs, float(delta))
    at_median = FittedLoss(facts, medians, param=deltas)
    shift = _constant_step(at_median.bind(Y, weights, pool), scale=deltas)
    return FittedLoss(facts, medians + shift, param=deltas)


def _fit_custom(
    loss: Loss, Y: F64, weights: Weights, pool: _core.Pool, offset: F64 | None
) -> FittedLoss:
    """Take the user's baseline, or search from the column means.

    A user's baseline knows of no offset; where there is one, it is searched for.
    """
    name = type(loss).__name__
    start = _column_means(Y, weights, pool)
    shown = fill_missing(Y) if weights.partial else Y
    hessian = loss.hessian(shown, np.broadcast_to(start, Y.shape).copy())
    facts = Facts("custom", centred=False, curved=hessian is not None)
    given = None
    if offset is None:
        weight = weights.rows if weights.cells is None else weights.matrix(Y)
        given = loss.baseline(Y, None if weight is None else weight.astype(np.float64))
    if given is not None:
        baseline = np.asarray(given, dtype=np.float64)
        if baseline.shape != start.shape or not np.isfinite(baseline).all():
            raise ValueError(
                f"{name}.baseline must return {len(start)} finite numbers, one per output; it "
                f"returned {given!r}."
            )
        return FittedLoss(facts, baseline, custom=loss)
    fitted = FittedLoss(facts, start, custom=loss)
    spread = np.nanstd(Y, axis=0)
    spread[spread == 0] = 1.0
    shift = _constant_step(fitted.bind(Y, weights, pool, offset=offset), scale=spread)
    return FittedLoss(facts, start + shift, custom=loss)


def _constant_step(objective: Objective, scale: F64, *, bounded: bool = False) -> F64:
    """The constant shift that minimises each output's loss, searched in units of ``scale``."""
    raw = objective.blank_state()
    direction = Direction(np.zeros(objective.n_rows, np.uint32), scale[None, :].astype(np.float32))

    def evaluate(rho: F64, active: NDArray[np.bool_] | None = None) -> tuple[F64, F64 | None]:
        return objective.derivatives(raw, objective.weights, direction, rho, active=active)

    slope, curvature = evaluate(np.zeros(objective.n_outputs))
    reach = np.ones(objective.n_outputs)
    rho = minimise_along(evaluate, slope, curvature, reach, bounded=bounded)
    return np.asarray(rho * direction.values[0], dtype=np.float64)
