"""Labels: does calibration help, and what does a hierarchy of labels do to scores?

    python -m benchmarks.labels                  measures what is missing, and writes the page
    python -m benchmarks.labels emotions diatoms measures these sets
    python -m benchmarks.labels --page           writes the page alone

Results go to `benchmarks/results/labels.json`, the page to `docs/labels.md`. Needs the data folder.
Takes about half an hour.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import average_precision_score, f1_score

from benchmarks import machine, metrics, one_build, workloads
from benchmarks.tables import table
from manyboost import ManyBoostClassifier
from manyboost.data.hierarchy import Hierarchy
from manyboost.data.labels import Classes
from manyboost.training.calibrators import CALIBRATORS, fit_calibrator

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "labels.json"
PAGE = ROOT / "docs" / "labels.md"

CALIBRATED = ("emotions", "scene", "yeast", "enron", "bibtex")
HIERARCHIES = ("diatoms", "imclef07a", "yeast-cellcycle-funcat", "yeast-seq-funcat")
SEEDS = (0, 1, 2)
N_FOLDS = 5
N_BINS = 10
WEIGHTS = {"": None, "balanced ": "balanced"}  # of classes

Record = dict[str, Any]


# ------------------------------------------------------------------ calibration


def log_loss(Y: np.ndarray, p: np.ndarray) -> float:
    """Mean over all cells."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(-np.mean(np.where(Y == 1, np.log(p), np.log1p(-p))))


def calibration_error(Y: np.ndarray, p: np.ndarray) -> float:
    """Mean distance of shares from mean probabilities in bins of equal width, mean over labels."""
    errors = []
    for y, q in zip(Y.T, p.T, strict=True):
        place = np.minimum((q * N_BINS).astype(int), N_BINS - 1)
        apart = np.bincount(place, y - q, N_BINS)
        errors.append(np.abs(apart).sum() / len(y))
    return float(np.mean(errors))


