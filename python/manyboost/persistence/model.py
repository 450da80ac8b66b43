"""Model files: the list of their parts, from which models are both written and read.

Everything that is read is checked, the trees by the core. Every entry of a file belongs to a part,
so that nothing in it is ignored. docs/model-format.md describes the result.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manyboost import params
from manyboost.data.categories import Categories
from manyboost.data.frames import CategoryLabels
from manyboost.data.labels import Classes
from manyboost.data.names import column_name
from manyboost.estimators import ManyBoostClassifier, ManyBoostRegressor
from manyboost.estimators.base import Model
from manyboost.persistence import container, losses
from manyboost.persistence.container import broken
from manyboost.persistence.parts import (
    CURVES,
    IMPORTANCES,
    KIND,
    N_FEATURES,
    N_OUTPUTS,
    PROJECTION,
    RECORDS,
    SCORE_NAMES,
    SEARCH_RESULTS,
    SEED,
    Array,
    Contents,
    Draft,
    Part,
    choice,
    entry,
    finite,
    of_type,
    optional_array,
    read_trees,
    within,
    write_trees,
)
from manyboost.persistence.values import Encoder, LeftOut, Unstorable
from manyboost.training.checkpoints import Start
from manyboost.training.constraints import Constraints, Monotonic
from manyboost.training.custom import Loss
from manyboost.training.strategies import STRATEGIES

ESTIMATORS: dict[str, type[Model]] = {
    each.__name__: each for each in (ManyBoostRegressor, ManyBoostClassifier)
}

# Parameters of a run, which files do not store.
_OF_A_RUN = ("checkpoint",)
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
# Attributes of an estimator that are stored, or follow from those that are.
FITTED_ATTRIBUTES = frozenset(
    (
        *("_progress", "_fitted_loss", "_with_offset", "_trained_with", "_seed", "_release"),
        *("_left_out", "_category_labels", "_sklearn_output_config"),
        *("_quantiles", "_one_dimensional", "_classes", "_class_weights", "classes_"),
        *("n_features_in_", "feature_names_in_", "n_outputs_", "output_names_", "thresholds_"),
        *("strategy_", "projection_", "search_results_", "target_name_"),
        *("n_iter_", "best_iter_", "best_iter_per_output_", "baseline_", "train_score_"),
        *("validation_score_", "validation_scores_", "validation_score_per_output_"),
    )
)
# Bytes of a file for everything but trees: names, parameters, curves.
_SPARE_BYTES = 1 << 16


# ---------------------------------------------------------------------- writing


def contents(model: Model, records: str = "auto") -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and arrays of a model's file."""
    if records not in ("auto", "all"):
        raise ValueError(f"records={records!r} is not allowed; it must be 'auto' or 'all'.")
    check_is_fitted(model, "n_iter_")
    _refuse_code(model)
    header, arrays = Draft(model, model._progress, _start(model)).complete(PARTS)
    if records == "all" or header["kind"] != "scaled":
        return header, arrays
    limit = 4 * (6 * arrays["node_left"].size + arrays["tree_steps"].size) + _SPARE_BYTES
    for left_out in _choices(model):
        smaller = _without(model, header, arrays, left_out)
        if container.size(*smaller) <= limit:
            break
    return smaller


def _start(model: Model) -> Start:
    results = getattr(model, "search_results_", None)
    return Start(model._seed, model.strategy_, model.projection_, results)


def to_parts(model: Model, records: str = "auto") -> Iterator[bytes]:
    """Yield the bytes of a model's file, piece by piece."""
    return container.pack(*contents(model, records))


def _refuse_code(model: Model) -> None:
    """Refuse models that need code of the user to predict."""
    name = type(model).__name__
    if type(model) not in ESTIMATORS.values():
        raise ValueError(
            f"{name} is a class of your own, and a model file holds no code; save a "
            "ManyBoostRegressor or ManyBoostClassifier, or use pickle."
        )
    if not model._progress.model.has_trees:
        raise ValueError(
            f"The model consists of estimators of the type {type(model.estimator).__name__}, which "
            "a model file cannot hold; use built-in trees (estimator=None), or pickle."
        )
    loss = model._fitted_loss.custom
    if loss is not None and getattr(loss.inverse_link, "__func__", None) is not Loss.inverse_link:
        raise ValueError(
            f"Predictions need the inverse_link of loss={type(loss).__name__}, and a model file "
            "holds no code; use a built-in loss, or pickle."
        )


