"""Files with one sparse row a line, ``label,label feature:value feature:value``.

Two formats share it: svmlight, with labels or with numbers to predict in their place, and that of
the extreme classification repository, whose first line is ``rows features labels``.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64
from manyboost.datasets.dataset import Dataset, Matrix, Task, in_single
from manyboost.datasets.readers.text import PathLike, TextFile, number, set_name

#: What a row begins with; "auto": labels, if all rows could begin with labels.
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

    Outputs and features are named by their numbers. Empty lines and comments are skipped.

    Parameters
    ----------
    path, name
        See :func:`read_csv`.
    n_features, n_outputs : int or None, default=None
        Number of features, by default the highest in the file, and of outputs, the labels 0 to
        ``n_outputs - 1``, by default those in the file. Pass them if several files must agree.
    zero_based : bool or "auto", default="auto"
        Whether features are counted from 0 or from 1; "auto" looks for a feature 0.
    targets : {"labels", "numbers", "auto"}, default="labels"
        What a row begins with: any number of labels, which are integers; or as many numbers to
        predict as other rows, or none if they are missing, called "y", or "y0", "y1", … "auto"
        reads labels unless there is a sign, a decimal point or an exponent.

    Returns
    -------
    Dataset
        X is a CSR matrix, and so is Y unless it holds numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyboost.datasets import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.svm")
    ...     _ = path.write_text("3,7 1:0.5 4:2\n7 2:1\n")
    ...     toy = read_svmlight(path)
    >>> toy.feature_names, toy.target_names, toy.Y.toarray().tolist()
    (('1', '2', '3', '4'), ('3', '7'), [[1, 1], [0, 1]])
    """
    how: dict[str, Any] = {"n_features": n_features, "n_outputs": n_outputs}
    how |= {"zero_based": zero_based, "targets": targets, "name": name}
    return in_single(stored_svmlight(path, **how))


def stored_svmlight(
    path: PathLike,
    *,
    n_features: int | None = None,
    n_outputs: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    targets: Targets = "labels",
    name: str | None = None,
) -> Dataset:
    """Read a file as :func:`read_svmlight` does, with features in double precision."""
    rows = _svmlight_rows(path, targets)
    if len(rows) == 0:
        raise ValueError(f"{rows.file.name} has no rows; a data set needs at least one.")
    has_zero = bool((rows.features == 0).any())
    first = 0 if (has_zero if zero_based == "auto" else zero_based) else 1
    if n_features is None:
        n_features = int(rows.features.max(initial=first - 1)) - first + 1
    if rows.hold_numbers:
        Y = rows.numbers(n_outputs)
        names = ("y",) if Y.shape[1] == 1 else tuple(f"y{j}" for j in range(Y.shape[1]))
    else:
        labels = np.unique(rows.targets) if n_outputs is None else np.arange(n_outputs)
        if n_outputs is not None:
            rows.check("label", 0, n_outputs)
        Y, names = rows.labels(labels), tuple(f"{label:.0f}" for label in labels)
    if not names:
        raise ValueError(f"{rows.file.name} has no labels; a data set needs some.")
    return rows.dataset(Y, names, n_features, first, name)


def read_svmlight_like(
    path: PathLike, feature_names: Sequence[str], target_names: Sequence[str]
) -> Dataset | None:
    """Read a file with the features and labels of another, in double precision.

    Features and labels that the other file did not have are ignored, and rows need no targets. The
    result is None if no svmlight file has such feature names.
    """
    first, n_features = int(list(feature_names[:1]) == ["1"]), len(feature_names)
    if list(feature_names) != [str(k) for k in range(first, first + n_features)]:
        return None
    has_labels = all(name.isdecimal() for name in target_names)
    targets: Targets = "labels" if has_labels else "numbers"
    rows = _svmlight_rows(path, targets if target_names else "auto")  # any, if none is wanted
    rows.forget_features(first + n_features)
    if has_labels:
        Y = rows.labels(np.array(target_names, np.float64))
    else:
        Y = rows.numbers(len(target_names))
    return rows.dataset(Y, tuple(target_names), n_features, first, None)


