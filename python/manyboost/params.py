"""Every parameter once: what it may be and what it means.

Validation and the "Parameters" section of the estimators' docstrings come from this table.
"""

from __future__ import annotations

import inspect
import numbers
import textwrap
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyboost.data.hierarchy import is_hierarchy
from manyboost.training.calibrators import CALIBRATORS
from manyboost.training.callbacks import check_callbacks
from manyboost.training.checkpoints import Checkpoint, is_path
from manyboost.training.custom import Loss
from manyboost.training.losses import LABEL_LOSSES, LISTED_LOSSES, REGRESSION_LOSSES
from manyboost.training.projections import PROJECTIONS
from manyboost.training.scoring import is_scoring
from manyboost.training.strategies import STRATEGIES

STEPS = ("auto", "line_search", "newton")


@dataclass(frozen=True)
class Check:
    """A condition on a value, the words for it, and the values themselves if they are few."""

    words: str
    holds: Callable[[Any], bool]
    choices: tuple[Any, ...] = ()


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and value == value


def _is_list(value: Any, holds: Callable[[Any], bool], *types: type) -> bool:
    """Whether a value is a list with entries, all of which pass a test."""
    is_list = isinstance(value, (list, tuple, *types)) and getattr(value, "ndim", 1) == 1
    return is_list and len(value) > 0 and all(map(holds, value))


def integer(low: int, high: int | None = None) -> Check:
    """Whole numbers from ``low`` to ``high``."""
    words = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    return Check(words, lambda v: _is_integer(v) and v >= low and (high is None or v <= high))


def real(low: float, high: float = float("inf"), *, include_low: bool = True) -> Check:
    """Numbers from ``low`` to ``high``, the lower bound included or not, the upper one included."""
    words = f"a number {'at least' if include_low else 'above'} {low:g}"
    if high != float("inf"):
        words += f" and at most {high:g}"

    def holds(value: Any) -> bool:
        inside = _is_real(value) and low <= value <= high and value < float("inf")
        return bool(inside and (include_low or value > low))

    return Check(words, holds)


def one_of(*options: Any) -> Check:
    """One of the given values."""
    words = " or ".join(repr(option) for option in options)
    return Check(words, lambda v: any(type(v) is type(o) and v == o for o in options), options)


def name_in(records: Mapping[str, Any], *others: str) -> Check:
    """A name of one of the records, or of the others."""
    options = (*records, *others)
    words = " or ".join(map(repr, options))
    return Check(words, lambda v: isinstance(v, str) and (v in records or v in others), options)


def kind(words: str, *types: type) -> Check:
    """Instances of the given types."""
    return Check(words, lambda v: isinstance(v, types) and not isinstance(v, type))


_fraction = Check("a float in (0, 1]", lambda v: _is_real(v) and not _is_integer(v) and 0 < v <= 1)
_boolean = Check("True or False", lambda v: isinstance(v, bool | np.bool_), (True, False))
_none = one_of(None)


def _is_array_like(value: Any) -> bool:
    is_other = isinstance(value, str | bytes | Mapping) or getattr(value, "ndim", 1) == 0
    return isinstance(value, Iterable) and isinstance(value, Sized) and not is_other


def _is_flat(value: Any) -> bool:
    return _is_array_like(value) and not any(map(_is_array_like, value))


def _is_level(value: Any) -> bool:
    return _is_real(value) and 0 < value < 1


def _are_levels(value: Any) -> bool:
    return _is_list(value, _is_level, np.ndarray) and bool(np.all(np.diff(value) > 0))


def _is_splitter(value: Any) -> bool:
    return callable(getattr(value, "split", None)) and not isinstance(value, str | bytes | type)


def _is_client(value: Any) -> bool:
    # By name: Dask is not imported for those who do not use it.
    names = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__}
    return ("distributed", "Client") in names


def _is_output_weight(value: Any) -> bool:
    try:
        weights = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    # A square root is taken in single precision.
    fits = (weights == 0) | ((weights > 1e-60) & (weights < 1e60))
    return bool(weights.ndim == 1 and fits.all() and weights.any())


def _literals(names: Iterable[str]) -> str:
    return ", ".join(f"``{name!r}``" for name in names)


