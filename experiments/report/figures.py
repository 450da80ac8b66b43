"""Figures as SVG, by matplotlib and scikit-posthocs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import scikit_posthocs
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter

from experiments.report.content import CriticalDifference, Figure, Lines

_COLOURS = ("#0072b2", "#d55e00", "#00856a", "#b0508f", "#94700a", "#3d8fc9", "#59636c")
_DASHES = ("-", "--", ":")
#: The end of the label of a line that has the colour of another, dashed.
_NEWTON = ", newton"
_STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#5d6770",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.color": "#e4e7e9",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "manyboost",  # the same figure gives the same bytes
    "text.parse_math": False,
}


def draw(figure: Figure, colours: Mapping[str, int]) -> str:
    """Return a figure as an SVG document.

    Parameters
    ----------
    figure : Lines or CriticalDifference
    colours : mapping
        The number of the colour of every line.
    """
    with matplotlib.rc_context(_STYLE):
        if isinstance(figure, Lines):
            canvas = Canvas(figsize=(6.4, 4.0), layout="constrained")
            _draw_lines(figure, canvas, colours)
        else:
            canvas = Canvas(figsize=(9.0, 0.9 + 0.24 * len(figure.ranks)), layout="constrained")
            _draw_ranks(figure, canvas.subplots())
        file = io.StringIO()
        metadata = {"Date": None, "Creator": None, "Title": figure.title}
        canvas.savefig(file, format="svg", metadata=metadata, transparent=True)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _draw_lines(figure: Lines, canvas: Canvas, colours: Mapping[str, int]) -> None:
    axes: Axes = canvas.subplots()
    for series in figure.series:
        method = series.label.removesuffix(_NEWTON)
        number = colours.get(method, colours[series.label])
        colour = _COLOURS[number % len(_COLOURS)]
        # Colour alone distinguishes only a few lines.
        dashes = _DASHES[min(number // 4, len(_DASHES) - 1)]
        if series.label != method:
            dashes = "--"
        axes.plot(series.x, series.y, dashes, color=colour, label=series.label, linewidth=1.8)
        if series.low is not None and series.high is not None:
            axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.16, lw=0)
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, xscale="log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axes.tick_params(color="#5d6770")
    n_columns = 1 if len(figure.series) < 3 else 2
    canvas.legend(loc="outside upper left", ncols=n_columns, fontsize=9)


def _draw_ranks(figure: CriticalDifference, axes: Axes) -> None:
    ranks = pd.Series(figure.ranks)
    values = ranks.to_numpy()
    apart = np.abs(values[:, None] - values) >= figure.distance
    p_values = pd.DataFrame(np.where(apart, 0.0, 1.0), ranks.index, ranks.index)
    drawn = scikit_posthocs.critical_difference_diagram(
        ranks,
        p_values,
        ax=axes,
        label_fmt_left="{label} {rank:.2f}\u00a0",
        label_fmt_right="\u00a0{rank:.2f} {label}",
        color_palette=["#1d2329"] * len(ranks),
        crossbar_props={"color": _COLOURS[0], "linewidth": 4},
    )
    # Their points come in the order of a set, which is another in each process.
    for (bar,) in drawn["crossbars"]:
        bar.set_xdata(sorted(bar.get_xdata()))
    axes.grid(visible=False)
    axes.spines["top"].set_visible(True)
