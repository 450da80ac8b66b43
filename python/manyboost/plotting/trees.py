"""Single trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyboost.arrays import F64
from manyboost.inspection import leaf_shares
from manyboost.plotting.axes import Axes, chosen_outputs, feature_names, new_axes, shortened

_BOX = {"boxstyle": "round,pad=0.3", "edgecolor": "#888888", "linewidth": 0.7}


def plot_tree(
    model: Any,
    tree: int = 0,
    *,
    output: str | int | None = None,
    max_depth: int | None = None,
    show_missing: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree: its splits, the training rows in its nodes, and what its leaves add.

    Rows that meet a condition go left. Leaves are coloured by what they add to one output.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        A fitted model.
    tree : int
        Number of the tree; with ``strategy="independent"`` every round has one for each output.
    output : str or int, optional
        The output to show; None: the one that the tree changes most. With a list of quantiles, of
        an output the quantile that the tree changes most, or one by its name, such as
        ``"y0, 0.1-quantile"``.
    max_depth : int, optional
        Depth below which splits are not shown.
    show_missing : bool
        Mark the splits that send missing values left; the others send them right.
    ax : Axes, optional
        Where to draw.
    """
    check_is_fitted(model, "n_iter_")
    ensemble = model._built_in_trees("plot_tree")
    n_trees = len(ensemble.tree_sizes())
    if not n_trees:
        raise ValueError("The model has no rounds, so no trees to draw; fit one that has some.")
    is_number = isinstance(tree, int | np.integer) and not isinstance(tree, bool)
    if not (is_number and 0 <= tree < n_trees):
        raise ValueError(f"tree={tree!r} is not allowed; the model has trees 0 to {n_trees - 1}.")
    values = _leaf_values(model, ensemble, tree)
    shares = leaf_shares(ensemble, tree)[:, None]
    spread = (shares * (values - (shares * values).sum(axis=0)) ** 2).sum(axis=0)
    candidates = _places(model, output)
    place = candidates[int(spread[candidates].argmax())]
    drawing = _TreeDrawing(model, ensemble.tree(tree), values[:, place], max_depth, show_missing)
    ax = new_axes(ax, min(24.0, 1.5 + 0.85 * drawing.n_ends), 1.2 + 1.05 * (drawing.depth + 1))
    drawing.draw(ax)
    shown = f", what it adds to {shortened(model._explained_names(None)[place], 60)}"
    ax.set_title(f"tree {tree}{shown if model.n_outputs_ > 1 else ''}")
    return ax


def _places(model: Any, output: str | int | None) -> list[int]:
    """Return the outputs of the model that may be shown: one, or all levels of an output of y."""
    names = model._explained_names(None)
    if output is None or len(names) == 1:
        return list(range(len(names)))
    if output in names:
        return [names.index(output)]
    (place,) = chosen_outputs(model, [output]) or [0]
    return list(range(place * model._n_levels, (place + 1) * model._n_levels))


def _leaf_values(model: Any, ensemble: Any, tree: int) -> F64:
    """Return what the leaves of a tree add to the outputs (n_leaves, n_outputs)."""
    values = np.asarray(ensemble.leaf_values(tree), dtype=np.float64)
    if ensemble.kind == "scaled":
        return np.asarray(values * ensemble.steps()[tree])
    if ensemble.kind == "vector":
        return values
    alone = np.zeros((len(values), model.n_outputs_))
    alone[:, tree % model.n_outputs_] = values[:, 0]
    return alone


class _TreeDrawing:
    """Nodes and their places: leaves side by side, a split between its children."""

    def __init__(
        self, model: Any, nodes: Any, values: F64, max_depth: int | None, show_missing: bool
    ) -> None:
        categories = model._progress.categories
        self.feature, threshold, self.left = nodes[:3]
        self.threshold = categories.thresholds(self.feature, threshold, self.left > 0)
        self.missing_left, self.cover, _, self.codes = nodes[3:]
        self.values, self.max_depth, self.show_missing = values, max_depth, show_missing
        self.names = [shortened(name, 16) for name in feature_names(model)]
        self.categories, self.cuts = categories, categories.cuts
        self.labels = model._category_labels.of_column
        self.places: dict[int, tuple[float, int]] = {}
        self.n_ends = self.depth = 0
        self._place(0, 0)

    def _children(self, node: int, depth: int) -> list[int]:
        left = int(self.left[node])
        hidden = self.max_depth is not None and depth >= self.max_depth
        return [] if left == 0 or hidden else [left, left + 1]

    def _place(self, node: int, depth: int) -> float:
        self.depth = max(self.depth, depth)
        children = self._children(node, depth)
        x = float(np.mean([self._place(child, depth + 1) for child in children] or self.n_ends))
        self.n_ends += not children
        self.places[node] = x, depth
        return x

    def draw(self, ax: Axes) -> None:
        """Draw branches as wide as their share of the rows, and boxes with text."""
        from matplotlib import colormaps
        from matplotlib.colors import Normalize

        reach = float(np.abs(self.values).max()) or 1.0
        shade, colours = Normalize(-1.6 * reach, 1.6 * reach), colormaps["RdBu_r"]
        size = 8 if self.n_ends <= 20 else 7
        style: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 2, "fontsize": size}
        for node, (x, depth) in sorted(self.places.items()):
            children = self._children(node, depth)
            for child in children:
                end = self.places[child]
                width = 0.5 + 4 * float(self.cover[child]) / float(self.cover[0])
                ax.plot([x, end[0]], [-depth, -end[1]], color="#bbbbbb", linewidth=width, zorder=1)
            text, colour = self._condition(node) if children else "…", "white"
            if self.left[node] == 0:
                value = self.values[self.feature[node]]
                text, colour = _number(value, "+.3g"), colours(shade(value))
            box = {"facecolor": colour, **_BOX}
            rows = f"{float(self.cover[node]):.4g}{' rows' if node == 0 else ''}"
            ax.text(x, -depth, f"{text}\n{rows}", bbox=box, **style)
        ax.set(xlim=(-0.7, self.n_ends - 0.3), ylim=(-self.depth - 0.5, 0.5))
        ax.axis("off")

    def _condition(self, node: int) -> str:
        feature = int(self.feature[node])
        name, threshold, codes = self.names[feature], self.threshold[node], self.codes[node]
        missing = "\nor missing" if self.missing_left[node] and self.show_missing else ""
        if codes is None:
            # Such a feature has many digits before they differ.
            how = ".12g" if feature in self.cuts else ".3g"
            condition = f"{name} ≤ {_number(threshold, how)}{missing}"
            return f"{name}\nnot missing" if np.isinf(threshold) else condition
        labels = self.labels.get(feature)
        known = [each for some in self.categories.values_of(feature, codes) for each in some]
        names = [f"{each:g}" if labels is None else str(labels[int(each)]) for each in known]
        names = [shortened(name, 16) for name in names]
        more = f", … {len(names)}" if len(names) > 3 else ""
        return f"{name} in\n{{{', '.join(names[:3])}{more}}}{missing}"


def _number(value: float, how: str = ".3g") -> str:
    return format(value, how).replace("-", "−")
