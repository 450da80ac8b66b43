"""CSV and Parquet files: one line or record for each row, one column for each feature or output.

Neither format says which columns are outputs or categorical, so the caller does. Both are read
with polars, in blocks of rows, so a file may be larger than memory.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from manyboost.arrays import F64
from manyboost.datasets.dataset import Dataset, Task, check_unique
from manyboost.datasets.readers import columns
from manyboost.datasets.readers.columns import Column, Place, Selection, Table
from manyboost.datasets.readers.text import (
    PathLike,
    TextFile,
    check_delimiter,
    excerpt,
    set_name,
)
from manyboost.extras import import_extra

if TYPE_CHECKING:
    import polars

#: Training rows, test rows, or both.
Part: TypeAlias = Literal["train", "test", "all"]
#: Cells that are read at a time: a few tens of megabytes.
BLOCK_CELLS = 1 << 18

# Cells of a CSV file that stand for a missing value, in lower case; "none" may be a category.
_MISSING = ["", "?", "na", "n/a", "#n/a", "<na>", "nan", "null"]
_DECIMAL_COMMA = r"^[-+]?\d+,\d+$"
# How pandas calls the index of a frame in a Parquet file, if it has no name.
_INDEX = "__index_level_0__"


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

    A cell that is empty, ``?``, ``NA``, ``N/A``, ``#N/A``, ``NaN`` or ``null`` (in any case) or
    ``None`` is a missing value. A first column without a name is the index of a frame, and left
    out. Needs polars: ``pip install 'manyboost[files]'``.

    Parameters
    ----------
    path : str or path
        The file, which may be gzip-compressed.
    targets : str, sequence of str or int
        The outputs: names or glob patterns (``"y*"``) of columns, or a number k: the first k
        columns or, if k is negative, the last.
    categorical, drop : str or sequence of str, default=()
        Names or glob patterns of the categorical features and of columns to leave out. Categories
        become codes: the index among the sorted values. Other features must hold numbers.
    delimiter, encoding : str, default=",", "utf-8-sig"
        The character between the cells of a line; the encoding of the file.
    task : {"multilabel", "regression"} or None, default=None
        ``None``: outputs that hold only 0 and 1 (or false and true, no and yes) are labels, others
        are numbers.
    name : str or None, default=None
        Name of the data set; ``None`` uses the name of the file.

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
    >>> houses.Y.tolist()
    [[1.5, 2.0], [2.5, 3.0]]
    >>> houses.feature_names, houses.categories
    (('area', 'town'), {1: ('Ghent', 'Huy')})
    """
    file = CsvFile(path, delimiter, encoding)
    return _dataset(file, targets, categorical, drop, task, set_name(path, name))


def read_parquet(
    path: PathLike,
    *,
    targets: Selection | int,
    categorical: Selection = (),
    drop: Selection = (),
    task: Task | None = None,
    name: str | None = None,
) -> Dataset:
    """Read a Parquet file; nulls and NaN are missing values.

    Needs polars: ``pip install 'manyboost[files]'``.

    Parameters
    ----------
    path, targets, categorical, drop, task, name
        See :func:`read_csv`. Other features must be numbers or booleans by their type.

    Returns
    -------
    Dataset
        X and Y are dense.

    Examples
    --------
    >>> import pathlib, polars, tempfile
    >>> from manyboost.datasets import read_parquet
    >>> frame = polars.DataFrame({"x": [1.5, None], "a": [True, False]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.parquet")
    ...     frame.write_parquet(path)
    ...     toy = read_parquet(path, targets=["a"])
    >>> toy.task, toy.Y.tolist()
    ('multilabel', [[1], [0]])
    """
    return _dataset(ParquetFile(path), targets, categorical, drop, task, set_name(path, name))


