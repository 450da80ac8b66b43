"""The regressor."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from manyboost import params
from manyboost.arrays import F64
from manyboost.data.cells import cell_error
from manyboost.data.features import Table
from manyboost.data.frames import column_names
from manyboost.data.rows import Reader, RealReader, as_columns
from manyboost.data.targets import (
    check_offset,
    check_output_names,
    check_output_order,
    check_targets,
)
from manyboost.data.weights import check_weight
from manyboost.estimators.documentation import documented
from manyboost.estimators.elsewhere import explained
from manyboost.estimators.fits import Given, Unseen, validation_targets
from manyboost.estimators.folding import Folding
from manyboost.estimators.tracing import Tracing
from manyboost.estimators.uncertainty import Intervals
from manyboost.spelling import nearest
from manyboost.training.callbacks import Callback
from manyboost.training.checkpoints import Checkpoint
from manyboost.training.custom import Loss
from manyboost.training.losses import LISTED_LOSSES, REGRESSION_LOSSES, Domain
from manyboost.training.projections import Projection
from manyboost.training.scoring import LOSS, as_list, mean_over_outputs


@documented
class ManyBoostRegressor(RegressorMixin, Folding, Tracing, Intervals):
    """Gradient tree boosting for one or many regression outputs.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_outputs_ : int
        Number of outputs.
    output_names_ : ndarray of shape (n_outputs_,)
        Names of the outputs, if y had them.
    oof_prediction_ : ndarray of the shape of y, with an axis for a list of quantiles
        With ``n_folds``, the prediction for each training row of the member that was trained
        without it; NaN for rows that were not trained on.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from manyboost import ManyBoostRegressor
    >>> X, Y = make_regression(n_samples=500, n_targets=8, random_state=0)
    >>> model = ManyBoostRegressor(random_state=0).fit(X, Y)
    >>> model.predict(X[:2]).shape
    (2, 8)
    """

    @explained
    def __init__(
        self,
        loss: str | Loss | list[str] | tuple[str, ...] = "squared_error",
        *,
        quantile: float | list[float] = 0.5,
        huber_delta: float | None = None,
        power: float = 1.5,
        strategy: str = "relabel",
        projection: str | Projection = "gaussian",
        n_components: int | float = 1,
        step: str = "auto",
        learning_rate: str | float = "auto",
        max_iter: str | int = "auto",
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: str | int = "auto",
        min_split_gain: float = 0.0,
        l2_regularization: str | float = "auto",
        max_features: int | float | str = 1.0,
        subsample: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        output_weight: Any = None,
        output_scaling: str | None = "auto",
        estimator: Any = None,
        early_stopping: str | bool = "auto",
        validation_fraction: int | float | None = 0.1,
        validation_split: Any = "random",
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        scoring: Any = "loss",
        n_folds: int | None = None,
        refit_all: bool = False,
        max_time: float | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        callbacks: list[Callback] | None = None,
        verbose: int | bool = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        params.assign(self, locals())

    @explained
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        Y_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        offset: Any = None,
        offset_val: Any = None,
        groups: Any = None,
    ) -> ManyBoostRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features; NaN is a missing value.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Targets; NaN is a missing one. Every output needs at least one.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Weights of the rows, or of single cells; weight zero makes a target missing.
        {fit}
        """
        validation = X_val, validation_targets(Y_val, y_val), sample_weight_val
        self._fit(Given(X, y, sample_weight, *validation, offset, offset_val, groups))
        return self

    def _reader(self, given: Given, *, continued: bool) -> RealReader:
        self._check_loss()
        several = np.ndim(self.quantile) == 1
        self._quantiles = np.asarray(self.quantile).tolist() if several else None
        return RealReader(
            given.comm,
            n_levels=self._n_levels,
            check=self._check_values,
            names=getattr(self, "output_names_", None) if continued else None,
            continued=continued,
        )

    def _learn_targets(self, reader: Reader) -> None:
        assert isinstance(reader, RealReader)
        self._one_dimensional = reader.one_dimensional

    @property
    def _n_levels(self) -> int:
        """Outputs of the model for each output of y."""
        return 1 if self._quantiles is None else len(self._quantiles)

    def _offset_of(self, offset: Any, X: Table, n_outputs: int) -> F64:
        array = check_offset(offset, X, n_outputs // self._n_levels, self._known_names())
        return array if self._n_levels == 1 else np.repeat(array, self._n_levels, axis=1)

    def _keep_unseen(self, unseen: Unseen) -> None:
        super()._keep_unseen(unseen)
        self.oof_prediction_ = unseen.placed(self._shaped(unseen.raw))

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        columns = Y[:, :: self._n_levels]
        return columns[:, 0] if self._one_dimensional else columns

    def _check_loss(self) -> None:
        if isinstance(self.loss, str) and self.loss not in REGRESSION_LOSSES:
            remedy = nearest(self.loss, REGRESSION_LOSSES, other="a Loss object")
            raise ValueError(f"loss={self.loss!r} is not a regression loss; {remedy}")
        if np.ndim(self.quantile) == 0:
            return
        if not (isinstance(self.loss, str) and REGRESSION_LOSSES[self.loss].has_levels):
            raise ValueError(
                f"quantile={self.quantile!r} has several levels, which only loss='quantile' can "
                f"use, but loss is {self.loss!r}; use one of the two."
            )
        if any(
            name is None or (isinstance(name, str) and name != LOSS)
            for name in as_list(self.scoring)
        ):
            raise ValueError(
                f"scoring={self.scoring!r} compares one prediction for each output with y, but a "
                "list of quantiles has several; use 'loss' or a callable."
            )

    def _check_values(self, Y: F64, y: Any, name: str) -> None:
        """Refuse targets ``y``, read as ``Y``, that the loss of their output cannot take."""
        columns = as_columns(Y)
        d = columns.shape[1]
        losses = self.loss if isinstance(self.loss, list | tuple) else [self.loss] * d
        if len(losses) != d:
            raise ValueError(
                f"loss has {len(losses)} names but {name} has {d} outputs; give one for each."
            )
        for loss, block in itertools.groupby(range(d), losses.__getitem__):
            domain = LISTED_LOSSES[loss].domain if isinstance(loss, str) else Domain.REAL
            outputs = list(block)
            bad = domain.lacks(columns[:, outputs[0] : outputs[-1] + 1])
            if bad is not None and bad.any():
                row, j = (int(k) for k in np.argwhere(bad)[0] + (0, outputs[0]))
                what = f"{name} has the value {columns[row, j]:g}"
                rest = f"; loss={loss!r} needs {domain.value}."
                raise cell_error(name, what, (row, j)[: Y.ndim], rest, column_names(y, name))

    @explained
    def predict(
        self, X: Any, *, offset: Any = None, outputs: Any = None, dtype: DTypeLike = np.float64
    ) -> Any:
        """Predict the outputs of rows: (n_rows,) or (n_rows, n_outputs), as y was in fit.

        A list of quantiles adds an axis at the end. Predictions are sorted along it, so quantiles
        never cross. A frame has a column for each output and level instead, such as ``y0_q0.1``.

        Parameters
        ----------
        {request}
        {dtype}
        """
        places, type_ = self._check_request(outputs, dtype)
        values = self._values(X, offset, places, type_)
        if self._quantiles is not None and self._wants_frames():
            names = self._known_names() or [
                f"y{j}" for j in range(self.n_outputs_ // self._n_levels)
            ]
            chosen = names if places is None else [names[j] for j in places]
            return self._framed(values.reshape(len(values), -1), X, None, self._by_level(chosen))
        return self._framed(values, X, places, self._known_names())

    def _by_level(self, names: list[str]) -> list[str]:
        endings = [""] if self._quantiles is None else [f"_q{level!r}" for level in self._quantiles]
        return [name + ending for name in names for ending in endings]

    def _values(
        self, X: Any, offset: Any, places: list[int] | None = None, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Predictions as an array, of all outputs of y or some."""
        columns, joint = self._columns_of(places), self._fitted_loss.is_joint
        finish = functools.partial(self._shaped, outputs=None if joint else columns)
        return self._predicted(X, finish, columns, dtype, offset=offset, joint=joint)

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield predictions after each round, as arrays; the last are those of :meth:`predict`."""
        return map(self._shaped, self._staged_raw_predict(X, offset))

    def _shaped(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Predictions in the shape of y for raw ones, of all outputs of the model or these."""
        predictions = self._fitted_loss.predict(raw, outputs)
        if self._quantiles is not None:
            # Sorting brings no level further from its quantile than it was.
            predictions = np.sort(predictions.reshape(len(raw), -1, self._n_levels), axis=2)
        return predictions[:, 0] if self._one_dimensional else predictions

    def _is_single(self) -> bool:
        return self._one_dimensional

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Coefficient of determination r², averaged over the outputs.

        For a list of quantiles it is D², the share of the pinball loss of constant predictions that
        the model saves, averaged over levels and outputs.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Targets; each output is scored on the rows where it is not missing (NaN).
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Weights of the rows, or of single cells.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.
        """
        # (Importing it takes as long as everything else.)
        from sklearn.metrics import d2_pinball_score, r2_score

        check_is_fitted(self, "n_iter_")
        predictions = self._values(X, offset)
        metrics: list[Any] = [(r2_score, predictions)]
        if self._quantiles is not None:
            scores_of = (functools.partial(d2_pinball_score, alpha=a) for a in self._quantiles)
            metrics = list(zip(scores_of, np.moveaxis(predictions, -1, 0), strict=True))
        Y = as_columns(check_targets(y, predictions))
        check_output_names(y, self._known_names(), "y")
        n_outputs = self.n_outputs_ // self._n_levels
        if Y.shape[1] != n_outputs:
            problem = f"y has {Y.shape[1]} outputs, but the model predicts {n_outputs}"
            raise ValueError(f"{problem}; pass targets of the outputs of fit.")
        check_output_order(sample_weight, self._known_names(), "sample_weight")
        weight = check_weight(sample_weight, Y.shape, "sample_weight")
        by_cell = np.isnan(Y).any() or (weight is not None and weight.ndim == 2)
        scores = [
            mean_over_outputs(metric, Y, as_columns(level), weight)
            if by_cell
            else metric(Y, as_columns(level), sample_weight=weight)
            for metric, level in metrics
        ]
        return float(np.mean(scores))
