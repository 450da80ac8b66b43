"""How good a fit is: learning curves, predictions against the truth, calibration."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyboost.arrays import F64
from manyboost.data.cells import missing_cells
from manyboost.data.labels import read_labels
from manyboost.data.targets import check_output_names
from manyboost.plotting.axes import (
    BLUE,
    GREY,
    RED,
    Axes,
    check_count,
    chosen_outputs,
    legend_name,
    new_axes,
    open_frame,
    shortened,
)
from manyboost.training.scoring import LOSS

NAMED_LINES = 8  # up to so many have their own colour and name, others are faint
FAINT: dict[str, Any] = {"color": BLUE, "alpha": 0.25, "linewidth": 0.7}


def plot_learning_curves(model: Any, *, per_output: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the loss after each round, on training and validation rows.

    If early stopping used a score other than the loss, that score is drawn instead.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        A fitted model.
    per_output : bool
        Draw the validation loss of each output, relative to that of the baseline, and their median.
    ax : Axes, optional
        Where to draw.
    """
    check_is_fitted(model, "n_iter_")
    if per_output:
        return _draw_output_curves(model, ax)
    ax = new_axes(ax, 6.4, 4.0)
    rounds = np.arange(model.n_iter_ + 1)
    validation = getattr(model, "validation_score_", None)
    sign, label = -1, "mean loss"
    # (The parameter may have been changed after fit.)
    if validation is not None and model._trained_with["scoring"][0] != LOSS:
        sign, label = 1, next(iter(model._progress.validation_scores)).replace("_", " ")
    else:
        ax.plot(rounds, -model.train_score_, color=BLUE, label="training")
    if validation is not None:
        ax.plot(rounds, sign * validation, color=RED, label="validation")
        _mark_best(ax, model.best_iter_)
    ax.legend(frameon=False)
    return _along_rounds(ax, label)


def _draw_output_curves(model: Any, ax: Axes | None) -> Axes:
    curves = getattr(model, "validation_score_per_output_", None)
    if curves is None:
        problem = "per_output=True needs validation_score_per_output_, which this model lacks"
        remedy = "fit with early stopping and a loss for each output, or use per_output=False."
        raise ValueError(f"{problem}; {remedy}")
    ax = new_axes(ax, 6.4, 4.0)
    rounds, start = np.arange(len(curves)), curves[:1]
    relative = np.divide(curves, start, out=np.full_like(curves, np.nan), where=start != 0)
    names = model._explained_names(None)
    best = getattr(model, "best_iter_per_output_", None)
    few = len(names) <= NAMED_LINES
    for j, name in enumerate(names):
        style = {"label": legend_name(name), "linewidth": 1.4} if few else FAINT
        line = ax.plot(rounds, relative[:, j], **style)[0]
        if best is not None:
            ax.plot(best[j], relative[best[j], j], "o", markersize=3.5, color=line.get_color())
    if not few:
        median = np.nanmedian(relative, axis=1)
        ax.plot(rounds, median, color=RED, linewidth=2, label=f"median of {len(names)} outputs")
    if best is None:
        _mark_best(ax, model.best_iter_)
    ax.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    ax.legend(frameon=False, ncols=2 if few and len(names) > 4 else 1)
    return _along_rounds(ax, "validation loss, baseline = 1")


def _along_rounds(ax: Axes, label: str) -> Axes:
    ax.margins(x=0.01)
    ax.locator_params(axis="x", integer=True)
    return open_frame(ax, "rounds", label)


def _mark_best(ax: Axes, best: int) -> None:
    ax.axvline(best, color=GREY, linewidth=0.8, linestyle="--")
    style: dict[str, Any] = {"ha": "right", "color": GREY, "fontsize": "small"}
    place = ax.get_xaxis_transform()
    ax.annotate(f"best: {best}", (best, 0.02), (-4, 0), place, "offset points", **style)


