"""Model files: the list of their entries, and the checks that make a model of them.

Everything that is read is checked, the trees by the core. docs/model-format.md describes the file.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import manyboost
from manyboost import params
from manyboost.data.cells import MISSING_LABEL
from manyboost.persistence import calibrators, container, features, outputs, parts
from manyboost.persistence.container import AnyArray, broken
from manyboost.persistence.parts import CURVES, IMPORTANCES, Source
from manyboost.persistence.schema import Array, Contents, Field, collect, finite, names, within
from manyboost.persistence.values import LeftOut, Unstorable
from manyboost.training.calibration import Calibration
from manyboost.training.checkpoints import Start
from manyboost.training.constraints import Constraints, Monotonic
from manyboost.training.custom import has_own_link
from manyboost.training.fitted_losses import MixedLoss
from manyboost.training.progress import Progress

ESTIMATORS = frozenset(["ManyBoostRegressor", "ManyBoostClassifier"])

# Parameters of a run, which files do not store.
_OF_A_RUN = ("checkpoint",)
# Parameters that came after the first release: a file may lack them, and then has their defaults.
# At their defaults they are not written, so that files stay what they were.
_LATER = (
    *("n_folds", "refit_all", "power", "validation_split", "calibration", "label_hierarchy"),
    "max_leaf_outputs",
)
# Parameters that may hold code.
_MAY_BE_LEFT_OUT = (
    "loss",
    "projection",
    "scoring",
    "validation_split",
    "callbacks",
    "random_state",
)
# Attributes of an estimator that are stored, or follow from those that are.
STORED = frozenset([
    "_progress", "_fitted_loss", "_with_offset", "_trained_with", "_seed", "_release", "_left_out",
    "_category_labels", "_quantiles", "_one_dimensional", "_classes", "_class_weights", "classes_",
    "n_features_in_", "feature_names_in_", "n_outputs_", "output_names_", "target_name_",
    "strategy_", "projection_", "search_results_", "baseline_", "thresholds_", "train_score_",
    "n_iter_", "best_iter_", "best_iter_per_output_", "best_iter_per_fold_", "_member_baselines",
    "_calibration", "_calibrator", "_hierarchy", "_known", "target_names_",
    "validation_score_", "validation_scores_", "validation_score_per_output_",
])  # fmt: skip
# Bytes of a file for everything but trees: names, parameters, curves.
_SPARE_BYTES = 1 << 16

# ---------------------------------------------------------------------- entries


def _left_out(source: Source) -> list[str]:
    known = STORED.union(["_sklearn_output_config"], source.model.get_params(deep=False))
    foreign = [f"attribute {name}" for name in vars(source.model) if name not in known]
    return sorted({*source.model._left_out, *foreign})


def _parameters(source: Source) -> dict[str, Any]:
    stored = {}
    for name, value in sorted(source.model._params_by_position().items()):
        if name in _OF_A_RUN or (name in _LATER and value == params.PARAMS[name].default):
            continue
        try:
            stored[name] = source.encoder.encode(value)
        except Unstorable as unstorable:
            what = f"{name}={value!r} holds {unstorable}, which a model file cannot hold"
            raise ValueError(f"{what}; use numbers, text, arrays, lists, sets and dicts.") from None
        if _is_checked(name, stored[name]):
            params.check_value(name, value)
    return stored


def _is_checked(name: str, stored: Any) -> bool:
    """Whether a parameter is to be one that fit allows: code, and names of scorers, are not.

    The release of scikit-learn decides which names of scorers there are.
    """
    if name != "scoring":
        return not holds_code(stored)
    match stored:
        case {"tuple": list() as several} | (list() as several):
            return not all(map(_is_scorer, several))
    return not _is_scorer(stored)


def _is_scorer(stored: Any) -> bool:
    return isinstance(stored, str | None) or (isinstance(stored, dict) and "left_out" in stored)


def _trained_with(source: Source) -> dict[str, Any]:
    fixed = sorted(source.model._trained_with.items())
    return {name: source.encoder.encode(value) for name, value in fixed}


def _attribute(name: str) -> Any:
    return lambda source: getattr(source.model, name, None)


def _names(source: Source, name: str) -> list[str] | None:
    return list(map(str, getattr(source.model, name))) if hasattr(source.model, name) else None


def _interactions(source: Source, *, flat: bool) -> list[int] | None:
    groups = source.progress.constraints.interactions
    if groups is None:
        return None
    return list(itertools.chain(*groups)) if flat else list(map(len, groups))


def _signs(source: Source) -> AnyArray | None:
    monotonic = source.progress.constraints.monotonic
    return None if monotonic is None else monotonic.signs


def _output_format(source: Source) -> str:
    return str(getattr(source.model, "_sklearn_output_config", {}).get("predict", "default"))


def _calibrated(name: str, *, ndim: int = 2, kind: str = "f") -> Any:
    """Return what gets an array of the calibration rows of a kind, if they have it."""

    def get(source: Source) -> AnyArray | None:
        rows = source.model._calibration
        array = None if rows is None else getattr(rows, name)
        fits = array is not None and array.ndim == ndim and array.dtype.kind == kind
        return array if fits else None

    return get


_optional = partial(Array, optional=True)
# Entries that encode values come in the order in which their arrays are numbered.
FIELDS = [
    Field("content", frozenset(["model"]), lambda source: "model"),
    Field("estimator", ESTIMATORS, lambda source: type(source.model).__name__),
    Field("manyboost", str, _attribute("_release")),
    *parts.SIZES,
    Field("mixed", bool, lambda source: isinstance(source.model._fitted_loss, MixedLoss)),
    Field("losses", list, outputs.stored_losses),
    Field("with_offset", bool, _attribute("_with_offset")),
    Field("feature_names", (list, type(None)), lambda s: _names(s, "feature_names_in_")),
    Field("output_names", (list, type(None)), lambda s: _names(s, "output_names_")),
    Field("target_name", str, _attribute("target_name_"), optional=True),
    Field("category_labels", list, features.stored_labels),
    Field("parameters", dict, _parameters),
    Field("trained_with", dict, _trained_with),
    Field("targets", dict, outputs.stored_targets),
    *parts.START,
    Field("set_output", frozenset(["default", "pandas", "polars"]), _output_format),
    Field("several_scores", bool, lambda source: hasattr(source.model, "validation_scores_")),
    Field("left_out", list, _left_out),
]
ARRAYS = [
    Array("baseline", "f8", "d", lambda source: source.model._fitted_loss.baseline),
    Array("loss_constants", "f8", "d", lambda source: source.model._fitted_loss.param),
    *parts.TREES,
    *parts.RECORDS,
    *features.ARRAYS,
    _optional("thresholds", "f8", "d", _attribute("thresholds_")),
    _optional("best_iter_per_output", "i8", "d", _attribute("best_iter_per_output_")),
    _optional("best_iter_per_fold", "i8", "k", _attribute("best_iter_per_fold_")),
    _optional("member_baselines", "f8", "k d", _attribute("_member_baselines")),
    _optional("calibration_raw", "f8", "m d", _calibrated("raw")),
    _optional("calibration_targets", "f8", "m d", _calibrated("Y")),
    _optional("calibration_labels", "u1", "m d", _calibrated("Y", kind="u")),
    _optional("calibration_classes", "u4", "m", _calibrated("Y", ndim=1, kind="u")),
    _optional("calibration_weights", "f8", "m", _calibrated("weights", ndim=1)),
    _optional("calibration_cell_weights", "f8", "m d", _calibrated("weights")),
    _optional("calibration_member", "u1", "m", _calibrated("member", ndim=1, kind="u")),
    *calibrators.ARRAYS,
    _optional("hierarchy_children", "u4", "h", partial(outputs.stored_pairs, name="children")),
    _optional("hierarchy_parents", "u4", "h", partial(outputs.stored_pairs, name="parents")),
    _optional("monotonic_signs", "i1", "d p", _signs),
    _optional("interaction_counts", "u4", "*", partial(_interactions, flat=False)),
    _optional("interaction_features", "u4", "*", partial(_interactions, flat=True)),
]


# ---------------------------------------------------------------------- writing


def contents(model: Any, records: str = "auto") -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return header and arrays of a model's file."""
    if records not in ("auto", "all"):
        raise ValueError(f"records={records!r} is not allowed; it must be 'auto' or 'all'.")
    check_is_fitted(model, "n_iter_")
    _refuse_code(model)
    results = getattr(model, "search_results_", None)
    start = Start(model._seed, model.strategy_, model.projection_, results)
    source = Source(model._progress, start, model)
    header, arrays = collect(source, FIELDS, ARRAYS)
    if records == "all" or header["kind"] != "scaled":
        return header, arrays
    # Scaled trees are small, since they have one step for each output and tree; their records can
    # be much larger, and are then left out.
    limit = 4 * (6 * arrays["node_left"].size + arrays["tree_steps"].size) + _SPARE_BYTES
    importances = [IMPORTANCES] if "importances" in arrays else []
    # Stopping outputs one by one needs the curves to continue.
    has_spare_curves = "validation_per_output" in arrays and "train_per_output" not in arrays
    curves = [CURVES] if has_spare_curves else []
    for left_out in ([], importances, curves, importances + curves):
        smaller = _without(left_out, header, arrays, model)
        if container.size(*smaller) <= limit:
            break
    return smaller


