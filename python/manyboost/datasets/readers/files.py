"""Files of any format, opened by their ending: names of columns first, then rows in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import numpy as np

from manyboost.datasets.dataset import Dataset
from manyboost.datasets.readers.arff import arff_table
from manyboost.datasets.readers.columns import BINARY, Column, Table
from manyboost.datasets.readers.npz import read_npz
from manyboost.datasets.readers.sparse_text import (
    Targets,
    read_svmlight,
    read_svmlight_like,
    read_xc,
)
from manyboost.datasets.readers.tables import CsvFile, ParquetFile
from manyboost.datasets.readers.text import STDIN, PathLike, file_name

#: Endings of file names, without that of compression, and the formats they stand for.
FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".arff": "arff",
    ".npz": "npz", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip


#: The rows of a file that are for training, those for testing, or both.
Part: TypeAlias = Literal["train", "test", "all"]


class TableFile(Protocol):
    """What a file of any format offers."""

    #: What errors call the file, the names of its columns, and the places of its outputs if it says
    #: which they are. Only a file that says so may have an output of the same name as a feature.
    file: str
    names: list[str]
    declared: Sequence[int] | None
    #: Which rows are read, if the file says which are for training and which for testing.
    part: Part | None

    def blocks(
        self, features: Sequence[int], outputs: Sequence[int], is_nominal: Mapping[int, bool]
    ) -> Iterator[tuple[Table, Table]]:
        """Yield features and outputs, columns by place in the given order, some rows at a time.

        ``is_nominal`` says of columns whether they hold categories or numbers, where the format
        does not.
        """


def format_of(path: PathLike) -> str:
    """Tell the format of a file from its ending; standard input is CSV."""
    path = Path(path)
    if path == STDIN:
        return "csv"
    endings = [ending.lower() for ending in path.suffixes if ending.lower() != ".gz"]
    if not endings or endings[-1] not in FORMATS:
        raise ValueError(
            f"The name {path.name!r} does not tell its format; end it with "
            f"{', '.join(FORMATS)} (and .gz), or name the format."
        )
    return FORMATS[endings[-1]]


def open_file(
    path: PathLike,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    part: Part = "all",
    like: tuple[Sequence[str], Sequence[str]] | None = None,
    targets: Targets = "auto",
) -> TableFile:
    """Open a file.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input, for formats of text.
    format : {"csv", "parquet", "arff", "npz", "svmlight", "xc"}, optional
        Its format; by default the ending of its name tells.
    delimiter : str, optional
        What separates the cells of a CSV file: by default a comma, a tab for ``.tsv``.
    part : {"train", "test", "all"}, default="all"
        Rows to read of a file that says which are for training and which for testing.
    like : pair of sequences of str, optional
        Names of the features and outputs of another svmlight file, which this one is to share.
    targets : {"labels", "numbers", "auto"}, default="auto"
        What the rows of an svmlight file begin with; see ``read_svmlight``.

    Returns
    -------
    TableFile
    """
    path = Path(path)
    format = format_of(path) if format is None else format
    if path == STDIN and format in ("parquet", "npz"):
        raise ValueError(f"A file of the format {format} cannot be read from standard input.")
    if path != STDIN and not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"The file {str(path)!r} {what}; check its name.")
    if format == "csv":
        is_tsv = ".tsv" in [ending.lower() for ending in path.suffixes]
        return CsvFile(path, delimiter=delimiter or ("\t" if is_tsv else ","))
    if format == "parquet":
        return ParquetFile(path)
    if format == "arff":
        return _TableFile(*arff_table(path))
    if format == "npz":
        return _DatasetFile(file_name(path), read_npz(path), part)
    if format == "xc":
        return _DatasetFile(file_name(path), read_xc(path))
    data = None if like is None else read_svmlight_like(path, *like)
    if data is None:
        data = read_svmlight(path, targets=targets)
    return _DatasetFile(file_name(path), data)


class _TableFile:
    """A file that is read as a whole, such as an ARFF file."""

    def __init__(self, table: Table, declared: Sequence[int] | None) -> None:
        self._table, self.file, self.names = table, table.file, table.names
        self.declared: Sequence[int] | None = declared
        self.part: Part | None = None

    def blocks(
        self, features: Sequence[int], outputs: Sequence[int], is_nominal: Mapping[int, bool]
    ) -> Iterator[tuple[Table, Table]]:
        """Yield features and outputs of all rows."""
        yield self._part(features, is_nominal), self._part(outputs, is_nominal)

    def _part(self, places: Sequence[int], is_nominal: Mapping[int, bool]) -> Table:
        table = self._table
        columns = [table.columns[i] for i in places]
        for j, i in enumerate(places):
            # Such categories are numbers, unless a model takes them for categories.
            if columns[j].categories == BINARY and not is_nominal.get(i, False):
                columns[j] = Column(columns[j].name)
        return Table(table.file, columns, table.values[:, list(places)], table.place)


class _DatasetFile:
    """A file that holds features and outputs apart."""

    def __init__(self, file: str, data: Dataset, part: Part = "all") -> None:
        self.file, self._X, self._Y = file, data.X, data.Y
        self.part: Part | None = None if data.split is None else part
        if data.split is not None and part != "all":
            self._X, self._Y = data.train() if part == "train" else data.test()
        self._categories = data.categories
        self.names = [*data.feature_names, *data.target_names]
        self.declared: Sequence[int] | None = range(data.n_features, len(self.names))

    def blocks(
        self, features: Sequence[int], outputs: Sequence[int], is_nominal: Mapping[int, bool]
    ) -> Iterator[tuple[Table, Table]]:
        """Yield features and outputs of all rows."""
        p = self._X.shape[1]
        X_columns = [Column(self.names[i], self._categories.get(i)) for i in features]
        Y_columns = [Column(self.names[i]) for i in outputs]
        everything = list(features) == list(range(p))
        X = self._X if everything else self._X[:, list(features)]
        Y = self._Y[:, np.array(outputs, np.intp) - p]
        yield (
            Table(self.file, X_columns, X, "row {}".format),
            Table(self.file, Y_columns, Y, "row {}".format),
        )
