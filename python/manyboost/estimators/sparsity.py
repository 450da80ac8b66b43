"""When labels stay sparse in training, and what keeps them from it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manyboost.data.labels import Sparsity
from manyboost.estimators.fits import Given
from manyboost.training.parameters import Parameters
from manyboost.training.projections import is_identity

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
    if parameters.loss != "squared_error":
        yield f"loss={parameters.loss!r}"
    if parameters.strategy not in ("project", "relabel"):
        yield f"strategy={parameters.strategy!r}"
    if is_identity(parameters.projection):
        yield f"projection={parameters.projection!r}"
    if np.ndim(given.sample_weight) == 2 or np.ndim(given.sample_weight_val) == 2:
        yield "weights of cells"
    if given.offset is not None:
        yield "an offset"
    if given.comm.size > 1:
        yield "rows on several machines"
    if isinstance(parameters.thresholds, str):
        yield f"thresholds={parameters.thresholds!r}"
    if parameters.early_stopping == "per_output":
        yield "early_stopping='per_output'"
    if parameters.scoring != "loss":
        yield f"scoring={parameters.scoring!r}"
    if parameters.warm_start:
        yield "warm_start=True"
    others = "class_weight", "estimator", "monotonic_cst", "n_folds", "checkpoint"
    for name in others:
        if getattr(parameters, name) is not None:
            yield f"{name}={getattr(parameters, name)!r}"
