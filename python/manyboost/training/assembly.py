"""From a plan and its rows to a fit that is ready to run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manyboost import _core
from manyboost.arrays import F32, F64
from manyboost.data.cells import refuse_unobserved_outputs
from manyboost.data.features import Table, to_single
from manyboost.data.rows import Rows
from manyboost.training.boosting import Boosting
from manyboost.training.callbacks import Watchers
from manyboost.training.checkpoints import Recorder
from manyboost.training.ensembles import Ensemble, ForeignEnsemble, TreeEnsemble
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.learners import ForeignLearner, Learner, ReplayLearner, TreeLearner
from manyboost.training.plan import Plan, TreeLimits
from manyboost.training.progress import Progress
from manyboost.training.scoring import Scorer
from manyboost.training.strategies import SPARSE_TREES
from manyboost.training.training_data import TrainingData
from manyboost.training.validation import Ratings, Validation, loss_units


def new_progress(plan: Plan, n_outputs: int, n_features: int) -> Progress:
    """Return the progress of a fit before its first round."""
    if plan.estimator is not None:
        return Progress(ForeignEnsemble(n_outputs), None)
    kind = plan.strategy.trees if plan.max_leaf_outputs is None else SPARSE_TREES
    trees = _core.Ensemble(kind, n_outputs, n_features)
    # Importances by output would have a number for each feature and output.
    gains = None if plan.keeps_sparse else np.zeros((n_features, n_outputs))
    return Progress(TreeEnsemble(trees), gains)


def assemble(
    plan: Plan,
    limits: TreeLimits,
    data: TrainingData,
    loss: FittedLoss,
    progress: Progress,
    scorers: Callable[[Rows, F32, Ensemble], list[Scorer]],
    watchers: Watchers,
    threads: _core.Pool,
    recorder: Recorder | None = None,
    replayed: _core.Ensemble | None = None,
) -> Boosting:
    """Bind the loss, bin the features, and add the rounds that ``progress`` has already.

    ``scorers`` makes the scorers of validation rows from the rows, their raw predictions and the
    model.
    ``replayed`` are trees to fill with the rows, instead of growing others.
    """
    rows, pool = data.rows, data.rows.pool(threads)
    objective = loss.bind(
        rows.Y, rows.weights, pool, offset=rows.offset, projected=plan.trains_on_projections
    )
    objective.follow(progress.model)
    learner: Learner
    if replayed is None:
        learner = _learner(plan, limits, data, pool)
    else:
        learner = ReplayLearner(pool, replayed, _table(plan, rows.X))
    progress.categories, progress.constraints = data.categories, plan.constraints
    if progress.mean_importances is not None:
        # A file left out importances by output, so those of more rounds cannot be known.
        progress.mean_importances = np.full_like(progress.mean_importances, np.nan)
    split_scale = plan.split_scale(objective)
    state = objective.blank_state()
    validation = None
    if data.validation is not None and plan.early_stopping:
        units = loss_units(objective, state)
        parts = plan, data, loss, progress.model, learner
        validation = _validation(*parts, scorers, units, threads)
        if plan.stops_per_output:
            progress.shares = objective.loss_shares, validation.objective.loss_shares
    if progress.n_rounds > 0:
        X = _table(plan, rows.X)
        objective.add_rounds(progress.model, X, progress.n_rounds, state)
        if validation is not None and data.validation is not None:
            X_val = _table(plan, data.validation.X)
            progress.model.add_to(pool, X_val, 0, progress.n_rounds, validation.raw)
    arrays = state, rows.numbers if plan.subsample < 1.0 else None, split_scale
    return Boosting(plan, objective, learner, progress, *arrays, validation, watchers, recorder)


def _table(plan: Plan, X: Table) -> Table:
    return X if plan.estimator is not None else to_single(X)


def _validation(
    plan: Plan,
    data: TrainingData,
    loss: FittedLoss,
    model: Ensemble,
    learner: Learner,
    make_scorers: Callable[[Rows, F32, Ensemble], list[Scorer]],
    units: float | F64,
    threads: _core.Pool,
) -> Validation:
    rows = data.validation
    assert rows is not None
    features = rows.bins or learner.prepare(_table(plan, rows.X))
    objective = loss.bind(rows.Y, rows.weights, rows.pool(threads), offset=rows.offset)
    objective.follow(model)
    raw = objective.blank_state()
    scorers = make_scorers(rows, raw, model)
    ratings = Ratings(units if scorers[0].measure is None else None, plan.stops_per_output)
    validation = Validation(objective, learner, features, raw, scorers, ratings)
    if plan.stops_per_output:
        Y = rows.Y[:, :: data.n_levels]
        refuse_unobserved_outputs(Y, "the validation rows", data.output_names, rows.comm)
        if objective.losses(raw)[1] is None:
            raise ValueError(
                "early_stopping='per_output' needs a loss for each output, but "
                f"{type(loss.custom).__name__}.value returns one for each row; return an array "
                "(n_rows, n_outputs), or use early_stopping=True."
            )
    return validation


def bin_features(
    data: TrainingData, weight: F64 | None, max_bins: int, pool: _core.Pool
) -> _core.Features:
    """Find cuts in the features of weighted rows, and bin them."""
    X = to_single(data.rows.X)
    return TreeLearner.bin(pool, X, weight, max_bins, data.categories.counts)


def _learner(plan: Plan, limits: TreeLimits, data: TrainingData, pool: _core.Pool) -> Learner:
    if plan.estimator is not None:
        return ForeignLearner(plan.estimator, data.rows.X, plan.strategy.relabels, plan.seed)
    features = data.rows.bins
    if features is None:
        weight = data.rows.weights.of_rows(data.rows.Y)
        features = bin_features(data, weight, limits.max_bins, pool)
    grower = _core.Grower(
        features,
        max_leaf_nodes=limits.max_leaf_nodes,
        max_depth=limits.max_depth,
        min_samples_leaf=limits.min_samples_leaf,
        min_split_gain=limits.min_split_gain,
        max_features=limits.max_features,
        seed=plan.seed,
        interactions=plan.constraints.interactions,
    )
    return TreeLearner(pool, features, grower)
