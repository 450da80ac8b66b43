"""How far off a model may be: coverage and widths of its intervals, and a fan of forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from manyboost.arrays import F64
from manyboost.data.targets import check_output_names
from manyboost.plotting.axes import (
    BLUE,
    GREY,
    RED,
    Axes,
    check_some,
    chosen_outputs,
    legend_name,
    new_axes,
    open_frame,
    shortened,
)
from manyboost.plotting.fits import FAINT, NAMED_LINES, check_shape, columns_of

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def plot_coverage(
    model: Any,
    X: Any,
    y: Any,
    *,
    coverages: Sequence[float] = COVERAGES,
    method: str = "split",
    outputs: Any = None,
    offset: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often intervals contain the truth against how often they should.

    There is a line for each output, one for their mean, and one for joint regions: the share of
    rows that have all outputs inside. On the diagonal, the coverage is that asked for.

    Parameters
    ----------
    model : ManyBoostRegressor
        A model that was fitted with ``n_folds``.
    X, y : array-like
        Rows that are not training data; missing targets are left out.
    coverages : sequence of float
        The values of ``coverage`` for :meth:`~manyboost.ManyBoostRegressor.predict_interval`.
    method : str
        Its ``method``.
    outputs : list of str or int, optional
        Names or numbers of the outputs to show; None: all.
    offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Offsets of the raw predictions, if the model was fitted with offsets.
    ax : Axes, optional
        Where to draw.
    """
    _need_intervals("plot_coverage", model)
    check_some("coverages", coverages)
    places = chosen_outputs(model, outputs)
    check_output_names(y, model._known_names(), "y")
    true = columns_of(y)
    true = true if places is None else true[:, places]
    missing = np.isnan(true)

    def held(coverage: float, joint: bool) -> F64:
        """Share of the observed cells of each output inside, or of rows with all cells inside."""
        ends = _ends(model, X, coverage, method, outputs, offset, joint=joint)
        check_shape(true, ends[..., 0])
        inside = ((ends[..., 0] <= true) & (ends[..., 1] >= true)) | missing
        there = ~missing.all(axis=1)
        if joint:
            return np.array([inside[there].all(axis=1).mean()])
        with np.errstate(invalid="ignore"):  # an output without any target has no line
            return np.asarray((inside & ~missing).sum(axis=0) / (~missing).sum(axis=0))

    lines = np.array([held(each, False) for each in coverages])
    ax = new_axes(ax, 5.2, 4.8)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    few = lines.shape[1] <= NAMED_LINES
    for name, line in zip(_names(model, places), lines.T, strict=True):
        named: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.2}
        ax.plot(coverages, line, **(named | {"label": legend_name(name)} if few else FAINT))
    if lines.shape[1] > 1:
        colour = "black" if few else RED
        label = f"mean of {lines.shape[1]} outputs"
        ax.plot(coverages, np.nanmean(lines, axis=1), color=colour, linewidth=2, label=label)
        joint = [held(each, True)[0] for each in coverages]
        style: dict[str, Any] = {"color": GREY, "linewidth": 1.6, "linestyle": "--"}
        ax.plot(coverages, joint, label="all at once, joint regions", **style)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, loc="upper left", fontsize="small")
    return open_frame(ax, "coverage asked for", "share of the truths inside")


