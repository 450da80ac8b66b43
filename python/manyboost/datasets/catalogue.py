"""The data sets of the paper and other well-known ones: what they are, and where to find them.

The package holds no data. For each set, ``catalogue.json`` records the task and shape, where to get
it, the sha256 of its ``.npz`` file if there is one, and its number at OpenML with the names of its
outputs there. The shapes of the 29 sets of the paper (Joly, Wehenkel and Geurts, *Gradient tree
boosting with random output projections for multi-label classification and multi-output regression*)
are those of its tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from manyboost.datasets.dataset import Dataset, Task, join_train_test
from manyboost.datasets.readers.arff import read_arff
from manyboost.datasets.readers.columns import Column, Table, assemble, remaining, select
from manyboost.datasets.readers.npz import read_npz
from manyboost.datasets.readers.text import PathLike
from manyboost.spelling import nearest

_FOLDER_VARIABLE = "MANYBOOST_DATA"


@dataclass(frozen=True)
class CatalogueEntry:
    """What is known about a data set before it is loaded.

    Attributes
    ----------
    name : str
        The name to load it by.
    task : {"multilabel", "regression"}
        What its outputs are.
    in_paper : bool
        Whether it is one of the 29 sets of the paper.
    n_train, n_test : int, int or None
        Training and test rows. If ``n_test`` is ``None`` the set has no split, as in the paper, and
        ``n_train`` is the number of all rows.
    n_features, n_outputs : int
        Columns of X and Y.
    source : str
        Where to get it.
    sha256 : str or None
        Hash of its ``.npz`` file.
    openml : int or None
        Its number at OpenML.
    targets : tuple of str
        Patterns of the names of its outputs. If empty, OpenML marks the outputs and Mulan's XML
        file names them.
    """

    name: str
    task: Task
    in_paper: bool
    n_train: int
    n_test: int | None
    n_features: int
    n_outputs: int
    source: str
    sha256: str | None = None
    openml: int | None = None
    targets: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows, training and test together."""
        return self.n_train + (self.n_test or 0)


def _read_catalogue() -> Mapping[str, CatalogueEntry]:
    text = resources.files("manyboost.datasets").joinpath("catalogue.json").read_text("utf-8")
    return MappingProxyType(
        {
            name: CatalogueEntry(name, **{**facts, "targets": tuple(facts.get("targets", ()))})
            for name, facts in json.loads(text).items()
        }
    )


#: All known data sets by name, those of the paper first.
CATALOGUE = _read_catalogue()


def load_dataset(name: str, data_dir: PathLike | None = None, *, verify: bool = True) -> Dataset:
    """Load a data set of the paper, or another of the catalogue.

    The set is searched in the folder ``data_dir``, then in the folder named by the environment
    variable ``MANYBOOST_DATA``, then at OpenML (with :func:`sklearn.datasets.fetch_openml`, if its
    entry has a number there; such sets have no split). In a folder it is one of

    - ``NAME.npz``, in the layout of :func:`read_npz`;
    - ``NAME.arff`` or ``NAME.arff.gz``, or two such files ``NAME-train`` and ``NAME-test``, with
      ``NAME.xml`` if the file itself does not mark its labels.

    Parameters
    ----------
    name : str
        A name in :data:`CATALOGUE`.
    data_dir : str or path, default=None
        The folder to search first.
    verify : bool, default=True
        Whether an ``.npz`` file must have the sha256 of the catalogue. The shape is always
        checked.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If the set is neither in a folder nor at OpenML; the message says where to get it.

    Examples
    --------
    >>> from manyboost.datasets import CATALOGUE, load_dataset
    >>> [entry.name for entry in CATALOGUE.values() if entry.in_paper and entry.n_outputs > 900]
    ['delicious', 'drug-interaction', 'protein-interaction']
    >>> delicious = load_dataset("delicious", "my-data")  # doctest: +SKIP
    >>> load_dataset("delicius")
    Traceback (most recent call last):
    ...
    ValueError: There is no data set 'delicius'; did you mean 'delicious'?
    """
    entry = _entry(name)
    for folder in _folders(data_dir):
        dataset = _from_folder(entry, folder, verify)
        if dataset is not None:
            break
    else:
        dataset = _from_openml(entry)
    _check_shape(entry, dataset)
    return dataset


def _entry(name: str) -> CatalogueEntry:
    if name in CATALOGUE:
        return CATALOGUE[name]
    raise ValueError(f"There is no data set {name!r}; {nearest(str(name), CATALOGUE)}")


