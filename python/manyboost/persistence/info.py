"""A summary of a fitted model."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyboost.persistence import container
from manyboost.persistence.model import contents, holds_code
from manyboost.persistence.values import Encoder, Unstorable
from manyboost.training.ensembles import TreeEnsemble


class ModelInfo(dict[str, Any]):
    """Facts about a model by name; printed as a small table.

    Keys are ``estimator``, ``strategy``, ``loss``, ``n_features``, ``n_outputs``, ``n_rounds``,
    ``n_trees``, ``n_nodes``, ``n_leaves``, ``n_bytes`` (size of the file that ``save`` writes; None
    if the model cannot be saved), ``format_version``, ``manyboost_version`` (the release that
    trained the model), ``left_out`` (what the file does not hold), ``parameters``, and
    ``changed_parameters`` (those that differ from their defaults).
    """

    def __str__(self) -> str:
        size = "cannot be saved" if self["n_bytes"] is None else f"{self['n_bytes']:,} bytes"
        changed = [f"{name}={value!r}" for name, value in self["changed_parameters"].items()]
        counted = ["rounds"] if self["n_trees"] is None else ["rounds", "trees", "nodes", "leaves"]
        lines = {
            "model": f"{self['estimator']}, strategy {self['strategy']!r}, loss {self['loss']!r}",
            "shape": f"{self['n_features']:,} features, {self['n_outputs']:,} outputs",
            "trees": ", ".join(f"{self[f'n_{name}']:,} {name}" for name in counted),
            "file": f"{size}, format version {self['format_version']}",
            "trained by": f"manyboost {self['manyboost_version']}",
            "parameters": ", ".join(changed) or "defaults",
            "left out": ", ".join(self["left_out"]) or "nothing",
        }
        return "\n".join(f"{name:11} {words}" for name, words in lines.items())

    def __repr__(self) -> str:
        return f"<ModelInfo\n{self}>"


def model_info(model: Any) -> ModelInfo:
    """Collect the facts about a fitted model."""
    check_is_fitted(model, "n_iter_")
    ensemble, trained = model._progress.model, model._trained_with
    parameters = model.get_params(deep=False)
    defaults = inspect.signature(type(model)).parameters
    changed = {n: v for n, v in parameters.items() if repr(v) != repr(defaults[n].default)}
    n_trees = n_nodes = n_leaves = n_bytes = version = None
    left_out = sorted(f"{name}={value!r}" for name, value in parameters.items() if _is_code(value))
    if isinstance(ensemble, TreeEnsemble):
        sizes = ensemble.trees.tree_sizes()
        n_trees, n_nodes = len(sizes), int(sizes.sum(dtype=np.int64))
        # Every split has two children, every tree one root.
        n_leaves = (n_nodes + n_trees) // 2
    with suppress(ValueError):
        header, arrays = contents(model)
        n_bytes, version = container.size(header, arrays), container.version_of(header, arrays)
        left_out += header["left_out"]
    loss = trained["loss"]
    return ModelInfo(
        estimator=type(model).__name__,
        strategy=trained["strategy"],
        loss=list(loss) if isinstance(loss, tuple) else loss,
        n_features=int(model.n_features_in_),
        n_outputs=int(model.n_outputs_),
        n_rounds=int(model.n_iter_),
        n_trees=n_trees,
        n_nodes=n_nodes,
        n_leaves=n_leaves,
        n_bytes=n_bytes,
        format_version=version,
        manyboost_version=model._release,
        left_out=left_out,
        parameters=parameters,
        changed_parameters=changed,
    )


def _is_code(value: Any) -> bool:
    """Whether a parameter holds something that a file leaves out."""
    try:
        return holds_code(Encoder().encode(value))
    except Unstorable:
        return True
