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
    What the model was trained with: the parameters, or the winner of ``strategy="auto"``.
search_results_ : dict of ndarray
    With ``strategy="auto"``, what was tried, the winner first, then the others from the best on:
    ``"strategy"``, ``"projection"``, the number of ``"heats"``, ``"n_rounds"`` up to its best,
    ``"validation_score"``, ``"round_cost"`` in units of the cheapest, and the ``"verdict"``.
baseline_ : ndarray of shape (n_outputs_,)
    Raw prediction before the first round.
best_iter_ : int
    The round with the best validation score, at which the model ends; with
    ``early_stopping="per_output"`` the largest of ``best_iter_per_output_``.
best_iter_per_output_ : ndarray of shape (n_outputs_,)
    The best round of each output, with ``early_stopping="per_output"`` and without ``n_folds``.
best_iter_per_fold_ : ndarray of shape (n_folds,)
    The rounds of each member, with ``n_folds``.
step_sizes_ : ndarray of shape (n_iter_, n_outputs_)
    Steps ρ of the rounds, if steps are found by line search or ``strategy="project"``; not with
    ``n_folds``.
train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
    Negative mean loss after each round, entry 0 that of the baseline. If ``scoring`` is not the
    loss, ``validation_score_`` is the score that decides on early stopping.
validation_scores_ : dict of ndarray of shape (n_iter_ + 1,)
    All scores by name, if ``scoring`` is a list.
validation_score_per_output_ : ndarray of shape (n_iter_ + 1, n_outputs_)
    Negative mean loss of each output on the validation rows, for classes that of their column; not
    for the log loss of one column of more than two classes.
feature_importances_ : ndarray of shape (n_features_in_,)
    Share of each feature in the gain.
output_importances_ : ndarray of shape (n_outputs_, n_features_in_)
    Share of each feature in the gain of each output.
split_counts_ : ndarray of shape (n_features_in_,)
    Number of splits on each feature.
expected_value_ : float or ndarray of shape (n_outputs_,)
    Raw predictions if no feature is known; with the Shapley values they add up to those of a row.
"""

_FIT = """\
X_val, Y_val (or y_val), sample_weight_val : array-like, optional
    Rows for early stopping, instead of some rows of X.
offset, offset_val : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
    Added to the raw predictions: the logarithm of an exposure, or the raw predictions of another
    model. A model that was fitted with an offset needs one to predict.
groups : array-like of shape (n_rows,), optional
    Groups of rows that ``n_folds`` keeps together: rows of one group are in one fold. They are also
    passed to a splitter that is given as ``validation_split``.

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
    Names or numbers of the outputs (labels, classes) to compute, in the order of the result.
    Numbers count from 0 in the order of the outputs (``classes_``), also where labels are numbers
    themselves. None: all.
"""

_DTYPE = """\
dtype : float64 or float32
    Type of the result. With float32, no array of all predictions is made in double precision.

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
