"""docs/study.md: what the study of the defaults found, written from its results alone."""

import statistics
from collections.abc import Sequence
from typing import Any

from scipy.stats import binomtest

from benchmarks import machine
from benchmarks.tables import table

DEFAULT = "default"
LEVEL = 0.1  # of the sign test, in each half
BETTER = "**better**"
TITLES = {
    "many": "Several outputs, early stopping",
    "many, larger": "Early stopping, more rows",
    "many, plain": "Several outputs, all rounds",
    "one": "One output",
    "rare": "One rare label",
    "classes": "Classes",
    "one, stopped": "One output, early stopping",
    "classes, stopped": "Classes, early stopping",
    "many, exponential": "Exponential loss",
    "many, absolute_error": "Absolute error",
    "many, huber": "Huber's loss",
}
Record = dict[str, float]
OfSet = dict[str, Any]  # task, rows, and by split and change a Record


def gains(sets: dict[str, OfSet], change: str, field: str = "score") -> dict[str, float]:
    """By set, the mean over its splits of what a change gains; sets that lack it are left out."""
    found = {}
    for name, of_set in sets.items():
        pairs = [
            (split[change][field], split[DEFAULT][field])
            for split in of_set["splits"].values()
            if change in split and DEFAULT in split
        ]
        if pairs:
            found[name] = statistics.fmean(new - old for new, old in pairs)
    return found


class Half:
    """What a change gains on the sets of one half."""

    def __init__(self, values: Sequence[float]) -> None:
        self.values = list(values)
        self.better = sum(value > 0 for value in values)
        self.worse = sum(value < 0 for value in values)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values) if self.values else 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if len(self.values) < 2:
            return float("inf")
        return statistics.stdev(self.values) / len(self.values) ** 0.5

    @property
    def p(self) -> float:
        """Of the two-sided sign test; ties say nothing."""
        n = self.better + self.worse
        return float(binomtest(self.better, n).pvalue) if n else 1.0

    @property
    def sign(self) -> int:
        """1 if the change is better, −1 if worse, beyond chance; else 0."""
        if self.p >= LEVEL:
            return 0
        sign = 1 if self.better > self.worse else -1
        return sign if sign * self.mean > 0 else 0

    def cells(self) -> list[str]:
        if not self.values:
            return ["–"] * 2
        return [
            f"{self.better} : {self.worse} ({self.p:.2g})",
            f"{1000 * self.mean:+.1f} ± {1000 * self.error:.1f}",
        ]


def verdict(a: Half, b: Half) -> str:
    """A change is chosen on half A and confirmed on half B."""
    if a.sign == 0:
        return ""
    word = "better" if a.sign > 0 else "worse"
    return f"**{word}**" if b.sign == a.sign else f"{word} on A only"


def in_halves(sets: dict[str, OfSet], halves: dict[str, str], change: str) -> tuple[Half, Half]:
    found = gains(sets, change)
    a, b = (Half([v for name, v in found.items() if halves[name] == half]) for half in "AB")
    return a, b


def rounds(sets: dict[str, OfSet], change: str) -> str:
    """The rounds that are kept, as a multiple of those with the default: the median over sets."""
    ratios = []
    for of_set in sets.values():
        pairs = [s for s in of_set["splits"].values() if change in s and DEFAULT in s]
        kept = [sum(split[name]["rounds"] for split in pairs) for name in (change, DEFAULT)]
        if pairs and kept[1]:
            ratios.append(kept[0] / kept[1])
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def of_kind(sets: dict[str, OfSet], halves: dict[str, str], changes: Sequence[str]) -> str:
    if not sets:
        return "Not run yet."
    rows, missing = [], []
    for change in changes:
        a, b = in_halves(sets, halves, change)
        if not a.values + b.values:
            missing.append(f"`{change}`")
            continue
        named = f"`{change}` {verdict(a, b)}".rstrip()
        rows.append([named, *a.cells(), *b.cells(), rounds(sets, change)])
    halved = [f"{half}: {what}" for half in "AB" for what in ("better : worse (p)", "gain × 1000")]
    found = table(["instead of the default", *halved, "rounds ×"], rows, 1, 6)
    return found + (f"\n\nNot run yet: {', '.join(missing)}." if missing else "")


def confirmed(results: dict[str, Any], order: dict[str, list[str]]) -> list[str]:
    """A line for each kind: the changes that both halves say are better."""
    lines = []
    for kind, changes in order.items():
        sets = results["kinds"].get(kind, {})
        found = [c for c in changes if verdict(*in_halves(sets, results["halves"], c)) == BETTER]
        if sets:
            lines.append(f"- {TITLES[kind]}: {', '.join(f'`{c}`' for c in found) or 'none'}.")
    return lines


