"""Turn results/*.json into docs/benchmarks.md, its plots, and the marked sections of other pages.

python -m benchmarks.report                     the full suite's results, else the quick one's
python -m benchmarks.report --results FILE --docs FOLDER --readme FILE
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import bars, engine_bars, engine_tables, plots
from benchmarks.contestants import CONTESTANTS
from benchmarks.engine_bars import Measured
from benchmarks.records import Run, Summary
from benchmarks.tables import filled, number, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MEGABYTE = 10**6
BUSY = 0.1  # cores used by other processes from which on a row is marked
# In the README: where times to the same score are compared, and where equal numbers of rounds are.
SAME_SCORE = ("regression-20000x50x50", "mediamill", "delicious")
SAME_ROUNDS = "regression-20000x50x50"
OF_STRATEGIES = "delicious"


def main() -> None:
    options = parse(sys.argv[1:])
    run = Run.read(options.results)
    figures = plots.draw(run, options.docs / "benchmarks", options.format)
    page = options.docs / "benchmarks.md"
    page.write_text(document(run, figures, options.results.name, measured(options)))
    sys.stderr.write(f"wrote {page} and {len(figures)} plots\n")
    sections = {"lead": lead(run, "#how-fast"), "bench": readme_section(run, figures)}
    landing = options.docs / "index.md", {"lead": lead(run, "benchmarks.md")}
    guide = options.docs / "guide" / "strategy.md", {"strategies": strategies(run)}
    for file, parts in ((options.readme, sections), landing, guide):
        if file.is_file():
            file.write_text(filled(file.read_text(), parts))
            sys.stderr.write(f"wrote the benchmark sections of {file}\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report")
    parser.add_argument("--results", type=Path, default=newest_results())
    parser.add_argument("--engine", type=Path, default=RESULTS / "engine.json")
    parser.add_argument("--distributed", type=Path, default=RESULTS / "distributed.json")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    options = parser.parse_args(arguments)
    if options.results is None or not options.results.is_file():
        parser.error("there are no results yet: python -m benchmarks.run quick")
    return options


def newest_results() -> Path | None:
    files = [RESULTS / name for name in ("full.json", "quick.json")]
    return next((file for file in files if file.is_file()), None)


def measured(options: argparse.Namespace) -> Measured | None:
    """What there is about the engine."""
    if not options.engine.is_file():
        return None
    return Measured(
        Run.read(options.engine),
        json.loads(options.distributed.read_text()) if options.distributed.is_file() else None,
    )


# ------------------------------------------------------------------ the page


def document(
    run: Run, figures: Sequence[Path], source: str, measured: Measured | None = None
) -> str:
    parts = [
        "# Benchmarks",
        f"Generated from `benchmarks/results/{source}` by `python -m benchmarks.report`.",
        provenance(run),
        HOW,
        "## Claims",
        bars_table(bars.lines(run)),
        *(f"![{figure.stem.replace('-', ' ')}](benchmarks/{figure.name})" for figure in figures),
    ]
    skipped = dict(run.skipped)
    if measured is not None:
        parts += of_engine(measured)
        skipped |= measured.engine.skipped
    parts += ["## All results", LEGEND]
    for workload in run.workloads():
        if workload != "import":
            parts += [f"### {workload}", shape(run, workload), workload_table(run, workload)]
    if skipped:
        reasons = [f"- {what}: {reason}" for what, reason in skipped.items()]
        parts += ["## Skipped", "\n".join(reasons)]
    return "\n\n".join(part for part in parts if part) + "\n"


def of_engine(measured: Measured) -> list[str]:
    return [
        "## Claims about the engine",
        bars_table(engine_bars.lines(measured)),
        SAME_MODELS,
        "## Rounds and predictions",
        provenance(measured.engine),
        *engine_tables.sections(measured.engine),
    ]


SAME_MODELS = """\
Ratios compare single rounds unless stated otherwise; the tables below say how they were measured.
Threads, ranks and vector instructions do not change a model. No figure here shows that; tests
compare the bytes of models (`tests/test_determinism.py`, `tests/distributed`)."""

HOW = """\
Every fit runs in its own process, on the same data, with the same numbers of threads, rounds,
leaves and bins and the same learning rate; everything else is left at the library's default.
A fit of less than a second is repeated up to five times in its process, and the median counts.
Repeats are interleaved, and numbers are medians over them. Data sets that differ only in the
number of outputs are measured on the same machine, and so is the whole engine; other data sets may
be measured on another machine. The time of a fit starts with arrays in memory and includes each
library's own binning and conversions. Peak memory is what the fit adds to the loaded data. The size
of a model is that of its pickle. A fit stops at its time limit: contestants with one model per
output have then fitted a sample of the outputs, others a part of the rounds, and the complete fit
is extrapolated. Run it yourself: `make bench-quick`, `make bench-engine`, `make bench`.

