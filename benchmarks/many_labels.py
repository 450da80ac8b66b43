"""Very many outputs: a library catalogue beside linear label trees, a million generated labels,
sets with published figures, and dense regression.

    python -m benchmarks.many_labels                  what is missing, then the page
    python -m benchmarks.many_labels --again yso      some parts anew: yso, growth, million,
                                                      published, dense
    python -m benchmarks.many_labels --timed          with times, on an idle machine
    python -m benchmarks.many_labels --omikuji PYTHON the peer, in another environment
    python -m benchmarks.many_labels --report         the page alone

Figures go to `benchmarks/results/many_labels.json`, tables to `docs/guide/very-many-labels.md`.
Every fit is a process of its own: its memory is what it takes at most beyond the data. The
catalogue needs the data folder; the other parts are generated.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import machine, one_build, workloads
from benchmarks.measure import PeakMemory
from benchmarks.tables import filled, number, table
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import make_many_labels
from manyboost.metrics import precision_at_k

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "many_labels.json"
PAGE = ROOT / "docs" / "guide" / "very-many-labels.md"

Record = dict[str, Any]
COMMON = {"loss": "squared_error", "early_stopping": False, "random_state": 0}
#: On the library catalogue: leaves of a few labels, and the engine with all labels in all leaves.
TUNED: Record = {
    "max_leaf_nodes": 2000,
    "min_samples_leaf": 3,
    "max_leaf_outputs": 50,
    "n_components": 10,
    "max_bins": 2,
    "learning_rate": 0.2,
    "l2_regularization": 15.0,
}
YSO: dict[str, Record] = {
    "50 labels in a leaf, 60 rounds": {**TUNED, "max_iter": 60},
    "50 labels in a leaf, 150 rounds": {**TUNED, "max_iter": 150},
    "the same with the log loss, 60 rounds": {
        **TUNED,
        "loss": "log_loss",
        "learning_rate": 0.1,
        "l2_regularization": 1.0,
        "max_iter": 60,
    },
    "one value in a leaf (project), 200 rounds": {
        "strategy": "project",
        "max_leaf_nodes": 512,
        "max_iter": 200,
    },
    "all labels in a leaf, 60 rounds of 512 leaves": {"max_leaf_nodes": 512, "max_iter": 60},
}
#: Of a round, over the number of labels; and a million labels.
GROWTH = (10_000, 100_000, 1_000_000)
MILLION: dict[str, Record] = {
    "project": {"strategy": "project", "max_iter": 200, "learning_rate": 0.3},
    "relabel": {
        "max_iter": 30,
        "max_leaf_nodes": 256,
        "max_leaf_outputs": 50,
        "n_components": 10,
        "max_bins": 2,
        "learning_rate": 0.3,
    },
}
#: Of a tree, unless said otherwise.
LEAVES = ManyBoostClassifier().max_leaf_nodes
PARTS = ("yso", "growth", "million", "published", "dense")
#: Sets of the extreme classification repository, and what it lists for them: P@1, P@3, P@5.
PUBLISHED: dict[str, dict[str, tuple[float, float, float]]] = {
    "bibtex": {"FastXML": (63.42, 39.23, 28.86), "Parabel": (64.53, 38.56, 27.94)},
    "delicious": {"FastXML": (69.61, 64.12, 59.27), "Parabel": (67.44, 61.83, 56.75)},
    "mediamill": {"FastXML": (84.22, 67.33, 53.04)},
}
#: Rows for training and testing, and labels, of the published figures.
SHAPES = {
    "bibtex": (4880, 2515, 159),
    "delicious": (12920, 3185, 983),
    "mediamill": (30993, 12914, 101),
}
WAYS: dict[str, Record] = {
    "default, early stopping": {"early_stopping": True, "max_iter": 1000},
    "five folds, refitted": {"n_folds": 5, "refit_all": True, "max_iter": 1000},
    # Better than the defaults on a fifth of the training rows, of each of the three sets.
    "the same with larger trees": {
        "n_folds": 5,
        "refit_all": True,
        "max_iter": 1000,
        "max_leaf_nodes": 127,
        "min_samples_leaf": 5,
        "n_components": 10,
    },
}
#: Dense regression: rows for training, features, outputs.
DENSE = (2000, 500, 50_000)
DENSE_TEST, FOREST_OUTPUTS = 500, 200
#: Of ours, parameters by name: the last two take about the same time.
DENSE_OURS: dict[str, Record] = {
    "manyboost, 100 rounds": {"max_iter": 100, "learning_rate": 0.2},
    "manyboost, 100 rounds of 10 components": {
        "max_iter": 100,
        "learning_rate": 0.1,
        "n_components": 10,
    },
    "manyboost, 400 rounds": {"max_iter": 400, "learning_rate": 0.05},
}
DENSE_MODELS = (*DENSE_OURS, "ridge", f"random forest, {FOREST_OUTPUTS} of the outputs")
#: What is not kept unless the machine does nothing else.
SPEED = ("seconds", "cpu_seconds", "row_milliseconds", "rounds_per_second")
ROWS, FEATURES, TEST_ROWS, HEAD = 200_000, 1000, 2000, 1000


def generated(n_labels: int) -> tuple[Any, Any, Any]:
    """Rows with planted labels, and the best label that the plan itself knows of each row."""
    return make_many_labels(
        n_rows=ROWS, n_features=FEATURES, n_labels=n_labels, random_state=0, return_best=True
    )


def catalogue() -> tuple[Any, Any, np.ndarray]:
    # By its arrays: names of subjects come twice, which readers refuse.
    file = np.load(workloads.data_folder() / "yso-8k.npz", allow_pickle=False)
    values = file["X_data"].astype(np.float32), np.ones(len(file["Y_indices"]), np.uint8)
    X, Y = (
        sparse.csr_matrix(
            (data, file[f"{name}_indices"], file[f"{name}_indptr"]), shape=file[f"{name}_shape"]
        )
        for name, data in zip("XY", values, strict=True)
    )
    return X, Y, file["split"] == 0


# ---------------------------------------------------------------------- one fit, in a process


def fit(part: str, name: str) -> Record:
    """Fit one model, and measure it."""
    if part == "published":
        return fit_published(*name.split(": "))
    if part == "dense":
        return fit_dense(name)
    if part == "yso":
        X, Y, train = catalogue()
        parameters = YSO[name]
    else:
        n_labels = int(name) if part == "growth" else max(GROWTH)
        X, Y, best = generated(n_labels)
        train = np.arange(X.shape[0]) < X.shape[0] - TEST_ROWS
        parameters = MILLION[name] if part == "million" else {}
    data = X[train], Y[train], X[~train], Y[~train]
    if part == "growth":
        return {kind: round_seconds(*data[:2], MILLION[kind]) for kind in MILLION}
    memory = PeakMemory()
    began, began_cpu = time.perf_counter(), time.process_time()
    model = ManyBoostClassifier(**{**COMMON, **parameters}).fit(*data[:2])
    record: Record = {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - began_cpu,
        "megabytes": (memory.above_start() or 0) / 1e6,
        "model_bytes": model.info()["n_bytes"],
    }
    n_scored = data[2].shape[0] if part == "yso" or name != "project" else 300
    began = time.perf_counter()
    ranked, _ = model.predict_top_k(data[2][:n_scored], 5)
    record["row_milliseconds"] = 1000 * (time.perf_counter() - began) / n_scored
    truth = data[3][:n_scored]
    record |= scores(truth, ranked)
    if part == "million":
        record |= by_frequency(data[1], truth, ranked)
        oracle = best[~train][:n_scored]
        record["oracle"] = precision_at_k(truth, oracle[:, None].astype(np.int64), 1)
    return record


def fit_published(name: str, way: str) -> Record:
    """Fit a set of the repository by its own split."""
    data = workloads.read(workloads.data_folder() / f"{name}.npz", "multilabel", dense=False)
    shape = (data.X.shape[0], data.X_test.shape[0], data.n_outputs)
    if shape != SHAPES[name]:
        raise ValueError(f"{name} has rows and labels {shape}, but {SHAPES[name]} were published")
    began = time.perf_counter()
    model = ManyBoostClassifier(random_state=0, **WAYS[way]).fit(data.X, data.Y)
    seconds = time.perf_counter() - began
    ranked, _ = model.predict_top_k(data.X_test, 5)
    return {"seconds": seconds, "rounds": model.n_iter_, **scores(data.Y_test, ranked)}


def dense_data() -> tuple[np.ndarray, np.ndarray]:
    """Outputs that are mixtures of 20 functions of four features each, and as much noise."""
    rng = np.random.default_rng(0)
    n_rows, n_features, n_outputs = DENSE
    X = rng.normal(size=(n_rows + DENSE_TEST, n_features)).astype(np.float32)
    factors = np.stack(
        [np.sin(X[:, k]) + X[:, k + 1] * X[:, k + 2] + abs(X[:, k + 3]) for k in range(0, 80, 4)], 1
    )
    factors = ((factors - factors.mean(axis=0)) / factors.std(axis=0)).astype(np.float32)
    Y = factors @ rng.normal(size=(20, n_outputs)).astype(np.float32) / 20**0.5
    for rows in np.array_split(np.arange(len(Y)), 50):
        Y[rows] += rng.normal(size=(len(rows), n_outputs))
    return X, Y


def fit_dense(name: str) -> Record:
    """Fit a model to dense outputs: time, memory beyond the data, mean r² on test rows."""
    X, Y = dense_data()
    n_outputs = FOREST_OUTPUTS if "forest" in name else DENSE[2]
    Y = Y[:, :n_outputs]
    train, test = slice(DENSE[0]), slice(DENSE[0], None)
    memory, began = PeakMemory(), time.perf_counter()
    if name in DENSE_OURS:
        model: Any = ManyBoostRegressor(**DENSE_OURS[name], random_state=0, n_jobs=2)
    elif name == "ridge":
        from sklearn.linear_model import RidgeCV

        model = RidgeCV(np.logspace(0, 4, 9))
    else:
        from sklearn.ensemble import RandomForestRegressor

        model = RandomForestRegressor(max_features="sqrt", n_jobs=2, random_state=0)
    model.fit(X[train], Y[train])
    record: Record = {
        "seconds": time.perf_counter() - began,
        "megabytes": (memory.above_start() or 0) / 1e6,
    }
    if name in DENSE_OURS:
        record["model_bytes"] = model.info()["n_bytes"]
        record["rounds_per_second"] = model.n_iter_ / record["seconds"]
    error = ((Y[test] - model.predict(X[test])) ** 2).mean(axis=0)
    return record | {"r2": float((1 - error / Y[test].var(axis=0)).mean())}


def scores(truth: Any, ranked: np.ndarray) -> Record:
    return {f"P@{k}": precision_at_k(truth, np.asarray(ranked), k) for k in (1, 3, 5)}


def by_frequency(Y_train: Any, truth: Any, ranked: np.ndarray) -> Record:
    """Share of the true labels that are among the best five: of frequent labels, and of others."""
    counts = np.bincount(Y_train.indices, minlength=Y_train.shape[1])
    head = np.zeros(Y_train.shape[1], bool)
    head[np.argsort(-counts, kind="stable")[:HEAD]] = True
    row = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr))
    found = (ranked[row] == truth.indices[:, None]).any(axis=1)
    is_head = head[truth.indices]
    return {
        "head recall": float(found[is_head].mean()),
        "tail recall": float(found[~is_head].mean()),
    }


def round_seconds(X: Any, Y: Any, parameters: Record) -> float:
    """Processor seconds of a round, from fits of two lengths."""
    taken = []
    for rounds in (5, 25):
        began = time.process_time()
        ManyBoostClassifier(**COMMON, **parameters | {"max_iter": rounds}).fit(X, Y)
        taken.append(time.process_time() - began)
    return (taken[1] - taken[0]) / 20


def peer(python: str, setting: str) -> Record:
    """Train linear label trees in another environment."""
    _, Y, train = catalogue()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        shutil.copy(workloads.data_folder() / "yso-8k.npz", file)
        command = [python, ROOT / "benchmarks" / "omikuji_labels.py", file, setting]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ranked = np.load(file.with_suffix(".best.npy"))
    return json.loads(printed.splitlines()[-1]) | scores(Y[~train], ranked)


# ---------------------------------------------------------------------- the page


def page(records: dict[str, dict[str, Record]]) -> dict[str, str]:
    """Tables by the names of their places on the page."""
    percent = lambda value: f"{100 * value:.1f}"  # noqa: E731
    found: dict[str, str] = {}
    rows = [
        [name, *(percent(each[f"P@{k}"]) for k in (1, 3, 5)), number(each.get("seconds")),
         number(each.get("cpu_seconds")), number(each.get("megabytes")),
         number(each.get("model_bytes"), 1e-6)]
        for name, each in sorted(records.get("yso", {}).items(), key=lambda of: "omikuji" in of[0])
    ]  # fmt: skip
    head = ["", "P@1", "P@3", "P@5", "seconds", "processor seconds", "MB", "MB of the model"]
    found["yso"] = table(head, rows, 1, len(head))
    rows = [
        [f"{int(name):,}", number(each["project"]), number(each["relabel"])]
        for name, each in records.get("growth", {}).items()
    ]
    found["growth"] = table(["labels", "project", "relabel"], rows, 0, 3)
    rows = [
        [name, str(MILLION[name]["max_iter"]), str(MILLION[name].get("max_leaf_nodes", LEAVES)),
         percent(each["P@1"]), percent(each["oracle"]), percent(each["head recall"]),
         percent(each["tail recall"]), number(each.get("seconds")), number(each.get("cpu_seconds")),
         number(each["megabytes"]), number(each["model_bytes"], 1e-6),
         number(each.get("row_milliseconds"))]
        for name, each in records.get("million", {}).items()
    ]  # fmt: skip
    head = ["strategy", "rounds", "leaves", "P@1", "P@1 of the plan", "head", "tail", "seconds"]
    head += ["processor seconds", "MB", "MB of the model", "ms a row"]
    found["million"] = table(head, rows, 1, len(head))
    rows = []
    for name, listed in PUBLISHED.items():
        ours = {way: records.get("published", {}).get(f"{name}: {way}") for way in WAYS}
        rows += [
            [name, f"manyboost, {way}", *(percent(each[f"P@{k}"]) for k in (1, 3, 5)),
             number(each.get("seconds"))]
            for way, each in ours.items() if each
        ]  # fmt: skip
        rows += [
            [name, peer, *(f"{value:.1f}" for value in row), ""] for peer, row in listed.items()
        ]
    intro = (
        "Sets of a hundred to a thousand labels, compared with what the extreme classification "
        "repository lists for the same rows and labels. Only a limit of 1,000 rounds and the way "
        "to find their number are set. Larger trees are `max_leaf_nodes=127, min_samples_leaf=5, "
        "n_components=10`, which were also better on a fifth of the training rows of each "
        "set:\n\n"
    )
    measured = table(["set", "", "P@1", "P@3", "P@5", "seconds"], rows, 2, 6)
    found["published"] = intro + measured if "published" in records else ""
    rows = [
        [name, f"{each['r2']:.3f}", number(each.get("seconds")),
         number(each.get("rounds_per_second")), number(each["megabytes"]),
         number(each.get("model_bytes"), 1e-6)]
        for name in DENSE_MODELS if (each := records.get("dense", {}).get(name))
    ]  # fmt: skip
    head = ["", "r²", "seconds", "rounds a second", "MB", "MB of the model"]
    found["dense"] = table(head, rows, 1, len(head))
    return found


def measured_on(stored: dict[str, Any]) -> str:
    """The machine and the build, in a line."""
    return f"{stored['machine']['cpu']}; {machine.versions(stored['machine'])}."


def write(stored: dict[str, Any]) -> None:
    """Put the tables between their marks on the page."""
    tables = page(stored["records"]) | {"machine": measured_on(stored)}
    PAGE.write_text(filled(PAGE.read_text(), tables))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--again", nargs="+", default=[], choices=PARTS)
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--timed", action="store_true")
    parser.add_argument("--omikuji", metavar="PYTHON")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(fit(*arguments.child)))
        return
    begin = one_build.read if arguments.report else partial(one_build.opened, timed=True)
    stored = begin(RESULTS, records={})
    wanted = {
        "yso": [*YSO],
        "growth": [str(d) for d in GROWTH],
        "million": [*MILLION],
        "published": [f"{name}: {way}" for name in PUBLISHED for way in WAYS],
        "dense": [*DENSE_MODELS],
    }

    def keep(part: str, name: str, record: Record) -> None:
        if not arguments.timed:
            record = {key: each for key, each in record.items() if key not in SPEED}
        stored["records"].setdefault(part, {})[name] = record
        one_build.save(RESULTS, stored)
        print(part, name, record, flush=True)

    for part in [] if arguments.report else arguments.only:
        if part == "growth" and not arguments.timed:
            continue
        for name in wanted[part]:
            if name in stored["records"].get(part, {}) and part not in arguments.again:
                continue
            command = [sys.executable, "-m", "benchmarks.many_labels", "--child", part, name]
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            keep(part, name, json.loads(printed.splitlines()[-1]))
        for setting in ("parabel", "bonsai") if part == "yso" and arguments.omikuji else ():
            keep(part, f"omikuji, {setting}", peer(arguments.omikuji, setting))
    write(stored)


if __name__ == "__main__":
    main()
