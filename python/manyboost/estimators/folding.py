"""Means of models: members of folds, and fits to all rows once the number of rounds is known."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manyboost import _core, params
from manyboost.arrays import F64
from manyboost.data.features import Table, to_single
from manyboost.estimators.fits import Fit, Given, Result, Unseen, refuse_other_outputs
from manyboost.estimators.fitting import Fitting, all_or_nothing
from manyboost.persistence.checkpoint import Recorder
from manyboost.persistence.parts import CURVES, IMPORTANCES
from manyboost.threads import resolve_threads
from manyboost.training.assembly import bin_features
from manyboost.training.calibration import Calibration
from manyboost.training.callbacks import Watchers
from manyboost.training.custom import Loss
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.fitted_losses import FittedLoss, mean_loss
from manyboost.training.folds import (
    FoldedBoosting,
    Member,
    Teams,
    folds_of,
    leave_out,
    mean_model,
    member_seed,
    refuse_lost_output,
)
from manyboost.training.plan import Plan, make_plan, refuse_foreign
from manyboost.training.progress import Progress
from manyboost.training.scoring import as_list
from manyboost.training.stopping import KnownRounds
from manyboost.training.training_data import TrainingData

if TYPE_CHECKING:
    from typing_extensions import Self

# What a file may leave out and a fit to other data makes again, or does not have.
_MADE_AGAIN = (
    *(IMPORTANCES, CURVES),
    *("attribute oof_prediction_", "attribute oof_decision_function_"),
)
# What a fit to other data leaves as it is.
_STAYS = ("thresholds_", "best_iter_per_output_", "_calibrator")
# Parameters of the fit of known trees: all rows take part, and none are set apart.
_OF_A_REPLAY: dict[str, Any] = {
    "n_folds": None,
    "refit_all": False,
    "early_stopping": False,
    "validation_split": "random",
    "scoring": "loss",
    "thresholds": None,
    "subsample": 1.0,
    "max_time": None,
}


class Folding(Fitting):
    """The part of an estimator that makes one model of several."""

    _member_baselines: F64  # (n_members, n_outputs)
    best_iter_per_fold_: NDArray[np.intp]

    # ------------------------------------------------------------------ folds

    def _fits_of_folds(
        self,
        plan: Plan,
        data: TrainingData,
        recorders: list[Recorder] | None,
        watchers: Watchers,
        threads: _core.Pool,
    ) -> Fit:
        """Make the members of folds ready to train."""
        assert self.n_folds is not None
        fold = folds_of(data, int(self.n_folds), plan.seed)
        n_teams, pool = self._teams(threads, int(self.n_folds))
        # Members share the cuts of all rows, which see no targets: weights of classes are left out.
        weight = self._given_weight(data.rows)
        if weight is not None:
            weight = weight.reshape(len(weight), -1).mean(axis=1, dtype=np.float64)
        bins = bin_features(data, weight, int(self.max_bins), threads)
        binned = replace(data, rows=replace(data.rows, bins=bins))
        members = []
        for k in range(self.n_folds):
            part, seed = leave_out(binned, fold, k, threads), member_seed(plan.seed, k)
            refuse_lost_output(part, data)
            assert part.validation is not None
            recorder = None if recorders is None else recorders[k]
            found = None if recorder is None or recorder.found is None else recorder.found.progress
            parts = replace(plan, seed=seed), part, pool, None, found, recorder
            members.append(Member(*self._assemble(*parts), part.validation))
        boosting = FoldedBoosting(members, watchers, n_teams)

        def result(*, copied: bool = False) -> Result:
            kept = boosting.kept(copied=copied)
            with_offset = data.rows.offset is not None
            attributes = self._mean_of(kept, [each.loss for each in members], with_offset)
            if copied:
                return Result(attributes, None)
            raw = np.empty((len(data.rows), data.n_outputs))
            parts = boosting.out_of_fold(kept, self._table_of, threads)
            for k, part in enumerate(parts):
                raw[fold == k] = part
            unseen = Unseen(data.rows, raw, fold, data.n_given)
            return Result(attributes, unseen, unseen)

        return Fit(boosting, result)

    def _teams(self, threads: _core.Pool, n_members: int) -> tuple[int, _core.Pool]:
        """Return how many members train at the same time, and the threads of each.

        Code of the user's is not called by several threads.
        """
        has_code = isinstance(self.loss, Loss) or callable(self.projection)
        has_code |= any(not isinstance(each, str) for each in as_list(self.scoring))
        n_teams = 1 if has_code else min(threads.threads, n_members)
        return n_teams, _core.Pool(threads.threads // n_teams)

    def _mean_of(
        self, members: list[Progress], losses: list[FittedLoss], with_offset: bool
    ) -> dict[str, Any]:
        """Return the attributes of the mean of models."""
        mean = mean_model(members)
        attributes = self._fitted(mean, mean_loss(losses), with_offset, mean.n_rounds)
        attributes["best_iter_per_fold_"] = np.array([each.n_rounds for each in members])
        attributes["_member_baselines"] = np.array([loss.baseline for loss in losses])
        return attributes

    def _keep_unseen(self, unseen: Unseen) -> None:
        """Keep what intervals and sets need of the rows that members have not seen."""
        rows = unseen.rows
        parts = rows, unseen.raw, unseen.member, self._seed, self._given_weight(rows)
        self._calibration = Calibration.of(*parts)

    def _table_of(self, rows: Any) -> Table:
        return to_single(rows.X)

    def _member_raw(self, X: Any, offset: Any = None) -> F64:
        """Return the raw predictions of each member of folds (n_members, n_rows, n_outputs)."""
        X = self._checked_X(X)
        offsets, pool = self._checked_offset(offset, X), _core.Pool(resolve_threads(self.n_jobs))
        raw = np.empty((len(self._member_baselines), X.shape[0], self.n_outputs_))
        for k, baseline in enumerate(self._member_baselines):
            model = TreeEnsemble(self._built_in_trees("n_folds").member(k))
            raw[k] = model.predictor(pool, self.n_iter_, baseline, None)(X)
        return raw if offsets is None else raw + offsets

    # ------------------------------------------------------------------ fits to all rows

    def _refitted(
        self, plan: Plan, data: TrainingData, share: float, threads: _core.Pool
    ) -> dict[str, Any]:
        """Fit again to all rows: the leaves of members of folds, or a model with more rounds."""
        if self.n_folds is not None:
            trees = self._built_in_trees("refit_all", any_leaves=True)
            return self._replayed(data, trees, self.best_iter_per_fold_, threads)
        again = replace(
            plan,
            max_iter=max(1, round(self.n_iter_ / share)) if self.n_iter_ else 0,
            max_time=None,
            early_stopping=False,
            splits_rows=False,
        )
        boosting, loss = self._assemble(again, replace(data, validation=None), threads)
        boosting.run()
        progress, with_offset = boosting.progress, data.rows.offset is not None
        return self._fitted(progress, loss, with_offset, progress.n_rounds)

    # ------------------------------------------------------------------ other data

    def refit(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> Self:
        """Fit the model to other data, with the trees it has.

        The splits stay; leaf values, steps, the baseline, covers and importances are computed
        again, round by round, with the present parameters. It takes a fraction of the time of
        :meth:`fit`. A leaf without rows gets the value zero. Thresholds stay. Validation scores and
        out-of-fold predictions are removed, because they belong to the earlier data. Categories
        that the model does not know are refused.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features, the same as in :meth:`fit`.
        y : array-like
            Targets or labels of the same outputs, as in :meth:`fit`.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Weights of the rows, or of single cells.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.

        Returns
        -------
        self
        """
        check_is_fitted(self, "n_iter_")
        self._refit(Given(X, y, sample_weight, offset=offset))
        return self

    @all_or_nothing
    def _refit(self, given: Given) -> None:
        params.validate(self)
        trees = self._built_in_trees("refit", any_leaves=True)
        refuse_foreign(self, "refit")
        data = self._read(given, continued=True)
        refuse_other_outputs(self, data, "refit")
        if trees.n_members > 1 and self._trained_with["per_output"]:
            problem = "members of folds whose outputs were stopped one by one cannot be refitted"
            raise ValueError(f"{problem}; fit with early_stopping=True.")
        rounds = getattr(self, "best_iter_per_fold_", [self.n_iter_])
        threads = _core.Pool(resolve_threads(self.n_jobs))
        # A file may have left these out; they are made again, or belong to the earlier data.
        self._left_out = [each for each in self._left_out if each not in _MADE_AGAIN]
        attributes = self._replayed(data, trees, rounds, threads)
        stays = {name: vars(self)[name] for name in _STAYS if name in vars(self)}
        self._finish(Result(attributes | stays, None), tunes=False)

    def _replayed(
        self, data: TrainingData, trees: _core.Ensemble, rounds: Any, threads: _core.Pool
    ) -> dict[str, Any]:
        """Fill the trees of each member, up to its rounds, with rows; return the attributes."""
        n_teams, pool = self._teams(threads, len(rounds))
        found: dict[int, tuple[Progress, FittedLoss]] = {}

        def replay(k: int) -> bool:
            found[k] = self._replay(data, trees.member(k), int(rounds[k]), k, pool)
            return False

        with Teams(n_teams) as teams:
            teams.run(replay, range(len(rounds)))
        kept, losses = map(list, zip(*(found[k] for k in sorted(found)), strict=True))
        with_offset = data.rows.offset is not None
        if len(kept) > 1:
            return self._mean_of(kept, losses, with_offset)
        return self._fitted(kept[0], losses[0], with_offset, kept[0].n_rounds)

    def _replay(
        self,
        data: TrainingData,
        trees: _core.Ensemble,
        n_rounds: int,
        member: int,
        threads: _core.Pool,
    ) -> tuple[Progress, FittedLoss]:
        """Fill the trees of one model with rows."""
        parameters = copy.copy(self)
        parameters.__dict__ |= _OF_A_REPLAY
        seed = member_seed(self._seed, member)
        plan = make_plan(
            parameters, data, seed=seed, strategy=self.strategy_, projection=self.projection_
        )
        plan = replace(plan, max_iter=n_rounds)
        boosting, loss = self._assemble(plan, data, threads, replayed=trees)
        if (rounds := getattr(self, "best_iter_per_output_", None)) is not None:
            boosting.rule = KnownRounds(rounds)
        boosting.run()
        return boosting.progress, loss
