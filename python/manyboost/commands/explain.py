"""``manyboost explain``: which features a model uses, and for which outputs."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from typing import TYPE_CHECKING, Any

from manyboost.commands import UsageError, patterns, positive_int, show, written
from manyboost.commands.data import add_file, add_ignore, kind_of, load_model, read_rows
from manyboost.commands.layout import table
from manyboost.commands.predict import output_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUMMARY = "Show the importance of features, or explain the predictions of a file (--shap)."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    add_file(parser, "rows to explain, with --shap")
    add_ignore(parser)
    add = parser.add_argument
    add(
        "--shap",
        action="store_true",
        help="how far each feature moves the raw prediction of each row of FILE, as CSV",
    )
    add("--top", type=positive_int, default=10, metavar="N", help="features to show (default: 10)")
    add(
        "--outputs",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="outputs to show: names or patterns (default: the first ten)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="all importances as JSON")
    how.add_argument("--csv", action="store_true", help="all importances as CSV")


def run(arguments: argparse.Namespace) -> None:
    """Show importances or Shapley values."""
    model = load_model(arguments.model)
    names = outputs_of_trees(model)
    wanted = arguments.outputs or []
    places = patterns("--outputs", wanted, names, "the model") if wanted else None
    if arguments.shap and arguments.json:
        raise UsageError("--shap writes CSV; leave out --json.")
    if arguments.shap:
        _show_shap(arguments, model, names, places)
        return
    if arguments.file is not None:
        raise UsageError("Importances are those of the model alone; leave FILE out, or add --shap.")
    features = feature_names(model)
    # Of a file that had no room for them those of single outputs are not known.
    by_output = getattr(model, "output_importances_", None)
    chosen = list(range(len(names))) if places is None else places
    if arguments.json:
        _show_json(model.feature_importances_, by_output, features, names, chosen)
    elif arguments.csv:
        _show_csv(model.feature_importances_, by_output, features, names, chosen)
    else:
        shown = chosen if places is not None else chosen[:10]
        _show_tables(arguments.top, model.feature_importances_, by_output, features, names, shown)


def feature_names(model: Any) -> list[str]:
    """Names of the features of a model, or their numbers."""
    return [str(each) for each in getattr(model, "feature_names_in_", range(model.n_features_in_))]


def outputs_of_trees(model: Any) -> list[str]:
    """Names of the outputs of the trees: of two classes they know one, of quantiles each."""
    names = output_names(model)
    if kind_of(model) == "classes" and model.n_outputs_ == 1:
        return names[1:]
    levels = getattr(model, "_quantiles", None)
    if levels is not None:
        names = [f"{name}_q{level:g}" for name in names for level in levels]
    return names


def _show_tables(
    top: int,
    overall: NDArray[Any],
    by_output: NDArray[Any] | None,
    features: list[str],
    names: list[str],
    shown: list[int],
) -> None:
    show(table(["feature", "importance"], _best(overall, features, top)))
    if by_output is None or len(names) == 1:
        return
    rows = []
    for j in shown:
        best = _best(by_output[j], features, min(top, 3))
        rows.append([names[j], ", ".join(f"{name} {share:.2f}" for name, share in best) or "none"])
    show()
    show(table(["output", "most important features"], rows))
    if len(shown) < len(names):
        show(f"(and {len(names) - len(shown):,} more outputs: see --outputs, --csv, --json)")


def _best(shares: NDArray[Any], features: list[str], top: int) -> list[tuple[str, float]]:
    order = (-shares).argsort(kind="stable")[:top].tolist()
    return [(features[i], float(shares[i])) for i in order if shares[i] > 0]


def _show_json(
    overall: NDArray[Any],
    by_output: NDArray[Any] | None,
    features: list[str],
    names: list[str],
    chosen: list[int],
) -> None:
    report: dict[str, Any] = {"features": dict(zip(features, overall.tolist(), strict=True))}
    if by_output is not None:
        report["outputs"] = {
            names[j]: dict(zip(features, by_output[j].tolist(), strict=True)) for j in chosen
        }
    show(json.dumps(report, indent=2))


def _show_csv(
    overall: NDArray[Any],
    by_output: NDArray[Any] | None,
    features: list[str],
    names: list[str],
    chosen: list[int],
) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    columns = [] if by_output is None else chosen
    writer.writerow(["feature", "importance", *(names[j] for j in columns)])
    for i, feature in enumerate(features):
        each = [] if by_output is None else by_output[columns, i].tolist()
        writer.writerow([feature, float(overall[i]), *each])


def _show_shap(
    arguments: argparse.Namespace, model: Any, names: list[str], places: list[int] | None
) -> None:
    """Write a line for each row and output."""
    if not hasattr(model, "shap_values"):
        raise UsageError("This version of manyboost has no Shapley values; leave out --shap.")
    import numpy as np

    from manyboost.datasets.readers.columns import features_of

    single = len(names) == 1 or getattr(model, "_quantiles", None) is not None
    asked = {} if places is None or single else {"outputs": places}
    chosen = range(len(names)) if places is None else places
    blocks = read_rows(arguments, model).blocks
    row = 0
    with written(None) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["row", "output", *feature_names(model)])
        for table_, _ in blocks:
            X = features_of(table_)
            # A few rows at a time: there is a number for each row, feature and output.
            size = max(1, (1 << 20) // (len(names) * len(X.columns)))
            for start in range(0, len(X), size):
                part = X.take(np.arange(start, min(start + size, len(X))))
                values = np.asarray(model.shap_values(part, **asked))
                values = values.reshape(len(part), len(X.columns), -1)
                if single and places is not None:
                    values = values[:, :, places]
                for each in values:
                    for k, j in enumerate(chosen):
                        writer.writerow([row, names[j], *each[:, k].tolist()])
                    row += 1
