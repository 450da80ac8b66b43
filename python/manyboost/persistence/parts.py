"""Parts of a file: each says once how it is written, and how it is checked and read.

A :class:`Part` writes to a :class:`Draft` and reads from :class:`Contents`. A kind of file is a
list of parts, which both directions follow in the same order. The parts in this module are shared by
model files and checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.persistence import container
from manyboost.persistence.container import broken
from manyboost.persistence.values import Decoder, Encoder, LeftOut
from manyboost.training.checkpoints import Start
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.progress import Progress
from manyboost.training.projections import PROJECTIONS
from manyboost.training.strategies import STRATEGIES

Array = NDArray[Any]
Shape = tuple[int | None, ...]
_T = TypeVar("_T")

# Records of training that a file may leave out.
IMPORTANCES, CURVES = "importances by output", "curves by output"


@dataclass
class Draft:
    """A file that is being written.

    ``progress`` are the trees and records to store, which during training are not those of the
    model. ``encoder`` collects the arrays of encoded values.
    """

    model: Any
    progress: Progress
    start: Start
    header: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    encoder: Encoder = field(default_factory=Encoder)

    @property
    def trees(self) -> _core.Ensemble:
        """The trees to store."""
        assert isinstance(self.progress.model, TreeEnsemble)
        return self.progress.model.trees

    def complete(self, parts: Iterable[Part]) -> tuple[dict[str, Any], dict[str, Array]]:
        """Write all parts; return header and arrays."""
        for part in parts:
            part.write(self)
        values = {f"value_{k:06d}": array for k, array in enumerate(self.encoder.arrays)}
        return self.header, self.arrays | values


class Contents:
    """A file that is being read: every entry must be taken once, and have the right type.

    ``found`` has what the parts read so far have returned, by their names.
    """

    def __init__(self, data: bytes) -> None:
        self.header, self.arrays = container.unpack(data)
        del self.header["arrays"]
        self.found = SimpleNamespace()
        names = sorted(name for name in self.arrays if name.startswith("value_"))
        if names != [f"value_{k:06d}" for k in range(len(names))]:
            broken("its arrays of parameters are not numbered")
        self.decoder = Decoder([self.arrays.pop(name) for name in names])

    def read(self, parts: Iterable[Part]) -> SimpleNamespace:
        """Read all parts; refuse entries that belong to none of them."""
        for part in parts:
            setattr(self.found, part.name, part.read(self))
        self.decoder.done()
        for name in [*self.header, *self.arrays]:
            broken(f"it has {name!r}, which this release does not know")
        return self.found

    def take(self, name: str, type_: type[_T] | tuple[type[_T], ...]) -> _T:
        """Take an entry of the header."""
        if name not in self.header:
            broken(f"it has no {name!r}")
        value = self.header.pop(name)
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            broken(f"its {name!r} has the type {type(value).__name__}")
        return value

    def texts(self, name: str) -> list[str]:
        """Take a list of texts."""
        values: list[Any] = self.take(name, list)
        if not all(isinstance(each, str) for each in values):
            broken(f"its {name!r} are not all text")
        return values

    def names(self, name: str, count: int) -> list[str] | None:
        """Take ``count`` different texts, or null."""
        if name in self.header and self.header[name] is None:
            return self.take(name, type(None))
        values = self.texts(name)
        if len(values) != count or len(set(values)) != count:
            broken(f"its {name!r} are not {count} different names")
        return values

    def decoded(self, name: str, types: type | tuple[type, ...]) -> Any:
        """Take an encoded value."""
        return self.decoder.decode(self.take(name, types))

    def view(self, name: str, dtype: str, shape: Shape) -> Array:
        """Take an array without copying it; None in its shape stands for any number."""
        if name not in self.arrays:
            broken(f"it has no array {name!r}")
        array = self.arrays.pop(name)
        fits = len(array.shape) == len(shape) and all(
            wanted in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
        )
        if array.dtype != np.dtype(dtype) or not fits:
            broken(f"its array {name!r} is {array.dtype} of shape {array.shape}")
        return array

    def array(self, name: str, dtype: str, shape: Shape) -> Array:
        """Take a copy of an array, which does not keep the bytes of the file in memory."""
        return np.array(self.view(name, dtype, shape))


@dataclass(frozen=True)
class Part:
    """A part of a file; what ``read`` returns is found under ``name``."""

    name: str
    write: Callable[[Draft], None]
    read: Callable[[Contents], Any]


def entry(name: str, get: Callable[[Draft], Any], read: Callable[[Contents, str], Any]) -> Part:
    """Return the part that is one entry of the header."""

    def write(draft: Draft) -> None:
        draft.header[name] = get(draft)

    return Part(name, write, lambda file: read(file, name))


def optional_array(
    name: str,
    dtype: str,
    get: Callable[[Draft], Array | None],
    shape: Callable[[SimpleNamespace], Shape],
    limits: Callable[[SimpleNamespace], tuple[float, float]],
) -> Part:
    """Return the part that is one array of numbers within limits, or None."""

    def write(draft: Draft) -> None:
        array = get(draft)
        if array is not None:
            draft.arrays[name] = array

    def read(file: Contents) -> Array | None:
        if name not in file.arrays:
            return None
        return within(file.array(name, dtype, shape(file.found)), *limits(file.found))

    return Part(name, write, read)


def of_type(type_: type) -> Callable[[Contents, str], Any]:
    """Return a reader of entries of a type."""
    return lambda file, name: file.take(name, type_)


def integer(low: int, high: int) -> Callable[[Contents, str], int]:
    """Return a reader of integers in a closed range."""

    def read(file: Contents, name: str) -> int:
        value = file.take(name, int)
        return (
            value
            if low <= value <= high
            else broken(f"its {name!r} is {value}, beyond {low} to {high}")
        )

    return read


def choice(*options: str) -> Callable[[Contents, str], str]:
    """Return a reader of one of some texts."""

    def read(file: Contents, name: str) -> str:
        value = file.take(name, str)
        if value not in options:
            broken(f"its {name!r} is {value!r}, which this release does not know")
        return value

    return read


def finite(array: Array) -> Array:
    """Refuse NaN and infinity."""
    if not np.isfinite(array).all():
        broken("it has numbers that are not finite where they must be")
    return array


def within(array: Array, low: float, high: float) -> Array:
    """Refuse numbers outside a closed range, and NaN."""
    if not ((array >= low) & (array <= high)).all():
        broken(f"it has numbers beyond {low} to {high}")
    return array


# ---------------------------------------------------------------------- shared parts


def _read_n_features(file: Contents, name: str) -> int:
    """Compare the number of features with the importances, before anything is allocated for it."""
    p = integer(1, 2**30)(file, name)
    importances = file.arrays.get("importances", file.arrays.get("mean_importances"))
    if importances is None or importances.shape[:1] != (p,):
        broken(f"it does not have importances of {p} features")
    return p


def _read_projection(file: Contents, name: str) -> Any:
    projection = file.decoded(name, (str, dict))
    known = isinstance(projection, str) and projection in PROJECTIONS
    if not known and not isinstance(projection, LeftOut):
        broken("it was trained with an unknown projection")
    return projection


# Types of the columns of search_results_.
_SEARCH_COLUMNS = {
    "strategy": "O",
    "projection": "O",
    "heats": "i",
    "n_rounds": "i",
    "validation_score": "f",
}


def _read_search_results(file: Contents, name: str) -> dict[str, Array] | None:
    results = file.decoded(name, (type(None), dict))
    if results is None:
        return None
    columns = isinstance(results, dict) and list(results) == list(_SEARCH_COLUMNS)
    if not columns or not all(isinstance(each, np.ndarray) for each in results.values()):
        broken("it does not say how its strategy was chosen")
    shapes = {each.shape for each in results.values()}
    types = [each.dtype.kind for each in results.values()]
    if types != list(_SEARCH_COLUMNS.values()) or shapes != {results["heats"].shape[:1]}:
        broken("it has results of a search that are not one for each strategy")
    return dict(results)


def write_trees(draft: Draft) -> None:
    """Write the arrays of the trees."""
    draft.arrays.update(draft.trees.arrays())


def read_trees(file: Contents, n_categories: NDArray[np.uint32] | None) -> _core.Ensemble:
    """Read the trees, which the core checks."""
    found = file.found
    kind, d, p = found.kind, found.n_outputs, found.n_features
    arrays = {
        "tree_sizes": file.view("tree_sizes", "u4", (None,)),
        "node_left": file.view("node_left", "u4", (None,)),
        "node_cover": file.view("node_cover", "f4", (None,)),
        "split_feature": file.view("split_feature", "u4", (None,)),
        "split_threshold": file.view("split_threshold", "f4", (None,)),
        "split_gain": file.view("split_gain", "f4", (None,)),
        "split_categories": file.view("split_categories", "u4", (None, 8)),
        "leaf_values": file.view("leaf_values", "f4", (None, d if kind == "vector" else 1)),
    }
    if kind == "scaled":
        arrays["tree_steps"] = file.view("tree_steps", "f4", (len(arrays["tree_sizes"]), d))
    try:
        return _core.Ensemble.from_arrays(kind, d, p, arrays, n_categories)
    except ValueError as error:
        broken(str(error))


# Tables of the progress with a column for each output, which may be empty: numbers of their rows
# for n scores of the baseline and all rounds.
_TABLES: dict[str, Callable[[int], int | None]] = {
    "validation_per_output": lambda n: n,
    "train_per_output": lambda n: n,
    "shares": lambda n: 2,
    "steps": lambda n: None,
}


def _write_records(draft: Draft) -> None:
    progress, arrays = draft.progress, draft.arrays
    arrays["train_score"] = np.array(progress.train_score)
    arrays["validation_score"] = np.array(progress.validation_score)
    scores = np.array(list(progress.validation_scores.values()), np.float64)
    arrays["validation_scores"] = scores.reshape(-1, len(progress.train_score))
    for name in _TABLES:
        if rows := getattr(progress, name):
            arrays[name] = np.array(list(rows), np.float64)
    for name in ("importances", "mean_importances"):
        if (values := getattr(progress, name)) is not None:
            arrays[name] = values
            break


def _read_records(file: Contents) -> Progress:
    """Read the scores, steps and importances; return them with the trees."""
    trees, left_out = file.found.trees, file.found.left_out
    d, p, n = trees.n_outputs, trees.n_features, trees.n_rounds + 1
    if (IMPORTANCES in left_out) == ("importances" in file.arrays):
        broken("it does not say whether importances by output are left out")
    importances = mean_importances = None
    if IMPORTANCES in left_out:
        mean_importances = file.array("mean_importances", "f8", (p,))
        if not np.isnan(mean_importances).all():
            within(mean_importances, 0, 1)
    else:
        importances = file.array("importances", "f8", (p, d))
    train_score = file.array("train_score", "f8", (n,)).tolist()
    names = file.found.score_names
    validation_score = file.array("validation_score", "f8", (n if names else 0,)).tolist()
    scores = file.array("validation_scores", "f8", (len(names), n)).tolist()
    if len(set(names)) != len(names):
        broken("it has two scores of one name")
    tables: dict[str, Any] = {name: [] for name in _TABLES}
    for name in _TABLES.keys() & file.arrays.keys():
        tables[name] = list(file.array(name, "f8", (_TABLES[name](n), d)))
        if not tables[name]:
            broken(f"its array {name!r} is empty")
    if len(tables["steps"]) >= n:
        broken("it has steps of rounds that it does not have")
    if CURVES in left_out and tables["validation_per_output"]:
        broken("it does not say whether curves by output are left out")
    if bool(tables["train_per_output"]) != bool(tables["shares"]):
        broken("it has curves by output without their shares, or shares without curves")
    tables["shares"] = tuple(tables["shares"]) or None
    return Progress(
        TreeEnsemble(trees),
        importances,
        train_score,
        validation_score,
        dict(zip(names, scores, strict=True)),
        mean_importances=mean_importances,
        **tables,
    )


KIND = entry(
    "kind", lambda draft: draft.trees.kind, choice(*(each.trees for each in STRATEGIES.values()))
)
N_OUTPUTS = entry("n_outputs", lambda draft: draft.trees.n_outputs, integer(1, 2**32))
N_FEATURES = entry("n_features", lambda draft: draft.trees.n_features, _read_n_features)
SEED = entry("seed", lambda draft: draft.start.seed, integer(0, 2**31))
PROJECTION = entry(
    "projection", lambda draft: draft.encoder.encode(draft.start.projection), _read_projection
)
SEARCH_RESULTS = entry(
    "search_results",
    lambda draft: draft.encoder.encode(draft.start.search_results),
    _read_search_results,
)
SCORE_NAMES = entry(
    "score_names", lambda draft: list(draft.progress.validation_scores), Contents.texts
)
RECORDS = Part("progress", _write_records, _read_records)

# Trees alone have no start.
_NO_START = Start(0, "", "")

# What a pickle holds of an ensemble.
_TREES = (
    entry("content", lambda draft: "trees", choice("trees")),
    KIND,
    N_OUTPUTS,
    entry("n_features", lambda draft: draft.trees.n_features, integer(1, 2**30)),
    Part("trees", write_trees, lambda file: read_trees(file, None)),
)


def trees_to_bytes(trees: _core.Ensemble) -> bytes:
    """Return the bytes of a file that holds nothing but trees."""
    return b"".join(
        container.pack(
            *Draft(None, Progress(TreeEnsemble(trees), None), _NO_START).complete(_TREES)
        )
    )


def trees_from_bytes(data: bytes) -> _core.Ensemble:
    """Return the trees of such a file."""
    trees: _core.Ensemble = Contents(data).read(_TREES).trees
    return trees
