"""Files with one sparse row a line, ``label,label feature:value feature:value``.

Two formats share it: svmlight with several labels, or with numbers to predict in their place, and
that of the extreme classification repository, which has a first line ``rows features labels``.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse

from manyboost.datasets.dataset import Dataset, Matrix
from manyboost.datasets.readers.text import (
    LineError,
    PathLike,
    file_name,
    number,
    numbered_lines,
    stem,
)

_LARGEST = float(np.finfo(np.float32).max)

#: What stands before the features of a row; "auto": labels if all could be such.
Targets: TypeAlias = Literal["labels", "numbers", "auto"]


def read_svmlight(
    path: PathLike,
    *,
    n_features: int | None = None,
    n_outputs: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    targets: Targets = "labels",
    name: str | None = None,
) -> Dataset:
    r"""Read an svmlight (libsvm) file with several labels, or numbers to predict, a row.

    Outputs and features are called by the numbers the file gives them. Empty lines and what
    follows a ``#`` are left out.

    Parameters
    ----------
    path : str or path
        The file, which may be gzip-compressed.
    n_features : int or None, default=None
        Number of features; ``None`` takes the highest number in the file. Pass it when several
        files must agree.
    n_outputs : int or None, default=None
        Number of outputs, of the labels 0 to ``n_outputs - 1``; ``None`` makes one output of each
        label in the file. Pass it when several files must agree.
    zero_based : bool or "auto", default="auto"
        Whether features are counted from 0 or from 1; "auto" looks for a feature 0.
    targets : {"labels", "numbers", "auto"}, default="labels"
        What a row begins with: any number of labels, which are whole numbers; or the numbers to
        predict, as many in each row, or none where they are missing. The outputs are then called
        "y", or "y0", "y1", … if there are several. "auto" reads labels unless there is a sign, a
        decimal point or an exponent.
    name : str or None, default=None
        Name of the data set; ``None`` takes that of the file.

    Returns
    -------
    Dataset
        X is a CSR matrix, and so is Y, unless it holds numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyboost.datasets import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.svm")
    ...     _ = path.write_text("3,7 1:0.5 4:2\n7 2:1\n")
    ...     toy = read_svmlight(path)
    >>> toy.target_names, toy.Y.toarray()
    (('3', '7'), array([[1, 1],
           [0, 1]], dtype=uint8))
    >>> toy.feature_names
    ('1', '2', '3', '4')
    """
    path = Path(path)
    rows = _svmlight_rows(path, targets)
    if zero_based == "auto":
        zero_based = 0 in rows.features
    first = 0 if zero_based else 1
    found = max(rows.features, default=first - 1) - first + 1
    if n_features is None:
        n_features = found
    rows.check_features(first, first + n_features)
    if rows.hold_numbers:
        Y = rows.numbers(n_outputs)
        if not n_features:
            raise ValueError(f"{file_name(path)} has no features; a data set needs some.")
        return rows.dataset(Y, number_names(Y.shape[1]), n_features, first, name)
    if n_outputs is None:
        labels = sorted(set(rows.labels))
    else:
        rows.check_labels(n_outputs)
        labels = list(range(n_outputs))
    if not labels or not n_features:
        raise ValueError(
            f"{file_name(path)} has no {'features' if labels else 'labels'}; a data set needs some."
        )
    return rows.dataset(rows.Y(labels), tuple(map(str, labels)), n_features, first, name)


def number_names(n_outputs: int) -> tuple[str, ...]:
    """Names of outputs that are numbers, for which the format has none."""
    return ("y",) if n_outputs == 1 else tuple(f"y{j}" for j in range(n_outputs))


def read_svmlight_like(
    path: PathLike, feature_names: Sequence[str], target_names: Sequence[str]
) -> Dataset | None:
    """Read a file whose features and labels are those of another, which ``read_svmlight`` read.

    Labels that the other file did not have are left out, and rows need neither labels nor numbers
    to predict. None if no svmlight file has such feature names.
    """
    first = next((k for k in (0, 1) if list(feature_names[:1]) == [str(k)]), 0)
    stop = first + len(feature_names)
    if list(feature_names) != [*map(str, range(first, stop))]:
        return None
    path = Path(path)
    has_labels = all(name.isdecimal() for name in target_names)
    rows = _svmlight_rows(path, "labels" if has_labels else "numbers")
    rows.check_features(first, stop)
    names, n_features = tuple(target_names), len(feature_names)
    if not has_labels:
        return rows.dataset(rows.numbers(len(names)), names, n_features, first)
    columns = {int(name): j for j, name in enumerate(target_names)}
    labels, ends = rows.labels, np.asarray(rows.target_ends)
    known = [k for k, label in enumerate(labels) if label in columns]
    row = np.searchsorted(ends, known, side="right") - 1
    indices = [columns[labels[k]] for k in known]
    ones = np.ones(len(known), dtype=np.uint8)
    Y = sparse.csr_matrix((ones, (row, indices)), shape=(len(rows), len(names)))
    return rows.dataset(Y, names, n_features, first)


def _svmlight_rows(path: Path, targets: Targets) -> _Rows:
    rows = _Rows(path, targets)
    for place, line in numbered_lines(path):
        if text := line.partition("#")[0].strip():
            rows.add(place, text)
    if not len(rows):
        raise ValueError(f"{file_name(path)} has no rows; a data set needs at least one.")
    return rows


def read_xc(path: PathLike, *, name: str | None = None) -> Dataset:
    r"""Read a file in the text format of the extreme classification repository.

    The first line holds the numbers of rows, features and labels; every line after it is a row,
    ``label,label feature:value feature:value``, with labels and features counted from 0. A row
    without labels begins with a blank, or with its features.

    Parameters
    ----------
    path : str or path
        The file, which may be gzip-compressed.
    name : str or None, default=None
        Name of the data set; ``None`` takes that of the file.

    Returns
    -------
    Dataset
        X and Y are CSR matrices; features and outputs are called by their numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyboost.datasets import read_xc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.txt")
    ...     _ = path.write_text("2 4 3\n0,2 1:0.5 3:2\n 0:1\n")
    ...     toy = read_xc(path)
    >>> toy.X.toarray()
    array([[0. , 0.5, 0. , 2. ],
           [1. , 0. , 0. , 0. ]], dtype=float32)
    >>> toy.Y.toarray()
    array([[1, 0, 1],
           [0, 0, 0]], dtype=uint8)
    """
    path = Path(path)
    lines = numbered_lines(path)
    header = re.fullmatch(r"(\d+)\s+(\d+)\s+(\d+)", next(lines, (1, ""))[1].strip())
    if header is None or "0" in header.groups():
        raise LineError(
            path, 1, "the first line must hold the numbers of rows, features and labels, above 0."
        )
    n_rows, n_features, n_outputs = (int(count) for count in header.groups())
    rows = _Rows(path)
    for place, line in lines:
        rows.add(place, line)
    if len(rows) != n_rows:
        raise ValueError(
            f"{file_name(path)} has {len(rows)} rows but its first line says {n_rows}; "
            "the file may be cut short."
        )
    rows.check_features(0, n_features)
    rows.check_labels(n_outputs)
    return rows.dataset(
        rows.Y(range(n_outputs)), tuple(map(str, range(n_outputs))), n_features, 0, name
    )


class _Rows:
    """Targets and features of the rows read so far, one row after another."""

    def __init__(self, path: Path, targets: Targets = "labels") -> None:
        self.path = path
        self.places = array("q")  # line of each row
        self.targets, self.target_ends = array("d"), array("q", [0])
        self.features, self.values, self.feature_ends = array("q"), array("d"), array("q", [0])
        #: Whether targets are numbers to predict, not labels, as far as the rows tell.
        self.hold_numbers = targets == "numbers"
        self._is_open = targets == "auto"
        self._twice: LineError | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def labels(self) -> list[int]:
        """Targets as labels."""
        if self._twice is not None:
            raise self._twice
        return [int(label) for label in self.targets]

    def add(self, place: int, text: str) -> None:
        """Read one row."""
        words = text.split()
        written = [] if not words or ":" in words[0] else words.pop(0).split(",")
        features, values = [], []
        try:
            targets = [self._target(target) for target in written]
            for word in words:
                feature, _, value = word.partition(":")
                features.append(_index(feature))
                values.append(number(value))
        except ValueError:
            form = (
                "'number,number feature:value ...' with whole numbers, 0 or more, for features, "
                "and finite values"
                if self.hold_numbers
                else "'label,label feature:value ...' with whole numbers, 0 or more, for labels "
                "and features, and finite values"
            )
            raise LineError(self.path, place, f"the row is not {form}.") from None
        if self._twice is None and len(set(targets)) < len(targets):
            twice = next(k for k in targets if targets.count(k) > 1)
            self._twice = LineError(
                self.path, place, f"label {twice:.0f} occurs twice; remove one."
            )
        if len(set(features)) < len(features):
            twice = next(k for k in features if features.count(k) > 1)
            raise LineError(self.path, place, f"feature {twice} occurs twice; remove one.")
        if values and max(map(abs, values)) > _LARGEST:
            raise LineError(
                self.path, place, "a value is beyond single precision (3e38); divide the feature."
            )
        self.places.append(place)
        self.targets.extend(targets)
        self.target_ends.append(len(self.targets))
        self.features.extend(features)
        self.values.extend(values)
        self.feature_ends.append(len(self.features))

    def _target(self, text: str) -> float:
        if text.isdecimal() and len(text) < 16:  # (a double holds fifteen digits)
            return float(text)
        if self._is_open:
            self.hold_numbers = True
        if not self.hold_numbers:
            raise ValueError(text)
        return number(text)

    def dataset(
        self,
        Y: Matrix,
        target_names: tuple[str, ...],
        n_features: int,
        first: int,
        name: str | None = None,
    ) -> Dataset:
        """Features, counted from ``first``, with the given outputs."""
        return Dataset(
            name=stem(self.path) if name is None else name,
            X=self.X(n_features, first),
            Y=Y,
            feature_names=tuple(map(str, range(first, first + n_features))),
            target_names=target_names,
            task="regression" if self.hold_numbers else "multilabel",
        )

    def numbers(self, n_outputs: int | None) -> Matrix:
        """Targets as numbers (n_rows, n_outputs), NaN in rows without any."""
        counts = np.diff(np.asarray(self.target_ends))
        if n_outputs is None:
            n_outputs = int(counts[np.argmax(counts > 0)])
        if not n_outputs:
            raise ValueError(f"{file_name(self.path)} has no numbers to predict; write some.")
        wrong = np.flatnonzero((counts != n_outputs) & (counts > 0))
        if wrong.size:
            row = int(wrong[0])
            raise LineError(
                self.path,
                self.places[row],
                f"the row has {counts[row]} numbers to predict where there should be {n_outputs}; "
                "write as many in every row, or none where they are missing.",
            )
        Y = np.full((len(self), n_outputs), np.nan)
        Y[counts > 0] = np.asarray(self.targets).reshape(-1, n_outputs)
        return Y

    def check_features(self, first: int, stop: int) -> None:
        """Refuse a feature outside the range."""
        self._check("feature", self.features.tolist(), self.feature_ends, first, stop)

    def check_labels(self, stop: int) -> None:
        """Refuse a label outside the range."""
        self._check("label", self.labels, self.target_ends, 0, stop)

    def _check(
        self, what: str, numbers: list[int], ends: array[int], first: int, stop: int
    ) -> None:
        outside = np.flatnonzero((np.asarray(numbers) < first) | (np.asarray(numbers) >= stop))
        if outside.size:
            row = int(np.searchsorted(np.asarray(ends), outside[0], side="right")) - 1
            raise LineError(
                self.path,
                self.places[row],
                f"{what} {numbers[outside[0]]} is not between {first} and {stop - 1}; correct the "
                f"row or the number of {what}s.",
            )

    def X(self, n_features: int, first: int) -> Matrix:
        """Features, counted from ``first``, as a CSR matrix."""
        indices = np.asarray(self.features) - first
        return self._csr(
            np.asarray(self.values, dtype=np.float32), indices, self.feature_ends, n_features
        )

    def Y(self, labels: range | list[int]) -> Matrix:
        """Labels as a CSR matrix with a column for each of ``labels``, which are sorted."""
        indices = np.searchsorted(np.asarray(labels), self.labels)
        ones = np.ones(len(indices), dtype=np.uint8)
        return self._csr(ones, indices, self.target_ends, len(labels))

    def _csr(self, data: Matrix, indices: Matrix, ends: array[int], n_columns: int) -> Matrix:
        matrix = sparse.csr_matrix((data, indices, np.asarray(ends)), shape=(len(self), n_columns))
        matrix.sort_indices()
        return matrix


def _index(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)
