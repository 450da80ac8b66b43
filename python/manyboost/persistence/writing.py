"""A model's header and arrays, from the estimator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manyboost import _core, params
from manyboost.data.categories import Categories
from manyboost.data.features import column_name
from manyboost.data.labels import Classes
from manyboost.estimators import ManyBoostClassifier, ManyBoostRegressor
from manyboost.estimators.base import Model
from manyboost.persistence import container
from manyboost.persistence.values import Encoder, Unstorable
from manyboost.training.boosting import Progress
from manyboost.training.constraints import Constraints
from manyboost.training.learners import ForeignEnsemble
from manyboost.training.losses import FittedLoss, Loss, MixedLoss

F64 = NDArray[np.float64]

ESTIMATORS: dict[str, type[Model]] = {
    each.__name__: each for each in (ManyBoostRegressor, ManyBoostClassifier)
}

# Records of training that need not be stored.
IMPORTANCES, CURVES = "importances by output", "curves by output"

# Parameters of a run that are no part of what it leaves behind.
OF_A_RUN = ("checkpoint",)

# Attributes that are stored, or made of those that are.
_ATTRIBUTES = frozenset(
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
# What a file has besides trees: names, parameters, curves.
_SPARE_BYTES = 1 << 16


def contents(model: Model, records: str = "auto") -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a model's file."""
    if records not in ("auto", "all"):
        raise ValueError(f"records={records!r} is not allowed; it must be 'auto' or 'all'.")
    check_is_fitted(model, "n_iter_")
    _refuse_code(model)
    header, arrays = _everything(model)
    if records == "all" or header["kind"] != "scaled":
        return header, arrays
    for leaving_out in _choices(model):
        smaller = _without(model, header, arrays, leaving_out)
        if container.size(*smaller) <= _most_bytes(arrays):
            break
    return smaller


def to_parts(model: Model, records: str = "auto") -> Iterator[bytes]:
    """Return the parts of a model's file, one after the other."""
    return container.pack(*contents(model, records))


def _choices(model: Model) -> list[tuple[str, ...]]:
    """What may be left out to keep a file small, the best choice first.

    Scaled trees are small because they have one step per output and tree; records that are larger
    would make nothing of it.
    """
    progress = model._progress
    # Stopping outputs one by one cannot go on without its curves.
    curves = (CURVES,) if progress.validation_per_output and not progress.train_per_output else ()
    importances = (IMPORTANCES,) if progress.importances is not None else ()
    return [(), importances, curves, importances + curves]


def _most_bytes(arrays: dict[str, NDArray[Any]]) -> int:
    """Bytes that a file of scaled trees may have with its records."""
    return 4 * (6 * arrays["node_left"].size + arrays["tree_steps"].size) + _SPARE_BYTES


