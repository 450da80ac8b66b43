"""The data sets of the paper and other well-known ones: what they are, and where to find them.

The package holds no data; ``catalogue.json`` records what it knows of each set. The shapes of the
29 sets of the paper (Joly, Wehenkel and Geurts, *Gradient tree boosting with random output
projections for multi-label classification and multi-output regression*) are those of its tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from manyboost.datasets.dataset import Dataset, Task, join_train_test
from manyboost.datasets.readers.arff import read_arff
from manyboost.datasets.readers.columns import Column, Table, assemble, select, split_table
from manyboost.datasets.readers.npz import read_npz
from manyboost.datasets.readers.text import PathLike
from manyboost.spelling import nearest

_FOLDER_VARIABLE = "MANYBOOST_DATA"
_CHECKED = ("task", "n_rows", "n_features", "n_outputs")  # of a set against its entry


@dataclass(frozen=True)
class CatalogueEntry:
    """What is known about a data set before it is loaded.

    Attributes
    ----------
    name, task : str
        The name to load it by; "multilabel" or "regression".
    in_paper : bool
        Whether it is one of the 29 sets of the paper.
    n_train, n_test : int, int or None
        Training and test rows; all rows and None if the set has no split, as in the paper.
    n_features, n_outputs : int
        Columns of X and Y.
    source, sha256, openml : str, str or None, int or None
        Where to get it; the hash of its ``.npz`` file; its number at OpenML.
    targets : tuple of str
        Patterns of the names of its outputs. If empty, OpenML or Mulan's XML file marks them.
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


_STORED = resources.files("manyboost.datasets").joinpath("catalogue.json").read_text("utf-8")
#: All known data sets by name, those of the paper first.
CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType(
    {
        name: CatalogueEntry(name, **{**facts, "targets": tuple(facts.get("targets", ()))})
        for name, facts in json.loads(_STORED).items()
    }
)


def load_dataset(name: str, data_dir: PathLike | None = None, *, verify: bool = True) -> Dataset:
    """Load a data set of the paper, or another of the catalogue.

    The set is searched in the folder ``data_dir``, then in the folder named by the environment
    variable ``MANYBOOST_DATA``, then at OpenML (with :func:`sklearn.datasets.fetch_openml`, if its
    entry has a number there; such sets have no split). If it is nowhere, a FileNotFoundError says
    where to get it. In a folder it is one of

    - ``NAME.npz``, in the layout of :func:`read_npz`;
    - ``NAME.arff`` or ``NAME.arff.gz``, or two such files ``NAME-train`` and ``NAME-test``, with
      ``NAME.xml`` if the file itself does not mark its labels.

    Parameters
    ----------
    name, data_dir : str, str or path or None, default=None
        A name in :data:`CATALOGUE`; the folder to search first.
    verify : bool, default=True
        Whether an ``.npz`` file must have the sha256 of the catalogue, not only the shape.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from manyboost.datasets import CATALOGUE, load_dataset
    >>> [entry.name for entry in CATALOGUE.values() if entry.in_paper and entry.n_outputs > 900]
    ['delicious', 'drug-interaction', 'protein-interaction']
    >>> delicious = load_dataset("delicious", "my-data")  # doctest: +SKIP
    """
    if name not in CATALOGUE:
        raise ValueError(f"There is no data set {name!r}; {nearest(str(name), CATALOGUE)}")
    entry = CATALOGUE[name]
    dataset: Dataset | None = None
    folders = {"data_dir": data_dir, _FOLDER_VARIABLE: os.environ.get(_FOLDER_VARIABLE)}
    for origin, folder in folders.items():
        if folder and dataset is None:
            if not Path(folder).is_dir():
                what = f"{origin}={str(folder)!r} is not a folder"
                raise FileNotFoundError(f"{what}; pass the folder of the data.")
            dataset = _from_folder(entry, Path(folder), verify)
    dataset = dataset or _from_openml(entry)
    _check_shape(entry, dataset)
    return dataset


def _from_folder(entry: CatalogueEntry, folder: Path, verify: bool) -> Dataset | None:
    npz, xml = (folder / f"{entry.name}.{ending}" for ending in ("npz", "xml"))
    if npz.is_file():
        expected = entry.sha256 if verify else None
        if expected and (found := hashlib.sha256(npz.read_bytes()).hexdigest()) != expected:
            what = f"{npz.name} has the sha256 {found}, but the catalogue expects {expected}"
            raise ValueError(f"{what}; get the file again, or pass verify=False to use it anyway.")
        return read_npz(npz, name=entry.name)
    labels, targets = (xml, None) if xml.is_file() else (None, entry.targets or None)
    for parts in ([""], ["-train", "-test"]):
        stems = [f"{entry.name}{part}.arff" for part in parts]
        # The compressed file counts if the plain one does not exist.
        paths = [folder / (s if (folder / s).is_file() else f"{s}.gz") for s in stems]
        if all(path.is_file() for path in paths):
            options: Any = {"labels": labels, "targets": targets, "task": entry.task}
            read = [read_arff(path, name=entry.name, **options) for path in paths]
            return read[0] if len(read) == 1 else join_train_test(*read)
    return None


def _check_shape(entry: CatalogueEntry, dataset: Dataset) -> None:
    facts = [(what, getattr(dataset, what), getattr(entry, what)) for what in _CHECKED]
    # If the paper does not split a set, a split in the file is an extra.
    if dataset.split is not None and entry.n_test is not None:
        facts.append(("n_test", int(dataset.split.sum()), entry.n_test))
    for what, found, expected in facts:
        if found != expected:
            what = f"The {what} of data set {entry.name!r} is {found}, but the catalogue expects"
            remedy = f"this is another version of the set, get it from {entry.source}."
            raise ValueError(f"{what} {expected}; {remedy}")


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
            # OpenML may mark only one of several outputs.
            marked = None if entry.targets else "default-target"
            # This parser needs no pandas.
            options = {"as_frame": False, "parser": "liac-arff", "n_retries": 1}
            bunch = fetch_openml(data_id=entry.openml, target_column=marked, **options)
    except OSError as error:
        what = f"Data set {entry.name!r} could not be fetched from OpenML ({error})"
        raise FileNotFoundError(f"{what}; {advice}") from error
    file = f"OpenML's data set {entry.openml}"
    categories = {name: tuple(words) for name, words in (bunch.categories or {}).items()}
    columns = [Column(name, categories.get(name)) for name in bunch.feature_names]
    values = sparse.csr_matrix(bunch.data) if sparse.issparse(bunch.data) else bunch.data
    table = Table(file, columns, values, "row {}".format)
    if entry.targets:
        outputs = select(entry.targets, table.names, file, "targets")
        return split_table(table, outputs, (), entry.task, entry.name)
    target = np.asarray(bunch.target)
    columns = [Column(name) for name in bunch.target_names]
    if target.dtype.kind == "O":  # words such as TRUE and FALSE
        words, target = target.astype(str), np.empty(target.shape)
        for j, name in enumerate(bunch.target_names):
            kinds, target[:, j] = np.unique(words[:, j], return_inverse=True)
            columns[j] = Column(name, tuple(kinds))
    return assemble(table, Table(file, columns, target, table.place), entry.name, entry.task)
