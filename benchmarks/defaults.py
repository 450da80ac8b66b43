"""Default parameters, 1000 rounds at most, early stopping: whose defaults predict best.

    python -m benchmarks.defaults
    python -m benchmarks.defaults --datasets emotions yeast --contestants manyboost lightgbm
    python -m benchmarks.defaults --report

Every fit in its own process; results/defaults.json is kept current and an interrupted run resumes.
docs/defaults.md is written from it at the end, or at once with --report. Needs the data folder.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import few_outputs, machine, measure, metrics, report, run, workloads
from benchmarks.contestants import Contestant, Settings, Stopwatch, catboost, lightgbm, xgboost
from benchmarks.contestants.base import two_dimensional
from benchmarks.records import Run, Summary
from benchmarks.suites import THREADS, Entry
from benchmarks.workloads import Data, Task

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "defaults.json"
PAGE = ROOT / "docs" / "defaults.md"

ROUNDS = 1000
PATIENCE = 10  # rounds without improvement, where a library has no default of its own
VALIDATION = 0.1  # of the training rows
FOREST = 100  # trees, scikit-learn's default
TREES_AT_A_TIME = 10
CAP = 600.0  # seconds of one fit
TRIAL = 0.2  # of the cap: after this, one model per output is given up if it would take far longer
MARGIN = 0.005  # of the best peer's score
BAR = 8  # sets


@dataclass(frozen=True)
class Set:
    task: Task
    repeats: int  # few rows: each repeat has another validation part and another seed


# The cheap ones first.
SETS: dict[str, Set] = {
    "water-quality": Set("regression", 5),
    "atp1d": Set("regression", 5),
    "emotions": Set("multilabel", 5),
    "yeast": Set("multilabel", 3),
    "scene": Set("multilabel", 3),
    "enron": Set("multilabel", 3),
    "scm20d": Set("regression", 3),
    "imclef07a": Set("multilabel", 1),
    "bibtex": Set("multilabel", 1),
    "stackex_cs": Set("multilabel", 1),
    "mediamill": Set("multilabel", 1),
    "delicious": Set("multilabel", 1),
}


# ------------------------------------------------------------------ the data


@dataclass
class Split(Data):
    """Training rows without the validation part, that part, and the test rows."""

    X_val: np.ndarray | scipy.sparse.csr_matrix
    Y_val: np.ndarray

    @classmethod
    def of(cls, data: Data, seed: int) -> "Split":
        """A tenth of the training rows, drawn with this seed, becomes the validation part."""
        order = np.random.default_rng(seed).permutation(data.X.shape[0])
        n_val = round(VALIDATION * len(order))
        val, train = np.sort(order[:n_val]), np.sort(order[n_val:])
        X, Y = data.X, data.Y
        return cls(X[train], Y[train], data.X_test, data.Y_test, data.task, X[val], Y[val])

    def with_validation(self) -> tuple[Any, np.ndarray]:
        """All training rows."""
        stack = scipy.sparse.vstack if scipy.sparse.issparse(self.X) else np.concatenate
        X = stack([self.X, self.X_val])
        return (X.tocsr() if scipy.sparse.issparse(X) else X), np.concatenate([self.Y, self.Y_val])


def data_file(name: str) -> Path:
    return workloads.data_folder() / f"{name}.npz"


def load(name: str, seed: int) -> Split:
    """Sparse features stay sparse, categories are their codes, missing values are NaN."""
    return Split.of(workloads.read(data_file(name), SETS[name].task, dense=False), seed)


# ------------------------------------------------------------------ the contestants
#
# Nothing is set but rounds, threads, seed and, where there is no default, patience. After a fit
# `rounds_done` says how many rounds are kept, and `patience` how many without improvement end it.


class ManyBoost(Contestant):
    name = "manyboost"
    library = "manyboost"

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from manyboost import ManyBoostClassifier, ManyBoostRegressor

        kind = ManyBoostRegressor if data.task == "regression" else ManyBoostClassifier
        self.parameters = {
            "max_iter": settings.n_rounds,
            "early_stopping": True,
            "max_time": watch.limit if np.isfinite(watch.limit) else None,
            "random_state": settings.seed,
            "n_jobs": settings.n_threads,
        }
        self.model = kind(**self.parameters)
        X, X_val = (as_dense_if_needed(self.model, part) for part in (data.X, data.X_val))
        self.model.fit(X, data.Y, X_val=X_val, Y_val=data.Y_val)
        self.patience = self.model.n_iter_no_change
        self.rounds_done = int(self.model.n_iter_)

    def predict(self, X) -> np.ndarray:
        method = getattr(self.model, "decision_function", self.model.predict)
        return two_dimensional(method(as_dense_if_needed(self.model, X)))


def as_dense_if_needed(model: Any, X) -> Any:
    """X as it is, or dense if it is sparse and the model's tags say that it takes no such X."""
    if scipy.sparse.issparse(X) and not model.__sklearn_tags__().input_tags.sparse:
        return X.toarray()
    return X


