"""Every parameter once: its default, what it may be, what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyboost.data.hierarchy import is_hierarchy
from manyboost.params.checks import (
    Check,
    are_levels,
    boolean,
    fraction,
    integer,
    is_array_like,
    is_client,
    is_flat,
    is_integer,
    is_level,
    is_list,
    is_output_weight,
    is_splitter,
    kind,
    name_in,
    none,
    one_of,
    real,
)
from manyboost.training.calibrators import CALIBRATORS
from manyboost.training.callbacks import check_callbacks
from manyboost.training.checkpoints import Checkpoint, is_path
from manyboost.training.custom import Loss
from manyboost.training.losses import LABEL_LOSSES, LISTED_LOSSES, REGRESSION_LOSSES
from manyboost.training.projections import PROJECTIONS
from manyboost.training.scoring import is_scoring
from manyboost.training.strategies import STRATEGIES

STEPS = ("auto", "line_search", "newton")


def _literals(names: Iterable[str]) -> str:
    return ", ".join(f"``{name!r}``" for name in names)


@dataclass(frozen=True)
class Param:
    """A parameter: its default, what it may be, what it means."""

    default: Any
    checks: tuple[Check, ...]
    meaning: str

    @property
    def type(self) -> str:
        """What it may be, in the words of docstrings: "{'auto', 'last'}, int or None"."""
        names = list(dict.fromkeys(check.type for check in self.checks if check.type))
        choices = [value for check in self.checks for value in check.choices]
        if texts := [repr(value) for value in choices if isinstance(value, str)]:
            names.insert(0, texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}")
        if None in choices:
            names.append("None")
        return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


PARAMS: dict[str, Param] = {
    "loss": Param(
        "squared_error",
        (
            kind("str", "the name of a loss", str),
            kind("Loss", "a Loss object", Loss),
            Check(
                "list of str",
                f"a list with a name for each output: {', '.join(map(repr, LISTED_LOSSES))}",
                lambda v: is_list(v, lambda name: isinstance(name, str) and name in LISTED_LOSSES),
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
            Check("float", "a number strictly between 0 and 1", is_level),
            Check("list of float", "a list of such numbers in ascending order", are_levels),
        ),
        "Level of ``loss='quantile'``. A list of levels is fitted by one model; predictions then "
        "have the shape (n_rows, n_levels) for a one-dimensional y, else (n_rows, n_outputs of y, "
        "n_levels), sorted along the levels so that they never cross.",
    ),
    "huber_delta": Param(
        None,
        (none, real(0, include_low=False)),
        "Where ``loss='huber'`` turns from quadratic to linear. None: for each output the "
        "median distance to its median, fixed for the whole fit.",
    ),
    "power": Param(
        1.5,
        (real(1.1, 1.9),),
        "Power of the mean in the variance of the targets, for ``loss='tweedie'``: values near 1 "
        "behave like ``'poisson'``, values near 2 like ``'gamma'``.",
    ),
    "strategy": Param(
        "relabel",
        (name_in(STRATEGIES, "auto"),),
        "How a round serves all outputs. ``'independent'``: one tree per output; "
        "``'multioutput'``: one tree grown on all outputs; ``'project'``: one tree grown on a "
        "random projection of the residuals, fitted to each output by one step; ``'relabel'``: "
        "the same, but each leaf is then labelled with the residuals of all outputs. ``'auto'``: "
        "the strategies race on validation rows (below 1,000 rows: on three folds), with dense "
        "and sparse projections unless ``projection`` is given. In each heat all contenders get "
        "the same budget of computing cost; then the better half continues with twice the budget. "
        "With ``max_time``, budgets are seconds, and the race takes at most a third of it. The "
        "cheapest contender wins whose improvement over the baseline is at least 99 % of the "
        "best; it is then trained as if you had chosen it. See ``strategy_`` and "
        "``search_results_``.",
    ),
    "projection": Param(
        "gaussian",
        (name_in(PROJECTIONS), Check("callable", "a callable", callable)),
        "Distribution of the projection, for ``'project'`` and ``'relabel'``: "
        f"{_literals(PROJECTIONS)}; or a callable ``(n_components, n_outputs, rng)`` that returns "
        "an array of shape (n_components, n_outputs) for each round.",
    ),
    "n_components": Param(
        1,
        (integer(1), fraction),
        "Number of projected outputs a tree is grown on, or a fraction of the outputs. More than "
        "1 needs ``strategy='relabel'``.",
    ),
    "step": Param(
        "auto",
        (one_of(*STEPS),),
        "How far to go along a tree. ``'line_search'``: the best step for each output; "
        "``'newton'``: regularised Newton leaves; ``'auto'``: Newton leaves, but a line search for "
        "custom losses without a hessian, and for Huber's loss unless ``l2_regularization`` is "
        "set.",
    ),
    "learning_rate": Param(
        "auto",
        (one_of("auto"), real(0, include_low=False)),
        "Factor on every step; usually at most 1. ``'auto'``: 0.05 if several columns of y share "
        "trees, else 0.1.",
    ),
    "max_iter": Param(
        "auto",
        (one_of("auto"), integer(1)),
        "Maximum number of rounds. ``'auto'``: if several columns of y share trees, 300, or 1,000 "
        "if validation rows end training; if the classes of one column, or several quantiles of "
        "one target, share trees, 50 for each of them (at least 100, at most 500); else 100.",
    ),
    "max_leaf_nodes": Param(
        31, (integer(2), none), "Maximum number of leaves of a tree; 2: a stump; None: no limit."
    ),
    "max_depth": Param(None, (integer(1), none), "Maximum depth of a tree; None: no limit."),
    "min_samples_leaf": Param(
        "auto",
        (one_of("auto"), integer(1)),
        "Minimum number of rows of positive weight in a leaf. ``'auto'``: a hundredth of all rows "
        "if several columns of y share trees, else a sixth (1 if there are fewer than 40 rows); "
        "at least 1, at most 20.",
    ),
    "min_split_gain": Param(
        0.0,
        (real(0),),
        "Minimum gain of a split: the reduction of the weighted sum of squared split gradients.",
    ),
    "l2_regularization": Param(
        "auto",
        (one_of("auto"), real(0)),
        "λ, added to the curvature in Newton steps. ``'auto'``: 1 for the log, exponential, "
        "Poisson, gamma and Tweedie losses and for custom losses with a hessian, else 0.",
    ),
    "max_features": Param(
        1.0,
        (integer(1), fraction, one_of("sqrt", "log2")),
        "Features drawn for each node: a number, a fraction, ``'sqrt'`` or ``'log2'``.",
    ),
    "max_leaf_outputs": Param(
        None,
        (integer(1), none),
        "Maximum number of labels with a value in a leaf, for very many labels: those that gain "
        "most. A leaf adds nothing to the others. Labels then stay sparse, and neither time nor "
        "memory grows with rows times labels. It needs ``loss='log_loss'`` or "
        "``'squared_error'``, and ``strategy='relabel'``. None: all labels have a value.",
    ),
    "subsample": Param(
        1.0,
        (real(0, 1, include_low=False),),
        "Fraction of the rows, drawn without replacement, that each tree is fitted to.",
    ),
    "max_bins": Param(255, (integer(2, 255),), "Bins per feature; missing values get one more."),
    "categorical_features": Param(
        "from_dtype",
        (
            one_of("from_dtype", None),
            Check("array-like", "a mask, or numbers or names of features", is_flat),
        ),
        "Features that contain categories: a mask, numbers or names. Splits send any set of "
        "categories left. If a feature has more than max_bins categories, the most frequent stay "
        "apart and the others count as one. A category not seen in training counts as missing. "
        "Any number can be a category, also -1; missing is NaN. ``'from_dtype'``: the columns of "
        "a data frame that have text or a categorical type; none for arrays. None: no feature.",
    ),
    "monotonic_cst": Param(
        None,
        (
            none,
            kind("dict", "a dict of names to signs", Mapping),
            Check("array-like", "an array-like", is_array_like),
        ),
        "Monotonic constraints: 1 if raw predictions must not fall as the feature rises, -1 if "
        "they must not rise, 0 for none. Signs (n_features,) for all outputs, or (n_outputs, "
        "n_features), or a dict of feature names to a sign or to a list with one sign per output. "
        "A series or frame whose labels are names of features (and outputs) may have any order. "
        "Not for more than two classes, nor for categorical features.",
    ),
    "interaction_cst": Param(
        None,
        (
            one_of(None, "pairwise", "no_interactions"),
            Check("list of lists", "sets of features", is_array_like),
        ),
        "Interaction constraints: sets of features, by number or name. All features on a path "
        "from root to leaf must be in one set; features in no set form another set. "
        "``'pairwise'`` and ``'no_interactions'``: all sets of two features, or of one.",
    ),
    "output_weight": Param(
        None,
        (
            none,
            Check(
                "array-like",
                "a number for each output, none negative, not all zero",
                is_output_weight,
            ),
        ),
        "Importance of each output, (n_outputs,), or of each of several columns of classes, when "
        "shared trees are grown: the gain of a split counts its squared residuals that many "
        "times. Leaves, steps and scores do not depend on it: an output of weight zero is fitted "
        "too. A series may have the outputs in any order, if its index holds their names. None: "
        "all outputs count the same.",
    ),
    "class_weight": Param(
        None,
        (
            none,
            one_of("balanced"),
            kind("dict", "a dict of weights by class", dict),
            kind("list of dict", "a list of such dicts, one for each label or column", list, tuple),
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
        "``'auto'``: when trees are grown, residuals are divided by the standard deviation of "
        "their output, so that outputs of all scales count the same (regression only). None: "
        "residuals are not scaled.",
    ),
    "estimator": Param(
        None,
        (none, Check("estimator", "a regressor with fit and predict", lambda v: hasattr(v, "fit"))),
        "A scikit-learn regressor to use as weak learner instead of the built-in tree, whose "
        "parameters (``max_leaf_nodes``, ``min_samples_leaf``, …) are then ignored; set those of "
        "the regressor.",
    ),
    "thresholds": Param(
        None,
        (
            none,
            one_of("tuned"),
            real(0, 1),
            Check(
                "array-like",
                "an array of such numbers",
                lambda v: is_list(v, real(0, 1).holds, np.ndarray),
            ),
        ),
        "Probability above which a label (or the second of two classes) is predicted: one number, "
        "or one for each label. ``'tuned'``: for each label the threshold with the best F1 on the "
        "validation rows, and of equally good ones the nearest to 0.5; without early stopping, "
        "``validation_fraction`` of the rows are set apart for it. None: 0.5.",
    ),
    "calibration": Param(
        None,
        (none, name_in(CALIBRATORS)),
        "How to correct the probabilities of labels, or of two classes, with what the members of "
        "``n_folds`` predict for rows they were not trained on: ``'sigmoid'`` (Platt: two numbers "
        "per label) or ``'isotonic'`` (any curve that does not fall). Labels that fewer than 10 "
        "rows have, or lack, share one curve. It changes ``predict_proba`` and what depends on "
        "it, not ``decision_function``. None: no correction.",
    ),
    "label_hierarchy": Param(
        None,
        (
            none,
            Check(
                "dict, list of pairs",
                "a dict of labels to their parents, or a list of pairs",
                is_hierarchy,
            ),
        ),
        "Labels above others, by name or number: a dict of each label to its parent, or to a list "
        "of parents, or pairs (label, parent); no cycles. Predictions agree with it: in no row is "
        "a label more probable than one above it, or predicted without it. If a row has a label, "
        "the labels above it are added to y, with a warning if y says they are absent.",
    ),
    "early_stopping": Param(
        "auto",
        (one_of("auto", "per_output"), boolean),
        "Whether to stop when the validation score no longer improves, and keep the rounds up to "
        "the best. ``'auto'``: yes if X_val, validation_split or n_folds is given, with "
        "``refit_all``, or if there are more than 10,000 rows. ``'per_output'``: an output whose "
        "own validation loss no longer improves is frozen, and keeps the rounds up to its own "
        "best, while the others go on; of several columns of classes, each column does. Not for "
        "``loss='log_loss'`` with one column of more than two classes, which share it.",
    ),
    "validation_fraction": Param(
        0.1,
        (integer(1), Check("float", "a float in (0, 1)", is_level), none),
        "Rows set apart for early stopping if X_val is not given: a fraction or a number. None: "
        "no rows are set apart, and early stopping uses the training rows.",
    ),
    "validation_split": Param(
        "random",
        (
            one_of("random", "last"),
            Check("splitter", "a splitter, with the method split", is_splitter),
        ),
        "Which rows are set apart if X_val is not given. ``'random'``: rows drawn at random, with "
        "about the same share of each class. ``'last'``: the last rows, for rows in order of time. "
        "Or a splitter with a method ``split(X, y, groups)``, such as ``GroupShuffleSplit()``: its "
        "last split says which rows to train on and which to set apart; with ``n_folds`` all of "
        "its splits are the folds, such as the blocks of ``KFold(5)``.",
    ),
    "n_iter_no_change": Param(
        20, (integer(1),), "Rounds without improvement after which to stop early."
    ),
    "tol": Param(
        1e-7,
        (real(0),),
        "Smallest improvement that counts, in units of the scorer or, for the loss, as a share of "
        "the loss of the baseline.",
    ),
    "scoring": Param(
        "loss",
        (
            one_of("loss", None),
            Check(
                "str, callable",
                "the name of a scikit-learn scorer, or a callable (estimator, X, y)",
                is_scoring,
            ),
            Check("list", "a list of these", lambda v: is_list(v, is_scoring)),
        ),
        "Score that early stopping uses, on the validation rows: ``'loss'`` (for regression the "
        "mean over the outputs, each relative to the loss of its baseline), the name of a "
        "scikit-learn scorer, None (the method ``score``: r² or accuracy), or a callable "
        "``(estimator, X, y)`` that returns a higher number for a better model, and whose "
        "estimator predicts this X only. All scores of a list are recorded, and the first "
        "decides. ``'roc_auc'`` counts the labels for which the validation rows have both values. "
        "Ignored if ``early_stopping='auto'`` turns stopping off.",
    ),
    "n_folds": Param(
        None,
        (none, integer(2, 255)),
        "Number of folds: the rows are split into that many parts, a member trains on all parts "
        "but one and is scored on that one, and the model is the mean of the members' raw "
        "predictions. A member keeps the number of rounds that the other members found best. "
        "Labels and classes are spread over the folds, ``groups`` kept together. None: one model.",
    ),
    "refit_all": Param(
        False,
        (boolean,),
        "Whether to fit again to all rows, once early stopping or folds have found the number of "
        "rounds. Members of folds keep their trees, and their leaves are fitted to all rows; "
        "without folds a model is trained again, with proportionally more rounds as there are "
        "more rows. With ``max_time``, half of it is for finding the rounds.",
    ),
    "max_time": Param(
        None,
        (none, real(0, include_low=False)),
        "Time limit in seconds; training ends after the round that passes it. None: no limit.",
    ),
    "warm_start": Param(
        False,
        (boolean,),
        "Whether another call to fit adds rounds to the fitted model, up to ``max_iter``; for 50 "
        "more rounds set it to ``n_iter_ + 50``.",
    ),
    "checkpoint": Param(
        None,
        (
            none,
            Check("str, path", "the path of a file", is_path),
            kind("Checkpoint", "a Checkpoint", Checkpoint),
        ),
        "A file for the state of training, or a :class:`~manyboost.Checkpoint`, which also says "
        "after how many rounds it is written; with a path alone, writing takes at most a "
        "twentieth of the time. If the file exists, fit continues from it, to the same model as "
        "without interruption; a file of other data or parameters is refused (``max_iter`` may "
        "grow, ``n_jobs``, ``max_time``, ``verbose`` and ``callbacks`` may change). The file "
        "stays when training is complete: the same fit then trains nothing. The choice of "
        "``strategy='auto'`` is stored too. Built-in trees only; not part of a saved model.",
    ),
    "callbacks": Param(
        None,
        (none, Check("list of callable", "a list of callables", check_callbacks)),
        "Callables that get a :class:`~manyboost.RoundState` after each round; one that returns "
        "True ends training there. An error in a callback leaves the estimator as it was before "
        "fit. Pass callbacks of :mod:`sklearn.callback` to ``set_callbacks``.",
    ),
    "verbose": Param(
        0,
        (integer(0, 2), boolean),
        "1: show the rounds, the time left and the scores on standard error, in one line on a "
        "terminal, else in lines at growing intervals; 2: a line for each round; 0: nothing.",
    ),
    "random_state": Param(
        None,
        (
            none,
            integer(0, 2**32 - 1),
            kind("RandomState", "a numpy.random.RandomState", np.random.RandomState),
        ),
        "Seed for projections, drawn features, drawn rows and the validation split.",
    ),
    "n_jobs": Param(
        None,
        (none, Check("int", "an integer other than 0", lambda v: is_integer(v) and v != 0)),
        "Number of threads. None: OMP_NUM_THREADS if it is set, else all CPUs that the process "
        "may use; -1: all of these. The model does not depend on it.",
    ),
}

#: Parameters of the estimators for Dask alone.
CLUSTER_PARAMS: dict[str, Param] = {
    "client": Param(
        None,
        (none, Check("Client", "a distributed.Client", is_client)),
        "The client of the cluster; None: the current one. Clones share it; pickles leave it out.",
    ),
    "on_worker_loss": Param(
        "raise",
        (one_of("raise", "restart"),),
        "If a worker is lost: ``'raise'`` an error, or ``'restart'`` from the last complete round "
        "on the other workers, to the same model, if Dask can compute its partitions again.",
    ),
}
