"""Models as files: all that predictions and warm starts need, as arrays and JSON.

:mod:`~manyboost.persistence.container` is the outside of a file, :mod:`.writing` and
:mod:`.reading` are the inside, :mod:`.values` turns parameters into JSON; docs/model-format.md
describes the result.
"""

from __future__ import annotations

import os
from typing import Any

from manyboost import _core, memory
from manyboost.estimators.base import Model
from manyboost.persistence import container
from manyboost.persistence.container import BrokenFileError
from manyboost.persistence.reading import from_bytes, trees_from_bytes
from manyboost.persistence.writing import to_parts

__all__ = ["load", "save", "trees_from_bytes", "trees_to_bytes"]


def save(model: Model, path: str | os.PathLike[str], records: str = "auto") -> None:
    """Write a fitted model to a file; see ``save`` of the estimators."""
    with memory.explaining_writing():
        container.write(path, to_parts(model, records))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that a file holds.

    Everything in the file is checked; nothing in it is executed.

    Parameters
    ----------
    path : path
        A file that ``save`` of an estimator wrote.

    Returns
    -------
    ManyBoostRegressor or ManyBoostClassifier
        It predicts what the saved model did, bit for bit, and can be gone on with (``warm_start``).

    Examples
    --------
    >>> import tempfile, pathlib, manyboost
    >>> from sklearn.datasets import make_regression
    >>> X, Y = make_regression(n_samples=100, n_targets=3, random_state=0)
    >>> model = manyboost.ManyBoostRegressor(random_state=0).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.mb"
    ...     model.save(path)
    ...     again = manyboost.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    try:
        with memory.explaining_reading(path):
            return from_bytes(container.read(path))
    except BrokenFileError as error:
        raise ValueError(f"{os.fspath(path)!r} is not a sound model file: {error}.") from None


def trees_to_bytes(trees: _core.Ensemble) -> bytes:
    """Return a file of nothing but trees, which is what a pickle holds of them."""
    header = {
        "content": "trees",
        "kind": trees.kind,
        "n_outputs": trees.n_outputs,
        "n_features": trees.n_features,
    }
    return b"".join(container.pack(header, trees.arrays()))
