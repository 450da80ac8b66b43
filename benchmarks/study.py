"""The defaults, one change at a time: what a study on training rows says about each of them.

    python -m benchmarks.study                  fits what is missing, and writes the page
    python -m benchmarks.study --sets enb yeast --kinds many
    python -m benchmarks.study --report         writes the page alone

Figures go to `benchmarks/results/study.json`, the page to `docs/study.md`. Needs the data folder.
Test rows of official splits are never read: a third of the training rows is held out to score on.
"""

import argparse
import contextlib
import hashlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import metrics, one_build, workloads
from benchmarks.study_page import page
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import read_npz
from manyboost.training import plan

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "study.json"
PAGE = ROOT / "docs" / "study.md"

ROWS, OUTPUTS = 1_500, 50  # at most, of a set
MORE_ROWS = 6_000  # instead, of sets that have 2,000 at least
FEW_ROWS = 1_000  # sets below have more splits
SPLITS, MORE_SPLITS = 2, 4
UNREADABLE = ("yso-8k",)  # two of its outputs have the same name
# Seconds of a fit with the defaults: sets that take longer are left out, but for MORE_ROWS.
LONG = 20.0
EVEN, RARE = 0.4, 0.07  # shares of positive rows that the labels for one output come nearest to
CLASS_ROWS = 30  # rows of a class, and positive rows of one label, at least
DEFAULT = "default"
LARGER = "many, larger"
HUBER_QUANTILES = (0.9, 0.7, 0.5, 0.3)

# Sets that share rows or features, or come from the same source, are in the same half.
FAMILIES = {
    "atp1d": "atp",
    "atp7d": "atp",
    "oes10": "oes",
    "oes97": "oes",
    "sf1": "sf",
    "sf2": "sf",
    "rcv1sub1": "reuters",
    "reutersk500": "reuters",
    "stackex_chemistry": "stackex",
    "stackex_cs": "stackex",
    "stackex_philosophy": "stackex",
    "yeast-cellcycle-funcat": "yeast genes",
    "yeast-cellcycle-go": "yeast genes",
    "yeast-gasch1-go": "yeast genes",
    "yeast-seq-funcat": "yeast genes",
    "yeast-seq-go": "yeast genes",
}

# ------------------------------------------------------------------ the changes
#
# What is set instead of the default, or a function of the rows trained on that gives it. Names in
# capitals are constants of `training.plan`.

Change = dict[str, Any]
STEPS = ("line_search", "newton")
STOPPED: Change = {"max_iter": 1000, "early_stopping": True}


def of(name: str, *values: Any, **others: Any) -> dict[str, Change]:
    return {f"{name}={value!r}": {name: value, **others} for value in values}