class LightGBM(lightgbm.LightGBM):
    """One model per output, each stopped on its own; the data are binned once."""

    name = "lightgbm"
    patience = PATIENCE

    def start(self, data: Split, settings: Settings) -> None:
        import lightgbm

        self.parameters = {
            "objective": lightgbm_objectives[data.task],
            "num_threads": settings.n_threads,
            "seed": settings.seed,
            "verbosity": -1,
        }
        self.dataset = lightgbm.Dataset(
            data.X, label=data.Y[:, 0].astype(np.float32), params=self.parameters
        )
        self.validation = self.dataset.create_valid(
            data.X_val, label=data.Y_val[:, 0].astype(np.float32)
        )
        self.dataset.construct()
        self.validation.construct()

    def fit_one(self, data: Split, j: int, settings: Settings, lap: Callable[[], None]) -> Any:
        import lightgbm

        self.dataset.set_label(data.Y[:, j].astype(np.float32))
        self.validation.set_label(data.Y_val[:, j].astype(np.float32))
        return lightgbm.train(
            self.parameters,
            self.dataset,
            num_boost_round=settings.n_rounds,
            valid_sets=[self.validation],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )

    def gives_up(self, n_outputs: int, watch: Stopwatch) -> bool:
        return watch.expired or hopeless(len(self.model), n_outputs, self.setup_seconds, watch)

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        super().fit(data, settings, watch)
        kept = [model.best_iteration for model in self.models()]
        self.rounds_done = int(statistics.median(kept))


lightgbm_objectives = lightgbm.OBJECTIVES


def hopeless(n_done: int, n_outputs: int, setup_seconds: float, watch: Stopwatch) -> bool:
    """Whether a fifth of the time has shown that all outputs would take over twice of it."""
    whole = setup_seconds + (watch.elapsed - setup_seconds) * n_outputs / n_done
    return n_done >= 10 and watch.elapsed > TRIAL * watch.limit and whole > 2 * watch.limit


