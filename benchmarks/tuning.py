"""What tuning gains: parameters one at a time, five of them in order, folds, and Optuna's search.

    python -m benchmarks.tuning                   measures what is missing, and writes the tables
    python -m benchmarks.tuning --sets enb yeast
    python -m benchmarks.tuning --jobs 2          two splits at a time
    python -m benchmarks.tuning --page            writes the tables alone

Figures go to `benchmarks/results/tuning.json`, the tables to `docs/guide/tuning.md`, between their
marks. Needs the data folder, and Optuna for its column. Takes about half an hour.

Of the training rows of a set (test rows are never read) half train, a quarter validates, which is
what rounds and values are chosen by, and a quarter is held out to score on. The first splits say
what each parameter gains alone, and so which five are tuned; others say what that gains.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import machine, metrics, one_build, study
from benchmarks.processes import side_by_side
from benchmarks.tables import filled, number, table
from manyboost import ManyBoostClassifier, ManyBoostRegressor

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "tuning.json"
PAGE = ROOT / "docs" / "guide" / "tuning.md"

SETS = ("enb", "oes97", "water-quality", "emotions", "birds", "yeast")
ALONE, ORDERED = (0, 1), (2, 3)  # splits
ROUNDS = 1000
TRIALS = 30

Change = dict[str, Any]
#: The values that are tried, the default first; the five of the page in its order.
FIVE: dict[str, tuple[Any, ...]] = {
    "max_leaf_nodes": (31, 6, 15, 63),
    "l2_regularization": ("auto", 1.0, 10.0),
    "min_samples_leaf": ("auto", 1, 5, 20),
    "max_features": (1.0, 0.5, "sqrt"),
    "learning_rate": ("auto", 0.1, 0.02),
}
OTHERS: dict[str, tuple[Any, ...]] = {
    "strategy": ("relabel", "project", "multioutput", "independent"),
    "n_components": (1, 2, 4),
    "subsample": (1.0, 0.8, 0.5),
}
VALUES = FIVE | OTHERS


def key_of(change: Change) -> str:
    """A name for a set of parameters, which does not depend on those that have their default."""
    return json.dumps({k: v for k, v in change.items() if v != VALUES[k][0]}, sort_keys=True)


class Split:
    """Rows of a set that train, validate and are held out; what was found is kept by its key."""

    def __init__(self, name: str, seed: int, found: dict[str, dict[str, float]]) -> None:
        data = study.task_of("many", name)
        order = np.random.default_rng(seed).permutation(data.X.shape[0])
        parts = np.split(order, [len(order) // 2, 3 * len(order) // 4])
        X = data.X.tocsr() if sparse.issparse(data.X) else data.X
        self.train, self.val, self.held = [(X[rows], data.Y[rows]) for rows in parts]
        self.both = (X[np.r_[parts[0], parts[1]]], data.Y[np.r_[parts[0], parts[1]]])
        self.task, self.categorical = data.task, list(data.categorical) or None
        self.seed, self.found = seed, found

    def model(self, change: Change) -> Any:
        kind = ManyBoostRegressor if self.task == "regression" else ManyBoostClassifier
        common = {"random_state": self.seed, "n_jobs": 1, "categorical_features": self.categorical}
        return kind(**{"max_iter": ROUNDS, **common, **change})

    def score(self, model: Any, rows: tuple[Any, np.ndarray]) -> float:
        raw = getattr(model, "decision_function", model.predict)(rows[0])
        return metrics.score(self.task, rows[1], raw.reshape(rows[1].shape))

    def measure(self, key: str, model: Any, *rows: Any, **validation: Any) -> dict[str, float]:
        began = time.process_time()
        model.fit(*rows, **validation)
        self.found[key] = {
            "seconds": time.process_time() - began,
            "rounds": float(model.n_iter_),
            "validation": self.score(model, self.val),
            "held out": self.score(model, self.held),
        }
        return self.found[key]

    def stopped(self, change: Change) -> dict[str, float]:
        """A fit with these parameters, stopped by the validation rows."""
        key = key_of(change)
        if key not in self.found:
            X_val, Y_val = self.val
            self.measure(key, self.model(change), *self.train, X_val=X_val, Y_val=Y_val)
        return self.found[key]

    def folded(self, change: Change) -> dict[str, float]:
        """Five folds of the training and validation rows, scored out of fold."""
        key = f"folds {key_of(change)}"
        if key not in self.found:
            model = self.model({**change, "n_folds": 5})
            found = self.measure(key, model, *self.both)
            of_labels = hasattr(model, "decision_function")
            raw = model.oof_decision_function_ if of_labels else model.oof_prediction_
            found["validation"] = metrics.score(self.task, self.both[1], raw)
        return self.found[key]


Fit = Callable[[Change], dict[str, float]]


def best_of(fit: Fit, name: str, others: Change) -> Change:
    """The parameters with the value of this one that is best on the validation rows."""
    tried = [{**others, name: value} for value in VALUES[name]]
    return max(tried, key=lambda change: fit(change)["validation"])


def in_order(fit: Fit) -> list[Change]:
    """What has been chosen after each of the five parameters."""
    chosen: Change = {}
    return [chosen := best_of(fit, name, chosen) for name in FIVE]


def search(split: Split) -> None:
    """Optuna's search over the five parameters; trials that fall behind are pruned."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X_val, Y_val = split.val
    best: dict[str, Any] = {"validation": -np.inf}
    rounds = 0

    def objective(trial: Any) -> float:
        def watch(state: Any) -> None:
            nonlocal rounds
            rounds += 1
            trial.report(state.validation_score, state.round)
            if trial.should_prune():
                raise optuna.TrialPruned

        change = {name: trial.suggest_categorical(name, values) for name, values in FIVE.items()}
        model = split.model({**change, "callbacks": [watch]})
        model.fit(*split.train, X_val=X_val, Y_val=Y_val)
        value = split.score(model, split.val)
        if value > best["validation"]:
            best.update({"validation": value, "held out": split.score(model, split.held)})
        return value

    study_of_trials = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=split.seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=8, n_warmup_steps=20),
    )
    began = time.process_time()
    study_of_trials.optimize(objective, n_trials=TRIALS)
    pruned = sum(trial.state.name == "PRUNED" for trial in study_of_trials.trials)
    seconds = time.process_time() - began
    split.found["optuna"] = {**best, "pruned": pruned, "rounds": rounds, "seconds": seconds}


