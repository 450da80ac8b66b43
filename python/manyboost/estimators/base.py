"""What all estimators have: their parameters, their fitted state, and a look inside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from manyboost import _core
from manyboost.comm import ALONE, Comm
from manyboost.data.features import Table, for_kernels
from manyboost.data.labels import Classes
from manyboost.data.stored import StoredTable
from manyboost.training.boosting import Progress
from manyboost.training.callbacks import (
    Callback,
    CallbackSupportMixin,
)
from manyboost.training.checkpoints import Checkpoint
from manyboost.training.learners import (
    ForeignEnsemble,
)
from manyboost.training.losses import (
    FittedLoss,
    Loss,
)
from manyboost.training.projections import Projection
from manyboost.training.scoring import RunningRegressor

if TYPE_CHECKING:
    from manyboost.persistence.info import ModelInfo

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


class Model(CallbackSupportMixin, BaseEstimator):
    """Parameters and fitted state, which fitting fills and predicting reads."""

    # Constructor parameters, set by the subclasses.
    loss: str | Loss | list[str] | tuple[str, ...]
    quantile: float | list[float] = 0.5
    huber_delta: float | None = None
    strategy: str
    projection: str | Projection
    n_components: int | float
    step: str
    learning_rate: str | float
    max_iter: int
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: str | int
    min_split_gain: float
    l2_regularization: str | float
    max_features: int | float | str
    subsample: float
    max_bins: int
    categorical_features: Any
    monotonic_cst: Any
    interaction_cst: Any
    output_weight: Any
    output_scaling: str | None = None
    estimator: Any
    thresholds: Any = None
    early_stopping: str | bool
    validation_fraction: int | float
    n_iter_no_change: int
    tol: float
    scoring: Any
    max_time: float | None
    warm_start: bool
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None
    callbacks: list[Callback] | None
    verbose: int | bool
    random_state: Any
    n_jobs: int | None

    # Set by fit.
    strategy_: str
    projection_: str | Projection
    search_results_: dict[str, NDArray[Any]]
    _fitted_loss: FittedLoss
    _progress: Progress
    _classes: Classes
    _class_weights: F64 | None
    _seed: int
    baseline_: F64
    thresholds_: F64
    _with_offset: bool
    _trained_with: dict[str, Any]
    _release: str
    _left_out: list[str]

    # Set while rows are spread over several machines.
    _comm: Comm = ALONE
    _row_numbers: NDArray[np.uint64] | None = None

    # What scorers are given for an estimator.
    _running: type[RunningRegressor] = RunningRegressor

    @property
    def _n_levels(self) -> int:
        """Outputs of the model for each output of y: the levels of a list of quantiles."""
        return 1

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        """Targets as scorers know them, for encoded ones."""
        raise NotImplementedError

    def _given_thresholds(self, n_outputs: int) -> F64 | None:
        """Thresholds (n_outputs,) that do not depend on the model; a regressor has none."""
        return None

    def _offset_of(self, offset: Any, X: Table, n_outputs: int, name: str = "offset") -> F64:
        """A user's offset as an array (n_rows, n_outputs)."""
        raise NotImplementedError

    def _is_single(self) -> bool:
        """Whether predictions have one dimension."""
        raise NotImplementedError

    def _known_names(self) -> list[str] | None:
        """Names by which outputs may be asked for."""
        names = getattr(self, "output_names_", None)
        return None if names is None else names.tolist()

    def _add_rounds(
        self,
        progress: Progress,
        X: Table,
        start: int,
        stop: int,
        raw: F32,
        pool: _core.Pool,
    ) -> None:
        """Add the given rounds to ``raw``; trees take single precision."""
        model = progress.model
        if isinstance(model, ForeignEnsemble):
            for m in range(start, stop):
                model.add_round(X, m, raw)
        elif isinstance(X, StoredTable):
            for rows, block in X.blocks():
                model.add_to(pool, block, start, stop, raw[rows])
        else:
            model.add_to(pool, for_kernels(X), start, stop, raw)

    # ------------------------------------------------------------------ inspecting

    @property
    def step_sizes_(self) -> F64:
        """Step ρ of every round and output, without the learning rate."""
        check_is_fitted(self, "n_iter_")
        model, steps = self._progress.model, np.array(self._progress.steps)
        if isinstance(model, _core.Ensemble) and not steps.size:
            # Trees of "project" hold theirs.
            steps = model.steps().astype(np.float64)
        if len(steps) < self.n_iter_:
            raise AttributeError(
                f"Newton leaves of strategy={self.strategy_!r} have no steps; step_sizes_ needs "
                "step='line_search' or strategy='project'."
            )
        return steps.reshape(self.n_iter_, self.n_outputs_)

    @property
    def output_importances_(self) -> F64:
        """Share of each feature in the gain of each output: a row for each output."""
        check_is_fitted(self, "n_iter_")
        gains = self._progress.importances
        if self._progress.mean_importances is not None:
            raise AttributeError(
                "importances by output were left out of the file that the model comes from; write "
                "it with save(path, records='all')."
            )
        if gains is None:
            raise AttributeError("importances are known for built-in trees only (estimator=None).")
        total = gains.sum(axis=0, keepdims=True)
        shares = np.divide(gains, total, out=np.zeros_like(gains), where=total > 0)
        return np.asarray(shares.T)

    @property
    def feature_importances_(self) -> F64:
        """Share of each feature in the gain, averaged over the outputs."""
        check_is_fitted(self, "n_iter_")
        kept = self._progress.mean_importances
        if kept is not None and not np.isnan(kept).any():
            return kept.copy()
        mean = self.output_importances_.mean(axis=0)
        total = float(mean.sum())
        return np.asarray(mean / total if total > 0 else mean)

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | os.PathLike[str], *, records: str = "auto") -> None:
        """Write the fitted model to a file, which :func:`manyboost.load` reads.

        The file holds all that predictions and warm starts need, and no code: a model of another
        ``estimator``, or of a :class:`~manyboost.Loss` with an ``inverse_link`` of its own, is
        refused; a callable ``projection``, ``scoring`` or other ``loss``, ``callbacks`` and a
        RandomState are left out, so that fit refuses the loaded model until they are given again.
        :meth:`info` says what is left out. The same model gives the same bytes. The file appears
        whole or not at all.

        Parameters
        ----------
        path : path
            Where to write; what is there is replaced.
        records : {"auto", "all"}
            Importances and validation curves by output take n_features × n_outputs and n_iter ×
            n_outputs numbers. ``"auto"``: a model of ``strategy="project"``, whose trees are small,
            leaves out what would make its file larger than 4 × (6 × nodes + trees × n_outputs) +
            65,536 bytes; ``feature_importances_`` stay. ``"all"``: nothing is left out.
        """
        from manyboost import persistence

        persistence.save(self, path, records)

    def info(self) -> ModelInfo:
        """Return strategy, shape, size, versions and parameters of the fitted model, as a dict."""
        from manyboost.persistence.info import model_info

        return model_info(self)