def _without(
    left_out: list[str], header: dict[str, Any], arrays: dict[str, AnyArray], model: Any
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return header and arrays without some records."""
    arrays = dict(arrays)
    if IMPORTANCES in left_out:
        del arrays["importances"]
        mean = model.feature_importances_
        arrays["mean_importances"] = np.where(np.isnan(mean).any(), np.nan, mean)
    if CURVES in left_out:
        del arrays["validation_per_output"]
    return header | {"left_out": sorted({*header["left_out"], *left_out})}, arrays


def _is_own_class(model: Any) -> bool:
    return type(model) in (manyboost.ManyBoostRegressor, manyboost.ManyBoostClassifier)


def to_parts(model: Any, records: str = "auto") -> Iterator[bytes]:
    """Yield the bytes of a model's file, piece by piece."""
    return container.pack(*contents(model, records))


def complete_file(model: Any) -> bytes | None:
    """Return the file of a model with default parameters; None if it would leave something out."""
    if not _is_own_class(model):
        return None
    bare = type(model)()
    bare.__dict__.update({name: each for name, each in vars(model).items() if name in STORED})
    try:
        header, arrays = contents(bare, "all")
    except ValueError:
        return None
    has_code = model._fitted_loss.custom or holds_code(
        [header["trained_with"], header["projection"]]
    )
    return None if has_code else b"".join(container.pack(header, arrays))


def _refuse_code(model: Any) -> None:
    """Refuse models that need code of the user to predict."""
    if not _is_own_class(model):
        what = f"{type(model).__name__} is a class of your own, and a model file holds no code"
        raise ValueError(f"{what}; save a ManyBoostRegressor or ManyBoostClassifier, or pickle it.")
    if not model._progress.model.has_trees:
        what = f"A model file cannot hold estimators of the type {type(model.estimator).__name__}"
        raise ValueError(f"{what}; use built-in trees (estimator=None), or pickle.")
    loss = model._fitted_loss.custom
    if loss is not None and has_own_link(loss):
        what = f"Predictions need the inverse_link of loss={type(loss).__name__}"
        raise ValueError(f"{what}, and a model file holds no code; use a built-in loss, or pickle.")


# ---------------------------------------------------------------------- reading


def from_bytes(data: bytes) -> Any:
    """Return the model that the bytes of a file hold."""
    file = Contents(data)
    if file.header.get("content") == "checkpoint":
        broken("it is a checkpoint of training; fit continues it with checkpoint=path")
    found = file.read(FIELDS, ARRAYS)
    parts.check_left_out(found)
    # Values are decoded in the order in which they were encoded.
    categories = features.read_categories(found)
    labels = features.read_labels(file, categories)
    parameters = _read_parameters(file)
    # Thresholds are those of the array: the parameter may have been changed after fit.
    thresholds = {name: parameters.pop(name) for name in ("thresholds",) if name in parameters}
    model: Any = getattr(manyboost, found.estimator)(**parameters)
    trained_with = _read_trained_with(file)
    targets = outputs.read_targets(file)
    kinds = targets.get("_classes"), targets.get("_quantiles")
    loss = outputs.read_loss(found, trained_with["loss"], *kinds)
    start = parts.read_start(file, trained_with["strategy"])
    file.done()
    progress = parts.read_progress(found, parts.read_trees(found, categories))
    features.check_codes(found, categories.cuts)
    progress.categories, progress.constraints = categories, _read_constraints(found)
    model.strategy_ = start.strategy
    fitted = model._fitted(progress, loss, found.with_offset, progress.n_rounds)
    fitted |= {
        "n_features_in_": found.n_features,
        "projection_": start.projection,
        "_category_labels": labels,
        "_seed": start.seed,
        "_trained_with": trained_with,
        "_release": found.manyboost,
        "_left_out": found.left_out,
        # Attributes that only some models have; others have None here.
        "target_name_": found.target_name,
        "search_results_": start.search_results,
        "thresholds_": found.thresholds,
        **_read_optional(found, progress),
    }
    model.__dict__.update({name: each for name, each in fitted.items() if each is not None})
    model.__dict__.update(targets | thresholds)
    if found.set_output != "default":
        model.set_output(predict=found.set_output)
    return model


def _read_optional(found: SimpleNamespace, progress: Progress) -> dict[str, Any]:
    """Check attributes that only some models have; return them, and None for absent ones."""
    feature_names = names(found.feature_names, found.n_features, "feature_names")
    best, scores = found.best_iter_per_output, progress.validation_scores
    kind = found.targets.get("kind")  # of classes; a regressor has none
    if found.thresholds is not None:
        within(found.thresholds, 0, 1)
        if kind not in ("binary", "multilabel"):
            broken("it has thresholds, which its outputs cannot have")
    if found.target_name is not None and kind not in ("binary", "multiclass"):
        broken("it has the name of a column of classes, but no such column")
    if best is not None:
        best = within(best, 0, progress.n_rounds).astype(np.intp)
    if found.several_scores and not scores:
        broken("it has none of the scores that it names")
    curves = {name: np.array(each) for name, each in scores.items()}
    folds = found.best_iter_per_fold, found.member_baselines
    if [each is not None and len(each) for each in folds] != [found.n_members or False] * 2:
        broken("it does not say what each of its members has")
    if found.n_members:
        within(found.best_iter_per_fold, 0, progress.n_rounds)
        finite(found.member_baselines)
    return {
        "best_iter_per_output_": best,
        "best_iter_per_fold_": found.best_iter_per_fold,
        "_member_baselines": found.member_baselines,
        "_calibration": _read_calibration(found),
        "_calibrator": calibrators.read(found),
        "_hierarchy": outputs.read_hierarchy(found),
        "feature_names_in_": None if feature_names is None else np.array(feature_names, object),
        "validation_scores_": curves if found.several_scores else None,
    }


def _read_calibration(found: SimpleNamespace) -> Calibration | None:
    """Check the calibration rows of a mean of models."""
    known = found.calibration_targets, found.calibration_labels, found.calibration_classes
    weighted = found.calibration_weights, found.calibration_cell_weights
    needed = [found.calibration_raw, found.calibration_member]
    n_targets, n_weights = (sum(each is not None for each in some) for some in (known, weighted))
    if all(each is None for each in [*needed, *known, *weighted]):
        return None
    if any(each is None for each in needed) or n_targets != 1 or n_weights > 1:
        broken("it does not have all arrays of its calibration rows")
    kind = found.targets.get("kind")
    numbered = kind == "multiclass" and found.losses == [["softmax", found.n_outputs]]
    expected = 0 if kind is None else 2 if numbered else 1
    if known[expected] is None or not found.n_members:
        broken("it has calibration rows that its outputs cannot have")
    finite(found.calibration_raw)
    within(found.calibration_member, 0, (found.n_members or 0) - 1)
    targets, labels, classes = known
    if targets is not None and np.isinf(targets).any():
        broken("its calibration rows have infinite targets")
    if labels is not None and not np.isin(labels, (0, 1, MISSING_LABEL)).all():
        broken("its calibration rows have labels other than 0 and 1")
    if classes is not None:
        within(classes, 0, found.n_outputs - 1)
    for weights in weighted:
        if weights is not None:
            within(finite(weights), 0, np.inf)
    (Y,) = (each for each in known if each is not None)
    weight = weighted[1] if weighted[0] is None else weighted[0]
    return Calibration(found.calibration_raw, Y, weight, found.calibration_member)


def _read_parameters(file: Contents) -> dict[str, Any]:
    stored = file.found.parameters
    known = set(getattr(manyboost, file.found.estimator)._get_param_names()).difference(_OF_A_RUN)
    missing = known.difference(stored, _LATER)
    if missing:
        broken(f"it has no parameter {min(missing)!r}")
    parameters = {}
    for name, content in stored.items():
        value = parameters[name] = file.decode(content)
        if name not in known:
            broken(f"its parameter {name!r} is not one that this release knows")
        if name in _LATER and value == params.PARAMS[name].default:
            broken(f"it has the default of the parameter {name!r}, which files leave out")
        if holds_code(content) and name not in _MAY_BE_LEFT_OUT:
            broken(f"its parameter {name!r} is left out")
        if _is_checked(name, content):
            outputs.check_allowed(name, value)
    return parameters


def holds_code(stored: Any) -> bool:
    """Whether something is left out of an encoded value."""
    if isinstance(stored, dict):
        return "left_out" in stored or holds_code(list(stored.values()))
    return isinstance(stored, list) and any(map(holds_code, stored))


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


def _read_trained_with(file: Contents) -> dict[str, Any]:
    fixed = {name: file.decode(content) for name, content in file.found.trained_with.items()}
    later = {name: numbers.Real for name in fixed if name == "power"}
    types: dict[str, Any] = _TRAINED_WITH | later
    if fixed.keys() != types.keys() or not all(isinstance(fixed[k], types[k]) for k in types):
        broken("it does not say how the model was trained")
    tuples = [each for each in fixed.values() if isinstance(each, tuple)]
    # (None is a scorer: the method score.)
    if not all(isinstance(each, str | float | LeftOut | None) for each in itertools.chain(*tuples)):
        broken("it was trained with lists of neither names nor numbers")
    if fixed["step"] not in params.STEPS:
        broken(f"it was trained with the unknown step {fixed['step']!r}")
    if later:
        outputs.check_allowed("power", fixed["power"])
        if fixed["power"] == params.PARAMS["power"].default:
            broken("it has the default of the parameter 'power', which files leave out")
    if not fixed["built_in_trees"]:
        broken("it was trained with trees that are not built in")
    return fixed


def _read_constraints(found: SimpleNamespace) -> Constraints:
    p, signs, counts = found.n_features, found.monotonic_signs, found.interaction_counts
    interactions = None
    if signs is not None and not within(signs, -1, 1).any():
        broken("its monotonic constraints constrain nothing")
    if (counts is None) != (found.interaction_features is None):
        broken("it does not have all arrays of its interaction constraints")
    if counts is not None:
        flat = within(found.interaction_features, 0, p - 1)
        groups = features.pieces(flat, within(counts, 1, p))
        interactions = [group.tolist() for group in groups]
        if any(group != sorted(set(group)) for group in interactions):
            broken("its interaction constraints are out of order")
    return Constraints(None if signs is None else Monotonic(signs), interactions)
