"""The identity of a fit: digests of its data, and its parameters."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost import _core
from manyboost.data.categories import Categories
from manyboost.data.rows import Rows
from manyboost.data.stored import StoredTable
from manyboost.persistence.values import Encoder, Unstorable, is_code, plain_repr
from manyboost.training.custom import Loss
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.progress import Progress
from manyboost.training.training_data import TrainingData

# Parameters that no round depends on. The number of rounds may grow.
_FREE = (
    *("callbacks", "checkpoint", "estimator", "max_iter", "max_time", "n_jobs", "verbose"),
    "warm_start",
)
_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Identity:
    """What a fit is a fit of: a digest of each part, and what can be shown of it.

    Parts are parameters by name, and data by the name of their argument.
    """

    parts: dict[str, tuple[str, str]]

    @classmethod
    def of(
        cls,
        parameters: Mapping[str, Any],
        names: list[Any],
        data: TrainingData,
        fold: int | None = None,
    ) -> Identity:
        """Return the identity of a fit.

        ``names`` are those of features, outputs, classes and categories; ``fold`` is the one that a
        member of folds leaves out.
        """
        release = _core.__version__
        parts = {"the release of manyboost": (_digest([release]), release)}
        parts |= _digests(data.rows, ("X", "y", "sample_weight", "offset"), data.categories)
        if data.validation is not None:
            arguments = ("X_val", "Y_val", "sample_weight_val", "offset_val")
            parts |= _digests(data.validation, arguments, data.categories)
        if data.groups is not None:
            parts["groups"] = _digest([data.groups]), "given"
        if data.splits is not None:
            masks = [each for split in data.splits for each in (split.train, split.test)]
            parts["splits by validation_split"] = _digest(masks), "given"
        if fold is not None:
            parts["the fold"] = _digest([fold]), str(fold)
        parts["names of features, outputs or classes"] = _digest(names), "given"
        free = [name for name in _FREE if name != "max_iter" or parameters["strategy"] != "auto"]
        return cls(parts | {n: _described(v) for n, v in parameters.items() if n not in free})

    def differences(self, other: Identity, *, draws: bool = True) -> list[str]:
        """Say in which parts the present fit differs from another one.

        One that ``draws`` nothing may have another random_state.
        """
        nothing = "", "not given"
        found = []
        for name in dict.fromkeys([*other.parts, *self.parts]):
            if name == "random_state" and not draws:
                continue
            then, now = other.parts.get(name, nothing), self.parts.get(name, nothing)
            if then[0] != now[0]:
                shown = then[1] != now[1]
                found.append(f"{name} was {then[1]} and is {now[1]}" if shown else f"other {name}")
        return found


def _digests(
    rows: Rows, names: Iterable[str], categories: Categories
) -> dict[str, tuple[str, str]]:
    tables = [*categories.tables.values(), *categories.cuts.values(), *categories.grouped.values()]
    weights = [rows.weights.rows, rows.weights.cells, rows.numbers]
    parts = [rows.X, *tables], [rows.Y], weights, [rows.offset]
    return {name: (_digest(part), "given") for name, part in zip(names, parts, strict=True)}


def _described(value: Any) -> tuple[str, str]:
    """Return the digest of a parameter, and words for it."""
    # Code cannot be compared, but what an object is made with can.
    if isinstance(value, Loss):
        return _digest([Encoder().encode(value), vars(value)]), type(value).__name__
    if is_code(value):
        (name,) = Encoder().encode(value).values()
        made_with = {} if hasattr(value, "__qualname__") else getattr(value, "__dict__", {})
        return _digest([name, made_with]), textwrap.shorten(name, 120, placeholder="...")
    if isinstance(value, np.random.RandomState):
        # By what it would draw next: one that was drawn from meanwhile is another one.
        return _digest([value.get_state()]), type(value).__name__
    return _digest([value]), textwrap.shorten(repr(value), 60, placeholder="...")


def _digest(values: Any) -> str:
    """Return a digest of arrays, tables, matrices, and whatever has a place in a model file."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        if sparse.issparse(value):
            starts, places = value.indptr.astype(np.int64), value.indices.astype(np.int64)
            digest.update(_digest([np.array(value.shape), starts, places, value.data]).encode())
        elif isinstance(value, StoredTable) or _holds_numbers(value):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            for block in _blocks(value):
                digest.update(np.ascontiguousarray(block).tobytes())
        else:
            encoder = Encoder()
            try:
                text = json.dumps(encoder.encode(value), sort_keys=True)
            except Unstorable:
                text = plain_repr(value)
            digest.update(f"{text}{_digest(encoder.arrays) if encoder.arrays else ''};".encode())
    return digest.hexdigest()


def _holds_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not value.dtype.hasobject


def _blocks(table: StoredTable | NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield some rows at a time."""
    if isinstance(table, StoredTable):
        yield from (block for _, block in table.blocks())
        return
    step = max(1, _CELLS_AT_ONCE // max(1, table[:1].size))
    for start in range(0, len(table) if table.ndim else 0, step):
        yield table[start : start + step]


def trees_digest(progress: Progress) -> str:
    """Return what tells one model from another."""
    assert isinstance(progress.model, TreeEnsemble)
    return hashlib.blake2b(progress.model.trees.to_bytes(), digest_size=16).hexdigest()
