"""The trees of a model as exporters read them, and models that cannot be exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from manyboost.arrays import F32, U32, Mask
from manyboost.data.cells import column_name
from manyboost.training.custom import has_own_link


@dataclass(frozen=True)
class Tree:
    """A tree, node by node; the root is node 0.

    A split by categories lists those that go the other way than missing values: values of X, or
    codes of a feature whose rare categories share one.
    All other values count as missing.
    """

    feature: U32  # (n_nodes,); in a leaf the number of the leaf
    threshold: F32  # values, or codes, up to it go left; +∞: all values that are not missing
    left: U32  # left child, directly followed by the right one; 0 in a leaf
    missing_left: Mask  # whether missing values go left
    categories: list[NDArray[Any] | None]
    cover: F32  # weight of the training rows
    gain: F32  # variance reduction of the split
    values: F32  # (n_leaves, width), what a leaf adds to each of ``outputs``
    outputs: NDArray[np.intp]  # (width,), those that it predicts; its own number if it has steps
    steps: F32 | None  # (n_outputs,), factors of the one value of a leaf


def trees_of(model: Any) -> Iterator[Tree]:
    """Yield the trees of a fitted estimator; a tree that adds nothing if it has none."""
    ensemble, d = model._built_in_trees("An export"), model.n_outputs_
    scaled, alone = ensemble.kind == "scaled", ensemble.kind == "per_output"
    steps = ensemble.steps()
    for t in range(len(ensemble.tree_sizes())):
        feature, threshold, left, missing_left, cover, gain, left_codes = ensemble.tree(t)
        categories: list[NDArray[Any] | None] = [None] * len(left)
        for node, codes in enumerate(left_codes):
            if codes is not None:
                # Codes, where rare categories share one.
                coded, j = model._progress.categories, int(feature[node])
                all_codes = np.arange(coded.n_codes(j))
                values = all_codes if j in coded.grouped else coded.tables[j]
                categories[node] = values[np.isin(all_codes, codes) != missing_left[node]]
        nodes = feature, threshold, left, missing_left, categories, cover, gain
        outputs = np.array([t % d]) if alone else np.array([t]) if scaled else np.arange(d)
        yield Tree(*nodes, ensemble.leaf_values(t), outputs, steps[t] if scaled else None)
    if model.n_iter_ == 0:
        zero, none = np.zeros(1, np.float32), np.zeros(1, np.uint32)
        nodes = none, zero, none, np.zeros(1, bool), [None], zero, zero
        factors = np.zeros(d, np.float32) if scaled else None
        yield Tree(*nodes, zero[:, None], np.array([0]), factors)


def check_link(model: Any) -> None:
    """Refuse a link that is Python code, and probabilities that have no link."""
    loss = model._fitted_loss.custom
    if loss is None:
        return
    name, remedy = type(loss).__name__, "a Loss without inverse_link"
    if is_classifier(model):
        remedy = "to_treelite(raw=True)"
    if has_own_link(loss):
        what = f"The inverse_link of {name} is Python code, which no export holds"
        raise ValueError(f"{what}; use a built-in loss, or {remedy}.")
    if is_classifier(model):
        what = f"{name} has no link to probabilities, which the export holds"
        raise ValueError(f"{what}; use a built-in loss, or {remedy}.")


def check_hierarchy(model: Any) -> None:
    """Refuse predictions that agree with a hierarchy of labels."""
    if model._hierarchy is not None:
        what = "Predictions that agree with label_hierarchy are made after the trees"
        remedy = "export a model that was fitted without it"
        raise ValueError(f"{what}, and no export holds that; {remedy}.")


def feature_label(model: Any, j: int) -> str:
    """Return the name of a feature in error messages."""
    return column_name(j, getattr(model, "feature_names_in_", None))
