"""What verbs read: a problem to learn, or rows that a model knows how to take."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyboost.commands import UsageError, count, nearest, patterns

if TYPE_CHECKING:
    from manyboost.data.named import NamedColumn, NamedTable
    from manyboost.datasets.readers.columns import Kind, Table
    from manyboost.datasets.readers.files import TableFile

FORMATS = ("csv", "parquet", "arff", "npz", "svmlight", "xc")
#: Categories that a feature can have.
MOST_CATEGORIES = 255
#: Different whole numbers in a single output up to which they could well be classes.
MOST_DOUBTFUL = 20


def add_file(parser: argparse.ArgumentParser, what: str, default_rows: str = "all") -> None:
    """Declare the file that a verb reads."""
    add = parser.add_argument
    # Not required by argparse, whose words would not tell what went wrong.
    add("file", nargs="?", metavar="FILE", help=f"{what}; - is standard input")
    add("--format", choices=FORMATS, help="format of the file (default: as its ending says)")
    add("--delimiter", metavar="C", help="what separates cells of a CSV file (default: a comma)")
    add(
        "--rows",
        choices=("train", "test", "all"),
        default=default_rows,
        help="rows to read of a file that has a split of its own, .npz (default: %(default)s)",
    )


def add_targets(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare how a verb is told which columns are outputs."""
    add = parser.add_argument
    add(
        "--target",
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"columns that are outputs: names or patterns such as 'y*' (default: {default})",
    )
    add("--targets-prefix", metavar="TEXT", help="columns whose names begin so are outputs too")


def add_ignore(parser: argparse.ArgumentParser) -> None:
    """Declare the columns that are left out."""
    parser.add_argument(
        "--ignore", nargs="+", action="extend", metavar="NAME", help="columns to leave out"
    )


def open_data(
    arguments: argparse.Namespace, model: Any = None, *, task: str | None = None
) -> TableFile:
    """Open the file that was named; one that names features by number counts as the model does."""
    from manyboost.datasets.readers.files import format_of, open_file

    if arguments.file is None:
        raise UsageError(
            "Name the file to read, and put it before options that take several names, such as "
            "--target."
        )
    delimiter = arguments.delimiter
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")
        if len(delimiter) != 1:
            raise UsageError(f"--delimiter {arguments.delimiter!r} is not a single character.")
    format_ = arguments.format
    if format_ is None:
        try:
            format_ = format_of(arguments.file)
        except ValueError as error:
            raise UsageError(str(error).replace("name the format", "pass --format")) from None
    like = None
    if model is not None and hasattr(model, "feature_names_in_"):
        like = model.feature_names_in_.tolist(), target_names(model)
    file = open_file(
        arguments.file,
        format=format_,
        delimiter=delimiter,
        part=arguments.rows,
        like=like,
        targets="numbers" if task == "regression" else "auto",
    )
    if len(file.names) == 1 and format_ == "csv":
        other = next((c for c in ";\t|" if c in file.names[0]), None)
        if other is not None:
            shown = "\\t" if other == "\t" else other
            raise UsageError(
                f"{file.file} has a single column, {file.names[0]!r}; pass --delimiter '{shown}'."
            )
    return file


# ------------------------------------------------------------------ to learn


@dataclass(frozen=True)
class Problem:
    """Features and outputs of a file, and what the outputs are."""

    file: str
    X: NamedTable
    Y: NamedTable | NamedColumn
    kind: Kind
    part: str | None = None

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        from manyboost.data.named import NamedColumn

        return [self.Y.name] if isinstance(self.Y, NamedColumn) else self.Y.columns

    @property
    def description(self) -> str:
        """What the file holds, in a sentence."""
        rows, features = self.X.shape
        nominal = len(self.X.categories)
        of_categories = f" ({nominal:,} of categories)" if nominal else ""
        what = {
            "regression": f"{count(len(self.outputs), 'output')} of numbers: regression",
            "labels": f"{count(len(self.outputs), 'label')}: multi-label classification",
            "classes": f"classes in {self.outputs[0]!r}: classification",
        }
        doubt = ""
        if self.kind == "regression" and len(self.outputs) == 1:
            values = set(self.Y.values.tolist())
            if len(values) <= MOST_DOUBTFUL and all(value.is_integer() for value in values):
                doubt = (
                    f" {self.outputs[0]!r} holds {len(values)} different whole numbers: if they "
                    "are classes, pass --task classification."
                )
        return (
            f"{self.file}: {described_rows(rows, self.part)}, {count(features, 'feature')}"
            f"{of_categories}, {what[self.kind]}.{doubt}"
        )


