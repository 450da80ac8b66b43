"""docs/defaults.md, written from the records of `benchmarks.defaults` alone."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import few_outputs, report
from benchmarks.defaults import (
    CONTESTANTS,
    FOLDS,
    FOREST,
    LONG_FIT,
    PATIENCE,
    ROUNDS,
    SETS,
    VALIDATION,
    Folds,
    ManyBoost,
    Refitted,
    is_long,
)
from benchmarks.records import Run, Summary

MARGIN = 0.002  # of the best peer's score
BAR = 11  # sets
OURS, FOLDED, REFITTED = (kind.name for kind in (ManyBoost, Folds, Refitted))
PEERS = tuple(name for name in CONTESTANTS if name not in (OURS, FOLDED, REFITTED))


@dataclass(frozen=True)
class Comparison:
    """One set: what each contestant reached, and how manyboost compares with the best peer."""

    name: str
    summaries: dict[str, Summary]

    def score(self, contestant: str) -> float | None:
        """The mean over the repeats; None where a repeat has none."""
        summary = self.summaries.get(contestant)
        if summary is None or len(scores := summary.values("score")) < len(summary.records):
            return None
        return statistics.fmean(scores)

    @property
    def best_peer(self) -> str | None:
        scored = [peer for peer in PEERS if self.score(peer) is not None]
        return max(scored, key=self.score, default=None)

    @property
    def complete(self) -> bool:
        """Whether every peer has been tried, as often as manyboost or once for long."""
        wanted = {OURS, *PEERS}
        if not wanted <= self.summaries.keys():
            return False
        most = max(len(self.summaries[name].records) for name in wanted)
        records = (self.summaries[name].records for name in wanted)
        return all(len(each) == most or is_long(each[0]) for each in records)

    @property
    def difference(self) -> float | None:
        """Ours minus the best peer's; None until all have been tried."""
        return self.ahead_by(OURS)

    def ahead_by(self, name: str) -> float | None:
        """The score of one of ours minus the best peer's; None until all have been tried."""
        ours, peer = self.score(name), self.best_peer
        if not self.complete or ours is None or peer is None:
            return None
        return ours - self.score(peer)

    @property
    def within(self) -> bool | None:
        return None if self.difference is None else self.difference >= -MARGIN


def comparisons(records: Run) -> list[Comparison]:
    found = []
    for name in SETS:
        summaries = {s.contestant: s for s in records.of(name) if s.contestant in CONTESTANTS}
        found.append(Comparison(name, summaries))
    return found


def document(records: Run, source: str) -> str:
    found = comparisons(records)
    parts = [
        "# Default parameters against the peers",
        origin(source),
        verdict(found),
        verdicts(found),
        VERDICTS,
        scores(found),
        SCORES,
        f"Behind by more than {MARGIN}:\n\n{behind}" if (behind := reasons(found)) else "",
        "## Protocol",
        protocol(records),
        report.provenance(records),
        "## Details",
        details(found),
    ]
    if few_outputs.RESULTS.is_file():
        at = parts.index("## Protocol")
        parts.insert(at, few_outputs.section(json.loads(few_outputs.RESULTS.read_text())))
    if records.skipped:
        parts += ["## Skipped", "\n".join(f"- {w}: {why}" for w, why in records.skipped.items())]
    return "\n\n".join(part for part in parts if part) + "\n"


def origin(source: str) -> str:
    return (
        f"Generated from `benchmarks/results/{source}`: `python -m benchmarks.defaults` runs what "
        "is missing there and writes this page; with `--report` it only writes the page."
    )


def verdict(found: Sequence[Comparison]) -> str:
    compared = [c for c in found if c.within is not None]
    within = sum(c.within for c in compared)
    ahead = sum(c.difference > 0 for c in compared)
    text = (
        f"**manyboost is within {MARGIN} of the best peer, or ahead, on {within} of {len(SETS)} "
        f"sets, and ahead of all of them on {ahead}; the bar is {BAR} sets.**"
    )
    for name, how in ((FOLDED, ""), (REFITTED, ", refit_all=True")):
        if folded := [by for c in found if (by := c.ahead_by(name)) is not None]:
            ahead = sum(by > 0 for by in folded)
            text += f" **With `n_folds={FOLDS}{how}` it is ahead on {ahead} of {len(folded)}.**"
    if missing := [c.name for c in found if c.within is None]:
        text += f" Not measured, or not with all contestants: {', '.join(missing)}."
    return text


VERDICTS = f"""\
Difference: manyboost's test score minus the best peer's; within: no more than {MARGIN} below it;
folds and refitted: the difference with folds, and with folds whose leaves are fitted again to all
rows. Time: the best peer's seconds over manyboost's. All test scores, and seconds of fitting:"""
SCORES = """\
The best score is in bold. ◦ stopped by the cap, scored with the rounds it had. ≈ over budget: the
time is extrapolated, there is no score. † measured on another machine: the score can be compared,
the time cannot."""


# Why a set is behind; shown as long as it is.
NOTES = {
    "scm20d": (
        "the test rows are of games that no training row is of. Validation rows are of the same "
        "games as training rows, so the validation score still rises when the test score has "
        "long been falling: more rounds are worse, and a fit that the cap stops gains from it. "
        "`n_folds` with the game as `groups` would see that."
    ),
    "water-quality": (
        "little signal and few rows: what averages many models is ahead, such as the forest, and "
        "ours with `n_folds`."
    ),
}


def reasons(found: Sequence[Comparison]) -> str:
    """Why the sets that are behind are so, as far as known."""
    behind = [c.name for c in found if c.within is False]
    return "\n".join(f"- {name}: {NOTES.get(name, 'not examined.')}" for name in behind)


