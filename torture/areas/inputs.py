"""Odd values in all containers in all places, by a grid and drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from torture.children import Run, Tally, count_cases
from torture.figures import Figure, none_of
from torture.odd_inputs import (
    CONTAINERS,
    FEATURES,
    KINDS,
    PLACES,
    CannotHold,
    Container,
    Data,
    Oddity,
    container_refusal,
    hold,
    oddities,
    ordinary,
    outcome,
    turns_into_something_else,
)

TITLE = "inputs"
PROMISE = (
    "Whatever is passed for features, targets and weights gets the documented answer, or a refusal "
    "of one sentence; nothing that was passed is changed."
)


def run(long: bool, seed: int) -> list[Figure]:
    grid = count_cases(grid_batch, grid_arguments(long))
    batches = [(seed + k, 200) for k in range(100)] if long else [(seed, 60)]
    drawn = count_cases(drawn_batch, batches)
    return [*figures("grid", grid), *figures("drawn", drawn)]


def figures(name: str, tally: Tally) -> list[Figure]:
    changed = [failure for failure in tally.failures if "InputChanged" in failure]
    others = [failure for failure in tally.failures if "InputChanged" not in failure]
    ended = ", ".join(f"{count:,} {ending}" for ending, count in sorted(tally.endings.items()))
    return [
        none_of(f"{name} ({ended}): unclear refusals, other answers than documented",
                tally.cases, others),
        none_of(f"{name}: changed inputs", tally.cases, changed),
        none_of(f"{name}: crashes", tally.cases, tally.crashes),
        none_of(f"{name}: hangs", tally.cases, tally.hangs),
    ]  # fmt: skip


# ---------------------------------------------------------------------- the grid


def grid_arguments(long: bool) -> list[tuple[str, str, int]]:
    """Kind and place of each batch, and the share of cases to try: one in so many."""
    return [(kind, place, 1 if long else 61) for kind in KINDS for place in PLACES]


def grid_batch(argument: tuple[str, str, int], run: Run) -> None:
    kind, place, one_in = argument
    known: dict[str, Any] = {}
    number = 0
    for oddity in oddities(kind, place):
        for container in CONTAINERS:
            number += 1
            if number % one_in == 0 and not (
                oddity.name == "None" and place in ("predict", "X_val")
            ):
                case = f"{kind}, {place}, {oddity.name}, {container.name}"
                run(case, grid_case(kind, place, oddity, container, known))


def grid_case(
    kind: str, place: str, oddity: Oddity, container: Container, known: dict[str, Any]
) -> Callable[[], str]:
    def case() -> str:
        usual = ordinary(kind)
        try:
            held = hold(container, oddity.make(usual[place]))
        except CannotHold:
            return "impossible"
        if turns_into_something_else(container, oddity, kind, place):
            return "impossible"
        data = around(usual, place, held)
        words = expected_refusal(kind, place, oddity, container)
        ending, result = outcome(data)
        if words is not None:
            assert ending == "refused", f"it should be refused with {words!r}"
            assert words in result, f"{words!r} is not in {result!r}"
            return ending
        assert ending == "answer", f"refused: {result}"
        if oddity.name not in known:
            is_class = kind == "classes" and place == "Y_val"
            numbers = oddity.make if is_class else oddity.numbers
            plain = around(usual, place, numbers(usual[place]))
            known[oddity.name] = outcome(plain)
        assert known[oddity.name][0] == "answer", f"numbers are refused: {known[oddity.name][1]}"
        assert np.array_equal(result, known[oddity.name][1]), "another answer than for an array"
        if oddity.name == "constant" and place == "Y" and kind == "regressor":
            assert np.allclose(result, 3.7, rtol=1e-15, atol=0), "not the constant"
        return ending

    return case


def around(usual: Data, place: str, odd: Any) -> Data:
    """The usual data with something odd in one place, and what goes with it."""
    if place in ("X_val", "Y_val"):
        return usual.replaced(sample_weight=None, **{place: odd})
    usual = usual.replaced(X_val=None, Y_val=None)
    if place != "X":
        return usual.replaced(**{place: odd})
    if isinstance(odd, list | tuple):
        n_rows = len(odd)
    else:
        n_rows = (*getattr(odd, "shape", ()), 0)[0]
    Y, weight = usual.Y[:n_rows], usual.sample_weight[:n_rows]
    return usual.replaced(X=odd, Y=Y, sample_weight=weight, predict=None)


def expected_refusal(kind: str, place: str, oddity: Oddity, container: Container) -> str | None:
    """Words of the refusal to expect, or None for an answer."""
    words = container_refusal(container, place, kind)
    if words is not None:
        return words
    if oddity.name == "None" or (
        container.name in ("list", "tuples") and oddity.name.startswith("no ")
    ):
        return ""
    if container.name == "pandas objects" and oddity.name == "no rows":
        return ""  # columns of objects that hold none
    if place != "X" and place in FEATURES and oddity.name == "no columns":
        return "feature"
    if kind == "labels" and oddity.name in ("a two", "minus one", "a label of 255", "text"):
        # Columns of classes; validation rows have no others, and sparse columns have none.
        if place == "Y" and container.family != "sparse":
            return None
        return "" if oddity.name == "text" else "indicator"
    if place == "Y_val":
        if kind == "classes" and oddity.refusal is None:
            known = ("plain", "objects that are text")
            return None if oddity.name in known else ""
        if oddity.name in ("one output", "one dimension"):
            return "outputs"
        if oddity.name in ("a missing column", "one class"):
            return None
    return oddity.refusal


# ---------------------------------------------------------------------- drawn at random

# Numbers of single precision at its edges, and numbers that are not of single precision.
_EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, np.nan, 1e37, -1e37, 1e30, 1e-30, 1e-12, 1e12),
    *(5e-324, 1e-310, 1e-45, 1e-38, 1.0 + 2.0**-23, 16777217.0, 2.0**53),
)
_BEYOND = (np.inf, -np.inf, 1e300, -1e300, 1e39, 3.4e38)
_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 1e-12, 1e12, 1e-30, 1e30)
_TYPES = ("float64", "float64", "float64", "float32", "float16", "int64", "int8", "uint64", "bool")
_CLASSES: tuple[tuple[Any, ...], ...] = (
    ("a", "b", "c"),
    ("a", "b"),
    (0, 1),
    (0, 1, 7),
    (-1.0, 1.0),
    (True, False),
    ("a", None),
    (0.0, 1.0, np.nan),
    ("", "a", "\u00e4", "\ud800"),
    (0, "a"),
    (2**62, 2**62 + 1),
)


def drawn_batch(argument: tuple[int, int], run: Run) -> None:
    """So many cases from a seed."""
    seed, count = argument
    numbers = iter(range(10**9))

    @with_seed(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn_data())
    def each(drawn: tuple[Data, dict[str, Container], dict[str, Any]]) -> None:
        plain, containers, parameters = drawn
        shapes = {place: np.shape(plain[place]) for place in containers}
        where = ", ".join(
            f"{place} {shapes[place]} in {each.name}" for place, each in containers.items()
        )
        case = f"seed {seed}, case {next(numbers)}, {plain.kind}, {where}, {parameters}"
        run(case, lambda: drawn_case(plain, containers, parameters))

    each()


def drawn_case(plain: Data, containers: dict[str, Container], parameters: dict[str, Any]) -> str:
    held = {}
    refused = False
    for place, container in containers.items():
        if plain[place] is None:
            continue
        try:
            held[place] = hold(container, plain[place])
        except CannotHold:
            held[place] = plain[place]
        else:
            refused |= container_refusal(container, place, plain.kind) is not None
    ending, result = outcome(plain.replaced(**held), **parameters)
    if refused:
        assert ending == "refused", "a container that cannot be taken was taken"
        return ending
    expected, numbers = outcome(plain, **parameters)
    assert ending == expected, f"{ending} ({result}), but for arrays {expected} ({numbers})"
    if ending == "answer":
        assert np.array_equal(result, numbers), "another answer than for arrays"
    return ending


@st.composite
def drawn_data(draw: st.DrawFn) -> tuple[Data, dict[str, Container], dict[str, Any]]:
    kind = draw(st.sampled_from(KINDS))
    n, p, d = (draw(size) for size in (_sizes(9), _sizes(4), _sizes(3)))
    nasty = draw(st.sampled_from((0, 1, 1, 2)))
    X = draw(_table(n, p, nasty))
    targets = _targets(draw, kind, d, nasty)
    Y = draw(targets(n))
    data = Data(kind, X, Y, predict=X if draw(st.booleans()) else draw(_table(2, p, nasty)))
    if draw(st.booleans()):
        cells = draw(st.booleans()) and Y.ndim == 2
        shape = Y.shape if cells else (n,)
        mild = st_numpy.arrays(np.float64, shape, elements=st.sampled_from(_WEIGHTS))
        data.sample_weight = draw(mild) if nasty < 2 else np.abs(draw(_array(shape, nasty)))
    if draw(st.integers(0, 3)) == 0:
        m = draw(_sizes(4))
        data.X_val, data.Y_val = draw(_table(m, p, nasty)), draw(targets(m))
    containers = {
        place: draw(_containers(kind, place)) for place in PLACES if data[place] is not None
    }
    strategies = ("independent", "multioutput", "project", "relabel")
    losses = {
        "regressor": ("squared_error", "absolute_error", "huber", "quantile", "poisson"),
        "labels": ("log_loss", "exponential", "squared_error"),
        "classes": ("log_loss", "exponential", "squared_error"),
    }
    parameters = {
        "strategy": draw(st.sampled_from(strategies)),
        "loss": draw(st.sampled_from(losses[kind])),
        "step": draw(st.sampled_from(("auto", "line_search", "newton"))),
        "min_samples_leaf": 1,
    }
    return data, containers, parameters


def _containers(kind: str, place: str) -> st.SearchStrategy[Container]:
    """Any container; those that are always refused not too often."""
    taken = [each for each in CONTAINERS if container_refusal(each, place, kind) is None]
    return st.one_of(*3 * [st.sampled_from(taken)], st.sampled_from(CONTAINERS))


def _sizes(most: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(2, most), st.integers(1, most), st.integers(0, most))


def _array(shape: tuple[int, ...], nasty: int) -> st.SearchStrategy[Any]:
    """Numbers that are usual, at the edges of single precision, or any."""
    usual = st.floats(-100, 100, width=32)
    edges = st.one_of(usual, st.sampled_from(_EDGES), st.floats(-1e37, 1e37))
    everything = st.one_of(edges, edges, st.sampled_from(_BEYOND), st.floats())
    elements = (usual, edges, everything)[nasty]
    plain = st_numpy.arrays(np.float64, shape, elements=elements, fill=st.nothing())
    return st.tuples(plain, st.sampled_from(_TYPES)).map(_as_type)


def _as_type(drawn: tuple[Any, str]) -> Any:
    array, dtype = drawn
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind in "iu":
            array = np.nan_to_num(array).clip(-100 if dtype[0] == "i" else 0, 100)
        cast = array.astype(dtype)
    # (Half precision ends at 65,504.)
    return cast if np.array_equal(np.isinf(cast), np.isinf(array)) else array


def _table(n: int, p: int, nasty: int) -> st.SearchStrategy[Any]:
    return _array((n, p), nasty)


def _targets(draw: st.DrawFn, kind: str, d: int, nasty: int) -> Callable[[int], Any]:
    """A function from a number of rows to a strategy for their targets."""
    if kind == "regressor":
        one = draw(st.booleans())
        return lambda n: _array((n,) if one else (n, d), nasty)
    if kind == "labels":
        marks = (0.0, 1.0, np.nan) if nasty else (0.0, 1.0)
        return lambda n: st_numpy.arrays(np.float64, (n, d), elements=st.sampled_from(marks))
    pool = draw(st.sampled_from(_CLASSES))
    dtype = object if len({type(each) for each in pool}) > 1 else np.array(pool).dtype
    return lambda n: st_numpy.arrays(dtype, (n,), elements=st.sampled_from(pool))