def described_rows(number: int, part: str | None) -> str:
    """A number of rows, and which they are."""
    return count(number, {"train": "training row", "test": "test row"}.get(part or "", "row"))


def read_problem(arguments: argparse.Namespace, task: str | None) -> Problem:
    """Read a file to learn from; ``task`` is what the parameters ask for, if they do."""
    from manyboost.datasets.readers.columns import features_of, outputs_of, stack

    task = arguments.task or task
    file = open_data(arguments, task=task)
    outputs = _chosen_outputs(arguments, file)
    if outputs is None:
        raise UsageError(
            f"Say which columns of {file.file} are outputs, with --target; {_listing(file.names)}."
        )
    ignored = patterns("--ignore", arguments.ignore or [], file.names, file.file)
    if both := set(outputs) & set(ignored):
        raise UsageError(
            f"The column {file.names[min(both)]!r} is in both --target and --ignore; take it out "
            "of one."
        )
    left_out = {*outputs, *ignored, *(file.declared or ())}
    features = [i for i in range(len(file.names)) if i not in left_out]
    if not features:
        raise UsageError(f"{file.file} is left without any feature; see --target and --ignore.")
    nominal = _nominal(arguments, file, features)
    tables: tuple[list[Table], list[Table]] = ([], [])
    for pair in file.blocks(features, outputs, dict.fromkeys(nominal, True)):
        for table, found in zip(tables, pair, strict=True):
            table.append(found)
    if not tables[0]:
        raise ValueError(f"{file.file} has no rows; a model needs some.")
    X = features_of(stack(tables[0]))
    _check_categories(file.file, X)
    Y, kind = outputs_of(stack(tables[1]), task)  # type: ignore[arg-type]
    return Problem(file.file, X, Y, kind, file.part)


def _chosen_outputs(arguments: argparse.Namespace, file: TableFile) -> list[int] | None:
    """Places of the outputs that were asked for, else of those that the file declares."""
    places = range(len(file.names))
    if len(set(file.names)) < len(places) and file.declared is not None:
        # Features of the same names are not meant.
        places = range(min(file.declared), len(file.names))
    names = [file.names[i] for i in places]
    chosen = []
    if arguments.target:
        chosen += patterns("--target", arguments.target, names, file.file)
    if arguments.targets_prefix is not None:
        begin = arguments.targets_prefix
        found = [j for j, name in enumerate(names) if name.startswith(begin)]
        if not found:
            raise UsageError(
                f"--targets-prefix {begin!r} begins no column of {file.file}; {_listing(names)}."
            )
        chosen += found
    if chosen:
        return [places[j] for j in dict.fromkeys(chosen)]
    return None if file.declared is None else list(file.declared)


def _nominal(arguments: argparse.Namespace, file: TableFile, features: Sequence[int]) -> list[int]:
    """Places of the features that are to be read as categories, whatever they hold."""
    names = [file.names[i] for i in features]
    wanted = getattr(arguments, "categorical_features", None) or []
    return [features[j] for j in patterns("--categorical-features", wanted, names, file.file)]


def _check_categories(file: str, X: NamedTable) -> None:
    for j in X.categories:
        n_labels = len(X.labels(j))
        if n_labels > MOST_CATEGORIES:
            name = X.columns[j]
            raise ValueError(
                f"Column {name!r} of {file} holds text, {n_labels:,} different values, and a "
                f"feature can have {MOST_CATEGORIES} categories; merge rare ones, or leave it out "
                f"with --ignore {name!r}."
            )


# ------------------------------------------------------------------ for a model


def target_names(model: Any) -> list[str]:
    """Names of the outputs of y that a model was fitted to, empty if they had none."""
    if hasattr(model, "target_name_"):
        return [str(model.target_name_)]
    names = getattr(model, "output_names_", ())
    return [str(name) for name in names]


def kind_of(model: Any) -> Kind:
    """Return what the outputs of a model are."""
    if not hasattr(model, "classes_"):
        return "regression"
    return "labels" if model._classes.kind == "multilabel" else "classes"


