"""``manyboost evaluate``: score a model on the rows of a file."""

from __future__ import annotations

import argparse
from typing import Any

from manyboost.commands import data
from manyboost.commands.output import as_json, count, show, table, tell
from manyboost.commands.usage import positive_int

SUMMARY = "Score a model on a file that contains the true outputs."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    data.add_file(parser, "rows to score, with their outputs", "test")
    data.add_targets(parser, "the outputs of the model")
    add = parser.add_argument
    meaning = "number of worst outputs to show (default: 5)"
    add("--worst", type=positive_int, default=5, metavar="N", help=meaning)
    add("--json", action="store_true", help="print the scores of all outputs as JSON")


def run(arguments: argparse.Namespace) -> None:
    import numpy as np

    from manyboost.commands.scores import Ranking, predictor, score_model
    from manyboost.datasets.readers.columns import features_of, stack

    model = data.load_predictor(arguments.model)
    file, names, blocks = data.read_rows(arguments, model, with_outputs=True)
    kind = data.kind_of(model)
    chosen: Any = predictor(model)
    parts = [(chosen.of(model, features_of(X)), Y) for X, Y in blocks]
    if not parts:
        raise ValueError(f"{file.file} has no rows to score; check the file and --rows.")
    truth = data.outputs_like(model, stack([Y for _, Y in parts])).values
    if kind == "classes" and (unknown := int((~np.isin(truth, model.classes_)).sum())):
        where = f"in {count(unknown, 'row')} of {file.file}"
        tell(f"Classes unknown to the model, {where}, count as errors; the log loss omits them.")
    names = data.target_names(model) or names
    predictions = chosen.joined([part for part, _ in parts])
    scores = score_model(model, predictions, truth, names)
    n_rows = truth.shape[0]
    if arguments.json:
        report = {"rows": n_rows, "task": kind, "scores": scores.overall}
        show(as_json(report | {"by_output": scores.by_output}))
        return
    words = {"labels": "label", "classes": "class", "columns": "column"}
    what = words.get(kind, "output")
    n_outputs = len(scores.by_output)
    outputs = f"{n_outputs:,} classes" if kind == "classes" else count(n_outputs, what)
    if chosen is Ranking:
        outputs = f"{count(model.n_outputs_, what)}, of which {n_outputs:,} occur"
    show(f"{file.file}: {count(n_rows, data.row_noun(file.part))}, {outputs}.\n")
    show(table(["score", "value"], list(scores.overall.items())))
    if n_outputs > 1:
        worst = scores.worst(arguments.worst)
        header = [f"worst {what}", *scores.by_output[worst[0]]]
        rows = [[name, *scores.by_output[name].values()] for name in worst]
        show("\n" + table(header, rows))
