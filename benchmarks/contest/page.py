"""docs/contest.md, written from the records of the contest alone."""

import json
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import few_outputs, report
from benchmarks.contest import picture
from benchmarks.contest.comparison import (
    FOLDED,
    OURS,
    REFITTED,
    Comparison,
    capped,
    comparisons,
    everyone,
    ratios,
)
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.contestants.manyboost import FOLDS
from benchmarks.contest.protocol import ADDING, protocol
from benchmarks.contest.ranking import ALPHA, MARGIN, Ranking
from benchmarks.contest.sets import SETS
from benchmarks.records import Run, Summary

PICTURE = Path("benchmarks") / "contest-ranks.svg"


def write(records: Run, source: str, page: Path) -> None:
    """The page, and the picture beside it."""
    _, ranking = comparisons(records)
    drawn = picture.draw(ranking, page.parent / PICTURE)
    page.write_text(document(records, source, drawn=drawn))


def document(records: Run, source: str, *, drawn: bool = False) -> str:
    found, ranking = comparisons(records)
    parts = [
        "# The open benchmark for many outputs",
        origin(source),
        "## Ranking",
        standing(ranking),
        f"![average ranks of the contestants]({PICTURE.as_posix()})" if drawn else "",
        ranks(found, ranking),
        RANKS,
        unmeasured(found, ranking),
        "## By set",
        by_set(found, score),
        SCORES,
        by_set(found, seconds),
        TIMES,
        "## manyboost against its peers",
        verdict(found),
        verdicts(found),
        VERDICTS,
        f"Behind by more than {MARGIN}:\n\n{behind}" if (behind := reasons(found)) else "",
    ]
    if few_outputs.RESULTS.is_file():
        parts.append(few_outputs.section(json.loads(few_outputs.RESULTS.read_text())))
    parts += ["## Protocol", protocol(records), "## Add a contestant", ADDING]
    parts += ["## Machines and versions", report.provenance(records), others(records)]
    parts += ["## Details", details(found)]
    if records.skipped:
        parts += ["## Skipped", skipped(records)]
    return "\n\n".join(part for part in parts if part) + "\n"


def origin(source: str) -> str:
    return (
        f"Libraries for many outputs with their own default parameters, on up to {len(SETS)} "
        "real sets of targets or labels, ranked by their test scores. No library is tuned, and "
        "[anyone can add a contestant](#add-a-contestant).\n\n"
        f"Generated from `benchmarks/results/{source}`: `python -m benchmarks.contest` runs what "
        "is missing there and writes this page; with `--report` it only writes the page."
    )


# ------------------------------------------------------------------ the ranking


def standing(ranking: Ranking) -> str:
    """Who is best, and whether by more than chance."""
    average = ranking.average_ranks()
    if not average:
        return "Nothing is measured yet."
    field = f"{len(average)} contestants on {len(ranking.sets)} sets"
    best = [name for name, rank in average.items() if rank - min(average.values()) < 0.005]
    text = f"**Best average rank of {field}: {', '.join(best)}.**"
    difference, p = ranking.critical_difference(), ranking.friedman()
    if difference is None or p is None:
        return f"{text} Too few to test whether ranks differ significantly."
    chance = "below 0.001" if p < 0.001 else f"{p:.3f}"
    text += f" Friedman's test that all contestants are equal: p is {chance}."
    if p >= ALPHA:
        return f"{text} That is no evidence of a difference."
    text += (
        " By Nemenyi's test, two contestants differ significantly if their average ranks differ by "
        f"more than {difference:.2f}, the critical difference at a level of {ALPHA:.0%}."
    )
    if others := ranking.not_worse()[len(best) :]:
        return f"{text} Not significantly worse than the best: {', '.join(others)}."
    return f"{text} All others are significantly worse than the best."


def ranks(found: Sequence[Comparison], ranking: Ranking) -> str:
    average = ranking.average_ranks()
    head = ("contestant", "average rank", f"within {MARGIN}", "over budget", "capped")
    rows = []
    for name in [*average, *(name for name in everyone(found) if name not in average)]:
        shown = f"**{name}**" if name == OURS else name
        means = (mean_ratio(found, name, field) for field in ("fit_seconds", "peak_bytes"))
        if name in average:
            stopped = sum(capped(c.summaries[name]) for c in found if c.name in ranking.sets)
            counts = ranking.n_near_best(name), ranking.n_without_score(name), stopped
            rows.append((shown, f"{average[name]:.2f}", *map(str, counts), *means))
        else:
            rows.append((shown, "–", "–", "–", "–", *means))
    head = (*head, f"time / {OURS}'s", f"memory / {OURS}'s")
    return report.table(head, rows, 1, len(head))


