"""Intervals, regions, class sets and label recall: do they hold what they promise, and how wide?

    python -m benchmarks.intervals                measures what is missing, and writes the page
    python -m benchmarks.intervals enb emotions   measures these sets
    python -m benchmarks.intervals --page         writes the page alone

Results go to `benchmarks/results/intervals.json`, the page to `docs/intervals.md`. Needs the data
folder, and MAPIE for its columns. Takes about half an hour.

MAPIE computes its intervals from the very same members: it is handed a stand-in for an estimator
whose features are row numbers, and which answers with the predictions of the member that was
trained on the folds it is fitted to.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as bundled
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import PredefinedSplit

from benchmarks import one_build, workloads
from benchmarks.tables import table
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import make_friedman1_group, make_friedman1_ind

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "intervals.json"
PAGE = ROOT / "docs" / "intervals.md"

N_SPLITS = 20
N_FOLDS = 5
TRAINING = 2 / 3  # of the rows
MOST_ROWS = 3000  # of a set, drawn anew for each split
COVERAGES = (0.8, 0.9, 0.95)
METHODS = ("split", "cv+", "normalised")
QUANTILES = [0.05, 0.95]
ALLOWED = (-0.02, 0.04)  # of the coverage, about the nominal one
GENERATED = {"friedman1-group": make_friedman1_group, "friedman1-ind": make_friedman1_ind}
GENERATED_ROWS = 1500
REGRESSION = (
    "andro", "slump", "edm", "atp7d", "sf1", "oes97", "atp1d", "oes10", "enb", "water-quality",
    "sf2", *GENERATED, "scm20d",
)  # fmt: skip
LABELS = ("emotions", "birds", "yeast", "scene", "enron")
CLASSES = ("iris", "wine", "breast_cancer", "digits")

Record = dict[str, Any]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in CLASSES:
        X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
        return X.astype(np.float32), y
    if name in GENERATED:
        return GENERATED[name](GENERATED_ROWS, random_state=0)
    task = "regression" if name in REGRESSION else "multilabel"
    data = workloads.read(workloads.data_folder() / f"{name}.npz", task, dense=True)
    X, Y = (np.concatenate(pair) for pair in ((data.X, data.X_test), (data.Y, data.Y_test)))
    return X, Y.astype(np.float64) if task == "regression" else Y


# ------------------------------------------------------------------ what is measured


def judged(ends: np.ndarray, Y: np.ndarray, scale: np.ndarray, coverage: float) -> Record:
    """Coverage of cells and of rows, and width and interval score in standard deviations."""
    low, high = ends[..., 0], ends[..., 1]
    inside = (low <= Y) & (high >= Y)
    outside = np.maximum(low - Y, 0) + np.maximum(Y - high, 0)
    score = high - low + 2 / (1 - coverage) * outside
    return {
        "cells": float(inside.mean()),
        "rows": float(inside.all(axis=1).mean()),
        "width": float(((high - low) / scale).mean()),
        "score": float((score / scale).mean()),
    }


class StandIn(RegressorMixin, BaseEstimator):
    """Answers with known predictions (n_members + 1, n_rows), the last those of all members."""

    def __init__(self, predictions: Any = None, member: Any = None) -> None:
        self.predictions, self.member = predictions, member

    def fit(self, X: np.ndarray, y: np.ndarray) -> "StandIn":
        trained_on = set(self.member[X[:, 0].astype(int)])
        (self.number_,) = set(range(N_FOLDS)) - trained_on or {N_FOLDS}
        self.is_fitted_ = True
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.predictions[self.number_, X[:, 0].astype(int)]


def by_mapie(model: Any, X: np.ndarray, Y: np.ndarray, X_test: np.ndarray) -> dict[str, np.ndarray]:
    """MAPIE's intervals (n_rows, n_outputs, 2, n_coverages), by method."""
    from mapie.regression import CrossConformalRegressor

    member = model._calibration.member
    assert len(member) == len(Y), "the calibration keeps all rows of sets as small as these"
    both = np.concatenate([X, X_test])
    of_members = model._member_raw(both, None)
    predictions = np.concatenate([of_members, of_members.mean(axis=0)[None]])
    numbers = np.arange(len(both))[:, None]
    found = {}
    for method in ("base", "plus"):
        columns = []
        for j in range(Y.shape[1]):
            theirs = CrossConformalRegressor(
                StandIn(predictions[:, :, j], member),
                confidence_level=list(COVERAGES),
                method=method,
                cv=PredefinedSplit(member),
            )
            theirs.fit_conformalize(numbers[: len(Y)], Y[:, j])
            columns.append(theirs.predict_interval(numbers[len(Y) :])[1])
        found[method] = np.stack(columns, axis=1)
    return found


