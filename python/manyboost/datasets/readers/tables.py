"""CSV and Parquet files: one row of the table for each row, one column for each feature or output.

Neither format says which columns are outputs or nominal, so the caller does.
"""

from __future__ import annotations

import csv
import importlib
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manyboost.datasets.dataset import Dataset, Task, check_unique
from manyboost.datasets.readers.columns import (
    Column,
    Selection,
    Table,
    assemble,
    code,
    select,
    select_targets,
)
from manyboost.datasets.readers.text import (
    LineError,
    PathLike,
    file_name,
    number,
    numbered_lines,
    stem,
)

#: Cells that are read at a time: a few tens of megabytes.
BLOCK_CELLS = 1 << 18

# Cells of a CSV file that stand for a missing value, in lower case.
_MISSING = {"", "?", "na", "nan", "null"}
_NO_PARQUET = "Reading Parquet needs polars or pyarrow; install one: pip install polars."


def read_csv(
    path: PathLike,
    *,
    targets: Selection | int,
    categorical: Selection = (),
    drop: Selection = (),
    delimiter: str = ",",
    task: Task | None = None,
    name: str | None = None,
    encoding: str = "utf-8-sig",
) -> Dataset:
    r"""Read a CSV file whose first line names the columns.

    A cell that is empty, ``?``, ``NA``, ``NaN`` or ``null`` (in either case) is a missing value.

    Parameters
    ----------
    path : str or path
        The file, which may be gzip-compressed.
    targets : str, sequence of str or int
        The outputs: names or glob patterns (``"y*"``) of columns, or a number, the first k columns
        or, if negative, the last.
    categorical : str or sequence of str, default=()
        Names or glob patterns of the nominal features. They become codes, the place of the value
        among the sorted values, which are kept. Other features must hold numbers.
    drop : str or sequence of str, default=()
        Names or glob patterns of columns to leave out.
    delimiter : str, default=","
        What separates the cells of a line.
    task : {"multilabel", "regression"} or None, default=None
        ``None`` finds out: outputs that hold nothing but 0 and 1 (or false and true, no and yes)
        are labels.
    name : str or None, default=None
        Name of the data set; ``None`` takes that of the file.
    encoding : str, default="utf-8-sig"
        Encoding of the file.

    Returns
    -------
    Dataset
        X and Y are dense.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyboost.datasets import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "houses.csv")
    ...     _ = path.write_text("id,area,town,y_heat,y_cool\n7,80,Ghent,1.5,2\n8,95,Huy,2.5,3\n")
    ...     houses = read_csv(path, targets="y_*", categorical="town", drop="id")
    >>> houses.Y
    array([[1.5, 2. ],
           [2.5, 3. ]])
    >>> houses.feature_names, houses.categories
    (('area', 'town'), {1: ('Ghent', 'Huy')})
    """
    path = Path(path)
    names: list[str] | None = None
    rows: list[list[str | None]] = []
    places: list[int] = []
    for place, cells in _csv_rows(path, delimiter, encoding):
        if names is None:
            names = cells
            continue
        if len(cells) != len(names):
            raise LineError(
                path,
                place,
                f"the row has {len(cells)} cells for {len(names)} columns; check delimiter and "
                "quotes.",
            )
        rows.append([None if cell.lower() in _MISSING else cell for cell in cells])
        places.append(place)
    if names is None or "" in names:
        raise ValueError(f"The first line of {path.name} must name every column.")
    if not rows:
        raise ValueError(f"{path.name} has no rows; a data set needs at least one.")
    columns = list(zip(*rows, strict=True))
    table = _Raw(path.name, names, columns, number, lambda row: f"line {places[row]}")
    return table.dataset(targets, categorical, drop, task, stem(path) if name is None else name)


def read_parquet(
    path: PathLike,
    *,
    targets: Selection | int,
    categorical: Selection = (),
    drop: Selection = (),
    task: Task | None = None,
    name: str | None = None,
) -> Dataset:
    """Read a Parquet file, with polars or pyarrow, whichever is installed.

    Parameters
    ----------
    path : str or path
        The file.
    targets : str, sequence of str or int
        The outputs: names or glob patterns (``"y*"``) of columns, or a number, the first k columns
        or, if negative, the last.
    categorical : str or sequence of str, default=()
        Names or glob patterns of the nominal features. They become codes, the place of the value
        among the sorted values, which are kept. Other features must hold numbers or booleans.
    drop : str or sequence of str, default=()
        Names or glob patterns of columns to leave out.
    task : {"multilabel", "regression"} or None, default=None
        ``None`` finds out: outputs that hold nothing but 0 and 1 (or false and true, no and yes)
        are labels.
    name : str or None, default=None
        Name of the data set; ``None`` takes that of the file.

    Returns
    -------
    Dataset
        X and Y are dense; nulls and NaN are missing values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars
    >>> from manyboost.datasets import read_parquet
    >>> frame = polars.DataFrame({"x": [1.5, None], "a": [True, False], "b": [False, False]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.parquet")
    ...     frame.write_parquet(path)
    ...     toy = read_parquet(path, targets=["a", "b"])
    >>> toy.task, toy.Y
    ('multilabel', array([[1, 0],
           [0, 0]], dtype=uint8))
    """
    path = Path(path)
    names, columns = _parquet_columns(path)
    table = _Raw(path.name, names, columns, _typed_number, lambda row: f"row {row}")
    return table.dataset(targets, categorical, drop, task, stem(path) if name is None else name)


