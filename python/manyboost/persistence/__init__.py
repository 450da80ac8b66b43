"""Models as files: arrays and JSON that hold everything predictions and warm starts need.

:mod:`.files` replaces files, :mod:`.container` is the outside of a file, :mod:`.parts` and
:mod:`.model` list what is inside, :mod:`.values` turns parameters into JSON. docs/model-format.md
describes the result.
"""

from __future__ import annotations

import io
import os
from contextlib import nullcontext
from typing import Any, BinaryIO

from manyboost import memory
from manyboost.persistence import container
from manyboost.persistence.container import BrokenFileError
from manyboost.persistence.files import FilePath, replacing
from manyboost.persistence.model import STORED, complete_file, from_bytes, to_parts
from manyboost.persistence.parts import trees_from_bytes, trees_to_bytes

__all__ = [
    "STORED",
    "complete_file",
    "from_bytes",
    "load",
    "save",
    "trees_from_bytes",
    "trees_to_bytes",
]


def save(model: Any, path: FilePath | BinaryIO, records: str = "auto") -> None:
    """Write a fitted model to a file; see ``save`` of the estimators."""
    _check_file(path, "write")
    with memory.explaining_writing():
        parts = to_parts(model, records)
        with replacing(path) if isinstance(path, str | os.PathLike) else nullcontext(path) as file:
            for part in parts:
                file.write(part)


def load(path: FilePath | BinaryIO) -> Any:
    """Return the model that a file holds.

    Everything in the file is checked; nothing in it is executed.

    Parameters
    ----------
    path : path or binary file
        A file that ``save`` of an estimator wrote; one that is open is read to its end.

    Returns
    -------
    ManyBoostRegressor or ManyBoostClassifier
        Its predictions are those of the saved model, bit for bit; ``warm_start`` continues it.

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
    _check_file(path, "read")
    try:
        if not isinstance(path, str | os.PathLike):
            data = path.read()
            if not isinstance(data, bytes | bytearray | memoryview):
                what = f"read() of the open file returned the type {type(data).__name__}, not bytes"
                raise ValueError(f"{what}; pass a binary file (io.BytesIO, open(…, 'rb')).")
            return from_bytes(bytes(data))
        with memory.explaining_reading(path):
            return from_bytes(container.read(path))
    except BrokenFileError as error:
        name = repr(os.fspath(path)) if isinstance(path, str | os.PathLike) else "The open file"
        raise ValueError(f"{name} is not a sound model file: {error}.") from None


def _check_file(path: Any, method: str) -> None:
    """Refuse what is neither a path nor a file that takes or gives bytes."""
    if isinstance(path, str | os.PathLike):
        return
    if not hasattr(path, method) or isinstance(path, io.TextIOBase):
        what = f"path is of the type {type(path).__name__}"
        mode = {"read": "rb", "write": "wb"}[method]
        raise ValueError(f"{what}; pass a path, or a binary file (io.BytesIO, open(…, {mode!r})).")
