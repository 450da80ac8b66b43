"""Data as people have it: what sparse features and labels, imbalance and categories cost and bring.

    python -m benchmarks.data                  measures what is missing, and writes the page
    python -m benchmarks.data 'sparse-Y-*'     measures these anew
    python -m benchmarks.data --page           writes the page alone

Figures go to `benchmarks/results/data.json`, the page to `docs/data-figures.md`. Each measurement
runs in a process of its own. Needs the data folder; run it with the interpreter of `.venv-bench`
for xgboost's figures. Takes about half an hour.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import label_ranking_average_precision_score, r2_score, recall_score
from sklearn.model_selection import KFold

from benchmarks import machine, one_build, workloads
from benchmarks.contestants import CONTESTANTS, Settings, Stopwatch
from benchmarks.contestants.base import pickled_bytes
from benchmarks.measure import PeakMemory
from benchmarks.run import Budget, OthersLoad, busy_meanwhile, end, watch
from benchmarks.tables import table
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import Dataset, load_dataset

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "data.json"
PAGE = ROOT / "docs" / "data-figures.md"
MEGABYTE, GIGABYTE = 10**6, 10**9
XGBOOST_LIMIT = 300.0  # seconds of fitting
BUDGET = Budget(seconds=1800, memory=14 * GIGABYTE)
SHORT_FITS = 60.0  # seconds: fits are repeated up to this, and up to five times
GENERATED = (50_000, 200, 5000)  # rows, features, labels
DENSITY = 0.001
ROUNDS = 100
FIXED = {"max_iter": ROUNDS, "early_stopping": False, "random_state": 0}
SETS_WITH_CATEGORIES = ("flags", "sf1", "sf2", "yeast-seq-funcat")

Record = dict[str, Any]


def load(name: str) -> Dataset:
    return load_dataset(name, workloads.data_folder())


def dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sparse.issparse(values) else values)


def measured_fit(model: Any, X: Any, Y: Any) -> Record:
    """Seconds (medians of some fits), and peak memory above the data (of the first).

    Seconds of all CPUs tell more than those of the clock where other processes are at work.
    """
    type(model)(max_iter=2).fit(X[:20], dense(Y[:20, :2]) * 0 + np.eye(20, 2, dtype=int))
    memory = PeakMemory()
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    peak = None
    while not seconds or (sum(seconds) + seconds[-1] < SHORT_FITS and len(seconds) < 5):
        began, cpu_began = time.perf_counter(), time.process_time()
        model.fit(X, Y)
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(time.process_time() - cpu_began)
        peak = memory.above_start() if peak is None else peak
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        "outputs": Y.shape[1],
        "rounds": int(model.n_iter_),
        "seconds": statistics.median(seconds),
        "cpu_seconds": statistics.median(cpu_seconds),
        "fits": len(seconds),
        "peak_bytes": peak,
        "model_bytes": pickled_bytes(model),
        "model_sha256": hashlib.sha256(model._progress.model.trees.to_bytes()).hexdigest(),
    }


# ------------------------------------------------------------------ what is measured


def sparse_features(*, as_dense: bool) -> Record:
    """Rounds of relabel on rcv1sub1, as it is or as a dense array."""
    data = load("rcv1sub1")
    X = sparse.csr_matrix(data.X, dtype=np.float32)
    X, Y = X.toarray() if as_dense else X, dense(data.Y)
    del data
    return measured_fit(ManyBoostClassifier(strategy="relabel", **FIXED), X, Y)


def sparse_features_xgboost(contestant: str) -> Record:
    """The same by xgboost, up to its time limit."""
    data = load("rcv1sub1")
    X, Y = sparse.csr_matrix(data.X, dtype=np.float32), dense(data.Y)
    other = CONTESTANTS[contestant]()
    other.prepare()
    memory, clock, cpu_began = PeakMemory(), Stopwatch(XGBOOST_LIMIT), time.process_time()
    other.fit(workloads.Data(X, Y, X[:1], Y[:1], "multilabel"), Settings(), clock)
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        "outputs": Y.shape[1],
        "rounds": other.rounds_done,
        "seconds": clock.elapsed,
        "cpu_seconds": time.process_time() - cpu_began,
        "limit": XGBOOST_LIMIT,
        "peak_bytes": memory.above_start(),
        "model_bytes": other.model_bytes(),
        "library": machine.library("xgboost"),
    }


def sparse_labels(name: str, strategy: str, n_rounds: int) -> Record:
    """Rounds on a set with sparse labels."""
    if name == "generated":
        n, p, d = GENERATED
        rng = np.random.default_rng(0)
        X = rng.random((n, p), dtype=np.float32)
        Y = sparse.random(n, d, DENSITY, format="csr", dtype=np.uint8, random_state=0)
        Y.data[:] = 1
    else:
        data = load(name)
        X, Y = np.asarray(dense(data.X), np.float32), sparse.csr_matrix(data.Y)
        del data
    parameters = FIXED | {"strategy": strategy, "max_iter": n_rounds}
    record = measured_fit(ManyBoostClassifier(**parameters), X, Y)
    bar = 2.5 * 4 * X.shape[0] * Y.shape[1] + record["model_bytes"] + 100 * MEGABYTE
    return record | {"bar_bytes": bar}


def imbalance() -> Record:
    """Macro-averaged recall on the test rows of mediamill, without and with class weights."""
    data = load("mediamill")
    X, Y, train = dense(data.X), dense(data.Y), data.split == 0
    found: Record = {}
    for class_weight in (None, "balanced"):
        model = ManyBoostClassifier(class_weight=class_weight, **FIXED)
        proba = model.fit(X[train], Y[train]).predict_proba(X[~train])
        some = Y[~train].any(axis=1)
        found[str(class_weight)] = {
            "macro_recall": recall_score(
                Y[~train], model.predict(X[~train]), average="macro", zero_division=0
            ),
            "lrap": label_ranking_average_precision_score(Y[~train][some], proba[some]),
            "finite": bool(np.isfinite(proba).all()),
        }
    return found


def single_positives() -> Record:
    """Mediamill, every second label of which keeps a single positive row."""
    data = load("mediamill")
    train = data.split == 0
    X, Y = dense(data.X)[train], dense(data.Y)[train].copy()
    rare = np.arange(0, Y.shape[1], 2)
    kept = Y[:, rare].argmax(axis=0)
    Y[:, rare] = 0
    Y[kept, rare] = 1
    found: Record = {"labels": len(rare)}
    for class_weight in (None, "balanced"):
        for strategy in ("project", "relabel"):
            model = ManyBoostClassifier(strategy=strategy, class_weight=class_weight, **FIXED)
            raw = model.fit(X, Y).decision_function(X)
            above = (raw[:, rare] > raw[kept, rare]).mean(axis=0)
            found[f"{strategy} {class_weight}"] = {
                "finite": bool(np.isfinite(raw).all()),
                # Share of the rows that the one positive row is ranked above.
                "median_share_below": 1 - float(np.median(above)),
            }
    return found


def one_hot(X: np.ndarray, categories: Any) -> np.ndarray:
    """X with a 0/1 column for each category instead of the codes; missing: all zero."""
    columns = [
        X[:, [j]] == np.arange(len(categories[j])) if j in categories else X[:, [j]]
        for j in range(X.shape[1])
    ]
    return np.hstack(columns).astype(np.float32)


def categories(name: str) -> Record:
    """Test scores with categories and with one-hot columns, on the same folds."""
    data = load(name)
    X, Y = dense(data.X), dense(data.Y)
    labels = data.task == "multilabel"
    estimator = ManyBoostClassifier if labels else ManyBoostRegressor
    folds = [f for seed in range(5) for f in KFold(5, shuffle=True, random_state=seed).split(X)]
    if data.split is not None:
        folds = [(np.flatnonzero(data.split == 0), np.flatnonzero(data.split == 1))] * 5

    def score(seed: int, features: np.ndarray, categorical: Any, train: Any, test: Any) -> float:
        model = estimator(random_state=seed, categorical_features=categorical)
        model.fit(features[train], Y[train])
        if not labels:
            return float(r2_score(Y[test], model.predict(features[test])))
        some = Y[test].any(axis=1)
        ranked = model.decision_function(features[test])[some]
        return float(label_ranking_average_precision_score(Y[test][some], ranked))

    found: Record = {"score": "LRAP" if labels else "macro r²", "folds": len(folds)}
    forms = {
        "categories": (X, list(data.categories)),
        "one_hot": (one_hot(X, data.categories), None),
    }
    for form, (features, categorical) in forms.items():
        found[form] = [score(k, features, categorical, *fold) for k, fold in enumerate(folds)]
    return found


MEASUREMENTS: dict[str, Callable[[], Record]] = {
    "sparse-X": partial(sparse_features, as_dense=False),
    "sparse-X-dense-copy": partial(sparse_features, as_dense=True),
    **{
        f"sparse-X-{name}": partial(sparse_features_xgboost, name)
        for name in ("xgboost-multi-output-tree", "xgboost-one-output-per-tree")
    },
    **{
        f"sparse-Y-{name}-{strategy}": partial(sparse_labels, name, strategy, n_rounds)
        for name, n_rounds in (("yeast-seq-go", ROUNDS), ("generated", 20))
        for strategy in ("project", "relabel")
    },
    "imbalance": imbalance,
    "single-positives": single_positives,
    **{f"categories-{name}": partial(categories, name) for name in SETS_WITH_CATEGORIES},
}


# ------------------------------------------------------------------ running


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.data", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="measurements to make anew, with * and ?")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        options.into.write_text(json.dumps(MEASUREMENTS[options.one]()))
        return
    begin = one_build.read if options.page else partial(one_build.opened, timed=True)
    stored = begin(RESULTS, records={})
    records = stored["records"]
    for name in [] if options.page else MEASUREMENTS:
        asked = any(fnmatch(name, pattern) for pattern in options.names)
        if asked or (not options.names and name not in records):
            print(name, end=" ", flush=True)
            records[name] = run(name)
            print(records[name]["status"], flush=True)
            stored["records"] = {each: records[each] for each in MEASUREMENTS if each in records}
            one_build.save(RESULTS, stored)
    PAGE.write_text(page(stored))
    print(PAGE)


def run(name: str) -> Record:
    """The record of a process of its own; one that fails or uses too much has a record too."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record"
        command = [sys.executable, "-m", "benchmarks.data", "--one", name, "--into", str(file)]
        began, others = time.monotonic(), OthersLoad()
        process = subprocess.Popen(
            command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        budget = Budget(2 * XGBOOST_LIMIT, BUDGET.memory) if "xgboost" in name else BUDGET
        try:
            status = watch(process, budget)
        finally:
            end(process)
        load = {"others_cores": others.cores()}
        if status == "ok" and file.is_file():
            return {"status": "ok", **json.loads(file.read_text()), **load}
        errors = process.stderr.read() if process.stderr else ""
        status = "failed" if status == "ok" else status
        seconds = round(time.monotonic() - began)
        return {"status": status, "after_seconds": seconds, "error": errors[-300:], **load}


# ------------------------------------------------------------------ the page

HOW = """\
Each measurement runs in its own process; peak memory is what fitting adds to the loaded data."""

ABOUT_Y = f"""\
Raw predictions and residuals take 4 bytes a cell each, labels 1. Limit: the size of 2.5 arrays of
rows × labels in single precision, of the model, and 100 MB. Density of the generated labels:
{DENSITY:.1%}."""

ABOUT_CATEGORIES = """\
Test scores of default models with `categorical_features` and with one-hot columns instead, on the
same folds (five times five; five seeds where there is an official split). The difference comes with
its standard error."""


def page(stored: dict[str, Any]) -> str:
    facts, records = stored["machine"], stored["records"]
    versions = ", ".join(facts["libraries"])
    parts = [
        "# Figures about data",
        "Generated from `benchmarks/results/data.json` by `python -m benchmarks.data`.",
        f"{facts['cpu']}, {facts['cores']} cores. {versions}.",
        HOW,
        busy_meanwhile(records.values()),
        *(section(records) for section in (about_X, about_Y, about_imbalance, about_categories)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def megabytes(record: Record, field: str) -> str:
    value = record.get(field)
    return "–" if value is None else f"{value / MEGABYTE:,.0f}"


def about_X(records: dict[str, Record]) -> str:
    rows = []
    for name in (name for name in MEASUREMENTS if name.startswith("sparse-X")):
        record = records.get(name, {"status": "not measured"})
        title = name.removeprefix("sparse-X").strip("-") or "**manyboost, sparse**"
        title = title.replace("dense-copy", "manyboost, dense copy")
        if record["status"] == "ok":
            rounds, seconds = record["rounds"], f"{record['seconds']:.1f}"
            if "limit" in record and rounds < ROUNDS:
                seconds += f", stopped at the limit of {record['limit']:.0f}"
            cpu = f"{record['cpu_seconds']:.1f}"
            cells = [f"{rounds}", seconds, cpu, megabytes(record, "peak_bytes")]
        else:
            after = f" after {record['after_seconds']} s" if "after_seconds" in record else ""
            cells = ["–", record["status"] + after, "–", "–"]
        rows.append([title, *cells])
    text = [
        "## Sparse features",
        f"rcv1sub1, 6000 rows × 47,236 features × 101 labels. {ROUNDS} rounds of `relabel`.",
        table(["", "rounds", "fit, s", "of all CPUs, s", "peak, MB"], rows, 1, 5),
    ]
    ours, copy = records.get("sparse-X", {}), records.get("sparse-X-dense-copy", {})
    if ours.get("status") == copy.get("status") == "ok":
        same = "the same" if ours["model_sha256"] == copy["model_sha256"] else "ANOTHER"
        peak = verdict(ours["peak_bytes"], 400 * MEGABYTE)
        ratio, cpu = (copy[field] / ours[field] for field in ("seconds", "cpu_seconds"))
        text.append(
            f"The dense copy takes {ratio:.1f} times as long ({cpu:.1f} times in CPU time) and "
            f"gives {same} model, byte for byte. Columns of a dense array that hold mostly one "
            "value are compressed too, so the copy costs little more than reading it. Peak memory "
            f"of the sparse fit: {peak}."
        )
    return "\n\n".join(text)


def verdict(peak: float, limit: float) -> str:
    word = "below" if peak < limit else "ABOVE"
    return f"{peak / MEGABYTE:,.0f} MB, {word} the limit of {limit / MEGABYTE:,.0f} MB"


def about_Y(records: dict[str, Record]) -> str:
    rows = []
    for name, record in records.items():
        if not name.startswith("sparse-Y") or record["status"] != "ok":
            continue
        cells = record["rows"] * record["outputs"]
        shape = f"{record['rows']:,} × {record['features']:,} × {record['outputs']:,}"
        limit = megabytes(record, "bar_bytes")
        limit = limit if record["peak_bytes"] < record["bar_bytes"] else f"{limit} (NOT MET)"
        rows.append(
            [
                name.removeprefix("sparse-Y-"),
                shape,
                f"{record['rounds']}",
                f"{record['seconds']:.1f}",
                megabytes(record, "peak_bytes"),
                limit,
                f"{record['peak_bytes'] / cells:.1f}",
            ]
        )
    head = [
        "",
        "rows × features × labels",
        "rounds",
        "fit, s",
        "peak, MB",
        "limit, MB",
        "bytes a cell",
    ]
    return "\n\n".join(
        [
            "## Sparse labels",
            ABOUT_Y,
            table(head, rows, 2, 7),
        ]
    )


def about_imbalance(records: dict[str, Record]) -> str:
    text = ["## Imbalance"]
    found = records.get("imbalance", {})
    if found.get("status") == "ok":
        rows = [
            [f"`{weight}`", f"{r['macro_recall']:.3f}", f"{r['lrap']:.3f}", yes(r["finite"])]
            for weight, r in ((w, found[w]) for w in ("None", "balanced"))
        ]
        head = ["`class_weight`", "macro recall", "LRAP", "all finite"]
        text += [f"Test rows of mediamill (101 labels), {ROUNDS} rounds.", table(head, rows, 1, 3)]
    found = records.get("single-positives", {})
    if found.get("status") == "ok":
        rows = [
            [f"`{strategy}`", f"`{w}`", f"{r['median_share_below']:.1%}", yes(r["finite"])]
            for strategy in ("project", "relabel")
            for w in ("None", "balanced")
            for r in [found[f"{strategy} {w}"]]
        ]
        head = ["`strategy`", "`class_weight`", "rows ranked below it (median)", "all finite"]
        text += [
            f"Training rows of mediamill; {found['labels']} of the labels keep one positive row.",
            table(head, rows, 2, 3),
        ]
    return "\n\n".join(text)


def yes(fact: bool) -> str:
    return "yes" if fact else "NO"


def about_categories(records: dict[str, Record]) -> str:
    rows = []
    for name in SETS_WITH_CATEGORIES:
        found = records.get(f"categories-{name}", {})
        if found.get("status") != "ok":
            continue
        ours, others = np.array(found["categories"]), np.array(found["one_hot"])
        error = (ours - others).std(ddof=1) / np.sqrt(len(ours))
        rows.append(
            [
                name,
                found["score"],
                f"{ours.mean():.4f}",
                f"{others.mean():.4f}",
                f"{(ours - others).mean():+.4f} ± {error:.4f}",
            ]
        )
    return "\n\n".join(
        [
            "## Categories",
            ABOUT_CATEGORIES,
            table(["", "score", "categories", "one-hot", "difference"], rows, 2, 5),
        ]
    )


if __name__ == "__main__":
    main()
