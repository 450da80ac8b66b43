"""Texts that the docstrings of both estimators share."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from manyboost import params

_Class = TypeVar("_Class", bound=type)

_ATTRIBUTES = """\
n_iter_ : int
    Rounds in the model.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X had them.
is_categorical_ : ndarray of shape (n_features_in_,) or None
    Which features hold categories; None: none of them.
strategy_, projection_ : str
    What the model was trained with; the given ones, or the winner of ``strategy="auto"``.
search_results_ : dict of ndarray
    With ``strategy="auto"``, what was tried, the winner first, then the best: ``"strategy"``,
    ``"projection"``, ``"heats"`` it ran in, ``"n_rounds"`` up to its best,
    ``"validation_score"``, ``"round_cost"`` in units of the cheapest, and the ``"verdict"``.
baseline_ : ndarray of shape (n_outputs_,)
    Raw prediction before the first round.
best_iter_ : int
    The round with the best validation score (the last of the outputs'); the model ends there.
best_iter_per_output_ : ndarray of shape (n_outputs_,)
    The best round of each output, with ``early_stopping="per_output"``.
step_sizes_ : ndarray of shape (n_iter_, n_outputs_)
    Steps ρ, where the strategy has them.
train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
    Negative mean loss after each round, entry 0 that of the baseline; the latter is the score
    that decides on early stopping, if ``scoring`` says so.
validation_scores_ : dict of ndarray of shape (n_iter_ + 1,)
    All scores by name, if ``scoring`` is a list.
validation_score_per_output_ : ndarray of shape (n_iter_ + 1, n_outputs_)
    Negative mean loss of each output on the validation rows, for classes that of their column; not
    for one column of more than two classes.
feature_importances_ : ndarray of shape (n_features_in_,)
    Share of each feature in the gain.
split_counts_ : ndarray of shape (n_features_in_,)
    Number of splits on each feature.
output_importances_ : ndarray of shape (n_outputs_, n_features_in_)
    The same for each output.
expected_value_ : float or ndarray of shape (n_outputs_,)
    Raw predictions where no feature is known, which Shapley values are added to.
"""

_FIT = """\
X_val, Y_val (or y_val), sample_weight_val : array-like, optional
    Rows for early stopping, instead of some of X.
offset, offset_val : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
    Added to the raw predictions: the logarithm of an exposure, or what another model predicts. A
    model that was fitted with an offset needs one to predict.
groups : array-like of shape (n_rows,), optional
    Groups of rows that ``n_folds`` keeps together: rows of one group are in one fold. A splitter as
    ``validation_split`` is given them.

Returns
-------
self
"""

_REQUEST = """\
X : array-like of shape (n_rows, n_features)
    Features.
offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
    Offsets of the raw predictions, if the model was fitted with offsets.
outputs : list of str or int, optional
    Names or numbers of the outputs (labels, classes) to compute, in the order of the result; None:
    all.
"""

_DTYPE = """\
dtype : float64 or float32
    Type of the result. With float32, predictions of all rows never exist in double precision.

Returns
-------
ndarray, or a frame (see :meth:`set_output`)
"""


def documented(cls: _Class) -> _Class:
    """Fill the placeholders in the docstrings of an estimator and its methods."""
    texts = {"attributes": _ATTRIBUTES, "fit": _FIT, "request": _REQUEST, "dtype": _DTYPE}
    texts["parameters"] = params.described(cls)
    for target in (cls, *vars(cls).values()):
        doc = getattr(target, "__doc__", None)
        if doc is None or not (target is cls or callable(target)):
            continue
        for name, text in texts.items():
            indent = "    " if target is cls else "        "
            doc = doc.replace(f"{{{name}}}", textwrap.indent(text, indent).strip())
        target.__doc__ = doc
    return cls