def sets_of(results: dict[str, Any]) -> str:
    """All sets: half, rows trained on, and the score of the default, by kind of task."""
    shown = [kind for kind in TITLES if not kind.endswith(", stopped")]  # tasks of others
    kinds = [kind for kind in shown if results["kinds"].get(kind)]
    rows = []
    for name, half in sorted(results["halves"].items(), key=lambda pair: (pair[1], pair[0])):
        cells = []
        for kind in kinds:
            splits = results["kinds"][kind].get(name, {"splits": {}})["splits"].values()
            scores = [split[DEFAULT]["score"] for split in splits if DEFAULT in split]
            shown = f"{statistics.fmean(scores):.3f} ({len(scores)})" if scores else "–"
            cells.append(shown)
        known = (results["kinds"][kind].get(name) for kind in kinds)
        n_rows = next((of_set["rows"] for of_set in known if of_set), 0)
        rows.append([name, half, f"{n_rows:,}", *cells])
    titles = [TITLES[kind] for kind in kinds]
    return table(["set", "half", "rows", *titles], rows, 2, 3 + len(kinds))


def huber(found: dict[str, dict[str, float]]) -> str:
    """Errors by noise and by the quantile that is δ; the smallest in bold."""
    columns = list(next(iter(found.values())))
    rows = []
    for noise, errors in found.items():
        least = min(errors.values())
        cells = (f"**{e:.3f}**" if e == least else f"{e:.3f}" for e in errors.values())
        rows.append([noise, *cells])
    return table(["noise", *columns], rows, 1, 1 + len(columns))


def page(results: dict[str, Any], order: dict[str, list[str]]) -> str:
    tables = [
        f"## {TITLES[kind]}\n\n{WHAT[kind]}\n\n"
        + of_kind(results["kinds"].get(kind, {}), results["halves"], changes)
        for kind, changes in order.items()
    ]
    huber_part = (
        f"## Huber's δ\n\n{HUBER}\n\n{huber(results['huber'])}" if "huber" in results else ""
    )
    parts = [
        INTRODUCTION,
        UNFINISHED if any("Not run yet" in each for each in tables) else "",
        "\n".join(["Better in both halves:", "", *confirmed(results, order)]),
        READING,
        *tables,
        huber_part,
        f"## Sets\n\n{SETS}\n\n{sets_of(results)}",
        f"Measured with {machine.versions(results['machine'])}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


INTRODUCTION = f"""\
# The study behind the defaults

Generated from `benchmarks/results/study.json` by `python -m benchmarks.study`, which fits what is
missing there; with `--report` it only writes the page.

One parameter at a time is changed from its default, on training rows of real sets. The sets fall
into halves A and B by a fixed rule; sets from the same source are in the same half. A default
changes only if half A says so and half B confirms it: the sign test over the sets gives p < {LEVEL}
in both, and the mean gain has the same sign. The test rows of official splits are never
read."""
UNFINISHED = """\
**The study is not complete**: what has not been run is named below. Until then it can keep a
default, but not settle it."""
READING = """\
Better : worse: on how many sets the mean score over the splits is higher, or lower, than with the
default. p: the two-sided sign test. Gain: its mean over the sets, with the standard error. Rounds
×: rounds kept, as a multiple of those with the default, the median over the sets."""
SETS = """\
At most 1,500 training rows of a set are used, and the 50 labels that vary most. A third of the rows
is held out to score on, by up to 4 random splits below 1,000 rows and by up to 2 above; the first
splits of all sets are run first. The table has the rows that a model trains on, and the score of
the default with the number of splits. –: the set gives no such task, or has not been run, or one
fit with the defaults takes more than 20 s; yso-8k has two outputs of the same name."""
HUBER = """\
Root mean squared distance to the signal, 4,000 rows of 8 features, by the quantile of the distance
to the median that is δ. The default is the median distance, 0.5."""
STOPPED = "At most 1,000 rounds, stopped by a tenth of the rows. Tasks and scores as above."
WHAT = {
    "many": "At most 1,000 rounds, stopped by a tenth of the rows. Macro r², or LRAP.",
    "many, larger": (
        "The same on sets with at least 2,000 training rows; up to 6,000 of them are used. "
        "`max_iter=300` was the default: "
        "[why it is not](decisions/54-defaults-for-few-outputs.md)."
    ),
    "many, plain": "Nothing set: 300 rounds. Macro r², or LRAP.",
    "one": (
        "One target, or the label whose share is nearest to 0.4; nothing set. r², or the part of "
        "the log loss of constant probabilities that the model removes."
    ),
    "rare": (
        "The label whose share is nearest to 0.07, if that is between 0.02 and 0.2. The part of "
        "the log loss that is removed. `RARE` is the share of positive rows below which splits "
        "know the curvature."
    ),
    "classes": (
        "The rows with exactly one label, which is their class; classes of at least 30 rows. The "
        "part of the log loss that is removed."
    ),
    "one, stopped": STOPPED,
    "classes, stopped": STOPPED,
    "many, exponential": "Several labels, nothing set but the loss. LRAP.",
    "many, absolute_error": "Several targets, nothing set but the loss. Macro r².",
    "many, huber": "Several targets, nothing set but the loss. Macro r².",
}