def of_calibration(name: str, seed: int) -> Record:
    """Log loss, calibration error and F1 on a third of the rows, before and after."""
    data = workloads.read(workloads.data_folder() / f"{name}.npz", "multilabel", dense=True)
    X, Y = (np.concatenate(pair) for pair in ((data.X, data.X_test), (data.Y, data.Y_test)))
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = np.split(order, [2 * len(X) // 3])
    record: Record = {}
    for prefix, weight in WEIGHTS.items():
        model = ManyBoostClassifier(n_folds=N_FOLDS, class_weight=weight, random_state=seed)
        model.fit(X[train], Y[train])
        for kind in (None, *CALIBRATORS):
            # As the parameter does it, without another fit.
            if kind is not None:
                given = model.oof_decision_function_, Y[train], None
                model._calibrator = fit_calibrator(kind, *given, 1 << 20)
            p, predicted = model.predict_proba(X[test]), model.predict(X[test])
            record[f"{prefix}{kind or 'none'}"] = {
                "log loss": log_loss(Y[test], p),
                "error": calibration_error(Y[test], p),
                "F1": float(f1_score(Y[test], predicted, average="micro", zero_division=0)),
            }
    return record


# ------------------------------------------------------------------ hierarchies


def by_slashes(names: list[str]) -> list[tuple[str, str]]:
    """Pairs of labels and parents for names such as "1/2/3"."""
    known = set(names)
    pairs = [(name, name.rpartition("/")[0]) for name in names]
    return [(name, parent) for name, parent in pairs if parent in known]


def hierarchical(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Features, labels with all their ancestors, the official split, names."""
    with np.load(workloads.data_folder() / f"{name}.npz", allow_pickle=False) as z:
        prefix, names = ("Yh", "hierarchy_names") if "Yh_indices" in z else ("Y", "target_names")
        if prefix in z:
            Y = z[prefix]
        else:
            ones = np.ones(len(z[f"{prefix}_indices"]), np.uint8)
            parts = ones, z[f"{prefix}_indices"], z[f"{prefix}_indptr"]
            Y = csr_matrix(parts, shape=tuple(z[f"{prefix}_shape"])).toarray()
        return z["X"], Y, z["split"] == 0, z[names].tolist()


def least_above(hierarchy: Hierarchy, raw: np.ndarray) -> np.ndarray:
    """The least of each label and its ancestors: the other way to agree with a hierarchy."""
    turned = Hierarchy(hierarchy.n_labels, hierarchy.parents, hierarchy.children)
    return -turned.consistent(-raw)


def of_hierarchy(name: str, seed: int) -> Record:
    """Test scores of raw predictions as they are, and brought in line in three ways."""
    X, Y, train, names = hierarchical(name)
    hierarchy = Hierarchy.of(by_slashes(names), Classes("multilabel", np.array(names, object)))
    Y = hierarchy.closed(Y)
    model = ManyBoostClassifier(random_state=seed).fit(X[train], Y[train])
    raw, truth = model.decision_function(X[~train]), Y[~train]
    seen = Y[train].any(axis=0)
    most, least = hierarchy.consistent(raw), least_above(hierarchy, raw)
    ways = {"none": raw, "max": most, "min": least, "mean": (most + least) / 2}
    pairs = list(zip(hierarchy.children, hierarchy.parents, strict=True))
    broken = [raw[:, c] > raw[:, p] for c, p in pairs if seen[c]]
    predicted = [(raw[:, c] > 0) & (raw[:, p] <= 0) for c, p in pairs]
    record: Record = {
        "labels": len(names),
        "broken": float(np.mean(broken)),
        "rows": float(np.mean(np.any(predicted, axis=0))),
    }
    for way, values in ways.items():
        p = 1 / (1 + np.exp(-values))
        record[way] = {
            "LRAP": metrics.lrap(truth, values),
            "AP": float(average_precision_score(truth.ravel(), values.ravel())),
            "F1": float(f1_score(truth, values > 0, average="micro", zero_division=0)),
            "log loss": log_loss(truth, p),
        }
    return record


# ------------------------------------------------------------------ measuring


def measure(names: list[str]) -> None:
    results = one_build.opened(RESULTS, sets={})
    for name in names:
        kind = of_calibration if name in CALIBRATED else of_hierarchy
        found = results["sets"].setdefault(name, [])
        while len(found) < len(SEEDS):
            found.append(kind(name, SEEDS[len(found)]))
            write(results)
            print(name, found[-1], flush=True)


def write(results: dict[str, Any]) -> None:
    """A line for each fit."""
    short = json.loads(json.dumps(results), parse_float=lambda text: round(float(text), 5))
    sets = [
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, found)) + "\n]"
        for name, found in short["sets"].items()
    ]
    lines = ",\n".join(sets)
    one_build.replace(
        RESULTS, f'{{"machine": {json.dumps(short["machine"])},\n"sets": {{\n{lines}\n}}}}\n'
    )


# ------------------------------------------------------------------ the page


def mean(records: list[Record], key: str, what: str) -> float:
    return float(np.mean([each[key][what] for each in records]))


def calibration_table(results: dict[str, list[Record]], prefix: str) -> str:
    ways = ("none", *CALIBRATORS)
    columns = [(what, way) for what in ("log loss", "error", "F1") for way in ways]
    titles = {"log loss": "log loss", "error": "error, %", "F1": "F1"}
    rows = []
    for name in CALIBRATED:
        if found := results.get(name):
            cells = []
            for what, way in columns:
                value = mean(found, f"{prefix}{way}", what)
                cells.append(f"{100 * value:.2f}" if what == "error" else f"{value:.4f}")
            rows.append([name, *cells])
    head = ["set", *(f"{titles[what]}: {way}" for what, way in columns)]
    return table(head, rows, 1, len(head))


def hierarchy_table(results: dict[str, list[Record]]) -> str:
    rows = []
    for name in HIERARCHIES:
        if found := results.get(name):
            broken = [100 * np.mean([each[key] for each in found]) for key in ("broken", "rows")]
            for way in ("none", "max", "min", "mean"):
                first = [name, str(found[0]["labels"])] if way == "none" else ["", ""]
                shares = [f"{each:.1f}" for each in broken] if way == "none" else ["0", "0"]
                scores = [f"{mean(found, way, what):.4f}" for what in ("LRAP", "AP", "F1")]
                rows.append([*first, way, *shares, *scores, f"{mean(found, way, 'log loss'):.5f}"])
    head = ["set", "labels", "way", "pairs, %", "rows, %", "LRAP", "AP", "F1", "log loss"]
    return table(head, rows, 3, len(head))


def calibration_verdict(results: dict[str, list[Record]]) -> str:
    """On how many sets each way lowered log loss and error, without and with weights."""
    measured = [found for name in CALIBRATED if (found := results.get(name))]
    sentences = []
    for prefix, words in (("", "Without weights of classes"), ("balanced ", "With them")):
        parts = []
        for way in CALIBRATORS:
            counts = [
                sum(mean(m, f"{prefix}{way}", w) < mean(m, f"{prefix}none", w) for m in measured)
                for w in ("log loss", "error")
            ]
            parts.append(
                f'"{way}" lowered the log loss on {counts[0]} and the error on {counts[1]}'
            )
        sentences.append(f"{words}, {', '.join(parts)} of {len(measured)} sets.")
    return " ".join(sentences)


def hierarchy_verdict(results: dict[str, list[Record]]) -> str:
    """On how many sets each way was no worse than none, by all scores."""
    measured = [found for name in HIERARCHIES if (found := results.get(name))]
    parts = []
    for way in ("max", "min", "mean"):
        better = [
            all(mean(m, way, w) >= mean(m, "none", w) for w in ("LRAP", "AP", "F1"))
            and mean(m, way, "log loss") <= mean(m, "none", "log loss")
            for m in measured
        ]
        parts.append(f'"{way}" on {sum(better)}')
    return f"No worse than none by all four scores, of {len(measured)} sets: {', '.join(parts)}."


def page(stored: dict[str, Any]) -> str:
    results = stored["sets"]
    return f"""# Calibration and hierarchies of labels: what they change

Generated by `python -m benchmarks.labels`; do not edit. Default parameters, {len(SEEDS)} seeds;
figures are means over the seeds. Measured with {machine.versions(stored["machine"])}.

## Calibration

`n_folds={N_FOLDS}` without `calibration`, with `"sigmoid"` and with `"isotonic"`; two thirds of the
rows for training, the others for the figures. "Log loss": mean over all rows and labels. "Error":
the expected calibration error, that is the distance of the share of rows with a label from their
mean probability, in {N_BINS} bins of equal width, weighted by rows, mean over the labels. "F1": of
`predict`, over all rows and labels. Less log loss and error is better.

{calibration_table(results, "")}

With `class_weight="balanced"`, which moves probabilities away from shares of rows:

{calibration_table(results, "balanced ")}

{calibration_verdict(results)}
[The guide](guide/uncertainty.md#calibrate-probabilities) shows its use.

## Hierarchies

Labels named like `1/2/3`, with all their ancestors in `y`, on the official test rows. "None": raw
predictions as they are. "Pairs": share of the pairs of a label and its parent, over rows, in which
the label has the higher raw prediction; "rows": share of the rows for which a label is predicted
without its parent. The other ways make raw predictions agree: the most of a label and its
descendants ("max", which `label_hierarchy` uses), the least of it and its ancestors ("min"), and
the mean of both ("mean"). LRAP; AP: average precision over all rows and labels; F1 of `predict`
over all rows and labels.

{hierarchy_table(results)}

{hierarchy_verdict(results)}
[The guide](guide/data.md#hierarchies-of-labels) shows its use.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*HIERARCHIES, *CALIBRATED])
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    if not arguments.page:
        measure(arguments.names)
    PAGE.write_text(page(one_build.read(RESULTS, sets={})))


if __name__ == "__main__":
    main()
