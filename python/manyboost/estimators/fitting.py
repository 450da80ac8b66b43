"""Fitting: from checked arguments to the loop of :mod:`manyboost.training.boosting` and back."""

from __future__ import annotations

import copy
import functools
import math
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from manyboost import _core, memory
from manyboost.comm import CommError
from manyboost.data.categories import Categories
from manyboost.data.features import Table, check_X, resolve_categorical, to_single
from manyboost.data.rows import Rows, split_validation
from manyboost.data.stored import StoredTable
from manyboost.data.weights import refuse_unobserved_outputs
from manyboost.estimators.base import Model
from manyboost.threads import resolve_threads
from manyboost.training.boosting import Block, Boosting, Progress, Settings, Validation, auto_step
from manyboost.training.callbacks import (
    Display,
    FitTasks,
    Watchers,
    with_callbacks,
)
from manyboost.training.checkpoints import Recorder
from manyboost.training.constraints import Constraints, resolve_interactions, resolve_monotonic
from manyboost.training.learners import (
    ForeignEnsemble,
    ForeignLearner,
    TreeLearner,
    check_foreign,
    unweighted,
)
from manyboost.training.losses import (
    FittedLoss,
    fit_loss,
)
from manyboost.training.objectives import Facts, Objective
from manyboost.training.projections import resolve_n_components
from manyboost.training.racing import SHARE_OF_TIME, Contender, Race, contenders
from manyboost.training.scoring import LOSS, Scorer, as_list, resolve

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

EARLY_STOPPING_ROWS = 10_000

# Fitted attributes that not every fit has.
_OPTIONAL_ATTRIBUTES = (
    "thresholds_",
    "validation_score_",
    "validation_scores_",
    "validation_score_per_output_",
    "best_iter_per_output_",
)

#: Trees of each strategy.
KINDS = {
    "independent": "per_output",
    "multioutput": "vector",
    "relabel": "vector",
    "project": "scaled",
}


_Fit = TypeVar("_Fit", bound=Callable[..., Any])


def all_or_nothing(fit: _Fit) -> _Fit:
    """Make a fit that fails leave the estimator as it was; an interrupt, unless it keeps rounds."""
    managed = with_callbacks(fit)

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with memory.explaining_fit():
                return managed(self, *args, **kwargs)
        except BaseException as error:
            keeps = vars(self).get("_progress") is not before.get("_progress")
            if not (isinstance(error, KeyboardInterrupt) and keeps):
                vars(self).clear()
                vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


