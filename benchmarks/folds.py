"""Folds and refits: what they gain on every set that one model trains on in a minute.

    python -m benchmarks.folds                  fits what is missing, and writes the page
    python -m benchmarks.folds --sets birds enb
    python -m benchmarks.folds --jobs 2         two sets at a time
    python -m benchmarks.folds --time           times fits anew, on an idle machine (eight minutes)
    python -m benchmarks.folds --report         writes the page alone

Figures go to `benchmarks/results/folds.json`, the page to `docs/folds.md`. Needs the data folder.
Sets below 2,000 rows are split at random ten times, two thirds for training; the others have their
own split, or one at random. All models have 1,000 rounds at most, and one thread but for --time.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse
from scipy.stats import binomtest

from benchmarks import machine, metrics, one_build, workloads
from benchmarks.processes import side_by_side
from benchmarks.tables import table
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import CATALOGUE, Dataset, load_dataset
from manyboost.training.boosting import Boosting

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "folds.json"
PAGE = ROOT / "docs" / "folds.md"

ROUNDS = 1000
FOLDS = 5
FEW_ROWS, SPLITS = 2_000, 10
MOST_CATEGORIES = 255  # beyond, a column names rows rather than kinds of them
MINUTE = 60.0  # seconds of fitting one model: sets that take longer are left out
LOSS = 0.003  # that is no loss, if it is within two standard errors

WAYS: dict[str, dict[str, Any]] = {
    "one": {"early_stopping": True},
    "one, refitted": {"early_stopping": True, "refit_all": True},
    "folds": {"n_folds": FOLDS},
    "folds, leaves refitted": {"n_folds": FOLDS, "refit_all": True},
}
TIMED, TIMED_SPLITS = ("emotions", "water-quality", "yeast", "scm20d"), 5
ATTEMPT = Boosting.attempt  # makes one round
Record = dict[str, Any]


def names() -> list[str]:
    """All sets of the catalogue that the data folder has, the small ones first."""
    files = sorted(workloads.data_folder().glob("*.npz"), key=lambda file: file.stat().st_size)
    return [file.stem for file in files if file.stem in CATALOGUE]


def divided(data: Dataset, split: int) -> np.ndarray:
    """Which rows are for training."""
    n = data.X.shape[0]
    if n >= FEW_ROWS and data.split is not None:
        return np.asarray(data.split) == 0
    order = np.random.default_rng(split).permutation(n)
    return np.isin(np.arange(n), order[: round(n * 2 / 3)])


def raw(model: Any, X: Any) -> np.ndarray:
    predicted = getattr(model, "decision_function", model.predict)(X)
    return predicted[:, None] if predicted.ndim == 1 else predicted


def load(name: str) -> Dataset:
    """A set; sparse features are made dense if some are categories, row identifiers become zero."""
    data = load_dataset(name, workloads.data_folder())
    X = data.X
    if sparse.issparse(X) and len(data.categorical):
        X = X.toarray()
    for column in data.categorical:
        if len(np.unique(X[:, column])) > MOST_CATEGORIES:
            X[:, column] = 0
    return replace(data, X=X)


def targets(data: Dataset) -> np.ndarray:
    Y = data.Y.toarray() if sparse.issparse(data.Y) else data.Y
    return Y.astype(np.uint8) if data.task == "multilabel" else Y


def make(data: Dataset, way: str, seed: int, threads: int) -> Any:
    kind = ManyBoostRegressor if data.task == "regression" else ManyBoostClassifier
    categorical = list(data.categorical) or None
    common = {"max_iter": ROUNDS, "random_state": seed, "n_jobs": threads}
    return kind(**common, categorical_features=categorical, **WAYS[way])


def measured(data: Dataset, split: int) -> dict[str, Record]:
    """Test scores and seconds of all ways."""
    train, X, Y = divided(data, split), data.X, targets(data)
    found: dict[str, Record] = {}

    def keep(way: str, model: Any, seconds: float) -> None:
        score = metrics.score(data.task, Y[~train], raw(model, X[~train]))
        found[way] = {"score": score, "seconds": seconds, "rounds": int(model.n_iter_)}

    for way in WAYS:
        model = make(data, way, split, 1)
        began = time.process_time()
        model.fit(X[train], Y[train])
        seconds = time.process_time() - began
        keep(way, model, seconds)
        if way == "one" and seconds > MINUTE:
            break
        if way == "folds":
            unseen = getattr(model, "oof_prediction_", None)
            unseen = model.oof_decision_function_ if unseen is None else unseen
            unseen = unseen[:, None] if unseen.ndim == 1 else unseen
            found[way]["out of fold"] = metrics.score(data.task, Y[train], unseen)
            alone = (
                metrics.score(data.task, Y[~train], each) for each in model._member_raw(X[~train])
            )
            found[way]["a member"] = statistics.fmean(alone)
    return found


def measured_splits(name: str, known: dict[str, Any]) -> dict[str, dict[str, Record]]:
    """Those splits of a set that are not known yet, unless one model takes too long on them."""
    data = load(name)
    found = dict(known)
    for split in range(SPLITS if data.X.shape[0] < FEW_ROWS else 1):
        if any("folds" not in each for each in found.values()):
            break
        if str(split) not in found:
            found[str(split)] = measured(data, split)
    return found


def timed(data: Dataset, threads: int) -> dict[str, Record]:
    """Seconds of a fit and the rounds that a model or member makes, in the mean over splits."""
    Y, found = targets(data), {way: {"seconds": 0.0, "rounds": 0.0} for way in WAYS}
    for split in range(TIMED_SPLITS):
        train = divided(data, split)
        for way, parameters in WAYS.items():
            model, n_models = (
                make(data, way, split, threads),
                FOLDS if "n_folds" in parameters else 1,
            )
            with mock.patch.object(Boosting, "attempt", autospec=True, side_effect=ATTEMPT) as made:
                began = time.perf_counter()
                model.fit(data.X[train], Y[train])
                found[way]["seconds"] += (time.perf_counter() - began) / TIMED_SPLITS
            found[way]["rounds"] += made.call_count / n_models / TIMED_SPLITS
    return found


# ------------------------------------------------------------------ the page


def time_table(times: dict[str, Any]) -> str:
    """Times in those of one model, from runs that took turns."""
    rows = []
    for key, found in times.items():
        one, folds = found["one"], found["folds"]
        ratios = [found[way]["seconds"] / one["seconds"] for way in WAYS]
        of_round = ratios[2] * one["rounds"] / folds["rounds"]
        cells = [f"{1000 * one['seconds']:,.0f}", *(f"{each:.2f}" for each in ratios[1:])]
        made = [f"{found[way]['rounds']:.0f}" for way in ("one", "folds")]
        rows.append(
            [*key.split(), *cells, f"{ratios[3] / ratios[2]:.2f}", *made, f"{of_round:.2f}"]
        )
    head = ["set", "threads", "one, ms", *(f"{way} ÷ one" for way in list(WAYS)[1:])]
    head += ["refitted ÷ folds", "rounds: one", "a member", "folds ÷ one, for each round"]
    return table(head, rows, 1, len(head))


def mean_of(records: list[dict[str, Record]], way: str, what: str = "score") -> float:
    return statistics.fmean(record[way][what] for record in records)


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else float("nan")


def standard_error(differences: list[float]) -> float:
    if len(differences) < 2:
        return float("nan")
    return statistics.stdev(differences) / len(differences) ** 0.5


def apart(sets: list[list[dict[str, Record]]], what: str) -> str:
    """How far out-of-fold scores are from test scores of folds, or of their members."""
    found = [mean_of(each, "folds", "out of fold") - mean_of(each, "folds", what) for each in sets]
    return f"{mean(found):+.4f} ({standard_error(found):.4f})"


def page(results: dict[str, Any]) -> str:
    sets = {name: list(each["splits"].values()) for name, each in results["sets"].items()}
    whole = {n: each for n, each in sets.items() if all(set(WAYS) <= set(r) for r in each)}
    verdicts, rows = {}, []
    for way in list(WAYS)[1:]:
        gains = {n: mean_of(each, way) - mean_of(each, "one") for n, each in whole.items()}
        losses = []
        for name, each in whole.items():
            error = standard_error([r[way]["score"] - r["one"]["score"] for r in each])
            if gains[name] < -LOSS and not abs(gains[name]) <= 2 * error:
                losses.append(name)
        better = sum(gain > 0 for gain in gains.values())
        p = binomtest(better, len(gains)).pvalue if gains else float("nan")
        verdicts[way] = [
            way,
            f"{better} of {len(gains)} ({better / max(len(gains), 1):.0%})",
            f"{p:.1g}",
            f"{mean(list(gains.values())):+.4f}",
            ", ".join(losses) or "none",
        ]
    for name, each in whole.items():
        error = standard_error([r["folds"]["score"] - r["one"]["score"] for r in each])
        scores = [mean_of(each, way) for way in WAYS]
        best = max(scores)
        cells = [f"**{s:.4f}**" if s == best else f"{s:.4f}" for s in scores]
        unseen = mean_of(each, "folds", "out of fold")
        shown = "–" if error != error else f"{error:.4f}"
        alone = mean_of(each, "folds", "a member")
        rows.append([name, str(len(each)), *cells, shown, f"{unseen:.4f}", f"{alone:.4f}"])
    at_random = [each for each in whole.values() if len(each) > 1]
    left_out = sorted(set(sets) - set(whole))
    head = ["", "better than one model", "sign test", "mean gain", "significantly worse"]
    return f"""# Folds and refits

