"""What the benchmark must show: each claim with its bar and what one run measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.records import Run, Summary
from benchmarks.suites import HESSBOOST, OUTPUTS, XGBOOST

RELABEL, MULTIOUTPUT, PROJECT = "manyboost-relabel", "manyboost-multioutput", "manyboost-project"
TREE = "xgboost-multi-output-tree"
D50 = "regression-20000x50x50"
BOOSTING_PEERS = (
    *XGBOOST,
    "lightgbm-per-output",
    "sklearn-hist-per-output",
    HESSBOOST,
    "catboost",
    "catboost-lossguide",
)
CLASS_PEERS = (*XGBOOST, "lightgbm-softmax", "catboost")
MEGABYTE, GIGABYTE = 10**6, 10**9


@dataclass(frozen=True)
class Line:
    """One claim; `reached` is None where the run lacks what it needs, and `measured` says what."""

    claim: str
    bar: str
    measured: str
    reached: bool | None

    @property
    def verdict(self) -> str:
        return {True: "reached", False: "not reached", None: "not measured"}[self.reached]


class NotMeasured(Exception):
    """A record is missing, or stopped too early to compare with."""


def lines(run: Run) -> list[Line]:
    """All claims, in order."""
    return [line for claim in CLAIMS for line in claim(run)]


# ------------------------------------------------------------------ helpers


def need(
    run: Run, workload: str, contestant: str, *, threads: int | None = None, whole: bool = False
) -> Summary:
    found = run.find(workload, contestant, threads=threads)
    if found is None:
        failed = [s for s in run.of(workload) if s.contestant == contestant and not s.ok]
        if failed:
            raise NotMeasured(f"{contestant} on {workload}: {failed[0].status}")
        raise NotMeasured(f"no record of {contestant} on {workload}")
    if whole and not found.complete:
        raise NotMeasured(f"{contestant} was stopped after {found.extrapolated}")
    return found


def at_least(
    claim: str, bar: float, ratio: Callable[[], tuple[float, str]], goal: float | None = None
) -> Line:
    """A line whose ratio must be no less than the bar; `ratio` also says what was compared."""
    return compared(claim, f"≥ {bar:g} ×{hoped(goal)}", lambda value: value >= bar, ratio)


def at_most(
    claim: str, bar: float, ratio: Callable[[], tuple[float, str]], goal: float | None = None
) -> Line:
    return compared(claim, f"≤ {bar:g} ×{hoped(goal)}", lambda value: value <= bar, ratio)


def hoped(goal: float | None) -> str:
    """What is hoped for beyond the bar."""
    return "" if goal is None else f" (goal {goal:g})"


def compared(
    claim: str, bar: str, holds: Callable[[float], bool], ratio: Callable[[], tuple[float, str]]
) -> Line:
    try:
        value, detail = ratio()
    except NotMeasured as reason:
        return Line(claim, bar, str(reason), None)
    if value == 0:  # never reached
        return Line(claim, bar, detail, False)
    return Line(claim, bar, f"{value:.3g} × ({detail})", holds(value))


def seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def mark(summary: Summary) -> str:
    """How an extrapolated time is marked, here as in all tables."""
    return "≈ " if summary.extrapolated else ""


def faster(run: Run, workload: str, slow: str, fast: str) -> Callable[[], tuple[float, str]]:
    def ratio() -> tuple[float, str]:
        a, b = need(run, workload, slow), need(run, workload, fast)
        detail = f"{mark(a)}{seconds(a.fit_seconds)} : {mark(b)}{seconds(b.fit_seconds)}"
        return a.fit_seconds / b.fit_seconds, detail

    return ratio


def faster_per_round(
    run: Run, workload: str, slow: str, fast: str
) -> Callable[[], tuple[float, str]]:
    def ratio() -> tuple[float, str]:
        a, b = need(run, workload, slow), need(run, workload, fast)
        detail = f"{seconds(a.seconds_per_round)} : {seconds(b.seconds_per_round)}"
        return a.seconds_per_round / b.seconds_per_round, detail

    return ratio


def faster_to_score(run: Run, workload: str, peer: Summary, target: float, peer_seconds: float):
    """Peer's time : relabel's time to the same score, or 0 where relabel never gets there."""
    ours = run.longest(workload, RELABEL)
    if ours is None:
        raise NotMeasured(f"no record of {RELABEL} on {workload}")
    reached = ours.seconds_to(target)
    if reached is None:
        best = ours.best_point
        return 0.0, f"{target:.4f} of {peer.contestant}: {best[2]:.4f} in {ours.n_rounds} rounds"
    detail = f"{target:.4f}: {seconds(peer_seconds)} of {peer.contestant} : {seconds(reached)}"
    return peer_seconds / reached, detail


# ------------------------------------------------------------------ the claims


def speed_at_fifty_outputs(run: Run) -> Iterator[Line]:
    yield at_least(
        "`relabel`, 50 outputs, against LightGBM fitting a single one",
        1,
        faster(run, D50, "lightgbm-one-output", RELABEL),
    )
    yield at_least(
        "`relabel` against xgboost `multi_output_tree`", 40, faster(run, D50, TREE, RELABEL)
    )
    for peer, name, bar in (
        ("lightgbm-per-output", "LightGBM per output", 25),
        ("catboost", "catboost", 40),
    ):

        def ratio(peer=peer) -> tuple[float, str]:
            them = need(run, D50, peer, whole=True)
            return faster_to_score(run, D50, them, them.score, them.fit_seconds)

        yield at_least(f"`relabel` to the 100-round test score of {name}", bar, ratio)
    yield at_least(
        "`relabel`, per round, against xgboost with a hand-written projection",
        8,
        faster_per_round(run, D50, "xgboost-projection", RELABEL),
    )


def growth_with_outputs(run: Run) -> Iterator[Line]:
    few, many = "regression-20000x50x10", "regression-20000x50x1000"

    def time_ratio() -> tuple[float, str]:
        a, b = need(run, few, RELABEL), need(run, many, RELABEL)
        detail = f"{seconds(b.fit_seconds)} : {seconds(a.fit_seconds)}"
        return b.fit_seconds / a.fit_seconds, detail

    yield at_most("`relabel`, fit time at 1000 outputs over that at 10", 6, time_ratio)

    def memory_ratio() -> tuple[float, str]:
        found = [run.find(f"regression-20000x50x{d}", RELABEL) for d in OUTPUTS]
        shares = [
            (s.peak_bytes / allowed_bytes(s), s) for s in found if s and s.peak_bytes is not None
        ]
        if not shares:
            raise NotMeasured(f"no record of {RELABEL}")
        share, worst = max(shares, key=lambda pair: pair[0])
        used, allowed = worst.peak_bytes / MEGABYTE, allowed_bytes(worst) / MEGABYTE
        return share, f"{used:.0f} of {allowed:.0f} MB, {worst.workload}"

    yield at_most(
        "`relabel`, peak memory over 3·n·d·4 + 2·n·p bytes + 100 MB, worst shape", 1, memory_ratio
    )


def allowed_bytes(summary: Summary) -> float:
    n, p, d = (summary.median(field) for field in ("n_rows", "n_features", "n_outputs"))
    return 3 * n * d * 4 + 2 * n * p + 100 * MEGABYTE


def time_to_the_best_ranking(run: Run) -> Iterator[Line]:
    for workload in ("mediamill", "delicious"):

        def ratio(workload=workload) -> tuple[float, str]:
            found = [run.find(workload, peer) for peer in BOOSTING_PEERS]
            peers = [peer for peer in found if peer and peer.complete and peer.curve]
            if not peers:
                raise NotMeasured(f"no boosting peer was fitted to its end on {workload}")
            best = max(peers, key=lambda peer: peer.best_point[2])
            _, peer_seconds, target = best.best_point
            return faster_to_score(run, workload, best, target, peer_seconds)

        yield at_least(f"{workload}: `relabel` to the best LRAP of any boosting peer", 10, ratio)


def thousand_classes(run: Run) -> Iterator[Line]:
    workload = "classes-20000x50x1000"
    for peer in CLASS_PEERS:
        yield at_least(
            f"1000 classes, `relabel`, per round, against {peer}",
            10,
            faster_per_round(run, workload, peer, RELABEL),
        )


def stumps(run: Run) -> Iterator[Line]:
    yield at_least(
        "friedman1, 10,000 stumps for 16 outputs, against scikit-learn's for one",
        8,
        faster(run, "friedman1", "sklearn-gbr-one-output", RELABEL),
    )


def without_projection(run: Run) -> Iterator[Line]:
    yield at_least(
        "`multioutput`, 50 outputs, against xgboost `multi_output_tree`",
        3,
        faster(run, D50, TREE, MULTIOUTPUT),
    )

    def memory() -> tuple[float, str]:
        peak = need(run, "delicious", MULTIOUTPUT).peak_bytes
        if peak is None:
            raise NotMeasured("this system does not tell the peak memory")
        return peak / (4 * GIGABYTE), f"{peak / GIGABYTE:.2f} GB"

    yield at_most("`multioutput` on delicious, peak memory over 4 GB", 1, memory)


def prediction(run: Run) -> Iterator[Line]:
    def rate(contestant: str) -> float:
        return need(run, "delicious", contestant).predicted_rows_per_second

    def against_peers() -> tuple[float, str]:
        peers = [
            s
            for s in run.of("delicious")
            if s.complete and not s.contestant.startswith("manyboost")
        ]
        if not peers:
            raise NotMeasured("no peer was fitted to its end on delicious")
        best = max(peers, key=lambda peer: peer.predicted_rows_per_second)
        theirs = best.predicted_rows_per_second
        return rate(
            RELABEL
        ) / theirs, f"{rate(RELABEL):,.0f} : {theirs:,.0f} rows/s, {best.contestant}"

    yield at_least("predict, 983 outputs: `relabel` against the fastest peer", 1, against_peers)

    def among_us() -> tuple[float, str]:
        fast, slow = rate(PROJECT), rate(RELABEL)
        return fast / slow, f"{fast:,.0f} : {slow:,.0f} rows/s"

    yield at_least("predict, 983 outputs: `project` against `relabel`", 1.5, among_us)


def threads_and_import(run: Run) -> Iterator[Line]:
    def threads() -> tuple[float, str]:
        workload = "regression-100000x100x100"
        one, two = (need(run, workload, RELABEL, threads=n) for n in (1, 2))
        detail = f"{seconds(one.fit_seconds)} : {seconds(two.fit_seconds)}"
        return one.fit_seconds / two.fit_seconds, detail

    yield at_least("two threads against one, 100,000 × 100 × 100", 1.6, threads)

    claim, bar = "import, beyond that of scikit-learn", "≤ 100 ms"
    try:
        ours, theirs = (
            need(run, "import", f"import-{name}").fit_seconds for name in ("manyboost", "sklearn")
        )
    except NotMeasured as reason:
        yield Line(claim, bar, str(reason), None)
    else:
        detail = f"{1000 * (ours - theirs):.0f} ms ({seconds(ours)} − {seconds(theirs)})"
        yield Line(claim, bar, detail, ours - theirs <= 0.1)


CLAIMS: tuple[Callable[[Run], Iterator[Line]], ...] = (
    speed_at_fifty_outputs,
    growth_with_outputs,
    time_to_the_best_ranking,
    thousand_classes,
    stumps,
    without_projection,
    prediction,
    threads_and_import,
)