class _Raw:
    """Columns of cells, not yet numbers; ``None`` is a missing value."""

    def __init__(
        self,
        file: str,
        names: Sequence[str],
        columns: Sequence[Sequence[Any]],
        number: Callable[[Any], float],
        place: Callable[[int], str],
    ) -> None:
        check_unique(names, file, "columns")
        self.file, self.names, self.columns = file, names, columns
        self.number, self.place = number, place

    def dataset(
        self,
        targets: Selection | int,
        categorical: Selection,
        drop: Selection,
        task: Task | None,
        name: str,
    ) -> Dataset:
        outputs = select_targets(targets, self.names, self.file)
        nominal = select(categorical, self.names, self.file, "categorical")
        dropped = select(drop, self.names, self.file, "drop")
        if both := set(nominal) & set(outputs):
            raise ValueError(
                f"Column {self.names[min(both)]!r} of {self.file} is in both targets and "
                "categorical; categorical is for features."
            )
        described, values = [], []
        for i, column in enumerate(self.names):
            if i in dropped:
                described.append(Column(column, is_text=True))
                values.append(np.full(len(self.columns[i]), np.nan))
                continue
            numbers_, categories = self._values(i, i in nominal, i in outputs)
            described.append(Column(column, categories))
            values.append(np.asarray(numbers_, dtype=np.float64))
        table = Table(self.file, described, np.column_stack(values), self.place)
        return assemble(table, name, outputs, dropped, task)

    def _values(
        self, i: int, is_nominal: bool, is_output: bool
    ) -> tuple[list[float], tuple[str, ...] | None]:
        """Numbers of a column or, for a nominal one, codes and categories."""
        cells = self.columns[i]
        if is_nominal:
            return code(cells)
        values: list[float] = []
        try:
            for cell in cells:
                values.append(np.nan if cell is None else self.number(cell))  # noqa: PERF401
        except (ValueError, TypeError):
            row = len(values)
            if is_output and isinstance(cells[row], str):
                return code(cells)  # labels may be words: false and true, no and yes
            column = self.names[i]
            raise ValueError(
                f"{self.file}, {self.place(row)}: column {column!r} holds {cells[row]!r}, which is "
                f"not a number; pass categorical={column!r} if it is nominal, or leave it out with "
                f"drop={column!r}."
            ) from None
        return values, None


class CellFile(ABC):
    """A file of cells in named columns, read in blocks of rows, so that it may be of any size."""

    #: What errors call the file, and the names of its columns.
    file: str
    names: list[str]
    #: Outputs by place, if the file itself says which they are.
    declared: Sequence[int] | None = None
    #: Such files do not say which rows are for training.
    part: Literal["train", "test", "all"] | None = None

    def blocks(
        self, features: Sequence[int], outputs: Sequence[int], is_nominal: Mapping[int, bool]
    ) -> Iterator[tuple[Table, Table]]:
        """Yield features and outputs, columns by place in the given order, some rows at a time.

        ``is_nominal`` says of columns whether they hold categories or numbers; others are what
        their first value is. Each block has categories of its own.
        """
        known = dict(is_nominal)
        for columns, place in self._cells([*features, *outputs], known):
            yield (
                self._table(features, columns[: len(features)], place, known),
                self._table(outputs, columns[len(features) :], place, known),
            )

    def _table(
        self,
        places: Sequence[int],
        columns: Sequence[Sequence[Any]],
        place: Callable[[int], str],
        known: dict[int, bool],
    ) -> Table:
        n_rows = len(columns[0]) if columns else 0
        values = np.empty((n_rows, len(places)))
        described = []
        for j, (i, cells) in enumerate(zip(places, columns, strict=True)):
            if i not in known:
                texts = (self._text(cell) for cell in cells)
                first = next((k for k, text in enumerate(texts) if text is not None), None)
                if first is not None:
                    known[i] = self._floats(cells[first : first + 1]) is None
            categories = None
            if isinstance(cells, np.ndarray):
                values[:, j] = cells
            elif known.get(i, False):
                codes: dict[str, int] = {}
                values[:, j] = [
                    np.nan if text is None else codes.setdefault(text, len(codes))
                    for text in map(self._text, cells)
                ]
                categories = tuple(codes)
            else:
                numbers_ = self._floats(cells)
                if numbers_ is None:
                    self._refuse(i, cells, place)
                values[:, j] = numbers_
            described.append(Column(self.names[i], categories))
        return Table(self.file, described, values, place)

    def _refuse(self, i: int, cells: Sequence[Any], place: Callable[[int], str]) -> None:
        row = next(k for k in range(len(cells)) if self._floats(cells[k : k + 1]) is None)
        raise ValueError(
            f"{self.file}, {place(row)}: column {self.names[i]!r} holds {cells[row]!r}, which is "
            "not a number; correct it, say that the column holds categories, or leave it out."
        )

    @abstractmethod
    def _cells(
        self, places: Sequence[int], known: Mapping[int, bool]
    ) -> Iterator[tuple[Sequence[Sequence[Any]], Callable[[int], str]]]:
        """Yield columns, some rows at a time, and where a row is.

        They are cells, or arrays of numbers if they are ``known`` not to be nominal.
        """

    @abstractmethod
    def _floats(self, cells: Sequence[Any]) -> NDArray[np.float64] | None:
        """Read numbers, NaN where one is missing; None if one is something else."""

    @abstractmethod
    def _text(self, cell: Any) -> str | None:
        """Read text; None if it is missing."""


