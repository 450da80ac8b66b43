"""Pictures of a fitted model; each function draws on an Axes and returns it.

They need matplotlib, which the extra ``plots`` installs. Without ``ax`` a figure is made whose size
suits the content. With many outputs or features, names are thinned out and neighbours are alike.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from manyboost.data.labels import indicator, read_label_sets
from manyboost.inspection import leaf_shares
from manyboost.training.scoring import LOSS, as_list

if TYPE_CHECKING:
    from matplotlib.axes import Axes

F64 = NDArray[np.float64]

__all__ = [
    "plot_calibration",
    "plot_importances",
    "plot_learning_curves",
    "plot_output_similarity",
    "plot_predictions",
    "plot_tree",
]

BLUE, RED, GREY = "#2166ac", "#b2182b", "#666666"
#: Lines with a colour and a name of their own.
NAMED_LINES = 8
#: Names along an axis.
NAMES = 40


def plot_learning_curves(model: Any, *, per_output: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the loss after each round, on training and validation rows.

    If early stopping went by another score than the loss, that score is drawn instead.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        Fitted.
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
    ax = _axes(ax, 6.4, 4.0)
    rounds = np.arange(model.n_iter_ + 1)
    validation = getattr(model, "validation_score_", None)
    first = as_list(model.scoring)[0]
    if validation is not None and first != LOSS:
        name = first if isinstance(first, str) else getattr(first, "__name__", "score")
        ax.plot(rounds, validation, color=RED, label="validation")
        ax.set_ylabel(name.replace("_", " "))
    else:
        ax.plot(rounds, -model.train_score_, color=BLUE, label="training")
        if validation is not None:
            ax.plot(rounds, -validation, color=RED, label="validation")
        ax.set_ylabel("mean loss")
    if validation is not None:
        _mark_best(ax, model.best_iter_)
    ax.legend(frameon=False)
    return _finish_rounds(ax)


def _draw_output_curves(model: Any, ax: Axes | None) -> Axes:
    curves = getattr(model, "validation_score_per_output_", None)
    if curves is None:
        raise ValueError(
            "per_output=True needs validation_score_per_output_, which this model does not have; "
            "fit with early stopping and a loss for each output, or use per_output=False."
        )
    ax = _axes(ax, 6.4, 4.0)
    rounds = np.arange(len(curves))
    start = curves[:1]
    relative = np.divide(curves, start, out=np.full_like(curves, np.nan), where=start != 0)
    names = model._explained_names(None)
    best = getattr(model, "best_iter_per_output_", None)
    few = relative.shape[1] <= NAMED_LINES
    for j, name in enumerate(names):
        style: dict[str, Any] = {"label": name} if few else {"color": BLUE, "alpha": 0.25}
        line = ax.plot(rounds, relative[:, j], linewidth=1.4 if few else 0.7, **style)[0]
        if best is not None:
            end = best[j]
            ax.plot(end, relative[end, j], "o", markersize=3.5, color=line.get_color())
    if not few:
        median = np.nanmedian(relative, axis=1)
        ax.plot(rounds, median, color=RED, linewidth=2, label=f"median of {len(names)} outputs")
    if best is None:
        _mark_best(ax, model.best_iter_)
    ax.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_ylabel("validation loss, baseline = 1")
    ax.legend(frameon=False, ncols=2 if few and len(names) > 4 else 1)
    return _finish_rounds(ax)


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


def _finish_rounds(ax: Axes) -> Axes:
    ax.set_xlabel("rounds")
    ax.margins(x=0.01)
    _clear_frame(ax)
    return ax


def plot_importances(
    model: Any, *, max_features: int = 30, max_outputs: int = 60, ax: Axes | None = None
) -> Axes:
    """Draw the share of each feature in the gain of each output.

    Features come in the order of their mean share, outputs beside those with similar shares.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        Fitted.
    max_features, max_outputs : int
        How many to show at most: the most important features, and of the outputs those whose shares
        are the least even.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    shares = model.output_importances_
    features = np.argsort(-shares.mean(axis=0), kind="stable")[:max_features]
    telling = np.argsort(-(shares**2).sum(axis=1), kind="stable")[:max_outputs]
    outputs = telling[_alike(shares[telling])]
    ax = _axes(ax, 2.2 + 0.28 * len(features), 1.6 + 0.2 * min(len(outputs), 45))
    image = ax.imshow(
        shares[np.ix_(outputs, features)], aspect="auto", cmap="Blues", vmin=0, interpolation="none"
    )
    feature_names, output_names = _feature_names(model), model._explained_names(None)
    _name_ticks(ax.xaxis, [feature_names[k] for k in features], rotation=90)
    _name_ticks(ax.yaxis, [output_names[j] for j in outputs])
    ax.set_xlabel(_of("features", len(features), shares.shape[1]))
    ax.set_ylabel(_of("outputs", len(outputs), len(shares)))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label="share of the gain", pad=0.02)
    return ax


