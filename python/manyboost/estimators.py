"""The estimators: scikit-learn's contract, around the loop of :mod:`manyboost.boosting`."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, d2_pinball_score, r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from manyboost import _core, params
from manyboost.boosting import Block, Boosting, Progress, Settings, Validation, auto_step
from manyboost.callbacks import (
    Callback,
    CallbackSupportMixin,
    Display,
    FitTasks,
    Watchers,
    with_callbacks,
)
from manyboost.inputs import (
    Classes,
    Rows,
    Table,
    check_labels,
    check_offset,
    check_targets,
    check_X,
    for_kernels,
    make_rows,
    resolve_threads,
    split_validation,
    to_single,
)
from manyboost.learners import ForeignEnsemble, ForeignLearner, TreeLearner, check_foreign
from manyboost.losses import (
    LABEL_LOSSES,
    REGRESSION_LOSSES,
    FittedLoss,
    Loss,
    fit_loss,
)
from manyboost.objectives import Facts, Objective
from manyboost.projections import Projection, resolve_n_components
from manyboost.scoring import LOSS, RunningClassifier, RunningRegressor, Scorer, as_list, resolve

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

EARLY_STOPPING_ROWS = 10_000

# Fitted attributes that not every fit has.
_OPTIONAL_ATTRIBUTES = (
    "validation_score_",
    "validation_scores_",
    "validation_score_per_output_",
    "best_iter_per_output_",
)

_KINDS = {
    "independent": "per_output",
    "multioutput": "vector",
    "relabel": "vector",
    "project": "scaled",
}


_Fit = TypeVar("_Fit", bound=Callable[..., Any])


def _all_or_nothing(fit: _Fit) -> _Fit:
    """Make a fit that fails leave the estimator as it was."""
    managed = with_callbacks(fit)

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return managed(self, *args, **kwargs)
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


class _ManyBoost(CallbackSupportMixin, BaseEstimator):
    """What the regressor and the classifier share."""

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
    output_scaling: str | None = None
    estimator: Any
    early_stopping: str | bool
    validation_fraction: int | float
    n_iter_no_change: int
    tol: float
    scoring: Any
    max_time: float | None
    warm_start: bool
    callbacks: list[Callback] | None
    verbose: int | bool
    random_state: Any
    n_jobs: int | None

    # Set by fit.
    _fitted_loss: FittedLoss
    _progress: Progress
    _classes: Classes
    _seed: int
    _with_offset: bool

    # What scorers are given for an estimator.
    _running: type[RunningRegressor] = RunningRegressor

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        """Targets as scorers know them, for encoded ones."""
        raise NotImplementedError

    # ------------------------------------------------------------------ fitting

    def _fit(
        self,
        X: Table,
        rows: Rows,
        validation_rows: Rows | None,
        n_outputs: int,
        by_class: Callable[[Rows], NDArray[Any] | None],
        given: tuple[Any, Any, Any],
    ) -> None:
        """Train on encoded rows; everything is checked before any work is done.

        ``given`` are X, y and sample_weight as the user passed them, for scikit-learn's callbacks.
        """
        continued = self.warm_start and hasattr(self, "_progress")
        n_components = resolve_n_components(
            self.n_components, n_outputs, self.projection, self.strategy
        )
        if self.estimator is not None:
            check_foreign(self.estimator, self.strategy, n_outputs)
        if continued:
            self._check_warm_start(n_outputs, rows.offset is not None)
        else:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        pool = _core.Pool(resolve_threads(self.n_jobs))
        early_stopping: Any = self.early_stopping
        if early_stopping == "auto":
            early_stopping = validation_rows is not None or len(rows) > EARLY_STOPPING_ROWS
        self._check_scoring(bool(early_stopping), rows)
        if validation_rows is not None and not early_stopping:
            raise ValueError(
                "X_val was given but early_stopping=False; use early_stopping=True or 'auto', or "
                "leave out X_val."
            )
        if continued and bool(early_stopping) != bool(self._progress.validation_score):
            raise ValueError(
                f"early_stopping={self.early_stopping!r} turns early stopping "
                f"{'on' if early_stopping else 'off'} for a model that was trained with it "
                f"{'off' if early_stopping else 'on'}; keep it as it was, or use warm_start=False."
            )
        if early_stopping and validation_rows is None:
            rows, validation_rows = split_validation(
                rows, self.validation_fraction, self._seed, by_class=by_class(rows)
            )
        names = getattr(self, "feature_names_in_", None)
        foreign = self.estimator is not None
        X_train = rows.X if foreign else to_single(rows.X, names)
        loss = self._fitted_loss if continued else self._fit_loss(rows, n_outputs, pool)
        projected = (
            not foreign
            and self.strategy in ("project", "relabel")
            and not (isinstance(self.projection, str) and self.projection == "identity")
        )
        objective = loss.bind(rows.Y, rows.weight, pool, offset=rows.offset, projected=projected)
        settings = self._settings(loss, n_components)
        learner = self._learner(X_train, rows, pool)
        # A copy: an error leaves the fitted model as it was.
        progress = deepcopy(self._progress) if continued else self._new_progress(n_outputs)
        scale = self._output_scale(objective, pool)
        state = objective.blank_state()
        validation = None
        if validation_rows is not None:
            X_val = validation_rows.X if foreign else to_single(validation_rows.X, names, "X_val")
            bound = loss.bind(
                validation_rows.Y, validation_rows.weight, pool, offset=validation_rows.offset
            )
            raw = bound.blank_state()
            scorers = self._scorers(loss, validation_rows, raw)
            validation = Validation(bound, learner.prepare(X_val), raw, scorers)
            if self.early_stopping == "per_output" and bound.losses(raw)[1] is None:
                raise ValueError(
                    "early_stopping='per_output' needs a loss for each output, but "
                    f"{type(loss.custom).__name__}.value returns one for each row; return an "
                    "array (n_rows, n_outputs), or use early_stopping=True."
                )
        if continued:
            self._add_rounds(progress, X_train, 0, progress.n_rounds, state, pool)
            if validation is not None:
                self._add_rounds(progress, X_val, 0, progress.n_rounds, validation.raw, pool)
        with_offset = rows.offset is not None
        tasks = None
        if FitTasks.wanted(self):
            X_given, y_given, weight_given = given

            def fitted() -> dict[str, Any]:
                rounds = boosting.best, boosting.best_per_output
                return self._fitted(deepcopy(progress), loss, with_offset, *rounds)

            metadata = {} if weight_given is None else {"sample_weight": weight_given}
            n_rounds = settings.max_iter - progress.n_rounds
            tasks = FitTasks(self, X_given, y_given, metadata, n_rounds, fitted)
        display = Display(int(self.verbose), self.max_time) if self.verbose else None
        watchers = Watchers(list(self.callbacks or ()), display, tasks)
        boosting = Boosting(
            settings,
            objective,
            learner,
            progress,
            state,
            rows.numbers,
            scale,
            validation,
            watchers,
            pool,
        )
        try:
            boosting.run()
        except KeyboardInterrupt:
            # What is complete is kept; the interrupt still reaches the caller.
            if progress.n_rounds > 0:
                self._finish(progress, loss, with_offset, boosting)
            raise
        finally:
            watchers.close()
        self._finish(progress, loss, with_offset, boosting)
        if tasks is not None:
            tasks.end()

    def _finish(
        self, progress: Progress, loss: FittedLoss, with_offset: bool, boosting: Boosting
    ) -> None:
        """Set the fitted attributes."""
        for name in _OPTIONAL_ATTRIBUTES:
            self.__dict__.pop(name, None)
        rounds = boosting.best, boosting.best_per_output
        self.__dict__.update(self._fitted(progress, loss, with_offset, *rounds))

    def _fitted(
        self,
        progress: Progress,
        loss: FittedLoss,
        with_offset: bool,
        kept: int,
        per_output: NDArray[np.intp] | None,
    ) -> dict[str, Any]:
        """Attributes of an estimator that keeps so many rounds of ``progress``."""
        progress.truncate(kept)
        if per_output is not None:
            progress.keep_best(per_output)
        attributes: dict[str, Any] = {
            "_progress": progress,
            "_fitted_loss": loss,
            "_with_offset": with_offset,
            "_trained_with": self._fixed_parameters(),
            "n_outputs_": len(loss.baseline),
            "n_iter_": kept,
            "best_iter_": kept,
            "baseline_": loss.baseline,
            "train_score_": np.array(progress.train_score),
        }
        if progress.validation_score:
            attributes["validation_score_"] = np.array(progress.validation_score)
        if progress.validation_per_output:
            curves = np.array(progress.validation_per_output)
            attributes["validation_score_per_output_"] = curves
        if progress.validation_score and isinstance(self.scoring, list | tuple):
            scores = progress.validation_scores.items()
            attributes["validation_scores_"] = {name: np.array(curve) for name, curve in scores}
        if per_output is not None:
            attributes["best_iter_per_output_"] = per_output
        return attributes

    def _check_scoring(self, early_stopping: bool, rows: Rows) -> None:
        """Refuse what would have no effect or cannot be."""
        first = as_list(self.scoring)[0]
        if not early_stopping and self.scoring != LOSS:
            raise ValueError(
                f"scoring={self.scoring!r} is what early stopping looks at, which is off; use "
                "early_stopping=True, pass X_val and Y_val, or leave scoring at 'loss'."
            )
        if self.early_stopping != "per_output":
            return
        if rows.Y.dtype == np.uint32:
            raise ValueError(
                "early_stopping='per_output' needs a loss for each output, but the classes of "
                "loss='log_loss' share one; use early_stopping=True."
            )
        if first != LOSS:
            raise ValueError(
                f"early_stopping='per_output' goes by the loss of each output, but scoring begins "
                f"with {first!r}; let it begin with 'loss', or use early_stopping=True."
            )

    def _scorers(self, loss: FittedLoss, rows: Rows, raw: F32) -> list[Scorer]:
        """Scorers of the validation rows, whose raw predictions are kept in ``raw``."""
        estimator = copy.copy(self)
        estimator._fitted_loss = loss
        offset = 0.0 if rows.offset is None else np.where(loss.centred, rows.offset, 0.0)
        running = self._running(estimator, rows.X, lambda: loss.baseline + offset + raw)
        return resolve(self.scoring, running, rows.X, self._targets(rows.Y), rows.weight)

    def _check_warm_start(self, n_outputs: int, with_offset: bool) -> None:
        if self.max_iter < self.n_iter_:
            raise ValueError(
                f"max_iter={self.max_iter} is less than the {self.n_iter_} rounds of the fitted "
                "model; with warm_start=True it must be at least that."
            )
        if n_outputs != self.n_outputs_:
            raise ValueError(
                f"y has {n_outputs} outputs but the fitted model has {self.n_outputs_}; with "
                "warm_start=True they must agree, or use warm_start=False."
            )
        if with_offset != self._with_offset:
            raise ValueError(
                f"fit was called {'with' if with_offset else 'without'} an offset, but the fitted "
                f"model was trained {'without' if with_offset else 'with'} one; keep to that, or "
                "use warm_start=False."
            )
        if self._fixed_parameters() != self._trained_with:
            raise ValueError(
                "loss, strategy, step, scoring, stopping per output or the kind of estimator "
                "changed since the fitted model was trained; keep them, or use warm_start=False."
            )

    def _fixed_parameters(self) -> tuple[Any, ...]:
        """What a warm start cannot change: the loss, and what a round adds to the model."""
        loss = self.loss if isinstance(self.loss, str | Loss) else tuple(self.loss)
        constants = (tuple(np.atleast_1d(self.quantile).tolist()), self.huber_delta)
        stopping = (self.early_stopping == "per_output", tuple(as_list(self.scoring)))
        kind = self.estimator is None
        return (loss, constants, self.strategy, self.step, stopping, kind)

    def _new_progress(self, n_outputs: int) -> Progress:
        if self.estimator is not None:
            return Progress(ForeignEnsemble(n_outputs), None)
        return Progress(
            _core.Ensemble(_KINDS[self.strategy], n_outputs, self.n_features_in_),
            np.zeros((self.n_features_in_, n_outputs)),
        )

    def _fit_loss(self, rows: Rows, n_outputs: int, pool: _core.Pool) -> FittedLoss:
        return fit_loss(
            self.loss,
            rows.Y,
            rows.weight,
            pool,
            n_outputs=n_outputs,
            quantile=self._levels(n_outputs),
            huber_delta=self.huber_delta,
            offset=rows.offset,
        )

    def _levels(self, n_outputs: int) -> F64:
        """Quantile level of each output; those of one output of y are neighbours."""
        levels = np.atleast_1d(np.asarray(self.quantile, dtype=np.float64))
        return np.tile(levels, n_outputs // len(levels))

    def _block(self, facts: Facts, outputs: tuple[int, int] | None, loss: FittedLoss) -> Block:
        """How the steps of outputs that share a loss are found."""
        l2 = self.l2_regularization
        step = auto_step(facts) if self.step == "auto" else self.step
        if self.step == "auto" and l2 not in ("auto", 0) and facts.curved:
            step = "newton"
        if step == "newton" and facts.kernel == "custom" and not facts.curved:
            raise ValueError(
                f"step='newton' needs second derivatives, but {type(loss.custom).__name__} has "
                "no hessian; implement it or use step='line_search'."
            )
        damping = (1.0 if facts.regularised else 0.0) if l2 == "auto" else float(l2)
        return Block(outputs, facts, step, damping)

    def _settings(self, loss: FittedLoss, n_components: int) -> Settings:
        l2 = self.l2_regularization
        blocks = tuple(self._block(facts, outputs, loss) for facts, outputs in loss.parts)
        if l2 not in ("auto", 0) and all(
            block.step == "line_search" or not block.facts.curved for block in blocks
        ):
            raise ValueError(
                f"l2_regularization={l2!r} has no effect on line searches and on losses without "
                "curvature; use step='newton' with another loss, or leave it at 'auto'."
            )
        return Settings(
            strategy=self.strategy,
            projection=self.projection,
            n_components=n_components,
            blocks=blocks,
            learning_rate=self._resolve_learning_rate(),
            max_iter=int(self.max_iter),
            subsample=float(self.subsample),
            max_time=self.max_time,
            per_output_stopping=self.early_stopping == "per_output",
            n_iter_no_change=int(self.n_iter_no_change),
            tol=float(self.tol),
            seed=self._seed,
        )

    def _learner(self, X: Table, rows: Rows, pool: _core.Pool) -> TreeLearner | ForeignLearner:
        if self.estimator is not None:
            relabels = self.strategy == "relabel"
            return ForeignLearner(self.estimator, X, relabels=relabels, seed=self._seed)
        weight = None if rows.weight is None else rows.weight.astype(np.float64)
        features = TreeLearner.bin(pool, X, weight, int(self.max_bins))
        unlimited = 2**31 - 1
        grower = _core.Grower(
            features,
            max_leaf_nodes=min(int(self.max_leaf_nodes or len(rows)), len(rows) + 1),
            max_depth=int(self.max_depth or unlimited),
            min_samples_leaf=self._resolve_min_samples_leaf(len(rows)),
            min_split_gain=float(self.min_split_gain),
            max_features=self._resolve_max_features(),
            seed=self._seed,
        )
        return TreeLearner(pool, features, grower)

    def _resolve_learning_rate(self) -> float:
        if self.learning_rate == "auto":
            return min(0.1, max(0.05, 20 / self.max_iter))
        return float(self.learning_rate)

    def _resolve_min_samples_leaf(self, n_rows: int) -> int:
        if self.min_samples_leaf == "auto":
            return min(20, max(1, n_rows // 100))
        return int(self.min_samples_leaf)

    def _resolve_max_features(self) -> int:
        p, wanted = self.n_features_in_, self.max_features
        if wanted == "sqrt":
            return max(1, math.isqrt(p))
        if wanted == "log2":
            return max(1, int(math.log2(p)))
        if isinstance(wanted, int | np.integer):
            return min(int(wanted), int(p))
        return max(1, int(float(wanted) * p))

    def _output_scale(self, objective: Objective, pool: _core.Pool) -> F64 | None:
        """Return the standard deviation of each output's residuals at the baseline, or None."""
        if self.output_scaling is None or objective.n_outputs == 1:
            return None
        residuals = objective.baseline_residuals()
        weight, total = objective.weight, objective.total_weight
        mean = _core.column_sums(pool, residuals, weight) / total
        square = _core.column_sums(pool, residuals, weight, True) / total
        scale = np.sqrt(np.maximum(square - mean**2, 0))
        return np.where(scale > 0, scale, 1.0)

    # ------------------------------------------------------------------ predicting

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
        else:
            model.add_to(pool, for_kernels(X), start, stop, raw)

    def _checked_X(self, X: Any) -> Table:
        check_is_fitted(self, "n_iter_")
        X = check_X(self, X, reset=False)
        if isinstance(self._progress.model, ForeignEnsemble):
            return X
        return to_single(X, getattr(self, "feature_names_in_", None))

    def _checked_offset(self, offset: Any, X: Table) -> F64 | float:
        """What to add to raw predictions: an offset, if and only if the model was fitted to one."""
        if offset is None:
            if self._with_offset:
                raise ValueError(
                    "The model was fitted with an offset, but offset=None was passed; pass the "
                    "offsets of these rows (zeros for none)."
                )
            return 0.0
        if not self._with_offset:
            raise ValueError(
                "An offset was passed, but the model was fitted without one; fit with an offset, "
                "or leave it out."
            )
        return self._offset_of(offset, X, self.n_outputs_)

    def _offset_of(self, offset: Any, X: Table, n_outputs: int, name: str = "offset") -> F64:
        """A user's offset as an array (n_rows, n_outputs)."""
        raise NotImplementedError

    def _raw_predict(self, X: Any, offset: Any = None) -> F64:
        """Raw predictions (n_rows, n_outputs)."""
        X = self._checked_X(X)
        start = self._checked_offset(offset, X)
        raw = self._raw_sums(X)
        return np.asarray(raw + start) if self._with_offset else raw

    def _raw_sums(self, X: Table) -> F64:
        """Baseline and trees, for checked features."""
        pool = _core.Pool(resolve_threads(self.n_jobs))
        model = self._progress.model
        if isinstance(model, _core.Ensemble):
            return model.predict(pool, for_kernels(X), self.n_iter_, self.baseline_)
        raw = np.zeros((X.shape[0], self.n_outputs_), np.float32)
        self._add_rounds(self._progress, X, 0, self.n_iter_, raw, pool)
        return np.asarray(self.baseline_ + raw)

    def _staged_raw_predict(self, X: Any, offset: Any = None) -> Iterator[F64]:
        """Yield raw predictions after each round."""
        X = self._checked_X(X)
        start = self._checked_offset(offset, X)
        raw = np.zeros((X.shape[0], self.n_outputs_), np.float32)
        pool = _core.Pool(resolve_threads(self.n_jobs))
        for m in range(self.n_iter_):
            self._add_rounds(self._progress, X, m, m + 1, raw, pool)
            yield self.baseline_ + raw + start

    # ------------------------------------------------------------------ inspecting

    @property
    def step_sizes_(self) -> F64:
        """Step ρ of every round and output (n_iter_, n_outputs_), without the learning rate."""
        check_is_fitted(self, "n_iter_")
        model, steps = self._progress.model, np.array(self._progress.steps)
        if isinstance(model, _core.Ensemble) and not steps.size:
            # Trees of "project" hold theirs.
            steps = model.steps().astype(np.float64)
        if len(steps) < self.n_iter_:
            raise AttributeError(
                f"Newton leaves of strategy={self.strategy!r} have no steps; step_sizes_ needs "
                "step='line_search' or strategy='project'."
            )
        return steps.reshape(self.n_iter_, self.n_outputs_)

    @property
    def output_importances_(self) -> F64:
        """Share of each feature in the gain of each output (n_outputs_, n_features_in_)."""
        check_is_fitted(self, "n_iter_")
        gains = self._progress.importances
        if gains is None:
            raise AttributeError("importances are known for built-in trees only (estimator=None).")
        total = gains.sum(axis=0, keepdims=True)
        shares = np.divide(gains, total, out=np.zeros_like(gains), where=total > 0)
        return np.asarray(shares.T)

    @property
    def feature_importances_(self) -> F64:
        """Share of each feature in the gain, averaged over the outputs (n_features_in_,)."""
        mean = self.output_importances_.mean(axis=0)
        total = float(mean.sum())
        return np.asarray(mean / total if total > 0 else mean)

    def _refuse_validation_alone(
        self, X_val: Any, Y_val: Any, weight_val: Any, offset: Any, offset_val: Any
    ) -> None:
        if (X_val is None) != (Y_val is None):
            given, missing = ("X_val", "Y_val") if Y_val is None else ("Y_val", "X_val")
            raise ValueError(f"{given} was given without {missing}; pass both or neither.")
        if X_val is None and weight_val is not None:
            raise ValueError("sample_weight_val was given without X_val and Y_val; pass all.")
        if X_val is None and offset_val is not None:
            raise ValueError("offset_val was given without X_val and Y_val; pass all.")
        if X_val is not None and (offset is None) != (offset_val is None):
            names = ("offset_val", "offset") if offset is None else ("offset", "offset_val")
            raise ValueError(f"{names[0]} was given without {names[1]}; pass both or neither.")


