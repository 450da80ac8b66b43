"""Which step is better, for which loss and strategy: the evidence behind `step="auto"`.

    python -m benchmarks.auto_step           rewrites the table of docs/decisions/41

Test scores after 100 rounds with default parameters on real sets; needs the data folder.
"""

import warnings
from pathlib import Path

from sklearn.metrics import label_ranking_average_precision_score

from benchmarks import workloads
from benchmarks.tables import filled
from manyboost import ManyBoostClassifier, ManyBoostRegressor

PAGE = Path(__file__).parent.parent / "docs/decisions/41-newton-leaves-by-default.md"
STRATEGIES = ("project", "relabel")
LABEL_SETS = ("enron", "scene", "stackex_cs")
REGRESSION_SETS = ("scm20d", "atp1d", "water-quality")
LABEL_LOSSES = ("log_loss", "exponential")
REGRESSION_LOSSES = ("absolute_error", "huber", "poisson")


def score(name: str, loss: str, strategy: str, step: str) -> float:
    task = "multilabel" if loss in LABEL_LOSSES else "regression"
    data = workloads.read(workloads.data_folder() / f"{name}.npz", task, True)
    kind = ManyBoostClassifier if loss in LABEL_LOSSES else ManyBoostRegressor
    model = kind(loss, strategy=strategy, step=step, early_stopping=False, random_state=0)
    model.fit(data.X, data.Y)
    if kind is ManyBoostRegressor:
        return float(model.score(data.X_test, data.Y_test))
    return float(
        label_ranking_average_precision_score(data.Y_test, model.decision_function(data.X_test))
    )


def rows() -> list[str]:
    lines = []
    for sets, losses in ((LABEL_SETS, LABEL_LOSSES), (REGRESSION_SETS, REGRESSION_LOSSES)):
        for name in sets:
            for loss in losses:
                if loss == "poisson" and name != "scm20d":
                    continue  # needs targets of at least zero
                cells = []
                for strategy in STRATEGIES:
                    pair = [score(name, loss, strategy, s) for s in ("line_search", "newton")]
                    best = max(pair)
                    cells += [f"**{v:.3f}**" if v == best else f"{v:.3f}" for v in pair]
                lines.append(f"| {name} | {loss} | " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    head = "".join(f" {s}, line search | {s}, Newton |" for s in STRATEGIES)
    table = [f"| set | loss |{head}", "|---|---|" + "---:|" * (2 * len(STRATEGIES)), *rows()]
    PAGE.write_text(filled(PAGE.read_text(), {"auto-step": "\n".join(table)}))


if __name__ == "__main__":
    main()
