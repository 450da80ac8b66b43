"""The losses of a model file."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from manyboost.data.labels import Classes
from manyboost.persistence.container import broken
from manyboost.persistence.parts import Source
from manyboost.persistence.schema import finite
from manyboost.persistence.values import LeftOut
from manyboost.training.custom import Loss
from manyboost.training.fitted_losses import FittedLoss, MixedLoss
from manyboost.training.losses import (
    CLASS_LOSSES,
    LABEL_LOSSES,
    LISTED_LOSSES,
    REGRESSION_LOSSES,
    LossFacts,
    custom_facts,
)

# A loss in Python is stored by what training knows about it; predictions need none of its code.
_CUSTOM = {"custom": custom_facts(curved=False), "custom_curved": custom_facts(curved=True)}


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
    known = _known(is_class=classes is not None, mixed=mixed)
    parts: list[FittedLoss] = []
    kernels: list[str] = []
    for each in found.losses:
        start = len(kernels)
        match each:
            case [str() as name, int() as count] if 0 < count <= d - start:
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
    if any(a.facts == b.facts for a, b in itertools.pairwise(parts)):
        broken("neighbouring outputs of one loss are not together")
    loss = MixedLoss(parts) if mixed else parts[0]
    if not np.array_equal(loss.baseline, baseline):
        broken("its baseline is not in single precision, as its loss has it")
    if quantiles is not None:
        levels = np.tile(quantiles, d // len(quantiles))
        has_levels = all(facts.has_levels for facts, _ in loss.blocks)
        if not has_levels or not np.array_equal(levels, constants):
            broken("its quantiles are not those of its loss")
    if not _agrees(trained, kernels, mixed, classes):
        broken("its loss is not the one that the model was trained with")
    return loss


def _known(*, is_class: bool, mixed: bool) -> Mapping[str, LossFacts]:
    """Return the losses that a model of this type may have, by their names in a file."""
    if is_class:
        tables = [*LABEL_LOSSES.values(), *CLASS_LOSSES.values()]
        return {facts.kernel: facts for facts in tables} | _CUSTOM
    return LISTED_LOSSES if mixed else REGRESSION_LOSSES | _CUSTOM


def _agrees(trained: Any, kernels: list[str], mixed: bool, classes: Classes | None) -> bool:
    """Whether a value of the parameter ``loss`` leads to these losses."""
    if isinstance(trained, LeftOut):
        return kernels == ["custom"] * len(kernels)
    if isinstance(trained, tuple):
        return mixed and list(trained) == kernels
    if classes is None:
        facts = REGRESSION_LOSSES.get(trained)
        return not mixed and facts is not None and facts.kernel == kernels[0]
    known = LABEL_LOSSES
    if classes.kind == "multiclass":
        known = LABEL_LOSSES | CLASS_LOSSES
    return trained in known and kernels[0] == known[trained].kernel
