"""Losses written in Python, and what binds them to targets and weights."""

from __future__ import annotations

import numpy as np

from manyboost import _core
from manyboost.arrays import F32, F64, U32, Mask
from manyboost.data.cells import missing_cells
from manyboost.data.weights import Weights
from manyboost.training.directions import Line, Move, Outputs
from manyboost.training.losses import LossFacts
from manyboost.training.objectives import Objective, Sums
from manyboost.training.split_gradients import SplitGradients

_ONE = np.float32(1)


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
        """Constant raw prediction (n_outputs,) to start from; None: it is found numerically.

        Here missing targets are NaN, and ``sample_weight`` has the shape of ``y`` where cells have
        weights of their own, else one number for each row.
        """
        return None

    def inverse_link(self, raw: F64) -> F64:
        """Predictions for raw predictions: regression targets, or probabilities of labels."""
        return raw


def has_own_link(loss: Loss) -> bool:
    """Whether a loss has an ``inverse_link``, of its class or set on the object."""
    return getattr(loss.inverse_link, "__func__", None) is not Loss.inverse_link


class CustomObjective(Objective):
    """A loss written in Python bound to data.

    Where a target is missing, the loss is shown one that its output has in another row, and what it
    returns there is not used.
    """

    def __init__(
        self,
        loss: Loss,
        facts: LossFacts,
        baseline: F64,
        y: F64,
        weights: Weights,
        pool: _core.Pool,
    ) -> None:
        self.loss, self.facts, self.baseline = loss, facts, baseline
        self.blocks = [(facts, None)]
        self.weights, self.pool = weights, pool
        self.n_rows, self.n_outputs = len(y), len(baseline)
        self.missing = missing_cells(y) if weights.partial else None
        self.cell_weights = weights.matrix(y) if weights.by_cell else None
        self.shown = fill_missing(y) if weights.partial else y
        # The kernels only ask which targets are missing.
        self.y = np.where(np.isnan(y), np.nan, np.float32(0)) if weights.by_cell else y
        self.total_weight = self._total_weight()
        self.curvatures: F32 | None = None
        self.max_residual = np.zeros(self.n_outputs)
        self.max_curvature = np.zeros(self.n_outputs)

    def _finite(self, method: str, raw: F64) -> F64:
        """Return what a method of the loss says about raw predictions, or refuse it."""
        result = getattr(self.loss, method)(self.shown, raw)
        array = np.asarray(result, dtype=np.float64)
        name = f"{type(self.loss).__name__}.{method}"
        shapes = [raw.shape] + ([raw.shape[:1]] if method == "value" else [])
        if array.shape not in shapes:
            raise ValueError(
                f"{name} returned an array of shape {array.shape}; it must return "
                f"{' or '.join(map(str, shapes))}."
            )
        if self.weights.by_cell and array.ndim == 1:
            raise ValueError(
                f"{name} returned one loss for each row, of which cells without a target or with a "
                f"weight of their own cannot be taken apart; it must return {raw.shape}, one loss "
                "for each cell."
            )
        if self.missing is not None:
            array = np.where(self.missing, 0.0, array)
        with np.errstate(over="ignore"):
            finite = np.isfinite(array if method == "value" else array.astype(np.float32))
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(array), -1).all(axis=1)))
            raise ValueError(
                f"{name} returned NaN or infinity (first in row {row}); it must return finite "
                "numbers."
            )
        return array

    def _weighted(self, cells: F32, scale: np.float32 = _ONE) -> F32:
        if self.cell_weights is not None:
            return cells * (self.cell_weights * scale)
        rows = self.weights.rows
        return cells if rows is None else cells * (rows * scale)[:, None]

    def _heaviest(self, cells: F32) -> F64:
        # Weights below one, by a power of two: products stay within single precision.
        trivial = self.weights.is_trivial
        exponent = 0 if trivial else int(np.frexp(self.weights.heaviest(self.pool))[1])
        largest = np.abs(self._weighted(cells, np.float32(2.0**-exponent))).max(axis=0, initial=0)
        return np.asarray(np.ldexp(largest.astype(np.float64), exponent))

    def advance(self, raw: F32, out: F32, move: Move | None, split: SplitGradients) -> float:
        if move is not None:
            _core.add_leaves(self.pool, move.leaf_of_row, move.values, move.steps, raw)
        f = self.baseline + raw
        np.negative(self._finite("gradient", f), out=out, casting="same_kind")
        self.max_residual = self._heaviest(out)
        if self.facts.curved:
            self.curvatures = np.ascontiguousarray(self._finite("hessian", f), dtype=np.float32)
            self.max_curvature = self._heaviest(self.curvatures)
        if split.matrix is not None:
            residuals = out if split.shares is None else self._weighted(out)
            _core.project(self.pool, residuals, split.matrix, split.z)
        if split.shares is not None:
            assert self.cell_weights is not None
            assert split.weight is not None
            _core.project(self.pool, self.cell_weights, split.shares, split.weight, shares=True)
        return self.losses(raw)[0]

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        value = self._finite("value", self.baseline + raw)
        if value.ndim == 1:
            total = _core.column_sums(self.pool, value[:, None], self.weights)[0]
            return float(total) / float(self.total_weight * self.n_outputs), None
        sums = _core.column_sums(self.pool, np.ascontiguousarray(value), self.weights)
        return self._means(sums, self.total_weight)

    def leaf_sums(
        self, leaf_of_row: U32, leaf_weights: F64, residuals: F32, weights: Weights, output: Outputs
    ) -> Sums:
        cells = residuals, self.curvatures, weights
        bounds, n_leaves = (self.max_residual, self.max_curvature), len(leaf_weights)
        return _core.leaf_sums(self.pool, leaf_of_row, n_leaves, *cells, *bounds, output)

    def derivatives(self, line: Line, rho: F64, active: Mask | None = None) -> Sums:
        raw, weights, direction, output = line
        f, g = self.baseline + raw, direction.of_rows()
        if output is None:
            f += rho * g
        else:
            assert isinstance(output, int)
            f[:, output] += rho[0] * g[:, 0]

        def along(method: str, *, squared: bool) -> F64:
            cells = np.ascontiguousarray(self._finite(method, f), dtype=np.float32)
            return _core.dots(self.pool, cells, weights, *direction, squared, output)

        slope = along("gradient", squared=False)
        return slope, along("hessian", squared=True) if self.facts.curved else None