def plot_predictions(
    model: Any,
    X: Any,
    y: Any,
    *,
    outputs: Any = None,
    max_outputs: int = 9,
    offset: Any = None,
    ax: Axes | None = None,
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
        Maximum number of panels; if there are more outputs, evenly chosen from best to worst.
    offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Offsets of the raw predictions, if the model was fitted with offsets.
    ax : Axes, optional
        Where to draw; the panels are its ``child_axes``.
    """
    check_is_fitted(model, "n_iter_")
    if hasattr(model, "classes_") or model._n_levels > 1:
        remedy = "use plot_calibration for classifiers, and leave out lists of quantiles."
        raise ValueError(f"plot_predictions needs one predicted value for each target; {remedy}")
    check_count("max_outputs", max_outputs)
    places = chosen_outputs(model, outputs)
    check_output_names(y, model._known_names(), "y")
    predicted, true = columns_of(model._values(X, offset, places)), columns_of(y)
    true = true if places is None else true[:, places]
    check_shape(true, predicted)
    known = [~np.isnan(column) for column in true.T]
    pairs = [(true[rows, j], predicted[rows, j]) for j, rows in enumerate(known)]
    scores = np.array([_r2(*pair) for pair in pairs])
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
        _draw_panel(panel, *pairs[j])
        panel.set_title(f"{shortened(names[j], 16)}: r² = {scores[j]:.2f}", fontsize=9, pad=3)
    if len(order) > len(chosen):
        ax.set_title(f"{len(chosen)} of {len(order)} outputs, from best to worst", pad=24)
    ax.set_xlabel("true", labelpad=18)
    ax.set_ylabel("predicted", labelpad=30)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def columns_of(values: Any) -> F64:
    """Return values as columns (n_rows, n_outputs)."""
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def check_shape(true: F64, predicted: F64) -> None:
    """Refuse targets of another shape than the predictions."""
    if true.shape != predicted.shape:
        problem = f"y has shape {true.shape} but predictions have {predicted.shape}"
        raise ValueError(f"{problem}; pass the targets of the rows of X.")


def _draw_panel(ax: Axes, true: F64, predicted: F64) -> None:
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
    open_frame(ax)


def _r2(true: F64, predicted: F64) -> float:
    total = ((true - true.mean()) ** 2).sum() if len(true) else 0.0
    return float(1 - ((true - predicted) ** 2).sum() / total) if total > 0 else float("nan")


def plot_calibration(
    model: Any,
    X: Any,
    y: Any,
    *,
    outputs: Any = None,
    n_bins: int = 10,
    offset: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often labels are present against their predicted probabilities.

    There is a line for each label, or for each class against the others, and one for all. The
    points of a line are means of equally many rows. On the diagonal, probabilities are calibrated.

    Parameters
    ----------
    model : ManyBoostClassifier
        A fitted model.
    X, y : array-like
        Rows, preferably not those of the training data; missing labels are left out.
    outputs : list of str or int, optional
        Names or numbers of the labels or classes to show; None: all.
    n_bins : int
        Maximum number of points of a line.
    offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Offsets of the raw predictions, if the model was fitted with offsets.
    ax : Axes, optional
        Where to draw.
    """
    check_is_fitted(model, "n_iter_")
    if not hasattr(model, "classes_"):
        raise ValueError("plot_calibration needs a classifier; use plot_predictions.")
    model._refuse_columns("plot_calibration", "predict_proba and a plot for each column")
    check_count("n_bins", n_bins)
    places = chosen_outputs(model, outputs)
    probabilities = model._predicted(X, model._probabilities, offset=offset)
    true = _indicator(model, y, probabilities)
    check_shape(true, probabilities)
    lines = {1: str(model.classes_[1])}
    if not model._is_single():
        names = model._explained_names(None)
        lines = {j: names[j] for j in (range(len(names)) if places is None else places)}
    ax = new_axes(ax, 5.2, 4.8)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    few = len(lines) <= NAMED_LINES
    farthest = 0.0
    for j, name in lines.items():
        named = {"label": legend_name(name), "marker": "o", "markersize": 3, "linewidth": 1.2}
        points = calibration_points(probabilities[:, j], true[:, j], n_bins)
        ax.plot(*points, **(named if few else FAINT))
        farthest = max(farthest, *np.max(points, axis=1, initial=0.0))
    if len(lines) > 1:
        pooled, present = (each[:, list(lines)].ravel() for each in (probabilities, true))
        points = calibration_points(pooled, present, 2 * n_bins)
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


def _indicator(model: Any, y: Any, probabilities: F64) -> F64:
    """Return labels or classes as an indicator (n_rows, n_columns), as probabilities are."""
    check_output_names(y, model._classes.names, "y")
    labels = read_labels(y, probabilities, classes=model._classes)[1]
    encoded = model._classes.encode(labels, softmax=False)
    encoded = encoded if model._hierarchy is None else model._hierarchy.closed(encoded)
    true = np.where(missing_cells(encoded), np.nan, encoded.astype(np.float64))
    return np.hstack([1 - true, true]) if model._is_single() else true