def of_regression(name: str, seed: int) -> Record:
    X, Y, X_test, Y_test = split(name, seed)
    scale = Y.std(axis=0) + 1e-12
    model = ManyBoostRegressor(n_folds=N_FOLDS, random_state=seed).fit(X, Y)
    record: Record = {}
    for coverage in COVERAGES:
        for method in METHODS:
            for joint in (False, True):
                ends = model.predict_interval(X_test, coverage, joint=joint, method=method)
                key = f"{method}{' joint' if joint else ''} {coverage:g}"
                record[key] = judged(ends, Y_test, scale, coverage)
    for method, ends in by_mapie(model, X, Y, X_test).items():
        for k, coverage in enumerate(COVERAGES):
            record[f"mapie {method} {coverage:g}"] = judged(ends[..., k], Y_test, scale, coverage)
    levels = ManyBoostRegressor(
        "quantile", quantile=QUANTILES, n_folds=N_FOLDS, random_state=seed
    ).fit(X, Y)
    record["plain quantiles 0.9"] = judged(levels.predict(X_test), Y_test, scale, 0.9)
    record["quantiles 0.9"] = judged(levels.predict_interval(X_test, 0.9), Y_test, scale, 0.9)
    return record


def of_labels(name: str, seed: int) -> Record:
    """Mean recall over the rows that have labels, and what is predicted for it."""
    X, Y, X_test, Y_test = split(name, seed)
    model = ManyBoostClassifier(n_folds=N_FOLDS, random_state=seed).fit(X, Y)
    true, there = Y_test > 0, (Y_test > 0).any(axis=1)

    def judged_labels(chosen: np.ndarray) -> Record:
        found = (chosen & true).sum(axis=1)
        return {
            "recall": float((found[there] / true[there].sum(axis=1)).mean()),
            "precision": float(found.sum() / max(1, chosen.sum())),
            "labels": float(chosen.sum(axis=1).mean()),
        }

    record = {"plain": judged_labels(model.predict(X_test) > 0)}
    of_members = model._member_raw(X_test)
    for recall in COVERAGES:
        chosen = np.zeros(true.shape, bool)
        for row, labels in enumerate(model.predict_labels(X_test, recall)):
            chosen[row, list(labels)] = True
        record[f"{recall:g}"] = judged_labels(chosen)
        # The same threshold for each member, and for the labels that any member is above it with.
        above = of_members >= model._least_raw(recall)
        alone = [judged_labels(each) for each in above]
        record[f"member {recall:g}"] = {k: float(np.mean([r[k] for r in alone])) for k in alone[0]}
        record[f"any {recall:g}"] = judged_labels(above.any(axis=0))
    return record


def of_classes(name: str, seed: int) -> Record:
    X, y, X_test, y_test = split(name, seed)
    model = ManyBoostClassifier(n_folds=N_FOLDS, random_state=seed).fit(X, y)
    record: Record = {"plain": {"cells": float((model.predict(X_test) == y_test).mean())}}
    for coverage in COVERAGES:
        chosen = model.predict_set(X_test, coverage)
        hit = chosen[np.arange(len(y_test)), y_test]
        record[f"{coverage:g}"] = {"cells": float(hit.mean()), "size": float(chosen.sum(1).mean())}
    return record


def split(name: str, seed: int) -> tuple[np.ndarray, ...]:
    X, Y = load(name)
    order = np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS]
    train, test = np.split(order, [round(TRAINING * len(order))])
    return X[train], Y[train], X[test], Y[test]