def _without(
    model: Model, header: dict[str, Any], arrays: dict[str, NDArray[Any]], records: Sequence[str]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    arrays = dict(arrays)
    if IMPORTANCES in records:
        del arrays["importances"]
        mean = model.feature_importances_
        unknown = np.isnan(mean).any()
        arrays["mean_importances"] = np.full_like(mean, np.nan) if unknown else mean
    if CURVES in records:
        del arrays["validation_per_output"]
    left_out = sorted({*header["left_out"], *records})
    return {**header, "left_out": left_out}, arrays


def _refuse_code(model: Model) -> None:
    """Refuse models whose predictions take code that is not manyboost's."""
    name = type(model).__name__
    if type(model) not in ESTIMATORS.values():
        raise ValueError(
            f"{name} is a class of your own, of whose code a model file holds nothing; save a "
            "ManyBoostRegressor or ManyBoostClassifier, or use pickle."
        )
    if isinstance(model._progress.model, ForeignEnsemble):
        raise ValueError(
            f"The model consists of estimators of the type {type(model.estimator).__name__}, which "
            "a model file cannot hold; use built-in trees (estimator=None), or pickle."
        )
    loss = model._fitted_loss.custom
    if loss is not None and getattr(loss.inverse_link, "__func__", None) is not Loss.inverse_link:
        raise ValueError(
            f"Predictions of loss={type(loss).__name__} take its inverse_link, which is code and "
            "has no place in a model file; use a built-in loss, or pickle."
        )


def _everything(model: Model) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a model, with all records that it has."""
    progress, loss = model._progress, model._fitted_loss
    trees = progress.model
    assert isinstance(trees, _core.Ensemble)
    encoder = Encoder()
    header: dict[str, Any] = {
        "content": "model",
        "estimator": type(model).__name__,
        "manyboost": model._release,
        "kind": trees.kind,
        "n_outputs": trees.n_outputs,
        "n_features": trees.n_features,
        "mixed": isinstance(loss, MixedLoss),
        "losses": _stored_losses(loss),
        "with_offset": model._with_offset,
        "seed": model._seed,
        "feature_names": _names(getattr(model, "feature_names_in_", None)),
        "output_names": _names(getattr(model, "output_names_", None)),
        "category_labels": _stored_labels(model, encoder),
        "parameters": _stored_parameters(model, encoder),
        "trained_with": {
            name: encoder.encode(value) for name, value in sorted(model._trained_with.items())
        },
        "targets": _stored_targets(model, encoder),
        "projection": encoder.encode(model.projection_),
        "search_results": encoder.encode(getattr(model, "search_results_", None)),
        "set_output": getattr(model, "_sklearn_output_config", {}).get("predict", "default"),
        "score_names": list(progress.validation_scores),
        "several_scores": hasattr(model, "validation_scores_"),
        "left_out": sorted({*model._left_out, *_foreign_attributes(model)}),
    }
    if hasattr(model, "target_name_"):
        header["target_name"] = model.target_name_
    arrays = {
        **trees.arrays(),
        "baseline": loss.baseline,
        "loss_constants": loss.param,
        "train_score": np.array(progress.train_score),
        "validation_score": np.array(progress.validation_score),
        **stored_records(progress, trees.n_outputs),
        **_stored_categories(progress.categories),
        **_stored_constraints(progress.constraints),
        **{f"value_{k:06d}": array for k, array in enumerate(encoder.arrays)},
    }
    if hasattr(model, "thresholds_"):
        arrays["thresholds"] = model.thresholds_
    if hasattr(model, "best_iter_per_output_"):
        arrays["best_iter_per_output"] = model.best_iter_per_output_.astype(np.int64)
    return header, arrays


def _names(names: Iterable[Any] | None) -> list[str] | None:
    return None if names is None else [str(each) for each in names]


def _foreign_attributes(model: Model) -> list[str]:
    """What others have put on the estimator: settings of scikit-learn, notes of users."""
    known = _ATTRIBUTES.union(model.get_params(deep=False))
    return [f"attribute {name}" for name in vars(model) if name not in known]


def _stored_losses(loss: FittedLoss) -> list[list[Any]]:
    if loss.custom is not None:
        return [["custom_curved" if loss.facts.curved else "custom", len(loss.baseline)]]
    if isinstance(loss, MixedLoss):
        return [[facts.kernel, last - first] for facts, (first, last) in loss.blocks]
    return [[loss.facts.kernel, len(loss.baseline)]]


def _stored_labels(model: Model, encoder: Encoder) -> list[Any]:
    stored = []
    for j, labels in sorted(model._category_labels.of_column.items()):
        for label in labels:
            if not isinstance(label, str | int | float):
                name = column_name(j, getattr(model, "feature_names_in_", None))
                raise ValueError(
                    f"Column {name} has categories of the type {type(label).__name__}, "
                    "which a model file cannot hold; turn them into text before fit."
                )
        stored.append([int(j), [encoder.encode(label) for label in labels]])
    return stored


def _stored_parameters(model: Model, encoder: Encoder) -> dict[str, Any]:
    stored = {}
    for name, value in sorted(model.get_params(deep=False).items()):
        if name in OF_A_RUN:
            continue
        try:
            stored[name] = encoder.encode(value)
        except Unstorable as unstorable:
            raise ValueError(
                f"{name}={value!r} holds {unstorable}, which a model file cannot hold; use "
                "numbers, text, arrays, lists, sets and dicts."
            ) from None
        if not holds_code(stored[name]):
            check_parameter(name, value)
    return stored


def holds_code(stored: Any) -> bool:
    """Whether something is left out of a stored value."""
    if isinstance(stored, list):
        return any(map(holds_code, stored))
    if isinstance(stored, dict):
        return "left_out" in stored or any(map(holds_code, stored.values()))
    return False


def check_parameter(name: str, value: Any) -> None:
    """Check one parameter as fit does."""
    # (Names of scorers come and go with releases of scikit-learn.)
    if name != "scoring":
        params.check_value(name, value)


def _stored_targets(model: Model, encoder: Encoder) -> dict[str, Any]:
    if not hasattr(model, "_classes"):
        quantiles = getattr(model, "_quantiles", None)
        one_dimensional = getattr(model, "_one_dimensional", None)
        return {"one_dimensional": one_dimensional, "quantiles": quantiles}
    classes = model._classes
    return {"kind": classes.kind, "values": stored_classes(classes, encoder)}


def stored_classes(classes: Classes, encoder: Encoder) -> Any:
    """Return classes, or in what way they follow from the rest."""
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
            "truth values."
        ) from None


def stored_records(progress: Progress, d: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of scores, steps and importances."""
    n = len(progress.train_score)
    records = {"validation_scores": _table(progress.validation_scores.values(), n)}
    if progress.validation_per_output:
        records["validation_per_output"] = _table(progress.validation_per_output, d)
    if progress.train_per_output:
        records["train_per_output"] = _table(progress.train_per_output, d)
    if progress.shares is not None:
        records["shares"] = _table(progress.shares, d)
    if progress.steps:
        records["steps"] = _table(progress.steps, d)
    if progress.importances is not None:
        records["importances"] = progress.importances
    else:
        assert progress.mean_importances is not None
        records["mean_importances"] = progress.mean_importances
    return records


def _table(rows: Iterable[Any], width: int) -> F64:
    return np.array(list(rows), dtype=np.float64).reshape(-1, width)


def _stored_categories(categories: Categories) -> dict[str, NDArray[Any]]:
    if not categories.tables:
        return {}
    features = sorted(categories.tables)
    tables = [categories.tables[j] for j in features]
    return {
        "category_features": np.array(features, np.uint32),
        "category_counts": np.array([len(table) for table in tables], np.uint32),
        "category_values": np.concatenate(tables).astype(np.float64),
    }


def _stored_constraints(constraints: Constraints) -> dict[str, NDArray[Any]]:
    stored: dict[str, NDArray[Any]] = {}
    if constraints.monotonic is not None:
        stored["monotonic_signs"] = constraints.monotonic.signs
    if constraints.interactions is not None:
        groups = constraints.interactions
        stored["interaction_counts"] = np.array([len(group) for group in groups], np.uint32)
        features = [feature for group in groups for feature in group]
        stored["interaction_features"] = np.array(features, np.uint32)
    return stored
