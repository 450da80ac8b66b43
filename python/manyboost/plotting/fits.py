"""Predictions against the truth."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from manyboost.data.labels import indicator, read_label_sets
from manyboost.plotting.axes import (
    BLUE,
    FAINT,
    GREY,
    NAMED_LINES,
    RED,
    chosen_outputs,
    new_axes,
    open_frame,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

F64 = NDArray[np.float64]


def plot_predictions(
    model: Any, X: Any, y: Any, *, outputs: Any = None, max_outputs: int = 9, ax: Axes | None = None
) -> Axes:
    """Draw predicted against true values, a panel for each output, from the best r² to the worst.

    Parameters
    ----------
    model : ManyBoostRegressor
        A fitted model.
    X, y : array-like
        Rows, preferably not those of the training data; missing targets are left out.
    outputs : list of str or int, optional
        Names or numbers of the outputs to show; None: all.
    max_outputs : int
        How many panels at most; if there are more outputs, some from the best to the worst.
    ax : Axes, optional
        Where to draw; the panels are its ``child_axes``.

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "n_iter_")
    if hasattr(model, "classes_") or model._n_levels > 1:
        raise ValueError(
            "plot_predictions needs one predicted value for each target; use plot_calibration for "
            "classifiers, and leave out lists of quantiles."
        )
    places = chosen_outputs(model, outputs)
    predicted = _columns(model._values(X, None, places))
    true = _columns(y)
    true = true if places is None else true[:, places]
    _check_shape(true, predicted, "predictions", "targets")
    scores = np.array([_r2(true[:, j], predicted[:, j]) for j in range(true.shape[1])])
    order = np.argsort(-scores, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(max_outputs, len(order))).round().astype(int)]
    n_columns = int(np.ceil(np.sqrt(len(chosen))))
    n_rows = int(np.ceil(len(chosen) / n_columns))
    ax = new_axes(ax, 0.8 + 2.3 * n_columns, 0.8 + 2.5 * n_rows)
    names = model._explained_names(places)
    width, height = 1 / (1.2 * n_columns - 0.2), 1 / (1.34 * n_rows - 0.34)
    for k, j in enumerate(chosen):
        row, column = divmod(k, n_columns)
        corner = 1.2 * column * width, 1 - height - 1.34 * row * height
        panel = ax.inset_axes((*corner, width, height))
        _draw_panel(panel, true[:, j], predicted[:, j], f"{names[j]}: r² = {scores[j]:.2f}")
    if len(order) > len(chosen):
        ax.set_title(f"{len(chosen)} of {len(order)} outputs, from best to worst", pad=24)
    ax.set_xlabel("true", labelpad=18)
    ax.set_ylabel("predicted", labelpad=30)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def _columns(values: Any) -> F64:
    """Return values as columns (n_rows, n_outputs)."""
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _check_shape(true: F64, predicted: F64, predictions: str, targets: str) -> None:
    if true.shape != predicted.shape:
        raise ValueError(
            f"y has shape {true.shape} but the {predictions} have {predicted.shape}; pass the "
            f"{targets} of the rows of X."
        )


def _draw_panel(ax: Axes, true: F64, predicted: F64, title: str) -> None:
    known = ~np.isnan(true)
    true, predicted = true[known], predicted[known]
    both = np.concatenate([true, predicted])
    low, high = (both.min(), both.max()) if len(both) else (0.0, 1.0)
    margin = 0.04 * (high - low) or 1.0
    limits = low - margin, high + margin
    ax.plot(limits, limits, color=GREY, linewidth=0.8, zorder=1)
    n_points = max(1, len(true))
    size, alpha = float(np.clip(2000 / n_points, 2, 14)), float(np.clip(300 / n_points, 0.15, 0.7))
    ax.scatter(true, predicted, s=size, alpha=alpha, color=BLUE, linewidths=0, zorder=2)
    ax.set(xlim=limits, ylim=limits)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=7)
    ax.set_title(title, fontsize=9, pad=3)
    open_frame(ax)