@params.documented
class ManyBoostRegressor(RegressorMixin, _ManyBoost):
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
        output_scaling: str | None = "auto",
        estimator: Any = None,
        early_stopping: str | bool = "auto",
        validation_fraction: int | float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        scoring: Any = "loss",
        max_time: float | None = None,
        warm_start: bool = False,
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
        self.output_scaling = output_scaling
        self.estimator = estimator
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.scoring = scoring
        self.max_time = max_time
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_all_or_nothing
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
            Targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
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
        X = check_X(self, X, reset=not continued)
        Y = self._check_targets(y, X, "y")
        targets = self._for_levels(np.atleast_2d(Y.T).T)
        n_outputs = targets.shape[1]
        if offset is not None:
            offset = self._offset_of(offset, X, n_outputs)
        rows = make_rows(X, targets, sample_weight, "sample_weight", offset)
        validation = None
        if X_val is not None:
            X_val = check_X(self, X_val, reset=False, name="X_val")
            Y_val = np.atleast_2d(self._check_targets(Y_val, X_val, "Y_val").T).T
            n_given = n_outputs // self._n_levels
            if Y_val.shape[1] != n_given:
                raise ValueError(
                    f"Y_val has {Y_val.shape[1]} outputs but y has {n_given}; they must agree."
                )
            if offset_val is not None:
                offset_val = self._offset_of(offset_val, X_val, n_outputs, "offset_val")
            targets = self._for_levels(Y_val)
            validation = make_rows(
                X_val, targets, sample_weight_val, "sample_weight_val", offset_val
            )
        # Before training, which an interrupt may end with a model that predicts.
        self._one_dimensional = Y.ndim == 1
        self._fit(X, rows, validation, n_outputs, lambda _: None, given)
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
            raise ValueError(
                f"{name} has the value {Y[tuple(place)]:g} in row {place[0]}; loss='poisson' needs "
                "counts of at least zero."
            )
        if isinstance(self.loss, list | tuple):
            self._check_columns(np.atleast_2d(Y.T).T, self.loss, name)
        return Y

    def _check_columns(self, Y: F64, losses: list[str] | tuple[str, ...], name: str) -> None:
        """Refuse targets that the loss of their output cannot take."""
        if len(losses) != Y.shape[1]:
            raise ValueError(
                f"loss has {len(losses)} names but {name} has {Y.shape[1]} outputs; give one name "
                "for each output."
            )
        for j, loss in enumerate(losses):
            if loss == "poisson":
                bad, wanted = Y[:, j] < 0, "counts of at least zero"
            elif loss in REGRESSION_LOSSES:
                continue
            else:
                bad, wanted = ~np.isin(Y[:, j], (0, 1)), "labels of 0 and 1"
            if bad.any():
                row = int(np.argmax(bad))
                raise ValueError(
                    f"{name} has the value {Y[row, j]:g} in row {row}, output {j}; its "
                    f"loss={loss!r} needs {wanted}."
                )

    def predict(self, X: Any, *, offset: Any = None) -> F64:
        """Predict the outputs of rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as y was in fit
            A list of quantiles adds an axis at the end, sorted: of predictions that cross, the
            lower one is that of the lower level.
        """
        return self._shaped(self._raw_predict(X, offset))

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield predictions after each round; the last are those of :meth:`predict`."""
        for raw in self._staged_raw_predict(X, offset):
            yield self._shaped(raw)

    def _shaped(self, raw: F64) -> F64:
        predictions = self._fitted_loss.predict(raw)
        if self._quantiles is not None:
            # Sorting brings no level further from its quantile than it was.
            by_level = predictions.reshape(len(raw), -1, self._n_levels)
            predictions = np.sort(by_level, axis=2)
        return predictions[:, 0] if self._one_dimensional else predictions

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Coefficient of determination r², averaged over the outputs.

        For a list of quantiles it is D², the share of the pinball loss of constant predictions that
        the model saves, averaged over levels and outputs.
        """
        predictions = self.predict(X, offset=offset)
        if self._quantiles is None:
            return float(r2_score(y, predictions, sample_weight=sample_weight))
        scores = [
            d2_pinball_score(y, predictions[..., k], sample_weight=sample_weight, alpha=level)
            for k, level in enumerate(self._quantiles)
        ]
        return float(np.mean(scores))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.sparse = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


