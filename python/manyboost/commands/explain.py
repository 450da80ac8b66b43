"""``manyboost explain``: which features a model uses, and for which outputs."""

from __future__ import annotations

import argparse
import csv
import sys
from typing import Any

from manyboost.commands import data
from manyboost.commands.output import as_json, count, show, table, tell
from manyboost.commands.predict import output_names
from manyboost.commands.usage import UsageError, add_names, positive_int

SUMMARY = "Show feature importances, or explain the predictions of a file (--shap)."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    data.add_file(parser, "rows to explain, with --shap")
    add = parser.add_argument
    add("--shap", action="store_true", help="write the Shapley values of each row of FILE as CSV")
    add("--top", type=positive_int, default=10, metavar="N", help="features to show (default: 10)")
    add_names(parser, "--outputs", "outputs to show: names or patterns (default: the first ten)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print all importances as JSON")
    how.add_argument("--csv", action="store_true", help="print all importances as CSV")


def run(arguments: argparse.Namespace) -> None:
    model = data.load_model(arguments.model)
    names = outputs_of_trees(model)
    wanted = arguments.outputs or []
    places = data.matching("--outputs", wanted, names, "the model") if wanted else None
    if arguments.shap:
        if arguments.json:
            raise UsageError("--shap writes CSV; remove --json.")
        _show_shap(arguments, model, names, places)
        return
    if arguments.file is not None:
        raise UsageError("Importances need no file; remove FILE, or add --shap.")
    features, overall = feature_names(model), model.feature_importances_
    chosen = list(range(len(names))) if places is None else places
    try:
        stored = model.output_importances_  # (n_outputs, n_features)
    except AttributeError as error:  # model files above a size do not store them
        stored, problem = None, str(error)[:1].upper() + str(error)[1:]
        if places is not None:
            raise ValueError(problem) from None
        tell(problem)
    by_output = [] if stored is None else [(names[j], stored[j]) for j in chosen]
    if arguments.json:
        report: dict[str, Any] = {"features": dict(zip(features, overall.tolist(), strict=True))}
        if stored is not None:
            named = {name: zip(features, each.tolist(), strict=True) for name, each in by_output}
            report["outputs"] = {name: dict(shares) for name, shares in named.items()}
        show(as_json(report))
    elif arguments.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["feature", "importance", *(name for name, _ in by_output)])
        columns = [overall, *(each for _, each in by_output)]
        writer.writerows(zip(features, *(each.tolist() for each in columns), strict=True))
    else:
        show(table(["feature", "importance"], _best(features, overall, arguments.top)))
        if by_output and len(names) > 1:
            _show_outputs(features, by_output[:10] if places is None else by_output, arguments.top)
            if places is None and (n_more := len(names) - 10) > 0:
                show(f"({count(n_more, 'more output')}: use --outputs, --csv or --json)")


def _best(features: list[str], shares: Any, top: int) -> list[tuple[str, float]]:
    """Return the most important features and their importances (n_features,)."""
    order = (-shares).argsort(kind="stable")[:top].tolist()
    return [(features[i], float(shares[i])) for i in order if shares[i] > 0]


def _show_outputs(features: list[str], outputs: list[Any], top: int) -> None:
    """Print the most important features of some outputs."""
    rows = []
    for name, shares in outputs:
        best = _best(features, shares, min(top, 3))
        rows.append([name, ", ".join(f"{each} {share:.2f}" for each, share in best) or "none"])
    show("\n" + table(["output", "most important features"], rows))


def feature_names(model: Any) -> list[str]:
    """Return the names of the features of a model, or their numbers."""
    return [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]


def outputs_of_trees(model: Any) -> list[str]:
    """Return the names of the outputs of the trees: one for two classes, one for each quantile."""
    is_binary = data.kind_of(model) == "classes" and model.n_outputs_ == 1
    return list(model._by_level(output_names(model)[1 if is_binary else 0 :]))


def _show_shap(
    arguments: argparse.Namespace, model: Any, names: list[str], places: list[int] | None
) -> None:
    """Write a line for each row and output."""
    import numpy as np

    from manyboost.datasets.readers.columns import features_of

    is_single = len(names) == 1 or getattr(model, "_quantiles", None) is not None
    asked = {} if places is None or is_single else {"outputs": places}
    chosen = range(len(names)) if places is None else places
    _, _, blocks = data.read_rows(arguments, model)
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
            for each in values[:, :, places] if is_single and places is not None else values:
                lines = zip(chosen, each.T.tolist(), strict=True)
                writer.writerows([row, names[j], *line] for j, line in lines)
                row += 1
