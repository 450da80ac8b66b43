"""The two pictures of the page "The theory, checked", each for light and for dark pages.

``python docs/draw_theory.py`` writes them into ``docs/pictures``.
"""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
from draw_method import Palette, write

from manyboost import ManyBoostRegressor, _core
from manyboost.datasets import make_friedman1_group, make_friedman1_ind

FAMILIES = ("gaussian", "rademacher", "achlioptas", "sparse")
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
N_ROWS, N_OUTPUTS, N_DRAWS = 40, 60, 30
ROUNDS, SHOWN = 32, 16


def distances(Y):
    """Squared distances of all pairs of rows."""
    return ((Y[:, None] - Y[None]) ** 2).sum(axis=2)[np.triu_indices(len(Y), 1)]


def distortions(family, q):
    """For several matrices: the worst distortion of a distance, and that of the variance."""
    Y = np.random.default_rng(0).normal(size=(N_ROWS, N_OUTPUTS))
    found = []
    for seed in range(N_DRAWS):
        phi = _core.draw_projection(family, q, N_OUTPUTS, [], seed, 0)
        projected = Y @ phi.T
        worst = np.abs(distances(projected) / distances(Y) - 1).max()
        ratio = projected.var(axis=0).sum() / Y.var(axis=0).sum()
        found.append((worst, abs(ratio - 1)))
    return np.array(found)


def draw_projections(palette: Palette) -> plt.Figure:
    """Distances and variances are kept ever better with more components."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.1), layout="constrained")
    colours = (palette.high, palette.low, *palette.leaves)
    for family, colour in zip(FAMILIES, colours, strict=False):
        drawn = {q: distortions(family, q) for q in COUNTS}
        median = [np.median(drawn[q][:, 0]) for q in COUNTS]
        left.plot(COUNTS, median, color=colour, lw=2, marker="o", ms=4, label=family)
        points = np.concatenate(list(drawn.values()))
        right.scatter(*points.T, s=7, color=colour, alpha=0.6, lw=0, label=family)
    q = np.geomspace(20, COUNTS[-1], 50)
    lemma = np.sqrt(8 * math.log(N_ROWS) / q)
    left.plot(
        q, lemma, color=palette.text, lw=1.4, ls=(0, (4, 2)), label="the lemma: √(8 ln n / q)"
    )
    left.set(xscale="log", yscale="log", xlabel="components q")
    left.set_ylabel("worst distortion ε of a squared distance")
    left.set_title("Distances are kept as the lemma says,", loc="left", fontsize=11)
    ends = np.array([0.05, 20])
    right.plot(
        ends, ends, color=palette.text, lw=1.4, ls=(0, (4, 2)), label="the theorem: at most ε"
    )
    right.set(xscale="log", yscale="log", xlim=(0.15, 20), ylim=(2e-5, 20))
    right.set(
        xlabel="worst distortion ε of a squared distance", ylabel="distortion of the variance"
    )
    right.set_title("and the variance, which chooses splits, far better", loc="left", fontsize=11)
    for axis, place in ((left, "upper right"), (right, "lower right")):
        axis.legend(frameon=False, fontsize=9, labelcolor=palette.text, loc=place)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


class InTurn:
    """A projection that looks at one output after the other."""

    def __init__(self):
        self.round = 0

    def __call__(self, n_components, n_outputs, rng):
        self.round += 1
        return np.eye(n_outputs)[[(self.round - 1) % n_outputs]]


def boost(X, Y, strategy, rounds):
    """Boosting as in the paper; outputs are drawn in turn."""
    return ManyBoostRegressor(
        strategy=strategy, projection=InTurn(), max_iter=rounds, step="line_search",
        learning_rate=0.1, max_leaf_nodes=4, min_samples_leaf=1, output_scaling=None,
        early_stopping=False, random_state=0,
    ).fit(X, Y)  # fmt: skip


def gap(n_rows, n_outputs=4, rounds=30):
    """How far Algorithm 3 and a model of each output are apart, as a share of the variance."""
    X, Y = make_friedman1_ind(n_rows, n_outputs=n_outputs, random_state=1)
    X_new, _ = make_friedman1_ind(2000, n_outputs=n_outputs, random_state=2)
    alone = boost(X, Y, "independent", rounds).predict(X_new)
    shared = boost(X, Y, "project", n_outputs * rounds).predict(X_new)
    return ((shared - alone) ** 2).mean() / alone.var(axis=0).mean()


def draw_steps(palette: Palette) -> plt.Figure:
    """The steps of Algorithm 3 show which outputs belong together."""
    figure, axes = plt.subplots(
        1, 3, figsize=(10.4, 4.3), layout="constrained", width_ratios=[1, 1, 1.35]
    )
    problems = {
        "that share nothing": make_friedman1_ind,
        "that share a signal": make_friedman1_group,
    }
    for axis, (words, make) in zip(axes[:2], problems.items(), strict=True):
        model = boost(*make(300, random_state=0), "project", ROUNDS)
        steps = model._progress.model.trees.steps().reshape(ROUNDS, SHOWN)
        image = axis.pcolormesh(
            np.arange(1, SHOWN + 2) - 0.5, np.arange(1, ROUNDS + 2) - 0.5, steps,
            cmap=palette.values, vmin=-1, vmax=1, rasterized=True,
        )  # fmt: skip
        axis.set(xlabel="output", xticks=[1, 4, 8, 12, 16], yticks=[1, 8, 16, 24, 32])
        axis.invert_yaxis()
        axis.set_title(f"Steps ρ of outputs\n{words}", loc="left", fontsize=11)
    axes[0].set_ylabel("round; it grows on one output, in turn")
    bar = figure.colorbar(image, ax=axes[1], shrink=0.8, ticks=[-1, 0, 1])
    bar.outline.set_edgecolor(palette.faint)
    counts = (125, 250, 500, 1000, 2000, 4000, 8000)
    axis = axes[2]
    axis.plot(counts, [gap(n) for n in counts], color=palette.low, lw=2, marker="o", ms=5)
    axis.set(xscale="log", yscale="log", xlabel="training rows", xticks=(125, 500, 2000, 8000))
    axis.set_xticklabels(["125", "500", "2,000", "8,000"])
    axis.minorticks_off()
    axis.set_ylabel("squared distance / variance of the predictions")
    axis.set_title(
        "Independent outputs: Algorithm 3\napproaches single target", loc="left", fontsize=11
    )
    axis.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    write({"theory-projections": draw_projections, "theory-steps": draw_steps})
