"""The built-in losses: one record each, with everything that other modules ask about them.

The formulas of a loss (value, residual, curvature) are kernels of the core, found by the name in
its record. Other modules never compare names of losses; they ask the record.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from manyboost import _core
from manyboost.arrays import F64, Mask
from manyboost.data.cells import TargetKind


class Domain(Enum):
    """Targets that a loss can take."""

    REAL = "any number"
    COUNTS = "counts of at least zero"
    AMOUNTS = "amounts of at least zero"
    POSITIVE = "amounts above zero"
    LABELS = "labels of 0 and 1"
    CLASSES = "one class for each row"

    def lacks(self, Y: F64) -> Mask | None:
        """Return which numbers are outside the domain; None: any number is inside."""
        if self in (Domain.COUNTS, Domain.AMOUNTS):
            return Y < 0
        if self is Domain.POSITIVE:
            return Y <= 0
        if self is Domain.LABELS:
            return ~np.isin(Y, (0, 1)) & ~np.isnan(Y)
        return None

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the least and the largest number of the domain."""
        if self is Domain.LABELS:
            return 0.0, 1.0
        below_zero = self.lacks(np.array([-1.0]))
        return (-np.inf if below_zero is None else 0.0), np.inf


@dataclass(frozen=True)
class Link:
    """From raw predictions to predictions, here and in the runtimes that models are exported to."""

    name: str  # its formula, in the core and in manyboost-predict
    onnx: tuple[tuple[str, tuple[float, ...]], ...]  # operators and constants, one after the other
    treelite: str | None  # the postprocessor; None: treelite has none
    joint: bool = False  # predictions of one output depend on the raw predictions of the others

    def inverse(self, raw: F64) -> F64:
        """Return predictions for raw predictions (n_rows, n_outputs), the same bits everywhere."""
        if self.name == "identity":
            return raw
        predictions = np.array(raw, np.float64, order="C")
        _core.apply_link(self.name, predictions)
        return predictions


# The least probability that squared error of labels gives: one that is exact in single precision,
# and below 1 when taken from it.
_LEAST = 2.0**-24


IDENTITY = Link("identity", (("Identity", ()),), "identity")
EXPONENTIAL = Link("exponential", (("Exp", ()),), "exponential")
LOGISTIC = Link("logistic", (("Sigmoid", ()),), "sigmoid")
SOFTMAX_LINK = Link("softmax", (("Softmax", ()),), "softmax", joint=True)
#: From [-1, 1] to [0, 1]: squared error on labels.
HALVED = Link(
    "halved",
    (("Mul", (0.5,)), ("Add", (0.5,)), ("Clip", (_LEAST, 1 - _LEAST))),
    None,
)


class Baseline(Enum):
    """How the constant raw prediction that training starts from is found."""

    MEAN = "mean"
    QUANTILE = "quantile"
    CENTRE = "minimum of the loss, searched from the median"
    LOG_MEAN = "logarithm of the mean"
    LOG_ODDS = "log-odds of the share of positive labels"
    SIGNED_SHARE = "mean of labels of -1 and 1"
    CLASS_LOGS = "logarithms of the shares of the classes"
    SEARCH = "what the loss says, or the minimum of the loss, searched from the mean"


def _unused(constants: F64) -> Mask:
    return np.equal(constants, 0.5)


def _between_zero_and_one(constants: F64) -> Mask:
    return (constants > 0) & (constants < 1)


def _positive(constants: F64) -> Mask:
    return constants > 0


def _is_power(constants: F64) -> Mask:
    return (constants >= 1.1) & (constants <= 1.9)


@dataclass(frozen=True)
class LossFacts:
    """Everything that other modules ask about a loss."""

    kernel: str  # its formulas, in the core and in model files
    domain: Domain
    link: Link
    baseline: Baseline
    centred: bool = False  # targets are kept relative to the baseline
    curved: bool = True  # the second derivative is worth a Newton step
    # The second derivative is 1 everywhere, so residuals are all the state of a projected round.
    quadratic: bool = False
    piecewise_linear: bool = False  # the best leaf values and steps are weighted quantiles
    has_levels: bool = False  # at the levels of the parameter ``quantile``; else medians
    damping: float = 0.0  # λ of l2_regularization="auto"; 1 where curvature can vanish
    # Curvature is |r| (1 − |r|), and weighs the rows when the tree of one rare output is grown.
    splits_by_curvature: bool = False
    bounded: bool = False  # a line search may have no finite minimiser
    # Of the mean μ = e^f, in the variance of the targets; None: the parameter ``power``.
    variance_power: float | None = 1.0
    # Of step="auto". Newton leaves need no search, win for log loss with rare labels and for
    # absolute error, and are close elsewhere.
    default_step: str = "newton"
    constants_allowed: Callable[[F64], Mask] = _unused  # constants of the loss, by output

    @property
    def is_joint(self) -> bool:
        """Whether the outputs of a row share one loss."""
        return self.domain is Domain.CLASSES