def verdicts(found: Sequence[Comparison]) -> str:
    """Each set against its best peer."""
    head = ("set", "metric", "best peer", "difference", "within", "folds", "refitted", "time")
    rows = []
    for c in found:
        first = next(iter(c.summaries.values()), None)
        metric = report.named(first) if first else ""
        difference, *folded = (signed(c.ahead_by(name)) for name in (OURS, FOLDED, REFITTED))
        within = {True: "yes", False: "no", None: "–"}[c.within]
        cells = c.best_peer or "–", difference, within, *folded, time_ratio(c)
        rows.append((c.name, metric or "–", *cells))
    return report.table(head, rows, 3, len(head))


def scores(found: Sequence[Comparison]) -> str:
    """Scores and seconds of all contestants."""
    head, rows = ("set", *CONTESTANTS), []
    for c in found:
        scored = [name for name in CONTESTANTS if c.score(name) is not None]
        best = max(scored, key=c.score, default=None)
        rows.append((c.name, *(cell(c, name, bold=name == best) for name in CONTESTANTS)))
    return report.table(head, rows, 1, len(head))


def signed(difference: float | None) -> str:
    return "–" if difference is None else f"{difference:+.4f}"


def cell(c: Comparison, contestant: str, *, bold: bool) -> str:
    summary = c.summaries.get(contestant)
    if summary is None:
        return "–"
    if not summary.ok:
        return summary.status
    seconds = f"{report.number(summary.fit_seconds)} s{' †' if is_elsewhere(summary) else ''}"
    if summary.extrapolated:
        return f"over budget, ≈ {seconds}"
    score = f"{c.score(contestant):.4f}"
    mark = " ◦" if capped(summary) else ""
    return f"{f'**{score}**' if bold else score} · {seconds}{mark}"


def capped(summary: Summary) -> bool:
    return any(summary.values("capped"))


def is_elsewhere(summary: Summary) -> bool:
    """Whether a repeat was made on another machine than that of the last run."""
    return any(record.get("place") for record in summary.records)


def time_ratio(c: Comparison) -> str:
    if c.difference is None or any(is_elsewhere(c.summaries[n]) for n in (OURS, c.best_peer)):
        return "–"
    theirs, ours = (c.summaries[name].fit_seconds for name in (c.best_peer, OURS))
    return f"{report.number(theirs / ours)} ×"


def protocol(records: Run) -> str:
    caps = sorted({r["spec"]["limit"] for s in records.summaries for r in s.records})
    cap = " or ".join(f"{seconds:g} s" for seconds in caps)
    found = {s.contestant: s.median("patience") for s in records.summaries}
    patience = ", ".join(f"{name}: {found[name]:g}" for name in CONTESTANTS if found.get(name))
    return f"""\
- Every library at its own default parameters, {ROUNDS} rounds at most, threads: {records.threads},
  every fit in a process of its own. Scores are means over the repeats, times medians. A fit of
  more than {LONG_FIT:g} s is not repeated.
- The official split where there is one, else a fixed random half of the rows for training.
  {VALIDATION:.0%} of the training rows, the same for all contestants, are handed to each for its
  early stopping, by its own default metric. A repeat has another such part and another seed.
- Rounds without improvement after which a fit stops: the library's default where it has one, else
  {PATIENCE} ({patience}). All predict with the best round.
- lightgbm fits one model per output, each stopped on its own; the data are binned once.
- manyboost-folds is `n_folds={FOLDS}`, refitted with `refit_all=True`, [as the study of folds
  advises](folds.md): they validate on their own folds and are given all training rows, the
  validation part included.
- random-forest: {FOREST} full trees; it has no early stopping and is given all training rows, the
  validation part included. Labels are regressed on, with the classifier's default of √features
  per split.
- Labels are ranked by raw predictions (LRAP; ties count against); regression is scored by macro r².
  Sparse features are passed as CSR matrices to all that take them, and made dense, within the
  measured time, for those that do not; categories as their codes, missing values as NaN.
- A fit may take {cap}. At the cap, a contestant stops after its round and is scored with what
  it has. Where one model per output cannot be fitted for all outputs in that time, the contestant
  is over budget and its time is extrapolated from the outputs that were fitted."""


def details(found: Sequence[Comparison]) -> str:
    head = ("set", "contestant", "score", "spread", "rounds", "fit, s", "repeats", "")
    rows = []
    for c in found:
        for name in CONTESTANTS:
            if (summary := c.summaries.get(name)) is not None:
                scores = summary.values("score")
                rows.append(
                    (
                        c.name,
                        f"**{name}**" if name == OURS else name,
                        report.score(c.score(name)),
                        f"{max(scores) - min(scores):.4f}" if len(scores) > 1 else "–",
                        report.number(summary.median("rounds")),
                        ("≈ " if summary.extrapolated else "") + report.number(summary.fit_seconds),
                        str(len(summary.records)),
                        remark(summary),
                    )
                )
    shapes = [shape(c) for c in found if c.summaries]
    note = (
        "Spread: best minus worst score of the repeats. Rounds: those kept, the median over the "
        "repeats and, for lightgbm, over the outputs; trees for random-forest."
    )
    sets = report.table(("set", "rows", "validation", "test", "features", "outputs"), shapes, 1, 6)
    return "\n\n".join([sets, note, report.table(head, rows, 2, 7)])


def remark(summary: Summary) -> str:
    parts = (report.remark(summary), "stopped by the cap" if capped(summary) else "")
    return "; ".join(part for part in parts if part)


def shape(c: Comparison) -> tuple[str, ...]:
    fields = ("n_rows", "n_validation_rows", "n_test_rows", "n_features", "n_outputs")
    ok = next((s for s in c.summaries.values() if s.ok), None)
    return (c.name, *("–" if ok is None else f"{ok.median(field):,.0f}" for field in fields))