@dataclass(frozen=True)
class Param:
    """A parameter: its default, what it may be, what it means."""

    default: Any
    checks: tuple[Check, ...]
    meaning: str


PARAMS: dict[str, Param] = {
    "loss": Param(
        "squared_error",
        (
            kind("the name of a loss", str),
            kind("a Loss object", Loss),
            Check(
                f"a list with a name for each output: {', '.join(map(repr, LISTED_LOSSES))}",
                lambda v: _is_list(v, lambda name: isinstance(name, str) and name in LISTED_LOSSES),
            ),
        ),
        f"What is minimised. Regression: {_literals(REGRESSION_LOSSES)}. Classification: "
        f"{_literals(LABEL_LOSSES)} (labels as ±1 for ``'squared_error'``; softmax for "
        "``'log_loss'`` with more than two classes). Or a :class:`~manyboost.Loss` of your own. "
        "For a regressor also a list with one name per output, where ``'log_loss'`` and "
        "``'exponential'`` take targets of 0 and 1 and predict probabilities.",
    ),
    "quantile": Param(
        0.5,
        (
            Check("a number strictly between 0 and 1", _is_level),
            Check("a list of such numbers in ascending order", _are_levels),
        ),
        "Level of ``loss='quantile'``. A list of levels is fitted by one model; predictions then "
        "have the shape (n_rows, n_levels) for a one-dimensional y, else (n_rows, n_outputs of y, "
        "n_levels), sorted along the levels so that they never cross.",
    ),
    "huber_delta": Param(
        None,
        (_none, real(0, include_low=False)),
        "Where ``loss='huber'`` turns from quadratic to linear. None: for each output the "
        "median distance to its median, fixed for the whole fit.",
    ),
    "power": Param(
        1.5,
        (real(1.1, 1.9),),
        "Power of the mean in the variance of the targets, for ``loss='tweedie'``: near 1 as for "
        "``'poisson'``, near 2 as for ``'gamma'``.",
    ),
    "strategy": Param(
        "relabel",
        (name_in(STRATEGIES, "auto"),),
        "How a round serves all outputs. ``'independent'``: one tree per output; "
        "``'multioutput'``: one tree grown on all outputs; ``'project'``: one tree grown on a "
        "random projection of the residuals, fitted to each output by one step; ``'relabel'``: "
        "the same, each leaf then labelled with the residuals of all outputs. ``'auto'``: they "
        "race on validation rows (below 1,000 rows: on three folds), with dense and sparse "
        "projections unless ``projection`` is given: heats of equal cost (with ``max_time`` of "
        "equal time, a third of it in all), after which the better half goes on for twice as much. "
        "Of those that gain 99 % of what the best one gains, the cheapest wins, and is trained as "
        "if it had been chosen; see ``strategy_`` and ``search_results_``.",
    ),
    "projection": Param(
        "gaussian",
        (name_in(PROJECTIONS), Check("a callable", callable)),
        "Distribution of the projection, for ``'project'`` and ``'relabel'``: "
        f"{_literals(PROJECTIONS)}; or a callable ``(n_components, n_outputs, rng)`` that returns "
        "an array of shape (n_components, n_outputs) for each round.",
    ),
    "n_components": Param(
        1,
        (integer(1), _fraction),
        "Number of projected outputs a tree is grown on, or a fraction of the outputs. More than "
        "1 needs ``strategy='relabel'``.",
    ),
    "step": Param(
        "auto",
        (one_of(*STEPS),),
        "How far to go along a tree. ``'line_search'``: the best step for each output; "
        "``'newton'``: regularised Newton leaves; ``'auto'``: by the loss and strategy.",
    ),
    "learning_rate": Param(
        "auto",
        (one_of("auto"), real(0, include_low=False)),
        "Factor on every step; usually at most 1. ``'auto'``: 0.05 where several columns of y "
        "share trees, else 0.1.",
    ),
    "max_iter": Param(
        "auto",
        (one_of("auto"), integer(1)),
        "Number of rounds at most. ``'auto'``: 300 where several columns of y share trees; 50 for "
        "each class, or level of a quantile, that shares them, 100 to 500; else 100.",
    ),
    "max_leaf_nodes": Param(
        31, (integer(2), _none), "Leaves of a tree at most; 2 is a stump, None no limit."
    ),
    "max_depth": Param(None, (integer(1), _none), "Depth of a tree at most; None: no limit."),
    "min_samples_leaf": Param(
        "auto",
        (one_of("auto"), integer(1)),
        "Rows of positive weight in a leaf at least. ``'auto'``: a hundredth of all rows where "
        "several columns of y share trees, else a sixth (of fewer than 40 rows 1); 1 to 20.",
    ),
    "min_split_gain": Param(
        0.0,
        (real(0),),
        "Reduction of the weighted sum of squared split gradients that a split must reach.",
    ),
    "l2_regularization": Param(
        "auto",
        (one_of("auto"), real(0)),
        "λ added to the curvature of Newton steps. ``'auto'``: 1 for the log, exponential, "
        "Poisson, gamma and Tweedie losses, else 0.",
    ),
    "max_features": Param(
        1.0,
        (integer(1), _fraction, one_of("sqrt", "log2")),
        "Features drawn for each node: a number, a fraction, ``'sqrt'`` or ``'log2'``.",
    ),
    "subsample": Param(
        1.0,
        (real(0, 1, include_low=False),),
        "Fraction of the rows, drawn without replacement, that a tree is fitted to.",
    ),
    "max_bins": Param(255, (integer(2, 255),), "Bins per feature; missing values have one more."),
    "categorical_features": Param(
        "from_dtype",
        (one_of("from_dtype", None), Check("a mask, or numbers or names of features", _is_flat)),
        "Features that hold categories: a mask, numbers or names. Splits send any set of these "
        "left. If there are more than max_bins, the most frequent stay apart and the others count "
        "as one. A category not seen in training counts as missing. "
        "Any number can be a category, -1 too; missing is NaN. ``'from_dtype'``: the columns of a "
        "data frame with text or of a categorical type; none for arrays. None: none.",
    ),
    "monotonic_cst": Param(
        None,
        (_none, kind("a dict of names to signs", Mapping), Check("an array-like", _is_array_like)),
        "Monotonic constraints: 1 if raw predictions must not fall as the feature rises, -1 if "
        "they must not rise, 0 for none. Signs (n_features,) for all outputs, or (n_outputs, "
        "n_features), or a dict of feature names to a sign or to one for each output. Not for more "
        "than two classes, nor for categorical features.",
    ),
    "interaction_cst": Param(
        None,
        (one_of(None, "pairwise", "no_interactions"), Check("sets of features", _is_array_like)),
        "Interaction constraints: sets of features, by number or name, of which one must hold all "
        "features on a path from root to leaf; features in no set make up another one. "
        "``'pairwise'`` and ``'no_interactions'``: all sets of two features, or of one.",
    ),
    "output_weight": Param(
        None,
        (_none, Check("a number for each output, none negative, not all zero", _is_output_weight)),
        "Importance of each output, (n_outputs,), or of each of several columns of classes, when "
        "shared trees are grown: the gain of a split counts its squared residuals that many "
        "times. Leaves, steps and scores do not depend on it: an output of weight zero is fitted "
        "too. None: all outputs count the same.",
    ),
    "class_weight": Param(
        None,
        (
            _none,
            one_of("balanced"),
            kind("a dict of weights by class", dict),
            kind("a list of such dicts, one for each label or column", list, tuple),
        ),
        "Weights of classes, which multiply sample_weight (and sample_weight_val). "
        "``'balanced'``: all classes count the same; for several labels, presence and absence of "
        "each label do. A dict ``{class: weight}``, for labels ``{0: weight, 1: weight}`` or a "
        "list of such dicts, one for each label or column of classes; classes not mentioned have "
        "weight 1.",
    ),
    "output_scaling": Param(
        "auto",
        (one_of("auto", None),),
        "``'auto'``: when trees are grown, residuals are divided by each output's standard "
        "deviation, so that all scales count the same (regression only). None: as they are.",
    ),
    "estimator": Param(
        None,
        (_none, Check("a regressor with fit and predict", lambda v: hasattr(v, "fit"))),
        "A scikit-learn regressor to use as weak learner instead of the built-in tree.",
    ),
    "thresholds": Param(
        None,
        (
            _none,
            one_of("tuned"),
            real(0, 1),
            Check("an array of such numbers", lambda v: _is_list(v, real(0, 1).holds, np.ndarray)),
        ),
        "Probability above which a label (or the second of two classes) is predicted: one number, "
        "or one for each label. ``'tuned'``: for each label the one that maximises its F1 on the "
        "validation rows, of equals the nearest to 0.5; without early stopping these are set apart "
        "as ``validation_fraction`` says. None: 0.5.",
    ),
    "calibration": Param(
        None,
        (_none, name_in(CALIBRATORS)),
        "How the probabilities of labels, or of two classes, are corrected by what members of "
        "``n_folds`` predict for rows they have not seen: ``'sigmoid'`` (Platt: two numbers a "
        "label) or ``'isotonic'`` (any curve that does not fall). Labels that fewer than 10 rows "
        "have, or lack, share one curve. It changes ``predict_proba`` and what follows from it, "
        "not ``decision_function``. None: not at all.",
    ),
    "label_hierarchy": Param(
        None,
        (_none, Check("a dict of labels to their parents, or a list of pairs", is_hierarchy)),
        "Labels above others, by name or number: a dict of each label to its parent, or to a list "
        "of parents, or pairs (label, parent); no cycles. Predictions agree with it: in no row is "
        "a label more probable than one above it, or predicted without it. Labels above present "
        "ones are added to y, with a warning if y says they are absent.",
    ),
    "early_stopping": Param(
        "auto",
        (one_of("auto", "per_output"), _boolean),
        "Whether to stop when the validation score no longer improves, and keep the rounds up to "
        "the best. ``'auto'``: when X_val or validation_split is given or there are more than "
        "10,000 rows. "
        "``'per_output'``: an output whose own validation loss no longer improves is frozen, and "
        "keeps the rounds up to its own best, while the others go on; of several columns of "
        "classes, each column does. Not for one column of more than two classes.",
    ),
    "validation_fraction": Param(
        0.1,
        (integer(1), Check("a float in (0, 1)", _is_level), _none),
        "Rows set apart for early stopping when X_val is not given: a fraction or a number. None: "
        "no rows; early stopping looks at the training rows.",
    ),
    "validation_split": Param(
        "random",
        (one_of("random", "last"), Check("a splitter, with the method split", _is_splitter)),
        "Which rows are set apart when X_val is not given. ``'random'``: drawn ones; of each class "
        "its share. ``'last'``: the last rows, for rows in order of time. Or a splitter with a "
        "method ``split(X, y, groups)``, such as ``GroupShuffleSplit()``: the last of its splits "
        "says which rows to train on and which to set apart; with ``n_folds`` all of its splits "
        "are the folds, such as the blocks of ``KFold(5)``.",
    ),
    "n_iter_no_change": Param(
        20, (integer(1),), "Rounds without improvement after which to stop early."
    ),
    "tol": Param(
        1e-7,
        (real(0),),
        "Smallest improvement that counts: of the scorer's value or, for the loss, as a share of "
        "the baseline's loss.",
    ),
    "scoring": Param(
        "loss",
        (
            one_of("loss", None),
            Check("the name of a scikit-learn scorer, or a callable (estimator, X, y)", is_scoring),
            Check("a list of these", lambda v: _is_list(v, is_scoring)),
        ),
        "What early stopping looks at, on the validation rows: ``'loss'`` (for regression the mean "
        "over the outputs, each relative to the loss of its baseline), the name of a "
        "scikit-learn scorer, None (the method ``score``: r² or accuracy), or a callable "
        "``(estimator, X, y)``, higher for better models, whose estimator predicts this X alone. "
        "Of a list all are recorded, and the first decides. ``'roc_auc'`` counts the labels of "
        "which validation rows have both values. Not looked at if ``'auto'`` leaves stopping off.",
    ),
    "n_folds": Param(
        None,
        (_none, integer(2, 255)),
        "Folds: the rows fall into so many parts, a member trains on all parts but one and is "
        "scored on that one, and the model is the mean of the members' raw predictions. The rounds "
        "of a member are those that the other members found best. Labels and classes are spread "
        "over the folds, ``groups`` kept together. None: one model.",
    ),
    "refit_all": Param(
        False,
        (_boolean,),
        "Whether to fit again to all rows, once early stopping or folds have found the rounds. "
        "Members of folds keep their trees, and their leaves are fitted to all rows; without folds "
        "a model is trained anew, with as many more rounds as there are more rows. With "
        "``max_time``, half of it is for finding the rounds.",
    ),
    "max_time": Param(
        None,
        (_none, real(0, include_low=False)),
        "Seconds; training ends after the round that passes them. None: no limit.",
    ),
    "warm_start": Param(
        False,
        (_boolean,),
        "Whether another call to fit adds rounds to the fitted model, up to ``max_iter``; for 50 "
        "more set it to ``n_iter_ + 50``.",
    ),
    "checkpoint": Param(
        None,
        (_none, Check("the path of a file", is_path), kind("a Checkpoint", Checkpoint)),
        "A file that keeps the state of training, or a :class:`~manyboost.Checkpoint`, which also "
        "says after how many rounds it is written; a path alone takes a twentieth of the time. If "
        "the file is there, fit goes on from it to the same model as without interruption; a file "
        "of other data or parameters is refused (``max_iter`` may grow, ``n_jobs``, ``max_time``, "
        "``verbose`` and ``callbacks`` may change). It stays when training is complete: the same "
        "fit then trains nothing. ``strategy='auto'`` is kept once it has chosen. Built-in trees "
        "only; no part of a saved model.",
    ),
    "callbacks": Param(
        None,
        (_none, Check("a list of callables", check_callbacks)),
        "Callables that are given a :class:`~manyboost.RoundState` after each round; one that "
        "returns True ends training there. An error in a callback leaves the estimator as it was "
        "before fit. Callbacks of :mod:`sklearn.callback` are set by ``set_callbacks``.",
    ),
    "verbose": Param(
        0,
        (integer(0, 2), _boolean),
        "1: show the rounds, the time left and the scores on standard error, in one line on a "
        "terminal and else by lines at growing intervals; 2: a line for each round; 0: nothing.",
    ),
    "random_state": Param(
        None,
        (_none, integer(0, 2**32 - 1), kind("a numpy.random.RandomState", np.random.RandomState)),
        "Seed, for projections, drawn features, drawn rows and the validation split.",
    ),
    "n_jobs": Param(
        None,
        (_none, Check("an integer other than 0", lambda v: _is_integer(v) and v != 0)),
        "Threads. None: as OMP_NUM_THREADS says, else all CPUs the process may use; -1: all of "
        "these. The model does not depend on it.",
    ),
}

