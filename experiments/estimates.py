"""About how many CPU seconds our own engine needs for a run, before any was timed.

Only ``--time-left`` uses it: no result depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from experiments.costs import Shape, n_drawn
from experiments.methods import METHODS, Boosting, Settings
from experiments.protocol import NOMINAL, Budget, Curve, Run, Search, Trial

# Seconds on one core of a server of 2024.
_ROUND, _TREE = 150e-6, 100e-6
_VISIT = 2.5e-9  # of a feature of a row, for the first column that a tree is grown on
_VISIT_MORE, _VISIT_MORE_BINARY = 0.6e-9, 0.06e-9  # for each further column
_CELL = 3.5e-9  # of the residuals, in a round
_SEARCHED = {"squared_error": 0.0, "absolute_error": 60e-9, "log_loss": 15e-9}
_FOREST = 5e-7  # of a row and output of a forest, for each feature that is drawn
_MODEL = 1e-6  # of a feature or output of a row, for a model of ours with its defaults

# Fits of a search beyond its trials, like the longest of them: both variants, and finalists.
_FINAL_FITS = 5


def seconds_of(run: Run, data_dir: Path | None, needed: Sequence[float] = ()) -> float:
    """Return about how many CPU seconds a run takes; ``needed`` are those of the runs it needs."""
    problem = run.problem(data_dir)
    shape = problem.shape
    n, d, p = shape.n_rows, shape.n_outputs, len(shape.values)
    if isinstance(run, Trial | Curve):
        method = METHODS[run.method]
        assert isinstance(method, Boosting)
        if isinstance(run, Trial):
            rounds = run.rounds
        else:
            rounds = Budget.parse(run.budget).limits(problem, method, run.settings)[NOMINAL]
        return rounds * _of_round(shape, method.strategy, run.settings)
    if needed:
        longest = sorted(needed)[-max(1, len(needed) // 4) :]
        return _FINAL_FITS * sum(longest) / len(longest)
    if isinstance(run, Search):
        share = "sqrt" if problem.task == "multilabel" else 1 / 3
        return _FOREST * n * d * math.log2(n) * n_drawn(share, p)
    return _MODEL * n * (p + d)


def _of_round(shape: Shape, strategy: str, settings: Settings) -> float:
    n, d, p = shape.n_rows, shape.n_outputs, len(shape.values)
    trees = d if strategy == "independent" else 1
    columns = d if strategy == "multioutput" else settings.get("n_components", 1)
    # The root, and the smaller child of every split.
    visited = n * (1 + math.log2(settings["max_leaf_nodes"]) / 2)
    binary = float((shape.values <= 2).mean())
    more = binary * _VISIT_MORE_BINARY + (1 - binary) * _VISIT_MORE
    visit = n_drawn(settings["max_features"], p) * (_VISIT + more * (columns - 1))
    cell = _CELL
    if settings.get("step") != "newton":
        cell += _SEARCHED[settings["loss"]]
    return float(_ROUND + trees * (_TREE + visited * visit) + n * d * cell)
