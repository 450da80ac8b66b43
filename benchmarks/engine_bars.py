"""Claims about the engine: each with its bar and what was measured.

Times of a round and of predictions are those of the suite `engine`, and what Dask costs that of
`distributed`.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.bars import Line, NotMeasured, at_least, at_most, seconds
from benchmarks.engine_tables import fastest, predicted_rate, predictors
from benchmarks.records import Run, Summary
from benchmarks.suites import (
    AS_STORED,
    CLIFF,
    COMPONENTS,
    GROWN,
    GROWTH,
    MULTIOUTPUT,
    ONE_OUTPUT,
    PREDICTED,
    PREDICTED_ROUNDS,
    RELABEL,
    SMALL_TABLES,
    SPARSE_TABLES,
    TALL,
    THREADED,
)

Ratio = tuple[float, str]  # and what was compared
MEGABYTE = 10**6

WEIGHT_BARS = (
    ("row weights over none", "regression-200000x20x5", "row-weights", 1.3),
    ("class weights over none", "multilabel-200000x20x5", "class-weight", 1.3),
    ("cell weights over none", "regression-200000x20x5", "cell-weights", 1.7),
    ("four components over one", "regression-200000x20x5", COMPONENTS, 1.9),
)


@dataclass(frozen=True)
class Measured:
    """All that claims are judged by; `distributed` may not be there."""

    engine: Run
    distributed: dict[str, Any] | None = None

    def rounds(self, workload: str, contestant: str = RELABEL, **how: Any) -> Summary:
        """The one whose rounds were timed, of no variant unless said."""
        how = {"protocol": "rounds", "variant": "", **how}
        found = self.engine.exact(workload, contestant, **how)
        if found is None or found.fastest_round is None or found.fastest_round <= 0:
            raise NotMeasured(f"no round of {contestant} on {workload}")
        return found


def lines(measured: Measured) -> list[Line]:
    """All claims, in order."""
    return [line for claim in CLAIMS for line in claim(measured)]


# ------------------------------------------------------------------ helpers


def over(above: Summary, below: Summary) -> Ratio:
    """The time of a round of one over that of the other."""
    a, b = above.fastest_round, below.fastest_round
    assert a is not None
    assert b is not None
    return a / b, f"{seconds(a)} : {seconds(b)}"


def worst(names: Sequence[str], ratio: Callable[[str], Ratio]) -> Ratio:
    """The least of the ratios of several tables, and all of them."""
    ratios = {name: ratio(name)[0] for name in names}
    if len(names) == 1:
        return ratio(names[0])
    return min(ratios.values()), ", ".join(f"{name} {r:.3g}" for name, r in ratios.items())


# ------------------------------------------------------------------ the claims


def small_tables(measured: Measured) -> Iterator[Line]:
    def against(threads: int, name: str) -> Ratio:
        how: dict[str, Any] = {"leaves": 31, "n_threads": threads}
        return over(measured.rounds(name, ONE_OUTPUT, **how), measured.rounds(name, **how))

    def speedup(leaves: int, name: str) -> Ratio:
        return over(*(measured.rounds(name, leaves=leaves, n_threads=n) for n in (1, 2)))

    for threads, words in ((1, "1 thread"), (2, "2 threads")):
        claim = f"small tables: 31 leaves, {words}, against LightGBM on one output"
        yield at_least(claim, 2, partial(worst, SMALL_TABLES, partial(against, threads)), goal=2.5)
    for leaves in (31, 4):
        claim = f"small tables: {leaves} leaves, two threads against one"
        yield at_least(claim, 1, partial(worst, SMALL_TABLES, partial(speedup, leaves)))


def sparse_tables(measured: Measured) -> Iterator[Line]:
    def against(name: str) -> Ratio:
        ours, theirs = measured.rounds(name), measured.rounds(name, ONE_OUTPUT)
        value, detail = over(ours, theirs)
        a, b = ours.fastest_leaf, theirs.fastest_leaf
        if a and b:
            detail += f"; for each leaf grown {a / b:.3g} ×"
        with contextlib.suppress(NotMeasured):
            first = over(ours, measured.rounds(name, ONE_OUTPUT, variant=AS_STORED))
            detail += f"; for the first label {first[0]:.3g} ×"
        return value, detail

    for name in SPARSE_TABLES:
        bar = 1.3 if name == "bibtex" else 1
        claim = f"{name}: a round over LightGBM's for one output"
        yield at_most(claim, bar, partial(against, name))


def no_cliffs(measured: Measured) -> Iterator[Line]:
    def for_a_row() -> Ratio:
        below, above = (measured.rounds(name) for name in CLIFF)
        value, detail = over(above, below)
        n_below, n_above = (s.records[0]["n_rows"] for s in (below, above))
        return value * n_below / n_above, f"{detail}, {n_above:,} and {n_below:,} rows"

    def with_variant(name: str, variant: str) -> Ratio:
        return over(measured.rounds(name, variant=variant), measured.rounds(name))

    yield at_most("2²⁰ + 20,000 rows over 2²⁰ − 20,000, for a row", 1.05, for_a_row)
    for what, name, variant, bar in WEIGHT_BARS:
        yield at_most(f"{what}, {name}", bar, partial(with_variant, name, variant))


def growth_and_threads(measured: Measured) -> Iterator[Line]:
    yield at_least(
        "20,000 × 50 × 50, against LightGBM on one output",
        2,
        lambda: over(measured.rounds(GROWN, ONE_OUTPUT), measured.rounds(GROWN)),
    )
    yield at_most(
        "a round of 1000 outputs over one of 10",
        5,
        lambda: over(measured.rounds(GROWTH[-1]), measured.rounds(GROWTH[0])),
        goal=4,
    )
    yield at_least(
        "two threads against one, 100,000 × 100 × 100",
        1.7,
        lambda: over(*(measured.rounds(THREADED, n_threads=n) for n in (1, 2))),
    )


def prediction(measured: Measured) -> Iterator[Line]:
    def against(name: str, n_rounds: int) -> Ratio:
        ours, *peers = predictors(measured.engine, name, n_rounds)
        best = fastest(peers)
        if ours is None or best is None:
            raise NotMeasured(f"no predictions of {n_rounds} rounds on {name}")
        a, b = predicted_rate(ours), predicted_rate(best)
        return a / b, f"{a:,.0f} : {b:,.0f} rows/s, {best.contestant}"

    for name in PREDICTED[:-1]:
        outputs = int(name.rpartition("x")[2])
        what = f"predict, {outputs} output{'s' if outputs > 1 else ''}"
        for n_rounds in PREDICTED_ROUNDS:
            claim = f"{what}, {n_rounds} rounds, against the fastest peer"
            yield at_least(claim, 1.5, partial(against, name, n_rounds))


def vector_leaves(measured: Measured) -> Iterator[Line]:
    tree = "xgboost-multi-output-tree"
    yield at_least(
        "`multioutput`, 50 outputs, against xgboost `multi_output_tree`",
        8,
        lambda: over(measured.rounds(GROWN, tree), measured.rounds(GROWN, MULTIOUTPUT)),
    )


def millions_of_rows(measured: Measured) -> Iterator[Line]:
    yield at_most(
        "5,000,000 × 28 × 10, a round over LightGBM's for one output",
        1,
        lambda: over(measured.rounds(TALL), measured.rounds(TALL, ONE_OUTPUT)),
    )

    def memory() -> Ratio:
        ours = measured.rounds(TALL)
        peak, bound = ours.peak_bytes, ours.median("expected_bytes")
        if peak is None or bound is None:
            raise NotMeasured("this system does not tell the peak memory")
        return peak / bound, f"{peak / MEGABYTE:,.0f} of {bound / MEGABYTE:,.0f} MB"

    yield at_most(
        "5,000,000 × 28 × 10, memory above the data over what is expected before a fit", 1, memory
    )


def dask(measured: Measured) -> Iterator[Line]:
    def ratio() -> Ratio:
        records = (measured.distributed or {}).get("records", {})
        if "overhead-1000000x20" not in records:
            raise NotMeasured("no record of two workers")
        found = records["overhead-1000000x20"]["figures"]
        detail = f"{seconds(found['dask_seconds'])} : {seconds(found['local_seconds'])}"
        return found["ratio"], detail

    yield at_most("two Dask workers over two threads, 1,000,000 × 50 × 20", 1.3, ratio)


CLAIMS: tuple[Callable[[Measured], Iterator[Line]], ...] = (
    small_tables,
    sparse_tables,
    no_cliffs,
    growth_and_threads,
    prediction,
    vector_leaves,
    millions_of_rows,
    dask,
)