#: Parameters of the estimators for Dask alone.
CLUSTER_PARAMS: dict[str, Param] = {
    "client": Param(
        None,
        (_none, Check("a distributed.Client", _is_client)),
        "The client of the cluster; None: the current one. Clones share it; pickles leave it out.",
    ),
    "on_worker_loss": Param(
        "raise",
        (one_of("raise", "restart"),),
        "If a worker is lost: ``'raise'`` an error, or ``'restart'`` from the last complete round "
        "on the other workers, to the same model, if Dask can compute its partitions again.",
    ),
}


_ALL = ChainMap(PARAMS, CLUSTER_PARAMS)


def assign(estimator: Any, arguments: dict[str, Any]) -> None:
    """Set the parameters of an estimator from the arguments of its constructor."""
    for name, value in arguments.items():
        if name in _ALL:
            setattr(estimator, name, value)


def validate(estimator: Any) -> None:
    """Check every parameter of an estimator, or say which one is wrong and what it may be."""
    for name, value in estimator.get_params(deep=False).items():
        if name in _ALL:  # a subclass may have parameters of its own
            check_value(name, value)


def check_value(name: str, value: Any) -> None:
    """Check one parameter."""
    checks = _ALL[name].checks
    if not any(check.holds(value) for check in checks):
        allowed = ", or ".join(check.words for check in checks)
        shown = textwrap.shorten(repr(value), 60, placeholder="...")
        raise ValueError(f"{name}={shown} is not allowed; it must be {allowed}.")


def described(cls: type) -> str:
    """Return the "Parameters" section of the docstring of an estimator, from the table."""
    lines = []
    for name, parameter in inspect.signature(cls).parameters.items():
        lines.append(f"{name} : default={parameter.default!r}")
        lines.append(textwrap.indent(textwrap.fill(_ALL[name].meaning, 84), "    "))
    return "\n".join(lines)