- `lightgbm-per-output` bins the data once for all outputs; `*-one-output` fits only the first one.
- `xgboost-projection` is a Gaussian projection, with a new draw in each round, written by hand with
  xgboost's experimental `TreeObjective.split_grad`.
- `hessboost-multi-output-tree` grows trees on all outputs, as `xgboost-multi-output-tree` does.
- `catboost` grows symmetric trees, its default, of the depth that gives the same number of leaves;
  `catboost-lossguide` grows them leaf by leaf.
- `sklearn-random-forest` grows full trees, one for each round of the others, and treats labels as
  regression targets.
- Generated outputs are Gaussian mixtures of ten functions of five features each, plus noise."""

LEGEND = """\
≈: extrapolated from the part that the last column names; ≥: the peak of that part. × relabel: fit
time divided by that of `manyboost-relabel`. Spread: slowest minus fastest repeat, divided by the
median. Per round: time of a further round after the first."""


def provenance(run: Run) -> str:
    """Machines, dates and versions."""
    dates = dict.fromkeys(date[:10] for date in (run.dates[0], run.dates[-1])) if run.dates else {}
    versions = list(dict.fromkeys([*run.libraries, *beneath(run)]))
    text = [
        *machines(run),
        f"Measured {' to '.join(dates)}.",
        f"Versions: {', '.join(versions)}.",
        *dict.fromkeys(f"{note}." for facts in run.machines for note in facts["notes"]),
    ]
    return "  \n".join(text)


def machines(run: Run) -> list[str]:
    """A line for each machine; several say what was measured on each."""
    described = [described_machine(facts) for facts in run.machines]
    if len(described) == 1:
        return [f"Machine: {described[0]}."]
    found: list[list[str]] = [[] for _ in described]
    for workload in run.workloads():
        for which in set().union(*(s.machines for s in run.summaries_of(workload))):
            found[which].append(workload)
    pairs = zip(described, found, strict=True)
    return [
        "Times are compared only where one machine measured them.",
        *(f"On {where}: {', '.join(names)}." for where, names in pairs if names),
    ]


def described_machine(facts: dict[str, Any]) -> str:
    parts = [
        facts["cpu"],
        f"{facts['cores']} cores",
        f"{facts['memory_bytes'] / 2**30:.0f} GiB",
        facts["system"],
        f"Python {facts['python']}",
    ]
    return ", ".join(parts)


def beneath(run: Run) -> list[str]:
    """The versions of what the libraries are built on."""
    named = (name for facts in run.machines for name in facts["libraries"])
    return [name for name in named if name.split()[0] in ("numpy", "scipy")]


def bars_table(lines: Sequence[bars.Line]) -> str:
    rows = [(line.claim, line.bar, line.measured, line.verdict) for line in lines]
    return table(("claim", "required", "measured", ""), rows)


def shape(run: Run, workload: str) -> str:
    first = next((s for s in run.summaries if s.workload == workload and s.ok), None)
    if first is None:
        return ""
    fields = ("n_rows", "n_features", "n_outputs", "n_test_rows")
    n, p, d, n_test = (int(first.median(field)) for field in fields)
    spec = first.records[0]["spec"]
    rounds, leaves = run.base_rounds(workload), spec["max_leaf_nodes"]
    outputs = "output" if d == 1 else "outputs"
    return (
        f"{n:,} rows × {p:,} features × {d:,} {outputs}, {n_test:,} test rows; "
        f"threads: {run.threads}; {rounds:,} rounds of {leaves} leaves unless stated otherwise."
    )


Column = tuple[str, Callable[[Summary], str]]


def workload_table(run: Run, workload: str) -> str:
    found = [s for s in run.summaries if s.workload == workload]
    order = list(CONTESTANTS)
    found.sort(key=lambda s: (order.index(s.contestant), s.n_rounds, -s.n_threads))
    score_name = next((named(s) for s in found if s.ok), "score")
    reference = run.find(workload, "manyboost-relabel")
    columns: list[Column] = [
        ("contestant", lambda s: label(s, run.base_rounds(workload), run.threads)),
        ("fit, s", lambda s: bars.mark(s) + number(s.fit_seconds)),
        ("× relabel", lambda s: times(s, reference)),
        ("per round, ms", lambda s: number(s.seconds_per_round, 1000)),
        ("predict, rows/s", lambda s: number(s.predicted_rows_per_second)),
        ("peak, MB", peak),
        ("model, MB", lambda s: bars.mark(s) + number(s.model_bytes, 1 / MEGABYTE)),
        (score_name, lambda s: of_whole(s) if named(s) == score_name else "–"),
    ]
    if any(s.median("log_loss") is not None for s in found):
        columns.append(("log loss", lambda s: score(s.median("log_loss"))))
    columns += [("spread", spread), ("", remark)]
    rows = [[cell(summary) for _, cell in columns] for summary in found]
    return table([name for name, _ in columns], rows, numbers_from=1, numbers_to=len(columns) - 1)


def named(summary: Summary) -> str:
    """What its score measures; that of a single label is not that of many."""
    return summary.records[0].get("score_name", "")


def label(summary: Summary, base_rounds: int, threads: int) -> str:
    parts = [summary.contestant]
    if summary.n_rounds != base_rounds:
        parts.append(f"{summary.n_rounds:,} rounds")
    if summary.n_threads != threads:
        parts.append(f"{summary.n_threads} thread")
    name = ", ".join(parts)
    return f"**{name}**" if summary.contestant.startswith("manyboost") else name


def times(summary: Summary, reference: Summary | None) -> str:
    if reference is None or summary.fit_seconds is None:
        return "–"
    return number(summary.fit_seconds / reference.fit_seconds)


def remark(summary: Summary) -> str:
    parts = []
    if not summary.ok:
        budget = summary.records[0].get("budget", {})
        limit = {
            "over budget": f": killed after {budget.get('seconds', 0):.0f} s",
            "over memory": f": killed at {budget.get('memory', 0) / 1e9:.0f} GB",
        }.get(summary.status, "")
        parts.append(summary.status + limit)
    if summary.extrapolated:
        parts.append(f"from {summary.extrapolated}")
    if summary.others_cores > BUSY:
        parts.append(f"other processes used {summary.others_cores:.1f} cores")
    return "; ".join(parts)


def spread(summary: Summary) -> str:
    return "–" if summary.spread is None else f"{100 * summary.spread:.0f} %"


def score(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def of_whole(summary: Summary) -> str:
    """The score; not that of a few of the outputs, which are others than those of whole fits."""
    return score(None if summary.extrapolated else summary.score)


def peak(summary: Summary) -> str:
    """Megabytes; the part of a fit that was made says how much the whole takes at least."""
    least = "≥ " if summary.extrapolated and summary.peak_bytes is not None else ""
    return least + number(summary.peak_bytes, 1 / MEGABYTE)


# ------------------------------------------------------------------ the README


def readme_section(run: Run, figures: Sequence[Path]) -> str:
    """Times to the same score, a data set at equal rounds, a plot, and the way to the rest."""
    parts = []
    if rows := same_score_rows(run):
        head = ("data", "peer", "its test score", "its fit", "manyboost to that score", "")
        parts += ["Time to the test score of a peer:", table(head, rows, 2, 6)]
    if found := readme_rows(run, SAME_ROUNDS):
        head = ("", "fit, s", "peak memory, MB", "model, MB", found.pop())
        described = f"**{SAME_ROUNDS}**: {shape(run, SAME_ROUNDS)}"
        parts += ["Equal numbers of rounds:", described, table(head, found, 1, 5)]
    plot = next((figure for figure in figures if figure.stem.startswith("score-against")), None)
    if plot:
        parts.append(f"![test score against fit time](docs/benchmarks/{plot.name})")
    shown = run.measured_on(SAME_SCORE)
    where = " and ".join(f"{facts['cpu']}, {facts['cores']} cores" for facts in shown)
    parts.append(
        f"{where}. ≈: extrapolated from a part. "
        "All results, and how they were measured: [docs/benchmarks.md](docs/benchmarks.md)."
    )
    return "\n\n".join(parts)


def lead(run: Run, how: str) -> str:
    """The figure that says most, in a sentence; ``how`` is where it is explained."""
    peers = {"lightgbm-per-output": "LightGBM's", "catboost": "CatBoost's"}
    found = {row[1]: row[-1].strip("*") for row in same_score_rows(run)[::-1]}
    shown = [
        f"{whose} test score {found[peer]}" for peer, whose in peers.items() if found.get(peer)
    ]
    return f"**It reaches {' and '.join(shown)}** ([how]({how}))." if shown else ""


def same_score_rows(run: Run) -> list[list[str]]:
    """How long peers take to their scores, and `relabel` to the same ones."""
    rows = []
    for workload in SAME_SCORE:
        ours = run.longest(workload, bars.RELABEL)
        found = [run.find(workload, peer) for peer in bars.BOOSTING_PEERS]
        peers = [peer for peer in found if peer and peer.complete and peer.score is not None]
        peers = sorted(peers, key=lambda peer: peer.fit_seconds) if ours else []
        for k, peer in enumerate(peers):
            reached = ours.seconds_to(peer.score)
            cells = ["not reached", ""]
            if reached is not None:
                cells = [bars.seconds(reached), f"**{faster(peer.fit_seconds / reached)}**"]
            its = [f"{score(peer.score)} {named(peer)}", bars.seconds(peer.fit_seconds)]
            rows.append(["" if k else workload, peer.contestant, *its, *cells])
    return rows


def faster(ratio: float) -> str:
    if ratio < 1:
        return f"{1 / ratio:.1f} × slower"
    return f"{ratio:.1f} × faster" if ratio < 10 else f"{ratio:.0f} × faster"


def readme_rows(run: Run, workload: str) -> list:
    """Rows, quickest first, and last the name of the score."""
    found = [run.find(workload, contestant) for contestant in CONTESTANTS]
    shown = sorted((s for s in found if s is not None), key=lambda s: s.fit_seconds)
    rows: list = [
        [
            label(s, s.n_rounds, s.n_threads),
            bars.mark(s) + number(s.fit_seconds),
            peak(s),
            bars.mark(s) + number(s.model_bytes, 1 / MEGABYTE),
            of_whole(s),
        ]
        for s in shown
        if not s.contestant.endswith("-one-output")
    ]
    return [*rows, f"test {named(shown[0])}"] if rows else []


# ------------------------------------------------------------------ the guide to strategies


def strategies(run: Run) -> str:
    """Time, size and score of our strategies on a data set of many labels."""
    names = (f"manyboost-{each}" for each in ("relabel", "project", "multioutput"))
    found = [s for name in names if (s := run.find(OF_STRATEGIES, name)) is not None]
    if not found:
        return ""
    rows = [
        [
            f'`"{s.contestant.removeprefix("manyboost-")}"`',
            bars.mark(s) + number(s.fit_seconds),
            number(s.predicted_rows_per_second),
            bars.mark(s) + number(s.model_bytes, 1 / MEGABYTE),
            score(s.score),
        ]
        for s in found
    ]
    head = ("strategy", "fit, s", "predict, rows/s", "model, MB", f"test {named(found[0])}")
    return f"{shape(run, OF_STRATEGIES)}\n\n{table(head, rows, 1, 5)}"


if __name__ == "__main__":
    main()
