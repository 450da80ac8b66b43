"""Ensembles: the weak models of all rounds, and what they add to raw predictions.

Built-in trees are kept in compiled form (:class:`TreeEnsemble`), models of other libraries as they
are (:class:`ForeignEnsemble`). Both answer the same questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32, F64, Mask
from manyboost.data.features import Table, for_kernels
from manyboost.data.stored import StoredTable
from manyboost.training.directions import Move, SparseLeaves
from manyboost.training.learners import Leaves, Predictions, WeakModel, known_leaves

#: The bits of a stored feature without its flags.
FEATURE_BITS = np.uint32((1 << 30) - 1)


class TreeEnsemble:
    """Built-in trees; ``trees`` holds them."""

    has_trees = True  # which take single precision

    def __init__(self, trees: _core.Ensemble) -> None:
        self.trees = trees

    def __getstate__(self) -> dict[str, bytes]:
        return {"trees": self.trees.to_bytes()}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.trees = _core.Ensemble.from_bytes(state["trees"])

    def __deepcopy__(self, memo: Any) -> TreeEnsemble:
        return TreeEnsemble(self.trees.__deepcopy__(memo))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.trees.n_outputs

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return self.trees.n_rounds

    def begin_round(self, m: int) -> None:
        """Keep the first ``m`` rounds, and open another one."""
        # Nothing to do: a round is complete when all its trees are there.

    def push(
        self,
        weak: WeakModel,
        values: F32 | SparseLeaves | None,
        steps: F32 | None,
        output: int | None,
    ) -> None:
        """Add a weak model to the last round, for all outputs or one."""
        assert isinstance(weak, Leaves)
        assert values is not None
        if isinstance(values, SparseLeaves):
            self.trees.push_sparse(weak.tree, values.arrays())
        else:
            self.trees.push(weak.tree, values, steps)

    def split_importances(self) -> F64:
        """Return the share of each feature in the gain of all splits, (n_features,)."""
        arrays = self.trees.arrays()
        features = arrays["split_feature"] & FEATURE_BITS
        gains = np.bincount(features, arrays["split_gain"], self.trees.n_features)
        total = float(gains.sum())
        return np.asarray(gains / total if total > 0 else gains)

    def truncate(self, n_rounds: int) -> None:
        """Keep the first rounds."""
        self.trees.truncate(n_rounds)

    def keep(self, rounds: NDArray[np.uint64]) -> None:
        """Take back what each output got after its first ``rounds`` (n_outputs,)."""
        self.trees.keep(rounds)

    def add_to(self, pool: _core.Pool, X: Table, start: int, stop: int, raw: F32) -> None:
        """Add the rounds from ``start`` to before ``stop`` to ``raw`` (n_rows, n_outputs)."""
        if isinstance(X, StoredTable):
            for rows, block in X.blocks():
                self.trees.add_to(pool, block, start, stop, raw[rows])
        else:
            self.trees.add_to(pool, for_kernels(X), start, stop, raw)

    def move(self, pool: _core.Pool, X: Table, m: int) -> Move:
        """Return what the one tree of round ``m`` adds to the raw predictions of ``X``."""
        blocks = X.blocks() if isinstance(X, StoredTable) else [(slice(None), for_kernels(X))]
        leaves = [self.trees.leaves(pool, block, m, m + 1)[:, 0] for _, block in blocks]
        steps = self.trees.steps()
        return Move(
            np.concatenate(leaves), self.trees.leaf_values(m), steps[m] if len(steps) else None
        )

    def predictor(
        self, pool: _core.Pool, n_rounds: int, baseline: F64, outputs: list[int] | None
    ) -> Callable[[Table], F64]:
        """Return the function from features to raw predictions of all outputs or some."""
        trees = self.trees if outputs is None else self.trees.of_outputs(outputs)
        start = baseline if outputs is None else baseline[outputs]

        def predict(X: Table) -> F64:
            # Large arrays of NumPy lie in huge pages, which the system provides much faster.
            raw = np.empty((X.shape[0], len(start)))
            trees.predict(pool, for_kernels(X), n_rounds, start, raw)
            return raw

        return predict

    def steps(self) -> F64:
        """Steps of each round and output, if the ensemble keeps them; else an empty array."""
        return self.trees.steps().astype(np.float64)


@dataclass
class ForeignModel:
    """A weak model of another library, and what it adds to some outputs.

    ``values`` are leaf values (n_leaves, n_outputs) of a relabelled tree whose leaves are numbered
    ``known``; otherwise ``steps`` (n_outputs,) multiply the predictions of the estimator.
    """

    estimator: Any
    outputs: slice
    values: F32 | None
    steps: F32 | None
    known: NDArray[Any] | None = None

    def of_rows(self, X: Table) -> F32:
        if self.values is not None:
            assert self.known is not None
            return self.values[known_leaves(self.estimator, self.known, X)]
        assert self.steps is not None
        predicted = np.asarray(self.estimator.predict(X), dtype=np.float32)
        # One predicted column serves all steps.
        columns = predicted[:, None] if predicted.ndim == 1 else predicted
        return np.asarray(columns * self.steps)

    def kept(self, kept: Mask) -> ForeignModel:
        """Return the model with zeros for the outputs that do not keep it."""
        mask = kept[self.outputs]
        values, steps = (
            None if each is None else np.where(mask, each, np.float32(0))
            for each in (self.values, self.steps)
        )
        return ForeignModel(self.estimator, self.outputs, values, steps, self.known)


@dataclass
class ForeignEnsemble:
    """Weak models of scikit-learn, with the methods of :class:`TreeEnsemble`."""

    n_outputs: int
    rounds: list[list[ForeignModel]] = field(default_factory=list)
    has_trees = False

    @property
    def n_rounds(self) -> int:
        return len(self.rounds)

    def begin_round(self, m: int) -> None:
        self.truncate(m)
        self.rounds.append([])

    def push(
        self,
        weak: WeakModel,
        values: F32 | SparseLeaves | None,
        steps: F32 | None,
        output: int | None,
    ) -> None:
        assert not isinstance(values, SparseLeaves)
        outputs = slice(None) if output is None else slice(output, output + 1)
        if isinstance(weak, Predictions):
            model = ForeignModel(weak.estimator, outputs, None, steps)
        else:
            model = ForeignModel(weak.tree, outputs, values, None, weak.known)
        self.rounds[-1].append(model)

    def truncate(self, n_rounds: int) -> None:
        del self.rounds[n_rounds:]

    def keep(self, rounds: NDArray[np.uint64]) -> None:
        for m, models in enumerate(self.rounds):
            self.rounds[m] = [model.kept(m < rounds) for model in models]

    def add_to(self, pool: _core.Pool, X: Table, start: int, stop: int, raw: F32) -> None:
        for models in self.rounds[start:stop]:
            for model in models:
                raw[:, model.outputs] += model.of_rows(X)

    def predictor(
        self, pool: _core.Pool, n_rounds: int, baseline: F64, outputs: list[int] | None
    ) -> Callable[[Table], F64]:
        def predict(X: Table) -> F64:
            raw = np.zeros((X.shape[0], self.n_outputs), np.float32)
            self.add_to(pool, X, 0, n_rounds, raw)
            everything = baseline + raw
            return everything if outputs is None else everything[:, outputs]

        return predict

    def steps(self) -> F64:
        return np.empty(0)


Ensemble: TypeAlias = TreeEnsemble | ForeignEnsemble