def measure_alone(split: Split) -> None:
    for parameter in VALUES:
        best_of(split.stopped, parameter, {})


def measure_ordered(split: Split) -> None:
    if "as it is" not in split.found:
        split.measure("as it is", split.model({"max_iter": "auto"}), *split.train)
    in_order(split.stopped)
    in_order(split.folded)
    if "optuna" not in split.found:
        search(split)


def measured(name: str, seed: int, found: dict[str, dict[str, float]]) -> dict[str, Any]:
    """What has been found on a split, with what was missing."""
    warnings.simplefilter("ignore")
    split = Split(name, seed, found)
    (measure_alone if seed in ALONE else measure_ordered)(split)
    return split.found


# ------------------------------------------------------------------ the tables


class Stored(Split):
    """A split of which everything has been measured."""

    def __init__(self, found: dict[str, dict[str, float]]) -> None:
        self.found = found


def splits(results: dict[str, Any], seeds: tuple[int, ...]) -> dict[str, list[Stored]]:
    """The splits with these seeds, of the sets that have been measured on all of them."""
    return {
        name: [Stored(runs[str(seed)]) for seed in seeds]
        for name, runs in results["sets"].items()
        if all(str(seed) in runs for seed in seeds)
    }


def mean(values: Any) -> float:
    return float(np.mean(list(values)))