RANKS = f"""\
Ranks are by test score on each set; equal scores share their rank, and contestants without a score
rank last. Within {MARGIN}: number of sets on which the score is the best of all, or at most
{MARGIN} below it. Over budget: number of sets without a score. Capped: number of sets on which the
time limit stopped the fit. Time and memory: geometric means of the ratios, over the sets that both
finished (their number in brackets)."""


def mean_ratio(found: Sequence[Comparison], contestant: str, field: str) -> str:
    if not (each := ratios(found, contestant, field)):
        return "–"
    return f"{report.number(statistics.geometric_mean(each))} × ({len(each)})"


def unmeasured(found: Sequence[Comparison], ranking: Ranking) -> str:
    """What the ranking lacks, in plain words."""
    tried = {name: sum(name in c.summaries for c in found) for name in everyone(found)}
    lines = [
        f"- Not ranked, tried on {n_sets} of {len(found)} sets only: {name}."
        for name, n_sets in tried.items()
        if n_sets and name not in ranking.scores
    ]
    lines += [
        f"- {c.name} is not ranked yet; still missing: {', '.join(lacking)}."
        for c in found
        if (lacking := [name for name in ranking.scores if name not in c.summaries])
    ]
    if never := [name for name in CONTESTANTS if not tried[name]]:
        lines.append(f"- Contestants that are not measured yet: {', '.join(never)}.")
    measured = {c.name for c in found}
    if sets := [name for name in SETS if name not in measured]:
        lines.append(f"- Sets that are not measured yet: {', '.join(sets)}.")
    return "\n".join(lines)


# ------------------------------------------------------------------ by set


SCORES = """\
Test scores, the best in bold: LRAP for labels, macro r² for targets. –: not measured. ◦: stopped by
the cap, scored with the rounds until then."""
TIMES = """\
Seconds of fitting; memory is among the [details](#details). ≈: extrapolated, the fit is over
budget. †: not measured on the machine of manyboost; the score can be compared, the time cannot."""


def by_set(found: Sequence[Comparison], shown: Callable[[Comparison, str], str]) -> str:
    """A row for each set, a column for each contestant."""
    names = [name for name in everyone(found) if any(name in c.summaries for c in found)]
    if not names:
        return ""
    rows = []
    for c in found:
        cells = (shown(c, name) if name in c.summaries else "–" for name in names)
        rows.append((c.name, *cells))
    return report.table(("set", *names), rows, 1, 1 + len(names))


def score(c: Comparison, contestant: str) -> str:
    summary = c.summaries[contestant]
    if not summary.ok:
        return summary.status
    if summary.extrapolated:
        return "over budget"
    value = f"{c.score(contestant):.4f}"
    if contestant == c.best(list(c.summaries)):
        value = f"**{value}**"
    return f"{value} ◦" if capped(summary) else value


def seconds(c: Comparison, contestant: str) -> str:
    summary = c.summaries[contestant]
    if not summary.ok:
        return "–"
    value = report.number(summary.fit_seconds)
    before = "≈ " if summary.extrapolated else ""
    return f"{before}{value}{' †' if c.is_elsewhere(contestant) else ''}"


# ------------------------------------------------------------------ against the best peer


def verdict(found: Sequence[Comparison]) -> str:
    compared = [c for c in found if c.within is not None]
    within = sum(c.within for c in compared)
    ahead = sum(c.difference > 0 for c in compared)
    text = (
        f"**{OURS} is within {MARGIN} of the best peer, or ahead, on {within} of {len(compared)} "
        f"sets, and ahead of all of them on {ahead}.**"
    )
    for name, how in ((FOLDED, ""), (REFITTED, ", refit_all=True")):
        if folded := [by for c in found if (by := c.ahead_by(name)) is not None]:
            ahead = sum(by > 0 for by in folded)
            text += f" **With `n_folds={FOLDS}{how}` it is ahead on {ahead} of {len(folded)}.**"
    if missing := [c.name for c in found if c.within is None]:
        text += f" Not compared, some contestants are missing: {', '.join(missing)}."
    return text


VERDICTS = f"""\
Difference: manyboost's test score minus that of the best peer. Within: at most {MARGIN} below it.
Folds and refitted: the difference with folds, and with folds whose leaves are refitted on all rows.
Time: the best peer's seconds divided by manyboost's."""


