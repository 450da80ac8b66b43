"""Baselines: the constants that a loss and its raw predictions start from."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F64
from manyboost.data.cells import MISSING_LABEL, TargetKind, class_numbers, missing_cells
from manyboost.data.label_weights import label_sums
from manyboost.data.sparse_labels import SparseLabels
from manyboost.data.targets import LARGEST_TARGET
from manyboost.data.weights import Weights
from manyboost.training.custom import Loss, fill_missing, refuse_wrong_sign
from manyboost.training.directions import Direction, Line
from manyboost.training.fitted_losses import FittedLoss, MixedLoss, as_real, without
from manyboost.training.losses import (
    LISTED_LOSSES,
    Baseline,
    Domain,
    LossFacts,
    custom_facts,
    loss_facts,
    losses_of_columns,
)
from manyboost.training.objectives import BuiltinObjective, Objective
from manyboost.training.parameters import Parameters
from manyboost.training.steps import minimise_along, softmax_step
from manyboost.training.training_data import TrainingData

# The raw prediction of an output whose label never varies.
BASELINE_LIMIT = 15.0
# How far offsets may move the baseline of a class.
OFFSET_LIMIT = 1000.0


@dataclass(frozen=True)
class Sample:
    """The training targets, and what else a baseline depends on."""

    Y: NDArray[Any]
    weights: Weights
    pool: _core.Pool
    n_outputs: int
    kind: TargetKind
    levels: F64  # (n_outputs,): those of the parameter ``quantile``
    huber_delta: float | None = None
    offset: F64 | None = None  # (n_rows, n_outputs): part of the raw predictions
    power: float = 1.5  # the parameter
    widths: tuple[int, ...] | None = None  # outputs of each of several columns of classes

    def columns(self, columns: slice, *, as_labels: bool) -> Sample:
        """Return the sample of some outputs; ``as_labels``: of targets that are 0, 1 and NaN."""
        Y = np.ascontiguousarray(self.Y[:, columns])
        if as_labels and Y.dtype != np.uint8:
            Y = np.where(np.isnan(Y), MISSING_LABEL, Y).astype(np.uint8)
        kind = TargetKind.LABELS if as_labels else TargetKind.REAL
        return self._part(columns, Y, self.weights.of_outputs(columns), kind)

    def class_column(self, columns: slice) -> Sample:
        """Return the sample of a column of classes, as numbers; missing ones weigh nothing."""
        part, rows = self.Y[:, columns], self.weights.of_output(columns.start)
        missing = missing_cells(part[:, 0])
        if self.weights.partial:
            rows = np.where(missing, np.float32(0), np.float32(1) if rows is None else rows)
        numbers = np.where(missing, 0, class_numbers(part)).astype(np.uint32)
        return self._part(columns, numbers, Weights(rows), TargetKind.CLASSES)

    def _part(self, columns: slice, Y: NDArray[Any], weights: Weights, kind: TargetKind) -> Sample:
        """Return the sample of some outputs, whose targets and weights are given."""
        offset = None if self.offset is None else np.ascontiguousarray(self.offset[:, columns])
        return replace(
            self,
            Y=Y,
            weights=weights,
            n_outputs=columns.stop - columns.start,
            kind=kind,
            levels=self.levels[columns],
            offset=offset,
            widths=None,
        )

    def observed_offset(self) -> F64:
        """Return the offset, NaN where targets are missing."""
        assert self.offset is not None
        if not self.weights.partial:
            return self.offset
        return np.where(missing_cells(self.Y), np.nan, self.offset)

    def means(self, cells: NDArray[Any] | SparseLabels) -> F64:
        """Return the weighted mean of each column of cells."""
        if isinstance(cells, SparseLabels):
            sums, totals = label_sums(cells, self.weights, self.pool)
            return np.asarray(sums / totals)
        sums = _core.column_sums(self.pool, cells, self.weights)
        if self.weights.by_cell:
            # Sums of ones, in single precision so that missing numbers stay missing.
            targets = cells if cells.dtype == np.uint8 else cells.astype(np.float32)
            one_leaf = np.zeros(len(cells), np.uint32)
            totals = _core.leaf_weights(self.pool, one_leaf, 1, targets, self.weights)
            return np.asarray(sums / totals[0])
        return np.asarray(sums / self.weights.total_of_rows(self.pool, len(cells)))

    def bind(self, loss: FittedLoss) -> Objective:
        """Bind a loss to the targets."""
        return loss.bind(self.Y, self.weights, self.pool, offset=self.offset)


def fit_loss(parameters: Parameters, data: TrainingData, threads: _core.Pool) -> FittedLoss:
    """Find the baseline and constants of the loss on the training targets."""
    rows, d, delta = data.rows, data.n_outputs, parameters.huber_delta
    levels = np.atleast_1d(np.asarray(parameters.quantile, dtype=np.float64))
    # The levels of one output of y are neighbours.
    levels, pool = np.tile(levels, d // len(levels)), rows.pool(threads)
    constants = levels, delta, rows.offset, float(parameters.power)
    sample = Sample(rows.Y, rows.weights, pool, d, rows.kind, *constants, rows.widths)
    return fit_sample(parameters.loss, sample)


def fit_sample(loss: str | Loss | list[str] | tuple[str, ...], sample: Sample) -> FittedLoss:
    """Find the baseline and constants of a loss on a sample of targets."""
    if isinstance(loss, Loss):
        return _searched(loss, sample)
    if isinstance(loss, str):
        if sample.widths is not None:
            return _fit_columns(loss, sample, sample.widths)
        return _fit_facts(loss_facts(loss, sample.kind), sample)
    fitted, first = [], 0
    for name, equal in groupby(loss):
        columns = slice(first, first + len(list(equal)))
        first, facts = columns.stop, LISTED_LOSSES[name]
        part = sample.columns(columns, as_labels=facts.domain is Domain.LABELS)
        fitted.append(_fit_facts(facts, part))
    return MixedLoss(fitted)


def _fit_columns(loss: str, sample: Sample, widths: tuple[int, ...]) -> FittedLoss:
    """Fit the blocks of several columns of classes."""
    blocks, fitted, first = losses_of_columns(loss, widths), [], 0
    if len(blocks) == 1:
        return _fit_facts(blocks[0][0], sample)
    for facts, width in blocks:
        columns = slice(first, first + width)
        first = columns.stop
        part = sample.columns(columns, as_labels=True)
        fitted.append(_fit_facts(facts, sample.class_column(columns) if facts.is_joint else part))
    return MixedLoss(fitted)


def _fit_facts(facts: LossFacts, sample: Sample) -> FittedLoss:
    match facts.baseline:
        case Baseline.MEAN:
            return FittedLoss(facts, sample.means(_targets(facts, sample)))
        case Baseline.QUANTILE:
            levels = sample.levels if facts.has_levels else np.full(sample.n_outputs, 0.5)
            Y = _targets(facts, sample)
            baseline = _core.column_quantiles(sample.pool, Y, sample.weights, levels)
            return FittedLoss(facts, baseline, param=levels)
        case Baseline.CENTRE:
            return _huber(facts, sample)
        case Baseline.LOG_MEAN:
            return _log_mean(facts, sample)
        case Baseline.SIGNED_SHARE:
            share = sample.means(sample.Y)
            mean = 0.0 if sample.offset is None else sample.means(sample.observed_offset())
            return FittedLoss(facts, 2 * share - 1 - mean)
        case Baseline.LOG_ODDS:
            return _log_odds(facts, sample)
        case Baseline.CLASS_LOGS:
            return _class_logs(facts, sample)
        case Baseline.SEARCH:
            raise ValueError(f"the loss {facts.kernel!r} needs a Loss object")


def _targets(facts: LossFacts, sample: Sample) -> NDArray[Any]:
    """Return real targets less the offset, where it can be subtracted."""
    if not facts.centred:
        return sample.Y
    return without(sample.Y, sample.offset, np.full(sample.n_outputs, True))


def _log_mean(facts: LossFacts, sample: Sample) -> FittedLoss:
    """Return the loss at the logarithm of Σ y e^((1−p)o) / Σ e^((2−p)o), with offsets o."""
    power = sample.power if facts.variance_power is None else facts.variance_power
    means = sample.means(sample.Y)
    with np.errstate(divide="ignore"):
        logs = np.log(means)
        if sample.offset is not None:
            offset = sample.observed_offset()
            targets = sample.Y.astype(np.float64)
            logs = _log_of_mean(sample, (1 - power) * offset, targets)
            logs = logs - _log_of_mean(sample, (2 - power) * offset, np.ones_like(offset))
    param = np.full(sample.n_outputs, power) if facts.variance_power is None else None
    return FittedLoss(facts, np.where(means > 0, logs, -BASELINE_LIMIT), param=param)


def _log_of_mean(sample: Sample, exponent: F64, factor: F64) -> F64:
    """Return the logarithm of the mean of factor · e^exponent, column by column."""
    top = sample.pool.largest(np.fmax.reduce(exponent, axis=0, initial=-np.inf))
    return np.asarray(top + np.log(sample.means(factor * np.exp(exponent - top))))


def _log_odds(facts: LossFacts, sample: Sample) -> FittedLoss:
    share = sample.means(sample.Y)
    with np.errstate(divide="ignore"):
        log_odds = np.log(share) - np.log1p(-share)
    log_odds = np.clip(log_odds, -BASELINE_LIMIT, BASELINE_LIMIT)
    if sample.offset is None:
        return FittedLoss(facts, log_odds)
    objective = sample.bind(FittedLoss(facts, log_odds))
    log_odds = log_odds + _constant_step(objective, np.ones(sample.n_outputs), bounded=True)
    # A label that varies has a minimum, however far the offset is from it.
    varies = (share > 0) & (share < 1)
    clipped = np.clip(log_odds, -BASELINE_LIMIT, BASELINE_LIMIT)
    return FittedLoss(facts, np.where(varies, log_odds, clipped))


def _class_logs(facts: LossFacts, sample: Sample) -> FittedLoss:
    # Classes as leaves of a tree with one output, which is always observed.
    cells, k = np.zeros((len(sample.Y), 1), np.float32), sample.n_outputs
    counts = _core.leaf_weights(sample.pool, sample.Y, k, cells, sample.weights)[:, 0]
    with np.errstate(divide="ignore"):
        logs = np.log(counts / counts.sum())
    logs -= logs[counts > 0].mean()
    fitted = FittedLoss(facts, np.clip(logs, -BASELINE_LIMIT, BASELINE_LIMIT))
    if sample.offset is None:
        return fitted
    objective = sample.bind(fitted)
    assert isinstance(objective, BuiltinObjective)
    line = _constant_line(objective, np.ones(sample.n_outputs))
    moved = fitted.baseline + softmax_step(objective, line, limit=OFFSET_LIMIT)
    moved -= moved[counts > 0].mean()
    # Without a minimum are only classes that do not occur.
    clipped = np.clip(moved, -BASELINE_LIMIT, BASELINE_LIMIT)
    return FittedLoss(facts, np.where(counts > 0, moved, clipped))


def _huber(facts: LossFacts, sample: Sample) -> FittedLoss:
    Y, weights, pool, d = _targets(facts, sample), sample.weights, sample.pool, sample.n_outputs
    medians = _core.column_quantiles(pool, Y, weights, np.full(d, 0.5))
    if sample.huber_delta is None:
        # The median distance; a wider one where most rows equal the median.
        middle, wide = (
            _core.column_quantiles(pool, Y, weights, np.full(d, level), medians)
            for level in (0.5, 0.9)
        )
        deltas = np.where(middle > 0, middle, wide)
        # An output that hardly varies: any positive δ serves.
        widest = pool.largest(np.fmax.reduce(np.abs(Y - medians), axis=0, initial=0))
        deltas = np.where(deltas > 0, deltas, np.where(widest > 0, widest, 1.0))
    else:
        # No residual is larger; single precision ends not far above.
        deltas = np.full(d, min(float(sample.huber_delta), 2 * LARGEST_TARGET))
    at_median = FittedLoss(facts, medians, param=deltas)
    shift = _constant_step(at_median.bind(Y, weights, pool), scale=deltas)
    return FittedLoss(facts, medians + shift, param=deltas)


def _searched(loss: Loss, sample: Sample) -> FittedLoss:
    """Take the baseline of the user's loss, or search for it from the column means.

    The user's baseline does not know of an offset; with an offset it is always searched for.
    """
    Y, weights = as_real(sample.Y), sample.weights
    start = sample.means(Y)
    shown = fill_missing(Y) if weights.partial else Y
    raw = np.broadcast_to(start, Y.shape) + (0.0 if sample.offset is None else sample.offset)
    refuse_wrong_sign(loss, shown, raw)
    hessian = loss.hessian(shown, raw)
    facts = custom_facts(curved=hessian is not None)
    given = None
    if sample.offset is None:
        weight = weights.rows if weights.cells is None else weights.matrix(Y)
        given = loss.baseline(Y, None if weight is None else weight.astype(np.float64))
    if given is not None:
        baseline = np.asarray(given, dtype=np.float64)
        if baseline.shape != start.shape or not np.isfinite(baseline).all():
            raise ValueError(
                f"{type(loss).__name__}.baseline must return {len(start)} finite numbers, one per "
                f"output; it returned {given!r}."
            )
        return FittedLoss(facts, baseline, custom=loss)
    fitted = FittedLoss(facts, start, custom=loss)
    spread = np.nanstd(Y, axis=0)
    spread[spread == 0] = 1.0
    objective = fitted.bind(Y, weights, sample.pool, offset=sample.offset)
    return FittedLoss(facts, start + _constant_step(objective, scale=spread), custom=loss)


def _constant_step(objective: Objective, scale: F64, *, bounded: bool = False) -> F64:
    """The constant shift that minimises each output's loss, searched in units of ``scale``."""
    line = _constant_line(objective, scale)
    evaluate = functools.partial(objective.derivatives, line)
    reach = np.ones(objective.n_outputs)
    slope, curvature = evaluate(np.zeros_like(reach))
    rho = minimise_along(evaluate, slope, curvature, reach, bounded=bounded)
    return np.asarray(rho * line.direction.values[0], dtype=np.float64)


def _constant_line(objective: Objective, scale: F64) -> Line:
    """The line of raw predictions that are the baseline and a multiple of ``scale``."""
    one_leaf, values = np.zeros(objective.n_rows, np.uint32), scale[None, :].astype(np.float32)
    return Line(objective.blank_state(), objective.weights, Direction(one_leaf, values))
