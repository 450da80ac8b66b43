"""``manyboost evaluate``: score a model on the rows of a file."""

from __future__ import annotations

import argparse
import json

from manyboost.commands import data
from manyboost.commands.output import count, show, table, tell
from manyboost.commands.usage import positive_int

SUMMARY = "Score a model on a file that contains the true outputs."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    data.add_file(parser, "rows to score, with their outputs", "test")
    data.add_targets(parser, "the outputs of the model")
    add = parser.add_argument
    meaning = "number of worst outputs to show (default: 5)"
    add("--worst", type=positive_int, default=5, metavar="N", help=meaning)
    add("--json", action="store_true", help="print the scores of all outputs as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Score the model."""
    import numpy as np

    from manyboost.commands.scores import Predictions, score_model
    from manyboost.datasets.readers.columns import features_of, stack

    model = data.load_model(arguments.model)
    rows = data.read_rows(arguments, model, with_outputs=True)
    file = rows.file
    predictions, outputs = [], []
    for X, Y in rows.blocks:
        predictions.append(Predictions.of(model, features_of(X)))
        outputs.append(Y)
    if not predictions:
        raise ValueError(f"{file} has no rows to score; check the file and --rows.")
    truth = data.outputs_like(model, stack(outputs)).values
    kind = data.kind_of(model)
    if kind == "classes" and (unknown := int((~np.isin(truth, model.classes_)).sum())):
        tell(
            f"Classes unknown to the model, in {count(unknown, 'row')} of {file}, count as errors "
            "and are left out of the log loss."
        )
    names = data.target_names(model) or rows.outputs
    scores = score_model(model, Predictions.joined(predictions), truth, names)
    if arguments.json:
        report = {"rows": len(truth), "task": kind, "scores": scores.overall}
        show(json.dumps(report | {"by_output": scores.by_output}, indent=2))
        return
    what = {"labels": "label", "classes": "class"}.get(kind, "output")
    n_rows, n_outputs = len(truth), len(scores.by_output)
    outputs_found = f"{n_outputs:,} classes" if kind == "classes" else count(n_outputs, what)
    show(f"{file}: {count(n_rows, data.row_noun(rows.part))}, {outputs_found}.")
    show()
    show(table(["score", "value"], list(scores.overall.items())))
    if len(scores.by_output) > 1:
        worst = scores.worst(arguments.worst)
        header = [f"worst {what}", *scores.by_output[worst[0]]]
        show()
        show(table(header, [[name, *scores.by_output[name].values()] for name in worst]))