Generated from `benchmarks/results/folds.json` by `python -m benchmarks.folds`; with `--report` it
only writes the page.

One model with early stopping, refitted on all rows or not, compared with the mean of {FOLDS}
members (`n_folds={FOLDS}`), with leaves as they are or refitted on all rows (`refit_all=True`).

{table(head, list(verdicts.values()))}

Better: the number of sets on which the mean test score is higher than that of one model.
Significantly worse: lower by more than {LOSS} and by more than two standard errors of the
difference.

Out-of-fold scores minus test scores, on average over the sets (standard error in brackets):
{apart(list(whole.values()), "score")}. On the {len(at_random)} sets that are split at random, whose
test rows are like the training rows: {apart(at_random, "score")}. An out-of-fold score is that of
single members, on rows that they have not seen. A single member is not as good as the mean of all,
so the out-of-fold score is a cautious estimate. On the same sets, out-of-fold scores minus the test
scores of single members: {apart(at_random, "a member")}.

{table(["set", "splits", *WAYS, "± folds − one", "out of fold", "a member"], rows, 1, 9)}

Test scores (macro r², LRAP), means over the splits; ±: the standard error of the difference between
folds and one model. Out of fold: scores on the training rows; a member: the mean test score of the
single members. Left out, because one model takes more than a minute or the runs are not
complete: {", ".join(left_out) or "none"}.