def plot_output_similarity(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the similarity of outputs, alike ones beside each other, with their dendrogram.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        Fitted; see its method ``output_similarity``.
    ax : Axes, optional
        Where to draw; the dendrogram and the scale take some of its place.

    Returns
    -------
    Axes
    """
    similarity = model.output_similarity()
    n_outputs = len(similarity)
    side = 2.4 + 0.22 * min(n_outputs, 26)
    ax = _axes(ax, side + 1.2, side + 1.0, layout="tight")
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    order = np.arange(n_outputs)
    beside = make_axes_locatable(ax)
    if n_outputs > 2:
        links = _links(squareform(1 - similarity, checks=False))
        order = hierarchy.leaves_list(links)
        _draw_dendrogram(beside.append_axes("top", "16%", pad=0.05), links, n_outputs)
    ordered = similarity[np.ix_(order, order)]
    image = ax.imshow(ordered, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="none")
    all_names = model._explained_names(None)
    names = [all_names[j] for j in order]
    _name_ticks(ax.xaxis, names, rotation=90)
    _name_ticks(ax.yaxis, names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, cax=beside.append_axes("right", "4%", pad=0.1), label="similarity")
    return ax


def _draw_dendrogram(ax: Axes, links: F64, n_leaves: int) -> None:
    tree = hierarchy.dendrogram(links, no_plot=True)
    for x, height in zip(tree["icoord"], tree["dcoord"], strict=True):
        # SciPy's leaves are ten apart, the first at five; those of the image one, from zero.
        ax.plot((np.array(x) - 5) / 10, height, color=GREY, linewidth=0.9)
    ax.set_xlim(-0.5, n_leaves - 0.5)
    ax.set_ylim(0, 1.04 * float(links[:, 2].max()) or 1.0)
    ax.axis("off")


def plot_tree(
    model: Any,
    tree: int = 0,
    *,
    output: str | int | None = None,
    max_depth: int | None = None,
    show_missing: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree: its splits, how the training rows part, and what its leaves add.

    Rows that meet a condition go left. Leaves are coloured by what they add to one output.

    Parameters
    ----------
    model : ManyBoostRegressor or ManyBoostClassifier
        Fitted.
    tree : int
        Number of the tree; with ``strategy="independent"`` every round has one for each output.
    output : str or int, optional
        The output to show; None: the one that the tree moves most.
    max_depth : int, optional
        Splits below are not shown.
    show_missing : bool
        Say at each split where missing values go left; elsewhere they go right.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "n_iter_")
    ensemble = model._built_in_trees("plot_tree")
    n_trees = len(ensemble.tree_sizes())
    if not 0 <= tree < n_trees:
        raise ValueError(f"tree={tree!r} is not allowed; the model has trees 0 to {n_trees - 1}.")
    values = _leaf_values(model, ensemble, tree)
    shares = leaf_shares(ensemble, tree)[:, None]
    if output is None:
        spread = (shares * (values - (shares * values).sum(axis=0)) ** 2).sum(axis=0)
        place = int(spread.argmax())
    else:
        place = 0 if model.n_outputs_ == 1 else model._check_request([output], np.float64)[0][0]
    drawing = _TreeDrawing(model, ensemble.tree(tree), values[:, place], max_depth)
    drawing.show_missing = show_missing
    ax = _axes(ax, min(24.0, 1.5 + 0.85 * drawing.n_ends), 1.2 + 1.05 * (drawing.depth + 1))
    drawing.draw(ax)
    name = model._explained_names(None)[place]
    shown = "" if model.n_outputs_ == 1 else f", what it adds to {name}"
    ax.set_title(f"tree {tree}{shown}")
    return ax


def _leaf_values(model: Any, ensemble: Any, tree: int) -> F64:
    """What the leaves of a tree add to the outputs (n_leaves, n_outputs)."""
    values = np.asarray(ensemble.leaf_values(tree), dtype=np.float64)
    steps = ensemble.steps()
    if len(steps):
        return np.asarray(values * steps[tree])
    if values.shape[1] == model.n_outputs_:
        return values
    alone = np.zeros((len(values), model.n_outputs_))
    alone[:, tree % model.n_outputs_] = values[:, 0]
    return alone


class _TreeDrawing:
    """Nodes in their places: leaves side by side, a split between its children."""

    def __init__(self, model: Any, nodes: Any, values: F64, max_depth: int | None) -> None:
        self.nodes = nodes
        self.values = values
        self.max_depth = max_depth
        self.show_missing = False
        self.names = _feature_names(model)
        self.categories = model._progress.categories
        self.labels = getattr(model, "_category_labels", None)
        self.places: dict[int, tuple[float, int]] = {}
        self.n_ends = self.depth = 0
        self._place(0, 0)

    def _children(self, node: int, depth: int) -> list[int]:
        left = int(self.nodes[2][node])
        hidden = self.max_depth is not None and depth >= self.max_depth
        return [] if left == 0 or hidden else [left, left + 1]

    def _place(self, node: int, depth: int) -> float:
        self.depth = max(self.depth, depth)
        children = self._children(node, depth)
        if children:
            x = float(np.mean([self._place(child, depth + 1) for child in children]))
        else:
            x = float(self.n_ends)
            self.n_ends += 1
        self.places[node] = x, depth
        return x

    def draw(self, ax: Axes) -> None:
        from matplotlib import colormaps
        from matplotlib.colors import Normalize

        reach = float(np.abs(self.values).max()) or 1.0
        shade, colours = Normalize(-1.6 * reach, 1.6 * reach), colormaps["RdBu_r"]
        cover, left = self.nodes[4], self.nodes[2]
        size = 8 if self.n_ends <= 20 else 7
        for node, (x, depth) in sorted(self.places.items()):
            for child in self._children(node, depth):
                end = self.places[child]
                width = 0.5 + 4 * float(cover[child]) / float(cover[0])
                ax.plot([x, end[0]], [-depth, -end[1]], color="#bbbbbb", linewidth=width, zorder=1)
            is_leaf = left[node] == 0
            value = self.values[self.nodes[0][node]] if is_leaf else 0.0
            hidden = not is_leaf and not self._children(node, depth)
            text = _number(value, "+.3g") if is_leaf else ("…" if hidden else self._condition(node))
            box = {
                "boxstyle": "round,pad=0.3",
                "facecolor": colours(shade(value)) if is_leaf else "white",
                "edgecolor": "#888888",
                "linewidth": 0.7,
            }
            rows = f"{float(cover[node]):.4g}"
            text = f"{text}\n{rows} rows" if node == 0 else f"{text}\n{rows}"
            ax.text(x, -depth, text, ha="center", va="center", fontsize=size, bbox=box, zorder=2)
        ax.set_xlim(-0.7, self.n_ends - 0.3)
        ax.set_ylim(-self.depth - 0.5, 0.5)
        ax.axis("off")

    def _condition(self, node: int) -> str:
        feature, threshold, _, missing_left, _, _, left_categories = self.nodes
        name, codes = self.names[feature[node]], left_categories[node]
        missing = "\nor missing" if missing_left[node] and self.show_missing else ""
        if codes is not None:
            return f"{name} in\n{self._category_names(int(feature[node]), codes)}{missing}"
        if np.isinf(threshold[node]):
            return f"{name}\nnot missing"
        return f"{name} ≤ {_number(threshold[node])}{missing}"

    def _category_names(self, feature: int, codes: NDArray[Any]) -> str:
        """The categories of a set, without those that no training row has."""
        table = self.categories.tables[feature]
        labels = None if self.labels is None else self.labels.of_column.get(feature)
        known = [table[code] for code in codes if code < len(table)]
        names = [f"{each:g}" if labels is None else str(labels[int(each)]) for each in known]
        shown = ", ".join(names[:3])
        return f"{{{shown}, … {len(names)}}}" if len(names) > 3 else f"{{{shown}}}"


def plot_predictions(
    model: Any,
    X: Any,
    y: Any,
    *,
    outputs: Any = None,
    max_outputs: int = 9,
    ax: Axes | None = None,
) -> Axes:
    """Draw predicted against true values, a panel for each output, from the best r² to the worst.

    Parameters
    ----------
    model : ManyBoostRegressor
        Fitted.
    X, y : array-like
        Rows, best those that the model was not fitted to; missing targets are left out.
    outputs : list of str or int, optional
        Names or numbers of the outputs to show; None: all.
    max_outputs : int
        How many panels at most; of more outputs, some from the best to the worst are shown.
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
    places = None if outputs is None else model._check_request(outputs, np.float64)[0]
    predicted = _columns(np.asarray(model._values(X, None, places)))
    true = _columns(np.asarray(y, dtype=np.float64))
    true = true if places is None else true[:, places]
    if true.shape != predicted.shape:
        raise ValueError(
            f"y has shape {true.shape} but the predictions have {predicted.shape}; pass the "
            "targets of the rows of X."
        )
    scores = np.array([_r2(true[:, j], predicted[:, j]) for j in range(true.shape[1])])
    order = np.argsort(-scores, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(max_outputs, len(order))).round().astype(int)]
    n_columns = int(np.ceil(np.sqrt(len(chosen))))
    n_rows = int(np.ceil(len(chosen) / n_columns))
    ax = _axes(ax, 0.8 + 2.3 * n_columns, 0.8 + 2.5 * n_rows)
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