STOPPED_CHANGES: dict[str, Change] = {
    **of("max_iter", 300),
    **of("learning_rate", 0.02, 0.03, 0.1),
    **of("max_leaf_nodes", 8, 15, 63),
    **of("min_samples_leaf", 1, 5, 20),
    **of("max_bins", 31, 63, 127),
    **of("l2_regularization", 0.1, 1, 10),
    **of("n_iter_no_change", 10, 40),
    **of("subsample", 0.5, 0.8),
    **of("max_features", 0.5, "sqrt"),
    **of("early_stopping", "per_output"),
    **of("n_components", 2, 4),
    **of("step", *STEPS),
}
CHANGES: dict[str, dict[str, Change]] = {
    "many": {
        **{name: STOPPED | change for name, change in STOPPED_CHANGES.items()},
    },
    "many, plain": {
        **of("learning_rate", 0.03, 0.1),
        **of("max_iter", 150, 600),
        "learning_rate=0.1, max_iter=150": {"learning_rate": 0.1, "max_iter": 150},
        "learning_rate=0.03, max_iter=500": {"learning_rate": 0.03, "max_iter": 500},
        **of("max_leaf_nodes", 8, 15, 63),
        **of("n_components", 2),
        **of("subsample", 0.5, 0.8),
        **of("max_features", 0.5, "sqrt"),
    },
    "one": {
        **of("min_samples_leaf", 1, 5, 10, 30),
        **of("learning_rate", 0.05, 0.2),
        **of("max_iter", 50, 200),
        "learning_rate=0.05, max_iter=200": {"learning_rate": 0.05, "max_iter": 200},
        **of("max_leaf_nodes", 8, 15, 63),
        **of("max_bins", 31, 63, 127),
        "max_bins=rows/3": {"max_bins": lambda n: min(255, max(2, n // 3))},
        "max_iter=50 below 500 rows": {"max_iter": lambda n: 50 if n < 500 else 100},
        **of("l2_regularization", 0.1, 1, 10),
        **of("subsample", 0.5, 0.8),
        **of("max_features", 0.5, "sqrt"),
        **of("RARE", 0.5),
    },
    "rare": {
        **of("RARE", 0.0),
        **of("min_samples_leaf", 1, 5, 10),
        **of("learning_rate", 0.05),
        **of("max_iter", 50, 200),
        **of("max_leaf_nodes", 15, 63),
        **of("l2_regularization", 0.1, 10),
        **of("max_features", 0.5),
    },
    "classes": {
        **of("min_samples_leaf", 1, 5, 10),
        **of("learning_rate", 0.05, 0.2),
        **of("max_iter", 100, 200, 300, 500),
        **of("max_leaf_nodes", 15, 63),
        **of("l2_regularization", 0.1, 10),
        **of("subsample", 0.5, 0.8),
        **of("n_components", 2, 4),
        **of("max_features", 0.5),
        **of("step", "line_search"),
    },
}
BASES: dict[str, Change] = {kind: STOPPED if kind == "many" else {} for kind in CHANGES}
STOPPED_KINDS: dict[str, dict[str, Change]] = {
    LARGER: {
        **of("max_iter", 300),
        **of("learning_rate", 0.03, 0.1),
        **of("max_leaf_nodes", 15, 63, 127),
        **of("min_samples_leaf", 1, 5, 10),
        **of("n_components", 4, 10),
        **of("l2_regularization", 10),
        **of("max_features", 0.5),
    },
    "one, stopped": of("max_iter", 100, 300),
    "classes, stopped": of("max_iter", 300, 500),
}
for kind, changes in STOPPED_KINDS.items():
    BASES[kind] = STOPPED
    CHANGES[kind] = {name: STOPPED | change for name, change in changes.items()}
LOSSES = {"exponential": True, "absolute_error": False, "huber": False}  # for labels?
for loss in LOSSES:
    BASES[f"many, {loss}"] = {"loss": loss}
    CHANGES[f"many, {loss}"] = {
        name: {"loss": loss} | change for name, change in of("step", *STEPS).items()
    }

# ------------------------------------------------------------------ the tasks


@dataclass(frozen=True)
class Task:
    """Training rows of a set, with all outputs, one of them, or classes."""

    X: Any
    Y: np.ndarray
    task: str
    categorical: tuple[int, ...]

    @property
    def n_splits(self) -> int:
        return MORE_SPLITS if self.X.shape[0] < FEW_ROWS else SPLITS


def names() -> list[str]:
    """All sets of the data folder, the small ones first."""
    files = sorted(workloads.data_folder().glob("*.npz"), key=lambda file: file.stat().st_size)
    return [file.stem for file in files]


def is_labels(name: str) -> bool:
    with np.load(workloads.data_folder() / f"{name}.npz", allow_pickle=False) as z:
        return "Y" not in z or z["Y"].dtype == np.uint8


def halves(sets: list[str]) -> dict[str, str]:
    """Half A or B of each set: in the order of a hash, families go to the smaller half."""
    families: dict[tuple[bool, str], list[str]] = {}
    for name in sets:
        families.setdefault((is_labels(name), FAMILIES.get(name, name)), []).append(name)
    counts = {(task, half): 0 for task in (False, True) for half in "AB"}
    found = {}
    for task, family in sorted(families, key=lambda f: hashlib.sha256(f[1].encode()).digest()):
        half = min("AB", key=lambda half: counts[task, half])
        for name in families[task, family]:
            found[name] = half
            counts[task, half] += 1
    return found


@cache
def whole(name: str, most: int = ROWS) -> Task:
    """At most so many training rows of a set, drawn once, and all its outputs."""
    data = read_npz(workloads.data_folder() / f"{name}.npz")
    n = data.X.shape[0]
    train = np.arange(n) if data.split is None else np.flatnonzero(np.asarray(data.split) == 0)
    rows = np.sort(np.random.default_rng(0).permutation(train)[:most])
    X, Y, categorical = data.X[rows], data.Y[rows], list(data.categorical)
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    if name == "genbase":  # the first feature is an identifier
        X, categorical = X[:, 1:], [feature - 1 for feature in categorical if feature > 0]
    if categorical and sparse.issparse(X):
        X = X.toarray()
    return Task(X, Y, data.task, tuple(categorical))


def shares(Y: np.ndarray) -> np.ndarray:
    return Y.mean(axis=0, dtype=np.float64)


def task_of(kind: str, name: str) -> Task | None:
    """The task of this kind that a set gives; None if it gives none."""
    data = whole(name, MORE_ROWS if kind == LARGER else ROWS)
    if kind == LARGER and data.X.shape[0] < 2_000:
        return None
    X, Y, is_labels = data.X, data.Y, data.task == "multilabel"
    if kind.startswith("many"):
        if LOSSES.get(kind.removeprefix("many, "), is_labels) != is_labels:
            return None
        if is_labels:
            varied = np.minimum(shares(Y), 1 - shares(Y))
            Y = Y[:, np.sort(np.argsort(-varied, kind="stable")[:OUTPUTS])].astype(np.uint8)
        return Task(X, Y, data.task, data.categorical)
    kind = kind.removesuffix(", stopped")
    if kind == "classes":
        return classes(data) if is_labels else None
    if not is_labels:
        middle = Y[:, Y.shape[1] // 2]
        return Task(X, middle, data.task, data.categorical) if kind == "one" else None
    wanted = EVEN if kind == "one" else RARE
    j = int(np.argmin(np.abs(shares(Y) - wanted)))
    is_rare = 0.02 < shares(Y)[j] < plan.RARE
    if Y[:, j].sum() < CLASS_ROWS or (kind == "rare" and not is_rare):
        return None
    return Task(X, Y[:, j], "classes", data.categorical)


def classes(data: Task) -> Task | None:
    """The rows with exactly one label, whose number is their class; rare classes are left out."""
    single = np.flatnonzero((data.Y != 0).sum(axis=1) == 1)
    label = data.Y[single].argmax(axis=1)
    known, counts = np.unique(label, return_counts=True)
    kept = np.isin(label, known[counts >= CLASS_ROWS])
    if np.count_nonzero(counts >= CLASS_ROWS) < 3:
        return None
    return Task(data.X[single[kept]], label[kept], "classes", data.categorical)


# ------------------------------------------------------------------ one fit


@contextlib.contextmanager
def constants(change: Change) -> Iterator[Change]:
    """Set the constants of a change; the parameters are what is left of it."""
    before = {name: getattr(plan, name) for name in change if name.isupper()}
    try:
        for name in before:
            setattr(plan, name, change[name])
        yield {name: value for name, value in change.items() if not name.isupper()}
    finally:
        for name, value in before.items():
            setattr(plan, name, value)


def measured(data: Task, change: Change, split: int) -> dict[str, float]:
    """Fit to two thirds of the rows and score on the others."""
    order = np.random.default_rng(split).permutation(data.X.shape[0])
    train, test = np.split(order, [round(len(order) * 2 / 3)])
    kind = ManyBoostRegressor if data.task == "regression" else ManyBoostClassifier
    change = {k: value(len(train)) if callable(value) else value for k, value in change.items()}
    with constants(change) as parameters:
        model = kind(random_state=split, n_jobs=1, **parameters)
        model.set_params(categorical_features=list(data.categorical) or None)
        began = time.process_time()
        model.fit(data.X[train], data.Y[train])
    found = {"seconds": time.process_time() - began, "rounds": float(model.n_iter_)}
    y = data.Y[test]
    if data.task == "classes":
        p = model.predict_proba(data.X[test])
        right = float(np.mean(model.classes_[p.argmax(axis=1)] == y))
        return found | {"score": explained(data.Y[train], y, p, model.classes_), "accuracy": right}
    raw = getattr(model, "decision_function", model.predict)(data.X[test])
    Y = y.reshape(len(y), -1)
    return found | {"score": metrics.score(data.task, Y, raw.reshape(Y.shape))}


def explained(seen: np.ndarray, y: np.ndarray, p: np.ndarray, known: np.ndarray) -> float:
    """The part of the log loss of constant probabilities that a model removes, as r² does."""
    at = np.searchsorted(known, y).clip(max=len(known) - 1)
    inside = known[at] == y
    constant = np.mean(seen[:, None] == known, axis=0)[at[inside]]
    given = p[np.flatnonzero(inside), at[inside]]
    return float(1 - np.log(np.maximum(given, 1e-15)).mean() / np.log(constant).mean())


# ------------------------------------------------------------------ Huber's δ


def noises(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    def outliers(share: float) -> np.ndarray:
        return 0.3 * rng.normal(size=n) + 20 * rng.normal(size=n) * (rng.random(n) < share)

    return {
        "none": np.zeros(n),
        "5 % outliers": outliers(0.05),
        "20 % outliers": outliers(0.2),
        "exponential": rng.exponential(size=n) - np.log(2),
        "log-normal": np.exp(1.5 * rng.normal(size=n)) - 1,
        "Student's t, 2": rng.standard_t(2, size=n),
    }


def huber_errors() -> dict[str, dict[str, float]]:
    """By noise of median zero and by quantile: the distance to the signal."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (8_000, 8))
    signal = 2 * np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + X[:, 3]
    seen, unseen = slice(0, 4_000), slice(4_000, None)
    found: dict[str, dict[str, float]] = {}
    for noise, values in noises(rng, 4_000).items():
        y = signal[seen] + values
        distance = np.abs(y - np.median(y))
        models = {"squared error": ManyBoostRegressor(random_state=0)}
        for q in HUBER_QUANTILES:
            delta = float(np.quantile(distance, q))
            models[f"{q}"] = ManyBoostRegressor("huber", huber_delta=delta, random_state=0)
        found[noise] = {}
        for name, model in models.items():
            error = model.fit(X[seen], y).predict(X[unseen]) - signal[unseen]
            found[noise][name] = float(np.sqrt(np.mean(error**2)))
    return found


# ------------------------------------------------------------------ the run


def jobs(kinds: list[str], sets: list[str]) -> Iterator[tuple[str, str, int]]:
    """(kind, set, split): all first splits come first, so that an early end leaves a whole."""
    for split in range(MORE_SPLITS):
        for kind in kinds:
            for name in sets:
                yield kind, name, split


def make_records(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Fit what is missing, until the time is over."""
    began = time.monotonic()
    readable = [name for name in names() if name not in UNREADABLE]
    for kind, name, split in jobs(options.kinds, options.sets or readable):
        if time.monotonic() - began > options.limit:
            return
        data = task_of(kind, name)
        if data is None or split >= data.n_splits:
            continue
        of_set = (
            results["kinds"]
            .setdefault(kind, {})
            .setdefault(
                name, {"task": data.task, "rows": round(data.X.shape[0] * 2 / 3), "splits": {}}
            )
        )
        found = of_set["splits"].setdefault(str(split), {})
        first = of_set["splits"].get("0", {}).get(DEFAULT, {"seconds": 0})
        for change, parameters in {DEFAULT: BASES[kind], **CHANGES[kind]}.items():
            wanted = change == DEFAULT or change.startswith(tuple(options.changes))
            is_long = first["seconds"] > LONG and kind != LARGER
            if change in found or not wanted or is_long:
                continue
            found[change] = measured(data, parameters, split)
            first = of_set["splits"]["0"][DEFAULT]
        print(kind, name, split, round(sum(f["seconds"] for f in found.values()), 1), flush=True)
        one_build.save(options.results, results)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study")
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--kinds", nargs="+", choices=CHANGES, default=list(CHANGES))
    parser.add_argument("--changes", nargs="+", default=[""], help="those that begin so")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--report", action="store_true", help="write the page, run nothing")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    begin = one_build.read if options.report else one_build.opened
    results = begin(options.results, kinds={})
    if not options.report:
        warnings.simplefilter("ignore")
        results["halves"] = halves(names())
        make_records(options, results)
        results["huber"] = results.get("huber") or huber_errors()
        one_build.save(options.results, results)
    options.page.write_text(page(results, {kind: list(c) for kind, c in CHANGES.items()}))


if __name__ == "__main__":
    main()
