"""The result of every reader: features, outputs, and their description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Task: TypeAlias = Literal["multilabel", "regression"]
#: A dense array or a CSR matrix (scipy's are untyped).
Matrix: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and outputs of one problem, checked to fit together.

    Attributes
    ----------
    name, task : str
        Its name; what Y holds, "multilabel" or "regression".
    X : ndarray or csr_matrix of shape (n_rows, n_features), float32
        Features; NaN where a value is missing, codes for categories.
    Y : ndarray or csr_matrix of shape (n_rows, n_outputs)
        Labels, uint8 0 or 1, sparse if the file is; or targets of a regression, dense floats.
    feature_names, target_names : tuple of str
        One name for each column of X and Y.
    split : ndarray of shape (n_rows,), uint8, or None
        0 for training rows and 1 for test rows, if the set has a split.
    categorical, categories : tuple of int, mapping of int to tuple of str
        Indices of the nominal features, and the categories of each, in the order of their codes.

    Examples
    --------
    >>> import numpy as np
    >>> from manyboost.datasets import Dataset
    >>> X = np.array([[0.5], [1.5], [2.5]], dtype=np.float32)
    >>> Y = np.array([[1, 0], [0, 0], [1, 1]], dtype=np.uint8)
    >>> toy = Dataset("toy", X, Y, ("x",), ("a", "b"), "multilabel", split=np.array([0, 0, 1]))
    >>> X_test, Y_test = toy.test()
    >>> Y_test
    array([[1, 1]], dtype=uint8)
    """

    name: str
    X: Matrix
    Y: Matrix
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    task: Task
    split: NDArray[np.uint8] | None = None
    categorical: tuple[int, ...] = ()
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_task(self.task)
        rows, features = self.X.shape
        outputs = self.Y.shape[1] if self.Y.ndim == 2 else 0
        split = np.zeros(rows, np.uint8) if self.split is None else self.split
        if np.ndim(split) != 1:
            what = f"The split of data set {self.name!r} has the shape {np.shape(split)}"
            raise ValueError(f"{what}; pass one entry for each row.")
        facts = [
            ("rows in Y", self.Y.shape[0], rows, "rows in X"),
            ("feature names", len(self.feature_names), features, "features in X"),
            ("output names", len(self.target_names), outputs, "outputs in Y"),
            ("entries in split", len(split), rows, "rows in X"),
        ]
        for what, count, expected, of in facts:
            if count != expected:
                counts = f"{count} {what} but {expected} {of}"
                raise ValueError(f"Data set {self.name!r} has {counts}; the two must agree.")
        if not np.isin(split, (0, 1)).all():
            what = f"The split of data set {self.name!r} holds values other than 0 and 1"
            raise ValueError(f"{what}; write 0 for a training row and 1 for a test row.")
        check_unique(self.target_names, f"Data set {self.name!r}", "outputs")
        nominal, categories = set(self.categorical), set(self.categories)
        if nominal != categories or not nominal <= set(range(features)):
            what = f"Data set {self.name!r} has the nominal features {sorted(nominal)}"
            known = f"categories for {sorted(categories)} of {features} features"
            raise ValueError(f"{what} but {known}; make them agree.")
        self._check_codes()

    def _check_codes(self) -> None:
        """Refuse nominal features with values that are neither codes nor missing."""
        by_column = self.X.tocsc() if self.categories and sparse.issparse(self.X) else self.X
        for j, known in self.categories.items():
            column = by_column[:, [j]]
            values = column.data if sparse.issparse(column) else column
            wrong = ~(np.isnan(values) | np.isin(values, np.arange(len(known))))
            if wrong.any():
                what = f"Feature {self.feature_names[j]!r} of data set {self.name!r} holds the code"
                codes = f"but its categories have the codes 0 to {len(known) - 1}"
                raise ValueError(f"{what} {values[wrong][0]:g}, {codes}; correct it, or use NaN.")

    def __repr__(self) -> str:
        shape = f"{self.n_rows:,} rows, {self.n_features:,} features, {self.n_outputs:,} outputs"
        return f"Dataset({self.name!r}, {self.task}, {shape})"

    @property
    def n_rows(self) -> int:
        """Number of rows, training and test together."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.Y.shape[1])

    def train(self) -> tuple[Matrix, Matrix]:
        """Return X and Y of the training rows of the split."""
        return self._part(0)

    def test(self) -> tuple[Matrix, Matrix]:
        """Return X and Y of the test rows of the split."""
        return self._part(1)

    def _part(self, part: int) -> tuple[Matrix, Matrix]:
        if self.split is None:
            remedy = "divide X and Y with sklearn.model_selection.train_test_split."
            raise ValueError(f"Data set {self.name!r} has no split; {remedy}")
        rows = self.split == part
        return self.X[rows], self.Y[rows]


def in_single(data: Dataset) -> Dataset:
    """Return a data set with features in single precision; refuse values that it cannot hold."""
    values = data.X.data if sparse.issparse(data.X) else data.X
    with np.errstate(over="ignore"):
        X = data.X.astype(np.float32, copy=False)
    beyond = np.isinf(X.data if sparse.issparse(X) else X) & np.isfinite(values)
    if beyond.any():
        what = f"X of data set {data.name!r} holds {values[beyond][0]:g}, beyond the range of"
        raise ValueError(f"{what} single precision (3e38); divide the feature by a constant.")
    return replace(data, X=X)


def join_train_test(train: Dataset, test: Dataset, *, name: str | None = None) -> Dataset:
    """Join the training and the test file of a set into one data set with a split.

    Parameters
    ----------
    train, test, name : Dataset, Dataset, str or None, default=None
        Two sets with the same features, categories, outputs and task; the name of the joined set,
        by default that of ``train``.

    Returns
    -------
    Dataset
        All rows, those of ``train`` first, with ``split`` 0, then those of ``test`` with 1.

    Examples
    --------
    >>> import numpy as np
    >>> from manyboost.datasets import Dataset, join_train_test
    >>> data = Dataset("toy", np.ones((2, 1)), np.ones((2, 1)), ("x",), ("y",), "regression")
    >>> join_train_test(data, data).split
    array([0, 0, 1, 1], dtype=uint8)
    """
    for what in ("task", "feature_names", "target_names", "categorical", "categories"):
        ours, theirs = getattr(train, what), getattr(test, what)
        if ours != theirs:
            both = f"Training set {train.name!r} and test set {test.name!r}"
            same = f"the same {what}{_first_difference(ours, theirs)}"
            raise ValueError(f"{both} do not have {same}; read both with the same arguments.")
    for each in (train, test):
        if each.split is not None:
            raise ValueError(f"Data set {each.name!r} is split already; join sets without a split.")
    X, Y = (
        sparse.vstack(pair, format="csr") if any(map(sparse.issparse, pair)) else np.vstack(pair)
        for pair in ((train.X, test.X), (train.Y, test.Y))
    )
    split = np.repeat(np.array([0, 1], np.uint8), [train.n_rows, test.n_rows])
    return replace(train, name=train.name if name is None else name, X=X, Y=Y, split=split)


def check_task(task: str | None) -> None:
    """Refuse an unknown task."""
    if task not in get_args(Task):
        raise ValueError(f"task={task!r} is not a task; pass 'multilabel' or 'regression'.")


def check_unique(names: Sequence[str], place: str, what: str) -> None:
    """Refuse a name that occurs twice, because it is ambiguous."""
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(f"{place} has two {what} called {twice!r}; rename one of them.")


def _first_difference(ours: Any, theirs: Any) -> str:
    """Describe the first difference of two descriptions, briefly."""
    if isinstance(ours, tuple):
        if len(ours) != len(theirs):
            return f" ({len(ours)} and {len(theirs)})"
        ours, theirs = next((a, b) for a, b in zip(ours, theirs, strict=True) if a != b)
    if not isinstance(ours, Mapping):
        return f" ({ours!r} and {theirs!r})"
    feature = next(key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key))
    return f" (of feature {feature})"