def _svmlight_rows(path: PathLike, targets: Targets) -> _Rows:
    file = TextFile(path)
    without_comments = (text.partition("#")[0].strip() for text in file)
    return _Rows(file, filter(None, without_comments), targets)


def read_xc(path: PathLike, *, name: str | None = None) -> Dataset:
    r"""Read a file in the text format of the extreme classification repository.

    The first line holds the numbers of rows, features and labels. Every other line is a row,
    ``label,label feature:value feature:value``, with labels and features counted from 0. A row
    without labels begins with a space or with its features.

    Parameters
    ----------
    path, name
        See :func:`read_csv`.

    Returns
    -------
    Dataset
        X and Y are CSR matrices; names of features and outputs are their numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyboost.datasets import read_xc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.txt")
    ...     _ = path.write_text("2 4 3\n0,2 1:0.5 3:2\n 0:1\n")
    ...     toy = read_xc(path)
    >>> toy.X.shape, toy.Y.toarray().tolist()
    ((2, 4), [[1, 0, 1], [0, 0, 0]])
    """
    return in_single(stored_xc(path, name))


def stored_xc(path: PathLike, name: str | None = None) -> Dataset:
    """Read a file as :func:`read_xc` does, with features in double precision."""
    file = TextFile(path)
    texts = iter(file)
    header = re.fullmatch(r"(\d+)\s+(\d+)\s+(\d+)", next(texts, "").strip())
    if header is None or "0" in header.groups():
        raise file.error("the first line must hold the numbers of rows, features and labels.", 1)
    n_rows, n_features, n_outputs = map(int, header.groups())
    rows = _Rows(file, islice(texts, n_rows), "labels")
    found = len(rows) + sum(1 for text in texts if text.strip())  # empty lines may follow
    if found != n_rows:
        counts = f"{found} row{'' if found == 1 else 's'} but its first line says {n_rows}"
        remedy = "the file may be cut short" if found < n_rows else "correct that number"
        raise ValueError(f"{file.name} has {counts}; {remedy}.")
    rows.check("label", 0, n_outputs)
    names = tuple(map(str, range(n_outputs)))
    return rows.dataset(rows.labels(np.arange(n_outputs)), names, n_features, 0, name)


