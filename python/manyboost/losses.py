"""Losses: what a model minimises, and where it starts.

A built-in loss is a row of facts in :data:`REGRESSION_LOSSES` or :data:`LABEL_LOSSES`; its formulas
are kernels of the core. A :class:`Loss` written in Python has the same place in training. Either is
first fitted (:func:`fit_loss`: baseline and constants from the training targets) and then bound to
targets and weights, which gives an :class:`Objective`.

The raw predictions of the trees are kept apart from the baseline. Where adding a constant to an
output moves its minimiser by that constant, targets are kept relative to the baseline as well, so
that outputs far from zero keep their digits in single precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from manyboost import _core
from manyboost.steps import Direction, minimise_along

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

# What a tree adds to raw predictions: the leaf of each row, leaf values (n_leaves, n_outputs or 1),
# and steps (n_outputs,) that multiply a single column of values.
Update: TypeAlias = tuple[NDArray[np.uint32], F32, F32 | None]

# The raw prediction of an output whose label never varies.
BASELINE_LIMIT = 15.0


class Loss:
    """Base class for losses written in Python.

    Subclass it, implement :meth:`value` and :meth:`gradient` and, for Newton steps,
    :meth:`hessian`. Targets come as a float array of shape (n_rows, n_outputs): the numbers of a
    regression, or 0 and 1 for labels and classes. Raw predictions have the same shape.

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
        """Constant raw prediction (n_outputs,) to start from; None to have it searched for."""
        return None

    def inverse_link(self, raw: F64) -> F64:
        """Predictions for raw predictions: regression targets, or probabilities of labels."""
        return raw


@dataclass(frozen=True)
class Facts:
    """What training must know about a built-in loss."""

    kernel: str
    centred: bool
    """Targets are kept relative to the baseline."""
    curved: bool = True
    """The second derivative is worth a Newton step."""
    regularised: bool = False
    """λ is 1 by default, since curvature can vanish."""
    bounded: bool = False
    """A line search may have no finite minimiser."""
    quadratic: bool = False
    """The second derivative is 1 everywhere."""


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


class Objective(ABC):
    """A loss bound to targets and weights: all that a round asks of it.

    Residuals are negative gradients (n_rows, n_outputs). ``raw`` is the trees' part of the raw
    predictions. Methods with an ``output`` argument answer for that output alone.
    """

    facts: Facts
    n_outputs: int
    weight: F32 | None
    total_weight: float

    @abstractmethod
    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        """Update raw predictions, take residuals into ``out`` and project them by φ into ``z``.

        Returns the mean loss per row and output.
        """

    @abstractmethod
    def mean_loss(self, raw: F32) -> float:
        """Mean loss per row and output."""

    @abstractmethod
    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weight: F32 | None,
        output: int | None = None,
    ) -> tuple[F64, F64 | None]:
        """Σ w r and Σ w h over the rows of each leaf, (n_leaves, n_outputs).

        ``leaf_weights`` (n_leaves,) are Σ w. Curvatures that all outputs share have one column.
        """

    @abstractmethod
    def derivatives(
        self,
        raw: F32,
        weight: F32 | None,
        direction: Direction,
        rho: F64,
        output: int | None = None,
    ) -> tuple[F64, F64 | None]:
        """First and second derivative of each output's loss along a direction, at ``rho``."""

    @abstractmethod
    def quantile_steps(
        self, raw: F32, weight: F32 | None, direction: Direction, output: int | None = None
    ) -> F64:
        """Exact steps along a direction, for the absolute and quantile losses."""

    @abstractmethod
    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weight: F32 | None,
        output: int | None = None,
    ) -> F64:
        """Best leaf values for the absolute and quantile losses, (n_leaves, n_outputs)."""

    n_rows: int

    def blank_state(self) -> F32:
        """State before any round, to which trees add; :meth:`settled` makes it ready for rounds."""
        return np.zeros((self.n_rows, self.n_outputs), np.float32)

    def settled(self, state: F32) -> tuple[F32, F32]:
        """Raw predictions, and where their residuals go."""
        return state, np.empty_like(state)

    def baseline_residuals(self) -> F32:
        """Residuals before any round."""
        raw, residuals = self.settled(self.blank_state())
        self.advance(raw, residuals)
        return residuals

    @property
    def is_softmax(self) -> bool:
        """Whether the outputs of a row share one loss."""
        return self.facts.kernel == "softmax"