def plot_widths(
    model: Any,
    X: Any,
    *,
    coverage: float = 0.9,
    methods: Sequence[str] = ("split", "normalised"),
    outputs: Any = None,
    offset: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how wide intervals are, relative to intervals that do not use the features.

    The interval of the same coverage between two quantiles of the training targets has the width 1.
    Dots are medians over the rows, lines reach from the 10 % quantile to the 90 % quantile.

    Parameters
    ----------
    model : ManyBoostRegressor
        A model that was fitted with ``n_folds``.
    X : array-like
        Rows to predict.
    coverage : float
        Coverage of the intervals.
    methods : sequence of str
        Methods of :meth:`~manyboost.ManyBoostRegressor.predict_interval` to compare.
    outputs : list of str or int, optional
        Names or numbers of the outputs to show; None: all.
    offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Offsets of the raw predictions, if the model was fitted with offsets.
    ax : Axes, optional
        Where to draw.
    """
    _need_intervals("plot_widths", model)
    check_some("methods", methods)
    places = chosen_outputs(model, outputs)
    calibration = model._calibrated("plot_widths", "coverage", coverage)
    known = model._known_targets(calibration, coverage)[0]
    known = known if places is None else known[:, places]
    tails = [(1 - coverage) / 2, (1 + coverage) / 2]
    alone = np.diff(np.nanquantile(known, tails, axis=0), axis=0)
    widths = [np.ptp(_ends(model, X, coverage, each, outputs, offset), axis=2) for each in methods]
    relative = [each / np.where(alone > 0, alone, np.nan) for each in widths]
    order = np.argsort(-np.median(relative[-1], axis=0), kind="stable")
    ax = new_axes(ax, 6.0, 1.3 + 0.26 * min(len(order), 45))
    rows = np.arange(len(order))
    shift = 0.5 / len(methods)
    for k, (method, each) in enumerate(zip(methods, relative, strict=True)):
        low, middle, high = np.nanquantile(each[:, order], [0.1, 0.5, 0.9], axis=0)
        place = rows + shift * (k - (len(methods) - 1) / 2)
        colour = (GREY, BLUE, RED)[k % 3]
        ax.hlines(place, low, high, color=colour, linewidth=1.6, alpha=0.5)
        ax.plot(middle, place, "o", markersize=4, color=colour, label=method)
    ax.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    names = _names(model, places)
    shown = [shortened(names[j]) for j in order]
    every = int(np.ceil(len(shown) / 45))
    ax.set_yticks(rows[::every], shown[::every], fontsize=8)
    ax.set(xlim=(0, None), ylim=(-0.7, len(order) - 0.3))
    ax.legend(frameon=False, loc="best", fontsize="small")
    label = f"width of intervals of {100 * coverage:g} %, constant predictions = 1"
    return open_frame(ax, label)


def plot_fan(
    model: Any,
    X: Any,
    *,
    row: int = 0,
    y: Any = None,
    history: Any = None,
    coverages: Sequence[float] = (0.5, 0.8, 0.95),
    joint: bool = False,
    method: str = "split",
    offset: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the intervals of all outputs of a row side by side: a fan, if they are horizons.

    Parameters
    ----------
    model : ManyBoostRegressor
        A model that was fitted with ``n_folds``, whose outputs are steps ahead, in their order.
    X : array-like
        Rows.
    row : int
        The row to draw.
    y : array-like of shape (n_rows, n_outputs), optional
        The true values, drawn as dots.
    history : array-like of shape (n_steps,), optional
        The values before the forecast of this row; the last one is drawn at 0.
    coverages : sequence of float
        Coverages of the bands.
    joint, method
        As in :meth:`~manyboost.ManyBoostRegressor.predict_interval`.
    offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Offsets of the raw predictions, if the model was fitted with offsets.
    ax : Axes, optional
        Where to draw.
    """
    _need_intervals("plot_fan", model)
    check_some("coverages", coverages)
    if model._is_single():
        raise ValueError("plot_fan needs several outputs, steps ahead; fit a two-dimensional y.")
    one = _safe_indexing(X, [row])
    own = None if offset is None else _safe_indexing(offset, [row])
    bands = {each: _ends(model, one, each, method, None, own, joint=joint)[0] for each in coverages}
    predicted = model._values(one, own)[0]
    if model._n_levels > 1:  # the level in the middle
        predicted = predicted[:, np.abs(np.array(model._quantiles) - 0.5).argmin()]
    ahead = np.arange(1, len(predicted) + 1)
    ax = new_axes(ax, 6.4, 4.0)
    together = ", all at once" if joint else ""
    blue = np.array([int(BLUE[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    for k, each in enumerate(sorted(coverages, reverse=True)):
        # The narrower bands lie on the wider ones, and are darker.
        tint = 1 - (0.18 + 0.42 * k / max(1, len(coverages) - 1)) * (1 - blue)
        label = f"{100 * each:g} %{together}"
        ax.fill_between(ahead, *bands[each].T, color=tuple(tint), linewidth=0, label=label)
    ax.plot(ahead, predicted, color=BLUE, linewidth=1.6, label="prediction")
    if history is not None:
        seen = np.asarray(history, dtype=np.float64)
        ax.plot(np.arange(1 - len(seen), 1), seen, color=GREY, linewidth=1.2, label="what was seen")
        ax.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    if y is not None:
        check_output_names(y, model._known_names(), "y")
        came = np.asarray(y, dtype=np.float64)[row]
        ax.plot(ahead, came, ".", markersize=5, color=RED, label="what came")
    ax.legend(frameon=False, fontsize="small", ncols=2)
    ax.margins(x=0.01)
    ax.locator_params(axis="x", integer=True)
    return open_frame(ax, "steps ahead")


def _need_intervals(what: str, model: Any) -> None:
    check_is_fitted(model, "n_iter_")
    if hasattr(model, "classes_"):
        raise ValueError(f"{what} needs a regressor; use plot_calibration for classifiers.")


def _names(model: Any, places: list[int] | None) -> list[str]:
    """Return the names of all outputs of y, or of some."""
    n_outputs = model.n_outputs_ // model._n_levels
    names = model._known_names() or [f"y{j}" for j in range(n_outputs)]
    return names if places is None else [names[j] for j in places]


def _ends(
    model: Any,
    X: Any,
    coverage: float,
    method: str,
    outputs: Any,
    offset: Any,
    *,
    joint: bool = False,
) -> F64:
    """Return intervals (n_rows, n_outputs, 2), also for a one-dimensional y."""
    how = {"joint": joint, "method": method, "outputs": outputs, "offset": offset}
    ends = model.predict_interval(X, coverage, **how)
    return np.asarray(ends if ends.ndim == 3 else ends[:, None])
