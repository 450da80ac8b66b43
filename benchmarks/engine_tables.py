"""The tables of the suite `engine`: the time of a round, as ratios within one run."""

from collections.abc import Callable, Iterator, Sequence

from benchmarks.records import Run, Summary
from benchmarks.suites import (
    AS_STORED,
    CLIFF,
    COMPONENTS,
    GROWTH,
    GROWTH_LABELS,
    MULTIOUTPUT,
    ONE_OUTPUT,
    PREDICTED,
    PREDICTED_ROUNDS,
    PREDICTORS,
    RELABEL,
    SINGLE,
    SMALL_TABLES,
    SPARSE_TABLES,
    TALL,
    THREADED,
    THREADS,
    VECTOR_LEAVES,
    WEIGHTED,
    WIDE,
)
from benchmarks.tables import number, table

HOW = """\
The time of a round is the time of a long fit minus that of a short fit, divided by the difference
of their rounds, so that work done once per fit drops out; the fastest of several fits counts.
Ratios divide times of one run; below 1, the one that is named first is faster.
`lightgbm-one-output` fits a single output (for labels, the one that is positive in nearest to half
of the rows), manyboost fits all of them. Both may grow the same number of leaves, with at least one
row each; "leaves grown" is the mean over the trees. On sparse tables a few features may decide
LightGBM's single label, and its trees then end early. So the first label of the file is shown too,
and the time for each leaf. Predictions are those of small models, for 20,000 rows; ≈ extrapolated
from models of some of the outputs, or from some of the rounds."""
BUSY = 0.1  # cores used by other processes from which on it is said

Rows = list[list[str]]


def sections(run: Run) -> Iterator[str]:
    """Markdown, a heading and a table in turn; what was not measured is left out."""
    yield HOW
    busy = [s.others_cores for s in run.summaries if s.others_cores > BUSY]
    if busy:
        yield (
            f"Other processes ran during {len(busy)} of {len(run.summaries)} measurements, "
            f"on up to {max(busy):.1f} cores."
        )
    for title, make in SECTIONS:
        head, rows, words = make(run)
        if rows:
            yield f"### {title}"
            yield table(head, rows, words, len(head))


Table = tuple[Sequence[str], Rows, int]  # head, rows, and how many columns of words come first


def against_one_output(run: Run, names: Sequence[str]) -> Table:
    head = ("data", "rows × features × outputs", "leaves", "threads", "`relabel`, ms")
    peer = ("`lightgbm-one-output`, ms", "ratio", "leaves grown")
    rows = []
    for name in names:
        for ours in of_rounds(run, name, RELABEL):
            alike = {"leaves": ours.leaves, "n_threads": ours.n_threads, "variant": ""}
            theirs = run.exact(name, ONE_OUTPUT, protocol="rounds", **alike)
            times = [milliseconds(ours), milliseconds(theirs), ratio(ours, theirs)]
            settings = [str(ours.leaves), str(ours.n_threads)]
            grown = f"{grown_leaves(ours)} : {grown_leaves(theirs)}"
            rows.append([name, shape(ours), *settings, *times, grown])
    return (*head, *peer), rows, 2


def small(run: Run) -> Table:
    return against_one_output(run, SMALL_TABLES)


def sparse(run: Run) -> Table:
    """As above, for two labels of LightGBM's, and for each leaf besides."""
    rows = []
    for name in SPARSE_TABLES:
        for ours in of_rounds(run, name, RELABEL):
            for label, theirs in one_label(run, name).items():
                times = [milliseconds(ours), milliseconds(theirs), ratio(ours, theirs)]
                leaves = f"{grown_leaves(ours)} : {grown_leaves(theirs)}"
                leaf = [number(s.fastest_leaf if s else None, 1e6) for s in (ours, theirs)]
                for_leaf = [" : ".join(leaf), ratio(ours, theirs, lambda s: s.fastest_leaf)]
                rows.append([name, shape(ours), label, *times, leaves, *for_leaf])
    head = ("data", "rows × features × outputs", "LightGBM's label", "`relabel`, ms")
    peer = ("`lightgbm-one-output`, ms", "ratio", "leaves grown", "µs a leaf", "ratio for a leaf")
    return (*head, *peer), rows, 3


