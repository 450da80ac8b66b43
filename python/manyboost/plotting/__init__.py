"""Plots of a fitted model; each function draws on an Axes and returns it.

They need matplotlib, which the extra ``plots`` installs. Without ``ax`` they create a figure of a
suitable size. With many outputs or features, only some names are shown.
"""

from manyboost.plotting.fits import plot_calibration, plot_learning_curves, plot_predictions
from manyboost.plotting.intervals import plot_coverage, plot_fan, plot_widths
from manyboost.plotting.outputs import plot_importances, plot_output_similarity
from manyboost.plotting.trees import plot_tree

__all__ = [
    "plot_calibration",
    "plot_coverage",
    "plot_fan",
    "plot_importances",
    "plot_learning_curves",
    "plot_output_similarity",
    "plot_predictions",
    "plot_tree",
    "plot_widths",
]
