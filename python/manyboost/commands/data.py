"""The files that verbs read: a problem to learn, or rows with the columns of a model."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyboost.commands.output import count, tell
from manyboost.commands.usage import UsageError, add_names
from manyboost.spelling import likely_pairs, listing, nearest

if TYPE_CHECKING:
    from manyboost.data.named import NamedColumn, NamedTable
    from manyboost.datasets.readers.columns import Kind, Table
    from manyboost.datasets.readers.files import TableFile

FORMATS = ("csv", "parquet", "arff", "npz", "svmlight", "xc")
#: Up to so many distinct integers in a single output may be classes.
MOST_DOUBTFUL = 20


def add_file(parser: argparse.ArgumentParser, what: str, default_rows: str = "all") -> None:
    """Declare the file that a verb reads."""
    add = parser.add_argument
    # Optional for argparse, whose error would not explain what went wrong.
    add("file", nargs="?", metavar="FILE", help=f"{what}; - is standard input")
    add("--format", choices=FORMATS, help="format of the file (default: from its ending)")
    add("--delimiter", metavar="C", help="character between the cells of a CSV file (default: ,)")
    add("--encoding", metavar="NAME", help="encoding of a CSV or ARFF file (default: utf-8)")
    meaning = f"rows to use if the file contains a split, as .npz may (default: {default_rows})"
    add("--rows", choices=("train", "test", "all"), help=meaning)
    parser.set_defaults(default_rows=default_rows)
    add_names(parser, "--ignore", "columns to leave out")


def add_targets(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare how a verb is told which columns are outputs."""
    meaning = f"columns to predict: names or patterns such as 'y*' (default: {default})"
    add_names(parser, "--target", meaning)
    meaning = "also predict the columns that begin with TEXT"
    parser.add_argument("--targets-prefix", metavar="TEXT", help=meaning)


def add_problem(parser: argparse.ArgumentParser) -> None:
    """Declare the file that a verb learns from, its outputs and the task."""
    add_file(parser, "rows to learn from", "train")
    add_targets(parser, "the outputs that the file declares")
    meaning = "the task (default: classification for text and 0/1, regression for other numbers)"
    parser.add_argument("--task", choices=("classification", "regression"), help=meaning)


def matching(option: str, wanted: Iterable[str], known: Sequence[str], place: str) -> list[int]:
    """Return the indices of names, or of all names that match a glob pattern."""
    from manyboost.datasets.readers.columns import SelectionError, select

    try:
        return select(list(wanted), known, place, option)
    except SelectionError as error:
        raise UsageError(f"{option} {error.pattern!r} {error.problem}") from None


def open_data(arguments: argparse.Namespace, model: Any = None, task: Any = None) -> TableFile:
    """Open the file of a command; svmlight files get the features and outputs of the model."""
    from manyboost.datasets.readers.files import open_file
    from manyboost.datasets.readers.text import (
        ENDINGS,
        check_delimiter,
        format_of,
        known_encoding,
    )

    if arguments.file is None:
        raise UsageError(
            "Name the file to read, and put it before options that take several names (--target)."
        )
    delimiter, encoding = arguments.delimiter, arguments.encoding
    try:
        if delimiter is not None:
            delimiter = check_delimiter(delimiter.replace("\\t", "\t"))
        encoding = None if encoding is None else known_encoding(encoding)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    format_ = arguments.format or format_of(arguments.file)
    if format_ is None:
        what = f"The format of {Path(arguments.file).name!r} is unknown; pass --format"
        raise UsageError(f"{what}, or use one of the endings {', '.join(ENDINGS)} (and .gz).")
    for flag, given, formats in (
        ("--delimiter", delimiter, ("csv",)),
        ("--encoding", encoding, ("csv", "arff")),
    ):
        if given is not None and format_ not in formats:
            what = f"{flag} is for the format{'s' if len(formats) > 1 else ''} {listing(formats)}"
            raise UsageError(f"{what}, but {Path(arguments.file).name} is {format_}; remove it.")
    like = None
    if model is not None and hasattr(model, "feature_names_in_"):
        like = model.feature_names_in_.tolist(), target_names(model)
    part = arguments.rows or arguments.default_rows
    how: Any = {"delimiter": delimiter, "encoding": encoding, "part": part, "like": like}
    how["targets"] = "numbers" if task == "regression" else "auto"
    file = open_file(arguments.file, format_, **how)
    if file.part is None and arguments.rows in ("train", "test"):
        raise UsageError(f"{file.file} has no split into training and test rows; remove --rows.")
    if len(file.names) == 1 and format_ == "csv":
        for other, shown in ((";", ";"), ("\t", "\\t"), ("|", "|")):
            if other in file.names[0]:
                what = f"{file.file} has a single column, {file.names[0]!r}"
                raise UsageError(f"{what}; pass --delimiter '{shown}'.")
    return file