def _dataset(
    file: FrameFile,
    targets: Selection | int,
    categorical: Selection,
    drop: Selection,
    task: Task | None,
    name: str,
) -> Dataset:
    outputs = columns.select_targets(targets, file.names, file.file)
    nominal = columns.select(categorical, file.names, file.file, "categorical")
    features = columns.remaining(file.names, file.file, outputs, drop)
    if both := set(nominal) & set(outputs):
        what = f"Column {file.names[min(both)]!r} of {file.file} is in both targets and categorical"
        raise ValueError(f"{what}; categorical is for features.")
    blocks = file.blocks(features, outputs, {i: i in nominal for i in features})
    return columns.assemble(*columns.whole(file.file, blocks), name, task)


class WrongCellError(ValueError):
    """A cell is no number."""

    def __init__(self, held: str, where: str) -> None:
        super().__init__(f"{held}{where} is not a number")
        self.held, self.where = held, where


class FrameFile(ABC):
    """A file that polars reads as frames, some rows at a time."""

    file: str  # how errors name it
    names: list[str]  # of its columns
    has_index: bool  # whether there was one more, the index of a frame, which is left out
    declared: Sequence[int] | None = None  # outputs; these formats do not say,
    part: Part | None = None  # nor have they a split into training and test rows

    def blocks(
        self, features: Sequence[int], outputs: Sequence[int], is_nominal: Mapping[int, bool]
    ) -> Iterator[tuple[Table, Table]]:
        """Yield features and outputs, columns by index in the given order, some rows at a time.

        ``is_nominal`` says which columns hold categories; for those it does not mention the first
        value decides. Each block has its own categories.
        """
        known = dict(is_nominal)
        wrong: dict[str, tuple[str, str]] = {}  # a cell and its place, by column
        wanted = dict.fromkeys(self.names[i] for i in (*features, *outputs))
        for frame, place in self._frames(list(wanted)):
            parts = []
            for places in (features, outputs):
                values, heads = np.empty((len(frame), len(places))), []
                for j, i in enumerate(places):
                    cells = frame[self.names[i]]
                    if i not in known and len(first := self._cleaned(cells).drop_nulls().head(1)):
                        known[i] = bool(self._cast(first).null_count())
                        # Decimal commas are no categories.
                        known[i] = known[i] and not self._has_decimal_comma(first)
                    try:
                        values[:, j], categories = self._values(cells, known.get(i, False), place)
                    except WrongCellError as error:
                        wrong[cells.name] = error.held, error.where
                        categories = None
                    heads.append(Column(self.names[i], categories))
                parts.append(Table(self.file, heads, values, place))
            if wrong:
                raise self._refusal(wrong)
            yield parts[0], parts[1]

    def _refusal(self, wrong: Mapping[str, tuple[str, str]]) -> ValueError:
        """Return the error about all columns that hold text where numbers should be."""
        if len(wrong) > 1:
            found = ", ".join(f"{name!r} ({held}{where})" for name, (held, where) in wrong.items())
            remedy = "correct them, declare them categorical, or leave them out."
            return ValueError(
                f"{self.file} has columns that are not all numbers: {found}; {remedy}"
            )
        ((name, (held, where)),) = wrong.items()
        remedy = "correct it, declare the column categorical, or leave it out."
        what = f"column {name!r} holds {held}, which is not a number"
        return ValueError(f"{self.file},{where.removeprefix(' in')}: {what}; {remedy}")

    def _has_decimal_comma(self, cells: polars.Series) -> bool:
        is_text = cells.dtype == polars_module().String
        return is_text and bool(cells.str.contains(_DECIMAL_COMMA).all())

    def _values(
        self, cells: polars.Series, is_nominal: bool, place: Place
    ) -> tuple[F64, tuple[str, ...] | None]:
        """Return numbers, or codes and their categories."""
        pl = polars_module()
        if is_nominal:
            texts = self._cleaned(cells)
            if texts.dtype != pl.String:  # as Python writes numbers and booleans
                texts = pl.Series([None if cell is None else str(cell) for cell in texts])
            categories = texts.drop_nulls().unique().sort()
            codes = texts.cast(pl.Enum(categories)).to_physical()
            return codes.cast(pl.Float64).to_numpy(), tuple(categories.to_list())
        numbers, wrong = self._numbers(cells)
        if wrong is not None:
            cell = self._cleaned(cells)[wrong : wrong + 1]
            comma = " with a decimal comma" if self._has_decimal_comma(cell) else ""
            raise WrongCellError(f"{excerpt(cell[0])}{comma}", f" in {place(wrong)}")
        return numbers, None

    def _numbers(self, cells: polars.Series) -> tuple[F64, int | None]:
        """Return numbers, NaN where one is missing, and the first row with something else."""
        numbers, wrong = self._cast(cells), None
        if numbers.null_count():  # a missing value, or text
            cleaned = self._cleaned(cells)
            numbers = self._cast(cleaned)
            texts = numbers.is_null() & cleaned.is_not_null()
            wrong = texts.arg_max() if texts.any() else None
        return numbers.to_numpy(), wrong

    @abstractmethod
    def _frames(self, names: Sequence[str]) -> Iterator[tuple[polars.DataFrame, Place]]:
        """Yield the named columns, some rows at a time, and where a row is in the file."""

    @abstractmethod
    def _cleaned(self, cells: polars.Series) -> polars.Series:
        """Return cells with null for each missing value."""

    @abstractmethod
    def _cast(self, cells: polars.Series) -> polars.Series:
        """Return cells as Float64, null where that fails."""