class XGBoost(xgboost.XGBoost):
    patience = PATIENCE

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        import xgboost

        class Clock(xgboost.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                return watch.expired

        self.parameters = {
            "objective": xgboost_objectives[data.task],
            "multi_strategy": self.multi_strategy,
            "nthread": settings.n_threads,
            "seed": settings.seed,
        }
        matrix = xgboost.QuantileDMatrix(data.X, label=data.Y, nthread=settings.n_threads)
        validation = xgboost.QuantileDMatrix(
            data.X_val, label=data.Y_val, ref=matrix, nthread=settings.n_threads
        )
        self.model = xgboost.train(
            self.parameters,
            matrix,
            num_boost_round=settings.n_rounds,
            evals=[(validation, "validation")],
            # In this order: the first that says stop is the last that is asked.
            callbacks=[xgboost.callback.EarlyStopping(rounds=PATIENCE), Clock()],
            verbose_eval=False,
        )
        self.rounds_done = self.model.best_iteration + 1


xgboost_objectives = xgboost.OBJECTIVES


class MultiOutputTree(XGBoost):
    name = "xgboost-multi-output-tree"
    multi_strategy = "multi_output_tree"


class OneOutputPerTree(XGBoost):
    name = "xgboost-one-output-per-tree"
    multi_strategy = "one_output_per_tree"


class CatBoost(catboost.CatBoost):
    """Its patience has a default; its learning rate is chosen by itself, from rows and rounds."""

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        import catboost

        class Clock:
            def after_iteration(self, info):
                return not watch.expired

        self.parameters = {
            "loss_function": catboost_losses[data.task],
            "iterations": settings.n_rounds,
            "od_type": "Iter",
            "thread_count": settings.n_threads,
            "random_seed": settings.seed,
            "allow_writing_files": False,
            "verbose": False,
        }
        self.model = catboost.CatBoost(self.parameters)
        self.model.fit(
            catboost.Pool(data.X, self.changing(data, data.Y)),
            eval_set=catboost.Pool(data.X_val, self.changing(data, data.Y_val)),
            callbacks=[Clock()],
        )
        self.rounds_done = int(self.model.tree_count_)
        self.patience = int(self.model.get_all_params()["od_wait"])


catboost_losses = catboost.LOSSES


class RandomForest(Contestant):
    """No early stopping: it trains on all training rows. Labels are regressed on, with the
    features per split that the classifier has by default; their means rank them.

    The trees vote on the test rows as they come, and are let go: with a thousand outputs a hundred
    of them would not fit in memory. The voting is not part of the time.
    """

    name = "random-forest"
    library = "sklearn.ensemble"
    tasks = ("regression", "multilabel")
    patience = None

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from sklearn.ensemble import RandomForestRegressor

        self.parameters = {
            "n_estimators": FOREST,
            "max_features": 1.0 if data.task == "regression" else "sqrt",
            "n_jobs": settings.n_threads,
            "random_state": settings.seed,
        }
        with watch.paused():
            X, Y = data.with_validation()
            self.votes = 0.0
        while self.rounds_done < FOREST and not (self.rounds_done and watch.expired):
            seed = [settings.seed, self.rounds_done]
            some = RandomForestRegressor(
                **{
                    **self.parameters,
                    "n_estimators": TREES_AT_A_TIME,
                    "random_state": int(np.random.default_rng(seed).integers(2**31)),
                }
            ).fit(X, Y)
            self.rounds_done += TREES_AT_A_TIME
            with watch.paused():
                self.votes = self.votes + TREES_AT_A_TIME * some.predict(data.X_test)

    def predict(self, X) -> np.ndarray:
        """The votes on the test rows, whatever X."""
        return two_dimensional(self.votes / self.rounds_done)


CONTESTANTS: dict[str, type[Contestant]] = {
    kind.name: kind
    for kind in (ManyBoost, LightGBM, MultiOutputTree, OneOutputPerTree, CatBoost, RandomForest)
}
OURS = ManyBoost.name
PEERS = tuple(name for name in CONTESTANTS if name != OURS)


# ------------------------------------------------------------------ one record


def fit_and_score(spec: dict[str, Any]) -> dict[str, Any]:
    """Called by `measure` in the process of this fit."""
    kind = CONTESTANTS[spec["contestant"]]
    kind().prepare()
    data = load(spec["workload"], seed=spec["repeat"])
    settings = Settings(n_rounds=spec["n_rounds"], n_threads=spec["n_threads"], seed=spec["repeat"])
    contestant, fits, _ = measure.timed_fits(kind, data, settings, spec["limit"])
    done = contestant.outputs_done
    n_done = data.n_outputs if done is None else len(done)
    seconds = statistics.median(fits)
    found: dict[str, Any] = {
        "n_rows": data.X.shape[0],
        "n_validation_rows": data.X_val.shape[0],
        "n_test_rows": data.X_test.shape[0],
        "n_features": data.X.shape[1],
        "n_outputs": data.n_outputs,
        "parameters": contestant.parameters,
        "patience": contestant.patience,
        "rounds": contestant.rounds_done,
        "fit_seconds_measured": fits,
        "score_name": metrics.score_name(data.task, data.n_outputs),
    }
    if n_done < data.n_outputs:
        setup = contestant.setup_seconds
        whole = setup + (seconds - setup) * data.n_outputs / n_done
        return {
            **found,
            "fit_seconds": whole,
            "extrapolated": f"{n_done} of {data.n_outputs} outputs",
        }
    return {
        **found,
        "fit_seconds": seconds,
        "capped": seconds > spec["limit"],
        "score": metrics.score(data.task, data.Y_test, contestant.predict(data.X_test)),
    }


# ------------------------------------------------------------------ the run


def main() -> None:
    options = parse(sys.argv[1:])
    if not options.report:
        try:
            make_records(options)
        except KeyboardInterrupt:
            sys.exit("\ninterrupted; the same command resumes from here")
    if not options.results.is_file():
        sys.exit(f"{options.results} does not exist: there is nothing to report")
    options.page.write_text(document(Run.read(options.results), options.results.name))
    run.say(f"wrote {options.page}")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.defaults", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--datasets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--cap", type=float, default=CAP, help="seconds of each fit at most")
    parser.add_argument("--repeats", type=int, help="at most so many repeats")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--memory", type=float, default=12, help="gigabytes of each fit at most")
    parser.add_argument("--fresh", action="store_true", help="forget the records of earlier runs")
    parser.add_argument("--report", action="store_true", help="write the page, run nothing")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(arguments)


def make_records(options: argparse.Namespace) -> None:
    """Run what is missing, set by set."""
    results = run.Results(options.results, fresh=options.fresh)
    jobs = plan(options)
    began = time.monotonic()
    for number, (entry, repeat) in enumerate(jobs, start=1):
        minutes, seconds = divmod(int(time.monotonic() - began), 60)
        head = f"[{number:3}/{len(jobs)} {minutes:3}:{seconds:02}] "
        run.say(f"{head + entry.workload} · {entry.contestant} · {repeat + 1} ".ljust(70), end="")
        run.say(run_one(entry, repeat, results, options.memory))