class Fitting(Model):
    """The half of an estimator that learns."""

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
            return Categories.of(X, mask, int(self.max_bins), names, self._comm)
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
        seed: int | None = None,
    ) -> None:
        """Train on encoded rows; everything is checked before any work is done.

        ``given`` are X, y and sample_weight as the user passed them, for scikit-learn's callbacks.
        ``seed`` is drawn from ``random_state`` if None.
        """
        continued = self.warm_start and hasattr(self, "_progress")
        is_heat = seed is not None
        began = time.monotonic()
        recorder = found = None
        if self.checkpoint is not None:
            recorder = Recorder.open(self, rows, validation_rows, categories)
            found = recorder.found
        if not continued:
            if seed is None:
                seed = int(check_random_state(self.random_state).randint(2**31 - 1))
                seed = self._comm.broadcast(seed)
            self._seed = seed if found is None else found.seed
            self._left_out = []
            self.__dict__.pop("search_results_", None)
        if self.strategy != "auto":
            self.strategy_, self.projection_ = self.strategy, self.projection
        elif found is not None:
            self.strategy_ = found.strategy
            self.projection_ = self.projection if callable(self.projection) else found.projection
            if found.search_results is not None:
                self.search_results_ = found.search_results
        elif not continued:
            self._race(X, rows, validation_rows, n_outputs, by_class, categories, given)
        elif callable(self.projection):
            # (A model file does not hold it.)
            self.projection_ = self.projection
        output_weight = self._check_output_weight(n_outputs)
        n_weighted = None if output_weight is None else int(np.count_nonzero(output_weight))
        n_components = resolve_n_components(
            self.n_components, n_outputs, self.projection_, self.strategy_, n_weighted
        )
        if self.estimator is not None:
            by_cell = rows.weights.by_cell
            check_foreign(self.estimator, self.strategy_, n_outputs, n_components, by_cell=by_cell)
        constraints = self._resolve_constraints(categories, n_outputs)
        if continued:
            self._check_warm_start(n_outputs, constraints, rows.offset is not None)
        threads = _core.Pool(resolve_threads(self.n_jobs))
        early_stopping: Any = self.early_stopping
        if early_stopping == "auto":
            early_stopping = validation_rows is not None or rows.count() > EARLY_STOPPING_ROWS
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
        splits = bool(early_stopping or tuned) and validation_rows is None
        if self.estimator is None:
            rounds = 0 if early_stopping or self.callbacks or self.max_time else self.max_iter
            self._check_memory(rows, n_outputs, n_components, int(rounds), threads, splits=splits)
        if splits:
            train, validation_rows = split_validation(
                rows, self.validation_fraction, self._seed, by_class=by_class(rows)
            )
            # The caller holds them too: all rows together would take memory for nothing.
            rows.become(train)
        pool = rows.pool(threads)
        names = getattr(self, "feature_names_in_", None)
        foreign = self.estimator is not None
        X_train = rows.X if foreign else to_single(rows.X, names)
        loss = self._fitted_loss if continued else self._fit_loss(rows, n_outputs, pool)
        projected = (
            not foreign
            and self.strategy_ in ("project", "relabel")
            and not (isinstance(self.projection_, str) and self.projection_ == "identity")
        )
        objective = loss.bind(rows.Y, rows.weights, pool, offset=rows.offset, projected=projected)
        settings = self._settings(loss, n_components, constraints)
        if self.strategy == "auto" and self.max_time is not None:
            left = self.max_time - (time.monotonic() - began)
            settings = replace(settings, max_time=max(0.0, left))
        learner = self._learner(X_train, rows, pool, categories, constraints)
        # A copy: an error leaves the fitted model as it was.
        if found is not None:
            progress = found.progress
        else:
            progress = deepcopy(self._progress) if continued else self._new_progress(n_outputs)
        progress.categories, progress.constraints = categories, constraints
        if progress.mean_importances is not None:
            # Those by output, which were left out of a file, could have gone on.
            progress.mean_importances = np.full_like(progress.mean_importances, np.nan)
        importance = None if output_weight is None else np.sqrt(output_weight)
        scale = self._split_scale(objective, importance, pool)
        state = objective.blank_state()
        validation = None
        if validation_rows is not None and early_stopping:
            X_val = validation_rows.X if foreign else to_single(validation_rows.X, names, "X_val")
            bound = loss.bind(
                validation_rows.Y,
                validation_rows.weights,
                validation_rows.pool(threads),
                offset=validation_rows.offset,
            )
            raw = bound.blank_state()
            scorers = self._scorers(loss, validation_rows, raw)
            validation = Validation(bound, learner.prepare(X_val), raw, scorers)
            if self.early_stopping == "per_output":
                Y_given = validation_rows.Y[:, :: self._n_levels]
                known = self._known_names()
                refuse_unobserved_outputs(Y_given, "the validation rows", known, self._comm)
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
        if progress.n_rounds > 0:
            self._add_rounds(progress, X_train, 0, progress.n_rounds, state, pool)
            if validation is not None:
                self._add_rounds(progress, X_val, 0, progress.n_rounds, validation.raw, pool)
        with_offset = rows.offset is not None
        tasks = None
        if FitTasks.wanted(self) and self._comm.size == 1:
            X_given, y_given, weight_given = given

            def fitted() -> dict[str, Any]:
                rounds = boosting.best, boosting.best_per_output
                return self._fitted(deepcopy(progress), loss, with_offset, *rounds)

            metadata = {} if weight_given is None else {"sample_weight": weight_given}
            n_rounds = settings.max_iter - progress.n_rounds
            tasks = FitTasks(self, X_given, y_given, metadata, n_rounds, fitted)
        first = self._comm.rank == 0
        display = Display(int(self.verbose), self.max_time) if self.verbose and first else None
        watchers = Watchers(list(self.callbacks or ()) if first else [], display, tasks)
        boosting = Boosting(
            settings,
            objective,
            learner,
            progress,
            state,
            rows.numbers,
            scale,
            importance,
            validation,
            watchers,
            pool,
            recorder,
        )
        try:
            boosting.run()
        except KeyboardInterrupt:
            # What is complete is kept; the interrupt still reaches the caller.
            if boosting.complete[0] > 0:
                boosting.settle()
                self._finish(progress, loss, with_offset, boosting)
                self._tune_thresholds(validation_rows)
            raise
        except CommError as error:
            error.round = boosting.complete[0] + 1
            # Rounds after the best are made again, as are all of outputs that stop one by one.
            if boosting.best > 0 and boosting.best_per_output is None and not is_heat:
                boosting.settle()
                attributes = self._fitted(progress, loss, with_offset, boosting.best, None)
                error.unfinished = vars(self) | attributes
            raise
        finally:
            watchers.close()
        self._finish(progress, loss, with_offset, boosting)
        self._tune_thresholds(validation_rows)
        if tasks is not None:
            tasks.end()

    def _check_memory(
        self,
        rows: Rows,
        n_outputs: int,
        n_components: int,
        rounds: int,
        pool: _core.Pool,
        *,
        splits: bool,
    ) -> None:
        """Refuse to train if there is too little memory; ``rounds`` will certainly be done."""
        n, weights = len(rows), rows.weights
        alone = self.strategy_ == "independent"
        identity = isinstance(self.projection_, str) and self.projection_ == "identity"
        shared = self.strategy_ == "multioutput" or (self.strategy_ == "relabel" and identity)
        components = 1 if alone else n_outputs if shared else n_components
        leaves = min(self.max_leaf_nodes or n, n // self._resolve_min_samples_leaf(n) + 1)
        training = memory.Training(
            n_outputs=n_outputs,
            n_columns=components,
            row_weights=weights.rows is not None,
            cell_weights=weights.by_cell,
            # Numbers: labels with loss="squared_error" have raw predictions beside the residuals.
            residuals_only=self.loss == "squared_error"
            and rows.Y.dtype.kind == "f"
            and not (alone or shared or weights.by_cell),
            splits=splits,
            max_bins=int(self.max_bins),
            max_leaves=int(min(leaves, 2 ** min(self.max_depth or 60, 60))),
            tree_kind=KINDS[self.strategy_],
            rounds=rounds,
            threads=pool.threads,
        )
        memory.check_training(training, rows.X, rows.Y)

    def _race(
        self,
        X: Table,
        rows: Rows,
        validation_rows: Rows | None,
        n_outputs: int,
        by_class: Callable[[Rows], NDArray[Any] | None],
        categories: Categories,
        given: tuple[Any, Any, Any],
    ) -> None:
        """Choose the strategy and the projection of ``strategy="auto"``."""
        self._refuse_foreign("strategy='auto'")
        if validation_rows is None:
            rows, validation_rows = split_validation(
                rows, self.validation_fraction, self._seed, by_class=by_class(rows)
            )
        weighted = self.output_weight is not None
        given_projection = self.projection, self.n_components
        race = Race(contenders(n_outputs, *given_projection, weighted=weighted))
        models: dict[Contender, Fitting] = {}

        def heat(contender: Contender, rounds: int, seconds: float | None) -> tuple[float, int]:
            if contender not in models:
                models[contender] = self._enter(contender)
            model = models[contender]
            model.max_iter, model.max_time = rounds, seconds
            arguments = (X, rows, validation_rows, n_outputs, by_class, categories, given)
            model._fit(*arguments, seed=self._seed)
            return float(model.validation_score_.max()), int(model.n_iter_)

        time_ = None if self.max_time is None else SHARE_OF_TIME * self.max_time
        winner = race.run(heat, int(self.max_iter), time_)
        self.strategy_ = winner.strategy
        self.projection_ = self.projection if winner.projection is None else winner.projection
        self.search_results_ = race.results

    def _enter(self, contender: Contender) -> Fitting:
        """Return an unfitted copy that trains as a contender does."""
        model = copy.copy(self)
        model.__dict__.pop("_progress", None)
        model.__dict__.pop("_skl_callbacks", None)
        model.strategy = contender.strategy
        if contender.projection is not None:
            model.projection = contender.projection
        # That of all rounds, which may depend on their number.
        model.learning_rate = self._resolve_learning_rate()
        model.early_stopping, model.n_iter_no_change = True, int(self.max_iter)
        model.warm_start, model.thresholds = True, None
        model.callbacks, model.verbose, model.checkpoint = None, 0, None
        return model

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
            "_release": _core.__version__,
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
        if self.scoring == LOSS:
            return [Scorer(LOSS, None)]
        estimator = copy.copy(self)
        estimator._fitted_loss = loss
        # Those that are to be tuned are not known yet: 0.5.
        estimator.__dict__.pop("thresholds_", None)
        thresholds = self._given_thresholds(len(loss.baseline))
        if thresholds is not None:
            estimator.thresholds_ = thresholds
        offset = 0.0 if rows.offset is None else np.where(loss.centred, rows.offset, 0.0)
        X = rows.X.load() if isinstance(rows.X, StoredTable) else rows.X
        running = self._running(estimator, X, lambda: loss.baseline + offset + raw)
        partial = rows.weights.partial
        weight = self._given_weight(rows)
        Y = self._targets(rows.Y)
        if Y.dtype == np.float32:
            # Targets in files may be of that type; scores in double precision differ from it.
            Y = Y.astype(np.float64)
        return resolve(self.scoring, running, X, Y, weight, partial=partial)

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

    def _fixed_parameters(self) -> dict[str, Any]:
        """What a warm start cannot change: the loss, and what a round adds to the model."""
        return {
            "loss": tuple(self.loss) if isinstance(self.loss, list | tuple) else self.loss,
            "quantile": tuple(np.atleast_1d(self.quantile).tolist()),
            "huber_delta": self.huber_delta,
            "strategy": self.strategy_,
            "step": self.step,
            "per_output": bool(self.early_stopping == "per_output"),
            "scoring": tuple(as_list(self.scoring)),
            "built_in_trees": self.estimator is None,
            # (The rows that thresholds are tuned on must not have been trained on.)
            "tuned": isinstance(self.thresholds, str),
        }

    def _new_progress(self, n_outputs: int) -> Progress:
        if self.estimator is not None:
            return Progress(ForeignEnsemble(n_outputs), None)
        return Progress(
            _core.Ensemble(KINDS[self.strategy_], n_outputs, self.n_features_in_),
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
            strategy=self.strategy_,
            projection=self.projection_,
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
            relabels = self.strategy_ == "relabel"
            return ForeignLearner(self.estimator, X, relabels=relabels, seed=self._seed)
        weight, n_rows = rows.weights.of_rows(rows.Y), pool.all_rows(len(rows))
        features = TreeLearner.bin(pool, X, weight, int(self.max_bins), categories.counts)
        unlimited = 2**31 - 1
        grower = _core.Grower(
            features,
            max_leaf_nodes=min(int(self.max_leaf_nodes or n_rows), n_rows + 1),
            max_depth=min(int(self.max_depth or unlimited), unlimited),
            min_samples_leaf=self._resolve_min_samples_leaf(n_rows),
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
        return min(int(self.min_samples_leaf), n_rows + 1)

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
        if self.strategy_ == "independent":
            raise ValueError(
                "output_weight has no effect with strategy='independent', which grows trees for "
                "each output alone; leave it at None or use another strategy."
            )
        if self.estimator is not None and self.strategy_ == "multioutput" and not weight.all():
            raise ValueError(
                f"output_weight is 0 for output {int(np.argmin(weight))}, which an estimator would "
                "not be fitted to with strategy='multioutput'; use a small weight, or "
                "estimator=None."
            )
        return np.repeat(weight, self._n_levels)

    def _split_scale(
        self, objective: Objective, importance: F64 | None, pool: _core.Pool
    ) -> F64 | None:
        """What residuals are multiplied by when trees are grown (n_outputs,); None: nothing."""
        scale = self._output_scale(objective, pool)
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

    def _set_output_names(self, names: Any) -> None:
        """Remember the names of the outputs, if they have any."""
        if names is not None:
            self.output_names_ = np.array([str(each) for each in names], dtype=object)
        elif hasattr(self, "output_names_"):
            del self.output_names_

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