def _choices(model: Model) -> list[tuple[str, ...]]:
    """Return what may be left out of a file of scaled trees, the best choice first.

    Scaled trees are small, since they have one step for each output and tree; their records can be
    much larger.
    """
    progress = model._progress
    # Stopping outputs one by one needs the curves to continue.
    curves = (CURVES,) if progress.validation_per_output and not progress.train_per_output else ()
    importances = (IMPORTANCES,) if progress.importances is not None else ()
    return [(), importances, curves, importances + curves]


def _without(
    model: Model, header: dict[str, Any], arrays: dict[str, Array], records: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and arrays without some records."""
    arrays = dict(arrays)
    if IMPORTANCES in records:
        del arrays["importances"]
        mean = model.feature_importances_
        unknown = np.isnan(mean).any()
        arrays["mean_importances"] = np.full_like(mean, np.nan) if unknown else mean
    if CURVES in records:
        del arrays["validation_per_output"]
    return header | {"left_out": sorted({*header["left_out"], *records})}, arrays


# ---------------------------------------------------------------------- reading


def from_bytes(data: bytes) -> Any:
    """Return the model that the bytes of a file hold."""
    file = Contents(data)
    if file.header.get("content") == "checkpoint":
        broken("it is a checkpoint of training; fit continues it with checkpoint=path")
    return _model(file.read(PARTS))


def _model(found: SimpleNamespace) -> Any:
    """Return the estimator that consists of the parts of a file."""
    model: Any = ESTIMATORS[found.estimator](**found.parameters)
    model.strategy_, progress = found.trained_with["strategy"], found.progress
    progress.categories, progress.constraints = found.categories, found.constraints
    attributes = model._fitted(progress, found.loss, found.with_offset, progress.n_rounds, None) | {
        "n_features_in_": found.n_features,
        "feature_names_in_": _as_objects(found.feature_names),
        "output_names_": _as_objects(found.output_names),
        "target_name_": found.target_name,
        "projection_": found.projection,
        "search_results_": found.search_results,
        "validation_scores_": None,
        "thresholds_": found.thresholds,
        "_category_labels": found.category_labels,
        "_seed": found.seed,
        "_trained_with": found.trained_with,
        "_release": found.manyboost,
        "_left_out": found.left_out,
    }
    if found.several_scores:
        scores = progress.validation_scores.items()
        attributes["validation_scores_"] = {name: np.array(curve) for name, curve in scores}
    if found.best_iter_per_output is not None:
        attributes["best_iter_per_output_"] = found.best_iter_per_output.astype(np.intp)
    # Names with an underscore at the end exist only if there is something to tell.
    present = {
        name: value
        for name, value in attributes.items()
        if value is not None or not name.endswith("_")
    }
    vars(model).update(present | found.targets)
    if found.set_output != "default":
        model.set_output(predict=found.set_output)
    return model


def _as_objects(names: list[str] | None) -> NDArray[Any] | None:
    return None if names is None else np.array(names, dtype=object)


def _allowed(check: Callable[..., None], *arguments: Any) -> None:
    """Refuse the file if a check of the package refuses a value in it."""
    try:
        check(*arguments)
    except (ValueError, TypeError) as error:
        broken(str(error).rstrip("."))


# ---------------------------------------------------------------------- parts


def _names(attribute: str) -> Callable[[Draft], list[str] | None]:
    def get(draft: Draft) -> list[str] | None:
        names = getattr(draft.model, attribute, None)
        return None if names is None else [str(each) for each in names]

    return get


def _left_out(draft: Draft) -> list[str]:
    """Return the records and the attributes of others that are not stored."""
    known = FITTED_ATTRIBUTES.union(draft.model.get_params(deep=False))
    foreign = [f"attribute {name}" for name in vars(draft.model) if name not in known]
    return sorted({*draft.model._left_out, *foreign})


def _read_left_out(file: Contents, name: str) -> list[str]:
    left_out = file.texts(name)
    if left_out != sorted(set(left_out)):
        broken("the names of what it leaves out are out of order")
    return left_out


def _write_categories(draft: Draft) -> None:
    tables = draft.progress.categories.tables
    if tables:
        ordered = [tables[j] for j in sorted(tables)]
        draft.arrays["category_features"] = np.array(sorted(tables), np.uint32)
        draft.arrays["category_counts"] = np.array([len(each) for each in ordered], np.uint32)
        draft.arrays["category_values"] = np.concatenate(ordered).astype(np.float64)


def _read_categories(file: Contents) -> Categories:
    p = file.found.n_features
    if "category_features" not in file.arrays:
        return Categories(p, {})
    features = file.array("category_features", "u4", (None,)).tolist()
    counts = within(file.array("category_counts", "u4", (len(features),)), 0, 255)
    tables = _pieces(finite(file.array("category_values", "f8", (None,))), counts)
    if features != sorted(set(features)) or not features or features[-1] >= p:
        broken("its categorical features are out of order")
    if any((np.diff(table) <= 0).any() for table in tables):
        broken("its categories are out of order")
    return Categories(p, dict(zip(features, tables, strict=True)))


def _pieces(flat: Array, counts: Array) -> list[Array]:
    """Cut an array into pieces of the given lengths."""
    ends = np.cumsum(counts, dtype=np.uint64)
    if (int(ends[-1]) if len(ends) else 0) != len(flat):
        broken("it has lists whose lengths do not fit")
    return np.split(flat, ends[:-1].astype(np.intp)) if len(ends) else []


def _labels(draft: Draft) -> list[Any]:
    stored = []
    for j, labels in sorted(draft.model._category_labels.of_column.items()):
        for label in labels:
            if not isinstance(label, str | int | float):
                name = column_name(j, getattr(draft.model, "feature_names_in_", None))
                raise ValueError(
                    f"Column {name} has categories of the type {type(label).__name__}, "
                    "which a model file cannot hold; turn them into text before fit."
                )
        stored.append([int(j), [draft.encoder.encode(label) for label in labels]])
    return stored


def _read_labels(file: Contents, name: str) -> CategoryLabels:
    of_column = {}
    tables = file.found.categories.tables
    stored: list[Any] = file.take(name, list)
    for pair in stored:
        match pair:
            case [int() as j, list() as labels] if j in tables:
                of_column[j] = tuple(file.decoder.decode(label) for label in labels)
            case _:
                broken("it has labels of no categorical feature")
        simple = all(isinstance(label, str | int | float) for label in of_column[j])
        if not simple or len(set(of_column[j])) != len(labels):
            broken(f"the labels of feature {j} are not different texts or numbers")
        if not np.array_equal(tables[j], np.arange(len(labels))):
            broken(f"the labels of feature {j} are not those of its categories")
    if [pair[0] for pair in stored] != sorted(of_column):
        broken("its labels are out of order")
    return CategoryLabels(of_column)


def _parameters(draft: Draft) -> dict[str, Any]:
    stored = {}
    for name, value in sorted(draft.model.get_params(deep=False).items()):
        if name in _OF_A_RUN:
            continue
        try:
            stored[name] = draft.encoder.encode(value)
        except Unstorable as unstorable:
            raise ValueError(
                f"{name}={value!r} holds {unstorable}, which a model file cannot hold; use "
                "numbers, text, arrays, lists, sets and dicts."
            ) from None
        if not holds_code(stored[name]):
            _check_parameter(name, value)
    return stored


def _read_parameters(file: Contents, name: str) -> dict[str, Any]:
    stored: dict[str, Any] = file.take(name, dict)
    known = set(ESTIMATORS[file.found.estimator]._get_param_names()).difference(_OF_A_RUN)
    missing = _FIRST_PARAMETERS.intersection(known).difference(stored)
    if missing:
        broken(f"it has no parameter {min(missing)!r}")
    parameters = {}
    for parameter, content in stored.items():
        value = parameters[parameter] = file.decoder.decode(content)
        if parameter not in known:
            broken(f"its parameter {parameter!r} is not one that this release knows")
        if not holds_code(content):
            _allowed(_check_parameter, parameter, value)
        elif parameter not in _MAY_BE_LEFT_OUT:
            broken(f"its parameter {parameter!r} is left out")
    return parameters


def _check_parameter(name: str, value: Any) -> None:
    """Check one parameter as fit does, unless it depends on the release of scikit-learn."""
    if name != "scoring":
        params.check_value(name, value)


def holds_code(stored: Any) -> bool:
    """Whether something is left out of an encoded value."""
    if isinstance(stored, list):
        return any(map(holds_code, stored))
    if isinstance(stored, dict):
        return "left_out" in stored or any(map(holds_code, stored.values()))
    return False


def _trained_with(draft: Draft) -> dict[str, Any]:
    fixed = sorted(draft.model._trained_with.items())
    return {name: draft.encoder.encode(value) for name, value in fixed}


# Types of the parameters that a warm start cannot change.
_TRAINED_WITH: dict[str, type | tuple[type, ...]] = {
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


def _read_trained_with(file: Contents, name: str) -> dict[str, Any]:
    stored: dict[str, Any] = file.take(name, dict)
    fixed = {each: file.decoder.decode(content) for each, content in stored.items()}
    if fixed.keys() != _TRAINED_WITH.keys() or not all(
        isinstance(fixed[each], type_) for each, type_ in _TRAINED_WITH.items()
    ):
        broken("it does not say how the model was trained")
    tuples = [each for each in fixed.values() if isinstance(each, tuple)]
    if not all(isinstance(each, str | float | LeftOut) for each in itertools.chain(*tuples)):
        broken("it was trained with lists of neither names nor numbers")
    kind = file.found.kind
    known = STRATEGIES.get(fixed["strategy"])
    if known is None or known.trees != kind or fixed["step"] not in params.STEPS:
        broken(f"trees of kind {kind!r} do not come from strategy {fixed['strategy']!r}")
    if not fixed["built_in_trees"]:
        broken("it was trained with trees that are not built in")
    return fixed


def _write_targets(draft: Draft) -> None:
    """Write what the outputs mean: for a classifier its classes, else levels and dimensions."""
    model, header = draft.model, draft.header
    header["output_names"] = _names("output_names_")(draft)
    if hasattr(model, "_classes"):
        values = _classes(model._classes, draft.encoder)
        header["targets"] = {"kind": model._classes.kind, "values": values}
    else:
        attributes = {name: getattr(model, f"_{name}", None) for name in _REGRESSOR_TARGETS}
        header["targets"] = attributes


_REGRESSOR_TARGETS = ("one_dimensional", "quantiles")


def _read_targets(file: Contents) -> dict[str, Any]:
    """Return the attributes of the estimator; the names are found under ``output_names``."""
    stored: dict[str, Any] = file.take("targets", dict)
    found, d = file.found, file.found.n_outputs
    if found.estimator == ManyBoostClassifier.__name__:
        found.output_names = file.names("output_names", d)
        classes = _read_classes(stored, file, found.output_names)
        return {"_classes": classes, "classes_": classes.values}
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
    found.output_names = file.names("output_names", d // n_levels)
    return {"_one_dimensional": one_dimensional, "_quantiles": quantiles}


def _classes(classes: Classes, encoder: Encoder) -> Any:
    """Return the classes, or how they follow from the other entries."""
    values = classes.values
    if classes.kind == "multilabel":
        if np.array_equal(values, np.arange(len(values))) and values.dtype == np.intp:
            return "numbers"
        if values.dtype == object and values.tolist() == list(classes.names or ()):
            return "names"
    try:
        return encoder.encode(values)
    except Unstorable as unstorable:
        raise ValueError(
            f"The classes are {unstorable}, which a model file cannot hold; use text, numbers or "
            "booleans."
        ) from None


def _read_classes(stored: dict[str, Any], file: Contents, names: list[str] | None) -> Classes:
    d = file.found.n_outputs
    if set(stored) != {"kind", "values"} or not isinstance(stored["kind"], str):
        broken("it does not say what its classes are")
    kind, values = stored["kind"], stored["values"]
    if values == "numbers":
        classes = np.arange(d)
    elif values == "names" and names is not None:
        classes = np.array(names, dtype=object)
    else:
        classes = file.decoder.decode(values)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        broken("its classes are not a list")
    expected = {"binary": 2, "multiclass": max(d, 3), "multilabel": d}.get(kind)
    if len(classes) != expected or (kind == "binary" and d != 1):
        broken(f"it has {len(classes)} classes for {d} outputs")
    if kind != "multilabel" and names is not None:
        broken("its classes have names")
    if classes.dtype.kind == "f":
        finite(classes)
    is_text = classes.dtype == object and all(isinstance(each, str) for each in classes)
    if classes.dtype.kind not in "biufU" and not is_text:
        broken("its classes are neither text nor numbers nor booleans")
    ordered = np.unique(classes)
    if len(ordered) != len(classes):
        broken("a class comes twice")
    if kind != "multilabel" and not np.array_equal(ordered, classes):
        broken("its classes are out of order")
    result = Classes(kind, classes, None if names is None else tuple(names))
    # There is one way to write them.
    if not isinstance(values, str) and isinstance(_classes(result, Encoder()), str):
        broken("its classes are written at length")
    return result


def _write_target_name(draft: Draft) -> None:
    if hasattr(draft.model, "target_name_"):
        draft.header["target_name"] = draft.model.target_name_


def _read_several_scores(file: Contents, name: str) -> bool:
    several = file.take(name, bool)
    if several and not file.found.score_names:
        broken("it has none of the scores that it names")
    return several


def _best_rounds(draft: Draft) -> Array | None:
    best = getattr(draft.model, "best_iter_per_output_", None)
    return None if best is None else best.astype(np.int64)


def _write_constraints(draft: Draft) -> None:
    constraints = draft.progress.constraints
    if constraints.monotonic is not None:
        draft.arrays["monotonic_signs"] = constraints.monotonic.signs
    groups = constraints.interactions
    if groups is not None:
        draft.arrays["interaction_counts"] = np.array([len(each) for each in groups], np.uint32)
        draft.arrays["interaction_features"] = np.array(list(itertools.chain(*groups)), np.uint32)


def _read_constraints(file: Contents) -> Constraints:
    d, p = file.found.n_outputs, file.found.n_features
    monotonic, interactions = None, None
    if "monotonic_signs" in file.arrays:
        signs = within(file.array("monotonic_signs", "i1", (d, p)), -1, 1)
        if not signs.any():
            broken("its monotonic constraints constrain nothing")
        monotonic = Monotonic(signs)
    if "interaction_counts" in file.arrays:
        counts = within(file.array("interaction_counts", "u4", (None,)), 1, p)
        features = within(file.array("interaction_features", "u4", (None,)), 0, p - 1)
        interactions = [group.tolist() for group in _pieces(features, counts)]
        if any(group != sorted(set(group)) for group in interactions):
            broken("its interaction constraints are out of order")
    return Constraints(monotonic, interactions)


#: A model file. Parts that encode values come in the order in which their arrays are numbered.
PARTS = (
    entry("content", lambda draft: "model", choice("model")),
    entry("estimator", lambda draft: type(draft.model).__name__, choice(*ESTIMATORS)),
    entry("manyboost", lambda draft: draft.model._release, of_type(str)),
    KIND,
    N_OUTPUTS,
    N_FEATURES,
    SEED,
    entry("with_offset", lambda draft: draft.model._with_offset, of_type(bool)),
    entry("left_out", _left_out, _read_left_out),
    entry(
        "feature_names",
        _names("feature_names_in_"),
        lambda file, name: file.names(name, file.found.n_features),
    ),
    Part("categories", _write_categories, _read_categories),
    entry("category_labels", _labels, _read_labels),
    entry("parameters", _parameters, _read_parameters),
    entry("trained_with", _trained_with, _read_trained_with),
    Part(
        "target_name",
        _write_target_name,
        lambda file: file.take("target_name", str) if "target_name" in file.header else None,
    ),
    Part("targets", _write_targets, _read_targets),
    Part("loss", losses.write, losses.read),
    PROJECTION,
    SEARCH_RESULTS,
    Part("trees", write_trees, lambda file: read_trees(file, file.found.categories.counts)),
    SCORE_NAMES,
    RECORDS,
    Part("constraints", _write_constraints, _read_constraints),
    entry(
        "several_scores",
        lambda draft: hasattr(draft.model, "validation_scores_"),
        _read_several_scores,
    ),
    optional_array(
        "thresholds",
        "f8",
        lambda draft: getattr(draft.model, "thresholds_", None),
        lambda found: (found.n_outputs,),
        lambda found: (0, 1),
    ),
    optional_array(
        "best_iter_per_output",
        "i8",
        _best_rounds,
        lambda found: (found.n_outputs,),
        lambda found: (0, found.progress.n_rounds),
    ),
    entry(
        "set_output",
        lambda draft: getattr(draft.model, "_sklearn_output_config", {}).get("predict", "default"),
        choice("default", "pandas", "polars"),
    ),
)