class CsvFile(CellFile):
    """A CSV file whose first line names the columns, to be read once.

    Parameters
    ----------
    path : str or path
        The file, which may be gzip-compressed; ``-`` is standard input.
    delimiter : str, default=","
        What separates the cells of a line.
    encoding : str, default="utf-8-sig"
        Encoding of the file.
    """

    def __init__(
        self, path: PathLike, *, delimiter: str = ",", encoding: str = "utf-8-sig"
    ) -> None:
        self._path, self._delimiter = Path(path), delimiter
        self.file = file_name(self._path)
        self._lines = numbered_lines(self._path, encoding)
        self.names = [name.strip() for name in next(self._split(self._lines), (0, []))[1]]
        if not self.names or "" in self.names:
            raise ValueError(f"The first line of {self.file} must name every column.")
        check_unique(self.names, self.file, "columns")

    def _cells(
        self, places: Sequence[int], known: Mapping[int, bool]
    ) -> Iterator[tuple[Sequence[Sequence[Any]], Callable[[int], str]]]:
        n_rows = max(1, BLOCK_CELLS // len(self.names))
        while block := list(islice(self._lines, n_rows)):
            if any('"' in text for _, text in block):
                # A quoted cell may go on in the next block, so there are none any more.
                rows = self._split(chain(block, self._lines))
                while cells := list(islice(rows, n_rows)):
                    columns = self._columns(cells)
                    yield [columns[i] for i in places], partial(_line_of, [n for n, _ in cells])
            elif block := [(n, text) for n, text in block if text.strip("\r\n")]:
                yield self._plain(block, places, known), partial(_line_of, [n for n, _ in block])

    def _split(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of lines that are not empty, and the number of the last of each."""
        last = 0

        def texts() -> Iterator[str]:
            nonlocal last
            for last, text in lines:  # noqa: B007
                yield text

        try:
            for cells in csv.reader(texts(), delimiter=self._delimiter, strict=True):
                if cells:
                    yield last, cells
        except csv.Error as error:
            raise LineError(self._path, last, f"not valid CSV ({error}).") from None

    def _plain(
        self, lines: list[tuple[int, str]], places: Sequence[int], known: Mapping[int, bool]
    ) -> list[Sequence[Any]]:
        """Columns of lines without quotes: numbers, where all of them are, else cells."""
        ends = len(self.names) - 1
        if any(text.count(self._delimiter) != ends for _, text in lines):
            return [self._columns([(n, self._cut(text)) for n, text in lines])[i] for i in places]
        numeric = [i for i in places if known.get(i) is False]
        others = [i for i in places if known.get(i) is not False]
        found: dict[int, Sequence[Any]] = {}
        if numeric:
            try:
                table = np.loadtxt(
                    [text for _, text in lines],
                    delimiter=self._delimiter,
                    usecols=numeric,
                    comments=None,
                    ndmin=2,
                )
                if len(table) != len(lines) or np.isinf(table).any():
                    raise ValueError
                found = dict(zip(numeric, table.T, strict=True))
            except ValueError:  # as a rule because a value is missing
                others = list(places)
        if others:
            rows = [self._cut(text) for _, text in lines]
            found |= {i: [cells[i] for cells in rows] for i in others}
        return [found[i] for i in places]

    def _cut(self, text: str) -> list[str]:
        return text.rstrip("\r\n").split(self._delimiter)

    def _columns(self, rows: list[tuple[int, list[str]]]) -> list[tuple[str, ...]]:
        width = len(self.names)
        for line, cells in rows:
            if len(cells) != width:
                raise LineError(
                    self._path,
                    line,
                    f"the row has {len(cells)} cells for {width} columns; check delimiter and "
                    "quotes.",
                )
        return list(zip(*(cells for _, cells in rows), strict=True))

    def _floats(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            # Most of what is not a number is missing.
            texts = [text if (text := self._text(cell)) is not None else "nan" for cell in cells]
            try:
                values = np.fromiter(map(float, texts), np.float64, len(cells))
            except ValueError:
                return None
        return None if np.isinf(values).any() or "_" in "".join(cells) else values

    def _text(self, cell: str) -> str | None:
        text = cell.strip()
        return None if text.lower() in _MISSING else text


class ParquetFile(CellFile):
    """A Parquet file, read with polars or pyarrow, whichever is installed.

    Parameters
    ----------
    path : str or path
        The file.
    """

    def __init__(self, path: PathLike) -> None:
        self.file = Path(path).name
        self.names, self._blocks = _parquet_blocks(Path(path))
        check_unique(self.names, self.file, "columns")

    def _cells(
        self, places: Sequence[int], known: Mapping[int, bool]
    ) -> Iterator[tuple[Sequence[Sequence[Any]], Callable[[int], str]]]:
        start = 0
        for columns in self._blocks([self.names[i] for i in places]):
            yield columns, partial(_row_after, start)
            start += len(columns[0])

    def _floats(self, cells: Sequence[Any]) -> NDArray[np.float64] | None:
        try:
            return np.array([np.nan if _is_none(c) else _typed_number(c) for c in cells])
        except TypeError:
            return None

    def _text(self, cell: Any) -> str | None:
        if _is_none(cell):
            return None
        if not isinstance(cell, str | numbers.Real):
            raise ValueError(
                f"{self.file} holds {cell!r}, which is neither a number nor text; turn its column "
                "into numbers, or leave it out."
            )
        return str(cell)


def _csv_rows(path: Path, delimiter: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, split into cells without blanks around them."""
    lines = (line for _, line in numbered_lines(path, encoding))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise LineError(path, reader.line_num, f"not valid CSV ({error}).") from None


def _parquet_columns(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Names and cells of the columns, NaN as ``None``."""
    for package in ("polars", "pyarrow.parquet"):
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        if package == "polars":
            frame = module.read_parquet(path)
            columns = [series.to_list() for series in frame.get_columns()]
            names = list(frame.columns)
        else:
            frame = module.read_table(path)
            columns = [column.to_pylist() for column in frame.columns]
            names = list(frame.column_names)
        return names, [[None if _is_nan(cell) else cell for cell in cells] for cells in columns]
    raise ImportError(_NO_PARQUET)


def _parquet_blocks(
    path: Path,
) -> tuple[list[str], Callable[[list[str]], Iterator[list[list[Any]]]]]:
    """Names of the columns, and a function that yields the cells of some, block by block."""
    try:
        polars = importlib.import_module("polars")
    except ImportError:
        pass
    else:
        scan = polars.scan_parquet(path)
        names = list(scan.collect_schema().names())

        def by_polars(chosen: list[str]) -> Iterator[list[list[Any]]]:
            size = max(1, BLOCK_CELLS // max(1, len(chosen)))
            start = 0
            while len(frame := scan.select(chosen).slice(start, size).collect()):
                yield [series.to_list() for series in frame.get_columns()]
                start += size

        return names, by_polars
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError(_NO_PARQUET) from None
    file = parquet.ParquetFile(path)

    def by_pyarrow(chosen: list[str]) -> Iterator[list[list[Any]]]:
        size = max(1, BLOCK_CELLS // max(1, len(chosen)))
        for batch in file.iter_batches(batch_size=size, columns=chosen):
            # (In the order of the file.)
            yield [batch.column(batch.schema.names.index(name)).to_pylist() for name in chosen]

    return list(file.schema_arrow.names), by_pyarrow


def _line_of(lines: Sequence[int], row: int) -> str:
    return f"line {lines[row]}"


def _row_after(start: int, row: int) -> str:
    return f"row {start + row}"


def _is_none(cell: Any) -> bool:
    return cell is None or _is_nan(cell)


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def _typed_number(cell: Any) -> float:
    """Read a cell that has a type: text stays text, even if it looks like a number."""
    if not isinstance(cell, numbers.Real) or not math.isfinite(cell):
        raise TypeError(cell)
    return float(cell)