def measure(names: list[str]) -> None:
    results = one_build.opened(RESULTS, also=("mapie",), sets={})
    for name in names:
        kind = of_regression if name in REGRESSION else of_labels if name in LABELS else of_classes
        found = results["sets"].setdefault(name, [])
        while len(found) < N_SPLITS:
            found.append(kind(name, len(found)))
            write(results)
        print(name, "is complete", flush=True)


def write(results: dict[str, Any]) -> None:
    """A line for each split."""
    short = json.loads(json.dumps(results), parse_float=lambda text: round(float(text), 4))
    lines = [
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, found)) + "\n]"
        for name, found in short["sets"].items()
    ]
    sets = ",\n".join(lines)
    one_build.replace(
        RESULTS, f'{{"machine": {json.dumps(short["machine"])},\n"sets": {{\n{sets}\n}}}}\n'
    )


# ------------------------------------------------------------------ the page


def mean(records: list[Record], key: str, what: str) -> float:
    return float(np.mean([each[key][what] for each in records]))


def percent(value: float, nominal: float | None = None) -> str:
    """A share; bold where it is out of what is allowed about the nominal one."""
    text = f"{100 * value:.1f}"
    if nominal is None or ALLOWED[0] <= round(value - nominal, 4) <= ALLOWED[1]:
        return text
    return f"**{text}**"


def coverage_table(sets: dict[str, list[Record]], *, joint: bool) -> str:
    what, ending = ("rows", " joint") if joint else ("cells", "")
    columns = [(method, coverage) for method in METHODS for coverage in COVERAGES]
    head = ["set", *(f"{method} {100 * coverage:.0f} %" for method, coverage in columns)]
    rows = []
    for name in REGRESSION:
        if found := sets.get(name):
            cells = [
                percent(mean(found, f"{method}{ending} {coverage:g}", what), coverage)
                for method, coverage in columns
            ]
            rows.append([name, *cells])
    return table(head, rows, 1, len(head))


def within_bounds(sets: dict[str, list[Record]], *, joint: bool) -> str:
    """For how many sets each method is within the bounds at every coverage."""
    what, ending = ("rows", " joint") if joint else ("cells", "")
    measured = [found for name in REGRESSION if (found := sets.get(name))]
    counts = []
    for method in METHODS:
        within = [
            all(
                "*" not in percent(mean(found, f"{method}{ending} {each:g}", what), each)
                for each in COVERAGES
            )
            for found in measured
        ]
        counts.append(f'"{method}" on {sum(within)}')
    return f"Within the bounds at all coverages, of {len(measured)} sets: {', '.join(counts)}."


def width_table(sets: dict[str, list[Record]]) -> str:
    """Widths, and interval scores in brackets, of intervals of 90 %."""
    keys = {
        "split": "split 0.9",
        "MAPIE base": "mapie base 0.9",
        "cv+": "cv+ 0.9",
        "MAPIE plus": "mapie plus 0.9",
        "normalised": "normalised 0.9",
        "quantiles": "quantiles 0.9",
        "quantiles as they are": "plain quantiles 0.9",
    }
    rows = []
    for name in REGRESSION:
        if found := sets.get(name):
            cells = [
                f"{mean(found, key, 'width'):.3f} ({mean(found, key, 'score'):.2f})"
                for key in keys.values()
            ]
            covered = [percent(mean(found, key, "cells")) for key in list(keys.values())[-2:]]
            rows.append([name, *cells, *covered])
    head = ["set", *keys, "covered by quantiles, %", "as they are, %"]
    return table(head, rows, 1, len(head))


def label_table(sets: dict[str, list[Record]]) -> str:
    rows = []
    for name in LABELS:
        if found := sets.get(name):
            cells = [
                f"{percent(mean(found, key, 'recall'), None if key == 'plain' else float(key))} · "
                f"{percent(mean(found, key, 'precision'))} · {mean(found, key, 'labels'):.1f}"
                for key in ("plain", *(f"{each:g}" for each in COVERAGES))
            ]
            rows.append([name, *cells])
    head = ["set", "`predict`", *(f"`recall={each:g}`" for each in COVERAGES)]
    return table(head, rows, 1, len(head))


