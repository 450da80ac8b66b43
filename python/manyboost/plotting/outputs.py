"""Tables of outputs: the features they use, and how similar they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

from manyboost.arrays import F64
from manyboost.plotting.axes import (
    GREY,
    Axes,
    check_count,
    draw_table,
    feature_names,
    new_axes,
    shortened,
)


def plot_importances(
    model: Any, *, max_features: int = 30, max_outputs: int = 60, ax: Axes | None = None
) -> Axes:
    """Draw the share of each feature in the gain of each output.

    Features are in the order of their mean share. Outputs with similar shares are neighbours.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        A fitted model.
    max_features, max_outputs : int
        Maximum numbers to show: the most important features, and the outputs with the least even
        shares.
    ax : Axes, optional
        Where to draw.
    """
    check_count("max_features", max_features)
    check_count("max_outputs", max_outputs)
    shares = model.output_importances_
    features = np.argsort(-shares.mean(axis=0), kind="stable")[:max_features]
    outputs = np.argsort(-(shares**2).sum(axis=1), kind="stable")[:max_outputs]
    if len(outputs) > 2:
        outputs = outputs[hierarchy.leaves_list(_links(pdist(shares[outputs])))]
    columns, rows = feature_names(model), model._explained_names(None)
    names = [rows[j] for j in outputs], [columns[k] for k in features]
    # A name takes about 0.07 inches for each character.
    beside, below = (0.07 * max(len(shortened(name)) for name in each) for each in names)
    height = max(2.4, 1.4 + below + 0.2 * min(len(outputs), 45))
    ax = new_axes(ax, 2.0 + beside + 0.28 * len(features), height)
    table = shares[np.ix_(outputs, features)]
    scale: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": float(table.max()) or 1.0}
    image = draw_table(ax, table, *names, aspect="auto", **scale)
    ax.set_xlabel(_of("features", len(features), shares.shape[1]))
    ax.set_ylabel(_of("outputs", len(outputs), len(shares)))
    ax.figure.colorbar(image, ax=ax, label="share of the gain", pad=0.02)
    return ax


def _of(things: str, shown: int, total: int) -> str:
    return things if shown == total else f"{shown} of {total} {things}"


def plot_output_similarity(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the similarity of outputs with their dendrogram; similar ones are neighbours.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        A fitted model; see its method ``output_similarity``.
    ax : Axes, optional
        Where to draw; the dendrogram and the colour scale take some of its space.
    """
    similarity = model.output_similarity()
    n_outputs = len(similarity)
    side = 2.4 + 0.22 * min(n_outputs, 26)
    ax = new_axes(ax, side + 1.2, side + 1.0, layout="tight")
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    order = np.arange(n_outputs)
    beside = make_axes_locatable(ax)
    if n_outputs > 2:
        links = _links(squareform(1 - similarity, checks=False))
        order = hierarchy.leaves_list(links)
        tree = hierarchy.dendrogram(links, no_plot=True)
        above = beside.append_axes("top", "16%", pad=0.05)
        for x, height in zip(tree["icoord"], tree["dcoord"], strict=True):
            # The leaves of SciPy are at 5, 15, ..., those of the image at 0, 1, ...
            above.plot((np.array(x) - 5) / 10, height, color=GREY, linewidth=0.9)
        above.set(xlim=(-0.5, n_outputs - 0.5), ylim=(0, 1.04 * float(links[:, 2].max()) or 1.0))
        above.axis("off")
    names = np.array(model._explained_names(None), dtype=object)[order].tolist()
    ordered = similarity[np.ix_(order, order)]
    image = draw_table(ax, ordered, names, names, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.figure.colorbar(image, cax=beside.append_axes("right", "4%", pad=0.1), label="similarity")
    return ax


def _links(distances: F64) -> F64:
    """Return the average linkage, ordered so that neighbours are as similar as possible."""
    return np.asarray(hierarchy.linkage(np.maximum(distances, 0), "average", optimal_ordering=True))
