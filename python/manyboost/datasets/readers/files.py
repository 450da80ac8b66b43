"""Files of any format, opened by their ending: names of columns first, then rows in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64
from manyboost.data.named import densified
from manyboost.datasets.dataset import Dataset, Matrix
from manyboost.datasets.readers import sparse_text
from manyboost.datasets.readers.arff import arff_table
from manyboost.datasets.readers.columns import BINARY, Column, Table, select_targets
from manyboost.datasets.readers.npz import stored_npz
from manyboost.datasets.readers.tables import CsvFile, FrameFile, ParquetFile, Part
from manyboost.datasets.readers.text import STDIN, PathLike, file_name


class StoredFile:
    """A file that is read as a whole.

    The values of ``table`` may lack the last columns, which are then in ``more``. Only ``declared``
    outputs may have the name of a feature. ``part`` tells which rows of a split were read.
    """

    def __init__(
        self, table: Table, declared: Sequence[int] | None, more: Matrix, part: Part | None
    ) -> None:
        self.file, self.names, self.declared, self.part = table.file, table.names, declared, part
        self._table, self._more = table, more
        self.has_index = False

    def blocks(
        self, features: Sequence[int], outputs: Sequence[int], is_nominal: Mapping[int, bool]
    ) -> Iterator[tuple[Table, Table]]:
        """Yield features and outputs of all rows, if any, columns by index in the given order."""
        if self._table.values.shape[0]:
            X = self._take(features, is_nominal)
            nominal = [j for j, i in enumerate(features) if is_nominal.get(i, False)]
            yield _categorised(X, nominal), self._take(outputs, is_nominal)

    def _take(self, places: Sequence[int], is_nominal: Mapping[int, bool]) -> Table:
        columns = [self._table.columns[i] for i in places]
        for j, i in enumerate(places):
            if columns[j].categories == BINARY and not is_nominal.get(i, False):
                columns[j] = Column(columns[j].name)  # numbers, unless the model knows categories
        return Table(self.file, columns, self._values(list(places)), self._table.place)

    def _values(self, places: list[int]) -> Matrix:
        values, more = self._table.values, self._more
        width = values.shape[1]
        if places == list(range(width)):
            return values
        if all(i < width for i in places):
            return values[:, places]
        if all(i >= width for i in places):
            return more[:, np.array(places) - width]
        parts = [values[:, [i]] if i < width else more[:, [i - width]] for i in places]
        is_sparse = any(map(sparse.issparse, parts))
        return sparse.hstack(parts, format="csr") if is_sparse else np.hstack(parts)


def _categorised(table: Table, nominal: Sequence[int]) -> Table:
    """Return a table with categories in place of the numbers of some columns."""
    columns, values = list(table.columns), table.values
    for j in nominal:
        name, known, is_text = columns[j].name, columns[j].categories, columns[j].is_text
        if known is None and not is_text:
            if values is table.values:
                values = np.array(densified(values), np.float64)
            values[:, j], found = _categories(densified(table.values[:, [j]])[:, 0])
            columns[j] = Column(name, found)
    return Table(table.file, columns, values, table.place)


def _categories(numbers: NDArray[Any]) -> tuple[F64, tuple[str, ...]]:
    """Return the codes of numbers, and these as a CSV file has them: 1 for 1.0."""
    known = ~np.isnan(numbers)
    found, places = np.unique(numbers[known] + 0.0, return_inverse=True)  # without -0
    texts = [f"{number:.0f}" if number.is_integer() else str(number) for number in found]
    categories = tuple(sorted(texts))
    codes = np.full(len(numbers), np.nan)
    codes[known] = np.searchsorted(categories, texts)[places]
    return codes, categories


#: A file of any format.
TableFile: TypeAlias = FrameFile | StoredFile


def open_file(
    path: PathLike,
    format: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    part: Part = "all",
    like: tuple[Sequence[str], Sequence[str]] | None = None,
    targets: sparse_text.Targets = "auto",
) -> TableFile:
    """Open a file of a known format; ``-`` is standard input, for text formats.

    ``delimiter`` is that of a CSV file, by default a comma, or a tab for ``.tsv``; ``encoding``
    that of a CSV or ARFF file, by default UTF-8. ``part`` selects rows of a file that has a split.
    ``like`` are the names of the features and outputs that an svmlight file should have, and
    ``targets`` what its rows begin with.
    """
    path = Path(path)
    if path == STDIN and format in ("parquet", "npz"):
        raise ValueError(f"A {format} file cannot be read from standard input; pass its name.")
    if path != STDIN and not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"The file {str(path)!r} {what}; check its name.")
    encoding = encoding or "utf-8-sig"
    if format == "csv":
        is_tsv = ".tsv" in map(str.lower, path.suffixes)
        return CsvFile(path, delimiter or ("\t" if is_tsv else ","), encoding)
    if format == "parquet":
        return ParquetFile(path)
    if format == "arff":
        table, k = arff_table(path, encoding)
        declared = None if k is None else select_targets(k, table.names, table.file)
        return StoredFile(table, declared, None, None)
    if format == "npz":
        return _stored(file_name(path), stored_npz(path), part)
    if format == "xc":
        return _stored(file_name(path), sparse_text.stored_xc(path))
    data = None if like is None else sparse_text.read_svmlight_like(path, *like)
    return _stored(file_name(path), data or sparse_text.stored_svmlight(path, targets=targets))


def _stored(file: str, data: Dataset, part: Part = "all") -> StoredFile:
    X, Y = data.X, data.Y
    if data.split is not None and part != "all":
        X, Y = data.train() if part == "train" else data.test()
    columns = [Column(n, data.categories.get(j)) for j, n in enumerate(data.feature_names)]
    columns += map(Column, data.target_names)
    table = Table(file, columns, X, "row {}".format)
    declared = range(data.n_features, len(columns))
    return StoredFile(table, declared, Y, None if data.split is None else part)
