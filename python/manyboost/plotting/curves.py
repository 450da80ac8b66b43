"""Learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyboost.plotting.axes import BLUE, FAINT, GREY, NAMED_LINES, RED, new_axes, open_frame
from manyboost.training.scoring import LOSS, as_list

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_learning_curves(model: Any, *, per_output: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the loss after each round, on training and validation rows.

    If early stopping used another score than the loss, that score is drawn instead.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        A fitted model.
    per_output : bool
        Draw the validation loss of each output, relative to that of the baseline, and their median.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "n_iter_")
    if per_output:
        return _draw_output_curves(model, ax)
    ax = new_axes(ax, 6.4, 4.0)
    rounds = np.arange(model.n_iter_ + 1)
    validation = getattr(model, "validation_score_", None)
    score, sign, label = as_list(model.scoring)[0], -1, "mean loss"
    if validation is not None and score != LOSS:
        name = score if isinstance(score, str) else getattr(score, "__name__", "score")
        sign, label = 1, name.replace("_", " ")
    else:
        ax.plot(rounds, -model.train_score_, color=BLUE, label="training")
    if validation is not None:
        ax.plot(rounds, sign * validation, color=RED, label="validation")
        _mark_best(ax, model.best_iter_)
    ax.legend(frameon=False)
    ax.margins(x=0.01)
    return open_frame(ax, "rounds", label)


def _draw_output_curves(model: Any, ax: Axes | None) -> Axes:
    curves = getattr(model, "validation_score_per_output_", None)
    if curves is None:
        raise ValueError(
            "per_output=True needs validation_score_per_output_, which this model does not have; "
            "fit with early stopping and a loss for each output, or use per_output=False."
        )
    ax = new_axes(ax, 6.4, 4.0)
    rounds, start = np.arange(len(curves)), curves[:1]
    relative = np.divide(curves, start, out=np.full_like(curves, np.nan), where=start != 0)
    names = model._explained_names(None)
    best = getattr(model, "best_iter_per_output_", None)
    few = len(names) <= NAMED_LINES
    for j, name in enumerate(names):
        style = {"label": name, "linewidth": 1.4} if few else FAINT
        line = ax.plot(rounds, relative[:, j], **style)[0]
        if best is not None:
            end = best[j]
            ax.plot(end, relative[end, j], "o", markersize=3.5, color=line.get_color())
    if not few:
        median = np.nanmedian(relative, axis=1)
        ax.plot(rounds, median, color=RED, linewidth=2, label=f"median of {len(names)} outputs")
    if best is None:
        _mark_best(ax, model.best_iter_)
    ax.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    ax.legend(frameon=False, ncols=2 if few and len(names) > 4 else 1)
    ax.margins(x=0.01)
    return open_frame(ax, "rounds", "validation loss, baseline = 1")


def _mark_best(ax: Axes, best: int) -> None:
    ax.axvline(best, color=GREY, linewidth=0.8, linestyle="--")
    ax.annotate(
        f"best: {best}",
        (best, 0.02),
        xycoords=ax.get_xaxis_transform(),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        color=GREY,
        fontsize="small",
    )
