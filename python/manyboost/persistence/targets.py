"""What the outputs of a model file mean: numbers, quantiles or classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyboost import params
from manyboost.data.labels import Classes
from manyboost.persistence.container import broken
from manyboost.persistence.parts import Source
from manyboost.persistence.schema import Contents, finite, names
from manyboost.persistence.values import Encoder, Unstorable


def stored_targets(source: Source) -> dict[str, Any]:
    """Return the classes of a classifier, or levels and dimensions of a regressor."""
    classes = getattr(source.model, "_classes", None)
    if classes is not None:
        return {"kind": classes.kind, "values": _stored_classes(classes, source.encoder)}
    return {
        name: getattr(source.model, f"_{name}", None) for name in ("one_dimensional", "quantiles")
    }


def read_targets(file: Contents) -> dict[str, Any]:
    """Return the attributes of the estimator that say what its outputs are."""
    found, d = file.found, file.found.n_outputs
    if found.estimator == "ManyBoostClassifier":
        output_names = names(found.output_names, d, "output_names")
        classes = _read_classes(file, output_names)
        attributes = {"_classes": classes, "classes_": classes.values}
    else:
        match found.targets:
            case {"one_dimensional": bool() as one_dimensional, "quantiles": quantiles, **rest}:
                check_allowed("quantile", 0.5 if quantiles is None else quantiles)
            case _:
                broken("it does not say what its outputs are")
        if not (quantiles is None or isinstance(quantiles, list)):
            broken("its quantiles are not a list")
        n_levels = len(quantiles or [None])
        if rest or d % n_levels or (one_dimensional and d != n_levels):
            broken("its outputs are not those of its targets")
        output_names = names(found.output_names, d // n_levels, "output_names")
        attributes = {"_one_dimensional": one_dimensional, "_quantiles": quantiles}
    if output_names is not None:
        attributes["output_names_"] = np.array(output_names, dtype=object)
    return attributes


def check_allowed(name: str, value: Any) -> None:
    """Refuse a parameter that fit would refuse."""
    try:
        params.check_value(name, value)
    except (ValueError, TypeError) as error:
        broken(str(error).rstrip("."))


def _stored_classes(classes: Classes, encoder: Encoder) -> Any:
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


def _read_classes(file: Contents, output_names: list[str] | None) -> Classes:
    stored, d = file.found.targets, file.found.n_outputs
    if set(stored) != {"kind", "values"} or not isinstance(stored["kind"], str):
        broken("it does not say what its classes are")
    kind, values = stored["kind"], stored["values"]
    if values == "numbers":
        classes = np.arange(d)
    elif values == "names" and output_names is not None:
        classes = np.array(output_names, dtype=object)
    else:
        classes = file.decode(values)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        broken("its classes are not a list")
    expected = {"binary": 2, "multiclass": max(d, 3), "multilabel": d}.get(kind)
    if len(classes) != expected or (kind == "binary" and d != 1):
        broken(f"it has {len(classes)} classes for {d} outputs")
    if kind != "multilabel" and output_names is not None:
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
    result = Classes(kind, classes, None if output_names is None else tuple(output_names))
    # There is one way to write them.
    if not isinstance(values, str) and isinstance(_stored_classes(result, Encoder()), str):
        broken("its classes are written at length")
    return result