## Time

{time_table(results.get("times", {}))}

`python -m benchmarks.folds --time`: means over {TIMED_SPLITS} splits, or seeds where a set has its
own split; the fits take turns. Rounds: all rounds that were run; a model keeps those up to the
best. The mean curve of the members is smoother than that of few validation rows, and improves for
longer. For each round: as if folds had run as many rounds as one model. Members train on
{1 - 1 / FOLDS:.0%} of the rows, one model on 90%: if time followed rows, this would be
{(FOLDS - 1) / 0.9:.2f}.

Scores: {machine.versions(results["machine"])}. Times: {timed_on(results)}.
"""


def timed_on(results: dict[str, Any]) -> str:
    facts = results.get("timed on")
    return f"{machine.versions(facts)}, {facts['cpu']}" if facts else "not measured"


def measure(results: dict[str, Any], sets: list[str], jobs: int) -> None:
    """Measure what is missing; a set is saved when all of its splits are done."""
    known = {name: results["sets"].get(name, {"splits": {}})["splits"] for name in sets}
    parts = {name: (name, splits) for name, splits in known.items()}
    for name, splits in side_by_side(jobs, measured_splits, parts):
        results["sets"][name] = {"splits": splits}
        one_build.save(RESULTS, results)
        shown = {way: round(each["score"], 4) for way, each in splits["0"].items()}
        print(name, shown, flush=True)


def measure_times(results: dict[str, Any], sets: Sequence[str]) -> None:
    """Times of one machine: those of another are dropped."""
    here = results["machine"]
    if machine.place(results.get("timed on", {})) != machine.place(here):
        results["times"] = {}
    results["timed on"] = here
    for name in sets:
        data = load(name)
        for threads in (1, 2):
            results["times"][f"{name} {threads}"] = timed(data, threads)
        one_build.save(RESULTS, results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--jobs", type=int, default=1, help="sets at a time")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    begin = one_build.read if arguments.report else one_build.opened
    results = begin(RESULTS, sets={})
    if arguments.time:
        measure_times(results, arguments.sets or TIMED)
    if not arguments.report and not arguments.time:
        measure(results, arguments.sets or names(), arguments.jobs)
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