@params.documented
class ManyBoostClassifier(ClassifierMixin, _ManyBoost):
    """Gradient tree boosting for classes, or for one or many labels.

    A one-dimensional y holds one class per row; a two-dimensional one is an indicator of 0 and 1
    with a column for every label. Rank labels by :meth:`decision_function`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray
        The classes; the numbers of the columns for labels.
    n_iter_ : int
        Rounds in the model.
    n_outputs_ : int
        Number of outputs: labels, classes, or 1 for two classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.
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

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from manyboost import ManyBoostClassifier
    >>> X, Y = make_multilabel_classification(n_samples=500, n_classes=8, random_state=0)
    >>> model = ManyBoostClassifier(random_state=0).fit(X, Y)
    >>> model.predict_proba(X[:2]).shape
    (2, 8)
    """

    def __init__(
        self,
        loss: str | Loss = "log_loss",
        *,
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
        estimator: Any = None,
        early_stopping: str | bool = "auto",
        validation_fraction: int | float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        scoring: Any = "loss",
        max_time: float | None = None,
        warm_start: bool = False,
        callbacks: list[Callback] | None = None,
        verbose: int | bool = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
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
        self.estimator = estimator
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.scoring = scoring
        self.max_time = max_time
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_all_or_nothing
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
    ) -> ManyBoostClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features; NaN is a missing value.
        y : array-like of shape (n_rows,) or (n_rows, n_labels)
            One class per row, or an indicator of 0 and 1 with a column for every label.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
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
        X = check_X(self, X, reset=not continued)
        labels = check_labels(y, X)
        classes = self._classes if continued else Classes.of(labels)
        softmax = self.loss == "log_loss"
        # Before offsets are checked, which depend on it.
        self._classes = classes
        self.classes_ = classes.values
        if offset is not None:
            offset = self._offset_of(offset, X, classes.n_outputs)
        encoded = classes.encode(labels, softmax=softmax)
        rows = make_rows(X, encoded, sample_weight, "sample_weight", offset)
        validation = None
        if X_val is not None:
            X_val = check_X(self, X_val, reset=False, name="X_val")
            labels_val = check_labels(Y_val, X_val, "Y_val")
            encoded = classes.encode(labels_val, softmax=softmax, name="Y_val")
            if offset_val is not None:
                offset_val = self._offset_of(offset_val, X_val, classes.n_outputs, "offset_val")
            validation = make_rows(
                X_val, encoded, sample_weight_val, "sample_weight_val", offset_val
            )

        def by_class(rows: Rows) -> NDArray[Any] | None:
            if classes.kind == "multilabel":
                return None
            if rows.Y.ndim == 1:
                return rows.Y
            return np.asarray(rows.Y.argmax(axis=1) if rows.Y.shape[1] > 1 else rows.Y[:, 0])

        self._fit(X, rows, validation, classes.n_outputs, by_class, given)
        return self

    _running = RunningClassifier

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        return self._classes.decode(Y)

    def _offset_of(self, offset: Any, X: Table, n_outputs: int, name: str = "offset") -> F64:
        softmax = self.loss == "log_loss" and self._classes.kind == "multiclass"
        return check_offset(offset, X, n_outputs, softmax=softmax, name=name)

    def _check_loss(self) -> None:
        if isinstance(self.loss, list | tuple):
            raise ValueError(
                f"loss={self.loss!r} is a list, but a classifier has one loss for all its outputs; "
                f"use one of {', '.join(map(repr, LABEL_LOSSES))}, or ManyBoostRegressor."
            )
        if isinstance(self.loss, str) and self.loss not in LABEL_LOSSES:
            raise ValueError(
                f"loss={self.loss!r} is not a classification loss; use one of "
                f"{', '.join(map(repr, LABEL_LOSSES))}, or a Loss object."
            )

    def decision_function(self, X: Any, *, offset: Any = None) -> F64:
        """Raw predictions: (n_rows,) for two classes, else (n_rows, n_outputs).

        ``offset`` (n_rows,) or (n_rows, n_outputs) is part of them, if it was in fit.
        """
        return self._decision(self._raw_predict(X, offset))

    def predict_proba(self, X: Any, *, offset: Any = None) -> F64:
        """Probabilities: (n_rows, n_classes), or (n_rows, n_labels) of each label being present."""
        return self._probabilities(self._raw_predict(X, offset))

    def predict(self, X: Any, *, offset: Any = None) -> NDArray[Any]:
        """Classes (n_rows,), or an indicator of the labels (n_rows, n_labels)."""
        return self._labels(self._raw_predict(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Accuracy: the share of rows whose class, or whose every label, is right."""
        predicted = self.predict(X, offset=offset)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def staged_decision_function(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield :meth:`decision_function` after each round."""
        return map(self._decision, self._staged_raw_predict(X, offset))

    def staged_predict_proba(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield :meth:`predict_proba` after each round."""
        return map(self._probabilities, self._staged_raw_predict(X, offset))

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[NDArray[Any]]:
        """Yield :meth:`predict` after each round."""
        return map(self._labels, self._staged_raw_predict(X, offset))

    def _decision(self, raw: F64) -> F64:
        return raw[:, 0] if self._classes.kind == "binary" else raw

    def _probabilities(self, raw: F64) -> F64:
        proba = self._fitted_loss.predict(raw)
        if self._classes.kind == "binary":
            return np.column_stack([1 - proba[:, 0], proba[:, 0]])
        if self._classes.kind == "multiclass" and self._fitted_loss.facts.kernel != "softmax":
            # One class against the rest, brought to a sum of one.
            total = proba.sum(axis=1, keepdims=True)
            even = np.full_like(proba, 1 / proba.shape[1])
            return np.asarray(np.divide(proba, total, out=even, where=total > 0))
        return proba

    def _labels(self, raw: F64) -> NDArray[Any]:
        kind, values = self._classes.kind, self._classes.values
        if kind == "multilabel":
            return (raw > 0).astype(np.int64)
        chosen = (raw[:, 0] > 0).astype(np.intp) if kind == "binary" else raw.argmax(axis=1)
        return np.asarray(values[chosen])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