# fmt: off
REGRESSION_LOSSES = {
    "squared_error": LossFacts(
        "squared_error", Domain.REAL, IDENTITY, Baseline.MEAN,
        centred=True, quadratic=True,
    ),
    "absolute_error": LossFacts(
        "absolute_error", Domain.REAL, IDENTITY, Baseline.QUANTILE,
        centred=True, curved=False, piecewise_linear=True,
    ),
    "huber": LossFacts(
        # Its curvature is 0 beyond δ, where a Newton step can overshoot.
        "huber", Domain.REAL, IDENTITY, Baseline.CENTRE,
        centred=True, default_step="line_search", constants_allowed=_positive,
    ),
    "quantile": LossFacts(
        "quantile", Domain.REAL, IDENTITY, Baseline.QUANTILE,
        centred=True, curved=False, piecewise_linear=True, has_levels=True,
        constants_allowed=_between_zero_and_one,
    ),
    "poisson": LossFacts(
        "poisson", Domain.COUNTS, EXPONENTIAL, Baseline.LOG_MEAN, damping=1.0, bounded=True,
    ),
    "gamma": LossFacts(
        "gamma", Domain.POSITIVE, EXPONENTIAL, Baseline.LOG_MEAN, damping=1.0, bounded=True,
        variance_power=2.0,
    ),
    "tweedie": LossFacts(
        "tweedie", Domain.AMOUNTS, EXPONENTIAL, Baseline.LOG_MEAN, damping=1.0, bounded=True,
        variance_power=None, constants_allowed=_is_power,
    ),
}
LABEL_LOSSES = {
    "log_loss": LossFacts(
        "log_loss", Domain.LABELS, LOGISTIC, Baseline.LOG_ODDS, damping=1.0, bounded=True,
        splits_by_curvature=True,
    ),
    "exponential": LossFacts(
        "exponential", Domain.LABELS, LOGISTIC, Baseline.LOG_ODDS, damping=1.0, bounded=True,
    ),
    "squared_error": LossFacts(
        "squared_labels", Domain.LABELS, HALVED, Baseline.SIGNED_SHARE, quadratic=True,
    ),
}
#: Losses of more than two classes that train all classes together; others take one against rest.
CLASS_LOSSES = {
    "log_loss": LossFacts(
        "softmax", Domain.CLASSES, SOFTMAX_LINK, Baseline.CLASS_LOGS, damping=1.0, bounded=True,
        splits_by_curvature=True,
    ),
}
# fmt: on
#: Losses of a list with one loss for each output; those of labels take targets of 0 and 1.
LISTED_LOSSES = ChainMap(REGRESSION_LOSSES, LABEL_LOSSES)


def custom_facts(*, curved: bool) -> LossFacts:
    """Return the record of a loss written in Python; ``curved``: it has a hessian."""
    facts = LossFacts("custom", Domain.REAL, IDENTITY, Baseline.SEARCH)
    if not curved:
        return replace(facts, curved=False, default_step="line_search")
    # Nothing is known about the hessian; it may vanish.
    return replace(facts, damping=1.0)


#: The record of outputs with different losses: what they share; each output has its own besides.
MIXED = LossFacts("mixed", Domain.REAL, IDENTITY, Baseline.MEAN, centred=True)


def losses_of_columns(name: str, widths: Sequence[int]) -> list[tuple[LossFacts, int]]:
    """Return the records of the blocks that columns of classes form, and their numbers of outputs.

    ``widths`` are the numbers of outputs of the columns. Those of two classes, which have one, are
    labels, and neighbours among them form one block.
    """
    label, classes = LABEL_LOSSES[name], CLASS_LOSSES.get(name)
    if classes is None:
        return [(label, sum(widths))]
    blocks: list[tuple[LossFacts, int]] = []
    for width in widths:
        if width > 1:
            blocks.append((classes, width))
        elif blocks and blocks[-1][0] is label:
            blocks[-1] = label, blocks[-1][1] + 1
        else:
            blocks.append((label, 1))
    return blocks


def loss_facts(name: str, kind: TargetKind) -> LossFacts:
    """Return the record of a built-in loss for a kind of targets."""
    tables = {TargetKind.REAL: REGRESSION_LOSSES, TargetKind.CLASSES: CLASS_LOSSES}
    return tables.get(kind, LABEL_LOSSES)[name]
