"""One output and few classes: `fit(X, y)` with nothing set, beside LightGBM and scikit-learn.

    python -m benchmarks.few_outputs
    python -m benchmarks.few_outputs --sets diabetes digits --threads 2

Rewrites the sets that are run in results/few_outputs.json. `python -m benchmarks.contest --report`
then makes a section of docs/contest.md from it. Sets from files need the data folder.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, one_build, report, workloads

RESULTS = Path(__file__).parent / "results" / "few_outputs.json"
CONTESTANTS = ("manyboost", "lightgbm", "hist-gradient-boosting")
OURS, TIMED = CONTESTANTS[:2]
MARGIN = 0.002  # a difference that is always noise
TIME_BAR = 1.2  # of LightGBM's seconds


@dataclass(frozen=True)
class FewOutputs:
    """Where the rows come from, the part of them that is trained on, and how often."""

    load: Callable[[], tuple[np.ndarray, np.ndarray]]
    is_classes: bool
    part: float = 0.7
    repeats: int = 10


def interactions(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, 8))
    y = np.sin(3 * X[:, 0] * X[:, 1]) + 2 * X[:, 2] * X[:, 3] + 0.5 * X[:, 7] ** 2
    y += np.where(X[:, 4] > 0, X[:, 5], -X[:, 6])
    return X, y + 0.3 * rng.normal(size=n_rows)


def classes(n_rows: int, n_features: int, **others: Any) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_classification

    return make_classification(n_rows, n_features, **others)


def rare(share: float) -> tuple[np.ndarray, np.ndarray]:
    hidden = {"n_informative": 8, "weights": [1 - share], "flip_y": 0.01, "random_state": 1}
    return classes(20_000, 20, **hidden)


def toy(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True)


def friedman1(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_friedman1

    return make_friedman1(n_rows, noise=1.0, random_state=0)


def output(name: str, j: int) -> tuple[np.ndarray, np.ndarray]:
    with np.load(workloads.data_folder() / f"{name}.npz", allow_pickle=False) as z:
        return z["X"].astype(np.float64), z["Y"][:, j].astype(np.float64)


SEVEN = {"n_informative": 20, "n_redundant": 10, "n_classes": 7, "n_clusters_per_class": 4}
SEVEN |= {"flip_y": 0.05, "class_sep": 0.8, "random_state": 0}
SETS: dict[str, FewOutputs] = {
    "diabetes": FewOutputs(lambda: toy("diabetes"), False),
    "digits": FewOutputs(lambda: toy("digits"), True, repeats=5),
    "wine": FewOutputs(lambda: toy("wine"), True),
    "breast cancer": FewOutputs(lambda: toy("breast_cancer"), True),
    "iris": FewOutputs(lambda: toy("iris"), True),
    "friedman1-10000": FewOutputs(lambda: friedman1(20_000), False, 0.5, 3),
    "interactions-20000x8": FewOutputs(lambda: interactions(40_000), False, 0.5, 3),
    "classes-50000x54x7": FewOutputs(lambda: classes(70_000, 54, **SEVEN), True, 5 / 7, 2),
    "scm20d, output 1": FewOutputs(lambda: output("scm20d", 0), False, repeats=3),
    "water-quality, output 6": FewOutputs(lambda: output("water-quality", 5), False),
    "rare-0.1": FewOutputs(lambda: rare(0.1), True, 0.5, 3),
    "rare-0.03": FewOutputs(lambda: rare(0.03), True, 0.5, 3),
}


def model(contestant: str, is_classes: bool, seed: int, threads: int) -> Any:
    if contestant == "lightgbm":
        from lightgbm import LGBMClassifier, LGBMRegressor

        kind = LGBMClassifier if is_classes else LGBMRegressor
        return kind(random_state=seed, n_jobs=threads, verbosity=-1)
    if contestant == OURS:
        from manyboost import ManyBoostClassifier, ManyBoostRegressor

        kind = ManyBoostClassifier if is_classes else ManyBoostRegressor
        return kind(random_state=seed, n_jobs=threads)
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor
    return kind(random_state=seed)


def measure(each: FewOutputs, contestant: str, repeat: int, threads: int) -> dict[str, float]:
    """Fit to a random part of the rows; score on the others by r², or by minus the log loss."""
    from sklearn.metrics import log_loss, r2_score

    X, y = each.load()
    order = np.random.default_rng(repeat).permutation(len(y))
    train, test = np.split(order, [round(each.part * len(y))])
    fitted = model(contestant, each.is_classes, repeat, threads)
    began = time.perf_counter()
    fitted.fit(X[train], y[train])
    found = {"seconds": time.perf_counter() - began, "n_rows": len(train)}
    if not each.is_classes:
        return found | {"score": float(r2_score(y[test], fitted.predict(X[test])))}
    p = fitted.predict_proba(X[test])
    right = np.mean(fitted.classes_[p.argmax(axis=1)] == y[test])
    loss = log_loss(y[test], p, labels=fitted.classes_)
    return found | {"score": -float(loss), "accuracy": float(right)}


# ------------------------------------------------------------------ the section of the page


def within_noise(ours: list[float], theirs: list[float]) -> bool:
    """Whether ours are no worse than by two standard errors of the paired differences."""
    differences = np.subtract(ours, theirs)
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return bool(differences.mean() >= -max(MARGIN, 2 * error))


def section(found: dict[str, Any]) -> str:
    rows, reached, fast = [], 0, 0
    for name, runs in found["sets"].items():
        scores = {c: [run["score"] for run in runs[c]] for c in CONTESTANTS}
        seconds = {c: statistics.median(run["seconds"] for run in runs[c]) for c in CONTESTANTS}
        best = max(CONTESTANTS[1:], key=lambda c: statistics.fmean(scores[c]))
        holds = within_noise(scores[OURS], scores[best])
        ratio = seconds[OURS] / seconds[TIMED]
        reached, fast = reached + holds, fast + (ratio <= TIME_BAR)
        cells = [cell(runs[c], seconds[c]) for c in CONTESTANTS]
        n_rows = f"{runs[OURS][0]['n_rows']:,}"
        rows.append((name, n_rows, *cells, "yes" if holds else "no", f"{ratio:.2f}"))
    head = ("set", "rows", *CONTESTANTS, "within noise", "time / lightgbm's")
    n = len(found["sets"])
    verdict = (
        "**Within noise of the better of LightGBM and scikit-learn's histogram boosting, or ahead, "
        f"on {reached} of {n} sets; at most {TIME_BAR} × LightGBM's time on {fast}.**"
    )
    legend = (
        f"`fit(X, y)` with only the threads ({found['threads']}) and the seed set, on random parts "
        "of the rows. Cells: r², or minus the log loss (accuracy in brackets), and the median "
        f"seconds of a fit. Noise: {MARGIN}, or two standard errors of the paired differences if "
        "that is more. rare: this share of the rows is positive. `python -m "
        "benchmarks.few_outputs` repeats the measurement "
        f"({machine.versions(found['machine'], ('lightgbm', 'sklearn'))})."
    )
    table = report.table(head, rows, 1, 6)
    return f"## One output and few classes\n\n{verdict}\n\n{table}\n\n{legend}"


def cell(runs: list[dict[str, float]], seconds: float) -> str:
    score = f"{statistics.fmean(run['score'] for run in runs):.4f}"
    if "accuracy" in runs[0]:
        score += f" ({statistics.fmean(run['accuracy'] for run in runs):.4f})"
    return f"{score} · {report.number(seconds)} s"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_outputs")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read by scikit-learn when it is imported
    known = one_build.opened(options.results, also=("lightgbm", "sklearn"), timed=True, sets={})
    for name in options.sets:
        each, runs = SETS[name], {contestant: [] for contestant in CONTESTANTS}
        for repeat in range(each.repeats):
            for contestant in CONTESTANTS:
                runs[contestant].append(measure(each, contestant, repeat, options.threads))
        print(name, {c: cell(runs[c], runs[c][0]["seconds"]) for c in CONTESTANTS}, flush=True)
        keep(options, known, name, runs)


def keep(options: argparse.Namespace, known: dict[str, Any], name: str, runs: Any) -> None:
    """Write the results of a set beside those of the others."""
    sets = known["sets"] | {name: runs}
    known["sets"] = {name: sets[name] for name in SETS if name in sets}
    known["threads"] = options.threads
    one_build.save(options.results, known)


if __name__ == "__main__":
    main()