# Why a set is behind; shown as long as it is.
NOTES = {
    "scm20d": (
        "the test rows come from games without any training row. Validation rows come from the "
        "same games as training rows, so the validation score still rises when the test score has "
        "long been falling: more rounds are worse, and a fit gains if the cap stops it. `n_folds` "
        "with the game as `groups` would notice that."
    ),
    "water-quality": (
        "little signal and few rows: methods that average many models are ahead, such as the "
        "forest and manyboost with `n_folds`."
    ),
}


def reasons(found: Sequence[Comparison]) -> str:
    """Why the sets that are behind are so, as far as known."""
    behind = [c.name for c in found if c.within is False]
    return "\n".join(f"- {name}: {NOTES.get(name, 'not examined.')}" for name in behind)


def verdicts(found: Sequence[Comparison]) -> str:
    """Each set against its best peer."""
    head = ("set", "best peer", "difference", "within", "folds", "refitted", "time")
    rows = []
    for c in found:
        difference, *folded = (signed(c.ahead_by(name)) for name in (OURS, FOLDED, REFITTED))
        within = {True: "yes", False: "no", None: "–"}[c.within]
        rows.append((c.name, c.best_peer or "–", difference, within, *folded, time_ratio(c)))
    return report.table(head, rows, 2, len(head)) if rows else ""


def signed(difference: float | None) -> str:
    return "–" if difference is None else f"{difference:+.4f}"


def time_ratio(c: Comparison) -> str:
    if c.difference is None or c.is_elsewhere(c.best_peer):
        return "–"
    theirs, ours = (c.summaries[name].fit_seconds for name in (c.best_peer, OURS))
    return f"{report.number(theirs / ours)} ×"


# ------------------------------------------------------------------ details


def others(records: Run) -> str:
    """Whether the machine was busy with other things."""
    fits = [record for s in records.summaries for record in s.records]
    busy = sum((record.get("others_cores") or 0) > report.BUSY for record in fits)
    return (
        f"Other processes used more than {report.BUSY} cores during {busy:,} of {len(fits):,} fits."
    )


def skipped(records: Run) -> str:
    """Why contestants were not tried on sets, and how many such pairs have each reason."""
    reasons = Counter(records.skipped.values())
    pairs = "pairs of a set and a contestant"
    return "\n".join(f"- {why}: {count:,} {pairs}." for why, count in reasons.items())


def details(found: Sequence[Comparison]) -> str:
    head = ("set", "contestant", "score", "spread", "rounds", "fit, s", "predict, s")
    head = (*head, "peak, MB", "model, MB", "repeats", "")
    rows = [
        detail(c, name, c.summaries[name])
        for c in found
        for name in everyone(found)
        if name in c.summaries
    ]
    note = (
        "Spread: best minus worst score of the repeats. Rounds: rounds kept, the median over the "
        "repeats and, with one model per output, over the outputs; trees for "
        "random-forest, rules for boomer. Predict: all test rows. Peak: memory above the data."
    )
    shapes = [shape(c) for c in found]
    sets = report.table(("set", "rows", "validation", "test", "features", "outputs"), shapes, 1, 6)
    return "\n\n".join([sets, note, report.table(head, rows, 2, 10)]) if rows else ""


def detail(c: Comparison, name: str, summary: Summary) -> tuple[str, ...]:
    scores = summary.values("score")
    return (
        c.name,
        f"**{name}**" if name == OURS else name,
        report.score(c.score(name)),
        f"{max(scores) - min(scores):.4f}" if len(scores) > 1 else "–",
        report.number(summary.median("rounds")),
        ("≈ " if summary.extrapolated else "") + report.number(summary.fit_seconds),
        report.number(summary.median("predict_seconds")),
        report.number(summary.peak_bytes, 1 / report.MEGABYTE),
        report.number(summary.model_bytes, 1 / report.MEGABYTE),
        str(len(summary.records)),
        remark(summary),
    )


def remark(summary: Summary) -> str:
    parts = (report.remark(summary), "stopped by the cap" if capped(summary) else "")
    return "; ".join(part for part in parts if part)


def shape(c: Comparison) -> tuple[str, ...]:
    fields = ("n_rows", "n_validation_rows", "n_test_rows", "n_features", "n_outputs")
    ok = next((s for s in c.summaries.values() if s.ok), None)
    return (c.name, *("–" if ok is None else f"{ok.median(field):,.0f}" for field in fields))
