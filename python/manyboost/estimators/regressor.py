"""The regressor."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from manyboost import params
from manyboost.data.cells import cell_error
from manyboost.data.features import Table
from manyboost.data.frames import column_names
from manyboost.data.rows import make_rows
from manyboost.data.targets import check_offset, check_output_names, check_targets
from manyboost.data.weights import check_weight, refuse_unobserved_outputs
from manyboost.estimators.exporting import Exporting
from manyboost.estimators.fitting import Fitting, all_or_nothing
from manyboost.estimators.tracing import Tracing
from manyboost.training.callbacks import (
    Callback,
)
from manyboost.training.checkpoints import Checkpoint
from manyboost.training.losses import (
    REGRESSION_LOSSES,
    Loss,
)
from manyboost.training.projections import Projection
from manyboost.training.scoring import LOSS, as_list, mean_over_outputs

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


@params.documented
class ManyBoostRegressor(RegressorMixin, Fitting, Tracing, Exporting):
    """Gradient tree boosting for one or many regression outputs.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_iter_ : int
        Rounds in the model.
    n_outputs_ : int
        Number of outputs.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.
    output_names_ : ndarray of shape (n_outputs_,)
        Names of the outputs, if y had them.
    strategy_, projection_ : str
        What the model was trained with; the given ones, or the winner of ``strategy="auto"``.
    search_results_ : dict of ndarray
        With ``strategy="auto"``, what was tried, the best first: ``"strategy"``,
        ``"projection"``, ``"heats"`` it ran in, ``"n_rounds"`` up to its best,
        ``"validation_score"``.
    baseline_ : ndarray of shape (n_outputs_,)
        Raw prediction before the first round.
    best_iter_ : int
        The round with the best validation score; the model ends there. With
        ``early_stopping="per_output"`` the last of the outputs' best rounds.
    best_iter_per_output_ : ndarray of shape (n_outputs_,)
        The best round of each output, with ``early_stopping="per_output"``.
    step_sizes_ : ndarray of shape (n_iter_, n_outputs_)
        Steps ρ, where the strategy has them.
    train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
        Negative mean loss after each round, entry 0 that of the baseline; the latter is the score
        that decides on early stopping, if ``scoring`` says so.
    validation_scores_ : dict of ndarray of shape (n_iter_ + 1,)
        All scores by name, if ``scoring`` is a list.
    validation_score_per_output_ : ndarray of shape (n_iter_ + 1, n_outputs_)
        Negative mean loss of each output on the validation rows; not for softmax.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each feature in the gain.
    output_importances_ : ndarray of shape (n_outputs_, n_features_in_)
        The same for each output.
    expected_value_ : float or ndarray of shape (n_outputs_,)
        Raw predictions where no feature is known, which Shapley values are added to.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from manyboost import ManyBoostRegressor
    >>> X, Y = make_regression(n_samples=500, n_targets=8, random_state=0)
    >>> model = ManyBoostRegressor(random_state=0).fit(X, Y)
    >>> model.predict(X[:2]).shape
    (2, 8)
    """

    def __init__(
        self,
        loss: str | Loss | list[str] | tuple[str, ...] = "squared_error",
        *,
        quantile: float | list[float] = 0.5,
        huber_delta: float | None = None,
        strategy: str = "relabel",
        projection: str | Projection = "gaussian",
        n_components: int | float = 1,
        step: str = "auto",
        learning_rate: str | float = "auto",
        max_iter: int = 100,
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
        validation_fraction: int | float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        scoring: Any = "loss",
        max_time: float | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        callbacks: list[Callback] | None = None,
        verbose: int | bool = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.huber_delta = huber_delta
        self.strategy = strategy
        self.projection = projection
        self.n_components = n_components
        self.step = step
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_split_gain = min_split_gain
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.subsample = subsample
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.output_weight = output_weight
        self.output_scaling = output_scaling
        self.estimator = estimator
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.scoring = scoring
        self.max_time = max_time
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        Y_val: Any = None,
        sample_weight_val: Any = None,
        offset: Any = None,
        offset_val: Any = None,
    ) -> ManyBoostRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features; NaN is a missing value.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Targets; NaN is a missing one, which has no influence on the model. Every output needs
            one at least.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Weights of the rows, or of single cells; weight zero makes a target missing.
        X_val, Y_val, sample_weight_val : array-like, optional
            Rows for early stopping, instead of some of X.
        offset, offset_val : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Added to the raw predictions: the logarithm of an exposure, or what another model
            predicts. A model that was fitted with an offset needs one to predict.

        Returns
        -------
        self
        """
        params.validate(self)
        self._check_loss()
        self._refuse_validation_alone(X_val, Y_val, sample_weight_val, offset, offset_val)
        continued = self.warm_start and hasattr(self, "_progress")
        given = X, y, sample_weight
        several = np.ndim(self.quantile) == 1
        self._quantiles = np.asarray(self.quantile).tolist() if several else None
        X, categories = self._read_X(X, continued=continued)
        Y = self._check_targets(y, X, "y")
        self._refuse_unused_weights(sample_weight)
        names = column_names(y, "y")
        known = getattr(self, "output_names_", None) if continued else names
        check_output_names(y, known, "y")
        columns = _columns(Y)
        n_outputs = columns.shape[1] * self._n_levels
        if offset is not None:
            offset = self._offset_of(offset, X, n_outputs)
        rows = make_rows(
            X,
            columns,
            sample_weight,
            "sample_weight",
            offset,
            comm=self._comm,
            numbers=self._row_numbers,
        )
        refuse_unobserved_outputs(rows.Y, "y", names, self._comm)
        rows = rows.repeated(self._n_levels)
        validation = None
        if X_val is not None:
            X_val = self._read_X_val(X_val, categories)
            check_output_names(Y_val, known, "Y_val")
            Y_val = _columns(self._check_targets(Y_val, X_val, "Y_val"))
            n_given = n_outputs // self._n_levels
            if Y_val.shape[1] != n_given:
                raise ValueError(
                    f"Y_val has {Y_val.shape[1]} outputs but y has {n_given}; they must agree."
                )
            if offset_val is not None:
                offset_val = self._offset_of(offset_val, X_val, n_outputs, "offset_val")
            name = "sample_weight_val"
            validation = make_rows(
                X_val, Y_val, sample_weight_val, name, offset_val, comm=self._comm
            ).repeated(self._n_levels)
        # Before training, which an interrupt may end with a model that predicts.
        self._one_dimensional = Y.ndim == 1
        self._set_output_names(known)
        self._fit(X, rows, validation, n_outputs, lambda _: None, categories, given)
        return self

    @property
    def _n_levels(self) -> int:
        """Outputs of the model for each output of y."""
        return 1 if self._quantiles is None else len(self._quantiles)

    def _for_levels(self, columns: F64) -> F64:
        """Repeat each column for all quantile levels."""
        n_levels = self._n_levels
        return columns if n_levels == 1 else np.repeat(columns, n_levels, axis=1)

    def _offset_of(self, offset: Any, X: Table, n_outputs: int, name: str = "offset") -> F64:
        array = check_offset(offset, X, n_outputs // self._n_levels, name=name)
        return self._for_levels(array)

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        columns = Y[:, :: self._n_levels]
        return columns[:, 0] if self._one_dimensional else columns

    def _check_loss(self) -> None:
        if np.ndim(self.quantile) == 1:
            if self.loss != "quantile":
                raise ValueError(
                    f"quantile={self.quantile!r} has several levels, which only loss='quantile' "
                    f"can use, but loss is {self.loss!r}; use one of the two."
                )
            named = [name for name in as_list(self.scoring) if isinstance(name, str)]
            if any(name != LOSS for name in named):
                raise ValueError(
                    f"scoring={self.scoring!r} compares one prediction for each output with y, but "
                    "a list of quantiles has several; use 'loss' or a callable."
                )
        if isinstance(self.loss, str) and self.loss not in REGRESSION_LOSSES:
            raise ValueError(
                f"loss={self.loss!r} is not a regression loss; use one of "
                f"{', '.join(map(repr, REGRESSION_LOSSES))}, or a Loss object."
            )

    def _check_targets(self, y: Any, X: Table, name: str) -> F64:
        Y = check_targets(y, X, name)
        if self.loss == "poisson" and (Y < 0).any():
            place = np.argwhere(Y < 0)[0]
            raise cell_error(
                name,
                f"{name} has the value {Y[tuple(place)]:g}",
                place,
                "; loss='poisson' needs counts of at least zero.",
                column_names(y, name),
            )
        if isinstance(self.loss, list | tuple):
            self._check_columns(_columns(Y), y, name)
        return Y

    def _check_columns(self, Y: F64, y: Any, name: str) -> None:
        """Refuse targets ``y``, read as ``Y``, that the loss of their output cannot take."""
        losses = self.loss
        assert isinstance(losses, list | tuple)
        if len(losses) != Y.shape[1]:
            raise ValueError(
                f"loss has {len(losses)} names but {name} has {Y.shape[1]} outputs; give one name "
                "for each output."
            )
        names = column_names(y, name)
        for j, loss in enumerate(losses):
            if loss == "poisson":
                bad, wanted = Y[:, j] < 0, "counts of at least zero"
            elif loss in REGRESSION_LOSSES:
                continue
            else:
                unlike = ~np.isin(Y[:, j], (0, 1)) & ~np.isnan(Y[:, j])
                bad, wanted = unlike, "labels of 0 and 1"
            if bad.any():
                row = int(np.argmax(bad))
                problem = f"{name} has the value {Y[row, j]:g}"
                rest = f"; its loss={loss!r} needs {wanted}."
                raise cell_error(name, problem, (row, j), rest, names)

    def predict(
        self, X: Any, *, offset: Any = None, outputs: Any = None, dtype: DTypeLike = np.float64
    ) -> Any:
        """Predict the outputs of rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such: for all outputs of y,
            whichever are asked for.
        outputs : list of str or int, optional
            Names or numbers of the outputs of y to compute, in the order of the result; None: all.
        dtype : float64 or float32
            Type of the result; with float32 no array of all predictions in double precision is
            made.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as y was in fit, or a frame
            See :meth:`set_output`. A list of quantiles adds an axis at the end, sorted: of
            predictions that cross, the lower one is that of the lower level. It comes as an array
            only.
        """
        places, type_ = self._check_request(outputs, dtype)
        if self._quantiles is not None and self._wants_frames():
            raise ValueError(
                "set_output asks for frames, which have a column for each output, but a list of "
                f"{self._n_levels} quantiles is predicted for each; use "
                "set_output(predict='default')."
            )
        values = self._values(X, offset, places, type_)
        return self._framed(values, X, places, self._known_names())

    def _values(
        self,
        X: Any,
        offset: Any,
        places: list[int] | None = None,
        dtype: DTypeLike = np.float64,
    ) -> NDArray[Any]:
        """Predictions as an array, of all outputs of y or some."""
        columns = None
        if places is not None:
            levels = range(self._n_levels)
            columns = [j * self._n_levels + k for j in places for k in levels]
        joint = self._fitted_loss.custom is not None

        def finish(raw: F64) -> F64:
            return self._shaped(raw, None if joint else columns)

        return self._linked(X, finish, columns, dtype, offset, joint=joint)

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield predictions after each round, as arrays; the last are those of :meth:`predict`."""
        for raw in self._staged_raw_predict(X, offset):
            yield self._shaped(raw)

    def _shaped(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Predictions in the shape of y for raw ones, of all outputs of the model or these."""
        predictions = self._fitted_loss.predict(raw, outputs)
        if self._quantiles is not None:
            # Sorting brings no level further from its quantile than it was.
            by_level = predictions.reshape(len(raw), -1, self._n_levels)
            predictions = np.sort(by_level, axis=2)
        return predictions[:, 0] if self._one_dimensional else predictions

    def _is_single(self) -> bool:
        return self._one_dimensional

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Coefficient of determination r², averaged over the outputs.

        For a list of quantiles it is D², the share of the pinball loss of constant predictions that
        the model saves, averaged over levels and outputs. Targets may be missing and weights may be
        those of cells, as in :meth:`fit`: each output counts where it is observed.
        """
        # (Importing it takes as long as everything else.)
        from sklearn.metrics import d2_pinball_score, r2_score

        check_is_fitted(self, "n_iter_")
        predictions = self._values(X, offset)
        metrics: list[Any] = [(r2_score, predictions)]
        if self._quantiles is not None:
            metrics = [
                (functools.partial(d2_pinball_score, alpha=level), predictions[..., k])
                for k, level in enumerate(self._quantiles)
            ]
        Y = _columns(check_targets(y, predictions))
        check_output_names(y, self._known_names(), "y")
        n_outputs = self.n_outputs_ // self._n_levels
        if Y.shape[1] != n_outputs:
            raise ValueError(
                f"y has {Y.shape[1]} outputs, but the model predicts {n_outputs}; pass targets of "
                "the outputs of fit."
            )
        weight = check_weight(sample_weight, Y.shape, "sample_weight")
        by_cell = np.isnan(Y).any() or (weight is not None and weight.ndim == 2)
        scores = [
            mean_over_outputs(metric, Y, _columns(level), weight)
            if by_cell
            else metric(Y, _columns(level), sample_weight=weight)
            for metric, level in metrics
        ]
        return float(np.mean(scores))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.sparse = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


def _columns(Y: F64) -> F64:
    """Return targets or predictions with a column for each output."""
    return Y[:, None] if Y.ndim == 1 else Y
