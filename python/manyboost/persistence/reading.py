"""The estimator, from a model's header and arrays, all of them checked.

The core checks the trees. Everything in a file must be asked for, so that nothing in it is passed
over: a file whose checksum was mended is refused, or says what the model says that comes of it.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from manyboost import _core, params
from manyboost.data.categories import Categories
from manyboost.data.frames import CategoryLabels
from manyboost.data.labels import Classes
from manyboost.estimators import ManyBoostClassifier
from manyboost.estimators.base import Model
from manyboost.estimators.fitting import KINDS
from manyboost.persistence import container
from manyboost.persistence.container import broken
from manyboost.persistence.values import Decoder, Encoder, LeftOut
from manyboost.persistence.writing import (
    CURVES,
    ESTIMATORS,
    IMPORTANCES,
    OF_A_RUN,
    check_parameter,
    holds_code,
    stored_classes,
)
from manyboost.training.boosting import Progress
from manyboost.training.constraints import Constraints, Monotonic
from manyboost.training.losses import (
    LABEL_LOSSES,
    REGRESSION_LOSSES,
    SOFTMAX,
    FittedLoss,
    Loss,
    MixedLoss,
)
from manyboost.training.objectives import Facts
from manyboost.training.projections import PROJECTIONS

F64 = NDArray[np.float64]
_T = TypeVar("_T")

# Facts of losses with code of their own, of which predictions need none.
_CUSTOM = {
    "custom": Facts("custom", centred=False, curved=False),
    "custom_curved": Facts("custom", centred=False, curved=True),
}
# Parameters of the first release. A file may lack later ones, which then have their defaults.
_FIRST_PARAMETERS = frozenset(
    (
        *("loss", "quantile", "huber_delta", "strategy", "projection", "n_components", "step"),
        *("learning_rate", "max_iter", "max_leaf_nodes", "max_depth", "min_samples_leaf"),
        *("min_split_gain", "l2_regularization", "max_features", "subsample", "max_bins"),
        *("categorical_features", "monotonic_cst", "interaction_cst", "output_weight"),
        *("output_scaling", "class_weight", "estimator", "thresholds", "early_stopping"),
        *("validation_fraction", "n_iter_no_change", "tol", "scoring", "max_time", "warm_start"),
        *("callbacks", "verbose", "random_state", "n_jobs"),
    )
)
# Parameters that may hold code.
_MAY_BE_LEFT_OUT = ("loss", "projection", "scoring", "callbacks", "random_state")


def from_bytes(data: bytes) -> Any:
    """Return the model that the bytes of a file hold."""
    header, arrays = container.unpack(data)
    file = Contents(header, arrays)
    if header.get("content") == "checkpoint":
        broken("it is a checkpoint of training, which fit goes on from with checkpoint=path")
    file.choice("content", ["model"])
    estimator = ESTIMATORS[file.choice("estimator", ESTIMATORS)]
    release = file.text("manyboost")
    kind = file.choice("kind", dict.fromkeys(KINDS.values()))
    d = file.integer("n_outputs", 1, 2**32)
    p = file.integer("n_features", 1, 2**30)
    _check_features(file, p)
    decoder = Decoder(file.value_arrays())
    left_out = file.texts("left_out")
    if left_out != sorted(set(left_out)):
        broken("what it says to be left out is out of order")

    names = file.optional_texts("feature_names", p)
    categories = _read_categories(file, p)
    labels = _read_labels(file, decoder, categories)
    parameters = _read_parameters(file, decoder, estimator)
    fixed = _read_fixed(file, decoder, kind)
    model: Any = estimator(**parameters)
    if "target_name" in header:
        model.target_name_ = file.text("target_name")
    targets = _read_targets(file, decoder, model, d)
    loss = _read_loss(file, d, targets, fixed["loss"])
    projection = read_projection(file, decoder)
    search_results = read_search_results(file, decoder)
    decoder.done()
    model.strategy_, model.projection_ = fixed["strategy"], projection
    if search_results is not None:
        model.search_results_ = search_results

    trees = read_trees(file, kind, d, p, categories.counts)
    progress = read_progress(file, trees, left_out)
    progress.categories = categories
    progress.constraints = _read_constraints(file, d, p)
    with_offset, seed = file.boolean("with_offset"), file.integer("seed", 0, 2**31)
    attributes = model._fitted(progress, loss, with_offset, progress.n_rounds, None)
    attributes.pop("thresholds_", None)
    attributes.pop("validation_scores_", None)
    if file.boolean("several_scores"):
        if not progress.validation_scores:
            broken("it has none of the scores that it speaks of")
        scores = progress.validation_scores.items()
        attributes["validation_scores_"] = {name: np.array(curve) for name, curve in scores}
    if "thresholds" in file.arrays:
        attributes["thresholds_"] = _within(file.array("thresholds", "f8", (d,)), 0, 1)
    if "best_iter_per_output" in file.arrays:
        best = file.array("best_iter_per_output", "i8", (d,))
        if ((best < 0) | (best > progress.n_rounds)).any():
            broken("outputs have more rounds than the model")
        attributes["best_iter_per_output_"] = best.astype(np.intp)
    set_output = file.choice("set_output", ["default", "pandas", "polars"])
    file.done()

    model.n_features_in_ = p
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    if targets.names is not None:
        model.output_names_ = np.array(targets.names, dtype=object)
    model._category_labels = labels
    model._seed = seed
    if set_output != "default":
        model.set_output(predict=set_output)
    vars(model).update(targets.attributes)
    vars(model).update(attributes)
    model._trained_with, model._release, model._left_out = fixed, release, left_out
    return model


class Contents:
    """Header and arrays of a file: all must be asked for, once, by their types."""

    def __init__(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._header = {name: value for name, value in header.items() if name != "arrays"}
        self.arrays = dict(arrays)

    def done(self) -> None:
        """Refuse what nobody asked for."""
        for name in [*self._header, *self.arrays]:
            broken(f"it has {name!r}, which this release does not know")

    def take(self, name: str, type_: type[_T] | tuple[type[_T], ...]) -> _T:
        """Something of the header, of a type."""
        if name not in self._header:
            broken(f"it has no {name!r}")
        value = self._header.pop(name)
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            broken(f"its {name!r} has the type {type(value).__name__}")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """A number within bounds."""
        value = self.take(name, int)
        if not low <= value <= high:
            broken(f"its {name!r} is {value}, beyond {low} to {high}")
        return value

    def boolean(self, name: str) -> bool:
        """A truth value."""
        return self.take(name, bool)

    def text(self, name: str) -> str:
        """A text."""
        return self.take(name, str)

    def choice(self, name: str, options: Iterable[str]) -> str:
        """One of some texts."""
        value = self.text(name)
        if value not in options:
            broken(f"its {name!r} is {value!r}, which this release does not know")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        values: list[Any] = self.take(name, list)
        if not all(isinstance(each, str) for each in values):
            broken(f"its {name!r} are not all text")
        return values

    def optional_texts(self, name: str, count: int) -> list[str] | None:
        """As many different texts, or none at all."""
        if name in self._header and self._header[name] is None:
            del self._header[name]
            return None
        values = self.texts(name)
        if len(values) != count or len(set(values)) != count:
            broken(f"its {name!r} are not {count} different names")
        return values

    def view(self, name: str, dtype: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of the file; None in its shape is any number."""
        if name not in self.arrays:
            broken(f"it has no array {name!r}")
        array = self.arrays.pop(name)
        fits = len(array.shape) == len(shape) and all(
            wanted in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
        )
        if array.dtype != np.dtype(dtype) or not fits:
            broken(f"its array {name!r} is {array.dtype} of shape {array.shape}")
        return array

    def array(self, name: str, dtype: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """A copy of an array, which does not keep the bytes of the file."""
        return np.array(self.view(name, dtype, shape))

    def value_arrays(self) -> list[NDArray[Any]]:
        """Take the arrays of parameters and classes, in order."""
        names = sorted(name for name in self.arrays if name.startswith("value_"))
        if names != [f"value_{k:06d}" for k in range(len(names))]:
            broken("its arrays of parameters are not numbered")
        return [self.arrays.pop(name) for name in names]


def _check_features(file: Contents, p: int) -> None:
    """Compare the number of features with what the file has of them, before using it."""
    importances = file.arrays.get("importances", file.arrays.get("mean_importances"))
    if importances is None or importances.shape[:1] != (p,):
        broken(f"it does not have importances of {p} features")


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(array).all():
        broken("it has numbers that are not finite where they must be")
    return array


def _within(array: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    if not ((array >= low) & (array <= high)).all():
        broken(f"it has numbers beyond {low} to {high}")
    return array


def _pieces(flat: NDArray[Any], counts: NDArray[Any]) -> list[NDArray[Any]]:
    """Cut an array in pieces."""
    ends = np.cumsum(counts, dtype=np.uint64)
    if (int(ends[-1]) if len(ends) else 0) != len(flat):
        broken("it has lists whose lengths do not fit")
    return np.split(flat, ends[:-1].astype(np.intp)) if len(ends) else []


def _read_categories(file: Contents, p: int) -> Categories:
    if "category_features" not in file.arrays:
        return Categories(p, {})
    features = file.array("category_features", "u4", (None,)).tolist()
    counts = _within(file.array("category_counts", "u4", (len(features),)), 0, 255)
    tables = _pieces(_finite(file.array("category_values", "f8", (None,))), counts)
    if features != sorted(set(features)) or not features or features[-1] >= p:
        broken("its categorical features are out of order")
    if any((np.diff(table) <= 0).any() for table in tables):
        broken("its categories are out of order")
    return Categories(p, dict(zip(features, tables, strict=True)))


def _read_labels(file: Contents, decoder: Decoder, categories: Categories) -> CategoryLabels:
    of_column = {}
    stored: list[Any] = file.take("category_labels", list)
    for entry in stored:
        match entry:
            case [int() as j, list() as labels] if j in categories.tables:
                of_column[j] = tuple(decoder.decode(label) for label in labels)
            case _:
                broken("it has labels of no categorical feature")
        simple = all(isinstance(label, str | int | float) for label in of_column[j])
        if not simple or len(set(of_column[j])) != len(labels):
            broken(f"the labels of feature {j} are not different texts or numbers")
        if not np.array_equal(categories.tables[j], np.arange(len(labels))):
            broken(f"the labels of feature {j} are not those of its categories")
    if [entry[0] for entry in stored] != sorted(of_column):
        broken("its labels are out of order")
    return CategoryLabels(of_column)


def _read_parameters(file: Contents, decoder: Decoder, estimator: type[Model]) -> dict[str, Any]:
    known = [name for name in estimator._get_param_names() if name not in OF_A_RUN]
    stored: dict[str, Any] = file.take("parameters", dict)
    missing = _FIRST_PARAMETERS.intersection(known).difference(stored)
    if missing:
        broken(f"it has no parameter {min(missing)!r}")
    parameters = {}
    for name, content in stored.items():
        value = decoder.decode(content)
        if name not in known:
            broken(f"its parameter {name!r} is not one that this release knows")
        if not holds_code(content):
            _allowed(check_parameter, name, value)
        elif name not in _MAY_BE_LEFT_OUT:
            broken(f"its parameter {name!r} is left out")
        parameters[name] = value
    return parameters


def _allowed(check: Callable[..., None], *arguments: Any) -> None:
    """Refuse the file if a check refuses what is in it."""
    try:
        check(*arguments)
    except (ValueError, TypeError) as error:
        broken(str(error).rstrip("."))


def _read_fixed(file: Contents, decoder: Decoder, kind: str) -> dict[str, Any]:
    """What a warm start cannot change."""
    stored: dict[str, Any] = file.take("trained_with", dict)
    fixed = {name: decoder.decode(content) for name, content in stored.items()}
    types: dict[str, type | tuple[type, ...]] = {
        "loss": (str, tuple, LeftOut),
        "quantile": tuple,
        "huber_delta": (type(None), numbers.Real),
        "strategy": str,
        "step": str,
        "per_output": bool,
        "scoring": tuple,
        "built_in_trees": bool,
        "tuned": bool,
    }
    if set(fixed) != set(types) or not all(isinstance(fixed[n], t) for n, t in types.items()):
        broken("it does not say how the model was trained")
    tuples = [each for each in fixed.values() if isinstance(each, tuple)]
    if not all(isinstance(each, str | float | LeftOut) for each in itertools.chain(*tuples)):
        broken("it was trained with lists of neither names nor numbers")
    if KINDS.get(fixed["strategy"]) != kind or fixed["step"] not in params.STEPS:
        broken(f"trees of kind {kind!r} do not come from strategy {fixed['strategy']!r}")
    if not fixed["built_in_trees"]:
        broken("it speaks of trees that are not built in")
    return fixed


def read_projection(file: Contents, decoder: Decoder) -> Any:
    """Return the projection that the trees were grown on."""
    projection = decoder.decode(file.take("projection", (str, dict)))
    known = isinstance(projection, str) and projection in PROJECTIONS
    if not known and not isinstance(projection, LeftOut):
        broken("it was trained with an unknown projection")
    return projection


def read_search_results(file: Contents, decoder: Decoder) -> dict[str, NDArray[Any]] | None:
    """Return what was tried by ``strategy="auto"``."""
    results = decoder.decode(file.take("search_results", (type(None), dict)))
    if results is None:
        return None
    kinds = {
        "strategy": "O",
        "projection": "O",
        "heats": "i",
        "n_rounds": "i",
        "validation_score": "f",
    }
    arrays = isinstance(results, dict) and list(results) == list(kinds)
    if not arrays or not all(isinstance(each, np.ndarray) for each in results.values()):
        broken("it does not say how its strategy was chosen")
    shapes = {each.shape for each in results.values()}
    types = [each.dtype.kind for each in results.values()]
    if types != list(kinds.values()) or shapes != {results["heats"].shape[:1]}:
        broken("it has results of a search that are not one for each strategy")
    return dict(results)


@dataclass
class _Targets:
    """What outputs mean: their names, levels, classes, and the attributes of the estimator."""

    names: list[str] | None
    quantiles: list[float] | None
    classes: Classes | None
    attributes: dict[str, Any]


def _read_targets(file: Contents, decoder: Decoder, model: Model, d: int) -> _Targets:
    stored: dict[str, Any] = file.take("targets", dict)
    if isinstance(model, ManyBoostClassifier):
        names = file.optional_texts("output_names", d)
        classes = _read_classes(stored, decoder, names, d)
        return _Targets(names, None, classes, {"_classes": classes, "classes_": classes.values})
    match stored:
        case {"one_dimensional": bool() as one_dimensional, "quantiles": None, **rest}:
            quantiles, n_levels = None, 1
        case {"one_dimensional": bool() as one_dimensional, "quantiles": list() as levels, **rest}:
            quantiles, n_levels = levels, len(levels)
            _allowed(params.check_value, "quantile", levels)
        case _:
            broken("it does not say what its outputs are")
    if rest or d % n_levels or (one_dimensional and d != n_levels):
        broken("its outputs are not those of its targets")
    names = file.optional_texts("output_names", d // n_levels)
    attributes = {"_one_dimensional": one_dimensional, "_quantiles": quantiles}
    return _Targets(names, quantiles, None, attributes)


def _read_classes(
    stored: dict[str, Any], decoder: Decoder, names: list[str] | None, d: int
) -> Classes:
    if set(stored) != {"kind", "values"} or not isinstance(stored["kind"], str):
        broken("it does not say what its classes are")
    kind, values = stored["kind"], stored["values"]
    if values == "numbers":
        classes = np.arange(d)
    elif values == "names" and names is not None:
        classes = np.array(names, dtype=object)
    else:
        classes = decoder.decode(values)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        broken("its classes are not a list")
    expected = {"binary": 2, "multiclass": max(d, 3), "multilabel": d}.get(kind)
    if len(classes) != expected or (kind == "binary" and d != 1):
        broken(f"it has {len(classes)} classes for {d} outputs")
    if kind != "multilabel" and names is not None:
        broken("its classes have names")
    if classes.dtype.kind == "f":
        _finite(classes)
    is_text = classes.dtype == object and all(isinstance(each, str) for each in classes)
    if classes.dtype.kind not in "biufU" and not is_text:
        broken("its classes are neither text nor numbers nor truth values")
    ordered = np.unique(classes)
    if len(ordered) != len(classes):
        broken("a class comes twice")
    if kind != "multilabel" and not np.array_equal(ordered, classes):
        broken("its classes are out of order")
    result = Classes(kind, classes, None if names is None else tuple(names))
    # There is one way to write them.
    if not isinstance(values, str) and isinstance(stored_classes(result, Encoder()), str):
        broken("its classes are written at length")
    return result


def _read_loss(file: Contents, d: int, targets: _Targets, trained: Any) -> FittedLoss:
    """The loss with its constants; ``trained`` is the parameter that it comes from."""
    mixed = file.boolean("mixed")
    stored: list[Any] = file.take("losses", list)
    baseline = _finite(file.array("baseline", "f8", (d,)))
    constants = _finite(file.array("loss_constants", "f8", (d,)))
    is_class = targets.classes is not None
    parts: list[FittedLoss] = []
    names: list[Any] = []
    first = 0
    for entry in stored:
        match entry:
            case [str() as kernel, int() as count] if 0 < count <= d - first:
                facts = _facts(kernel, is_class=is_class, mixed=mixed)
            case _:
                broken("it does not say what the losses of its outputs are")
        part = slice(first, first + count)
        first += count
        _check_constants(facts.kernel, constants[part])
        parts.append(
            FittedLoss(
                facts,
                baseline[part],
                param=constants[part],
                custom=Loss() if facts.kernel == "custom" else None,
            )
        )
        names += [facts.kernel] * count
    if first != d or (not mixed and len(parts) != 1):
        broken("it does not have one loss for each output")
    if any(a.facts == b.facts for a, b in itertools.pairwise(parts)):
        broken("neighbouring outputs of one loss are not together")
    loss = MixedLoss(parts) if mixed else parts[0]
    if not np.array_equal(loss.baseline, baseline):
        broken("its baseline is not in single precision, as its loss has it")
    if targets.quantiles is not None:
        levels = np.tile(targets.quantiles, d // len(targets.quantiles))
        if names != ["quantile"] * d or not np.array_equal(levels, constants):
            broken("its quantiles are not those of its loss")
    _check_trained_loss(trained, names, mixed, targets.classes)
    return loss


def _facts(kernel: str, *, is_class: bool, mixed: bool) -> Facts:
    label = {facts.kernel: facts for facts in LABEL_LOSSES.values()}
    if is_class:
        known = {**label, "softmax": SOFTMAX, **_CUSTOM}
    elif mixed:
        known = {**REGRESSION_LOSSES, "log_loss": label["log_loss"]}
        known["exponential"] = label["exponential"]
    else:
        known = {**REGRESSION_LOSSES, **_CUSTOM}
    if kernel not in known:
        broken(f"it has the unknown loss {kernel!r}")
    return known[kernel]


def _check_constants(kernel: str, constants: F64) -> None:
    if kernel == "quantile":
        sound = (constants > 0) & (constants < 1)
    elif kernel == "huber":
        sound = constants > 0
    else:
        sound = constants == 0.5
    if not sound.all():
        broken(f"it has impossible constants of the loss {kernel!r}")


def _check_trained_loss(
    trained: Any, kernels: list[str], mixed: bool, classes: Classes | None
) -> None:
    """The loss that the model was trained with must be the one that it predicts by."""
    if isinstance(trained, LeftOut):
        agrees = kernels == ["custom"] * len(kernels)
    elif isinstance(trained, tuple):
        agrees = mixed and list(trained) == kernels
    elif classes is None:
        agrees = not mixed and trained == kernels[0]
    else:
        softmax = classes.kind == "multiclass" and trained == "log_loss"
        named = {name: facts.kernel for name, facts in LABEL_LOSSES.items()}
        agrees = kernels[0] == ("softmax" if softmax else named.get(trained))
    if not agrees:
        broken("its loss is not the one that the model was trained with")


def read_trees(
    file: Contents, kind: str, d: int, p: int, n_categories: NDArray[np.uint32] | None
) -> _core.Ensemble:
    """Return the trees, which the core checks."""
    width = d if kind == "vector" else 1
    arrays = {
        "tree_sizes": file.view("tree_sizes", "u4", (None,)),
        "node_left": file.view("node_left", "u4", (None,)),
        "node_cover": file.view("node_cover", "f4", (None,)),
        "split_feature": file.view("split_feature", "u4", (None,)),
        "split_threshold": file.view("split_threshold", "f4", (None,)),
        "split_gain": file.view("split_gain", "f4", (None,)),
        "split_categories": file.view("split_categories", "u4", (None, 8)),
        "leaf_values": file.view("leaf_values", "f4", (None, width)),
    }
    if kind == "scaled":
        n_trees = len(arrays["tree_sizes"])
        arrays["tree_steps"] = file.view("tree_steps", "f4", (n_trees, d))
    try:
        return _core.Ensemble.from_arrays(kind, d, p, arrays, n_categories)
    except ValueError as error:
        broken(str(error))


def read_progress(file: Contents, trees: _core.Ensemble, left_out: list[str]) -> Progress:
    """Return the trees with the records of their training."""
    d, p, n = trees.n_outputs, trees.n_features, trees.n_rounds + 1
    if (IMPORTANCES in left_out) == ("importances" in file.arrays):
        broken("it does not say whether importances by output are left out")
    progress = Progress(trees, None)
    if IMPORTANCES in left_out:
        progress.mean_importances = file.array("mean_importances", "f8", (p,))
        if not np.isnan(progress.mean_importances).all():
            _within(progress.mean_importances, 0, 1)
    else:
        progress.importances = file.array("importances", "f8", (p, d))
    progress.train_score = file.array("train_score", "f8", (n,)).tolist()
    names = file.texts("score_names")
    n_scores = n if names else 0
    progress.validation_score = file.array("validation_score", "f8", (n_scores,)).tolist()
    scores = file.array("validation_scores", "f8", (len(names), n)).tolist()
    progress.validation_scores = dict(zip(names, scores, strict=True))
    if len(progress.validation_scores) != len(names):
        broken("it has two scores of one name")

    def optional(name: str, rows: int | None) -> list[F64]:
        if name not in file.arrays:
            return []
        table = file.array(name, "f8", (rows, d))
        return list(table) if len(table) else broken(f"its array {name!r} is empty")

    progress.validation_per_output = optional("validation_per_output", n)
    progress.train_per_output = optional("train_per_output", n)
    shares = optional("shares", 2)
    progress.shares = (shares[0], shares[1]) if shares else None
    progress.steps = optional("steps", None)
    if len(progress.steps) > trees.n_rounds:
        broken("it has steps of rounds that it does not have")
    if CURVES in left_out and progress.validation_per_output:
        broken("it does not say whether curves by output are left out")
    if bool(progress.train_per_output) != (progress.shares is not None):
        broken("it has curves by output without their shares, or shares without curves")
    return progress


def _read_constraints(file: Contents, d: int, p: int) -> Constraints:
    monotonic, interactions = None, None
    if "monotonic_signs" in file.arrays:
        signs = _within(file.array("monotonic_signs", "i1", (d, p)), -1, 1)
        if not signs.any():
            broken("its monotonic constraints constrain nothing")
        monotonic = Monotonic(signs)
    if "interaction_counts" in file.arrays:
        counts = _within(file.array("interaction_counts", "u4", (None,)), 1, p)
        features = _within(file.array("interaction_features", "u4", (None,)), 0, p - 1)
        interactions = [group.tolist() for group in _pieces(features, counts)]
        if any(group != sorted(set(group)) for group in interactions):
            broken("its interaction constraints are out of order")
    return Constraints(monotonic, interactions)


def trees_from_bytes(data: bytes) -> _core.Ensemble:
    """Return the trees of such a file."""
    header, arrays = container.unpack(data)
    file = Contents(header, arrays)
    file.choice("content", ["trees"])
    kind = file.choice("kind", dict.fromkeys(KINDS.values()))
    d = file.integer("n_outputs", 1, 2**32)
    p = file.integer("n_features", 1, 2**30)
    trees = read_trees(file, kind, d, p, None)
    file.done()
    return trees