def plan(options: argparse.Namespace) -> list[tuple[Entry, int]]:
    """(entry, repeat) in the order of SETS; the repeats of a set are interleaved."""
    jobs = []
    for name in (name for name in SETS if name in options.datasets):
        entries = [
            Entry(name, contestant, ROUNDS, options.threads, SETS[name].repeats, options.cap)
            for contestant in CONTESTANTS
            if contestant in options.contestants
        ]
        jobs += run.interleaved(entries, options.repeats)
    return jobs


def run_one(entry: Entry, repeat: int, results: run.Results, memory: float) -> str:
    """Make the record of one job unless there is one; what happened, in a few words."""
    contestant = CONTESTANTS[entry.contestant]()
    if not data_file(entry.workload).is_file():
        reason = f"{entry.workload}.npz is not in the data folder (set MANYBOOST_DATA)"
    else:
        reason = contestant.unavailable()
    if reason:
        results.skip(entry, reason)
        return f"skipped: {reason}"
    spec = specification(entry, repeat)
    if known := results.find(spec):
        return f"known: {run.outcome(known)}"
    budget = run.Budget(3 * entry.limit + 120, memory * run.GIGABYTE)
    record = run.run_process(spec, budget)
    results.add(record)
    return run.outcome(record)


def specification(entry: Entry, repeat: int) -> dict[str, Any]:
    """All that decides about a record."""
    return {
        "protocol": "defaults",
        "workload": entry.workload,
        "contestant": entry.contestant,
        "n_rounds": entry.n_rounds,
        "n_threads": entry.threads,
        "limit": entry.limit,
        "repeat": repeat,
        "library": machine.library(CONTESTANTS[entry.contestant].library.split(".")[0]),
    }


# ------------------------------------------------------------------ the page


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
        """Whether every contestant has been tried, as often as manyboost."""
        counts = {len(s.records) for s in self.summaries.values()}
        return self.summaries.keys() == CONTESTANTS.keys() and len(counts) == 1

    @property
    def difference(self) -> float | None:
        """Ours minus the best peer's; None until all have been tried."""
        ours, peer = self.score(OURS), self.best_peer
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
        table(found),
        LEGEND,
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
    return "\n\n".join(parts) + "\n"


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
    if missing := [c.name for c in found if c.within is None]:
        text += f" Not measured, or not with all contestants: {', '.join(missing)}."
    return text


LEGEND = f"""\
Test score and seconds of fitting; the best score in bold. Difference: manyboost's score minus the
best peer's; within: no more than {MARGIN} below it. Time: the best peer's seconds over
manyboost's. ◦ stopped by the cap, scored with the rounds it had. ≈ over budget: the time is
extrapolated, there is no score."""


def table(found: Sequence[Comparison]) -> str:
    head = ("set", "metric", *CONTESTANTS, "best peer", "difference", "within", "time")
    rows = []
    for c in found:
        first = next(iter(c.summaries.values()), None)
        metric = report.named(first) if first else ""
        scored = [name for name in CONTESTANTS if c.score(name) is not None]
        best = max(scored, key=c.score, default=None)
        cells = [cell(c, name, bold=name == best) for name in CONTESTANTS]
        difference = "–" if c.difference is None else f"{c.difference:+.4f}"
        within = {True: "yes", False: "no", None: "–"}[c.within]
        rows.append(
            (c.name, metric or "–", *cells, c.best_peer or "–", difference, within, time_ratio(c))
        )
    return report.table(head, rows, 2, 2 + len(CONTESTANTS))


def cell(c: Comparison, contestant: str, *, bold: bool) -> str:
    summary = c.summaries.get(contestant)
    if summary is None:
        return "–"
    if not summary.ok:
        return summary.status
    seconds = f"{report.number(summary.fit_seconds)} s"
    if summary.extrapolated:
        return f"over budget, ≈ {seconds}"
    score = f"{c.score(contestant):.4f}"
    mark = " ◦" if capped(summary) else ""
    return f"{f'**{score}**' if bold else score} · {seconds}{mark}"


def capped(summary: Summary) -> bool:
    return any(summary.values("capped"))


def time_ratio(c: Comparison) -> str:
    if c.difference is None:
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
  every fit in a process of its own. Scores are means over the repeats, times medians.
- The official split where there is one, else a fixed random half of the rows for training.
  {VALIDATION:.0%} of the training rows, the same for all contestants, are handed to each for its
  early stopping, by its own default metric. A repeat has another such part and another seed.
- Rounds without improvement after which a fit stops: the library's default where it has one, else
  {PATIENCE} ({patience}). All predict with the best round.
- lightgbm fits one model per output, each stopped on its own; the data are binned once.
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


if __name__ == "__main__":
    main()