def row_noun(part: str | None) -> str:
    """Return what to call a row of a part of a file."""
    return {"train": "training row", "test": "test row"}.get(part or "", "row")


#: Numbers that are not written as such: how they look, what they are, and what to make of them.
_WRITTEN = (
    (
        re.compile(r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4}|\d\d?/\d\d?/\d\d)\b"),
        "dates",
        "numbers, such as days",
    ),
    (re.compile(r"[-+]?[\d.,]+ ?%$"), "percentages", "numbers, without the sign"),
)


@dataclass(frozen=True)
class Problem:
    """Features and outputs of a file, and what the outputs are."""

    file: str
    X: NamedTable
    Y: NamedTable | NamedColumn
    kind: Kind
    part: str | None = None
    left_out: Sequence[str] = ()  # columns that are neither features nor outputs, in words

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return getattr(self.Y, "columns", None) or [self.Y.name]  # type: ignore[union-attr]

    @property
    def classes(self) -> set[Any]:
        """The classes of classification; those of labels are 0 and 1."""
        return {0, 1} if self.kind == "labels" else {*self.Y.values.ravel().tolist()} - {None}

    @property
    def description(self) -> str:
        """What the file holds, in a sentence."""
        rows, features = self.X.shape
        name, n_outputs, nominal = self.outputs[0], len(self.outputs), len(self.X.categories)
        kinds = {
            "regression": f"{count(n_outputs, 'output')}: regression",
            "labels": f"{count(n_outputs, 'label')}: multi-label classification",
            "classes": f"classes in {name!r}: classification",
            "columns": f"{count(n_outputs, 'column')} of classes: classification",
        }
        text = f"{self.file}: {count(rows, row_noun(self.part))}, {count(features, 'feature')}"
        text += f" ({nominal:,} categorical)" if nominal else ""
        text += f", {kinds[self.kind]}."
        if self.left_out:
            text += f" Left out: {', '.join(self.left_out)}."
        for j, labels in self.X.categories.items():
            for pattern, what, numbers in _WRITTEN:
                if labels and all(map(pattern.match, labels)):
                    column = self.X.columns[j]
                    text += f" {column!r} holds {what}, which count as categories: turn them into "
                    text += f"{numbers}, or leave them out with --ignore."
        if self.kind == "regression" and n_outputs == 1:
            values = set(self.Y.values.tolist())
            if len(values) <= MOST_DOUBTFUL and all(value.is_integer() for value in values):
                text += f" {name!r} holds {count(len(values), 'distinct integer')}: if they are "
                text += "classes, pass --task classification."
        return text


def read_problem(arguments: argparse.Namespace, task: str | None) -> Problem:
    """Read a file to learn from; ``task`` is the one that the parameters imply, if any."""
    from manyboost.datasets.readers.columns import features_of, outputs_of, whole

    task = arguments.task or task
    file = open_data(arguments, task=task)
    outputs = _chosen_outputs(arguments, file)
    if outputs is None:
        what = f"Say which columns of {file.file} to predict, with --target"
        raise UsageError(f"{what}; the columns are {listing(file.names, 8)}.")
    ignored = _ignored(arguments, file)
    if both := set(outputs) & set(ignored):
        name = file.names[min(both)]
        raise UsageError(
            f"The column {name!r} is in both --target and --ignore; remove it from one."
        )
    left_out = {*outputs, *ignored, *(file.declared or ())}
    features = [i for i in range(len(file.names)) if i not in left_out]
    if not features:
        raise UsageError(f"{file.file} is left without any feature; check --target and --ignore.")
    wanted = getattr(arguments, "categorical_features", None) or []
    names = [file.names[i] for i in features]
    nominal = matching("--categorical-features", wanted, names, file.file)
    blocks = file.blocks(features, outputs, {features[j]: True for j in nominal})
    X_table, Y_table = whole(file.file, blocks)
    X = features_of(X_table)
    Y, kind = outputs_of(Y_table, task)  # type: ignore[arg-type]
    shown = [f"column {file.names[i]!r}" for i in ignored]
    if others := sorted({*(file.declared or ())} - {*outputs, *ignored}):
        which = listing([file.names[i] for i in others])
        shown.append(f"the output{'s' if len(others) > 1 else ''} {which}")
    shown += ["the index, which has no name"] if file.has_index else []
    return Problem(file.file, X, Y, kind, file.part, shown)