class BuiltinObjective(Objective):
    """A built-in loss bound to data; everything happens in the core."""

    def __init__(
        self,
        fitted: FittedLoss,
        y: NDArray[Any],
        weight: F32 | None,
        pool: _core.Pool,
    ) -> None:
        self.facts = fitted.facts
        self.pool = pool
        self.y = y
        self.weight = weight
        self.n_rows, self.n_outputs = len(y), len(fitted.baseline)
        self.kernel = fitted.kernel()
        self.levels = fitted.levels
        self.total_weight = float(len(y) if weight is None else weight.sum(dtype=np.float64))
        # Softmax has one loss a row; the others one a cell.
        self.cells = self.total_weight * (1 if self.is_softmax else self.n_outputs)
        heaviest = 1.0 if weight is None else float(weight.max(initial=0))
        largest = float(y.max(initial=0)) if self.facts.kernel == "poisson" else 0.0
        self.heaviest, self.largest = heaviest, largest
        self.max_residual = np.zeros(self.n_outputs)
        # Curvature is at most 1, but for Poisson (y - r) and exponential (half the residual).
        self.max_curvature = np.full(self.n_outputs, heaviest)

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        leaf_of_row, values, steps = update or (None, None, None)
        loss, largest = self.kernel.advance(
            self.pool,
            self.y,
            raw,
            self.weight,
            out,
            leaf_of_row=leaf_of_row,
            values=values,
            steps=steps,
            phi=phi,
            z=z,
        )
        self.max_residual = largest.astype(np.float64)
        if self.facts.kernel == "poisson":
            self.max_curvature = self.largest * self.heaviest + self.max_residual
        elif self.facts.kernel == "exponential":
            self.max_curvature = self.max_residual
        return loss / self.cells

    def mean_loss(self, raw: F32) -> float:
        return self.kernel.loss_sum(self.pool, self.y, raw, self.weight) / self.cells

    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weight: F32 | None,
        output: int | None = None,
    ) -> tuple[F64, F64 | None]:
        if self.facts.quadratic:
            sums, _ = _core.leaf_sums(
                self.pool,
                leaf_of_row,
                len(leaf_weights),
                residuals,
                None,
                weight,
                self.max_residual,
                self.max_curvature,
                output,
            )
            return sums, leaf_weights[:, None]
        return self.kernel.leaf_sums(
            self.pool,
            leaf_of_row,
            len(leaf_weights),
            self.y,
            residuals,
            weight,
            self.max_residual,
            self.max_curvature,
            output,
        )

    def derivatives(
        self,
        raw: F32,
        weight: F32 | None,
        direction: Direction,
        rho: F64,
        output: int | None = None,
    ) -> tuple[F64, F64 | None]:
        return self.kernel.derivatives(
            self.pool,
            self.y,
            raw,
            weight,
            direction.leaf_of_row,
            direction.values,
            rho,
            output,
        )

    def quantile_steps(
        self, raw: F32, weight: F32 | None, direction: Direction, output: int | None = None
    ) -> F64:
        return _core.quantile_steps(
            self.pool,
            self.y,
            raw,
            self.levels,
            weight,
            direction.leaf_of_row,
            direction.values,
            output,
        )

    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weight: F32 | None,
        output: int | None = None,
    ) -> F64:
        return _core.leaf_quantiles(
            self.pool, leaf_of_row, n_leaves, self.y, raw, self.levels, weight, output
        )

    def softmax_along(
        self, raw: F32, weight: F32 | None, direction: Direction, rho: F64, v: F64
    ) -> tuple[float, F64, F64]:
        """Loss, gradient and Hessian times ``v`` of softmax along a direction, at ``rho``."""
        return self.kernel.softmax_along(
            self.pool,
            self.y,
            raw,
            weight,
            direction.leaf_of_row,
            direction.values,
            rho,
            v,
        )