def outputs_like(model: Any, table: Table) -> NamedTable | NamedColumn:
    """Return all columns of a table as the outputs of a model."""
    import numpy as np

    from manyboost.data.named import NamedColumn
    from manyboost.datasets.readers.columns import outputs_of

    kind = kind_of(model)
    outputs, _ = outputs_of(table, "regression" if kind == "regression" else "classification")
    if not (isinstance(outputs, NamedColumn) and _in_words(model)):
        return outputs
    named = {str(label): label for label in model.classes_.tolist()}
    labels = outputs.to_list()
    if model.classes_.dtype.kind == "b":
        for label in labels:
            if label not in named:
                raise ValueError(
                    f"{table.file} has the class {label!r}, but the model knows "
                    f"{' and '.join(named)} alone."
                )
    # (Text of any length: a type of fixed length would cut off classes that are not known.)
    dtype = bool if model.classes_.dtype.kind == "b" else object
    return NamedColumn(outputs.name, np.array([named.get(each, each) for each in labels], dtype))


def _in_words(model: Any) -> bool:
    """Whether the classes of a model are not numbers."""
    return kind_of(model) == "classes" and model.classes_.dtype.kind not in "iuf"


@dataclass(frozen=True)
class Rows:
    """Features of a model in a file, and if asked for its outputs, in blocks."""

    file: str
    part: str | None
    outputs: list[str]
    blocks: Iterator[tuple[Table, Table]]


def read_rows(arguments: argparse.Namespace, model: Any, *, with_outputs: bool = False) -> Rows:
    """Open a file whose columns are those of a model."""
    file = open_data(arguments, model)
    places = _output_places(arguments, file, model) if with_outputs else []
    features = _feature_places(arguments, file, model, places)
    labelled = model._category_labels.of_column
    is_nominal = {i: j in labelled for j, i in enumerate(features)}
    if _in_words(model):
        is_nominal |= dict.fromkeys(places, True)
    names = [file.names[i] for i in places]
    return Rows(file.file, file.part, names, file.blocks(features, places, is_nominal))


def _output_places(arguments: argparse.Namespace, file: TableFile, model: Any) -> list[int]:
    """Places of the outputs of a model, in its order: those asked for, else those of its names."""
    wanted = 1 if kind_of(model) == "classes" else model.n_outputs_ // model._n_levels
    if arguments.target or arguments.targets_prefix is not None:
        chosen = _chosen_outputs(arguments, file) or []
        if len(chosen) != wanted:
            raise UsageError(
                f"--target stands for {count(len(chosen), 'column')} of {file.file}, but the model "
                f"has {count(wanted, 'output')}; name one column for each, in their order."
            )
        return chosen
    names = target_names(model)
    if not names:
        raise UsageError("The model does not know the names of its outputs; give them by --target.")
    # Of an output and a feature of one name the output comes last.
    place = {name: i for i, name in enumerate(file.names)}
    for name in names:
        if name not in place:
            raise ValueError(
                f"{file.file} lacks the output {name!r} of the model; {nearest(name, file.names)}"
            )
    return [place[name] for name in names]


def _feature_places(
    arguments: argparse.Namespace, file: TableFile, model: Any, outputs: Sequence[int]
) -> list[int]:
    """Places of the features of a model, in its order."""
    declared = set(file.declared or ())
    ignored = patterns("--ignore", arguments.ignore or [], file.names, file.file)
    if hasattr(model, "feature_names_in_"):
        place = {name: i for i, name in enumerate(file.names) if i not in declared}
        wanted = [str(name) for name in model.feature_names_in_]
        missing = [name for name in wanted if name not in place]
        if missing:
            spare = [name for name in place if name not in wanted]
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            hint = nearest(missing[0], spare) if spare else "add it."
            raise ValueError(
                f"{file.file} lacks the feature {missing[0]!r}{more} of the model; {hint}"
            )
        for i in ignored:
            if file.names[i] in wanted:
                raise UsageError(
                    f"--ignore leaves out {file.names[i]!r}, which is a feature of the model."
                )
        return [place[name] for name in wanted]
    known = {*target_names(model)}
    left_out = {*ignored, *declared, *outputs}
    features = [i for i, name in enumerate(file.names) if i not in left_out and name not in known]
    if len(features) != model.n_features_in_:
        raise ValueError(
            f"{file.file} has {count(len(features), 'column')} for the "
            f"{count(model.n_features_in_, 'feature')} of the model, which have no names; leave "
            "out the others with --ignore."
        )
    return features


def load_model(path: str) -> Any:
    """Load a model file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"The model file {path!r} does not exist; check its name.")
    import manyboost

    return manyboost.load(path)


def _listing(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"there are {', '.join(names[:most])}{more}"
