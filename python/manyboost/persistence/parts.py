"""What model files and checkpoints share: trees, the records of training, how it started."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from manyboost import _core
from manyboost.data.categories import Categories
from manyboost.persistence import container
from manyboost.persistence.container import AnyArray, broken
from manyboost.persistence.schema import Array, Contents, Field, collect, texts, within
from manyboost.persistence.values import Encoder, LeftOut
from manyboost.training.checkpoints import Start
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.progress import Progress
from manyboost.training.projections import PROJECTIONS
from manyboost.training.strategies import SPARSE_TREES, STRATEGIES

# Records of training that a file may leave out.
IMPORTANCES, CURVES = "importances by output", "curves by output"


@dataclass
class Source:
    """What a file is written from: trees and records, how training started, the estimator."""

    progress: Progress
    start: Start
    model: Any = None
    encoder: Encoder = field(default_factory=Encoder)

    @property
    def trees(self) -> _core.Ensemble:
        """The trees."""
        assert isinstance(self.progress.model, TreeEnsemble)
        return self.progress.model.trees

    @cached_property
    def tree_arrays(self) -> dict[str, AnyArray]:
        """The trees as arrays."""
        return self.trees.arrays()


_KINDS = frozenset([*(each.trees for each in STRATEGIES.values()), SPARSE_TREES])


def _n_members(source: Source) -> int | None:
    return source.trees.n_members if source.trees.n_members > 1 else None


SIZES = [
    Field("kind", _KINDS, lambda source: source.trees.kind),
    Field("n_outputs", range(1, 2**32 + 1), lambda source: source.trees.n_outputs),
    Field("n_features", range(1, 2**30 + 1), lambda source: source.trees.n_features),
    Field("n_members", range(2, 256), _n_members, optional=True),
]
START = [
    Field("seed", range(2**31 + 1), lambda source: source.start.seed),
    Field("projection", (str, dict), lambda s: s.encoder.encode(s.start.projection)),
    Field("search_results", (type(None), dict), lambda s: s.encoder.encode(s.start.search_results)),
    Field("score_names", list, lambda source: list(source.progress.validation_scores)),
]


def _tree_array(name: str, dtype: str, shape: str, *, optional: bool = False) -> Array:
    return Array(name, dtype, shape, lambda s: s.tree_arrays.get(name), optional, copied=False)


TREES = [
    _tree_array("tree_sizes", "u4", "trees"),
    _tree_array("node_left", "u4", "nodes"),
    _tree_array("node_cover", "f4", "nodes"),
    _tree_array("split_feature", "u4", "splits"),
    _tree_array("split_threshold", "f4", "splits"),
    _tree_array("split_gain", "f4", "splits"),
    _tree_array("split_categories", "u4", "* 8"),
    _tree_array("leaf_values", "f4", "* w"),
    _tree_array("tree_steps", "f4", "trees d", optional=True),
    _tree_array("leaf_sizes", "u4", "*", optional=True),
    _tree_array("leaf_outputs", "u4", "*", optional=True),
]


def _mean_importances(source: Source) -> AnyArray | None:
    return source.progress.mean_importances if source.progress.importances is None else None


def _scores(source: Source) -> AnyArray:
    scores = np.array(list(source.progress.validation_scores.values()), np.float64)
    return scores.reshape(-1, len(source.progress.train_score))


def _table(name: str, shape: str) -> Array:
    return Array(name, "f8", shape, lambda s: getattr(s.progress, name) or None, optional=True)


_TABLES = [
    _table("validation_per_output", "n d"),
    _table("train_per_output", "n d"),
    _table("shares", "2 d"),
    _table("steps", "* d"),
]
RECORDS = [
    Array("importances", "f8", "p d", lambda source: source.progress.importances, optional=True),
    Array("mean_importances", "f8", "p", _mean_importances, optional=True),
    Array("train_score", "f8", "n", lambda source: source.progress.train_score),
    Array("validation_score", "f8", "*", lambda source: source.progress.validation_score),
    Array("validation_scores", "f8", "* n", _scores),
    *_TABLES,
]


def read_start(file: Contents, strategy: str) -> Start:
    """Return how training started; ``strategy`` must grow trees of the kind of the file."""
    found = file.found
    record = STRATEGIES.get(strategy)
    kinds = () if record is None else (record.trees, SPARSE_TREES if record.relabels else None)
    if found.kind not in kinds:
        broken(f"trees of kind {found.kind!r} do not come from strategy {strategy!r}")
    projection = file.decode(found.projection)
    known = isinstance(projection, str) and projection in PROJECTIONS
    if not known and not isinstance(projection, LeftOut):
        broken("it was trained with an unknown projection")
    results = file.decode(found.search_results)
    if results is not None:
        _check_search(results)
    return Start(found.seed, strategy, projection, results)


def _check_search(results: Any) -> None:
    types = {"strategy": "O", "projection": "O", "heats": "i", "n_rounds": "i"}
    types["validation_score"] = "f"
    if isinstance(results, dict) and "verdict" in results:
        # Since races are run at equal cost.
        types |= {"round_cost": "f", "verdict": "O"}
    named = isinstance(results, dict) and list(results) == list(types)
    if not named or not all(isinstance(each, np.ndarray) for each in results.values()):
        broken("it does not say how its strategy was chosen")
    fits = [each.dtype.kind for each in results.values()] == list(types.values())
    if not fits or {each.shape for each in results.values()} != {results["heats"].shape[:1]}:
        broken("it has results of a search that are not one for each strategy")


def read_trees(found: SimpleNamespace, categories: Categories | None) -> _core.Ensemble:
    """Return the trees, which the core checks; ``categories`` are None if they are not known."""
    if (found.tree_steps is None) == (found.kind == "scaled"):
        broken(f"it has no 'tree_steps' of trees of kind {found.kind!r}, or needs none")
    for name in ("leaf_sizes", "leaf_outputs"):
        if (getattr(found, name) is None) == (found.kind == SPARSE_TREES):
            broken(f"it has no {name!r} of trees of kind {found.kind!r}, or needs none")
    stored = {array.name: getattr(found, array.name) for array in TREES}
    arrays = {name: each for name, each in stored.items() if each is not None}
    sizes = found.n_outputs, found.n_features, found.n_members or 1
    n_categories = None if categories is None else categories.counts
    if categories is not None and n_categories is None:
        n_categories = np.zeros(found.n_features, np.uint32)  # no split is by categories
    try:
        return _core.Ensemble.from_arrays(found.kind, *sizes, arrays, n_categories)
    except ValueError as error:
        broken(str(error))


def check_left_out(found: SimpleNamespace) -> None:
    """Refuse files that do not say what they leave out.

    Their importances also prove the number of features, before anything is allocated for it.
    """
    left_out = texts(found.left_out, "left_out")
    if left_out != sorted(set(left_out)):
        broken("the names of what it leaves out are out of order")
    missing = found.importances is None
    if missing != (IMPORTANCES in left_out) or missing != (found.mean_importances is not None):
        broken("it does not say whether importances by output are left out")
    if CURVES in left_out and found.validation_per_output is not None:
        broken("it does not say whether curves by output are left out")


def read_progress(found: SimpleNamespace, trees: _core.Ensemble) -> Progress:
    """Return the trees with the records of their training."""
    n, names = trees.n_rounds + 1, texts(found.score_names, "score_names")
    if found.mean_importances is not None and not np.isnan(found.mean_importances).all():
        within(found.mean_importances, 0, 1)
    counts = [len(found.train_score), len(found.validation_score), len(found.validation_scores)]
    if counts != [n, n if names else 0, len(names)]:
        broken("its arrays 'train_score' and 'validation_score' do not have a score for each round")
    if len(set(names)) != len(names):
        broken("it has two scores of one name")
    if found.steps is not None and not 0 < len(found.steps) < n:
        broken("its array 'steps' is empty, or has rounds that the trees do not have")
    if (found.train_per_output is None) != (found.shares is None):
        broken("it has curves by output without their shares, or shares without curves")
    curves = found.train_score.tolist(), found.validation_score.tolist()
    scores = dict(zip(names, found.validation_scores.tolist(), strict=True))
    tables = {array.name: getattr(found, array.name) for array in _TABLES}
    lists: dict[str, Any] = {name: list(t) for name, t in tables.items() if t is not None}
    lists["shares"] = None if found.shares is None else tuple(found.shares)
    lists["mean_importances"] = found.mean_importances
    return Progress(TreeEnsemble(trees), found.importances, *curves, scores, **lists)


# ---------------------------------------------------------------------- trees alone

_TREES_ALONE = [Field("content", frozenset(["trees"]), lambda source: "trees"), *SIZES]


def trees_to_bytes(trees: _core.Ensemble) -> bytes:
    """Return the bytes of a file that holds nothing but trees."""
    source = Source(Progress(TreeEnsemble(trees), None), Start(0, "", ""))
    return b"".join(container.pack(*collect(source, _TREES_ALONE, TREES)))


def trees_from_bytes(data: bytes) -> _core.Ensemble:
    """Return the trees of such a file."""
    file = Contents(data)
    trees = read_trees(file.read(_TREES_ALONE, TREES), None)
    file.done()
    return trees