def _folders(data_dir: PathLike | None) -> Iterator[Path]:
    for origin, folder in (
        ("data_dir", data_dir),
        (_FOLDER_VARIABLE, os.environ.get(_FOLDER_VARIABLE)),
    ):
        if folder:
            if not Path(folder).is_dir():
                raise FileNotFoundError(
                    f"{origin}={str(folder)!r} is not a folder; pass the folder of the data."
                )
            yield Path(folder)


def _from_folder(entry: CatalogueEntry, folder: Path, verify: bool) -> Dataset | None:
    npz = folder / f"{entry.name}.npz"
    if npz.is_file():
        if verify and entry.sha256 is not None:
            _check_hash(npz, entry.sha256)
        return read_npz(npz, name=entry.name)
    whole, train, test = (_arff_file(folder, entry.name + part) for part in ("", "-train", "-test"))
    if whole is not None:
        return _from_arff(entry, whole)
    if train is not None and test is not None:
        parts = (_from_arff(entry, path) for path in (train, test))
        return join_train_test(*parts, name=entry.name)
    return None


def _arff_file(folder: Path, name: str) -> Path | None:
    paths = (folder / f"{name}.arff", folder / f"{name}.arff.gz")
    return next((path for path in paths if path.is_file()), None)


def _from_arff(entry: CatalogueEntry, path: Path) -> Dataset:
    labels = path.parent / f"{entry.name}.xml"
    return read_arff(
        path,
        labels=labels if labels.is_file() else None,
        targets=entry.targets if entry.targets and not labels.is_file() else None,
        task=entry.task,
        name=entry.name,
    )


def _check_hash(path: Path, expected: str) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != expected:
        raise ValueError(
            f"{path.name} has the sha256 {found}, but the catalogue expects {expected}; get the "
            "file again, or pass verify=False to use it as it is."
        )


def _check_shape(entry: CatalogueEntry, dataset: Dataset) -> None:
    facts: list[tuple[str, Any, Any]] = [
        ("task", dataset.task, entry.task),
        ("number of rows", dataset.n_rows, entry.n_rows),
        ("number of features", dataset.n_features, entry.n_features),
        ("number of outputs", dataset.n_outputs, entry.n_outputs),
    ]
    # If the paper does not split a set, a split in the file is an extra.
    if dataset.split is not None and entry.n_test is not None:
        facts.append(("number of test rows", int(dataset.split.sum()), entry.n_test))
    for what, found, expected in facts:
        if found != expected:
            raise ValueError(
                f"The {what} of data set {entry.name!r} is {found}, but the catalogue expects "
                f"{expected}; this is another version of the set, get it from {entry.source}."
            )


def _from_openml(entry: CatalogueEntry) -> Dataset:
    advice = (
        f"get it from {entry.source} and put it, as {entry.name}.npz or {entry.name}.arff, into "
        f"the folder data_dir or the folder named by {_FOLDER_VARIABLE}."
    )
    if entry.openml is None:
        raise FileNotFoundError(f"Data set {entry.name!r} was not found; {advice}")
    from sklearn.datasets import fetch_openml  # only here: it is slow to import

    try:
        with warnings.catch_warnings():
            # If the second attempt fails too, the error below says so.
            warnings.filterwarnings("ignore", "A network error occurred")
            bunch = fetch_openml(
                data_id=entry.openml,
                # OpenML may mark only one of several outputs.
                target_column=None if entry.targets else "default-target",
                as_frame=False,
                parser="liac-arff",  # the one that needs no pandas
                n_retries=1,
            )
    except OSError as error:
        raise FileNotFoundError(
            f"Data set {entry.name!r} could not be fetched from OpenML ({error}); {advice}"
        ) from error
    file = f"OpenML's data set {entry.openml}"
    categories = bunch.categories or {}
    columns = [
        Column(name, tuple(categories[name]) if name in categories else None)
        for name in bunch.feature_names
    ]
    values = sparse.csr_matrix(bunch.data) if sparse.issparse(bunch.data) else bunch.data
    table = Table(file, columns, values, "row {}".format)
    if entry.targets:
        outputs = select(entry.targets, table.names, file, "targets")
        X = table.take(remaining(table.names, file, outputs, []))
        return assemble(X, table.take(outputs), entry.name, entry.task)
    target = np.asarray(bunch.target)
    columns = [Column(name) for name in bunch.target_names]
    if target.dtype.kind == "O":  # words such as TRUE and FALSE
        coded = [np.unique(column.astype(str), return_inverse=True) for column in target.T]
        columns = [
            Column(c.name, tuple(kinds)) for c, (kinds, _) in zip(columns, coded, strict=True)
        ]
        target = np.column_stack([codes for _, codes in coded]).astype(np.float64)
    return assemble(table, Table(file, columns, target, table.place), entry.name, entry.task)
