"""Focal and asymmetric losses for labels beside the log loss: do they rank or find labels better?

    python -m benchmarks.focal              measures what is missing, and writes the table
    python -m benchmarks.focal --jobs 2     two splits at a time
    python -m benchmarks.focal --page       writes the table alone

Figures go to `benchmarks/results/focal.json`, the table to its decision, between its marks. Needs
the data folder. Takes ten minutes.
"""

import argparse
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import average_precision_score, f1_score

from benchmarks import folds, machine, metrics, one_build
from benchmarks.processes import side_by_side
from benchmarks.tables import filled, table
from manyboost import Loss, ManyBoostClassifier

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "focal.json"
PAGE = ROOT / "docs" / "decisions" / "72-no-focal-loss.md"

SETS = ("emotions", "scene", "yeast", "birds", "enron", "medical")
SPLITS, ROUNDS = 3, 500
STEP = 1e-4  # of the second derivative, by differences
SCORES = ("LRAP", "macro AP", "macro F1")


class Probability(Loss):
    """A loss of probabilities, whose gradient is known."""

    def hessian(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        change = self.gradient(y, raw + STEP) - self.gradient(y, raw - STEP)
        return np.maximum(change / (2 * STEP), 1e-6)

    def baseline(self, y: np.ndarray, sample_weight: Any) -> np.ndarray:
        share = np.clip(y.mean(axis=0), 1e-6, 1 - 1e-6)
        return np.log(share / (1 - share))

    def inverse_link(self, raw: np.ndarray) -> np.ndarray:
        return expit(raw)


class Focal(Probability):
    """−(1 − p)^γ log p, with p the probability of what is true (Lin et al. 2017)."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        p = expit(np.where(y == 1, raw, -raw))
        return -((1 - p) ** self.gamma) * np.log(np.maximum(p, 1e-300))

    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        sign = np.where(y == 1, 1.0, -1.0)
        p = expit(sign * raw)
        log = np.log(np.maximum(p, 1e-300))
        return sign * (1 - p) ** self.gamma * (self.gamma * p * log + p - 1)


class Asymmetric(Probability):
    """Log loss of present labels; of absent ones p^γ times it, with p less a margin (2021)."""

    def __init__(self, gamma: float, margin: float) -> None:
        self.gamma, self.margin = gamma, margin

    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        p = np.maximum(expit(raw) - self.margin, 0)
        return np.where(y == 1, np.logaddexp(0, -raw), -(p**self.gamma) * np.log1p(-p))

    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        whole = expit(raw)
        p = np.maximum(whole - self.margin, 0)
        slope = p**self.gamma / (1 - p) - self.gamma * p ** (self.gamma - 1) * np.log1p(-p)
        return np.where(y == 1, whole - 1, slope * whole * (1 - whole) * (p > 0))


WAYS: dict[str, dict[str, Any]] = {
    "log loss": {"loss": "log_loss"},
    "log loss, balanced": {"loss": "log_loss", "class_weight": "balanced"},
    "focal, γ = 1": {"loss": Focal(1.0)},
    "focal, γ = 2": {"loss": Focal(2.0)},
    "asymmetric, γ = 2": {"loss": Asymmetric(2.0, 0.0)},
    "asymmetric, γ = 4, margin 0.05": {"loss": Asymmetric(4.0, 0.05)},
}


def measured(name: str, split: int) -> dict[str, dict[str, float]]:
    """Scores of all losses on a split; thresholds are tuned on the validation rows."""
    warnings.simplefilter("ignore")
    data = folds.load(name)
    train, X, Y = folds.divided(data, split), data.X, folds.targets(data)
    X = X.tocsr() if sparse.issparse(X) else X
    seen = Y[~train].any(axis=0) & Y[train].any(axis=0)
    found = {}
    for way, parameters in WAYS.items():
        model = ManyBoostClassifier(
            **parameters, max_iter=ROUNDS, early_stopping=True, thresholds="tuned",
            categorical_features=list(data.categorical) or None, random_state=split, n_jobs=1,
        ).fit(X[train], Y[train])  # fmt: skip
        raw, truth = model.decision_function(X[~train]), Y[~train]
        found[way] = {
            "LRAP": metrics.score("multilabel", truth, raw),
            "macro AP": float(average_precision_score(truth[:, seen], raw[:, seen])),
            "macro F1": float(
                f1_score(truth[:, seen], model.predict(X[~train])[:, seen], average="macro")
            ),
        }
    return found


def section(results: dict[str, Any]) -> str:
    """Mean differences to the log loss, and on how many sets they are positive."""
    sets = {name: results["sets"][name] for name in SETS if name in results["sets"]}
    rows = []
    for way in list(WAYS)[1:]:
        cells = []
        for score in SCORES:
            gains = [
                statistics.fmean(run[way][score] - run["log loss"][score] for run in runs.values())
                for runs in sets.values()
            ]
            error = statistics.stdev(gains) / len(gains) ** 0.5
            better = sum(gain > 0 for gain in gains)
            cells.append(f"{statistics.fmean(gains):+.4f} ± {error:.4f} ({better})")
        rows.append([way, *cells])
    build = machine.versions(results["machine"])
    how = (
        f"Means over {len(sets)} sets ({', '.join(sets)}) of {SPLITS} splits "
        "each, minus those of the log loss; standard errors over the sets; in brackets, on how "
        f"many sets it is better. Thresholds of F1 are tuned. {build}."
    )
    return f"{table(('', *SCORES), rows, 1, 4)}\n\n{how}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.focal")
    parser.add_argument("--jobs", type=int, default=1, help="splits at a time")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    begin = one_build.read if options.page else one_build.opened
    results = begin(RESULTS, sets={})
    keys = [(name, split) for name in SETS for split in range(SPLITS)]
    missing = [key for key in keys if str(key[1]) not in results["sets"].get(key[0], {})]
    parts = {key: key for key in missing if not options.page}
    for (name, split), found in side_by_side(options.jobs, measured, parts):
        results["sets"].setdefault(name, {})[str(split)] = found
        one_build.save(RESULTS, results)
        print(name, split, found, flush=True)
    PAGE.write_text(filled(PAGE.read_text(), {"focal": section(results)}))


if __name__ == "__main__":
    main()