def alone_table(sets: dict[str, list[Stored]]) -> str:
    """What each parameter gains alone."""
    rows = []
    for name, values in VALUES.items():
        gains = []
        for runs in sets.values():
            best = [split.stopped(best_of(split.stopped, name, {})) for split in runs]
            base = [split.stopped({}) for split in runs]
            gains.append(mean(x["held out"] for x in best) - mean(x["held out"] for x in base))
        error = np.std(gains, ddof=1) / len(gains) ** 0.5
        signs = f"{sum(g > 0 for g in gains)} : {sum(g < 0 for g in gains)}"
        tried = ", ".join(map(repr, values))
        rows.append((f"`{name}`", tried, f"{np.mean(gains):+.4f} ± {error:.4f}", signs))
    rows.sort(key=lambda row: -float(row[2].split()[0]))
    return table(("parameter", "tried, the default first", "gain", "better : worse"), rows, 2, 4)


def order_table(sets: dict[str, list[Stored]]) -> str:
    """The held-out score of every set after each step; the mean gain over the defaults below."""
    head = ["set", "nothing", "early stopping", "1", *(f"1–{n}" for n in range(2, len(FIVE) + 1))]
    head += [f"Optuna, {TRIALS} trials", "`n_folds=5`", "five by folds"]
    scores = {}
    for name, runs in sets.items():
        columns = []
        for split in runs:
            stages = [{}, *in_order(split.stopped)]
            found = [split.found["as it is"], *map(split.stopped, stages), split.found["optuna"]]
            found += [split.folded({}), split.folded(in_order(split.folded)[-1])]
            columns.append([each["held out"] for each in found])
        scores[name] = np.mean(columns, axis=0)
    rows = [[name, *(f"{score:.4f}" for score in found)] for name, found in scores.items()]
    gains = np.mean([found - found[0] for found in scores.values()], axis=0)
    rows.append(["mean gain", "", *(f"**{gain:+.4f}**" for gain in gains[1:])])
    return table(head, rows, 1, len(head))


def costs(sets: dict[str, list[Stored]]) -> str:
    """How many fits the five in order take, and Optuna's search, and their rounds."""
    fits = 1 + sum(len(values) - 1 for values in FIVE.values())
    rounds, of_search, pruned = [], [], []
    for split in (split for runs in sets.values() for split in runs):
        fitted = {key: each for key, each in split.found.items() if key.startswith("{")}
        rounds.append(sum(each["rounds"] for each in fitted.values()))
        of_search.append(split.found["optuna"]["rounds"])
        pruned.append(split.found["optuna"]["pruned"] / TRIALS)
    return (
        f"The five in order take {fits} fits ({number(mean(rounds))} rounds kept, on average), "
        f"Optuna's search {TRIALS}; {100 * mean(pruned):.0f} % of these were pruned "
        f"({number(mean(of_search))} rounds)."
    )


def sections(results: dict[str, Any]) -> dict[str, str]:
    alone, ordered = (splits(results, seeds) for seeds in (ALONE, ORDERED))
    libraries = machine.versions(results["machine"], ["optuna"])
    how = (
        f"Macro r² or LRAP on held-out rows, means over {len(ALONE)} splits of each of "
        f"{len(alone)} real sets, with the standard error over the sets. `python -m "
        f"benchmarks.tuning` repeats the measurement ({libraries})."
    )
    return {
        "alone": f"{alone_table(alone)}\n\n{how}",
        "order": f"{order_table(ordered)}\n\n{costs(ordered)}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="splits at a time")
    options = parser.parse_args()
    begin = one_build.read if options.page else partial(one_build.opened, also=("optuna",))
    results = begin(RESULTS, sets={})
    keys = [(name, seed) for name in options.sets for seed in (*ALONE, *ORDERED)]
    known = {key: results["sets"].get(key[0], {}).get(str(key[1]), {}) for key in keys}
    parts = {key: (*key, found) for key, found in known.items()} if not options.page else {}
    for (name, seed), found in side_by_side(options.jobs, measured, parts):
        results["sets"].setdefault(name, {})[str(seed)] = found
        one_build.save(RESULTS, results)
        print(name, seed, "is complete", flush=True)
    PAGE.write_text(filled(PAGE.read_text(), sections(results)))


if __name__ == "__main__":
    main()