class SquaredResiduals(BuiltinObjective):
    """Squared error whose residuals are all the state: half the memory traffic of a round.

    ``raw`` and ``out`` are one array, the residuals y - f; it takes the place of the targets.
    """

    def blank_state(self) -> F32:
        # Trees add to f - y; rounding is symmetric, so this is what training subtracted.
        return np.asarray(np.negative(self.y, out=self.y))

    def settled(self, state: F32) -> tuple[F32, F32]:
        self.y = np.negative(state, out=state)
        return state, state

    def baseline_residuals(self) -> F32:
        return np.asarray(self.y)

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        leaf_of_row, values, steps = update or (None, None, None)
        loss, largest = _core.advance_residuals(
            self.pool,
            out,
            self.weight,
            leaf_of_row=leaf_of_row,
            values=values,
            steps=steps,
            phi=phi,
            z=z,
        )
        self.max_residual = largest.astype(np.float64)
        return loss / self.cells


class CustomObjective(Objective):
    """A loss written in Python bound to data."""

    def __init__(self, fitted: FittedLoss, y: F64, weight: F32 | None, pool: _core.Pool) -> None:
        assert fitted.custom is not None
        self.loss = fitted.custom
        self.facts = fitted.facts
        self.pool = pool
        self.baseline = fitted.baseline
        self.y = y
        self.weight = weight
        self.n_rows, self.n_outputs = len(y), len(fitted.baseline)
        self.total_weight = float(len(y) if weight is None else weight.sum(dtype=np.float64))
        self.curvatures: F32 | None = None
        self.max_residual = np.zeros(self.n_outputs)
        self.max_curvature = np.zeros(self.n_outputs)

    def _call(self, method: str, raw: F64) -> F64 | None:
        result = getattr(self.loss, method)(self.y, raw)
        if result is None and method == "hessian":
            return None
        array = np.asarray(result, dtype=np.float64)
        name = f"{type(self.loss).__name__}.{method}"
        shapes = [raw.shape] + ([raw.shape[:1]] if method == "value" else [])
        if array.shape not in shapes:
            raise ValueError(
                f"{name} returned an array of shape {array.shape}; it must return "
                f"{' or '.join(map(str, shapes))}."
            )
        with np.errstate(over="ignore"):
            finite = np.isfinite(array if method == "value" else array.astype(np.float32))
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(array), -1).all(axis=1)))
            raise ValueError(
                f"{name} returned NaN or infinity (first in row {row}); it must return finite "
                "numbers."
            )
        return array

    def _heaviest(self, cells: F32) -> F64:
        largest = np.abs(cells if self.weight is None else cells * self.weight[:, None])
        return np.asarray(largest.max(axis=0, initial=0), dtype=np.float64)

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        if update is not None:
            leaf_of_row, values, steps = update
            _core.add_leaves(self.pool, leaf_of_row, values, steps, raw)
        f = self.baseline + raw
        gradient = self._call("gradient", f)
        assert gradient is not None
        np.negative(gradient, out=out, casting="same_kind")
        self.max_residual = self._heaviest(out)
        if self.facts.curved:
            hessian = self._call("hessian", f)
            assert hessian is not None
            self.curvatures = np.ascontiguousarray(hessian, dtype=np.float32)
            self.max_curvature = self._heaviest(self.curvatures)
        if phi is not None and z is not None:
            _core.project(self.pool, out, phi, z)
        return self.mean_loss(raw)

    def mean_loss(self, raw: F32) -> float:
        value = self._call("value", self.baseline + raw)
        assert value is not None
        rows = value if value.ndim == 1 else value.sum(axis=1)
        total = rows.sum() if self.weight is None else rows @ self.weight.astype(np.float64)
        return float(total) / (self.total_weight * self.n_outputs)

    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weight: F32 | None,
        output: int | None = None,
    ) -> tuple[F64, F64 | None]:
        return _core.leaf_sums(
            self.pool,
            leaf_of_row,
            len(leaf_weights),
            residuals,
            self.curvatures,
            weight,
            self.max_residual,
            self.max_curvature,
            output,
        )

    def derivatives(
        self,
        raw: F32,
        weight: F32 | None,
        direction: Direction,
        rho: F64,
        output: int | None = None,
    ) -> tuple[F64, F64 | None]:
        g = direction.of_rows()
        f = self.baseline + raw
        if output is None:
            f += rho * g
        else:
            f[:, output] += rho[0] * g[:, 0]
        parts = (direction.leaf_of_row, direction.values)
        gradient = self._call("gradient", f)
        assert gradient is not None
        cells = np.ascontiguousarray(gradient, dtype=np.float32)
        slope = _core.dots(self.pool, cells, weight, *parts, False, output)
        hessian = self._call("hessian", f) if self.facts.curved else None
        if hessian is None:
            return slope, None
        cells = np.ascontiguousarray(hessian, dtype=np.float32)
        return slope, _core.dots(self.pool, cells, weight, *parts, True, output)

    def quantile_steps(
        self, raw: F32, weight: F32 | None, direction: Direction, output: int | None = None
    ) -> F64:
        raise NotImplementedError("a custom loss is minimised through its gradient")

    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weight: F32 | None,
        output: int | None = None,
    ) -> F64:
        raise NotImplementedError("a custom loss is minimised through its gradient")


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
        self.levels = np.full(d, 0.5, np.float32) if param is None else param.astype(np.float32)

    def kernel(self) -> _core.Objective:
        """The loss as the core knows it."""
        offset = np.zeros_like(self.baseline) if self.facts.centred else self.baseline
        return _core.Objective(self.facts.kernel, offset.astype(np.float32), self.levels)

    def bind(
        self,
        Y: NDArray[Any],
        weight: F32 | None,
        pool: _core.Pool,
        *,
        projected: bool = False,
    ) -> Objective:
        """Bind to targets: real (n, d), 0/1 labels (n, d), or class numbers (n,) for softmax.

        ``projected`` says that all a round needs are projections and leaf sums of residuals.
        """
        if self.custom is not None:
            Y = np.ascontiguousarray(Y, dtype=np.float64)
            return CustomObjective(self, Y, weight, pool)
        if Y.dtype == np.float64:
            Y = np.ascontiguousarray(Y)
            centre = self.baseline if self.facts.centred else np.zeros_like(self.baseline)
            single = _core.centred(pool, Y, centre)
            if single is None:
                j = int(np.argmax(np.abs(Y - centre).max(axis=0)))
                raise ValueError(
                    f"Output {j} of Y has values beyond the range of single precision (3e38); "
                    "divide it by a constant."
                )
            Y = single
        residuals_suffice = projected and self.facts.kernel == "squared_error"
        objective = SquaredResiduals if residuals_suffice else BuiltinObjective
        return objective(self, np.ascontiguousarray(Y), weight, pool)

    def predict(self, raw: F64) -> F64:
        """Predictions (regression) or probabilities of labels for raw predictions."""
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