def recall_errors(sets: dict[str, list[Record]]) -> str:
    """Recall minus its level, in points, with standard errors over the splits; labels of a row."""
    rows = []
    for name in LABELS:
        if found := sets.get(name):
            for level in COVERAGES:
                cells = []
                for form in ("", "member ", "any "):
                    apart = [100 * (each[f"{form}{level:g}"]["recall"] - level) for each in found]
                    error = np.std(apart, ddof=1) / len(apart) ** 0.5
                    text = f"{np.mean(apart):+.2f} ± {error:.2f}"
                    text = f"**{text}**" if np.mean(apart) < -2 * error else text
                    cells += [text, f"{mean(found, f'{form}{level:g}', 'labels'):.1f}"]
                rows.append([name, f"{level:g}", *cells])
    forms = ["the model", "one member", "any member"]
    head = ["set", "`recall=`", *(each for form in forms for each in (form, "labels"))]
    return table(head, rows, 1, len(head))


def class_table(sets: dict[str, list[Record]]) -> str:
    rows = []
    for name in CLASSES:
        if found := sets.get(name):
            cells = [
                f"{percent(mean(found, key, 'cells'))} · {mean(found, key, 'size'):.2f}"
                for key in map("{:g}".format, COVERAGES)
            ]
            rows.append([name, percent(mean(found, "plain", "cells")), *cells])
    head = ["set", "accuracy", *(f"`coverage={each:g}`" for each in COVERAGES)]
    return table(head, rows, 1, len(head))


def page(results: dict[str, Any]) -> str:
    sets, where = results["sets"], results["machine"]
    below, above = (f"{100 * abs(each):.0f}" for each in ALLOWED)
    return f"""# Intervals and sets: what they promise and what they hold

Generated by `python -m benchmarks.intervals`; do not edit. Default parameters with
`n_folds={N_FOLDS}`; {N_SPLITS} random splits of each set (of {MOST_ROWS:,} of its rows at most),
two thirds of the rows for training. The figures are means over splits, outputs and test rows.
The sets friedman1 are generated, {GENERATED_ROWS:,} rows each; all others are real.
[The guide](guide/uncertainty.md) explains the methods,
[a decision](decisions/56-intervals-are-conformal.md) the choice between them.

{", ".join(where["libraries"])}.

## Coverage of intervals

Share of the test cells within their intervals, in percent. Bold: more than {below} points below
what was asked for, or more than {above} above.

{coverage_table(sets, joint=False)}

{within_bounds(sets, joint=False)} Each member is trained without one fold and has larger errors
than the mean of all members, so intervals tend to be too wide rather than too narrow, the more so
the more the members differ. The sets with the fewest rows come first. Nine in ten targets of sf1
are zero, and intervals that contain zero cover all of these.

## Coverage of joint regions

`joint=True`: share of the test rows that have all outputs within their intervals, in percent.

{coverage_table(sets, joint=True)}

{within_bounds(sets, joint=True)}

## Width

Mean width of intervals of 90 % in standard deviations of the output, and in brackets the interval
score: the width, plus 20 times the distance of the truths that are outside. Less is better. MAPIE
computes its intervals from the same members. "Quantiles": the levels {QUANTILES[0]:g} and
{QUANTILES[1]:g} of `loss="quantile"`, conformalised, and as they are.

{width_table(sets)}

## Recall of labels

`predict_labels(X, recall=)`: recall in percent (mean over the test rows that have labels) ·
precision in percent (of all predicted labels) · labels predicted for a row.

{label_table(sets)}

Recall minus what was asked for, in points, with the standard error of the mean over the splits, and
labels predicted for a row. Bold: below by more than two standard errors. The threshold comes from
members and is applied to their mean. "One member" applies it to each member separately (mean over
the members); "any member" predicts a label if any member is above the threshold.

{recall_errors(sets)}

## Sets of classes

`predict_set(X, coverage=)`: share of the test rows whose class is in its set, in percent · classes
in a set. A set always holds the most probable class: where `predict` is right more often than was
asked for, sets have one class.

{class_table(sets)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*CLASSES, *LABELS, *REGRESSION])
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if not arguments.page:
        measure(arguments.names)
    PAGE.write_text(page(one_build.read(RESULTS, sets={})))


if __name__ == "__main__":
    main()
