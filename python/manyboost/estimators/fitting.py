"""Fitting: read the rows, make a plan, boost, finish."""

from __future__ import annotations

import copy
import functools
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from manyboost import _core, memory, params
from manyboost.arrays import F32
from manyboost.comm import Comm, CommError
from manyboost.data.categories import Categories
from manyboost.data.doubles import mixed_features
from manyboost.data.features import Table, check_X, resolve_categorical
from manyboost.data.rows import Reader, Rows
from manyboost.data.sparse_labels import SparseLabels
from manyboost.data.stored import StoredTable
from manyboost.errors import warn
from manyboost.estimators.base import Model
from manyboost.estimators.fits import Fit, Given, Result, Unseen, refuse_other_outputs, start_of
from manyboost.estimators.sparsity import rankers
from manyboost.persistence.checkpoint import Recorder
from manyboost.persistence.identity import Identity
from manyboost.persistence.parts import IMPORTANCES
from manyboost.threads import resolve_threads
from manyboost.training.assembly import assemble, new_progress
from manyboost.training.baselines import fit_loss
from manyboost.training.boosting import Boosting
from manyboost.training.callbacks import Display, FitTasks, Watchers, unwatched, with_callbacks
from manyboost.training.checkpoints import Checkpoint, Start
from manyboost.training.ensembles import Ensemble, TreeEnsemble
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.folds import folds_of, group_numbers, leave_out, member_seed
from manyboost.training.learners import without_weights
from manyboost.training.plan import (
    Plan,
    check_memory,
    make_plan,
    refuse_foreign,
    resolve_limits,
    resolve_max_iter,
    resolve_random_state,
    with_loss,
)
from manyboost.training.progress import Progress
from manyboost.training.racing import FEW_FOLDS, FEW_ROWS, race
from manyboost.training.scoring import LOSS, Scorer, as_list, resolve, score_name
from manyboost.training.splits import is_drawn, lost_output, read_splits, same_splits, set_apart
from manyboost.training.strategies import SPARSE_TREES
from manyboost.training.training_data import Split, TrainingData

# How the names of fitted attributes begin that not every fit has,
_OPTIONAL_ATTRIBUTES = (
    "thresholds_",
    "validation_score",
    "best_iter_per_",
    "oof_",
    "_member_",
    "_calibrat",
    "_known",
)
# and of those that come from rows a model was not trained on.
_FROM_UNSEEN_ROWS = ("thresholds_", "oof_", "_calibrat")

_Fit = TypeVar("_Fit", bound=Callable[..., Any])


def all_or_nothing(fit: _Fit) -> _Fit:
    """Make a fit that fails leave the estimator as it was; an interrupt, unless it keeps rounds."""
    managed = memory.explaining_fit()(with_callbacks(fit))

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return managed(self, *args, **kwargs)
        except BaseException as error:
            keeps = vars(self).get("_progress") is not before.get("_progress")
            if not (isinstance(error, KeyboardInterrupt) and keeps):
                _restore(self, before)
            raise

    return guarded  # type: ignore[return-value]


def _restore(model: Any, attributes: dict[str, Any]) -> None:
    vars(model).clear()
    vars(model).update(attributes)


