"""A summary of a fitted model."""

from __future__ import annotations

import inspect
import textwrap
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyboost.persistence import container
from manyboost.persistence.model import contents, holds_code
from manyboost.persistence.values import Encoder, Unstorable
from manyboost.spelling import listing
from manyboost.training.ensembles import TreeEnsemble


class ModelInfo(dict[str, Any]):
    """Facts about a model by name; printed as a small table.

    Keys are ``estimator``, ``strategy``, ``loss``, ``n_features``, ``n_outputs``, ``n_rounds``,
    ``n_trees``, ``n_nodes``, ``n_leaves``, ``n_bytes`` (size of the file that ``save`` writes; None
    if the model cannot be saved), ``format_version``, ``manyboost_version`` (the release that
    trained the model), ``feature_names`` and ``output_names`` (None if there are none; for classes
    these, for several columns of them names such as ``colour=red``), ``categories`` (those of each
    categorical feature, by its name or number), ``n_rare`` (how many of them count as one, where
    there are too many), ``left_out`` (what the file does not hold), ``parameters``, and
    ``changed_parameters`` (those that differ from their defaults).
    """

    def __str__(self) -> str:
        file = "cannot be saved"
        if self["n_bytes"] is not None:
            file = f"{self['n_bytes']:,} bytes, format version {self['format_version']}"
        changed = [
            f"{name}={textwrap.shorten(repr(value), 200, placeholder=' ...')}"
            for name, value in self["changed_parameters"].items()
        ]
        counted = ["rounds"] if self["n_trees"] is None else ["rounds", "trees", "nodes", "leaves"]
        rare = {name: f" ({n:,} rare ones count as one)" for name, n in self["n_rare"].items()}
        categories = [
            f"{name}: {_shown(each)}{rare.get(name, '')}"
            for name, each in self["categories"].items()
        ]
        lines = {
            "model": f"{self['estimator']}, strategy {self['strategy']!r}, loss {self['loss']!r}",
            "shape": ", ".join(self._count(name) for name in ("features", "outputs")),
            "features": _shown(self["feature_names"]),
            "outputs": _shown(self["output_names"]),
            "categories": "; ".join(categories) or "none",
            "trees": ", ".join(map(self._count, counted)),
            "file": file,
            "trained by": f"manyboost {self['manyboost_version']}",
            "parameters": ", ".join(changed) or "defaults",
            "left out": ", ".join(self["left_out"]) or "nothing",
        }
        return "\n".join(f"{name:11} {words}" for name, words in lines.items())

    def _count(self, plural: str) -> str:
        number = self[f"n_{plural}"]
        singular = "leaf" if plural == "leaves" else plural.removesuffix("s")
        return f"{number:,} {singular if number == 1 else plural}"

    def __repr__(self) -> str:
        return f"<ModelInfo\n{self}>"


def _shown(names: list[Any] | None) -> str:
    return "without names" if names is None else listing(names, 8)


def _categories(model: Any) -> dict[str, list[Any]]:
    """Return the categories of each categorical feature."""
    labels, tables = model._category_labels.of_column, model._progress.categories.tables
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return {str(names[j]): list(labels[j] if j in labels else tables[j]) for j in sorted(tables)}


def _rare(model: Any) -> dict[str, int]:
    """Return the number of categories that count as one, of features that have such."""
    categories = model._progress.categories
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return {str(names[j]): categories.n_rare(j) for j in sorted(categories.grouped)}


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
        feature_names=_listed(getattr(model, "feature_names_in_", None)),
        output_names=_listed(_output_names(model)),
        categories=_categories(model),
        n_rare=_rare(model),
        left_out=left_out,
        parameters=parameters,
        changed_parameters=changed,
    )


def _output_names(model: Any) -> Any:
    """Return the names of the outputs; for classes in one column, these."""
    classes = getattr(model, "classes_", None)
    return model._known_names() if classes is None or isinstance(classes, list) else classes


def _listed(names: Any) -> list[Any] | None:
    return None if names is None else np.asarray(names).tolist()


def _is_code(value: Any) -> bool:
    """Whether a parameter holds something that a file leaves out."""
    try:
        return holds_code(Encoder().encode(value))
    except Unstorable:
        return True