def _r2(true: F64, predicted: F64) -> float:
    known = ~np.isnan(true)
    total = ((true[known] - true[known].mean()) ** 2).sum() if known.any() else 0.0
    left = ((true[known] - predicted[known]) ** 2).sum()
    return float(1 - left / total) if total > 0 else float("nan")


def plot_calibration(
    model: Any, X: Any, y: Any, *, outputs: Any = None, n_bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw how often labels are present against their predicted probabilities.

    There is a line for each label, or for each class against the others, and one for all. The
    points of a line are means of equally many rows. On the diagonal, probabilities are right.

    Parameters
    ----------
    model : ManyBoostClassifier
        A fitted model.
    X, y : array-like
        Rows, preferably not those of the training data; missing labels are left out.
    outputs : list of str or int, optional
        Names or numbers of the labels or classes to show; None: all.
    n_bins : int
        Points of a line at most.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "n_iter_")
    if not hasattr(model, "classes_"):
        raise ValueError("plot_calibration needs a classifier; use plot_predictions.")
    places = chosen_outputs(model, outputs)
    probabilities = model._predicted(X, model._probabilities)
    true = _indicator(model, y)
    _check_shape(true, probabilities, "probabilities", "labels")
    if model._is_single():
        lines = {1: str(model.classes_[1])}
    else:
        lines = dict(enumerate(model._explained_names(None)))
        lines = lines if places is None else {j: lines[j] for j in places}
    ax = new_axes(ax, 5.2, 4.8)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    few = len(lines) <= NAMED_LINES
    farthest = 0.0
    for j, name in lines.items():
        named = {"label": name, "marker": "o", "markersize": 3, "linewidth": 1.2}
        points = calibration_points(probabilities[:, j], true[:, j], n_bins)
        ax.plot(*points, **(named if few else FAINT))
        farthest = max(farthest, *np.max(points, axis=1, initial=0.0))
    if len(lines) > 1:
        columns = list(lines)
        everything = probabilities[:, columns].ravel(), true[:, columns].ravel()
        points = calibration_points(*everything, 2 * n_bins)
        label = f"all {len(lines)} {'labels' if model._classes.kind == 'multilabel' else 'classes'}"
        ax.plot(*points, color=RED if not few else "black", linewidth=2, label=label)
    # The points of rare labels lie in a corner of the square, which is enlarged.
    end = 1.01 if farthest > 0.5 else max(1.05 * farthest, 0.01)
    ax.set(xlim=(-0.01 * end, end), ylim=(-0.01 * end, end), aspect="equal")
    ax.legend(frameon=False, loc="upper left", fontsize="small")
    return open_frame(ax, "predicted probability", "observed frequency")


def calibration_points(probabilities: F64, true: F64, n_bins: int) -> tuple[F64, F64]:
    """Return mean probability and frequency of labels in groups of neighbouring probabilities.

    Groups have equally many rows, except that equal probabilities stay together. Missing labels
    (NaN) are left out.
    """
    known = ~np.isnan(true)
    order = np.argsort(probabilities[known], kind="stable")
    probabilities, true = probabilities[known][order], true[known][order]
    cuts = np.linspace(0, len(order), n_bins + 1).round().astype(int)[1:-1]
    # A cut between equal probabilities moves behind them.
    cuts = np.searchsorted(probabilities, probabilities[cuts[cuts < len(order)] - 1], side="right")
    groups = list(pairwise(np.unique([0, *cuts, len(order)])))
    predicted = np.array([probabilities[a:b].mean() for a, b in groups])
    observed = np.array([true[a:b].mean() for a, b in groups])
    return predicted, observed


def _indicator(model: Any, y: Any) -> F64:
    """Return labels or classes as an indicator (n_rows, n_columns), as probabilities are."""
    if model._classes.kind != "multilabel":
        return np.asarray(np.asarray(y).reshape(-1, 1) == model.classes_, dtype=np.float64)
    sets = read_label_sets(y)
    if sets is not None:
        return np.asarray(indicator(sets, model.classes_), dtype=np.float64)
    return np.asarray(y.toarray() if sparse.issparse(y) else y, dtype=np.float64)