class Fitting(Model):
    """The half of an estimator that learns."""

    @all_or_nothing
    def _fit(self, given: Given) -> None:
        """Read the rows, make a plan, boost, finish."""
        began = time.monotonic()
        params.validate(self)
        earlier = self._earlier()
        data = self._read(given, continued=earlier is not None)
        splits = self._read_splits(given, data.n_given, continued=earlier is not None)
        data = replace(data, splits=splits)
        recorders = self._open_checkpoints(data, earlier)
        start = self._start(data, earlier, start_of(recorders or []))
        plan = make_plan(
            self, data, seed=start.seed, strategy=start.strategy, projection=start.projection
        )
        if earlier is not None:
            self._check_warm_start(plan, data, earlier)
        if self.strategy == "auto" and plan.max_time is not None:
            plan = replace(plan, max_time=max(0.0, plan.max_time - (time.monotonic() - began)))
        threads = _core.Pool(resolve_threads(self.n_jobs))
        check_memory(plan, self, data, threads.threads)
        if plan.splits_rows and not self.refit_all:
            data = self._split(data)
        found = None if recorders is None else recorders[0].found
        # A copy: an error leaves the fitted model as it was.
        progress = copy.deepcopy(earlier) if found is None else found.progress
        for fold, recorder in enumerate(recorders or ()):
            recorder.start = replace(start, seed=member_seed(start.seed, fold))
        self._boost(plan, data, progress, recorders, threads, given)

    # ------------------------------------------------------------------ reading

    @abstractmethod
    def _reader(self, given: Given, *, continued: bool) -> Reader:
        """Return what reads the targets, after the parameters that concern them are checked."""

    @abstractmethod
    def _learn_targets(self, reader: Reader) -> None:
        """Remember what predictions need to know about the targets."""

    def _read(self, given: Given, *, continued: bool) -> TrainingData:
        """Check the arguments of fit; return training and validation rows."""
        given.refuse_validation_alone()
        reader = self._reader(given, continued=continued)
        how: dict[str, Any] = {"categorical": self.categorical_features, "comm": given.comm}
        X = check_X(self, given.X, reset=not continued, refuse_unknown=continued, **how)
        names = getattr(self, "feature_names_in_", None)
        categories = self._find_categories(X, names, given.comm, continued=continued)
        mixed: list[int] = []
        if continued:
            X = categories.encode(X, names, refuse_unknown=True)
        elif self.estimator is None:
            mixed = mixed_features(X, given.row_numbers, given.comm)
        weighted_estimator = given.sample_weight is not None and self.estimator is not None
        if weighted_estimator and not has_fit_parameter(self.estimator, "sample_weight"):
            raise without_weights(self.estimator)
        n_given = X.shape[0]
        rows = reader.training(X, given.y, given.sample_weight, given.offset, given.row_numbers)
        if not continued:
            categories = categories.with_cuts(rows, mixed, int(self.max_bins))
            rows = replace(rows, X=categories.encode(rows.X, names))
        validation = None
        if given.X_val is not None:
            X = check_X(self, given.X_val, reset=False, name="X_val", comm=given.comm)
            X = categories.encode(X, names, "X_val")
            weight, offset = given.sample_weight_val, given.offset_val
            validation = reader.validation(X, given.Y_val, weight, offset)
        # Before training, which an interrupt may end with a model that predicts.
        self._learn_targets(reader)
        self.__dict__.pop("output_names_", None)
        if reader.output_names is not None:
            self.output_names_ = np.array([str(each) for each in reader.output_names], dtype=object)
        known, d = self._known_names(), reader.n_outputs
        groups, has_splitter = None, not isinstance(self.validation_split, str)
        if given.groups is not None and self.n_folds is None and not has_splitter:
            what = "groups was given, but only n_folds and a splitter as validation_split use it"
            raise ValueError(f"{what}; set one of them, or leave it out.")
        if given.groups is not None:
            groups = group_numbers(given.groups, n_given)
        parts = n_given, reader.n_levels, names, known, self._target_names(), groups
        return TrainingData(rows, validation, categories, d, *parts)

    def _read_splits(
        self, given: Given, n_given: int, *, continued: bool
    ) -> tuple[Split, ...] | None:
        """Return the splits of a splitter, which are made of what was passed to fit."""
        splitter, fraction = self.validation_split, self.validation_fraction
        if isinstance(splitter, str):
            return None
        what = f"validation_split={splitter!r}"
        if isinstance(given.X, StoredTable):
            raise ValueError(f"{what} takes rows in memory, but they are in files; use 'last'.")
        if fraction != params.PARAMS["validation_fraction"].default:
            problem = f"validation_fraction={fraction!r} says how many rows are set apart, but"
            raise ValueError(f"{problem} {what} does; leave one of them out.")
        asked = splitter, given.X, given.y, given.groups, n_given, self.n_folds
        splits = read_splits(*asked)
        if continued and not same_splits(splits, read_splits(*asked)):
            problem = "validation_split draws other rows each time, and the model has seen some"
            remedy = "use warm_start=False, and a splitter with a random_state to add rounds later"
            raise ValueError(f"{problem}; {remedy}.")
        return splits

    def _find_categories(self, X: Table, names: Any, comm: Comm, *, continued: bool) -> Categories:
        """Categories of checked features; those of the fitted model if it is continued."""
        mask = resolve_categorical(X, self.categorical_features, names)
        mask[list(self._category_labels.of_column)] = True
        if not continued:
            if mask.any():
                refuse_foreign(self, "categorical_features")
            return Categories.of(X, mask, int(self.max_bins), names, comm)
        known = self._progress.categories
        if not np.array_equal(mask, known.mask):
            problem = "categorical_features names other features than those of the fitted model"
            raise ValueError(f"{problem}; keep to these, or fit a new model.")
        return known

    # ------------------------------------------------------------------ planning

    def _earlier(self) -> Progress | None:
        """Return the progress that a warm start continues."""
        return self._progress if self.warm_start and hasattr(self, "_progress") else None

    def _open_checkpoints(
        self, data: TrainingData, earlier: Progress | None
    ) -> list[Recorder] | None:
        """Return what keeps checkpoints of the fit, or of the member of each fold."""
        if self.checkpoint is None:
            return None
        refuse_foreign(self, "checkpoint")
        parameters = self._params_by_position()
        named = ("feature_names_in_", "output_names_", "target_name_", "classes_")
        names: list[Any] = [getattr(self, each, None) for each in named]
        names += [self.target_names_] if hasattr(self, "target_names_") else []
        names.append([list(pair) for pair in sorted(self._category_labels.of_column.items())])
        recorders, most = [], resolve_max_iter(self, data, self.strategy)
        for fold in [None] if self.n_folds is None else range(self.n_folds):
            identity = Identity.of(parameters, names, data, fold)
            place = Checkpoint.of(self.checkpoint, fold)
            parts = place, identity, data.categories
            recorders.append(Recorder(*parts, max_iter=most, earlier=earlier))
        return recorders

    def _start(self, data: TrainingData, earlier: Progress | None, found: Start | None) -> Start:
        """Draw the seed and choose the strategy, or take those of a fit that goes on."""
        if earlier is None:
            if found is None:
                drawn = check_random_state(resolve_random_state(self, data)).randint(2**31 - 1)
                self._seed = int(data.rows.comm.broadcast(int(drawn)))
            else:
                self._seed = found.seed
            self._left_out = []
            self.__dict__.pop("search_results_", None)
        if self.strategy != "auto":
            self.strategy_, self.projection_ = self.strategy, self.projection
        elif found is not None:
            self.strategy_, self.projection_ = found.strategy, found.projection
            if found.search_results is not None:
                self.search_results_ = found.search_results
        elif earlier is None:
            self._race(data)
        if callable(self.projection):
            # A model file does not hold it.
            self.projection_ = self.projection
        results = getattr(self, "search_results_", None)
        return Start(self._seed, self.strategy_, self.projection_, results)

    def _race(self, data: TrainingData) -> None:
        """Choose the strategy and the projection of ``strategy="auto"``."""
        refuse_foreign(self, "strategy='auto'")
        threads = _core.Pool(resolve_threads(self.n_jobs))
        parts = [data] if data.validation is not None else self._parts_to_race_on(data, threads)
        n_rounds = resolve_max_iter(self, data, "auto")
        winner, self.search_results_ = race(
            self, parts, self._seed, self._scorers, threads, n_rounds
        )
        self.strategy_ = winner.strategy
        self.projection_ = self.projection if winner.projection is None else winner.projection

    def _parts_to_race_on(self, data: TrainingData, threads: _core.Pool) -> list[TrainingData]:
        """Return the data with validation rows; few rows once without each of some folds."""
        n_folds = min(FEW_FOLDS, self.n_folds or FEW_FOLDS)
        if n_folds <= len(data.rows) < FEW_ROWS and data.rows.comm.size == 1 and is_drawn(self):
            fold = folds_of(data, n_folds, self._seed)
            parts = [leave_out(data, fold, k, threads) for k in range(n_folds)]
            if all(lost_output(part.rows, data) is None for part in parts):
                return parts
        return [self._split(data, self.validation_fraction or 0.1)]

    def _check_warm_start(self, plan: Plan, data: TrainingData, earlier: Progress) -> None:
        if hasattr(self, "best_iter_per_fold_"):
            problem = "the fitted model is the mean of models that n_folds made"
            raise ValueError(f"{problem}; no rounds can be added to it, use warm_start=False.")
        if plan.max_iter < self.n_iter_:
            raise ValueError(
                f"max_iter={plan.max_iter} is less than the {self.n_iter_} rounds of the fitted "
                "model; with warm_start=True it must be at least that."
            )
        refuse_other_outputs(self, data, "fit", ", or use warm_start=False")
        if self.max_iter == "auto" and plan.max_iter == self.n_iter_:
            message = f"The model has all {self.n_iter_} rounds of max_iter='auto'"
            remedy = "no round is added. Use max_iter=model.n_iter_ + 100, or another number"
            warn(f"{message}: {remedy}.")
        if isinstance(self.thresholds, str) and not self._trained_with["tuned"]:
            needed = "rows that were set apart for it from the first round on"
            problem = f"thresholds='tuned' needs {needed}"
            raise ValueError(f"{problem}; give the thresholds, or use warm_start=False.")
        changed = None
        model, keeps_few = earlier.model, plan.max_leaf_outputs is not None
        if self._fixed_parameters() != self._trained_with:
            changed = "loss, strategy, step, scoring, stopping per output, estimator or thresholds"
        elif plan.constraints != earlier.constraints:
            changed = "monotonic_cst or interaction_cst"
        elif isinstance(model, TreeEnsemble) and (model.trees.kind == SPARSE_TREES) != keeps_few:
            changed = f"max_leaf_outputs (now {self.max_leaf_outputs!r})"
        if changed is not None:
            problem = f"{changed} changed since the fitted model was trained"
            raise ValueError(f"{problem}; keep to what it was, or use warm_start=False.")
        if plan.early_stopping != bool(earlier.validation_score):
            now, has = ("on", "has no") if plan.early_stopping else ("off", "has")
            problem = f"early stopping is {now} (early_stopping={self.early_stopping!r}), but the "
            problem += f"fitted model {has} validation scores"
            raise ValueError(f"{problem}; change early_stopping, or use warm_start=False.")

    def _fixed_parameters(self) -> dict[str, Any]:
        """What a warm start cannot change: the loss, and what a round adds to the model."""
        # Parameters that came later are there only if they are not at their defaults.
        power = {} if self.power == params.PARAMS["power"].default else {"power": self.power}
        return power | {
            "loss": tuple(self.loss) if isinstance(self.loss, list | tuple) else self.loss,
            "quantile": tuple(np.atleast_1d(self.quantile).tolist()),
            "huber_delta": self.huber_delta,
            "strategy": self.strategy_,
            "step": self.step,
            "per_output": bool(self.early_stopping == "per_output"),
            "scoring": tuple(as_list(self.scoring)),
            "built_in_trees": self.estimator is None,
            # The rows that thresholds are tuned on must not have been trained on.
            "tuned": isinstance(self.thresholds, str),
        }

    # ------------------------------------------------------------------ boosting

    def _boost(
        self,
        plan: Plan,
        data: TrainingData,
        progress: Progress | None,
        recorders: list[Recorder] | None,
        threads: _core.Pool,
        given: Given,
    ) -> None:
        """Run the plan; keep what is complete if it is interrupted."""
        watchers, share = unwatched(), 1.0
        if self.n_folds is None:
            recorder = None if recorders is None else recorders[0]
            part = data
            if self.refit_all:
                part = self._split(data)
                share = part.rows.count() / data.rows.count()
            fit = self._one_fit(plan, part, progress, recorder, watchers, threads)
            del part
        else:
            fit = self._fits_of_folds(plan, data, recorders, watchers, threads)
        self._watch(watchers, fit, given)
        try:
            fit.boosting.run()
        except KeyboardInterrupt:
            # What is complete is kept; the interrupt still reaches the caller.
            if fit.boosting.complete.n_rounds > 0:
                self._finish(fit.result())
            raise
        except CommError as error:
            complete = fit.boosting.complete
            error.round = complete.n_rounds + 1
            # Rounds after the best are made again, as are all of outputs that stop one by one.
            if complete.best > 0 and complete.best_per_output is None:
                error.unfinished = vars(self) | fit.result().attributes
            raise
        finally:
            watchers.close()
        self._finish(fit.result())
        del fit  # with what members were trained on
        if self.refit_all:
            stays = self._attributes_that_begin(_FROM_UNSEEN_ROWS)
            attributes = self._refitted(plan, data, share, threads)
            self._finish(Result(attributes | stays, None), tunes=False)
        _warn_of_divergence(self._progress, plan)
        if watchers.tasks is not None:
            watchers.tasks.end()

    def _one_fit(
        self,
        plan: Plan,
        data: TrainingData,
        progress: Progress | None,
        recorder: Recorder | None,
        watchers: Watchers,
        threads: _core.Pool,
    ) -> Fit:
        """Make one model ready to train."""
        known = None if self._earlier() is None else self._fitted_loss
        boosting, loss = self._assemble(plan, data, threads, watchers, progress, recorder, known)

        def result(*, copied: bool = False) -> Result:
            boosting.settle()
            kept = copy.deepcopy(boosting.progress) if copied else boosting.progress
            _, best, per_output = boosting.complete
            with_offset = data.rows.offset is not None
            attributes = self._fitted(kept, loss, with_offset, best, per_output)
            return Result(attributes, data.validation)

        return Fit(boosting, result)

    def _assemble(
        self,
        plan: Plan,
        data: TrainingData,
        threads: _core.Pool,
        watchers: Watchers | None = None,
        progress: Progress | None = None,
        recorder: Recorder | None = None,
        loss: FittedLoss | None = None,
        replayed: _core.Ensemble | None = None,
    ) -> tuple[Boosting, FittedLoss]:
        """Fit the loss, unless it is known, and put together what trains a model."""
        loss = loss or fit_loss(self, data, threads)
        plan = with_loss(plan, self, loss)
        progress = progress or new_progress(plan, data.n_outputs, self.n_features_in_)
        limits = resolve_limits(self, data, plan.strategy.name)
        watchers = unwatched() if watchers is None else watchers
        scorers = functools.partial(self._scorers, loss)
        parts = data, loss, progress, scorers, watchers, threads, recorder, replayed
        return assemble(plan, limits, *parts), loss

    def _split(self, data: TrainingData, fraction: int | float | None = None) -> TrainingData:
        """Set validation rows apart, by default as many as ``validation_fraction`` says."""
        fraction = self.validation_fraction if fraction is None else fraction
        return set_apart(self, data, fraction, self._seed)

    def _watch(self, watchers: Watchers, fit: Fit, given: Given) -> None:
        """Add those who want to be told about rounds; of several ranks the first tells them."""
        if given.comm.rank > 0:
            return
        watchers.callbacks = list(self.callbacks or ())
        if self.verbose:
            score = score_name(self.scoring)
            watchers.display = Display(int(self.verbose), fit.boosting.plan.max_time, score=score)
        if FitTasks.wanted(self):
            weight = {} if given.sample_weight is None else {"sample_weight": given.sample_weight}
            n_rounds = fit.boosting.plan.max_iter - fit.boosting.n_rounds
            watchers.tasks = FitTasks(
                self, given.X, given.y, weight, n_rounds, lambda: fit.result(copied=True).attributes
            )

    def _scorers(self, loss: FittedLoss, rows: Rows, raw: F32, model: Ensemble) -> list[Scorer]:
        """Scorers of the validation rows, whose raw predictions are kept in ``raw``."""
        if self.scoring == LOSS:
            return [Scorer(LOSS, None)]
        if isinstance(rows.Y, SparseLabels):
            return rankers(self, loss, rows, model)
        estimator = copy.copy(self)
        estimator._fitted_loss = loss
        # Thresholds that are to be tuned, and calibrators, are not known yet.
        for later in ("thresholds_", "_calibrator"):
            estimator.__dict__.pop(later, None)
        if (thresholds := self._given_thresholds(len(loss.baseline))) is not None:
            estimator.thresholds_ = thresholds
        offset = 0.0 if rows.offset is None else np.where(loss.centred, rows.offset, 0.0)
        X = rows.X.load() if isinstance(rows.X, StoredTable) else rows.X
        running = self._running(estimator, X, lambda: loss.baseline + offset + raw)
        Y = self._targets(rows.Y)
        if Y.dtype == np.float32:
            # Targets in files may have this type; scores in double precision differ from it.
            Y = Y.astype(np.float64)
        weight = self._given_weight(rows)
        return resolve(self.scoring, running, X, Y, weight, partial=rows.weights.partial)

    def _given_weight(self, rows: Rows) -> NDArray[Any] | None:
        """Weights (n_rows,) or (n_rows, n_outputs) as they were given, without those of classes."""
        weights = rows.weights
        return weights.rows if weights.cells is None else weights.matrix(rows.Y)

    # ------------------------------------------------------------------ finishing

    def _finish(self, result: Result, *, tunes: bool = True) -> None:
        """Set the fitted attributes, and tune thresholds that are to be tuned: all, or nothing."""
        before = dict(vars(self))
        try:
            for name in self._attributes_that_begin(_OPTIONAL_ATTRIBUTES):
                delattr(self, name)
            self.__dict__.update(result.attributes)
            if result.unseen is not None:
                self._keep_unseen(result.unseen)
            if tunes:
                self._tune_thresholds(result.validation)
            else:  # the rows that thresholds were tuned on have been trained on by now
                self._trained_with = self._trained_with | {"tuned": False}
        except BaseException:
            _restore(self, before)
            raise

    def _attributes_that_begin(self, beginnings: tuple[str, ...]) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name.startswith(beginnings)}

    @abstractmethod
    def _fits_of_folds(
        self,
        plan: Plan,
        data: TrainingData,
        recorders: list[Recorder] | None,
        watchers: Watchers,
        threads: _core.Pool,
    ) -> Fit:
        """Make the members of folds ready to train."""

    @abstractmethod
    def _refitted(
        self, plan: Plan, data: TrainingData, share: float, threads: _core.Pool
    ) -> dict[str, Any]:
        """Fit again to all rows, with the rounds that were found on a share of them.

        Return the attributes.
        """

    @abstractmethod
    def _keep_unseen(self, unseen: Unseen) -> None:
        """Keep what members predict for rows that they have not seen."""

    def _tune_thresholds(self, validation: Rows | Unseen | None) -> None:
        """Choose the thresholds that are to be tuned; a regressor has none."""

    def _fitted(
        self,
        progress: Progress,
        loss: FittedLoss,
        with_offset: bool,
        kept: int,
        per_output: NDArray[np.intp] | None = None,
    ) -> dict[str, Any]:
        """Return the attributes of an estimator that keeps so many rounds of ``progress``."""
        progress.truncate(kept)
        if per_output is not None:
            progress.keep_best(per_output)
        left_out = self._left_out
        if progress.importances is None and isinstance(progress.model, TreeEnsemble):
            if progress.mean_importances is None:
                progress.mean_importances = progress.model.split_importances()
            left_out = sorted({*left_out, IMPORTANCES})
        attributes: dict[str, Any] = {
            "_progress": progress,
            "_fitted_loss": loss,
            "_with_offset": with_offset,
            "_trained_with": self._fixed_parameters(),
            "_release": _core.__version__,
            "_left_out": left_out,
            "n_outputs_": len(loss.baseline),
            "n_iter_": kept,
            "best_iter_": kept,
            "baseline_": loss.baseline,
            "train_score_": np.array(progress.train_score),
        }
        if progress.validation_score:
            attributes["validation_score_"] = np.array(progress.validation_score)
        if curves := progress.validation_per_output:
            attributes["validation_score_per_output_"] = np.array(curves)
        if progress.validation_score and isinstance(self.scoring, list | tuple):
            scores = progress.validation_scores.items()
            attributes["validation_scores_"] = {name: np.array(curve) for name, curve in scores}
        if per_output is not None:
            attributes["best_iter_per_output_"] = per_output
        if (thresholds := self._given_thresholds(len(loss.baseline))) is not None:
            attributes["thresholds_"] = thresholds
        return attributes


def _warn_of_divergence(progress: Progress, plan: Plan) -> None:
    """Warn if training ended with a larger loss than it began with."""
    first, last = progress.train_score[0], progress.train_score[-1]
    if last < first - 1e-6 * abs(first):
        message = (
            f"Training ended with a mean loss of {-last:.6g}, above the {-first:.6g} of the "
            f"baseline; use a smaller learning_rate than {plan.learning_rate:g}, or a "
            "larger l2_regularization."
        )
        warn(message)