def _draw_panel(ax: Axes, true: F64, predicted: F64, title: str) -> None:
    there = ~np.isnan(true)
    true, predicted = true[there], predicted[there]
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
    _clear_frame(ax)


def _r2(true: F64, predicted: F64) -> float:
    there = ~np.isnan(true)
    total = ((true[there] - true[there].mean()) ** 2).sum() if there.any() else 0.0
    left = ((true[there] - predicted[there]) ** 2).sum()
    return float(1 - left / total) if total > 0 else float("nan")


def plot_calibration(
    model: Any,
    X: Any,
    y: Any,
    *,
    outputs: Any = None,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often labels are there against how probable the model finds them.

    A line for each label, or for each class against the others, and one for all; a point is the
    mean of as many rows as any other point of its line. On the diagonal probabilities are right.

    Parameters
    ----------
    model : ManyBoostClassifier
        Fitted.
    X, y : array-like
        Rows, best those that the model was not fitted to; missing labels are left out.
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
    places = None if outputs is None else model._check_request(outputs, np.float64)[0]
    single = model._is_single()
    probabilities = model._predicted(X, model._probabilities)
    true = _indicator(model, y)
    if true.shape != probabilities.shape:
        raise ValueError(
            f"y has shape {true.shape} but the probabilities have {probabilities.shape}; pass the "
            "labels of the rows of X."
        )
    names = [str(model.classes_[1])] if single else model._explained_names(None)
    shown = [1] if single else range(len(names)) if places is None else places
    names = names if single else [names[j] for j in shown]
    ax = _axes(ax, 5.2, 4.8)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    few = len(names) <= NAMED_LINES
    farthest = 0.0
    for j, name in zip(shown, names, strict=True):
        style: dict[str, Any] = {"color": BLUE, "alpha": 0.25, "linewidth": 0.7}
        if few:
            style = {"label": name, "marker": "o", "markersize": 3, "linewidth": 1.2}
        points = calibration_points(probabilities[:, j], true[:, j], n_bins)
        ax.plot(*points, **style)
        farthest = max(farthest, *np.max(points, axis=1, initial=0.0))
    if len(names) > 1:
        columns = list(shown)
        everything = probabilities[:, columns].ravel(), true[:, columns].ravel()
        points = calibration_points(*everything, 2 * n_bins)
        label = f"all {len(names)} {'labels' if model._classes.kind == 'multilabel' else 'classes'}"
        ax.plot(*points, color=RED if not few else "black", linewidth=2, label=label)
    # Rare labels have a corner of the square, which is enlarged.
    end = 1.01 if farthest > 0.5 else max(1.05 * farthest, 0.01)
    ax.set(xlim=(-0.01 * end, end), ylim=(-0.01 * end, end), aspect="equal")
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("observed frequency")
    ax.legend(frameon=False, loc="upper left", fontsize="small")
    _clear_frame(ax)
    return ax


def calibration_points(probabilities: F64, true: F64, n_bins: int) -> tuple[F64, F64]:
    """Mean probability and frequency of labels in groups of neighbouring probabilities.

    Groups have equally many rows, but for ties, which are not parted; rows without a label (NaN)
    are left out.
    """
    there = ~np.isnan(true)
    probabilities, true = probabilities[there], true[there]
    order = np.argsort(probabilities, kind="stable")
    probabilities, true = probabilities[order], true[order]
    cuts = np.linspace(0, len(order), n_bins + 1).round().astype(int)[1:-1]
    # A cut within a tie moves to its end.
    cuts = np.searchsorted(probabilities, probabilities[cuts[cuts < len(order)] - 1], side="right")
    edges = np.unique([0, *cuts, len(order)])
    groups = list(pairwise(edges))
    predicted = np.array([probabilities[a:b].mean() for a, b in groups])
    observed = np.array([true[a:b].mean() for a, b in groups])
    return predicted, observed


def _indicator(model: Any, y: Any) -> F64:
    """Labels or classes as an indicator (n_rows, n_columns), a column for each probability."""
    if model._classes.kind != "multilabel":
        return np.asarray(np.asarray(y).reshape(-1, 1) == model.classes_, dtype=np.float64)
    sets = read_label_sets(y)
    if sets is not None:
        return np.asarray(indicator(sets, model.classes_), dtype=np.float64)
    return np.asarray(y.toarray() if sparse.issparse(y) else y, dtype=np.float64)


# ------------------------------------------------------------------ what pictures share


def _axes(ax: Axes | None, width: float, height: float, layout: Any = "constrained") -> Axes:
    """Return the Axes given, or those of a new figure of this size in inches."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "manyboost.plotting needs the package matplotlib; install it with "
            "`pip install 'manyboost[plots]'`."
        ) from None
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=(width, height), layout=layout)[1]


def _clear_frame(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="#eeeeee", linewidth=0.7)
    ax.set_axisbelow(True)


def _columns(values: F64) -> F64:
    return values[:, None] if values.ndim == 1 else values


def _feature_names(model: Any) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return (
        [f"x{k}" for k in range(model.n_features_in_)] if names is None else list(map(str, names))
    )


def _number(value: float, how: str = ".3g") -> str:
    return format(value, how).replace("-", "−")


def _of(things: str, shown: int, total: int) -> str:
    return things if shown == total else f"{shown} of {total} {things}"


def _name_ticks(axis: Any, names: list[str], rotation: int = 0) -> None:
    """Put names along an axis, every second, third, … if there are many."""
    every = int(np.ceil(len(names) / NAMES))
    shown = range(0, len(names), every)
    texts = [name if len(name) <= 24 else name[:23] + "…" for name in names]
    axis.set_ticks(list(shown), [texts[k] for k in shown], rotation=rotation, fontsize=8)


def _links(distances: F64) -> F64:
    """Average linkage with neighbours as alike as may be."""
    links = hierarchy.linkage(np.maximum(distances, 0), method="average", optimal_ordering=True)
    return np.asarray(links)


def _alike(rows: F64) -> NDArray[Any]:
    """An order in which neighbouring rows are alike."""
    if len(rows) < 3:
        return np.arange(len(rows))
    distances = np.sqrt(((rows[:, None] - rows[None, :]) ** 2).sum(axis=2))
    return np.asarray(hierarchy.leaves_list(_links(squareform(distances, checks=False))))
