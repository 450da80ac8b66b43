"""CSV and Parquet files: one row of the table for each row, one column for each feature or output.

Neither format says which columns are outputs or nominal, so the caller does.
"""

from __future__ import annotations

import csv
import importlib
import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
from manyboost.datasets.readers.text import LineError, PathLike, number, numbered_lines, stem

# Cells of a CSV file that stand for a missing value, in lower case.
_MISSING = {"", "?", "na", "nan", "null"}


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
    raise ImportError("Reading Parquet needs polars or pyarrow; install one: pip install polars.")


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def _typed_number(cell: Any) -> float:
    """Read a cell that has a type: text stays text, even if it looks like a number."""
    if not isinstance(cell, numbers.Real) or not math.isfinite(cell):
        raise TypeError(cell)
    return float(cell)