def one_label(run: Run, name: str) -> dict[str, Summary | None]:
    """LightGBM on a label of a sparse table: the one nearest to half, and the first one."""
    how = {"protocol": "rounds", "n_threads": 1}
    found = {
        "nearest to half": run.exact(name, ONE_OUTPUT, variant="", **how),
        "first": run.exact(name, ONE_OUTPUT, variant=AS_STORED, **how),
    }
    return {label: s for label, s in found.items() if s or label != "first"}


def large(run: Run) -> Table:
    """Millions of rows: the time of a round, and memory beside what the library expects."""
    rows = []
    for name in (TALL, WIDE):
        for ours in of_rounds(run, name, RELABEL):
            theirs = run.exact(name, ONE_OUTPUT, protocol="rounds", n_threads=ours.n_threads)
            times = [milliseconds(ours), milliseconds(theirs), ratio(ours, theirs)]
            memory = [number(ours.median(f"{kind}_bytes"), 1e-6) for kind in ("peak", "expected")]
            rows.append([shape(ours), str(ours.n_threads), *times, *memory])
    head = ("rows × features × outputs", "threads", "`relabel`, ms", "`lightgbm-one-output`, ms")
    return (*head, "ratio", "peak, MB", "expected at most, MB"), rows, 1


def cliff(run: Run) -> Table:
    """Two numbers of rows, on either side of 2^20."""
    found = [s for name in CLIFF for s in of_rounds(run, name, RELABEL)]
    rows = []
    for s in found:
        per_row, first = (round_seconds(one) / size(one, "n_rows") for one in (s, found[0]))
        nanoseconds = number(per_row, 1e9)
        rows.append(
            [shape(s), str(s.n_threads), milliseconds(s), nanoseconds, number(per_row / first)]
        )
    head = ("rows × features × outputs", "threads", "`relabel`, ms", "ns for a row", "ratio")
    return head, rows, 1


def weights(run: Run) -> Table:
    rows = []
    for name, kinds in WEIGHTED.items():
        for kind in ("", *kinds):
            for components in ("", COMPONENTS):
                variant = "+".join(filter(None, (kind, components)))
                ours, plain, same = (
                    run.exact(name, RELABEL, protocol="rounds", variant=v)
                    for v in (variant, "", components)
                )
                if ours:
                    what = kind.replace("-", " ") or "none"
                    n = components.rpartition("-")[2] or "1"
                    times = [milliseconds(ours), ratio(ours, same), ratio(ours, plain)]
                    rows.append([name, what, n, str(ours.n_threads), *times])
    head = ("data", "weights", "components", "threads", "`relabel`, ms")
    return (*head, "ratio to no weights", "ratio to no weights, 1 component"), rows, 2


def growth(run: Run) -> Table:
    first = run.exact(GROWTH[0], RELABEL, protocol="rounds")
    rows = []
    for name in (*GROWTH, GROWTH_LABELS):
        for ours in of_rounds(run, name, RELABEL):
            theirs = run.exact(name, ONE_OUTPUT, protocol="rounds", n_threads=ours.n_threads)
            times = [milliseconds(ours), ratio(ours, first)]
            peer = [milliseconds(theirs), ratio(ours, theirs)]
            rows.append([name, str(ours.n_threads), *times, *peer])
    head = ("data", "threads", "`relabel`, ms", "ratio to the first")
    return (*head, "`lightgbm-one-output`, ms", "ratio to it"), rows, 1


def threads(run: Run) -> Table:
    found = sorted(of_rounds(run, THREADED, RELABEL), key=lambda s: s.n_threads)
    rows = [[THREADED, str(s.n_threads), milliseconds(s), ratio(found[0], s)] for s in found]
    return ("data", "threads", "`relabel`, ms", "times as fast"), rows, 1


