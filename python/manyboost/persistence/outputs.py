"""The outputs of a model file: what they mean (numbers, quantiles or classes), and their losses."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np

from manyboost import params
from manyboost.data.hierarchy import Hierarchy
from manyboost.data.labels import ClassColumns, Classes
from manyboost.persistence.container import AnyArray, broken
from manyboost.persistence.parts import Source
from manyboost.persistence.schema import Contents, finite, names, within
from manyboost.persistence.values import Encoder, LeftOut, Unstorable
from manyboost.training import losses
from manyboost.training.custom import Loss
from manyboost.training.fitted_losses import FittedLoss, MixedLoss

# A loss in Python is stored by what training knows about it; predictions need none of its code.
_CUSTOM = {
    "custom": losses.custom_facts(curved=False),
    "custom_curved": losses.custom_facts(curved=True),
}
_OF_LABELS = [*losses.LABEL_LOSSES.values(), *losses.CLASS_LOSSES.values()]
# Characters of what fit says about a parameter, which may hold a million values.
_LONGEST_REFUSAL = 600
_OF_CLASSIFIERS = {facts.kernel: facts for facts in _OF_LABELS} | _CUSTOM

# ---------------------------------------------------------------------- meaning


def stored_targets(source: Source) -> dict[str, Any]:
    """Return the classes of a classifier, or levels and dimensions of a regressor."""
    classes = getattr(source.model, "_classes", None)
    if isinstance(classes, ClassColumns):
        values = [_encoded(each, source.encoder) for each in classes.values]
        names = None if classes.names is None else list(classes.names)
        return {"kind": classes.kind, "names": names, "values": values}
    if classes is not None:
        return {"kind": classes.kind, "values": _stored_classes(classes, source.encoder)}
    return {name: getattr(source.model, f"_{name}") for name in ("one_dimensional", "quantiles")}


def read_targets(file: Contents) -> dict[str, Any]:
    """Return the attributes of the estimator that say what its outputs are."""
    found, d = file.found, file.found.n_outputs
    if found.estimator == "ManyBoostClassifier":
        output_names = names(found.output_names, d, "output_names")
        classes = _read_classes(file, output_names)
        attributes = {"_classes": classes, "classes_": classes.values}
        if isinstance(classes, ClassColumns) and classes.names is not None:
            attributes["target_names_"] = np.array(classes.names, dtype=object)
    else:
        match found.targets:
            case {"one_dimensional": bool() as one_dimensional, "quantiles": quantiles, **rest}:
                check_allowed("quantile", 0.5 if quantiles is None else quantiles)
            case _:
                broken("it does not say what its outputs are")
        if not isinstance(quantiles, list | None):
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
        words = str(error).rstrip(".")
        most = _LONGEST_REFUSAL // 2
        broken(words if len(words) <= 2 * most else f"{words[:most]} … {words[-most:]}")


def _stored_classes(classes: Classes, encoder: Encoder) -> Any:
    """Return the classes, or how they follow from the other entries."""
    values = classes.values
    if classes.kind == "multilabel":
        if np.array_equal(values, np.arange(len(values))) and values.dtype == np.intp:
            return "numbers"
        if values.dtype == object and values.tolist() == list(classes.names or ()):
            return "names"
    return _encoded(values, encoder)


def _encoded(values: Any, encoder: Encoder) -> Any:
    try:
        return encoder.encode(values)
    except Unstorable as unstorable:
        problem = f"The classes are {unstorable}, which a model file cannot hold"
        raise ValueError(f"{problem}; use text, numbers or booleans.") from None


def _read_columns(
    file: Contents, stored: list[Any], column_names: list[str] | None, output_names: Any
) -> ClassColumns:
    """Return several columns of classes."""
    values = [file.decode(each) for each in stored]
    if len(values) < 2 or output_names is not None:
        broken("its columns of classes are not several, or its outputs have names of their own")
    for each in values:
        _check_values(each, ordered=True)
        if len(each) < 2:
            broken("a column has less than two classes")
    known = names(column_names, len(values), "names")
    classes = ClassColumns("columns", values, None if known is None else tuple(known))
    if classes.n_outputs != file.found.n_outputs:
        broken(f"its columns of classes are not those of {file.found.n_outputs} outputs")
    return classes


def _check_values(classes: Any, *, ordered: bool) -> None:
    """Refuse anything but different texts, numbers or booleans, ``ordered`` if they must be so."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        broken("its classes are not a list")
    is_text = classes.dtype == object and all(isinstance(each, str) for each in classes)
    if classes.dtype.kind not in "biufU" and not is_text:
        broken("its classes are neither text nor numbers nor booleans")
    sorted_ = np.unique(finite(classes) if classes.dtype.kind == "f" else classes)
    if len(sorted_) != len(classes):
        broken("a class comes twice")
    if ordered and not np.array_equal(sorted_, classes):
        broken("its classes are out of order")


