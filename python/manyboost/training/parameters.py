"""The parameters of an estimator, as training reads them.

What each may be and what it means is in :mod:`manyboost.params`.
"""

from __future__ import annotations

import os
from typing import Any

from manyboost.training.callbacks import Callback
from manyboost.training.checkpoints import Checkpoint
from manyboost.training.custom import Loss
from manyboost.training.projections import Projection


class Parameters:
    """Parameters of the constructors; those that a classifier lacks have their neutral value."""

    loss: str | Loss | list[str] | tuple[str, ...]
    quantile: float | list[float] = 0.5
    huber_delta: float | None = None
    power: float = 1.5
    strategy: str
    projection: str | Projection
    n_components: int | float
    step: str
    learning_rate: str | float
    max_iter: str | int
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
    calibration: str | None = None
    label_hierarchy: Any = None
    early_stopping: str | bool
    validation_fraction: int | float | None
    validation_split: Any
    n_iter_no_change: int
    tol: float
    scoring: Any
    n_folds: int | None
    refit_all: bool
    max_time: float | None
    warm_start: bool
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None
    callbacks: list[Callback] | None
    verbose: int | bool
    random_state: Any
    n_jobs: int | None
