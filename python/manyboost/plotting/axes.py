"""Axes, colours and names that all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyboost.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib is imported with the first picture

BLUE, RED, GREY = "#2166ac", "#b2182b", "#666666"
NAMES = 40  # along an axis, at most


def new_axes(ax: Axes | None, width: float, height: float, layout: Any = "constrained") -> Axes:
    """Return the given Axes, or those of a new figure of this size in inches."""
    pyplot = import_extra("matplotlib.pyplot", "manyboost.plotting", "plots")
    return pyplot.subplots(figsize=(width, height), layout=layout)[1] if ax is None else ax


def open_frame(ax: Axes, xlabel: str = "", ylabel: str = "") -> Axes:
    """Label the axes, remove half of the frame and add a faint grid."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="#eeeeee", linewidth=0.7)
    ax.set_axisbelow(True)
    return ax


def draw_table(ax: Axes, values: Any, rows: list[str], columns: list[str], **style: Any) -> Any:
    """Draw a matrix as an image with names along both axes; return the image."""
    image = ax.imshow(values, interpolation="none", **style)
    _name_ticks(ax.xaxis, columns, rotation=90)
    _name_ticks(ax.yaxis, rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def _name_ticks(axis: Any, names: list[str], rotation: int = 0) -> None:
    """Put names along an axis, every second, third, ... name if there are many."""
    shown = range(0, len(names), int(np.ceil(len(names) / NAMES)))
    texts = [shortened(names[k]) for k in shown]
    axis.set_ticks(list(shown), texts, rotation=rotation, fontsize=8)


def shortened(name: str, most: int = 24) -> str:
    """Return a name, cut to so many characters, so that it does not cover its neighbours.

    Dollar signs are escaped: matplotlib would read what is between two of them as a formula.
    """
    shown = name if len(name) <= most else name[: most - 1] + "…"
    return shown.replace("$", r"\$")


def legend_name(name: str) -> str:
    """Return a name for a legend, which would leave out one that begins with an underscore."""
    # (The character before it has no width.)
    return f"\u200b{shortened(name)}" if name.startswith("_") else shortened(name)


def check_count(name: str, value: Any) -> None:
    """Refuse a number of things to draw that is not at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r} is not allowed; it must be an integer of at least 1.")


def check_some(name: str, values: Any) -> None:
    """Refuse an empty list of things to draw."""
    if not len(values):
        raise ValueError(f"{name} is empty; give at least one.")


def feature_names(model: Any) -> list[str]:
    """Return the names of the features, or x0, x1, ..."""
    numbered = (f"x{k}" for k in range(model.n_features_in_))
    return list(map(str, getattr(model, "feature_names_in_", numbered)))


def chosen_outputs(model: Any, outputs: Any) -> list[int] | None:
    """Return the numbers of the outputs that the user named; None: all."""
    return None if outputs is None else list(model._check_request(outputs, np.float64)[0])
