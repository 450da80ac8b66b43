"""The estimators: scikit-learn's contract, around the loop of :mod:`manyboost.boosting`."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

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
from manyboost.categories import Categories
from manyboost.constraints import Constraints, resolve_interactions, resolve_monotonic
from manyboost.frames import column_names, make_frame
from manyboost.inputs import (
    Classes,
    Rows,
    Table,
    check_offset,
    check_output_names,
    check_targets,
    check_X,
    for_kernels,
    make_rows,
    read_labels,
    resolve_categorical,
    resolve_outputs,
    resolve_threads,
    split_validation,
    to_single,
)
from manyboost.label_sets import indicator, read_label_sets
from manyboost.learners import (
    ForeignEnsemble,
    ForeignLearner,
    TreeLearner,
    check_foreign,
    unweighted,
)
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
from manyboost.thresholds import tune_thresholds
from manyboost.weights import (
    as_rows,
    cell_name,
    class_weights,
    refuse_unobserved_outputs,
    without_class_weights,
)

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

EARLY_STOPPING_ROWS = 10_000

#: Raw predictions that exist in double precision at a time where not all are wanted.
BLOCK_CELLS = 1 << 20

# Fitted attributes that not every fit has.
_OPTIONAL_ATTRIBUTES = (
    "thresholds_",
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
    callbacks: list[Callback] | None
    verbose: int | bool
    random_state: Any
    n_jobs: int | None

    # Set by fit.
    _fitted_loss: FittedLoss
    _progress: Progress
    _classes: Classes
    _class_weights: F64 | None
    _seed: int
    baseline_: F64
    thresholds_: F64
    _with_offset: bool

    # What scorers are given for an estimator.
    _running: type[RunningRegressor] = RunningRegressor

    @property
    def _n_levels(self) -> int:
        """Outputs of the model for each output of y: the levels of a list of quantiles."""
        return 1

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        """Targets as scorers know them, for encoded ones."""
        raise NotImplementedError

    # ------------------------------------------------------------------ fitting

    def _read_X(self, X: Any, *, continued: bool) -> tuple[Table, Categories]:
        """Features to train on, checked, codes in place of categories; and these categories."""
        X = check_X(self, X, reset=not continued, categorical=self.categorical_features)
        categories = self._find_categories(X, continued=continued)
        names = getattr(self, "feature_names_in_", None)
        return categories.encode(X, names, refuse_unknown=continued), categories

    def _read_X_val(self, X_val: Any, categories: Categories) -> Table:
        X_val = check_X(self, X_val, reset=False, name="X_val")
        return categories.encode(X_val, getattr(self, "feature_names_in_", None), "X_val")

    def _find_categories(self, X: Table, *, continued: bool) -> Categories:
        """Categories of checked features; those of the fitted model if it is continued."""
        names = getattr(self, "feature_names_in_", None)
        mask = resolve_categorical(X, self.categorical_features, names)
        mask[list(self._category_labels.of_column)] = True
        if not continued:
            if mask.any():
                self._refuse_foreign("categorical_features")
            return Categories.of(X, mask, int(self.max_bins), names)
        known = self._progress.categories
        if not np.array_equal(mask, known.mask):
            raise ValueError(
                "categorical_features names other features than those of the fitted model; with "
                "warm_start=True they must agree, or use warm_start=False."
            )
        return known

    def _resolve_constraints(self, categories: Categories, n_outputs: int) -> Constraints:
        names = getattr(self, "feature_names_in_", None)
        n_given = n_outputs // self._n_levels
        monotonic = resolve_monotonic(self.monotonic_cst, n_given, categories.mask, names)
        constraints = Constraints(
            monotonic if monotonic is None else monotonic.repeated(self._n_levels),
            resolve_interactions(self.interaction_cst, categories.n_features, names),
        )
        if constraints.monotonic is not None:
            self._refuse_foreign("monotonic_cst")
        if constraints.interactions is not None:
            self._refuse_foreign("interaction_cst")
        return constraints

    def _refuse_foreign(self, parameter: str) -> None:
        if self.estimator is not None:
            raise ValueError(
                f"{parameter} works with built-in trees only; leave it out, or use estimator=None."
            )

    def _fit(
        self,
        X: Table,
        rows: Rows,
        validation_rows: Rows | None,
        n_outputs: int,
        by_class: Callable[[Rows], NDArray[Any] | None],
        categories: Categories,
        given: tuple[Any, Any, Any],
    ) -> None:
        """Train on encoded rows; everything is checked before any work is done.

        ``given`` are X, y and sample_weight as the user passed them, for scikit-learn's callbacks.
        """
        continued = self.warm_start and hasattr(self, "_progress")
        output_weight = self._check_output_weight(n_outputs)
        n_weighted = None if output_weight is None else int(np.count_nonzero(output_weight))
        n_components = resolve_n_components(
            self.n_components, n_outputs, self.projection, self.strategy, n_weighted
        )
        if self.estimator is not None:
            by_cell = rows.weights.by_cell
            check_foreign(self.estimator, self.strategy, n_outputs, n_components, by_cell=by_cell)
        constraints = self._resolve_constraints(categories, n_outputs)
        if continued:
            self._check_warm_start(n_outputs, constraints, rows.offset is not None)
        else:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        pool = _core.Pool(resolve_threads(self.n_jobs))
        early_stopping: Any = self.early_stopping
        if early_stopping == "auto":
            early_stopping = validation_rows is not None or len(rows) > EARLY_STOPPING_ROWS
        self._check_scoring(bool(early_stopping), rows)
        tuned = isinstance(self.thresholds, str)
        if validation_rows is not None and not (early_stopping or tuned):
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
        if (early_stopping or tuned) and validation_rows is None:
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
        objective = loss.bind(rows.Y, rows.weights, pool, offset=rows.offset, projected=projected)
        settings = self._settings(loss, n_components, constraints)
        learner = self._learner(X_train, rows, pool, categories, constraints)
        # A copy: an error leaves the fitted model as it was.
        progress = deepcopy(self._progress) if continued else self._new_progress(n_outputs)
        progress.categories, progress.constraints = categories, constraints
        scale = self._split_scale(objective, output_weight, pool)
        state = objective.blank_state()
        validation = None
        if validation_rows is not None and early_stopping:
            X_val = validation_rows.X if foreign else to_single(validation_rows.X, names, "X_val")
            bound = loss.bind(
                validation_rows.Y, validation_rows.weights, pool, offset=validation_rows.offset
            )
            raw = bound.blank_state()
            scorers = self._scorers(loss, validation_rows, raw)
            validation = Validation(bound, learner.prepare(X_val), raw, scorers)
            if self.early_stopping == "per_output":
                Y_given = validation_rows.Y[:, :: self._n_levels]
                refuse_unobserved_outputs(Y_given, "the validation rows", self._known_names())
            if self.early_stopping == "per_output" and bound.losses(raw)[1] is None:
                raise ValueError(
                    "early_stopping='per_output' needs a loss for each output, but "
                    f"{type(loss.custom).__name__}.value returns one for each row; return an "
                    "array (n_rows, n_outputs), or use early_stopping=True."
                )
            if self.early_stopping == "per_output":
                totals = objective.total_weight, bound.total_weight
                ones = np.ones(n_outputs)
                progress.shares = ones * totals[0], ones * totals[1]
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
                self._tune_thresholds(validation_rows)
            raise
        finally:
            watchers.close()
        self._finish(progress, loss, with_offset, boosting)
        self._tune_thresholds(validation_rows)
        if tasks is not None:
            tasks.end()

    def _given_thresholds(self, n_outputs: int) -> F64 | None:
        """Thresholds (n_outputs,) that do not depend on the model; a regressor has none."""
        return None

    def _tune_thresholds(self, validation_rows: Rows | None) -> None:
        """Choose the thresholds that are to be tuned."""

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
        thresholds = self._given_thresholds(len(loss.baseline))
        if thresholds is not None:
            attributes["thresholds_"] = thresholds
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
        # Those that are to be tuned are not known yet: 0.5.
        estimator.__dict__.pop("thresholds_", None)
        thresholds = self._given_thresholds(len(loss.baseline))
        if thresholds is not None:
            estimator.thresholds_ = thresholds
        offset = 0.0 if rows.offset is None else np.where(loss.centred, rows.offset, 0.0)
        running = self._running(estimator, rows.X, lambda: loss.baseline + offset + raw)
        partial = rows.weights.partial
        weight = self._given_weight(rows)
        Y = self._targets(rows.Y)
        return resolve(self.scoring, running, rows.X, Y, weight, partial=partial)

    def _given_weight(self, rows: Rows) -> NDArray[Any] | None:
        """Weights (n_rows,) or (n_rows, n_outputs) as they were given, without those of classes."""
        weights = rows.weights
        return weights.rows if weights.cells is None else weights.matrix(rows.Y)

    def _check_warm_start(
        self, n_outputs: int, constraints: Constraints, with_offset: bool
    ) -> None:
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
                "loss, strategy, step, scoring, stopping per output, the kind of estimator or "
                "thresholds changed since the fitted model was trained; keep them, or use "
                "warm_start=False."
            )
        if not constraints.agree_with(self._progress.constraints):
            raise ValueError(
                "monotonic_cst or interaction_cst changed since the fitted model was trained; keep "
                "them, or use warm_start=False."
            )

    def _fixed_parameters(self) -> tuple[Any, ...]:
        """What a warm start cannot change: the loss, and what a round adds to the model."""
        loss = self.loss if isinstance(self.loss, str | Loss) else tuple(self.loss)
        constants = (tuple(np.atleast_1d(self.quantile).tolist()), self.huber_delta)
        stopping = (self.early_stopping == "per_output", tuple(as_list(self.scoring)))
        kind = self.estimator is None
        # (The rows that thresholds are tuned on must not have been trained on.)
        tuned = isinstance(self.thresholds, str)
        return (loss, constants, self.strategy, self.step, stopping, kind, tuned)

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
            rows.weights,
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

    def _settings(self, loss: FittedLoss, n_components: int, constraints: Constraints) -> Settings:
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
            monotonic=constraints.monotonic,
        )

    def _learner(
        self,
        X: Table,
        rows: Rows,
        pool: _core.Pool,
        categories: Categories,
        constraints: Constraints,
    ) -> TreeLearner | ForeignLearner:
        if self.estimator is not None:
            relabels = self.strategy == "relabel"
            return ForeignLearner(self.estimator, X, relabels=relabels, seed=self._seed)
        weight = rows.weights.of_rows(rows.Y)
        features = TreeLearner.bin(pool, X, weight, int(self.max_bins), categories.counts)
        unlimited = 2**31 - 1
        grower = _core.Grower(
            features,
            max_leaf_nodes=min(int(self.max_leaf_nodes or len(rows)), len(rows) + 1),
            max_depth=int(self.max_depth or unlimited),
            min_samples_leaf=self._resolve_min_samples_leaf(len(rows)),
            min_split_gain=float(self.min_split_gain),
            max_features=self._resolve_max_features(),
            seed=self._seed,
            interactions=constraints.interactions,
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

    def _check_output_weight(self, n_outputs: int) -> F64 | None:
        if self.output_weight is None:
            return None
        weight = np.asarray(self.output_weight, dtype=np.float64)
        n_given = n_outputs // self._n_levels
        if len(weight) != n_given:
            raise ValueError(
                f"output_weight has {len(weight)} weights, but there are {n_given} outputs; pass "
                "one weight for each."
            )
        if self.strategy == "independent":
            raise ValueError(
                "output_weight has no effect with strategy='independent', which grows trees for "
                "each output alone; leave it at None or use another strategy."
            )
        return np.repeat(weight, self._n_levels)

    def _split_scale(
        self, objective: Objective, output_weight: F64 | None, pool: _core.Pool
    ) -> F64 | None:
        """What residuals are multiplied by when trees are grown (n_outputs,); None: nothing."""
        scale = self._output_scale(objective, pool)
        importance = None if output_weight is None else np.sqrt(output_weight)
        if scale is None:
            return importance
        return 1 / scale if importance is None else importance / scale

    def _output_scale(self, objective: Objective, pool: _core.Pool) -> F64 | None:
        """Return the standard deviation of each output's residuals at the baseline, or None."""
        if self.output_scaling is None or objective.n_outputs == 1:
            return None
        residuals = objective.baseline_residuals()
        weights, total = objective.weights, objective.total_weight
        mean = _core.column_sums(pool, residuals, weights) / total
        square = _core.column_sums(pool, residuals, weights, True) / total
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
        names = getattr(self, "feature_names_in_", None)
        return to_single(self._progress.categories.encode(X, names), names)

    def _checked_offset(self, offset: Any, X: Table) -> F64 | None:
        """What to add to raw predictions: an offset, if and only if the model was fitted to one."""
        if offset is None:
            if self._with_offset:
                raise ValueError(
                    "The model was fitted with an offset, but offset=None was passed; pass the "
                    "offsets of these rows (zeros for none)."
                )
            return None
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
        return np.asarray(self._predicted(X, lambda raw: raw, offset=offset))

    def _predicted(
        self,
        X: Any,
        finish: Callable[[F64], NDArray[Any]],
        outputs: list[int] | None = None,
        dtype: DTypeLike = np.float64,
        *,
        offset: Any = None,
        in_blocks: bool = False,
    ) -> NDArray[Any]:
        """``finish`` applied to raw predictions (n_rows, n_outputs), of all outputs or some.

        Results of another type than float64 are put together from blocks of rows, so that double
        precision never exists for all of them.
        """
        X = self._checked_X(X)
        offsets = self._checked_offset(offset, X)
        if offsets is not None and outputs is not None:
            offsets = offsets[:, outputs]
        raw_of = self._raw_predictor(outputs)
        n_rows = X.shape[0]
        in_blocks = in_blocks or dtype != np.float64
        size = max(1, BLOCK_CELLS // self.n_outputs_) if in_blocks else n_rows

        def finished(start: int) -> NDArray[Any]:
            raw = raw_of(X if size >= n_rows else X[start : start + size])
            return finish(raw if offsets is None else raw + offsets[start : start + size])

        first = finished(0)
        if size >= n_rows:
            return first.astype(dtype, copy=False)
        result = np.empty((n_rows, *first.shape[1:]), dtype)
        result[:size] = first
        for start in range(size, n_rows, size):
            result[start : start + size] = finished(start)
        return result

    def _raw_predictor(self, outputs: list[int] | None) -> Callable[[Table], F64]:
        """Return the function from checked features to baseline and trees (n_rows, n_outputs)."""
        pool = _core.Pool(resolve_threads(self.n_jobs))
        model, baseline = self._progress.model, self.baseline_
        if isinstance(model, _core.Ensemble):
            part = model if outputs is None else model.of_outputs(outputs)
            start = baseline if outputs is None else baseline[outputs]
            return lambda X: part.predict(pool, for_kernels(X), self.n_iter_, start)

        def foreign(X: Table) -> F64:
            raw = np.zeros((X.shape[0], self.n_outputs_), np.float32)
            self._add_rounds(self._progress, X, 0, self.n_iter_, raw, pool)
            everything = baseline + raw
            return everything if outputs is None else everything[:, outputs]

        return foreign

    def _linked(
        self,
        X: Any,
        finish: Callable[[F64], NDArray[Any]],
        outputs: list[int] | None,
        dtype: DTypeLike,
        offset: Any,
        *,
        joint: bool,
    ) -> NDArray[Any]:
        """As :meth:`_predicted`; if the link is ``joint``, some outputs need the others too."""
        if outputs is None or not joint:
            return self._predicted(X, finish, outputs, dtype, offset=offset)

        def chosen(raw: F64) -> NDArray[Any]:
            return finish(raw)[:, outputs]

        return self._predicted(X, chosen, None, dtype, offset=offset, in_blocks=True)

    def _check_request(
        self, outputs: Any, dtype: DTypeLike
    ) -> tuple[list[int] | None, np.dtype[Any]]:
        """Return the places of the outputs asked for (None: all) and the type of the result."""
        check_is_fitted(self, "n_iter_")
        try:
            type_ = np.dtype(dtype)
        except TypeError:
            type_ = None
        if type_ not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is not allowed; it must be float32 or float64.")
        if outputs is None:
            return None, type_
        if self._is_single():
            raise ValueError(
                f"outputs={outputs!r} was given, but the model has one output; leave outputs out."
            )
        n_outputs = self.n_outputs_ // self._n_levels
        return resolve_outputs(outputs, self._known_names(), n_outputs), type_

    def _is_single(self) -> bool:
        """Whether predictions have one dimension."""
        raise NotImplementedError

    # ------------------------------------------------------------------ names

    def _set_output_names(self, names: Any) -> None:
        """Remember the names of the outputs, if they have any."""
        if names is not None:
            self.output_names_ = np.array([str(each) for each in names], dtype=object)
        elif hasattr(self, "output_names_"):
            del self.output_names_

    def _known_names(self) -> list[str] | None:
        """Names by which outputs may be asked for."""
        names = getattr(self, "output_names_", None)
        return None if names is None else names.tolist()

    def set_output(self, *, predict: str | None = None, transform: str | None = None) -> Any:
        """Choose what predictions of several outputs come as.

        This is scikit-learn's way of asking for frames, which it has for transformers. It changes
        ``predict``, ``decision_function`` and ``predict_proba`` where they have two dimensions:
        the columns are the names of the outputs (``y0``, ``y1``, … if they have none) or the
        classes, the index is that of X if X is a pandas frame. Settings of
        :func:`sklearn.set_config` are for transformers and change nothing here.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"}, optional
            Arrays, or frames of a library; None leaves it as it was.
        transform : {"default", "pandas", "polars"}, optional
            The same, under the name that scikit-learn's transformers have for it.

        Returns
        -------
        self
        """
        for name, value in [("predict", predict), ("transform", transform)]:
            if value not in (None, "default", "pandas", "polars"):
                raise ValueError(
                    f"{name}={value!r} is not allowed; it must be 'default', 'pandas' or 'polars'."
                )
        if predict is not None and transform is not None and predict != transform:
            raise ValueError(
                f"predict={predict!r} and transform={transform!r} contradict each other; give one."
            )
        chosen = predict if predict is not None else transform
        if chosen is not None:
            # scikit-learn's clone copies this attribute.
            config = getattr(self, "_sklearn_output_config", {})
            self._sklearn_output_config = {**config, "predict": chosen}
        return self

    def _wants_frames(self) -> bool:
        config = getattr(self, "_sklearn_output_config", {})
        return bool(config.get("predict", "default") != "default")

    def _framed(self, values: NDArray[Any], X: Any, outputs: list[int] | None, names: Any) -> Any:
        """Return predictions as :meth:`set_output` says; ``names`` are those of all columns."""
        if not self._wants_frames() or values.ndim == 1:
            return values
        if names is None:
            names = [f"y{j}" for j in range(self.n_outputs_)]
        chosen = names if outputs is None else [names[j] for j in outputs]
        library = self._sklearn_output_config["predict"]
        return make_frame(library, values, [str(each) for each in chosen], X)

    def _staged_raw_predict(self, X: Any, offset: Any = None) -> Iterator[F64]:
        """Yield raw predictions after each round."""
        X = self._checked_X(X)
        offsets = self._checked_offset(offset, X)
        raw = np.zeros((X.shape[0], self.n_outputs_), np.float32)
        pool = _core.Pool(resolve_threads(self.n_jobs))
        for m in range(self.n_iter_):
            self._add_rounds(self._progress, X, m, m + 1, raw, pool)
            stage = self.baseline_ + raw
            yield stage if offsets is None else stage + offsets

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

    def _refuse_unused_weights(self, sample_weight: Any) -> None:
        given = sample_weight is not None and self.estimator is not None
        if given and not has_fit_parameter(self.estimator, "sample_weight"):
            raise unweighted(self.estimator)

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
    output_names_ : ndarray of shape (n_outputs_,)
        Names of the outputs, if y had them.
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
        columns = np.atleast_2d(Y.T).T
        n_outputs = columns.shape[1] * self._n_levels
        if offset is not None:
            offset = self._offset_of(offset, X, n_outputs)
        rows = make_rows(X, columns, sample_weight, "sample_weight", offset)
        refuse_unobserved_outputs(rows.Y, "y", names)
        rows = rows.repeated(self._n_levels)
        validation = None
        if X_val is not None:
            X_val = self._read_X_val(X_val, categories)
            check_output_names(Y_val, known, "Y_val")
            Y_val = np.atleast_2d(self._check_targets(Y_val, X_val, "Y_val").T).T
            n_given = n_outputs // self._n_levels
            if Y_val.shape[1] != n_given:
                raise ValueError(
                    f"Y_val has {Y_val.shape[1]} outputs but y has {n_given}; they must agree."
                )
            if offset_val is not None:
                offset_val = self._offset_of(offset_val, X_val, n_outputs, "offset_val")
            validation = make_rows(
                X_val, Y_val, sample_weight_val, "sample_weight_val", offset_val
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
            raise ValueError(
                f"{name} has the value {Y[tuple(place)]:g} in row {place[0]}; loss='poisson' needs "
                "counts of at least zero."
            )
        if isinstance(self.loss, list | tuple):
            self._check_columns(np.atleast_2d(Y.T).T, y, name)
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
                raise ValueError(
                    f"{name} has the value {Y[row, j]:g} in {cell_name((row, j), names)}; its "
                    f"loss={loss!r} needs {wanted}."
                )

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
        the model saves, averaged over levels and outputs.
        """
        # (Importing it takes as long as everything else.)
        from sklearn.metrics import d2_pinball_score, r2_score

        check_is_fitted(self, "n_iter_")
        predictions = self._values(X, offset)
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
    with a column for every label; a list of sets names the labels of each row. Rank labels by
    :meth:`decision_function` or :meth:`predict_top_k`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray
        The classes. For labels: the sorted labels if y held sets, the names of its columns if it
        was a frame, else the numbers of its columns.
    thresholds_ : ndarray of shape (n_outputs_,)
        Probability above which a label is predicted, if ``thresholds`` was given.
    n_iter_ : int
        Rounds in the model.
    n_outputs_ : int
        Number of outputs: labels, classes, or 1 for two classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.
    output_names_ : ndarray of shape (n_outputs_,)
        Names of the outputs, if y had them: columns of a frame, or labels in sets.
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
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        output_weight: Any = None,
        class_weight: Any = None,
        estimator: Any = None,
        thresholds: Any = None,
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
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.output_weight = output_weight
        self.class_weight = class_weight
        self.estimator = estimator
        self.thresholds = thresholds
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
        y : array-like or sparse matrix of shape (n_rows,) or (n_rows, n_labels), or list of sets
            One class per row, an indicator of 0 and 1, dense or sparse, with a column for every
            label, or the labels of each row: a set, or a list or tuple (read as labels if lengths
            differ or labels are text, else as a row of an indicator). NaN, None and pandas.NA in an
            indicator are missing labels, which have no influence on the model.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_labels), optional
            Weights of the rows, or of single labels; weight zero makes a label missing.
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
        X, categories = self._read_X(X, continued=continued)
        classes, labels = read_labels(y, X, classes=self._classes if continued else None)
        self._check_thresholds(classes)
        check_output_names(y, classes.names, "y")
        if classes.kind == "multiclass" and self.monotonic_cst is not None:
            raise ValueError(
                f"monotonic_cst is not defined for {len(classes.values)} classes, whose "
                "probabilities cannot all move one way; use it with two classes or with labels."
            )
        softmax = self.loss == "log_loss"
        # Before offsets are checked, which depend on it.
        self._classes = classes
        self.classes_ = classes.values
        if offset is not None:
            offset = self._offset_of(offset, X, classes.n_outputs)
        by_cell = classes.kind == "multilabel"
        self._refuse_unused_weights(sample_weight)
        encoded = classes.encode(labels, softmax=softmax)
        rows = make_rows(X, encoded, sample_weight, "sample_weight", offset, by_cell=by_cell)
        table = self._class_weights = class_weights(self.class_weight, rows.Y, classes)
        rows = rows.weighed(table, classes)
        refuse_unobserved_outputs(rows.Y, "y", classes.names)
        validation = None
        if X_val is not None:
            X_val = self._read_X_val(X_val, categories)
            _, labels_val = read_labels(Y_val, X_val, "Y_val", classes)
            check_output_names(Y_val, classes.names, "Y_val")
            encoded = classes.encode(labels_val, softmax=softmax, name="Y_val")
            if offset_val is not None:
                offset_val = self._offset_of(offset_val, X_val, classes.n_outputs, "offset_val")
            name = "sample_weight_val"
            validation = make_rows(
                X_val, encoded, sample_weight_val, name, offset_val, by_cell=by_cell
            ).weighed(table, classes)

        def by_class(rows: Rows) -> NDArray[Any] | None:
            return None if classes.kind == "multilabel" else classes.numbers(rows.Y)

        self._set_output_names(classes.names)
        self._fit(X, rows, validation, classes.n_outputs, by_class, categories, given)
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

    def _check_thresholds(self, classes: Classes) -> None:
        """Refuse thresholds that do not go with the classes."""
        if self.thresholds is None:
            return
        if classes.kind == "multiclass":
            raise ValueError(
                f"thresholds={self.thresholds!r} was given, but of the {len(classes.values)} "
                "classes the most likely one is predicted; use thresholds=None."
            )
        shape = np.shape(self.thresholds)
        if shape not in ((), (classes.n_outputs,)):
            raise ValueError(
                f"thresholds holds {shape[0]} numbers, but there are {classes.n_outputs} labels; "
                "give one number for each label, or one for all."
            )

    def _given_thresholds(self, n_outputs: int) -> F64 | None:
        if self.thresholds is None or isinstance(self.thresholds, str):
            return None
        given = np.asarray(self.thresholds, dtype=np.float64)
        return np.broadcast_to(given, n_outputs).copy()

    def _tune_thresholds(self, validation_rows: Rows | None) -> None:
        if not isinstance(self.thresholds, str):
            return
        assert validation_rows is not None
        X = validation_rows.X
        if self.estimator is None:
            X = to_single(X, getattr(self, "feature_names_in_", None), "X_val")
        raw = self._raw_predictor(None)(X)
        if validation_rows.offset is not None:
            raw = raw + validation_rows.offset
        proba = self._fitted_loss.predict(raw)
        weight = self._given_weight(validation_rows)
        self.thresholds_ = tune_thresholds(proba, validation_rows.Y, weight)

    def _given_weight(self, rows: Rows) -> NDArray[Any] | None:
        # How much a mistake costs in training is no matter of how often labels are found.
        weight = without_class_weights(rows.weights, rows.Y, self._class_weights, self._classes)
        return as_rows(weight)

    def decision_function(
        self, X: Any, *, offset: Any = None, outputs: Any = None, dtype: DTypeLike = np.float64
    ) -> Any:
        """Raw predictions: (n_rows,) for two classes, else (n_rows, n_outputs).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.
        outputs : list of str or int, optional
            Names or numbers of the labels or classes to compute; None: all.
        dtype : float64 or float32
            Type of the result; with float32 no array of all predictions in double precision is
            made.

        Returns
        -------
        ndarray, or a frame (see :meth:`set_output`)
        """
        places, type_ = self._check_request(outputs, dtype)
        values = self._predicted(X, self._decision, places, type_, offset=offset)
        return self._framed(values, X, places, self._column_names())

    def predict_proba(
        self, X: Any, *, offset: Any = None, outputs: Any = None, dtype: DTypeLike = np.float64
    ) -> Any:
        """Probabilities: (n_rows, n_classes), or (n_rows, n_labels) of each label being present.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.
        outputs : list of str or int, optional
            Names or numbers of the labels or classes to return; None: all.
        dtype : float64 or float32
            Type of the result; with float32 no array of all predictions in double precision is
            made.

        Returns
        -------
        ndarray, or a frame (see :meth:`set_output`)
        """
        places, type_ = self._check_request(outputs, dtype)
        joint = self._classes.kind == "multiclass" or self._fitted_loss.custom is not None
        values = self._linked(X, self._probabilities, places, type_, offset, joint=joint)
        return self._framed(values, X, places, self._column_names())

    def predict(self, X: Any, *, offset: Any = None, outputs: Any = None) -> Any:
        """Classes (n_rows,), or an indicator of the labels (n_rows, n_labels).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.
        outputs : list of str or int, optional
            Names or numbers of the labels to predict; None: all.

        Returns
        -------
        ndarray, or a frame of the indicator (see :meth:`set_output`)
        """
        places, _ = self._check_request(outputs, np.float64)
        if self._classes.kind != "multilabel":
            if outputs is not None:
                raise ValueError(
                    f"outputs={outputs!r} was given, but one of {len(self.classes_)} classes is "
                    "predicted, for which all are needed; leave outputs out."
                )
            return self._predicted(X, self._labels, None, self.classes_.dtype, offset=offset)
        thresholds = getattr(self, "thresholds_", None)
        joint = self._fitted_loss.custom is not None and thresholds is not None
        if thresholds is not None and places is not None and not joint:
            thresholds = thresholds[places]

        def finish(raw: F64) -> NDArray[Any]:
            return self._indicator(raw, thresholds)

        values = self._linked(X, finish, places, np.int64, offset, joint=joint)
        return self._framed(values, X, places, self._column_names())

    def predict_labels(self, X: Any, *, offset: Any = None) -> list[tuple[Any, ...]]:
        """Return the labels of each row, as members of ``classes_`` and in their order.

        It is :meth:`predict` for labels, in the form of the sets that fit takes.
        """
        self._need_labels("predict_labels", "multilabel")
        sets: list[tuple[Any, ...]] = []

        def collect(raw: F64) -> NDArray[Any]:
            sets.extend(tuple(self.classes_[row > 0].tolist()) for row in self._labels(raw))
            return np.empty(len(raw), np.uint8)

        self._predicted(X, collect, None, np.uint8, offset=offset)
        return sets

    def predict_top_k(self, X: Any, k: int, *, offset: Any = None) -> tuple[NDArray[Any], F64]:
        """Return the k best labels or classes of each row, best first, and their scores.

        Scores of the others are not kept: memory is that of the result.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        k : int
            How many, at most the number of labels or classes.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
            Members of ``classes_``; of equals the one that comes first there comes first.
        scores : ndarray of shape (n_rows, k)
            Their :meth:`decision_function`.
        """
        self._need_labels("predict_top_k", "multilabel", "multiclass")
        whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
        if not whole or not 1 <= k <= self.n_outputs_:
            raise ValueError(
                f"k={k!r} is not allowed; it must be an integer from 1 to {self.n_outputs_}, the "
                "number of labels or classes."
            )
        model = self._progress.model
        if isinstance(model, _core.Ensemble) and not self._with_offset and offset is None:
            table = for_kernels(self._checked_X(X))
            pool = _core.Pool(resolve_threads(self.n_jobs))
            best, scores = model.top_k(pool, table, self.n_iter_, self.baseline_, int(k))
            return self.classes_[best], scores

        def ranked(raw: F64) -> NDArray[Any]:
            order = np.argsort(-raw, axis=1, kind="stable")[:, :k]
            return np.stack([order, np.take_along_axis(raw, order, axis=1)], axis=1)

        pairs = self._predicted(X, ranked, offset=offset, in_blocks=True)
        return self.classes_[pairs[:, 0].astype(np.intp)], pairs[:, 1]

    def _need_labels(self, method: str, *kinds: str) -> None:
        check_is_fitted(self, "n_iter_")
        if self._classes.kind not in kinds:
            wanted = "labels" if len(kinds) == 1 else "labels or more than two classes"
            raise ValueError(
                f"{method} is for {wanted}, but this model predicts one of {len(self.classes_)} "
                "classes; use predict."
            )

    def _column_names(self) -> Any:
        """Names of the columns of frames: labels or classes, None if labels have no names."""
        return self._known_names() if self._classes.kind == "multilabel" else self.classes_

    def _known_names(self) -> list[str] | None:
        if self._classes.kind != "multilabel":
            text = all(isinstance(each, str) for each in self.classes_)
            return [str(each) for each in self.classes_] if text else None
        return super()._known_names()

    def _is_single(self) -> bool:
        return self._classes.kind == "binary"

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Return the accuracy, for labels that of whole rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        y : array-like or list of sets
            Classes or labels as in :meth:`fit`.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.

        Returns
        -------
        float
        """
        # (Importing it takes as long as everything else.)
        from sklearn.metrics import accuracy_score

        check_is_fitted(self, "n_iter_")
        sets = read_label_sets(y)
        if sets is not None and self._classes.kind == "multilabel":
            y = indicator(sets, self.classes_)
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
        if kind == "multiclass":
            return np.asarray(values[raw.argmax(axis=1)])
        present = self._indicator(raw, getattr(self, "thresholds_", None))
        return present if kind == "multilabel" else np.asarray(values[present[:, 0]])

    def _indicator(self, raw: F64, thresholds: F64 | None) -> NDArray[np.int64]:
        """1 where a label is likelier than its threshold; without one, likelier than not."""
        if thresholds is None:
            return (raw > 0).astype(np.int64)
        return (self._fitted_loss.predict(raw) > thresholds).astype(np.int64)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
