"""What the engine must reach: each claim with its bar and what was measured.

Times of a round and of predictions are those of the suite `engine`, ratios to an earlier build
those of `builds`, and what Dask costs that of `distributed`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.bars import Line, NotMeasured, at_least, at_most, seconds
from benchmarks.build_tables import Builds, Pair
from benchmarks.engine_tables import fastest, predicted_rate, predictors
from benchmarks.records import Run, Summary
from benchmarks.suites import (
    CLIFF,
    COMPONENTS,
    GROWN,
    GROWTH,
    GROWTH_LABELS,
    MANY_PREDICTED,
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

# How many times as fast as the build before, with 31 leaves.
SMALL_BARS = {
    ("emotions", "CAL500"): 3.0,
    ("atp1d",): 2.6,
    ("oes97",): 2.2,
    ("yeast", "scene"): 1.7,
}
WEIGHT_BARS = (
    ("row weights", "regression-200000x20x5", "row-weights", 1.3),
    ("class weights", "multilabel-200000x20x5", "class-weight", 1.3),
    ("cell weights", "regression-200000x20x5", "cell-weights", 1.7),
    ("four components", "regression-200000x20x5", COMPONENTS, 1.9),
)


@dataclass(frozen=True)
class Measured:
    """All that claims are judged by; `builds` and `distributed` may not be there."""

    engine: Run
    builds: Builds | None = None
    distributed: dict[str, Any] | None = None

    def rounds(self, workload: str, contestant: str = RELABEL, **how: Any) -> Summary:
        """The one whose rounds were timed, of no variant unless said."""
        how = {"protocol": "rounds", "variant": "", **how}
        found = self.engine.exact(workload, contestant, **how)
        if found is None or found.fastest_round is None or found.fastest_round <= 0:
            raise NotMeasured(f"no round of {contestant} on {workload}")
        return found

    def pair(self, workload: str, **how: Any) -> Pair:
        found = self.builds.find(workload, **how) if self.builds else None
        if found is None:
            raise NotMeasured(f"no comparison of builds on {workload}")
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


def faster_now(pair: Pair) -> Ratio:
    before, now = pair.seconds
    return before / now, f"{seconds(before)} : {seconds(now)}"


def of_before(pair: Pair) -> Ratio:
    before, now = pair.seconds
    return now / before, f"{seconds(now)} : {seconds(before)}"


# ------------------------------------------------------------------ the claims


def small_tables(measured: Measured) -> Iterator[Line]:
    def since(name: str, leaves: int) -> Ratio:
        return faster_now(measured.pair(name, protocol="rounds", max_leaf_nodes=leaves))

    for names, bar in SMALL_BARS.items():
        yield at_least(
            f"{', '.join(names)}: 31 leaves, against the build before",
            bar,
            lambda names=names: worst(names, lambda name: since(name, 31)),
        )
    yield at_least(
        "small tables: 4 leaves, against the build before",
        1.5,
        lambda: worst(SMALL_TABLES, lambda name: since(name, 4)),
    )
    for threads in (1, 2):

        def against(name: str, threads: int = threads) -> Ratio:
            how = {"leaves": 31, "n_threads": threads}
            theirs, ours = (measured.rounds(name, one, **how) for one in (ONE_OUTPUT, RELABEL))
            return over(theirs, ours)

        plural = "s" if threads > 1 else ""
        yield at_least(
            f"small tables: 31 leaves, {threads} thread{plural}, against LightGBM on one output",
            2,
            lambda against=against: worst(SMALL_TABLES, against),
            goal=2.5,
        )
    for leaves in (31, 4):

        def speedup(name: str, leaves: int = leaves) -> Ratio:
            one, two = (measured.rounds(name, leaves=leaves, n_threads=n) for n in (1, 2))
            return over(one, two)

        yield at_least(
            f"small tables: {leaves} leaves, two threads against one",
            1,
            lambda speedup=speedup: worst(SMALL_TABLES, speedup),
        )


def sparse_tables(measured: Measured) -> Iterator[Line]:
    for name in SPARSE_TABLES:

        def ratio(name: str = name) -> Ratio:
            ours, theirs = (measured.rounds(name, one) for one in (RELABEL, ONE_OUTPUT))
            value, detail = over(ours, theirs)
            a, b = ours.fastest_leaf, theirs.fastest_leaf
            for_leaves = f"; {a / b:.3g} × for each leaf grown" if a and b else ""
            return value, detail + for_leaves

        bar = 1.3 if name == "bibtex" else 1
        yield at_most(f"{name}: a round over LightGBM's for one output", bar, ratio)


def no_cliffs(measured: Measured) -> Iterator[Line]:
    def for_a_row() -> Ratio:
        below, above = (measured.rounds(name) for name in CLIFF)
        value, detail = over(above, below)
        n_below, n_above = (s.records[0]["n_rows"] for s in (below, above))
        return value * n_below / n_above, f"{detail}, {n_above:,} and {n_below:,} rows"

    yield at_most("2²⁰ + 20,000 rows over 2²⁰ − 20,000, for a row", 1.05, for_a_row)
    for what, name, variant, bar in WEIGHT_BARS:
        yield at_most(
            f"{what} over none, {name}",
            bar,
            lambda name=name, variant=variant: over(
                measured.rounds(name, variant=variant), measured.rounds(name)
            ),
        )


def passes(measured: Measured) -> Iterator[Line]:
    yield at_most(
        "20,000 × 50 × 50, growing a tree, over the build before",
        0.7,
        lambda: of_before(measured.pair(GROWN, protocol="growth")),
    )
    for loss, name, bar, goal in (
        ("squared error", GROWTH[-1], 0.6, None),
        ("log loss", GROWTH_LABELS, 0.75, 0.65),
    ):
        yield at_most(
            f"20,000 × 50 × 1000, {loss}, a round over the build before",
            bar,
            lambda name=name: of_before(measured.pair(name, protocol="rounds")),
            goal=goal,
        )
    yield at_least(
        "20,000 × 50 × 50, against LightGBM on one output",
        2,
        lambda: over(measured.rounds(GROWN, ONE_OUTPUT), measured.rounds(GROWN)),
    )


def growth_and_threads(measured: Measured) -> Iterator[Line]:
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
    for name in PREDICTED:
        if name == MANY_PREDICTED:
            continue
        for n_rounds in PREDICTED_ROUNDS:

            def ratio(name: str = name, n_rounds: int = n_rounds) -> Ratio:
                ours, *peers = predictors(measured.engine, name, n_rounds)
                best = fastest(peers)
                if ours is None or best is None:
                    raise NotMeasured(f"no predictions of {n_rounds} rounds on {name}")
                a, b = predicted_rate(ours), predicted_rate(best)
                return a / b, f"{a:,.0f} : {b:,.0f} rows/s, {best.contestant}"

            outputs = name.rpartition("x")[2]
            plural = "s" if outputs != "1" else ""
            yield at_least(
                f"predict, {outputs} output{plural}, {n_rounds} rounds, against the fastest peer",
                1.5,
                ratio,
            )
    for n_rounds in PREDICTED_ROUNDS:
        yield at_least(
            f"predict, 983 outputs, {n_rounds} rounds, against the build before",
            1.7,
            lambda n_rounds=n_rounds: faster_now(
                measured.pair(MANY_PREDICTED, protocol="prediction", n_rounds=n_rounds)
            ),
        )


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
    passes,
    growth_and_threads,
    prediction,
    vector_leaves,
    millions_of_rows,
    dask,
)
