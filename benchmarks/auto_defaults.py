"""Leaf sizes and learning rates: the evidence behind `min_samples_leaf` and `learning_rate="auto"`.

    python -m benchmarks.auto_defaults       rewrites the table of docs/decisions/40

Mean scores over random cuts of the *training* rows of real sets, half of them held out; up to 1000
rounds, early stopping on a tenth of the other half. Needs the data folder; takes some minutes.
"""

import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import label_ranking_average_precision_score, r2_score

from benchmarks import workloads
from benchmarks.tables import filled
from manyboost import ManyBoostClassifier, ManyBoostRegressor

PAGE = Path(__file__).parent.parent / "docs/decisions/40-default-leaf-size-and-learning-rate.md"
LABEL_SETS = ("birds", "CAL500", "emotions", "enron", "genbase", "medical", "scene", "yeast")
REGRESSION_SETS = ("atp7d", "edm", "enb", "oes97", "scm20d", "slump", "water-quality")
CUTS = 4
LEAVES = (1, 5, 20, "auto")
RATES = (0.1, 0.05, 0.03)


def score(data: workloads.Data, seed: int, **parameters) -> float:
    n = data.X.shape[0]
    order = np.random.default_rng(seed).permutation(n)
    train, validation, test = np.split(order, [int(0.45 * n), n // 2])
    is_labels = data.task == "multilabel"
    kind = ManyBoostClassifier if is_labels else ManyBoostRegressor
    model = kind(max_iter=1000, random_state=seed, **parameters)
    model.fit(data.X[train], data.Y[train], X_val=data.X[validation], Y_val=data.Y[validation])
    if is_labels:
        raw = model.decision_function(data.X[test])
        return float(label_ranking_average_precision_score(data.Y[test], raw))
    return float(r2_score(data.Y[test], model.predict(data.X[test])))


def rows() -> list[str]:
    lines = []
    for task, names in (("multilabel", LABEL_SETS), ("regression", REGRESSION_SETS)):
        for name in names:
            data = workloads.read(workloads.data_folder() / f"{name}.npz", task, True)
            if name == "genbase":
                data.X = data.X[:, 1:]  # the first feature is an identifier
            options = [{"min_samples_leaf": size} for size in LEAVES]
            options += [{"learning_rate": rate} for rate in RATES]
            means = [
                np.mean([score(data, seed, **option) for seed in range(CUTS)]) for option in options
            ]
            cells = " | ".join(f"{mean:.3f}" for mean in means)
            lines.append(f"| {name} | {int(0.45 * data.X.shape[0])} | {cells} |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    head = [*(f"leaf {size}" for size in LEAVES), *(f"rate {rate}" for rate in RATES)]
    table = [f"| set | rows | {' | '.join(head)} |", "|---|---:|" + "---:|" * len(head), *rows()]
    PAGE.write_text(filled(PAGE.read_text(), {"auto-defaults": "\n".join(table)}))


if __name__ == "__main__":
    main()