def _chosen_outputs(arguments: argparse.Namespace, file: TableFile) -> list[int] | None:
    """Return the indices of the outputs of the command, else of those that the file declares."""
    # If a feature has the same name as an output, the output is meant.
    places = range(_first_output(file) or 0, len(file.names))
    names = [file.names[i] for i in places]
    chosen = matching("--target", arguments.target or [], names, file.file)
    if (prefix := arguments.targets_prefix) is not None:
        found = [j for j, name in enumerate(names) if name.startswith(prefix)]
        if not found:
            what = f"No column of {file.file} begins with --targets-prefix {prefix!r}"
            raise UsageError(f"{what}; the columns are {listing(names, 8)}.")
        chosen += found
    if chosen:
        return [places[j] for j in dict.fromkeys(chosen)]
    return None if file.declared is None else list(file.declared)


def _ignored(arguments: argparse.Namespace, file: TableFile) -> list[int]:
    """Return the indices of the columns to leave out."""
    # If a feature has the same name as an output, the feature is meant.
    features, found = file.names[: _first_output(file)], []
    for wanted in arguments.ignore or []:
        is_feature = wanted in features or any(fnmatchcase(name, wanted) for name in features)
        found += matching("--ignore", [wanted], features if is_feature else file.names, file.file)
    return list(dict.fromkeys(found))


def _first_output(file: TableFile) -> int | None:
    """Return where the outputs begin, behind the features, if some have the name of a feature."""
    if file.declared is None or len(set(file.names)) == len(file.names):
        return None
    return min(file.declared)


def load_model(path: str) -> Any:
    """Load a model file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"The model file {path!r} does not exist; check its name.")
    import manyboost

    return manyboost.load(path)


def load_predictor(path: str) -> Any:
    """Load a model that predicts arrays; one that needs offsets, which no file has, is refused."""
    model = load_model(path)
    if model._with_offset:
        what = "The model was fitted with an offset, which commands cannot take"
        raise ValueError(f"{what}; use manyboost.load in Python and pass offset= to its methods.")
    return model.set_output(predict="default")


def target_names(model: Any) -> list[str]:
    """Names of the outputs of y that a model was fitted to, empty if they had none."""
    if hasattr(model, "target_name_"):
        return [str(model.target_name_)]
    names = getattr(model, "output_names_", getattr(model, "target_names_", ()))
    return [str(name) for name in names]


def kind_of(model: Any) -> Kind:
    """Return what the outputs of a model are."""
    if not hasattr(model, "classes_"):
        return "regression"
    kinds: dict[str, Kind] = {"multilabel": "labels", "columns": "columns"}
    return kinds.get(model._classes.kind, "classes")


def outputs_like(model: Any, table: Table) -> NamedTable | NamedColumn:
    """Return all columns of a table as the outputs of a model."""
    import numpy as np

    from manyboost.data.named import NamedColumn, NamedTable
    from manyboost.datasets.readers.columns import class_columns, outputs_of, typed_outputs

    if kind_of(model) == "columns":
        columns = class_columns(table)
        for values, classes in zip(columns.values.T, model.classes_, strict=True):
            if _are_text(classes):
                values[:] = _known(classes, values)
        return columns
    if kind_of(model) == "labels":
        labels, _ = typed_outputs(table, "multilabel", missing_labels=True)
        return NamedTable(table.names, labels)
    is_regression = kind_of(model) == "regression"
    outputs, _ = outputs_of(table, "regression" if is_regression else "classification")
    if not (isinstance(outputs, NamedColumn) and _has_text_classes(model)):
        return outputs
    labels = _known(model.classes_, outputs.to_list())
    is_boolean = model.classes_.dtype.kind == "b"
    if is_boolean and (unknown := [each for each in labels if not isinstance(each, bool)]):
        what = f"{table.file} has the class {unknown[0]!r}"
        raise ValueError(f"{what}, but the model knows only False and True; correct it.")
    # Objects: text of fixed length would truncate unknown classes.
    return NamedColumn(outputs.name, np.array(labels, bool if is_boolean else object))


def _known(classes: Any, texts: Iterable[Any]) -> list[Any]:
    """Return classes of a model for their texts; other texts stay."""
    named = {str(each): each for each in classes.tolist()}
    return [named.get(each, each) for each in texts]


def _has_text_classes(model: Any) -> bool:
    """Whether the classes of a model are text or booleans."""
    return kind_of(model) == "classes" and _are_text(model.classes_)


def _are_text(classes: Any) -> bool:
    return classes.dtype.kind not in "iuf"


def read_rows(
    arguments: argparse.Namespace, model: Any, *, with_outputs: bool = False
) -> tuple[TableFile, list[str], Iterator[tuple[Table, Table]]]:
    """Open a file of a model's columns; return it, names of outputs if wanted, and its blocks."""
    file = open_data(arguments, model)
    places = _output_places(arguments, file, model) if with_outputs else []
    features = _feature_places(arguments, file, model, places)
    labelled = model._category_labels.of_column
    is_nominal = {i: j in labelled for j, i in enumerate(features)}
    if kind_of(model) in ("classes", "regression"):
        is_nominal |= dict.fromkeys(places, _has_text_classes(model))
    if kind_of(model) == "columns":
        is_nominal |= {i: _are_text(each) for i, each in zip(places, model.classes_, strict=False)}
    names = [file.names[i] for i in places]
    blocks = file.blocks(features, places, is_nominal)
    return file, names, _told_of_unknown(labelled, file.file, blocks)


