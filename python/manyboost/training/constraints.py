"""Constraints on trees: the direction in which outputs move with features, and which features meet.

**Monotonic constraints** hold for the raw predictions, in every row, exactly. A sum of trees is
monotone if every tree is, in what it adds to the output:

- Trees with one value per leaf for each output (``independent``, ``multioutput``, ``relabel``): the
  values of each output are brought into order (``order_leaves`` of the core: leaves that violate it
  are pooled), and the step of a constrained output is at least zero. Trees of ``independent`` are
  also grown under the constraint. What a tree shared by all outputs is grown on are no outputs: it
  grows freely.
- ``project``: one value g per leaf serves all outputs, times a step of either sign. The tree is
  grown monotone in one *reference* direction for each feature; an output whose constraints agree
  with it on the features that the tree uses takes steps of at least zero, one whose constraints are
  all opposed takes steps of at most zero, and one that has some of both takes none. Constraints
  that do not agree up to their sign take turns as the reference, round by round, so that every
  output has its own trees.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F32, F64, I8, U32, Mask
from manyboost.data.cells import column_name
from manyboost.data.features import feature_numbers
from manyboost.data.frames import by_position
from manyboost.training.directions import Outputs


class Monotonic:
    """Monotonic constraints: ``signs`` (n_outputs, n_features) of -1, 0 and 1."""

    def __init__(self, signs: I8) -> None:
        self.signs = np.ascontiguousarray(signs, dtype=np.int8)
        self._references = _references(self.signs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Monotonic) and np.array_equal(self.signs, other.signs)

    def of(self, outputs: Outputs) -> I8:
        """Return the signs of all outputs, of one, or of neighbours (first, last)."""
        if outputs is None:
            return self.signs
        first, last = outputs if isinstance(outputs, tuple) else (outputs, outputs + 1)
        return self.signs[first:last]

    def repeated(self, times: int) -> Monotonic:
        """Return the constraints of outputs that come ``times`` each, as neighbours."""
        return self if times == 1 else Monotonic(np.repeat(self.signs, times, axis=0))

    def reference(self, round_: int) -> I8:
        """Return the directions (n_features,) of the tree of a round of ``project``."""
        return self._references[round_ % len(self._references)]

    def sense(self, phi: F32, reference: I8) -> int:
        """Return -1 if the outputs of a projection (1, n_outputs) oppose the reference, else 1.

        A projection and its negative have equal right; of the two we want the one whose sum rises
        where the tree may rise.
        """
        agreement = np.sign((self.signs.astype(int) * reference).sum(axis=1))
        return -1 if math.fsum((phi[0] * agreement).tolist()) < 0 else 1

    def forward(self, rho: F64, outputs: Outputs) -> F64:
        """Steps of constrained outputs are at least zero."""
        return np.where(self.of(outputs).any(axis=1), np.maximum(rho, 0.0), rho)

    def along(self, rho: F64, reference: I8, features: U32) -> F64:
        """Steps along a tree that is monotone by ``reference`` and uses these features."""
        agreement = self.signs[:, features] * reference[features]
        rho = np.where((agreement > 0).any(axis=1), np.maximum(rho, 0.0), rho)
        return np.where((agreement < 0).any(axis=1), np.minimum(rho, 0.0), rho)


def _references(signs: I8) -> list[I8]:
    """Return the different rows of constraints, up to their sign; others fill their gaps."""
    columns = signs.astype(int).sum(axis=0)
    # A feature that as many outputs rise with as fall with: upwards.
    majority = np.where(columns == 0, np.abs(signs).max(axis=0), np.sign(columns))
    references: dict[bytes, I8] = {}
    for row in signs[signs.any(axis=1)]:
        upright = row * row[np.flatnonzero(row)[0]]
        filled = np.where(upright == 0, majority, upright).astype(np.int8)
        references.setdefault(upright.tobytes(), filled)
    return list(references.values())


@dataclass(frozen=True)
class Constraints:
    """The constraints of a fit; None where there are none.

    ``interactions`` are groups of features; those on a path from root to leaf lie in one group.
    """

    monotonic: Monotonic | None = None
    interactions: list[list[int]] | None = None


def resolve_monotonic(
    monotonic_cst: Any,
    n_outputs: int,
    is_categorical: Mask,
    names: NDArray[Any] | None,
    output_names: Sequence[str] | None = None,
) -> Monotonic | None:
    """Check ``monotonic_cst``; None if nothing is constrained."""
    n_features = len(is_categorical)
    if monotonic_cst is None:
        return None
    monotonic_cst = by_position("monotonic_cst", monotonic_cst, names, output_names)
    if isinstance(monotonic_cst, Mapping):
        given = np.zeros((n_outputs, n_features))
        number = feature_numbers("monotonic_cst", n_features, names)
        for feature, sign in monotonic_cst.items():
            if not isinstance(feature, str):
                raise ValueError(
                    f"monotonic_cst has the key {feature!r}; the keys of a dict must be names of "
                    "features, or pass an array with a sign for each feature."
                )
            j = number(feature)
            of_feature = _numbers(sign)
            if of_feature.shape not in ((), (n_outputs,)):
                raise ValueError(
                    f"monotonic_cst has signs of the shape {of_feature.shape} for feature "
                    f"{feature!r}; it must have one sign, or one for each of the {n_outputs} "
                    "outputs."
                )
            given[:, j] = of_feature
    else:
        given = _numbers(monotonic_cst)
    if given.shape not in ((n_features,), (n_outputs, n_features)):
        raise ValueError(
            f"monotonic_cst has shape {given.shape}; it must have one sign for each of the "
            f"{n_features} features, or a row of them for each of the {n_outputs} outputs."
        )
    wrong = ~np.isin(given, (-1, 0, 1))
    if wrong.any():
        place = np.argwhere(wrong)[0]
        raise ValueError(
            f"monotonic_cst is {given[tuple(place)]:g} for feature "
            f"{column_name(int(place[-1]), names)}; it must be -1 (falls), 0 (free) or 1 (rises)."
        )
    signs = np.broadcast_to(given, (n_outputs, n_features)).astype(np.int8)
    both = signs.any(axis=0) & is_categorical
    if both.any():
        j = int(np.argmax(both))
        raise ValueError(
            f"monotonic_cst constrains feature {column_name(j, names)}, which is categorical; "
            "categories have no order, set its constraint to 0."
        )
    return Monotonic(signs) if signs.any() else None


def _numbers(values: Any) -> F64:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "monotonic_cst must hold -1, 0 and 1, one for each feature, or a row of them for each "
            "output."
        ) from None


def resolve_interactions(
    interaction_cst: Any, n_features: int, names: NDArray[Any] | None
) -> list[list[int]] | None:
    """Check ``interaction_cst``; groups of feature numbers, or None for no constraint.

    Features that no group names form one more group.
    """
    if interaction_cst is None:
        return None
    if isinstance(interaction_cst, str):
        size = min({"pairwise": 2, "no_interactions": 1}[interaction_cst], n_features)
        return [list(group) for group in itertools.combinations(range(n_features), size)]
    groups = []
    number = feature_numbers("interaction_cst", n_features, names)
    for place, group in enumerate(interaction_cst):
        if isinstance(group, str) or not isinstance(group, Collection):
            raise ValueError(
                f"interaction_cst has {group!r} as group {place}; each group must be a set of "
                "features."
            )
        groups.append(set(map(number, group)))
    rest = set(range(n_features)).difference(*groups)
    return [sorted(group) for group in [*groups, rest] if group]
