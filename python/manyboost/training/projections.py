"""Random projections of the outputs, one matrix a round."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32, Mask
from manyboost.training.strategies import Strategy

Projection: TypeAlias = Callable[[int, int, np.random.Generator], NDArray[np.floating]]


@dataclass(frozen=True)
class ProjectionFamily:
    """A distribution of projections, whose entries have mean 0 and variance 1 / n_components.

    ``draw`` makes a matrix from ``(n_components, n_outputs, zero_sums, seed, round)``; None: the
    identity, which is not drawn.
    """

    name: str
    draw: Callable[[int, int, list[tuple[int, int]], int, int], F32] | None
    without_replacement: bool = False  # each component is another output


def _of_core(name: str, *, without_replacement: bool = False) -> ProjectionFamily:
    draw = functools.partial(_core.draw_projection, name)
    return ProjectionFamily(name, draw, without_replacement)


PROJECTIONS = {
    family.name: family
    for family in (
        _of_core("gaussian"),
        _of_core("rademacher"),
        _of_core("achlioptas"),
        _of_core("sparse"),
        _of_core("subsample", without_replacement=True),
        ProjectionFamily("identity", None),
    )
}


def is_identity(projection: str | Projection) -> bool:
    """Whether outputs are not projected at all."""
    return isinstance(projection, str) and PROJECTIONS[projection].draw is None


# Purpose of NumPy streams handed to callables; built-in projections draw in the core.
_CALLABLE_STREAM = 1
_REDRAWS = 100


def resolve_n_components(
    n_components: int | float,
    n_outputs: int,
    projection: str | Projection,
    strategy: Strategy,
    n_weighted: int | None = None,
) -> int:
    """Number of components q for a strategy and number of outputs.

    ``n_weighted`` outputs have a positive output_weight; None: all.
    """
    n_weighted = n_outputs if n_weighted is None else n_weighted
    fraction = not isinstance(n_components, int | np.integer)
    q = max(1, round(n_components * n_outputs)) if fraction else int(n_components)
    if strategy.max_components is not None and q > strategy.max_components:
        raise ValueError(
            f"n_components={n_components!r} needs strategy='relabel', but strategy is "
            f"{strategy.name!r}; use strategy='relabel' or n_components=1."
        )
    if is_identity(projection) and strategy.projects:
        if strategy.max_components is not None and n_outputs > strategy.max_components:
            raise ValueError(
                f"projection={projection!r} keeps all {n_outputs} outputs, but "
                f"strategy={strategy.name!r} grows trees on one; use strategy='multioutput' or "
                "another projection."
            )
        return n_outputs
    distinct = isinstance(projection, str) and PROJECTIONS[projection].without_replacement
    if distinct and strategy.projects and q > n_weighted:
        raise ValueError(
            f"n_components={q} is more than the {n_weighted} outputs that "
            f"projection={projection!r} draws from without replacement; use fewer components or "
            "another projection."
        )
    return q


def draw(
    projection: str | Projection,
    n_components: int,
    n_outputs: int,
    zero_sums: list[tuple[int, int]],
    seed: int,
    m: int,
    outputs: Mask | None = None,
) -> F32:
    """Draw the projection matrix (n_components, n_outputs) of round ``m``.

    Rows that are all zero are drawn again; so are those that are constant over each range of
    outputs in ``zero_sums``, over which residuals sum to zero, and zero elsewhere. ``outputs``
    (n_outputs,) says which ones matter, None: all. Columns of the others are zero; built-in
    projections are drawn for those that matter alone, callables are asked for all columns. If one
    output matters alone, it stays as it is: a factor would only change the scale of its gains.
    """
    if n_outputs == 1 or (outputs is not None and outputs.sum() == 1):
        return np.ones((1, 1), np.float32) if outputs is None else outputs[None].astype(np.float32)
    if outputs is not None:
        # Their places among the outputs that matter.
        place = np.cumsum([0, *outputs]).tolist()
        ranges = [(place[start], place[stop]) for start, stop in zero_sums]
        zero_sums = [(start, stop) for start, stop in ranges if start < stop]
    if isinstance(projection, str):
        family = PROJECTIONS[projection]
        assert family.draw is not None
        n_drawn = n_outputs if outputs is None else int(outputs.sum())
        if family.without_replacement:
            n_components = min(n_components, n_drawn)
        drawn = family.draw(n_components, n_drawn, zero_sums, seed, m)
        if outputs is None:
            return drawn
        phi = np.zeros((n_components, n_outputs), np.float32)
        phi[:, outputs] = drawn
        return phi
    rng = np.random.default_rng([seed, m, _CALLABLE_STREAM])
    for _ in range(_REDRAWS):
        phi = _checked(projection(n_components, n_outputs, rng), n_components, n_outputs)
        if outputs is not None:
            phi = np.where(outputs, phi, np.float32(0))
        used = phi if outputs is None else phi[:, outputs]
        level = np.zeros_like(used)
        for start, stop in zero_sums:
            level[:, start:stop] = used[:, start : start + 1] if stop - start > 1 else 0
        useless = np.all(used == level, axis=1)
        if not useless.any():
            return phi
    raise ValueError(
        f"The projection callable returned a matrix whose row {int(np.argmax(useless))} is "
        f"{'constant' if zero_sums else 'all zero'}, {_REDRAWS} times in a row; it must give "
        "some output a weight."
    )


def _checked(phi: object, n_components: int, n_outputs: int) -> F32:
    """Return what a callable returned as a float32 matrix, or say what is wrong with it."""
    expected = (n_components, n_outputs)
    array = np.asarray(phi)
    if array.shape != expected:
        raise ValueError(
            f"The projection callable returned an array of shape {array.shape}; it must return "
            f"(n_components, n_outputs) = {expected}."
        )
    if not (np.issubdtype(array.dtype, np.number) and np.isrealobj(array)):
        raise ValueError(
            f"The projection callable returned an array of {array.dtype}; it must return real "
            "numbers."
        )
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(single).all():
        raise ValueError(
            "The projection callable returned NaN or infinity; it must return finite numbers."
        )
    return single
