"""Growing trees on a share of the rows: which rows, which leaves, and is it worth it?

    python -m benchmarks.sampling scores   test scores of single rounds, and of fits that stop early
    python -m benchmarks.sampling times    milliseconds of a round, on a quiet machine
    python -m benchmarks.sampling report   rewrites the tables of docs/decisions/52

`--sets NAME…` takes some of the sets, `--limit SECONDS` ends after the fit that passes it. Results
are kept in results/sampling.json, and what is there is not run again. Needs the data folder.

"subsample" is what the library has: splits and leaves are fitted to rows drawn uniformly. The other
methods are made here, for models without weights: splits are fitted to the drawn rows, leaves to
all. They draw rows uniformly ("grow on a share"), by the size of their split gradients with
importance weights ("mvs"), or take the largest and some of the others ("goss").
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import metrics, one_build, workloads
from benchmarks.tables import filled
from benchmarks.workloads import Data
from manyboost import ManyBoostClassifier, ManyBoostRegressor, _core
from manyboost.training import boosting
from manyboost.training.split_gradients import SplitGradients
from manyboost.training.updates import Update

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "sampling.json"
PAGE = ROOT / "docs" / "decisions" / "52-trees-are-not-grown-on-chosen-rows.md"


@dataclass(frozen=True)
class Study:
    n_seeds: int
    n_rounds: int  # enough for the fast methods to use up the time that the others need
    converged: tuple[float, ...]  # shares of the fits that stop early


SETS = {
    "yeast": Study(5, 300, (0.1, 0.2, 0.5)),
    "scm20d": Study(3, 300, (0.1, 0.2, 0.5)),
    "bibtex": Study(1, 200, ()),
    "regression-200000x20x5": Study(1, 200, ()),
    "mediamill": Study(1, 200, (0.2,)),
    "regression-100000x100x100": Study(1, 200, ()),
}
METHODS = ("subsample", "grow on a share", "mvs", "goss")
SHARES = (0.1, 0.2, 0.3, 0.5)
EQUAL_ROUNDS = 100
EVERY = 10  # rounds from score to score
CONVERGED_ROUNDS = 1000  # at most, with early stopping
REPEATS = 3  # of a timing, of which the fastest counts
FLOOR = 0.1  # of the mean square, added to squared sizes of gradients: no row has no chance

Chosen = tuple[np.ndarray, np.ndarray | None]  # rows, ascending, and weights of all rows


# ------------------------------------------------------------------ which rows


def draw_uniformly(fit: boosting.Boosting, m: int, z: np.ndarray, count: int) -> Chosen:
    numbers = np.arange(fit.n_rows, dtype=np.uint64)
    return _core.sample_rows(fit.pool, numbers, count, fit.plan.seed, m, 0), None


def draw_by_size(fit: boosting.Boosting, m: int, z: np.ndarray, count: int) -> Chosen:
    """Priority sampling: the rows with the smallest u / size.

    The next one sets the chance that each of them had; sums weighted by 1 / chance are unbiased.
    """
    squares = (z.astype(np.float64) ** 2).sum(axis=1)
    size = np.sqrt(squares + FLOOR * squares.mean())
    priority = (1 - np.random.default_rng([fit.plan.seed, m]).random(len(z))) / size
    bound = np.partition(priority, count)[count]
    rows = np.flatnonzero(priority < bound)
    weight = np.zeros(len(z), np.float32)
    weight[rows] = np.maximum(1, 1 / (size[rows] * bound))
    return rows.astype(np.uint32), weight


def take_largest(fit: boosting.Boosting, m: int, z: np.ndarray, count: int) -> Chosen:
    """Half of the count are the largest; the others are drawn uniformly from the rest."""
    squares = (z.astype(np.float64) ** 2).sum(axis=1)
    n_top = count // 2
    order = np.argpartition(-squares, n_top)
    top, rest = order[:n_top], order[n_top:]
    drawn = np.random.default_rng([fit.plan.seed, m]).choice(rest, count - n_top, replace=False)
    weight = np.zeros(len(z), np.float32)
    weight[top], weight[drawn] = 1, len(rest) / len(drawn)
    return np.flatnonzero(weight).astype(np.uint32), weight


CHOOSE = {"grow on a share": draw_uniformly, "mvs": draw_by_size, "goss": take_largest}


class GrowOnAShare:
    """A round of Algorithm 4 whose tree is grown on some rows and labelled with all."""

    def __init__(self, method: str, share: float) -> None:
        self.choose, self.share = CHOOSE[method], share
        self.seconds_of_choice = 0.0  # by NumPy, where a kernel is missing

    def __call__(self, fit: boosting.Boosting, m: int, split: SplitGradients) -> list[Update]:
        started = time.process_time()
        rows, weight = self.choose(fit, m, split.z, max(1, int(self.share * fit.n_rows)))
        if weight is not None:
            self.seconds_of_choice += time.process_time() - started
        tree = fit.learner.fit(split.z, weight, rows, m, 0, split.signs)
        counts = np.bincount(tree.leaf_of_row, minlength=tree.n_leaves)
        tree.leaf_weights = counts.astype(np.float64)
        values, rho = fit.leaves.label(tree, fit.objective.weights, fit.stopping.frozen)
        return [Update(tree, values, rho)]


@contextmanager
def rounds_of(method: str, share: float) -> Iterator[GrowOnAShare | None]:
    """Fits in this context have rounds of this method."""
    if method not in CHOOSE:
        yield None
        return
    before = boosting.ROUNDS["relabel"]
    ours = boosting.ROUNDS["relabel"] = GrowOnAShare(method, share)
    try:
        yield ours
    finally:
        boosting.ROUNDS["relabel"] = before


# ------------------------------------------------------------------ what is measured


def fit(data: Data, method: str, share: float, seed: int, **more: Any) -> tuple[Any, float, float]:
    """A model, and the seconds of its rounds and of the whole fit on one thread."""
    kind = ManyBoostRegressor if data.task == "regression" else ManyBoostClassifier
    subsample = share if method == "subsample" else 1.0
    model = kind(strategy="relabel", subsample=subsample, random_state=seed, n_jobs=1, **more)
    ends: list[float] = []
    model.set_params(callbacks=[lambda state: ends.append(time.process_time())])
    with rounds_of(method, share) as ours:
        started = time.process_time()
        model.fit(data.X, data.Y)
        seconds = time.process_time() - started
    spared = ours.seconds_of_choice if ours else 0.0
    # Without the first round: it may wait for memory.
    per_round = (ends[-1] - ends[0]) / max(1, len(ends) - 1) - spared / len(ends)
    return model, per_round, seconds - spared


def stage_scores(data: Data, method: str, share: float, seed: int, rounds: int) -> list[float]:
    """Test scores after every tenth round."""
    more = {"max_iter": rounds, "learning_rate": 0.1, "early_stopping": False}
    model, _, _ = fit(data, method, share, seed, **more)
    staged = getattr(model, "staged_decision_function", model.staged_predict)
    stages = enumerate(staged(data.X_test), 1)
    return [metrics.score(data.task, data.Y_test, raw) for m, raw in stages if m % EVERY == 0]


def converged(data: Data, method: str, share: float, seed: int, rounds: int) -> list[float]:
    """Test score, seconds and rounds of a fit that stops early."""
    more = {"max_iter": rounds, "early_stopping": True}
    model, _, seconds = fit(data, method, share, seed, **more)
    raw = getattr(model, "decision_function", model.predict)(data.X_test)
    return [metrics.score(data.task, data.Y_test, raw), seconds, float(model.n_iter_)]


def milliseconds(data: Data, method: str, share: float, n_rounds: int) -> float:
    more = {"max_iter": n_rounds, "learning_rate": 0.1, "early_stopping": False}
    return 1e3 * fit(data, method, share, 0, **more)[1]


def contestants(shares: tuple[float, ...]) -> list[tuple[str, float]]:
    return [("all rows", 1.0), *itertools.product(METHODS, shares)]


class Results:
    """Nested by kind, set, method and share; written after every fit."""

    def __init__(self, *, only_read: bool = False) -> None:
        self.all = one_build.read(RESULTS) if only_read else one_build.opened(RESULTS, timed=True)

    def of(self, kind: str, name: str, method: str, share: float) -> list[Any]:
        cell = self.all.setdefault(kind, {}).setdefault(name, {})
        return cell.setdefault(f"{method} {share:g}", [])

    def save(self) -> None:
        one_build.save(RESULTS, self.all)


def run_scores(names: list[str], limit: float) -> None:
    started, results = time.monotonic(), Results()
    for name in names:
        data, study = workloads.find(name).load(), SETS[name]
        for kind, shares, n_rounds, measure in (
            ("stages", SHARES, study.n_rounds, stage_scores),
            ("converged", study.converged, CONVERGED_ROUNDS, converged),
        ):
            n_seeds = study.n_seeds if shares else 0
            for seed, (method, share) in itertools.product(range(n_seeds), contestants(shares)):
                found = results.of(kind, name, method, share)
                if len(found) > seed:
                    continue
                if time.monotonic() - started > limit:
                    print("to be continued")
                    return
                found.append(measure(data, method, share, seed, n_rounds))
                results.save()
        print(name, "is complete", flush=True)


def run_times(names: list[str], limit: float) -> None:
    """Short fits of all methods in turn; the fastest of each counts."""
    started, results = time.monotonic(), Results()
    for name in names:
        data = workloads.find(name).load()
        n_rounds = 30 if data.X.shape[0] < 10_000 else 10
        for repeat, (method, share) in itertools.product(range(REPEATS), contestants(SHARES)):
            found = results.of("times", name, method, share)
            if len(found) <= repeat and time.monotonic() - started < limit:
                found.append(milliseconds(data, method, share, n_rounds))
        results.save()


# ------------------------------------------------------------------ the report


class Report:
    """The tables, from what was measured."""

    def __init__(self) -> None:
        self.results = Results(only_read=True)

    def milliseconds(self, name: str, method: str, share: float) -> float:
        return min(self.results.of("times", name, method, share))

    def score_after(self, rounds: float, name: str, method: str, share: float) -> float:
        """Mean test score over the seeds, between two stages on the line through both."""
        curves = np.mean(self.results.of("stages", name, method, share), axis=0)
        return float(np.interp(rounds, EVERY * np.arange(1, len(curves) + 1), curves))

    def rounds_in_time(self, name: str, method: str, share: float) -> float:
        """Rounds in the time that all rows take for theirs."""
        of_all = self.milliseconds(name, "all rows", 1.0)
        return EQUAL_ROUNDS * of_all / self.milliseconds(name, method, share)

    def rows(self, name: str) -> Iterator[str]:
        every = self.score_after(EQUAL_ROUNDS, name, "all rows", 1.0)
        of_all = self.milliseconds(name, "all rows", 1.0)
        yield f"| **{name}** | all | **{every:.4f}** · {of_all:.3g} ms | | | | |"
        for share in SHARES:
            cells = []
            for method in METHODS:
                equal = self.score_after(EQUAL_ROUNDS, name, method, share)
                cost = self.milliseconds(name, method, share)
                rounds = self.rounds_in_time(name, method, share)
                in_time = self.score_after(rounds, name, method, share)
                cells.append(f"{equal:.4f} · {cost:.3g} ms · {in_time:.4f}")
            free = self.rounds_in_time(name, "grow on a share", share)
            cells.append(f"{self.score_after(free, name, 'mvs', share):.4f}")
            yield f"| | {share:g} | " + " | ".join(cells) + " |"

    def main_table(self) -> list[str]:
        head = "| set | share | " + " | ".join(METHODS) + " | mvs, weights free |"
        return [
            head,
            "|---|---|" + "---|" * (len(METHODS) + 1),
            *itertools.chain(*map(self.rows, SETS)),
        ]

    def converged_table(self) -> list[str]:
        names = [name for name, study in SETS.items() if study.converged]
        lines = ["| method | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
        shares = sorted({share for name in names for share in SETS[name].converged})
        for method, share in contestants(tuple(shares)):
            cells = []
            for name in names:
                found = self.results.of("converged", name, method, share)
                if not found:
                    cells.append("")
                    continue
                score, _, rounds = np.mean(found, axis=0)
                seconds = rounds * self.milliseconds(name, method, share) / 1e3
                cells.append(f"{score:.4f} · {rounds:.0f} rounds · {seconds:.2g} s")
            lines.append(
                f"| {method}{'' if share == 1 else f' {share:g}'} | " + " | ".join(cells) + " |"
            )
        return lines

    def write(self) -> None:
        tables = {"rounds": self.main_table(), "converged": self.converged_table()}
        shown = {name: "\n".join(lines) for name, lines in tables.items()}
        PAGE.write_text(filled(PAGE.read_text(), shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=("scores", "times", "report"))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--limit", type=float, default=float("inf"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.task == "scores":
        run_scores(arguments.sets, arguments.limit)
    elif arguments.task == "times":
        run_times(arguments.sets, arguments.limit)
    else:
        Report().write()


if __name__ == "__main__":
    main()
