"""When labels stay sparse in training, and what keeps them from it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from manyboost import _core
from manyboost.data.features import for_kernels, to_single
from manyboost.data.labels import Sparsity
from manyboost.data.rows import Rows
from manyboost.data.stored import StoredTable
from manyboost.estimators.fits import Given
from manyboost.metrics import TopKScorer
from manyboost.threads import resolve_threads
from manyboost.training.ensembles import Ensemble, TreeEnsemble
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.parameters import Parameters
from manyboost.training.projections import is_identity
from manyboost.training.scoring import LOSS, RunningRanker, Scorer, as_list, now_and_then

#: Cells, rows times labels, from which sparse labels stay sparse with ``strategy="project"``.
SPARSE_CELLS = 100_000_000


def label_sparsity(parameters: Parameters, given: Given) -> Sparsity:
    """Return when the labels of a fit stay sparse: always with ``max_leaf_outputs``."""
    obstacle = next(_obstacles(parameters, given), None)
    most = parameters.max_leaf_outputs
    if most is not None:
        if obstacle is None and parameters.strategy == "project":
            obstacle = "strategy='project', whose leaves have one value"
        if obstacle is None and parameters.step == "line_search":
            obstacle = "step='line_search'"
        if obstacle is not None:
            problem = f"max_leaf_outputs={most!r} does not go with {obstacle}"
            raise ValueError(f"{problem}; leave out one of them.")
        return Sparsity(0)
    if obstacle is None and parameters.strategy == "relabel":
        obstacle = "max_leaf_outputs=None"
    return Sparsity(SPARSE_CELLS) if obstacle is None else Sparsity(None, obstacle)


def _obstacles(parameters: Parameters, given: Given) -> Iterator[str]:
    """Name what needs an array of all rows and outputs, or is not there for sparse labels."""
    if parameters.loss not in ("squared_error", "log_loss"):
        yield f"loss={parameters.loss!r}"
    if parameters.loss == "log_loss" and parameters.strategy == "project":
        yield "loss='log_loss' and strategy='project' together"
    if parameters.strategy not in ("project", "relabel"):
        yield f"strategy={parameters.strategy!r}"
    if is_identity(parameters.projection):
        yield f"projection={parameters.projection!r}"
    if any(map(_has_columns, (given.sample_weight, given.sample_weight_val))):
        yield "an array of weights for all cells (a sparse one holds those other than 1)"
    if not _weighs_labels(parameters.class_weight):
        given_weight = f"class_weight={parameters.class_weight!r}"
        yield f"{given_weight} (only weights of present labels can be used, such as {{1: 5}})"
    if given.offset is not None:
        yield "an offset"
    if given.comm.size > 1:
        yield "rows on several machines"
    if isinstance(parameters.thresholds, str):
        yield f"thresholds={parameters.thresholds!r}"
    if parameters.early_stopping == "per_output":
        yield "early_stopping='per_output'"
    if not all(
        each == LOSS or isinstance(each, TopKScorer) for each in as_list(parameters.scoring)
    ):
        yield f"scoring={parameters.scoring!r} (only manyboost.metrics.TopKScorer can be used)"
    if parameters.warm_start:
        yield "warm_start=True"
    others = "estimator", "monotonic_cst", "n_folds", "checkpoint"
    for name in (*others, "calibration", "label_hierarchy"):
        if getattr(parameters, name) is not None:
            yield f"{name}={getattr(parameters, name)!r}"


def _has_columns(weights: Any) -> bool:
    """Whether weights are an array with a column for each output, not a sparse one."""
    try:
        return np.asarray(weights).ndim == 2
    except ValueError:  # rows of different lengths, which are refused where weights are read
        return False


def _weighs_labels(class_weight: Any) -> bool:
    """Whether only labels that a row has are weighted."""
    each = class_weight if isinstance(class_weight, list | tuple) else [class_weight or {}]
    return all(isinstance(weights, dict) and weights.get(0, 1) == 1 for weights in each)


def rankers(estimator: Any, loss: FittedLoss, rows: Rows, model: Ensemble) -> list[Scorer]:
    """Return the scorers of validation rows with sparse labels: the loss, or of the best labels."""
    assert isinstance(model, TreeEnsemble)
    pool, scorers, trees = _core.Pool(resolve_threads(estimator.n_jobs)), [], model.trees
    table = to_single(rows.X.load() if isinstance(rows.X, StoredTable) else rows.X)
    for each in as_list(estimator.scoring):
        if each == LOSS:
            scorers.append(Scorer(LOSS, None))
            continue
        assert isinstance(each, TopKScorer)
        if rows.weights.stored is not None:
            problem = f"scoring={each!r} knows no missing labels and no weights of single labels"
            raise ValueError(f"{problem}; use scoring='loss', or validation rows without them.")
        chosen = np.arange(len(rows))
        if each.n_rows is not None and each.n_rows < len(rows):
            drawn = np.random.default_rng(estimator._seed).choice(len(rows), each.n_rows, False)
            chosen = np.sort(drawn)
        X, weight = table[chosen], rows.weights.rows

        def ranked(k: int, X: Any = X) -> tuple[Any, Any]:
            best, raw = trees.top_k(pool, for_kernels(X), trees.n_rounds, loss.baseline, k)
            return estimator.classes_[best], raw

        running = RunningRanker(copy.copy(estimator), X, ranked)
        y = rows.Y[chosen].matrix()
        weighted = {} if weight is None else {"sample_weight": weight[chosen]}
        # Names of labels and sets are known to y by their numbers.
        measure = functools.partial(each, running, X, y, **weighted)
        scorers.append(Scorer(each.__name__, now_and_then(measure, each.every)))
    return scorers