def fit_loss(
    loss: str | Loss,
    Y: NDArray[Any],
    weight: F32 | None,
    pool: _core.Pool,
    *,
    n_outputs: int,
    quantile: float = 0.5,
    huber_delta: float | None = None,
) -> FittedLoss:
    """Find the baseline and constants of a loss on the training targets."""
    if isinstance(loss, Loss):
        return _fit_custom(loss, np.ascontiguousarray(Y, dtype=np.float64), weight, pool)
    if Y.dtype == np.uint32:
        return FittedLoss(SOFTMAX, _softmax_baseline(Y, weight, n_outputs))
    if Y.dtype == np.uint8:
        facts = LABEL_LOSSES[loss]
        share = _column_means(Y, weight, pool)
        if facts.kernel == "squared_labels":
            return FittedLoss(facts, 2 * share - 1)
        with np.errstate(divide="ignore"):
            log_odds = np.log(share) - np.log1p(-share)
        return FittedLoss(facts, np.clip(log_odds, -BASELINE_LIMIT, BASELINE_LIMIT))

    facts = REGRESSION_LOSSES[loss]
    match loss:
        case "squared_error":
            return FittedLoss(facts, _column_means(Y, weight, pool))
        case "absolute_error" | "quantile":
            levels = np.full(n_outputs, quantile if loss == "quantile" else 0.5)
            baseline = _core.column_quantiles(pool, Y, weight, levels)
            return FittedLoss(facts, baseline, param=levels)
        case "poisson":
            means = _column_means(Y, weight, pool)
            with np.errstate(divide="ignore"):
                baseline = np.where(means > 0, np.log(means), -BASELINE_LIMIT)
            return FittedLoss(facts, baseline)
        case _:
            return _fit_huber(facts, Y, weight, pool, huber_delta)


