"""The plan of a fit: every parameter checked against the data, and nothing "auto" left."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyboost import _core, memory
from manyboost.arrays import F64, Mask
from manyboost.data.cells import TargetKind
from manyboost.data.frames import by_position
from manyboost.data.rows import Rows
from manyboost.data.sparse_labels import SparseLabels
from manyboost.training.constraints import (
    Constraints,
    Monotonic,
    resolve_interactions,
    resolve_monotonic,
)
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.learners import check_foreign
from manyboost.training.losses import LossFacts, loss_facts
from manyboost.training.objectives import Objective
from manyboost.training.parameters import Parameters
from manyboost.training.projections import Projection, is_identity, resolve_n_components
from manyboost.training.scoring import LOSS, as_list
from manyboost.training.splits import check_split, is_drawn
from manyboost.training.steps import Block
from manyboost.training.strategies import STRATEGIES, Strategy
from manyboost.training.training_data import TrainingData

EARLY_STOPPING_ROWS = 10_000
RARE = 0.2  # share of the rarer side of a label
_UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class TreeLimits:
    """Limits on the built-in trees."""

    max_leaf_nodes: int
    max_depth: int
    min_samples_leaf: int
    min_split_gain: float
    max_features: int
    max_bins: int


@dataclass(frozen=True)
class Plan:
    """Parameters of training, resolved; ``blocks`` are known once the loss is fitted."""

    strategy: Strategy
    projection: str | Projection
    n_components: int
    learning_rate: float
    max_iter: int
    max_time: float | None
    subsample: float
    seed: int
    constraints: Constraints
    output_weight: F64 | None
    scales_outputs: bool
    early_stopping: bool
    stops_per_output: bool
    splits_rows: bool
    n_iter_no_change: int
    tol: float
    estimator: Any = None
    keeps_sparse: bool = False  # labels stay sparse
    max_leaf_outputs: int | None = None  # outputs that have a value in a leaf; None: all
    blocks: tuple[Block, ...] = ()
    by_curvature: Mask | None = None  # (n_outputs,): trees of one output grown by Newton's gain

    @property
    def monotonic(self) -> Monotonic | None:
        """Monotonic constraints, if there are any."""
        return self.constraints.monotonic

    @property
    def importance(self) -> F64 | None:
        """What residuals are multiplied by for the weights of outputs; None: nothing."""
        return None if self.output_weight is None else np.sqrt(self.output_weight)

    @property
    def projects(self) -> bool:
        """Whether trees are grown on a drawn projection, not on the outputs themselves."""
        return self.strategy.projects and not is_identity(self.projection)

    @property
    def trains_on_projections(self) -> bool:
        """Whether rounds need only projections and leaf sums of residuals."""
        return self.estimator is None and self.projects

    @property
    def looks_ahead(self) -> bool:
        """Whether the projection of a round is known before the leaves of the one before it.

        And leaves are fitted to all rows, so that their sums tell the training loss.
        """
        return self.subsample == 1.0 and not self.stops_per_output

    def split_scale(self, objective: Objective) -> F64 | None:
        """Return what residuals are multiplied by when trees are grown (n_outputs,), or None."""
        if not self.scales_outputs or objective.n_outputs == 1:
            return self.importance
        residuals, pool = objective.baseline_residuals(), objective.pool
        weights, total = objective.weights, objective.total_weight
        mean = _core.column_sums(pool, residuals, weights) / total
        square = _core.column_sums(pool, residuals, weights, True) / total
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        scale = np.where(deviation > 0, deviation, 1.0)
        return np.asarray(1 / scale if self.importance is None else self.importance / scale)


def make_plan(
    parameters: Parameters,
    data: TrainingData,
    *,
    seed: int,
    strategy: str,
    projection: str | Projection,
) -> Plan:
    """Check all parameters against the data, before any work is done."""
    record, rows, d = STRATEGIES[strategy], data.rows, data.n_outputs
    output_weight = _check_output_weight(parameters, record, data)
    n_weighted = None if output_weight is None else int(np.count_nonzero(output_weight))
    n_components = resolve_n_components(parameters.n_components, d, projection, record, n_weighted)
    if parameters.estimator is not None:
        by_cell = rows.weights.by_cell
        check_foreign(parameters.estimator, record, d, n_components, by_cell=by_cell)
    early_stopping = _stops_early(parameters, data)
    _check_folds(parameters, data, early_stopping=early_stopping)
    _check_scoring(parameters, rows, early_stopping=early_stopping)
    tunes = isinstance(parameters.thresholds, str)
    races = parameters.strategy == "auto"
    check_split(parameters, data, sets_apart=early_stopping or tunes or races)
    is_validated = data.validation is not None or parameters.n_folds is not None
    max_time = parameters.max_time
    if max_time is not None and parameters.refit_all:
        max_time /= 2  # the other half is for the fit to all rows
    if data.validation is not None and not (early_stopping or tunes):
        raise ValueError(
            "X_val was given but early_stopping=False; use early_stopping=True or 'auto', or "
            "leave out X_val."
        )
    if tunes and not is_validated and parameters.validation_fraction is None:
        raise ValueError(
            "thresholds='tuned' needs rows that no tree was fitted to, but validation_fraction="
            "None sets none apart; pass X_val and Y_val, or set a fraction."
        )
    return Plan(
        strategy=record,
        projection=projection,
        n_components=n_components,
        learning_rate=resolve_learning_rate(parameters, data, strategy),
        max_iter=resolve_max_iter(parameters, data, strategy),
        max_time=max_time,
        subsample=float(parameters.subsample),
        seed=seed,
        constraints=_resolve_constraints(parameters, data),
        output_weight=output_weight,
        scales_outputs=parameters.output_scaling is not None,
        early_stopping=early_stopping,
        stops_per_output=parameters.early_stopping == "per_output",
        splits_rows=(early_stopping or tunes) and not is_validated,
        n_iter_no_change=int(parameters.n_iter_no_change),
        tol=float(parameters.tol),
        estimator=parameters.estimator,
        keeps_sparse=isinstance(rows.Y, SparseLabels),
        max_leaf_outputs=_resolve_leaf_outputs(parameters, d),
    )


def _resolve_leaf_outputs(parameters: Parameters, n_outputs: int) -> int | None:
    most = parameters.max_leaf_outputs
    return None if most is None else min(int(most), n_outputs)


def _stops_early(parameters: Parameters, data: TrainingData) -> bool:
    """Whether training ends by scores of validation rows."""
    if parameters.early_stopping != "auto":
        return bool(parameters.early_stopping)
    wanted = data.validation is not None or parameters.n_folds is not None
    wanted = wanted or not is_drawn(parameters)
    return wanted or parameters.refit_all or data.rows.count() > EARLY_STOPPING_ROWS


def resolve_random_state(parameters: Parameters, data: TrainingData) -> Any:
    """Return the given seed; without one, always the same if the model draws nothing at random."""
    given = parameters.random_state
    return 0 if given is None and not _draws(parameters, data) else given


def _draws(parameters: Parameters, data: TrainingData) -> bool:
    """Whether the model depends on anything drawn at random.

    The projection of one output is a factor, on which ties alone depend.
    """
    strategy, n_features = parameters.strategy, data.categories.n_features
    raced = strategy == "auto"
    tunes = isinstance(parameters.thresholds, str)
    sets_apart = (_stops_early(parameters, data) or tunes) and is_drawn(parameters)
    return (
        raced
        or (STRATEGIES[strategy].projects and data.n_outputs > 1)
        or callable(parameters.projection)
        or parameters.estimator is not None
        or parameters.subsample < 1
        or _resolve_max_features(parameters.max_features, n_features) < n_features
        or parameters.n_folds is not None
        or (sets_apart and data.validation is None and parameters.validation_fraction is not None)
    )


def _check_folds(parameters: Parameters, data: TrainingData, *, early_stopping: bool) -> None:
    """Refuse what does not go with folds, or with a fit to all rows."""
    given = {"n_folds": parameters.n_folds, "refit_all": parameters.refit_all or None}
    for name, value in given.items():
        if value is None:
            continue
        refuse_foreign(parameters, name)
        what = f"{name}={value!r}"
        if data.validation is not None:
            rows = "scores on folds of X" if name == "n_folds" else "fits to all rows of X"
            raise ValueError(f"{what} {rows}, but X_val was given; pass all rows as X.")
        if not early_stopping:
            raise ValueError(
                f"{what} needs early stopping, which finds the rounds, but early_stopping=False; "
                "leave it at 'auto'."
            )
        if parameters.warm_start:
            raise ValueError(f"{what} trains a model anew; use warm_start=False.")
    if parameters.refit_all and parameters.early_stopping == "per_output":
        raise ValueError(
            "refit_all=True fits all outputs with the same rounds, but early_stopping='per_output' "
            "finds rounds for each; use early_stopping=True."
        )


def refuse_foreign(parameters: Parameters, name: str) -> None:
    """Refuse a parameter that works with built-in trees only."""
    if parameters.estimator is not None:
        raise ValueError(
            f"{name} works with built-in trees only; leave it out, or use estimator=None."
        )


def _resolve_constraints(parameters: Parameters, data: TrainingData) -> Constraints:
    categories, names = data.categories, data.names
    n_given = data.n_outputs // data.n_levels
    monotonic = resolve_monotonic(
        parameters.monotonic_cst, n_given, categories.mask, names, data.output_names
    )
    constraints = Constraints(
        monotonic if monotonic is None else monotonic.repeated(data.n_levels),
        resolve_interactions(parameters.interaction_cst, categories.n_features, names),
    )
    if constraints.monotonic is not None:
        refuse_foreign(parameters, "monotonic_cst")
    if constraints.interactions is not None:
        refuse_foreign(parameters, "interaction_cst")
    return constraints


def _check_output_weight(
    parameters: Parameters, strategy: Strategy, data: TrainingData
) -> F64 | None:
    if parameters.output_weight is None:
        return None
    given = by_position("output_weight", parameters.output_weight, data.names, data.target_names)
    weight = np.asarray(given, dtype=np.float64)
    # A column of classes has one weight for all its outputs.
    repeats = data.n_levels if data.rows.widths is None else data.rows.widths
    n_given = data.n_outputs // data.n_levels if isinstance(repeats, int) else len(repeats)
    if len(weight) != n_given:
        what = "outputs" if isinstance(repeats, int) else "columns of classes"
        raise ValueError(
            f"output_weight has {len(weight)} weights, but there are {n_given} {what}; pass one "
            "weight for each."
        )
    if not strategy.shares_trees:
        raise ValueError(
            f"output_weight has no effect with strategy={strategy.name!r}, which grows trees for "
            "each output alone; leave it at None or use another strategy."
        )
    if parameters.estimator is not None and not strategy.projects and not weight.all():
        raise ValueError(
            f"output_weight is 0 for output {int(np.argmin(weight))}, which an estimator would not "
            f"be fitted to with strategy={strategy.name!r}; use a small weight, or estimator=None."
        )
    return np.repeat(weight, repeats)


def _check_scoring(parameters: Parameters, rows: Rows, *, early_stopping: bool) -> None:
    """Refuse scores that would have no effect, unless the number of rows decides, or not exist."""
    first = as_list(parameters.scoring)[0]
    decided = parameters.early_stopping != "auto"
    if decided and not early_stopping and parameters.scoring not in (LOSS, None):
        raise ValueError(
            f"scoring={parameters.scoring!r} is what early stopping looks at, which is off; use "
            "early_stopping=True or 'auto', or leave scoring at 'loss'."
        )
    if parameters.early_stopping != "per_output":
        return
    if rows.kind is TargetKind.CLASSES:
        raise ValueError(
            "early_stopping='per_output' needs a loss for each output, but the classes of "
            "loss='log_loss' share one; use early_stopping=True."
        )
    if first != LOSS:
        raise ValueError(
            f"early_stopping='per_output' goes by the loss of each output, but scoring begins "
            f"with {first!r}; let it begin with 'loss', or use early_stopping=True."
        )


def with_loss(plan: Plan, parameters: Parameters, loss: FittedLoss) -> Plan:
    """Return the plan with the steps of a fitted loss."""
    l2 = parameters.l2_regularization
    blocks = tuple(_block(parameters, facts, outputs, loss) for facts, outputs in loss.blocks)
    if l2 not in ("auto", 0) and not any(block.is_newton for block in blocks):
        raise ValueError(
            f"l2_regularization={l2!r} has no effect on line searches and on losses without "
            "curvature; use step='newton' with another loss, or leave it at 'auto'."
        )
    by_curvature = np.concatenate([_are_rare(block, loss.baseline) for block in blocks])
    return replace(plan, blocks=blocks, by_curvature=by_curvature & (plan.estimator is None))


def _are_rare(block: Block, baseline: F64) -> Mask:
    """Tell which outputs of a block are probabilities that start far from a half.

    Their curvature differs so much between rows that splits must know it; others would only pay.
    """
    part = baseline[block.columns(len(baseline))]
    if not (block.is_newton and block.facts.splits_by_curvature):
        return np.zeros(len(part), dtype=bool)
    share = block.facts.link.inverse(part[None, :])[0]
    return np.asarray(np.minimum(share, 1 - share) < RARE)


def _block(
    parameters: Parameters, facts: LossFacts, outputs: tuple[int, int] | None, loss: FittedLoss
) -> Block:
    """How the steps of outputs that share a loss are found."""
    l2, step = parameters.l2_regularization, parameters.step
    if step == "auto":
        damped = l2 not in ("auto", 0) and facts.curved
        step = "newton" if damped else facts.default_step
    if step == "newton" and loss.custom is not None and not facts.curved:
        raise ValueError(
            f"step='newton' needs second derivatives, but {type(loss.custom).__name__} has no "
            "hessian; implement it or use step='line_search'."
        )
    return Block(outputs, facts, step, facts.damping if l2 == "auto" else float(l2))


def resolve_learning_rate(parameters: Parameters, data: TrainingData, strategy: str) -> float:
    """Return the learning rate."""
    if parameters.learning_rate == "auto":
        return default_rate(strategy, one_column=data.is_one_column)
    return float(parameters.learning_rate)


def default_rate(strategy: str, *, one_column: bool) -> float:
    """Return the learning rate for a y of one column, or of several."""
    return 0.05 if _columns_share_trees(strategy, one_column) else 0.1


def resolve_max_iter(parameters: Parameters, data: TrainingData, strategy: str) -> int:
    """Return the most rounds; by default there are more where outputs share trees."""
    if parameters.max_iter != "auto":
        return int(parameters.max_iter)
    if _columns_share_trees(strategy, data.is_one_column):
        return 1000 if _stops_early(parameters, data) else 300
    n_sharing = data.n_outputs if _shares_trees(strategy) else 1
    return min(500, max(100, 50 * n_sharing))


def _shares_trees(strategy: str) -> bool:
    """Whether one tree of a round serves all outputs, as with most contenders of "auto"."""
    return strategy == "auto" or STRATEGIES[strategy].shares_trees


def _columns_share_trees(strategy: str, one_column: bool) -> bool:
    """Whether trees serve several columns of y, which no single one of them can overfit."""
    return not one_column and _shares_trees(strategy)


def resolve_limits(parameters: Parameters, data: TrainingData, strategy: str) -> TreeLimits:
    """Return the limits on trees that are grown on these rows."""
    n_rows, n_features = data.rows.count(), data.categories.n_features
    least = parameters.min_samples_leaf
    if least == "auto":
        shared = _columns_share_trees(strategy, data.is_one_column)
        # On the fewest rows a weight of two is still a row twice.
        part = n_rows // 100 if shared or n_rows < 40 else n_rows // 6
        least = min(20, max(1, part))
    return TreeLimits(
        max_leaf_nodes=min(int(parameters.max_leaf_nodes or n_rows), n_rows + 1),
        max_depth=min(int(parameters.max_depth or _UNLIMITED), _UNLIMITED),
        min_samples_leaf=min(int(least), n_rows + 1),
        min_split_gain=float(parameters.min_split_gain),
        max_features=_resolve_max_features(parameters.max_features, n_features),
        max_bins=int(parameters.max_bins),
    )


def _resolve_max_features(wanted: int | float | str, n_features: int) -> int:
    if wanted == "sqrt":
        return max(1, math.isqrt(n_features))
    if wanted == "log2":
        return max(1, int(math.log2(n_features)))
    if isinstance(wanted, int | np.integer):
        return min(int(wanted), n_features)
    return max(1, int(float(wanted) * n_features))


def check_memory(plan: Plan, parameters: Parameters, data: TrainingData, threads: int) -> None:
    """Refuse to train where there is too little memory."""
    if plan.estimator is not None:
        return
    rows, d = data.rows, data.n_outputs
    n, weights, trees = len(rows), rows.weights, plan.strategy
    ends_early = plan.early_stopping or parameters.callbacks or plan.max_time
    n_components = plan.n_components if plan.projects else d
    limits = resolve_limits(parameters, data, trees.name)
    leaves = min(limits.max_leaf_nodes, n // limits.min_samples_leaf + 1)
    loss = parameters.loss
    in_place = isinstance(loss, str) and loss_facts(loss, rows.kind).quadratic
    training = memory.Training(
        n_outputs=d,
        n_columns=trees.n_grown_columns(d, n_components),
        row_weights=weights.rows is not None,
        cell_weights=weights.by_cell,
        residuals_only=in_place and plan.trains_on_projections and not weights.by_cell,
        splits=plan.splits_rows,
        max_bins=limits.max_bins,
        max_leaves=int(min(leaves, 2 ** min(limits.max_depth, 60))),
        tree_kind=trees.trees,
        rounds=0 if ends_early else plan.max_iter,
        threads=threads,
        n_members=parameters.n_folds or 1,
        keeps_sparse=plan.keeps_sparse,
        leaf_outputs=plan.max_leaf_outputs,
    )
    memory.check_training(training, rows.X, rows.Y)
