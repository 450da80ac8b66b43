"""The two pictures of the page "How the method works", each for light and for dark pages.

``python docs/draw_method.py`` writes them into ``docs/pictures``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from manyboost import ManyBoostRegressor
from manyboost.datasets import make_friedman1_chain

FOLDER = Path(__file__).parent / "pictures"


@dataclass(frozen=True)
class Palette:
    """Colours for one kind of page."""

    name: str
    page: str
    text: str
    faint: str
    low: str
    high: str
    leaves: tuple[str, str, str]

    @property
    def values(self) -> LinearSegmentedColormap:
        """From low to high, zero being the colour of the page."""
        return LinearSegmentedColormap.from_list("values", [self.low, self.page, self.high])


LIGHT = Palette(
    "light",
    "#ffffff",
    "#1f2328",
    "#8a9099",
    "#1f6fb0",
    "#d9661f",
    ("#2f8f5b", "#8a5cc2", "#b3892b"),
)
DARK = Palette(
    "dark", "#14181e", "#e6e9ee", "#8d96a3", "#5fb0f0", "#f39a58", ("#5cc48d", "#b995ec", "#dcb65a")
)

# ------------------------------------------------------------------ one round


def small_problem():
    """Residuals of 30 rows and 16 outputs that two cuts in two features explain for the most."""
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, size=(30, 2))
    leaf = np.where(X[:, 0] <= 0.45, 0, np.where(X[:, 1] <= 0.5, 1, 2))
    means = rng.normal(size=(3, 16))
    residuals = means[leaf] + 0.55 * rng.normal(size=(30, 16))
    return leaf, residuals - residuals.mean(axis=0), rng.normal(size=16) / 4


def arrow(figure, start, end, palette, **style):
    """Draw an arrow between two points of the figure."""
    figure.add_artist(
        FancyArrowPatch(
            start, end, transform=figure.transFigure, arrowstyle="-|>", mutation_scale=12,
            color=palette.faint, lw=1.2, shrinkA=0, shrinkB=0, **style,
        )
    )  # fmt: skip


def heat(figure, place, values, palette, limit):
    """Show numbers as colours on axes without ticks."""
    axis = figure.add_axes(place)
    axis.pcolormesh(
        np.atleast_2d(values)[::-1], cmap=palette.values, vmin=-limit, vmax=limit,
        edgecolors=palette.page, linewidth=0.6, rasterized=True,
    )  # fmt: skip
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set(color=palette.faint, linewidth=0.8)
    return axis


def draw_round(palette: Palette) -> plt.Figure:
    """From the residuals of all outputs to a tree that serves them all."""
    leaf, residuals, phi = small_problem()
    z = residuals @ phi
    figure = plt.figure(figsize=(10.4, 4.3))
    height, bottom = 0.56, 0.12

    def heading(x, number, words):
        figure.text(x, 0.945, number, fontsize=13, weight="bold", color=palette.high, va="top")
        figure.text(x + 0.02, 0.94, words, fontsize=10.5, va="top", linespacing=1.35)

    heading(0.03, "1", "Residuals of all outputs,\nand random weights φ")
    heat(figure, (0.05, 0.735, 0.17, 0.035), phi, palette, 0.5)
    figure.text(0.042, 0.752, "φ", ha="right", va="center", fontsize=12, style="italic")
    heat(figure, (0.05, bottom, 0.17, height), residuals, palette, 2.6)
    figure.text(0.042, bottom + height / 2, "rows", rotation=90, ha="right", va="center")
    figure.text(0.135, bottom - 0.03, "outputs", ha="center", va="top")

    heading(0.275, "2", "One number\na row: z = φ r")
    arrow(figure, (0.235, bottom + height / 2), (0.287, bottom + height / 2), palette)
    heat(figure, (0.3, bottom, 0.0165, height), z[:, None], palette, 1.4)
    figure.text(0.308, bottom - 0.03, "z", ha="center", va="top", style="italic", fontsize=12)

    heading(0.435, "3", "A tree grown on z alone:\nno output is looked at")
    arrow(figure, (0.332, bottom + height / 2), (0.385, bottom + height / 2), palette)
    tree = figure.add_axes((0.385, bottom - 0.02, 0.255, height + 0.04))
    tree.set(xlim=(0, 10), ylim=(0, 10))
    tree.axis("off")
    places = {"root": (5.6, 9), "right": (7.2, 5.4), 0: (3.2, 5.4), 1: (5.6, 1.8), 2: (8.8, 1.8)}
    for upper, lower in (("root", 0), ("root", "right"), ("right", 1), ("right", 2)):
        tree.plot(
            *zip(places[upper], places[lower], strict=True), color=palette.faint, lw=1.3, zorder=1
        )
    for name, words in (("root", "height ≤ 0.45"), ("right", "weight ≤ 0.5")):
        x, y = places[name]
        tree.add_patch(
            FancyBboxPatch(
                (x - 1.9, y - 0.6), 3.8, 1.2, boxstyle="round,pad=0.1,rounding_size=0.4",
                facecolor=palette.page, edgecolor=palette.faint, lw=1.2, zorder=2,
            )
        )  # fmt: skip
        tree.text(x, y - 0.05, words, ha="center", va="center", fontsize=9.5, zorder=3)
    for k, name in enumerate("ABC"):
        x, y = places[k]
        tree.scatter(x, y, s=430, color=palette.leaves[k], zorder=2)
        tree.text(
            x, y - 0.08, name, ha="center", va="center", color=palette.page, weight="bold", zorder=3
        )
        tree.text(
            x, y - 1.45, f"{(leaf == k).sum()} rows", ha="center", va="center", fontsize=8.5,
            color=palette.faint,
        )  # fmt: skip

    heading(0.675, "4", "Its leaves answer for all outputs")
    left, width = 0.765, 0.17
    means = np.array([residuals[leaf == k].mean(axis=0) for k in range(3)])
    scalars = np.array([z[leaf == k].mean() for k in range(3)])
    along = scalars[leaf]
    steps = residuals.T @ along / (along @ along)

    def names(place, y):
        for k, name in enumerate("ABC"):
            figure.text(
                place - 0.008, y + (2.5 - k) * 0.055, name, ha="right", va="center",
                color=palette.leaves[k], weight="bold",
            )  # fmt: skip

    figure.text(0.69, 0.845, '"relabel"', fontsize=11, weight="bold", va="top")
    figure.text(
        0.69, 0.79, "mean residuals of each leaf: 3 × 16 numbers", fontsize=9.5, va="top",
        color=palette.faint,
    )  # fmt: skip
    heat(figure, (left, 0.55, width, 0.165), means, palette, 2.0)
    names(left, 0.55)
    figure.text(0.69, 0.455, '"project"', fontsize=11, weight="bold", va="top")
    figure.text(
        0.69, 0.40, "mean of z, times a step for each output: 3 + 16", fontsize=9.5, va="top",
        color=palette.faint,
    )  # fmt: skip
    heat(figure, (left - 0.045, 0.16, 0.0106, 0.165), scalars[:, None], palette, 1.1)
    names(left - 0.045, 0.16)
    figure.text(left - 0.017, 0.2425, "×", ha="center", va="center", fontsize=12)
    heat(figure, (left, 0.2225, width, 0.04), steps, palette, 1.6)
    figure.text(left + width / 2, 0.2, "steps ρ", ha="center", va="top", fontsize=9.5)
    arrow(figure, (0.645, bottom + height / 2), (0.68, bottom + height / 2), palette)
    return figure


# ------------------------------------------------------------------ why it works


def gains(x, values):
    """How much the squared deviations of the columns of ``values`` shrink, for every cut of x."""
    order = np.argsort(x)
    sums = np.cumsum(values[order], axis=0)[:-1]
    n_left = np.arange(1, len(x))[:, None]
    total = values.sum(axis=0)
    gain = sums**2 / n_left + (total - sums) ** 2 / (len(x) - n_left) - total**2 / len(x)
    return x[order][:-1], gain.sum(axis=1)


def draw_reason(palette: Palette) -> plt.Figure:
    """Cuts that are good for all outputs are good for a projection on average."""
    rng = np.random.default_rng(1)
    n_rows, n_outputs, edge = 600, 50, 12
    x = rng.uniform(0, 1, n_rows)
    shapes = np.column_stack([x > 0.62, np.sin(5 * x), (x < 0.25) & (x > 0.1)]).astype(float)
    Y = shapes @ (rng.normal(size=(3, n_outputs)) * [[1.5], [0.35], [0.5]])
    Y += 0.8 * rng.normal(size=Y.shape)
    Y -= Y.mean(axis=0)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.4, 4.1), layout="constrained", width_ratios=[1, 1]
    )
    cuts, whole = gains(x, Y)
    inner = slice(edge, -edge, 2)
    seen = []
    for k in range(2000):
        _, gain = gains(x, Y @ rng.normal(size=(n_outputs, 1)))
        seen.append(gain)
        if k < 14:
            left.plot(
                cuts[inner], gain[inner] / whole.max(), color=palette.low, lw=0.8, alpha=0.5,
                label="on one projection, drawn 14 times" if k == 0 else None,
            )  # fmt: skip
    left.plot(
        cuts[inner], np.mean(seen, axis=0)[inner] / whole.max(), color=palette.text, lw=1.4,
        ls=(0, (4, 2)), label="on one projection, mean of 2,000", zorder=5,
    )  # fmt: skip
    left.plot(
        cuts[inner], whole[inner] / whole.max(), color=palette.high, lw=2.6, alpha=0.9,
        label="on all 50 outputs", zorder=4,
    )  # fmt: skip
    left.set(xlabel="where a feature is cut", ylabel="gain of the cut", xlim=(0, 1), ylim=(0, 3.4))
    left.set_title("A projection sees the same cuts,", loc="left", fontsize=11)
    left.legend(frameon=False, fontsize=9.5, loc="upper left", labelcolor=palette.text)

    X, Y = make_friedman1_chain(4300, n_outputs=16, random_state=1)
    spread = ((Y[300:] - Y[300:].mean(axis=0)) ** 2).sum(axis=0)
    settings = {
        "a tree for all outputs, grown on all": ("multioutput", palette.high, "-"),
        "a tree for all outputs, grown on one projection": ("relabel", palette.low, "-"),
        "a tree for each output": ("independent", palette.text, (0, (4, 2))),
    }
    for label, (strategy, colour, style) in settings.items():
        rounds = 13 if strategy == "independent" else 200
        model = ManyBoostRegressor(
            strategy=strategy, max_iter=rounds, learning_rate=0.1, max_leaf_nodes=4, random_state=1
        ).fit(X[:300], Y[:300])
        scores = [
            np.mean(1 - ((Y[300:] - predicted) ** 2).sum(axis=0) / spread)
            for predicted in model.staged_predict(X[300:])
        ]
        n_trees = np.arange(1, len(scores) + 1) * (16 if strategy == "independent" else 1)
        right.plot(n_trees, scores, color=colour, ls=style, lw=2, label=label)
    right.set(xlabel="trees", ylabel="r² on test rows", xlim=(0, 202), ylim=(0, 1))
    right.set_title("and a new one each round makes up for the noise", loc="left", fontsize=11)
    right.legend(frameon=False, fontsize=9.5, loc="upper left", labelcolor=palette.text)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def write(pictures: Mapping[str, Callable[[Palette], plt.Figure]]) -> None:
    """Write pictures in both palettes, each under its name."""
    FOLDER.mkdir(exist_ok=True)
    for palette in (LIGHT, DARK):
        style = {
            "text.color": palette.text, "axes.labelcolor": palette.text,
            "axes.edgecolor": palette.faint, "xtick.color": palette.faint,
            "ytick.color": palette.faint, "xtick.labelcolor": palette.text,
            "ytick.labelcolor": palette.text, "axes.titlecolor": palette.text,
            "axes.facecolor": "none", "svg.hashsalt": "manyboost", "font.size": 10,
        }  # fmt: skip
        with mpl.rc_context(style):
            for name, draw in pictures.items():
                figure = draw(palette)
                figure.savefig(
                    FOLDER / f"{name}-{palette.name}.svg",
                    transparent=True,
                    dpi=220,
                    metadata={"Date": None},
                )
                plt.close(figure)


if __name__ == "__main__":
    write({"one-round": draw_round, "why-it-works": draw_reason})
