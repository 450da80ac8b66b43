"""``manyboost explain``: which features a model uses, and for which outputs."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyboost.commands import data
from manyboost.commands.output import show, table
from manyboost.commands.predict import output_names
from manyboost.commands.usage import UsageError, positive_int

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUMMARY = "Show feature importances, or explain the predictions of a file (--shap)."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    data.add_file(parser, "rows to explain, with --shap")
    add = parser.add_argument
    add("--shap", action="store_true", help="write the Shapley values of each row of FILE as CSV")
    add("--top", type=positive_int, default=10, metavar="N", help="features to show (default: 10)")
    add(
        "--outputs",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="outputs to show: names or patterns (default: the first ten)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print all importances as JSON")
    how.add_argument("--csv", action="store_true", help="print all importances as CSV")


def run(arguments: argparse.Namespace) -> None:
    """Show importances or Shapley values."""
    model = data.load_model(arguments.model)
    names = outputs_of_trees(model)
    wanted = arguments.outputs or []
    places = data.matching("--outputs", wanted, names, "the model") if wanted else None
    if arguments.shap and arguments.json:
        raise UsageError("--shap writes CSV; remove --json.")
    if arguments.shap:
        _show_shap(arguments, model, names, places)
        return
    if arguments.file is not None:
        raise UsageError("Importances need no file; remove FILE, or add --shap.")
    chosen = list(range(len(names))) if places is None else places
    importances = Importances(
        feature_names(model),
        model.feature_importances_,
        names,
        # Model files above a size do not store the importances of single outputs.
        getattr(model, "output_importances_", None),
    )
    if arguments.json:
        importances.show_json(chosen)
    elif arguments.csv:
        importances.show_csv(chosen)
    else:
        importances.show_tables(arguments.top, chosen[:10] if places is None else chosen)


def feature_names(model: Any) -> list[str]:
    """Return the names of the features of a model, or their numbers."""
    return [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]


def outputs_of_trees(model: Any) -> list[str]:
    """Return the names of the outputs of the trees: one for two classes, one for each quantile."""
    names = output_names(model)
    if data.kind_of(model) == "classes" and model.n_outputs_ == 1:
        return names[1:]
    levels = getattr(model, "_quantiles", None)
    if levels is not None:
        names = [f"{name}_q{level:g}" for name in names for level in levels]
    return names


@dataclass(frozen=True)
class Importances:
    """The importances of features (n_features,), also by output (n_outputs, n_features)."""

    features: list[str]
    overall: NDArray[Any]
    outputs: list[str]
    by_output: NDArray[Any] | None

    def show_tables(self, top: int, chosen: list[int]) -> None:
        """Print the most important features."""
        show(table(["feature", "importance"], self._best(self.overall, top)))
        if self.by_output is None or len(self.outputs) == 1:
            return
        rows = []
        for j in chosen:
            best = self._best(self.by_output[j], min(top, 3))
            shares = ", ".join(f"{name} {share:.2f}" for name, share in best)
            rows.append([self.outputs[j], shares or "none"])
        show()
        show(table(["output", "most important features"], rows))
        if len(chosen) < len(self.outputs):
            more = len(self.outputs) - len(chosen)
            show(f"({more:,} more outputs: use --outputs, --csv or --json)")

    def _best(self, shares: NDArray[Any], top: int) -> list[tuple[str, float]]:
        order = (-shares).argsort(kind="stable")[:top].tolist()
        return [(self.features[i], float(shares[i])) for i in order if shares[i] > 0]

    def show_json(self, chosen: list[int]) -> None:
        """Print importances as JSON."""
        report: dict[str, Any] = {"features": self._named(self.overall)}
        if self.by_output is not None:
            report["outputs"] = {self.outputs[j]: self._named(self.by_output[j]) for j in chosen}
        show(json.dumps(report, indent=2))

    def _named(self, shares: NDArray[Any]) -> dict[str, float]:
        return dict(zip(self.features, shares.tolist(), strict=True))

    def show_csv(self, chosen: list[int]) -> None:
        """Print importances as CSV, a line for each feature."""
        chosen = [] if self.by_output is None else chosen
        columns = [self.overall, *(self.by_output[j] for j in chosen)]  # type: ignore[index]
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["feature", "importance", *(self.outputs[j] for j in chosen)])
        shares = zip(*(column.tolist() for column in columns), strict=True)
        for name, row in zip(self.features, shares, strict=True):
            writer.writerow([name, *row])


def _show_shap(
    arguments: argparse.Namespace, model: Any, names: list[str], places: list[int] | None
) -> None:
    """Write a line for each row and output."""
    import numpy as np

    from manyboost.datasets.readers.columns import features_of

    is_single = len(names) == 1 or getattr(model, "_quantiles", None) is not None
    asked = {} if places is None or is_single else {"outputs": places}
    chosen = range(len(names)) if places is None else places
    blocks = data.read_rows(arguments, model).blocks
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["row", "output", *feature_names(model)])
    row = 0
    for features, _ in blocks:
        X = features_of(features)
        # A few rows at a time: there is a value for each row, feature and output.
        size = max(1, (1 << 20) // (len(names) * len(X.columns)))
        for start in range(0, len(X), size):
            part = X.take(np.arange(start, min(start + size, len(X))))
            values = np.asarray(model.shap_values(part, **asked))
            values = values.reshape(len(part), len(X.columns), -1)
            if is_single and places is not None:
                values = values[:, :, places]
            for each in values:
                writer.writerows(
                    [row, names[j], *each[:, k].tolist()] for k, j in enumerate(chosen)
                )
                row += 1
