"""What all estimators have: their parameters, their fitted state, and a look inside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from manyboost.arrays import F64, Mask
from manyboost.data.features import Table
from manyboost.data.frames import NAMED_PARAMETERS, by_position
from manyboost.data.hierarchy import Hierarchy
from manyboost.data.labels import Classes
from manyboost.data.weights import ClassTable
from manyboost.estimators.elsewhere import answer
from manyboost.estimators.keeping import Keeping
from manyboost.training.calibration import Calibration
from manyboost.training.calibrators import Isotonics, Sigmoids
from manyboost.training.callbacks import CallbackSupportMixin
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.parameters import Parameters
from manyboost.training.progress import Progress
from manyboost.training.projections import Projection
from manyboost.training.scoring import RunningRegressor

if TYPE_CHECKING:
    from typing_extensions import Self


class Model(CallbackSupportMixin, Parameters, Keeping):
    """Parameters and fitted state, which fitting fills and predicting reads."""

    # Set by fit.
    strategy_: str
    projection_: str | Projection
    search_results_: dict[str, NDArray[Any]]
    _fitted_loss: FittedLoss
    _progress: Progress
    _classes: Classes
    _class_weights: ClassTable | None
    _quantiles: list[float] | None = None
    _seed: int
    baseline_: F64
    target_names_: NDArray[Any]
    thresholds_: F64
    _calibration: Calibration | None = None
    _calibrator: Sigmoids | Isotonics | None = None
    _hierarchy: Hierarchy | None = None
    _with_offset: bool
    _trained_with: dict[str, Any]
    _release: str
    _left_out: list[str] = []  # noqa: RUF012  (never changed in place)
    _running: type[RunningRegressor] = RunningRegressor  # what scorers are given for an estimator

    @property
    def _n_levels(self) -> int:
        """Outputs of the model for each output of y: the levels of a list of quantiles."""
        return 1

    def _by_level(self, names: list[str]) -> list[str]:
        """Names of outputs, or of each quantile of each output if a list of them is predicted."""
        return names

    @abstractmethod
    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        """Targets as scorers know them, for encoded ones."""

    def _given_thresholds(self, n_outputs: int) -> F64 | None:
        """Thresholds (n_outputs,) that do not depend on the model; a regressor has none."""
        return None

    @abstractmethod
    def _offset_of(self, offset: Any, X: Table, n_outputs: int) -> F64:
        """A user's offset as an array (n_rows, n_outputs)."""

    @abstractmethod
    def _is_single(self) -> bool:
        """Whether predictions have one dimension."""

    def _known_names(self) -> list[str] | None:
        """Names by which outputs may be asked for."""
        names = getattr(self, "output_names_", None)
        return None if names is None else names.tolist()

    def _target_names(self) -> Sequence[str] | None:
        """Names of the outputs, or of the columns of classes."""
        return self._known_names()

    def _params_by_position(self) -> dict[str, Any]:
        """Parameters, with lists in place of series and frames that go by names of this model."""
        features = getattr(self, "feature_names_in_", None)
        parameters: dict[str, Any] = self.get_params(deep=False)
        for name in NAMED_PARAMETERS:
            is_weight = name == "output_weight"
            outputs = self._target_names() if is_weight else self._known_names()
            parameters[name] = by_position(name, parameters[name], features, outputs)
        return parameters

    # ------------------------------------------------------------------ inspecting

    @property
    def step_sizes_(self) -> F64:
        """Step ρ of every round and output, without the learning rate."""
        check_is_fitted(self, "n_iter_")
        if hasattr(self, "best_iter_per_fold_"):
            raise AttributeError("a mean of models (n_folds) has no steps of its own.")
        # Trees with scalar leaves hold theirs.
        steps = np.array(self._progress.steps or self._progress.model.steps())
        if len(steps) < self.n_iter_:
            raise AttributeError(
                f"Newton leaves of strategy={self.strategy_!r} have no steps; step_sizes_ needs "
                "step='line_search' or strategy='project'."
            )
        return steps.reshape(self.n_iter_, self.n_outputs_)

    @property
    def is_categorical_(self) -> Mask | None:
        """Which features hold categories, (n_features,); None: none of them."""
        check_is_fitted(self, "n_iter_")
        mask = self._progress.categories.mask
        return mask if mask.any() else None

    @property
    def output_importances_(self) -> F64:
        """Share of each feature in the gain of each output: a row for each output."""
        check_is_fitted(self, "n_iter_")
        gains = self._progress.importances
        if self._progress.mean_importances is not None:
            raise AttributeError(
                "importances by output are not known: labels were kept sparse, or the model comes "
                "from first_rounds, or from a file that left them out (save(path, records='all') "
                "leaves out nothing)."
            )
        if gains is None:
            raise AttributeError("importances are known for built-in trees only (estimator=None).")
        total = gains.sum(axis=0, keepdims=True)
        shares = np.divide(gains, total, out=np.zeros_like(gains), where=total > 0)
        return np.asarray(shares.T)

    @property
    def feature_importances_(self) -> F64:
        """Share of each feature in the gain, averaged over the outputs.

        Where labels are kept sparse, shares in the gain that trees are grown by.
        """
        check_is_fitted(self, "n_iter_")
        kept = self._progress.mean_importances
        if kept is not None and not np.isnan(kept).any():
            return kept.copy()
        mean = self.output_importances_.mean(axis=0)
        total = float(mean.sum())
        return np.asarray(mean / total if total > 0 else mean)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of ``estimator`` as ``estimator__name``."""
        for name in params:
            if (own := name.partition("__")[0]) not in self.get_params(deep=False):
                problem = f"Invalid parameter {own!r} for estimator {type(self).__name__}"
                raise ValueError(f"{problem}{answer(self, '__init__', own)}")
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.sparse = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
