"""The estimators: scikit-learn's contract, around the loop of :mod:`manyboost.boosting`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from manyboost import _core, params
from manyboost.boosting import Boosting, Progress, Settings, Validation, auto_step
from manyboost.categories import Categories
from manyboost.constraints import Constraints, resolve_interactions, resolve_monotonic
from manyboost.frames import column_names, make_frame
from manyboost.inputs import (
    Classes,
    Rows,
    Table,
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
from manyboost.objectives import Objective
from manyboost.projections import Projection, resolve_n_components
from manyboost.thresholds import tune_thresholds
from manyboost.weights import (
    class_weights,
    refuse_unobserved_outputs,
    without_class_weights,
)

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

EARLY_STOPPING_ROWS = 10_000

#: Raw predictions that exist in double precision at a time where not all are wanted.
BLOCK_CELLS = 1 << 20

_KINDS = {
    "independent": "per_output",
    "multioutput": "vector",
    "relabel": "vector",
    "project": "scaled",
}


class _ManyBoost(BaseEstimator):
    """What the regressor and the classifier share."""

    # Constructor parameters, set by the subclasses.
    loss: str | Loss
    quantile: float = 0.5
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
    max_time: float | None
    warm_start: bool
    random_state: Any
    n_jobs: int | None

    # Set by fit.
    _fitted_loss: FittedLoss
    _progress: Progress
    _classes: Classes
    _class_weights: F64 | None
    _seed: int
    thresholds_: F64

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
        constraints = Constraints(
            resolve_monotonic(self.monotonic_cst, n_outputs, categories.mask, names),
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
    ) -> None:
        """Train on encoded rows; everything is checked before any work is done."""
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
            self._check_warm_start(n_outputs, constraints)
        else:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        pool = _core.Pool(resolve_threads(self.n_jobs))
        early_stopping = self.early_stopping
        if early_stopping == "auto":
            early_stopping = validation_rows is not None or len(rows) > EARLY_STOPPING_ROWS
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
        objective = loss.bind(rows.Y, rows.weights, pool, projected=projected)
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
            validation = Validation(
                loss.bind(validation_rows.Y, validation_rows.weights, pool),
                learner.prepare(X_val),
                np.zeros((len(validation_rows), n_outputs), np.float32),
            )
        if continued:
            self._add_rounds(progress, X_train, 0, progress.n_rounds, state, pool)
            if validation is not None:
                self._add_rounds(progress, X_val, 0, progress.n_rounds, validation.raw, pool)
        boosting = Boosting(
            settings, objective, learner, progress, state, rows.numbers, scale, validation, pool
        )
        try:
            kept = boosting.run()
        except KeyboardInterrupt:
            # What is complete is kept; the interrupt still reaches the caller.
            if progress.n_rounds > 0:
                self._finish(progress, loss, min(boosting.best, progress.n_rounds))
                self._set_thresholds(validation_rows)
            raise
        self._finish(progress, loss, kept)
        self._set_thresholds(validation_rows)

    def _set_thresholds(self, validation_rows: Rows | None) -> None:
        """Fix what the classifier predicts labels by; a regressor has no thresholds."""

    def _finish(self, progress: Progress, loss: FittedLoss, kept: int) -> None:
        """Set the fitted attributes."""
        progress.truncate(kept)
        self._progress = progress
        self._fitted_loss = loss
        self._trained_with = self._fixed_parameters()
        self.n_outputs_ = len(loss.baseline)
        self.n_iter_ = kept
        self.best_iter_ = kept
        self.baseline_ = loss.baseline
        self.train_score_ = np.array(progress.train_score)
        if progress.validation_score:
            self.validation_score_ = np.array(progress.validation_score)
        elif hasattr(self, "validation_score_"):
            del self.validation_score_

    def _check_warm_start(self, n_outputs: int, constraints: Constraints) -> None:
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
        if self._fixed_parameters() != self._trained_with:
            raise ValueError(
                "loss, strategy, step, the kind of estimator or thresholds changed since the "
                "fitted model was trained; keep them, or use warm_start=False."
            )
        if not constraints.agree_with(self._progress.constraints):
            raise ValueError(
                "monotonic_cst or interaction_cst changed since the fitted model was trained; keep "
                "them, or use warm_start=False."
            )

    def _fixed_parameters(self) -> tuple[Any, ...]:
        """What a warm start cannot change: the loss, and what a round adds to the model."""
        constants = (self.quantile, self.huber_delta)
        # (The rows that thresholds are tuned on must not have been trained on.)
        tuned = isinstance(self.thresholds, str)
        return (self.loss, constants, self.strategy, self.step, self.estimator is None, tuned)

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
            quantile=self.quantile,
            huber_delta=self.huber_delta,
        )

    def _settings(self, loss: FittedLoss, n_components: int, constraints: Constraints) -> Settings:
        facts = loss.facts
        l2 = self.l2_regularization
        step = auto_step(facts) if self.step == "auto" else self.step
        if self.step == "auto" and l2 not in ("auto", 0) and facts.curved:
            step = "newton"
        if step == "newton" and facts.kernel == "custom" and not facts.curved:
            raise ValueError(
                f"step='newton' needs second derivatives, but {type(loss.custom).__name__} has "
                "no hessian; implement it or use step='line_search'."
            )
        if l2 not in ("auto", 0) and (step == "line_search" or not facts.curved):
            raise ValueError(
                f"l2_regularization={l2!r} has no effect on line searches and on losses without "
                "curvature; use step='newton' with another loss, or leave it at 'auto'."
            )
        return Settings(
            strategy=self.strategy,
            projection=self.projection,
            n_components=n_components,
            step=step,
            l2=(1.0 if facts.regularised else 0.0) if l2 == "auto" else float(l2),
            learning_rate=self._resolve_learning_rate(),
            max_iter=int(self.max_iter),
            subsample=float(self.subsample),
            max_time=self.max_time,
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
        if len(weight) != n_outputs:
            raise ValueError(
                f"output_weight has {len(weight)} weights, but there are {n_outputs} outputs; pass "
                "one weight for each."
            )
        if self.strategy == "independent":
            raise ValueError(
                "output_weight has no effect with strategy='independent', which grows trees for "
                "each output alone; leave it at None or use another strategy."
            )
        return weight

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

    def _raw_predict(self, X: Any) -> F64:
        """Raw predictions (n_rows, n_outputs)."""
        return np.asarray(self._predicted(X, lambda raw: raw))

    def _predicted(
        self,
        X: Any,
        finish: Callable[[F64], NDArray[Any]],
        outputs: list[int] | None = None,
        dtype: DTypeLike = np.float64,
        *,
        in_blocks: bool = False,
    ) -> NDArray[Any]:
        """``finish`` applied to raw predictions (n_rows, n_outputs), of all outputs or some.

        Results of another type than float64 are put together from blocks of rows, so that double
        precision never exists for all of them.
        """
        X = self._checked_X(X)
        raw_of = self._raw_predictor(outputs)
        n_rows = X.shape[0]
        in_blocks = in_blocks or dtype != np.float64
        size = max(1, BLOCK_CELLS // self.n_outputs_) if in_blocks else n_rows
        if size >= n_rows:
            return finish(raw_of(X)).astype(dtype, copy=False)
        first = finish(raw_of(X[:size]))
        result = np.empty((n_rows, *first.shape[1:]), dtype)
        result[:size] = first
        for start in range(size, n_rows, size):
            result[start : start + size] = finish(raw_of(X[start : start + size]))
        return result

    def _raw_predictor(self, outputs: list[int] | None) -> Callable[[Table], F64]:
        """Return the function from checked features to raw predictions (n_rows, n_outputs)."""
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
        *,
        joint: bool,
    ) -> NDArray[Any]:
        """As :meth:`_predicted`; if the link is ``joint``, some outputs need the others too."""
        if outputs is None or not joint:
            return self._predicted(X, finish, outputs, dtype)
        return self._predicted(X, lambda raw: finish(raw)[:, outputs], None, dtype, in_blocks=True)

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
        return resolve_outputs(outputs, self._known_names(), self.n_outputs_), type_

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

    def _framed(self, values: NDArray[Any], X: Any, outputs: list[int] | None, names: Any) -> Any:
        """Return predictions as :meth:`set_output` says; ``names`` are those of all columns."""
        library = getattr(self, "_sklearn_output_config", {}).get("predict", "default")
        if library == "default" or values.ndim == 1:
            return values
        if names is None:
            names = [f"y{j}" for j in range(self.n_outputs_)]
        chosen = names if outputs is None else [names[j] for j in outputs]
        return make_frame(library, values, [str(each) for each in chosen], X)

    def _staged_raw_predict(self, X: Any) -> Iterator[F64]:
        """Yield raw predictions after each round."""
        X = self._checked_X(X)
        raw = np.zeros((X.shape[0], self.n_outputs_), np.float32)
        pool = _core.Pool(resolve_threads(self.n_jobs))
        for m in range(self.n_iter_):
            self._add_rounds(self._progress, X, m, m + 1, raw, pool)
            yield self.baseline_ + raw

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

    def _refuse_validation_alone(self, X_val: Any, Y_val: Any, weight_val: Any) -> None:
        if (X_val is None) != (Y_val is None):
            given, missing = ("X_val", "Y_val") if Y_val is None else ("Y_val", "X_val")
            raise ValueError(f"{given} was given without {missing}; pass both or neither.")
        if X_val is None and weight_val is not None:
            raise ValueError("sample_weight_val was given without X_val and Y_val; pass all.")


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
        The round with the best validation score; the model ends there.
    step_sizes_ : ndarray of shape (n_iter_, n_outputs_)
        Steps ρ, where the strategy has them.
    train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
        Negative mean loss after each round, entry 0 that of the baseline.
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
        loss: str | Loss = "squared_error",
        *,
        quantile: float = 0.5,
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
        max_time: float | None = None,
        warm_start: bool = False,
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
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        Y_val: Any = None,
        sample_weight_val: Any = None,
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

        Returns
        -------
        self
        """
        params.validate(self)
        self._check_loss()
        self._refuse_validation_alone(X_val, Y_val, sample_weight_val)
        continued = self.warm_start and hasattr(self, "_progress")
        X, categories = self._read_X(X, continued=continued)
        Y = self._check_targets(y, X, "y")
        self._refuse_unused_weights(sample_weight)
        names = column_names(y, "y")
        known = getattr(self, "output_names_", None) if continued else names
        check_output_names(y, known, "y")
        rows = make_rows(X, np.atleast_2d(Y.T).T, sample_weight, "sample_weight")
        refuse_unobserved_outputs(rows.Y, "y", names)
        validation = None
        if X_val is not None:
            X_val = self._read_X_val(X_val, categories)
            check_output_names(Y_val, known, "Y_val")
            Y_val = np.atleast_2d(self._check_targets(Y_val, X_val, "Y_val").T).T
            if Y_val.shape[1] != rows.Y.shape[1]:
                raise ValueError(
                    f"Y_val has {Y_val.shape[1]} outputs but y has {rows.Y.shape[1]}; they must "
                    "agree."
                )
            validation = make_rows(X_val, Y_val, sample_weight_val, "sample_weight_val")
        # Before training, which an interrupt may end with a model that predicts.
        self._one_dimensional = Y.ndim == 1
        self._set_output_names(known)
        self._fit(X, rows, validation, rows.Y.shape[1], lambda _: None, categories)
        return self

    def _check_loss(self) -> None:
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
        return Y

    def predict(self, X: Any, *, outputs: Any = None, dtype: DTypeLike = np.float64) -> Any:
        """Predict the outputs of rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        outputs : list of str or int, optional
            Names or numbers of the outputs to compute, in the order of the result; None: all.
        dtype : float64 or float32
            Type of the result; with float32 no array of all predictions in double precision is
            made.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), as y was in fit, or a frame
            See :meth:`set_output`.
        """
        places, type_ = self._check_request(outputs, dtype)
        joint = isinstance(self.loss, Loss)
        values = self._linked(X, self._shaped, places, type_, joint=joint)
        return self._framed(values, X, places, self._known_names())

    def staged_predict(self, X: Any) -> Iterator[F64]:
        """Yield predictions after each round, as arrays; the last are those of :meth:`predict`."""
        for raw in self._staged_raw_predict(X):
            yield self._shaped(raw)

    def _shaped(self, raw: F64) -> F64:
        predictions = self._fitted_loss.predict(raw)
        return predictions[:, 0] if self._one_dimensional else predictions

    def _is_single(self) -> bool:
        return self._one_dimensional

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
        The round with the best validation score; the model ends there.
    step_sizes_ : ndarray of shape (n_iter_, n_outputs_)
        Steps ρ, where the strategy has them.
    train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
        Negative mean loss after each round, entry 0 that of the baseline.
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
        max_time: float | None = None,
        warm_start: bool = False,
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
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        Y_val: Any = None,
        sample_weight_val: Any = None,
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

        Returns
        -------
        self
        """
        params.validate(self)
        self._check_loss()
        self._refuse_validation_alone(X_val, Y_val, sample_weight_val)
        continued = self.warm_start and hasattr(self, "_progress")
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
        by_cell = classes.kind == "multilabel"
        self._refuse_unused_weights(sample_weight)
        encoded = classes.encode(labels, softmax=softmax)
        rows = make_rows(X, encoded, sample_weight, "sample_weight", by_cell=by_cell)
        table = class_weights(self.class_weight, rows.Y, classes)
        rows = rows.weighed(table, classes)
        refuse_unobserved_outputs(rows.Y, "y", classes.names)
        validation = None
        if X_val is not None:
            X_val = self._read_X_val(X_val, categories)
            _, labels_val = read_labels(Y_val, X_val, "Y_val", classes)
            check_output_names(Y_val, classes.names, "Y_val")
            encoded = classes.encode(labels_val, softmax=softmax, name="Y_val")
            validation = make_rows(
                X_val, encoded, sample_weight_val, "sample_weight_val", by_cell=by_cell
            ).weighed(table, classes)
        self._classes = classes
        self._class_weights = table
        self.classes_ = classes.values
        self._set_output_names(classes.names)

        def by_class(rows: Rows) -> NDArray[Any] | None:
            return None if classes.kind == "multilabel" else classes.numbers(rows.Y)

        self._fit(X, rows, validation, classes.n_outputs, by_class, categories)
        return self

    def _check_loss(self) -> None:
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

    def _set_thresholds(self, validation_rows: Rows | None) -> None:
        if self.thresholds is None:
            if hasattr(self, "thresholds_"):
                del self.thresholds_
            return
        if not isinstance(self.thresholds, str):
            given = np.asarray(self.thresholds, dtype=np.float64)
            self.thresholds_ = np.broadcast_to(given, self.n_outputs_).copy()
            return
        assert validation_rows is not None
        X = validation_rows.X
        if self.estimator is None:
            X = to_single(X, getattr(self, "feature_names_in_", None), "X_val")
        proba = self._fitted_loss.predict(self._raw_predictor(None)(X))
        Y, weights = validation_rows.Y, validation_rows.weights
        # How much a mistake costs in training is no matter of how often labels are found.
        weight = without_class_weights(weights, Y, self._class_weights, self._classes)
        self.thresholds_ = tune_thresholds(proba, Y, weight)

    def decision_function(
        self, X: Any, *, outputs: Any = None, dtype: DTypeLike = np.float64
    ) -> Any:
        """Raw predictions: (n_rows,) for two classes, else (n_rows, n_outputs).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
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
        values = self._predicted(X, self._decision, places, type_)
        return self._framed(values, X, places, self._column_names())

    def predict_proba(self, X: Any, *, outputs: Any = None, dtype: DTypeLike = np.float64) -> Any:
        """Probabilities: (n_rows, n_classes), or (n_rows, n_labels) of each label being present.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
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
        joint = self._classes.kind == "multiclass" or isinstance(self.loss, Loss)
        values = self._linked(X, self._probabilities, places, type_, joint=joint)
        return self._framed(values, X, places, self._column_names())

    def predict(self, X: Any, *, outputs: Any = None) -> Any:
        """Classes (n_rows,), or an indicator of the labels (n_rows, n_labels).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
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
            return self._predicted(X, self._labels, None, self.classes_.dtype)
        thresholds = getattr(self, "thresholds_", None)
        joint = isinstance(self.loss, Loss) and thresholds is not None
        if thresholds is not None and places is not None and not joint:
            thresholds = thresholds[places]

        def finish(raw: F64) -> NDArray[Any]:
            return self._indicator(raw, thresholds)

        values = self._linked(X, finish, places, np.int64, joint=joint)
        return self._framed(values, X, places, self._column_names())

    def predict_labels(self, X: Any) -> list[tuple[Any, ...]]:
        """Return the labels of each row, as members of ``classes_`` and in their order.

        It is :meth:`predict` for labels, in the form of the sets that fit takes.
        """
        self._need_labels("predict_labels", "multilabel")
        sets: list[tuple[Any, ...]] = []

        def collect(raw: F64) -> NDArray[Any]:
            sets.extend(tuple(self.classes_[row > 0].tolist()) for row in self._labels(raw))
            return np.empty(len(raw), np.uint8)

        self._predicted(X, collect, None, np.uint8)
        return sets

    def predict_top_k(self, X: Any, k: int) -> tuple[NDArray[Any], F64]:
        """Return the k best labels or classes of each row, best first, and their scores.

        Scores of the others are not kept: memory is that of the result.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        k : int
            How many, at most the number of labels or classes.

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
        if isinstance(model, _core.Ensemble):
            table = for_kernels(self._checked_X(X))
            pool = _core.Pool(resolve_threads(self.n_jobs))
            best, scores = model.top_k(pool, table, self.n_iter_, self.baseline_, int(k))
            return self.classes_[best], scores

        def ranked(raw: F64) -> NDArray[Any]:
            order = np.argsort(-raw, axis=1, kind="stable")[:, :k]
            return np.stack([order, np.take_along_axis(raw, order, axis=1)], axis=1)

        pairs = self._predicted(X, ranked, in_blocks=True)
        return self.classes_[pairs[:, 0].astype(np.intp)], pairs[:, 1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, for labels that of whole rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        y : array-like or list of sets
            Classes or labels as in :meth:`fit`.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        check_is_fitted(self, "n_iter_")
        sets = read_label_sets(y)
        if sets is not None and self._classes.kind == "multilabel":
            y = indicator(sets, self.classes_)
        return float(super().score(X, y, sample_weight))

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

    def staged_decision_function(self, X: Any) -> Iterator[F64]:
        """Yield :meth:`decision_function` after each round."""
        return map(self._decision, self._staged_raw_predict(X))

    def staged_predict_proba(self, X: Any) -> Iterator[F64]:
        """Yield :meth:`predict_proba` after each round."""
        return map(self._probabilities, self._staged_raw_predict(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield :meth:`predict` after each round."""
        return map(self._labels, self._staged_raw_predict(X))

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
