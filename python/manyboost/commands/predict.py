"""``manyboost predict``: the predictions of a model for the rows of a file, as CSV."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from manyboost.commands import data
from manyboost.commands.output import check_output, written
from manyboost.commands.usage import UsageError, add_names, positive_int

#: The names of the columns of a prediction, and a function from features to rows.
Prediction: TypeAlias = tuple[Sequence[Any], Callable[[Any], Iterable[Any]]]

SUMMARY = "Predict the rows of a file, and write CSV."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    data.add_file(parser, "rows to predict; features are found by name, other columns are ignored")
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="file to write to (default: standard output)")
    add_names(parser, "--outputs", "predict only these outputs: names or patterns")
    add("--proba", action="store_true", help="predict probabilities (classifiers)")
    meaning = "write the K best labels or classes of each row, with scores (or probabilities)"
    add("--top-k", type=positive_int, metavar="K", help=meaning)


def run(arguments: argparse.Namespace) -> None:
    """Predict block by block, so that memory does not depend on the number of rows."""
    from manyboost.datasets.readers.columns import features_of

    check_output(arguments.output, arguments.model, arguments.file)
    model = data.load_predictor(arguments.model)
    header, predict = _prediction(arguments, model)
    _, _, blocks = data.read_rows(arguments, model)
    with written(arguments.output) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        for X, _ in blocks:
            writer.writerows(predict(features_of(X)))


def _prediction(arguments: argparse.Namespace, model: Any) -> Prediction:
    kind = data.kind_of(model)
    if kind == "regression" and (arguments.proba or arguments.top_k):
        option = "--proba" if arguments.proba else "--top-k"
        raise UsageError(f"{option} is for classifiers, but the model is a regressor.")
    if kind == "columns":
        return _columns(arguments, model)
    if arguments.top_k:
        if arguments.outputs:
            raise UsageError("--top-k cannot be combined with --outputs; remove one of them.")
        if arguments.top_k > (most := model.n_classes_):
            raise UsageError(f"--top-k {arguments.top_k} is more than the {most} that there are.")
        return _best(model, arguments.top_k, proba=arguments.proba)
    names = output_names(model)
    by_class = kind == "classes" and not arguments.proba
    if arguments.outputs and (by_class or (kind == "classes" and model.n_outputs_ == 1)):
        raise UsageError("--outputs is for several outputs, but the model predicts one class.")
    places = None
    if arguments.outputs:
        places = data.matching("--outputs", arguments.outputs, names, "the model")
        names = [names[j] for j in places]
    if arguments.proba:
        return names, lambda X: model.predict_proba(X, outputs=places).tolist()
    if by_class:
        name = getattr(model, "target_name_", "class")
        return [name], lambda X: ([label] for label in model.predict(X).tolist())
    if model._is_single():
        places = None
    header = model._by_level(names)
    return header, lambda X: model.predict(X, outputs=places).reshape(len(X), -1).tolist()


def _columns(arguments: argparse.Namespace, model: Any) -> Prediction:
    """Return the classes of several columns, or the probabilities of all of them."""
    import numpy as np

    for option, given in (("--top-k", arguments.top_k), ("--outputs", arguments.outputs)):
        if given:
            what = f"the model predicts {len(model.classes_)} columns of classes"
            raise UsageError(f"{option} is not for models of this kind: {what}; remove it.")
    names = column_names(model)
    if not arguments.proba:
        return names, lambda X: model.predict(X).tolist()
    columns = zip(names, model.classes_, strict=True)
    header = [f"{name}={each}" for name, classes in columns for each in classes]
    return header, lambda X: np.hstack(model.predict_proba(X)).tolist()


def column_names(model: Any) -> list[str]:
    """Return the names of several columns of classes."""
    return data.target_names(model) or [f"y{j}" for j in range(len(model.classes_))]


def output_names(model: Any) -> list[str]:
    """Return the names of what a model predicts: outputs, labels or classes."""
    if data.kind_of(model) == "classes":
        return [str(label) for label in model.classes_]
    n_outputs = model.n_outputs_ // model._n_levels
    names = model._known_names()
    return [f"y{j}" for j in range(n_outputs)] if names is None else [*map(str, names)]


def _best(model: Any, k: int, *, proba: bool) -> Prediction:
    import numpy as np

    header = [word for i in range(1, k + 1) for word in (f"top_{i}", f"score_{i}")]

    place = {label: j for j, label in enumerate(model.classes_.tolist())}

    def rows(X: Any) -> Iterable[Any]:
        labels, scores = model.predict_top_k(X, k)
        if proba:
            shares = model.predict_proba(X)
            scores = shares[np.arange(len(shares))[:, None], np.vectorize(place.get)(labels)]
        for each in zip(labels.tolist(), scores.tolist(), strict=True):
            yield [cell for pair in zip(*each, strict=True) for cell in pair]

    return header, rows