def _told_of_unknown(
    labelled: Mapping[int, Sequence[Any]], file: str, blocks: Iterable[tuple[Table, Table]]
) -> Iterator[tuple[Table, Table]]:
    """Yield blocks, and tell of columns none of whose categories the model knows: 1.0 for 1."""
    known = {j: set(map(str, labels)) for j, labels in labelled.items()}
    for X, Y in blocks:
        for j, found in X.categories.items():
            if found and j in known and known[j].isdisjoint(found):
                what = f"No category of column {X.names[j]!r} of {file} is known to the model"
                both = (
                    f"it has {listing(found, 3)}, the model {listing([*map(str, labelled[j])], 3)}"
                )
                tell(f"{what}: {both}; they count as missing.")
                del known[j]  # once is enough
        yield X, Y


def _output_places(arguments: argparse.Namespace, file: TableFile, model: Any) -> list[int]:
    """Return the indices of the outputs of a model, in its order."""
    names, kind, wanted = target_names(model), kind_of(model), model.n_outputs_ // model._n_levels
    if kind in ("classes", "columns"):
        wanted = 1 if kind == "classes" else len(model.classes_)
    if arguments.target or arguments.targets_prefix is not None:
        chosen = _chosen_outputs(arguments, file) or []
        if len(chosen) != wanted:
            what = f"--target selects {count(len(chosen), 'column')} of {file.file}, but the model"
            remedy = "name one column for each, in the same order."
            raise UsageError(f"{what} has {count(wanted, 'output')}; {remedy}")
        place = {file.names[i]: i for i in chosen}
        return [place[name] for name in names] if place.keys() == set(names) else chosen
    if not names:
        raise UsageError("The outputs of the model have no names; name the columns with --target.")
    # If an output and a feature share a name, the output comes last.
    place = {name: i for i, name in enumerate(file.names)}
    for name in names:
        if name not in place:
            hint = nearest(name, file.names)
            raise ValueError(f"{file.file} lacks the output {name!r} of the model; {hint}")
    return [place[name] for name in names]


def _feature_places(
    arguments: argparse.Namespace, file: TableFile, model: Any, outputs: Sequence[int]
) -> list[int]:
    """Return the indices of the features of a model, in its order."""
    declared = set(file.declared or ())
    ignored = _ignored(arguments, file)
    if lost := set(ignored) & set(outputs):
        name = file.names[min(lost)]
        raise UsageError(f"--ignore leaves out {name!r}, which is an output of the model.")
    if hasattr(model, "feature_names_in_"):
        place = {name: i for i, name in enumerate(file.names) if i not in declared}
        wanted = [str(name) for name in model.feature_names_in_]
        if missing := [name for name in wanted if name not in place]:
            spare = [name for name in place if name not in wanted]
            several = len(missing) > 1
            hint = likely_pairs(spare, missing) or ("add them." if several else "add it.")
            noun = "features" if several else "feature"
            raise ValueError(
                f"{file.file} lacks the {noun} {listing(missing)} of the model; {hint}"
            )
        if both := {file.names[i] for i in ignored} & set(wanted):
            raise UsageError(f"--ignore leaves out {min(both)!r}, which is a feature of the model.")
        return [place[name] for name in wanted]
    left_out = {*ignored, *declared, *outputs}
    known = target_names(model)
    features = [i for i, name in enumerate(file.names) if i not in left_out and name not in known]
    if len(features) != model.n_features_in_:
        found, expected = count(len(features), "column"), count(model.n_features_in_, "feature")
        what = f"{file.file} has {found} for the {expected} of the model, which have no names"
        raise ValueError(f"{what}; leave out the others with --ignore.")
    return features