def _read_classes(file: Contents, output_names: list[str] | None) -> Classes:
    d = file.found.n_outputs
    match file.found.targets:
        case {
            "kind": "columns",
            "values": list() as stored,
            "names": list() | None as named,
            **rest,
        }:
            if rest:
                broken("it does not say what its classes are")
            return _read_columns(file, stored, named, output_names)
        case {"kind": str() as kind, "values": values, **rest} if not rest:
            pass
        case _:
            broken("it does not say what its classes are")
    if values == "numbers" and kind == "multilabel":
        classes = np.arange(d)
    elif values == "names" and output_names is not None:  # which only labels have
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
    _check_values(classes, ordered=kind != "multilabel")
    result = Classes(kind, classes, None if output_names is None else tuple(output_names))
    # There is one way to write them.
    if not isinstance(values, str) and isinstance(_stored_classes(result, Encoder()), str):
        broken("its classes are written at length")
    return result


def stored_pairs(source: Source, name: str) -> AnyArray | None:
    """Return the children or parents of a hierarchy of labels."""
    hierarchy = source.model._hierarchy
    return None if hierarchy is None else getattr(hierarchy, name)


def read_hierarchy(found: SimpleNamespace) -> Hierarchy | None:
    """Check the hierarchy of labels, if there is one."""
    children, parents = found.hierarchy_children, found.hierarchy_parents
    if children is None and parents is None:
        return None
    if children is None or parents is None or found.targets.get("kind") != "multilabel":
        broken("it does not have all arrays of its hierarchy, or no labels")
    for each in (children, parents):
        within(each, 0, found.n_outputs - 1)
    pairs = list(zip(children.tolist(), parents.tolist(), strict=True))
    if pairs != sorted(set(pairs)):
        broken("the pairs of its hierarchy are out of order")
    hierarchy = Hierarchy(found.n_outputs, children.astype(np.intp), parents.astype(np.intp))
    if len(hierarchy.order) != found.n_outputs:
        broken("its hierarchy has a cycle")
    return hierarchy


# ---------------------------------------------------------------------- losses


def stored_losses(source: Source) -> list[list[Any]]:
    """Return the losses of neighbouring outputs and the numbers of these outputs."""
    loss = source.model._fitted_loss
    d = len(loss.baseline)
    if loss.custom is not None:
        return [["custom_curved" if loss.facts.curved else "custom", d]]
    blocks = [(facts, outputs or (0, d)) for facts, outputs in loss.blocks]
    return [[facts.kernel, stop - start] for facts, (start, stop) in blocks]


def read_loss(
    found: SimpleNamespace, trained: Any, classes: Classes | None, quantiles: list[float] | None
) -> FittedLoss:
    """Return the loss, which must be that of the parameter ``loss`` that was ``trained`` with."""
    d, mixed = found.n_outputs, found.mixed
    baseline, constants = finite(found.baseline), finite(found.loss_constants)
    known = losses.LISTED_LOSSES if mixed else losses.REGRESSION_LOSSES | _CUSTOM
    if classes is not None:
        known = _OF_CLASSIFIERS
    parts: list[FittedLoss] = []
    kernels: list[str] = []
    for each in found.losses:
        start = len(kernels)
        match each:
            case [str() as name, count] if type(count) is int and 0 < count <= d - start:
                outputs = slice(start, start + count)
            case _:
                broken("it does not say what the losses of its outputs are")
        if name not in known:
            broken(f"it has the unknown loss {name!r}")
        facts = known[name]
        if not facts.constants_allowed(constants[outputs]).all():
            broken(f"it has impossible constants of the loss {name!r}")
        custom = Loss() if name in _CUSTOM else None
        parts.append(FittedLoss(facts, baseline[outputs], param=constants[outputs], custom=custom))
        kernels += [facts.kernel] * count
    if len(kernels) != d or (not mixed and len(parts) != 1):
        broken("it does not have one loss for each output")
    if any(a.facts == b.facts and not a.facts.is_joint for a, b in itertools.pairwise(parts)):
        broken("neighbouring outputs of one loss are not together")
    loss = MixedLoss(parts) if mixed else parts[0]
    if not np.array_equal(loss.baseline, baseline):
        broken("its baseline is not in single precision, as its loss has it")
    if quantiles is not None:
        levels = np.tile(quantiles, d // len(quantiles))
        has_levels = all(facts.has_levels for facts, _ in loss.blocks)
        if not has_levels or not np.array_equal(levels, constants):
            broken("its quantiles are not those of its loss")
    if isinstance(classes, ClassColumns) and trained in losses.LABEL_LOSSES:
        blocks = losses.losses_of_columns(trained, classes.widths)
        agrees = found.losses == [[facts.kernel, width] for facts, width in blocks]
        agrees = agrees and mixed == (len(blocks) > 1)
    else:
        agrees = _agrees(trained, kernels, mixed, classes)
    if not agrees:
        broken("its loss is not the one that the model was trained with")
    return loss


def _agrees(trained: Any, kernels: list[str], mixed: bool, classes: Classes | None) -> bool:
    """Whether a value of the parameter ``loss`` leads to these losses."""
    if isinstance(trained, LeftOut):
        return kernels == ["custom"] * len(kernels)
    if isinstance(trained, tuple):
        return mixed and list(trained) == kernels
    known = losses.REGRESSION_LOSSES if classes is None else losses.LABEL_LOSSES
    if classes is not None and classes.kind == "multiclass":
        known = losses.LABEL_LOSSES | losses.CLASS_LOSSES
    return not mixed and trained in known and known[trained].kernel == kernels[0]