def _column_means(Y: NDArray[Any], weight: F32 | None, pool: _core.Pool) -> F64:
    total = len(Y) if weight is None else weight.sum(dtype=np.float64)
    return np.asarray(_core.column_sums(pool, Y, weight) / total)


def _softmax_baseline(classes: NDArray[np.uint32], weight: F32 | None, n_classes: int) -> F64:
    counts = np.bincount(classes, weights=weight, minlength=n_classes)
    with np.errstate(divide="ignore"):
        logs = np.log(counts / counts.sum())
    logs -= logs[counts > 0].mean()
    return np.asarray(np.clip(logs, -BASELINE_LIMIT, BASELINE_LIMIT))


def _fit_huber(
    facts: Facts, Y: F64, weight: F32 | None, pool: _core.Pool, delta: float | None
) -> FittedLoss:
    n_outputs = Y.shape[1]
    medians = _core.column_quantiles(pool, Y, weight, np.full(n_outputs, 0.5))
    if delta is None:
        deltas = _core.column_quantiles(pool, Y, weight, np.full(n_outputs, 0.9), medians)
        # An output that hardly varies: any positive δ serves.
        widest = np.abs(Y - medians).max(axis=0)
        deltas = np.where(deltas > 0, deltas, np.where(widest > 0, widest, 1.0))
    else:
        deltas = np.full(n_outputs, float(delta))
    at_median = FittedLoss(facts, medians, param=deltas)
    shift = _constant_step(at_median.bind(Y, weight, pool), scale=deltas)
    return FittedLoss(facts, medians + shift, param=deltas)


def _fit_custom(loss: Loss, Y: F64, weight: F32 | None, pool: _core.Pool) -> FittedLoss:
    """Take the user's baseline, or search from the column means."""
    name = type(loss).__name__
    start = _column_means(Y, weight, pool)
    hessian = loss.hessian(Y, np.broadcast_to(start, Y.shape).copy())
    facts = Facts("custom", centred=False, curved=hessian is not None)
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
    spread = Y.std(axis=0)
    spread[spread == 0] = 1.0
    shift = _constant_step(fitted.bind(Y, weight, pool), scale=spread)
    return FittedLoss(facts, start + shift, custom=loss)


def _constant_step(objective: Objective, scale: F64) -> F64:
    """The constant shift that minimises each output's loss, searched in units of ``scale``."""
    raw = objective.blank_state()
    direction = Direction(np.zeros(objective.n_rows, np.uint32), scale[None, :].astype(np.float32))

    def evaluate(rho: F64) -> tuple[F64, F64 | None]:
        return objective.derivatives(raw, objective.weight, direction, rho)

    slope, curvature = evaluate(np.zeros(objective.n_outputs))
    rho = minimise_along(evaluate, slope, curvature, np.ones(objective.n_outputs), bounded=False)
    return np.asarray(rho * direction.values[0], dtype=np.float64)
