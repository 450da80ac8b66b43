"""A fitted estimator as a treelite model."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from sklearn.base import is_classifier

from manyboost.arrays import F32, F64
from manyboost.export.trees import Tree, check_hierarchy, check_link, feature_label, trees_of
from manyboost.extras import import_extra

# Single precision holds all integers up to this one.
MAX_CATEGORY = 2**24


def to_treelite(model: Any, *, raw: bool) -> Any:
    """Return the model (treelite.Model); ``raw``: without link and offset."""
    builder = import_extra("treelite.model_builder", "to_treelite", "treelite")
    task, postprocessor = "kRegressor", "identity"
    if not raw:
        if model._with_offset:
            problem = "The model was fitted with an offset, for which treelite has no input"
            raise ValueError(f"{problem}; use to_treelite(raw=True), and add it to the result.")
        task, postprocessor = _task(model)
    _check_tables(model)
    trees = list(trees_of(model))
    # Classes are the second axis of a treelite prediction, other outputs the first.
    d = model.n_outputs_
    classes = task == "kMultiClf"
    shared = len(trees[0].outputs) > 1 or trees[0].steps is not None
    width = d if shared else 1
    each = [(-1 if d > 1 else 0) if shared else int(tree.outputs[0]) for tree in trees]
    only = [0] * len(trees)
    targets, kinds = (only, each) if classes else (each, only)
    categories = model._progress.categories
    dtype = "float64" if categories.cuts else "float32"
    construction = builder.ModelBuilder(
        threshold_type=dtype,
        leaf_output_type=dtype,
        metadata=builder.Metadata(
            num_feature=model.n_features_in_,
            task_type=task,
            average_tree_output=False,
            num_target=1 if classes else d,
            num_class=[d] if classes else [1] * d,
            leaf_vector_shape=(1, width) if classes else (width, 1),
        ),
        tree_annotation=builder.TreeAnnotation(len(trees), target_id=targets, class_id=kinds),
        postprocessor=builder.PostProcessorFunc(name=postprocessor),
        base_scores=model.baseline_.tolist(),
    )
    for tree in trees:
        threshold: F32 | F64 = tree.threshold
        if categories.cuts:
            exact = categories.thresholds(tree.feature, tree.threshold, tree.left > 0)
            coded = np.isin(tree.feature, list(categories.cuts))
            threshold = np.where(coded, exact, _last_rounded_to(tree.threshold))
        _add(construction, tree, threshold)
    return construction.commit()


def _task(model: Any) -> tuple[str, str]:
    """Return treelite's names for the task and for the link."""
    loss = model._fitted_loss
    check_link(model)
    link = loss.facts.link.treelite
    if is_classifier(model) and model._classes.kind == "columns":
        _refuse(f"a link for each of {len(model.classes_)} columns of classes")
    if len(loss.blocks) > 1:
        _refuse(f"a link for each output, as loss={model.loss!r} has it")
    if link is None:
        _refuse(f"the link of loss={model.loss!r} from scores to probabilities")
    if not is_classifier(model):
        if model._quantiles is not None:
            _refuse("a way to keep quantiles from crossing")
        return "kRegressor", link
    check_hierarchy(model)
    if model._calibrator is not None:
        _refuse(f"calibration={model.calibration!r}")
    if model._classes.kind != "multiclass":
        return "kBinaryClf", link
    if not loss.facts.is_joint:
        _refuse(f"the link of loss={model.loss!r} for more than two classes")
    return "kMultiClf", link


def _refuse(what: str) -> NoReturn:
    remedy = "use to_treelite(raw=True), which gives raw predictions, or to_onnx."
    raise ValueError(f"treelite does not have {what}; {remedy}")


def _check_tables(model: Any) -> None:
    """Refuse categories that treelite does not know."""
    for j in model._progress.categories.grouped:
        what = f"Column {feature_label(model, j)} has rare categories that count as one"
        raise ValueError(
            f"{what}, which treelite cannot look up; merge them before, or use to_onnx."
        )
    for j, table in model._progress.categories.tables.items():
        unlike = (table != np.floor(table)) | (table < 0) | (table > MAX_CATEGORY)
        if unlike.any():
            category = f"{table[np.argmax(unlike)]:g}, but treelite only knows integers from 0"
            what = f"Column {feature_label(model, j)} has the category {category}"
            raise ValueError(f"{what}; number the categories from 0.")


def _last_rounded_to(single: F32) -> F64:
    """Return the largest doubles that single precision does not round to higher numbers."""
    following = np.nextafter(single, np.float32(np.inf))
    tie = single.astype(np.float64) / 2 + following.astype(np.float64) / 2
    # A tie goes to the number whose last bit is 0.
    is_even = (single.view(np.uint32) & 1) == 0
    return np.where(is_even | np.isinf(tie), tie, np.nextafter(tie, -np.inf))


def _add(construction: Any, tree: Tree, thresholds: F32 | F64) -> None:
    """Add a tree, node by node."""
    # Rounded as predict rounds it.
    values = tree.values if tree.steps is None else tree.values * tree.steps
    construction.start_tree()
    for node in range(len(tree.left)):
        construction.start_node(node)
        feature, left = int(tree.feature[node]), int(tree.left[node])
        missing_left, categories = bool(tree.missing_left[node]), tree.categories[node]
        split: dict[str, Any] = {"feature_id": feature, "default_left": missing_left}
        split |= {"left_child_key": left, "right_child_key": left + 1}
        if left == 0:
            vector = values[feature].tolist()
            construction.leaf(vector if len(vector) > 1 else vector[0])
        elif categories is None:
            threshold = float(thresholds[node])
            construction.numerical_test(threshold=threshold, opname="<=", **split)
        else:
            split |= {"category_list": categories.astype(int).tolist()}
            construction.categorical_test(category_list_right_child=missing_left, **split)
        if left:
            construction.gain(float(tree.gain[node]))
        construction.sum_hess(float(tree.cover[node]))
        construction.end_node()
    construction.end_tree()