class _Rows:
    """The rows of a file: targets and features, one row after another."""

    def __init__(self, file: TextFile, texts: Iterable[str], targets: Targets) -> None:
        self.file = file
        #: Whether targets are numbers to predict, not labels, as far as the rows tell.
        self.hold_numbers = targets == "numbers"
        self._may_hold_numbers = targets != "labels"
        self._lines = array("q")
        found, features, values = array("d"), array("q"), array("d")
        self._target_ends, self._feature_ends = array("q", [0]), array("q", [0])
        twice: ValueError | None = None  # an error unless the targets are numbers
        for text in texts:
            row_targets, row_features, row_values = self._parsed(text)
            if twice is None and len(set(row_targets)) < len(row_targets):
                twice = self._twice("label", row_targets)
            if len(set(row_features)) < len(row_features):
                raise self._twice("feature", row_features)
            self._lines.append(file.line)
            found.extend(row_targets)
            features.extend(row_features)
            values.extend(row_values)
            self._target_ends.append(len(found))
            self._feature_ends.append(len(features))
        if twice is not None and not self.hold_numbers:
            raise twice
        self.targets, self.features = np.asarray(found), np.asarray(features)
        self._values = np.asarray(values)

    def __len__(self) -> int:
        return len(self._lines)

    def _parsed(self, text: str) -> tuple[list[float], list[int], list[float]]:
        words = text.split()
        written = [] if not words or ":" in words[0] else words.pop(0).split(",")
        pairs = [word.partition(":") for word in words]
        try:
            targets = [self._target(target) for target in written]
            if not all(index.isdecimal() for index, _, _ in pairs):
                raise ValueError(text)
            return targets, [int(pair[0]) for pair in pairs], [number(pair[2]) for pair in pairs]
        except ValueError:
            target, whole = ("number", "") if self.hold_numbers else ("label", "labels and ")
            raise self.file.error(
                f"the row is not '{target},{target} feature:value ...' with whole numbers, 0 or "
                f"more, for {whole}features, and numbers as values."
            ) from None

    def _target(self, text: str) -> float:
        if text.isdecimal() and len(text) < 16:  # a double holds fifteen digits
            return float(text)
        self.hold_numbers = self._may_hold_numbers
        if not self.hold_numbers:
            raise ValueError(text)
        return number(text)

    def _twice(self, what: str, numbers: Sequence[float]) -> ValueError:
        twice = next(k for k in numbers if numbers.count(k) > 1)
        return self.file.error(f"{what} {twice:.0f} occurs twice; remove one.")

    def check(self, what: Literal["feature", "label"], first: int, stop: int) -> None:
        """Refuse a feature or label outside the half-open range."""
        numbers, ends = self.features, self._feature_ends
        if what == "label":
            numbers, ends = self.targets, self._target_ends
        outside = np.flatnonzero((numbers < first) | (numbers >= stop))
        if outside.size:
            row = bisect_right(ends, outside[0]) - 1
            found = f"{what} {numbers[outside[0]]:.0f} is not between {first} and {stop - 1}"
            remedy = f"correct the row or the number of {what}s."
            raise self.file.error(f"{found}; {remedy}", self._lines[row])

    def forget_features(self, stop: int) -> None:
        """Leave out the features from a number on."""
        kept = self.features < stop
        ends = np.append(0, np.cumsum(kept))[np.asarray(self._feature_ends)]
        self._feature_ends = array("q", ends.tolist())
        self.features, self._values = self.features[kept], self._values[kept]

    def numbers(self, n_outputs: int | None) -> F64:
        """Return targets as numbers (n_rows, n_outputs), NaN in rows without any."""
        counts = np.diff(self._target_ends)
        if n_outputs is None:
            n_outputs = int(counts[np.argmax(counts > 0)])
        if not n_outputs:
            raise ValueError(f"{self.file.name} has no numbers to predict; write some.")
        wrong = np.flatnonzero((counts != n_outputs) & (counts > 0))
        if wrong.size:
            what = f"the row has {counts[wrong[0]]} numbers to predict instead of {n_outputs}"
            remedy = "write the same number in every row, or none if they are missing."
            raise self.file.error(f"{what}; {remedy}", self._lines[wrong[0]])
        Y = np.full((len(self), n_outputs), np.nan)
        Y[counts > 0] = self.targets.reshape(-1, n_outputs)
        return Y

    def labels(self, known: NDArray[Any]) -> Matrix:
        """Return a CSR matrix with a column for each known label; others are ignored."""
        column = {label: j for j, label in enumerate(known.tolist())}
        columns = np.array([column.get(label, -1) for label in self.targets.tolist()], np.intp)
        rows = np.repeat(np.arange(len(self)), np.diff(self._target_ends))[columns >= 0]
        entries = np.ones(len(rows), np.uint8), (rows, columns[columns >= 0])
        return sparse.csr_matrix(entries, shape=(len(self), len(known)))

    def dataset(
        self, Y: Matrix, names: tuple[str, ...], n_features: int, first: int, name: str | None
    ) -> Dataset:
        """Return features, counted from ``first``, with the given outputs and their names."""
        self.check("feature", first, first + n_features)
        if not n_features:
            raise ValueError(f"{self.file.name} has no features; a data set needs some.")
        arrays = self._values, self.features - first, np.asarray(self._feature_ends)
        X = sparse.csr_matrix(arrays, shape=(len(self), n_features))
        X.sort_indices()
        feature_names = tuple(map(str, range(first, first + n_features)))
        task: Task = "regression" if self.hold_numbers else "multilabel"
        return Dataset(set_name(self.file.path, name), X, Y, feature_names, names, task)