def refuse_wrong_sign(loss: Loss, y: F64, raw: F64) -> None:
    """Refuse a loss that falls in the direction of its gradient, along which it should rise.

    Other mistakes in a loss are found where they matter.
    """
    gradient = np.asarray(loss.gradient(y, raw), dtype=np.float64)
    largest = np.abs(gradient).max(initial=0)
    if gradient.shape != raw.shape or not 0 < largest < np.inf:
        return
    step = 1e-3 * (y.std() or 1.0) / largest * gradient
    with np.errstate(all="ignore"):
        ahead, behind = (float(np.sum(loss.value(y, raw + move))) for move in (step, -step))
    # A linear loss falls by twice the sum of their products; half a product is no rounding error.
    if ahead - behind < -0.5 * float((step * gradient).sum()) < -1e-9 * abs(ahead):
        raise ValueError(
            f"{type(loss).__name__}.gradient has the wrong sign: the loss falls in its direction; "
            "return the derivative of value with respect to raw, not its negative."
        )


def fill_missing(Y: F64) -> F64:
    """Return targets with the first observed one of its output in each missing cell."""
    missing = missing_cells(Y)
    first = Y[np.argmin(missing, axis=0), np.arange(Y.shape[1])]
    return np.where(missing, np.nan_to_num(first), Y)