def vector_leaves(run: Run) -> Table:
    """Trees on all outputs, ours and those of others."""
    name = "regression-20000x50x50"
    found = [s for one in VECTOR_LEAVES for s in of_rounds(run, name, one)]
    ours = run.exact(name, MULTIOUTPUT, protocol="rounds")
    rows = [
        [s.contestant, str(s.n_threads), milliseconds(s), ratio(s, ours) if ours else "–"]
        for s in found
    ]
    return (f"{name}, contestant", "threads", "ms", "ratio to `multioutput`"), rows, 1


def prediction(run: Run) -> Table:
    rows = []
    for name in PREDICTED:
        for n_rounds in PREDICTED_ROUNDS:
            for variant in ("", SINGLE):
                ours, *peers = predictors(run, name, n_rounds, variant)
                if ours is None:
                    continue
                rates = [rate(s) for s in (ours, *peers)]
                best = fastest(peers)
                compared = predicted_rate(ours) / predicted_rate(best) if best else None
                what = [f"{size(ours, 'n_outputs'):,}", str(n_rounds), variant or "float64"]
                rows.append([*what, *rates, number(compared)])
    columns = [f"`{one}`" for one in PREDICTORS]
    head = ("outputs", "rounds", "`relabel` in", *columns, "`relabel` : fastest other")
    return head, rows, 0


def predictors(run: Run, name: str, n_rounds: int, variant: str = "") -> list[Summary | None]:
    """Ours, of this variant, then the others, which have none."""
    how = {"protocol": "prediction", "n_rounds": n_rounds}
    return [
        run.exact(name, one, **how, variant=variant if one == RELABEL else "") for one in PREDICTORS
    ]


def fastest(found: Sequence[Summary | None]) -> Summary | None:
    return max((s for s in found if s), key=predicted_rate, default=None)


def predicted_rate(summary: Summary) -> float:
    rate = summary.predicted_rows_per_second
    assert rate is not None
    return rate


def rate(summary: Summary | None) -> str:
    mark = "≈ " if summary and summary.extrapolated else ""
    return mark + number(predicted_rate(summary) if summary else None)


Section = tuple[str, Callable[[Run], Table]]
SECTIONS: tuple[Section, ...] = (
    ("Small tables", small),
    ("Sparse tables: 31 leaves, 1 thread", sparse),
    ("A million rows", cliff),
    ("Millions of rows, many columns", large),
    ("Weights", weights),
    ("Many outputs", growth),
    ("Threads", threads),
    ("Trees on all outputs", vector_leaves),
    (f"Predictions, rows/s: {THREADS} threads", prediction),
)


# ------------------------------------------------------------------ helpers


def of_rounds(run: Run, workload: str, contestant: str) -> list[Summary]:
    """Those whose rounds were timed, without variants: many leaves first, then few threads."""
    found = [
        s
        for s in run.summaries
        if (s.workload, s.contestant, s.protocol, s.variant) == (workload, contestant, "rounds", "")
        and s.ok
    ]
    return sorted(found, key=lambda s: (-s.leaves, s.n_threads))


def round_seconds(summary: Summary) -> float:
    seconds = summary.fastest_round
    assert seconds is not None
    return seconds


def milliseconds(summary: Summary | None) -> str:
    return number(summary.fastest_round if summary else None, 1000)


def ratio(
    summary: Summary | None,
    other: Summary | None,
    seconds: Callable[[Summary], float | None] = lambda s: s.fastest_round,
) -> str:
    above, below = (seconds(s) if s else None for s in (summary, other))
    # A round too short to be told from the noise may even come out negative.
    return number(above / below) if above is not None and below and below > 0 else "–"


def grown_leaves(summary: Summary | None) -> str:
    return number(summary.median("leaves_per_round") if summary else None)


def shape(summary: Summary) -> str:
    fields = ("n_rows", "n_features", "n_outputs")
    return " × ".join(f"{size(summary, field):,}" for field in fields)


def size(summary: Summary, field: str) -> int:
    return int(summary.records[0][field])