class CsvFile(FrameFile):
    """A CSV file whose first line names the columns; it can be read once."""

    def __init__(self, path: PathLike, delimiter: str, encoding: str = "utf-8-sig") -> None:
        polars_module()
        self._text, self._delimiter = TextFile(path, encoding), check_delimiter(delimiter)
        self.file = self._text.name
        self._lines = ((self._text.line, line) for line in self._text)
        self._header = [name.strip() for name in next(self._rows(self._lines), (0, []))[1]]
        self.has_index = self._header[:1] == [""] and len(self._header) > 1
        self.names = self._header[self.has_index :]
        if not self.names or "" in self.names:
            raise ValueError(f"The first line of {self.file} must name every column.")
        check_unique(self.names, self.file, "columns")

    def _frames(self, names: Sequence[str]) -> Iterator[tuple[polars.DataFrame, Place]]:
        pl = polars_module()
        schema = dict.fromkeys(self._header, pl.String)
        n_rows = max(1, BLOCK_CELLS // len(self._header))
        while lines := list(islice(self._lines, n_rows)):
            if any('"' in text for _, text in lines):
                # Python's reader splits the rest of the file, as a quoted cell may continue in the
                # next block: it is strict about quotes and knows the lines.
                rows = self._rows(chain(lines, self._lines), lines[0][0] - 1)
                while split := list(islice(rows, n_rows)):
                    for line, cells in split:
                        self._check_width(line, len(cells))
                    frame = pl.DataFrame([cells for _, cells in split], schema, orient="row")
                    yield frame.select(names), _places([line for line, _ in split])
            elif plain := [(line, text) for line, text in lines if text.strip("\r\n")]:
                for line, text in plain:
                    self._check_width(line, text.count(self._delimiter) + 1)
                block = "".join(text for _, text in plain).encode()
                options = {"separator": self._delimiter, "schema": schema, "quote_char": None}
                frame = pl.read_csv(block, has_header=False, **options)
                yield frame.select(names), _places([line for line, _ in plain])

    def _rows(
        self, lines: Iterator[tuple[int, str]], before: int = 0
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of rows that are not empty, and the last line of each."""
        reader = csv.reader((text for _, text in lines), delimiter=self._delimiter, strict=True)
        try:
            for cells in filter(None, reader):
                yield before + reader.line_num, cells
        except csv.Error as error:
            raise self._text.error(_csv_problem(error), before + reader.line_num) from None

    def _check_width(self, line: int, width: int) -> None:
        if width != len(self._header):
            cells = f"{width} cell{'' if width == 1 else 's'}"
            what = f"the row has {cells} for {len(self._header)} columns"
            raise self._text.error(f"{what}; check delimiter and quotes.", line)

    def _cleaned(self, cells: polars.Series) -> polars.Series:
        texts = cells.str.strip_chars()
        missing = texts.str.to_lowercase().is_in(_MISSING) | (texts == "None")
        return texts.set(missing, None)

    def _cast(self, cells: polars.Series) -> polars.Series:
        return cells.cast(polars_module().Float64, strict=False)

    def _numbers(self, cells: polars.Series) -> tuple[F64, int | None]:
        numbers, wrong = super()._numbers(cells)
        if np.isinf(numbers).any():
            # 1e400 is no infinite number, but one that is beyond double precision.
            written = cells.str.to_lowercase().str.contains("inf").fill_null(False).to_numpy()
            beyond = np.flatnonzero(np.isinf(numbers) & ~written).tolist()
            wrong = min(beyond + ([] if wrong is None else [wrong]), default=None)
        return numbers, wrong


class ParquetFile(FrameFile):
    """A Parquet file."""

    def __init__(self, path: PathLike) -> None:
        self.file = Path(path).name
        self._scan = polars_module().scan_parquet(path, glob=False)
        with self._damage_refused():
            self.names = self._scan.collect_schema().names()
        if has_index := self.names[-1:] == [_INDEX]:
            self.names.pop()
        self.has_index = has_index

    def _frames(self, names: Sequence[str]) -> Iterator[tuple[polars.DataFrame, Place]]:
        size = max(1, BLOCK_CELLS // max(1, len(names)))
        start = 0
        while True:
            with self._damage_refused():
                frame = self._scan.select(names).slice(start, size).collect()
            if not len(frame):
                return
            yield frame, _places(range(start, start + size), "row")
            start += size

    @contextmanager
    def _damage_refused(self) -> Iterator[None]:
        pl = polars_module()
        try:
            yield
        except (pl.exceptions.ComputeError, pl.exceptions.PanicException) as error:
            what = f"{self.file} is not a sound Parquet file ({error})"
            raise ValueError(f"{what}; get the file again.") from None

    def _cleaned(self, cells: polars.Series) -> polars.Series:
        pl = polars_module()
        if cells.dtype in (pl.String, pl.Categorical, pl.Enum):
            return cells.cast(pl.String)
        if not (cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
            what = f"Column {cells.name!r} of {self.file} holds values of type {cells.dtype}"
            raise ValueError(f"{what}, neither numbers nor text; convert it, or leave it out.")
        return cells.fill_nan(None) if cells.dtype.is_float() else cells

    def _cast(self, cells: polars.Series) -> polars.Series:
        # Text stays text, even if it looks like a number.
        pl = polars_module()
        is_number = cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)
        return (cells if is_number else cells.clear(len(cells))).cast(pl.Float64)


def _csv_problem(error: csv.Error) -> str:
    """Return what is wrong with a line that Python's reader refuses, and what to do."""
    if "new-line" in str(error):
        return "a line ends with a carriage return alone; save the file with line feeds."
    if "field limit" in str(error):
        most = f"{csv.field_size_limit():,} characters"
        return f"a cell has more than {most}; close its quotes, or remove such long text."
    return f"not valid CSV ({error})."


def _places(numbers: Sequence[int], what: str = "line") -> Place:
    if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
        numbers = range(numbers[0], numbers[-1] + 1)  # takes no memory
    return lambda row: f"{what} {numbers[row]}"


def polars_module() -> Any:
    """Import polars, or say how to install it."""
    return import_extra("polars", "Reading CSV and Parquet files", "files")
