"""Default parameters, 1000 rounds at most, early stopping: whose defaults predict best.

    python -m benchmarks.defaults
    python -m benchmarks.defaults --datasets emotions yeast --contestants manyboost lightgbm
    python -m benchmarks.defaults --report

Every fit in its own process; results/defaults.json is kept current and an interrupted run resumes.
docs/defaults.md is written from it at the end, or at once with --report. Needs the data folder.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from benchmarks import machine, measure, metrics, run, workloads
from benchmarks.contestants import Contestant, Settings, Stopwatch, catboost, lightgbm, xgboost
from benchmarks.contestants.base import two_dimensional
from benchmarks.records import Run
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
CAP = 300.0  # seconds of one fit
LONG_FIT = 60.0  # seconds: a fit this long is not repeated
TRIAL = 0.2  # of the cap: after this, one model per output is given up if it would take far longer
FOLDS = 5  # of the second of our models


@dataclass(frozen=True)
class Set:
    task: Task
    repeats: int = 3  # each has another validation part and another seed


# The cheap ones first.
SETS: dict[str, Set] = {
    "water-quality": Set("regression", 5),
    "atp1d": Set("regression", 5),
    "emotions": Set("multilabel", 5),
    "yeast": Set("multilabel"),
    "scene": Set("multilabel"),
    "enron": Set("multilabel"),
    "scm20d": Set("regression"),
    "imclef07a": Set("multilabel"),
    "bibtex": Set("multilabel"),
    "stackex_cs": Set("multilabel"),
    "mediamill": Set("multilabel"),
    "delicious": Set("multilabel"),
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
    asked: ClassVar[dict[str, Any]] = {"early_stopping": True}

    def prepare(self) -> None:
        super().prepare()
        import manyboost.estimators  # noqa: F401  the package itself loads them on first use

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from manyboost import ManyBoostClassifier, ManyBoostRegressor

        kind = ManyBoostRegressor if data.task == "regression" else ManyBoostClassifier
        self.parameters = {
            "max_iter": settings.n_rounds,
            "max_time": watch.limit if np.isfinite(watch.limit) else None,
            "random_state": settings.seed,
            "n_jobs": settings.n_threads,
            **self.asked,
        }
        self.model = kind(**self.parameters)
        self.train(data, watch)
        self.patience = self.model.n_iter_no_change
        self.rounds_done = int(self.model.n_iter_)

    def train(self, data: Split, watch: Stopwatch) -> None:
        X, X_val = (as_dense_if_needed(self.model, part) for part in (data.X, data.X_val))
        self.model.fit(X, data.Y, X_val=X_val, Y_val=data.Y_val)

    def predict(self, X) -> np.ndarray:
        method = getattr(self.model, "decision_function", self.model.predict)
        return two_dimensional(method(as_dense_if_needed(self.model, X)))


class Folds(ManyBoost):
    """Validates on its own folds: it trains on all training rows, as the forest does."""

    name = "manyboost-folds"
    asked: ClassVar[dict[str, Any]] = {"n_folds": FOLDS}

    def prepare(self) -> None:
        super().prepare()
        import sklearn.model_selection  # noqa: F401  its splitters are loaded on first use

    def train(self, data: Split, watch: Stopwatch) -> None:
        with watch.paused():
            X, Y = data.with_validation()
        self.model.fit(as_dense_if_needed(self.model, X), Y)


class Refitted(Folds):
    """Folds, whose leaves are fitted again to all rows: what the study of folds found best."""

    name = "manyboost-folds-refitted"
    asked: ClassVar[dict[str, Any]] = {"n_folds": FOLDS, "refit_all": True}


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
    for kind in (
        ManyBoost,
        Folds,
        Refitted,
        LightGBM,
        MultiOutputTree,
        OneOutputPerTree,
        CatBoost,
        RandomForest,
    )
}


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
    from benchmarks.defaults_page import document  # which imports this module

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
    parser.add_argument(
        "--elsewhere", action="store_true", help="keep the records made on another machine"
    )
    parser.add_argument("--report", action="store_true", help="write the page, run nothing")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args(arguments)


def make_records(options: argparse.Namespace) -> None:
    """Run what is missing, set by set."""
    results = run.Results(options.results, fresh=options.fresh, elsewhere=options.elsewhere)
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
    if repeat and is_long(results.find({**spec, "repeat": 0})):
        return "not repeated: the first took long enough"
    budget = run.Budget(3 * entry.limit + 120, memory * run.GIGABYTE)
    record = run.run_process(spec, budget)
    results.add(record)
    return run.outcome(record)


def is_long(first: dict[str, Any] | None) -> bool:
    """Whether a first repeat took so long, or ended so badly, that there is no second one."""
    return first is not None and (first["status"] != "ok" or first["fit_seconds"] > LONG_FIT)


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


if __name__ == "__main__":
    main()
