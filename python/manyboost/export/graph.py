"""A model as an ONNX graph: operators and constants, to be stored alone or in a pipeline."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from manyboost.arrays import F32
from manyboost.export.trees import Tree, check_hierarchy, check_link, feature_label, trees_of
from manyboost.training.calibrators import Sigmoids
from manyboost.training.fitted_losses import FittedLoss

ML = "ai.onnx.ml"
# Versions of the operators, which have not changed since; older than most runtimes.
OPSETS = {"": 15, ML: 3}
# The largest file that protocol buffers allow, and the least bytes of a leaf value: its weight, and
# the numbers of its tree, node and output.
MAX_BYTES = 2**31
WEIGHT_BYTES = 4 + 3
_FLOAT, _INT64 = 1, 7  # of onnx.TensorProto
# The integers of ONNX.
INT64 = range(-(2**63), 2**63)

Places: TypeAlias = NDArray[np.intp]  # the column of each feature of a model in an array


class Operator(NamedTuple):
    """A call of an ONNX operator."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    domain: str
    attributes: dict[str, Any]


class Graph:
    """Operators in the order of their calls, and constants by name; ``names`` are reserved."""

    def __init__(self, *names: str) -> None:
        self.operators: list[Operator] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self._names = set(names)

    def unique(self, name: str) -> str:
        """Return a name like this one that is not yet in the graph."""
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def constant(self, name: str, values: Any) -> str:
        """Add a constant and return its name; a Python float is one in single precision."""
        name = self.unique(name)
        array = np.asarray(values, np.float32 if isinstance(values, float) else None)
        self.constants[name] = array.astype(np.int64) if array.dtype.kind == "i" else array
        return name

    def call(
        self, kind: str, inputs: list[str], *outputs: str, domain: str = "", **attributes: Any
    ) -> str:
        """Add an operator and return the name of its first result."""
        names = [self.unique(output) for output in outputs]
        self.operators.append(Operator(kind, inputs, names, domain, attributes))
        return names[0]

    def in_single(self, model: Any, X: str, places: Places) -> tuple[list[str], Places]:
        """Return arrays of features in single precision, and the columns where trees find them.

        Features with cuts in double precision, and those with rare categories, get another column,
        for the codes that trees see. X must be in double precision if there are cuts.
        """
        categories = model._progress.categories
        cuts = {j: each for j, each in categories.cuts.items() if len(each)}
        parts, places, n_columns = [X], places.copy(), int(places.max()) + 1
        if cuts:
            parts = [self.call("Cast", [X], "single", to=_FLOAT)]
        for j, codes in categories.grouped.items():
            if places[j] >= 0:
                column = self.constant("column", [int(places[j])])
                value = self.call("Gather", [parts[0], column], "category", axis=1)
                keys = {"keys_floats": categories.tables[j].tolist(), "default_float": np.nan}
                values = {"values_floats": codes.astype(float).tolist()}
                code = self.call("LabelEncoder", [value], "code", domain=ML, **keys, **values)
                places[j] = n_columns + len(parts) - 1
                parts.append(code)
        for j, values in cuts.items():
            column = self.constant("column", [int(places[j])])
            value = self.call("Gather", [X, column], "value", axis=1)
            above = self.call("Greater", [value, self.constant("cuts", values[None])], "above")
            above = self.call("Cast", [above], "each", to=_FLOAT)
            axis = self.constant("cut_axis", [1])
            count = self.call("ReduceSum", [above, axis], "count", keepdims=1)
            zero = self.constant("of_zero", float(np.searchsorted(values, 0.0)))
            code = self.call("Sub", [count, zero], "code")
            missing = [self.call("IsNaN", [value], "is_missing"), self.constant("nan", np.nan)]
            places[j] = n_columns + len(parts) - 1
            parts.append(self.call("Where", [*missing, code], "code_or_missing"))
        return parts, places

    def raw_predictions(self, model: Any, X: str, offset: str | None, places: Places) -> str:
        """Add the operators from features to raw predictions (n_rows, n_outputs)."""
        sums, steps = self._tree_sums(model, X, places)
        if steps is not None:
            sums = self.call("MatMul", [sums, self.constant("steps", steps)], "tree_sums")
        baseline = self.constant("baseline", model.baseline_.astype(np.float32))
        raw = self.call("Add", [sums, baseline], "raw_predictions")
        if offset is None:
            return raw
        if model._n_levels > 1:
            # One offset for all levels of an output.
            columns = np.repeat(np.arange(model.n_outputs_ // model._n_levels), model._n_levels)
            operands = [offset, self.constant("offset_columns", columns)]
            offset = self.call("Gather", operands, "offsets", axis=1)
        return self.call("Add", [raw, offset], "raw_predictions_with_offset")

    def _tree_sums(self, model: Any, X: str, places: Places) -> tuple[str, F32 | None]:
        """Add one operator for all trees; return sums by output, or values by tree and steps."""
        _check_tables(model)
        fields: dict[str, list[Any]] = defaultdict(list)  # of nodes and of leaf values
        steps = []
        n_weights = 0
        for t, tree in enumerate(trees_of(model)):
            n_weights += tree.values.size
            if n_weights * WEIGHT_BYTES > MAX_BYTES:
                problem = "The trees have more leaf values than an ONNX file can hold (2 GB)"
                raise ValueError(f"{problem}; use strategy='project', or fewer rounds or leaves.")
            if tree.steps is not None:
                steps.append(tree.steps)
            columns = _node_columns(tree, places)
            fields["nodes_treeids"] += [t] * len(columns["nodeids"])
            for name, values in columns.items():
                fields[f"nodes_{name}"] += values
            leaves = np.flatnonzero(tree.left == 0)
            width = len(tree.outputs)
            fields["target_treeids"] += [t] * (len(leaves) * width)
            fields["target_nodeids"] += np.repeat(leaves, width).tolist()
            fields["target_ids"] += np.tile(tree.outputs, len(leaves)).tolist()
            fields["target_weights"] += tree.values[tree.feature[leaves]].ravel().tolist()
        options: dict[str, Any] = {"aggregate_function": "SUM", "post_transform": "NONE", **fields}
        options["n_targets"] = len(steps) or model.n_outputs_
        result = "tree_values" if steps else "tree_sums"
        sums = self.call("TreeEnsembleRegressor", [X], result, domain=ML, **options)
        return sums, np.array(steps) if steps else None

    def results(self, model: Any, raw: str, names: list[str]) -> None:
        """Add the operators from raw predictions to the results of an estimator."""
        check_link(model)
        add = self._classified if is_classifier(model) else self._predicted
        for result, name in zip(add(model, raw), names, strict=True):
            self.operators.append(Operator("Identity", [result], [name], "", {}))

    def _predicted(self, model: Any, raw: str) -> list[str]:
        """Add the predictions of a regressor, in the shape of its ``predict``."""
        values, n_levels = self._linked(model._fitted_loss, raw), model._n_levels
        if model._quantiles is not None:
            shape = self.constant("shape", [0, model.n_outputs_ // n_levels, n_levels])
            values = self.call("Reshape", [values, shape], "by_level")
            operands = [values, self.constant("n_levels", [n_levels])]
            values = self.call("TopK", operands, "sorted", "order", axis=2, largest=0, sorted=1)
        return [self._without_outputs(values) if model._one_dimensional else values]

    def _classified(self, model: Any, raw: str) -> list[str]:
        """Add labels and probabilities, in the shapes of a classifier's methods."""
        linked = self._calibrated(model, raw)
        match model._classes.kind:
            case "multiclass":
                number = self.call("ArgMax", [raw], "class_number", axis=1, keepdims=0)
                joint = model._fitted_loss.has_softmax
                shares = linked if joint else self._normalised(linked, model.n_outputs_)
                return [self._named(class_values(model.classes_), number), shares]
            case "binary":
                number = self._without_outputs(self._indicator(model, raw, linked))
                both = self._both(linked)
                return [self._named(class_values(model.classes_), number), both]
            case "columns":
                return self._classified_columns(model, raw, linked)
            case _:
                return [self._indicator(model, raw, linked), linked]

    def _classified_columns(self, model: Any, raw: str, linked: str) -> list[str]:
        """Add the classes (n_rows, n_columns), and probabilities of all columns side by side."""
        labels, shares, first = [], [], 0
        for values, width in zip(column_values(model), model._classes.widths, strict=True):
            columns = self.constant("columns_of_classes", np.arange(first, first + width))
            first += width
            score = self.call("Gather", [raw, columns], "raw_of_column", axis=1)
            share = self.call("Gather", [linked, columns], "share_of_column", axis=1)
            if width == 1:
                number, share = self._indicator(model, score, share), self._both(share)
            else:
                number = self.call("ArgMax", [score], "class_number", axis=1, keepdims=1)
                if not model._fitted_loss.has_softmax:
                    share = self._normalised(share, width)
            labels.append(self._named(values, number))
            shares.append(share)
        return [
            self.call("Concat", labels, "labels_of_columns", axis=1),
            self.call("Concat", shares, "shares_of_columns", axis=1),
        ]

    def _both(self, linked: str) -> str:
        """Add the probabilities of both of two classes, for that of the second."""
        other = self.call("Sub", [self.constant("one", 1.0), linked], "other_class")
        return self.call("Concat", [other, linked], "both_classes", axis=1)

    def _indicator(self, model: Any, raw: str, linked: str) -> str:
        """Add 1 for labels with a probability above the threshold, or above one half."""
        score, limit = raw, ("zero", np.float32(0))
        if hasattr(model, "thresholds_"):
            score, limit = linked, ("thresholds", model.thresholds_.astype(np.float32))
        elif model._calibrator is not None:
            score, limit = linked, ("half", np.float32(0.5))
        present = self.call("Greater", [score, self.constant(*limit)], "present")
        return self.call("Cast", [present], "indicator", to=_INT64)

    def _named(self, classes: NDArray[Any], number: str) -> str:
        """Add the look-up of classes by number."""
        values = self.constant("classes", classes)
        return self.call("Gather", [values, number], "class", axis=0)

    def _without_outputs(self, values: str) -> str:
        """Drop the axis of the only output."""
        return self.call("Squeeze", [values, self.constant("output_axis", [1])], "single_output")

    def _normalised(self, shares: str, n_classes: int) -> str:
        """Divide shares by their sum; if all are zero, make them equal."""
        axis = self.constant("class_axis", [1])
        total = self.call("ReduceSum", [shares, axis], "total", keepdims=1)
        some = self.call("Greater", [total, self.constant("zero", 0.0)], "some")
        ratio = self.call("Div", [shares, total], "ratio")
        even = self.constant("even", 1 / n_classes)
        return self.call("Where", [some, ratio, even], "normalised")

    def _calibrated(self, model: Any, raw: str) -> str:
        """Add probabilities, those of the calibrator if there is one."""
        check_hierarchy(model)
        linked, calibrator = self._linked(model._fitted_loss, raw), model._calibrator
        if calibrator is None:
            return linked
        if not isinstance(calibrator, Sigmoids):
            problem = "calibration='isotonic' is no operator of ONNX"
            raise ValueError(f"{problem}; fit with calibration='sigmoid', or without.")
        known = ~np.isnan(calibrator.slope)
        numbers = [np.where(known, each, 0) for each in (calibrator.slope, calibrator.intercept)]
        slope, intercept = (each.astype(np.float32) for each in numbers)
        scaled = self.call("Mul", [raw, self.constant("slopes", slope)], "scaled")
        moved = self.call("Add", [scaled, self.constant("intercepts", intercept)], "moved")
        sigmoid = self.call("Sigmoid", [moved], "sigmoid")
        chosen = [self.constant("is_calibrated", known[None]), sigmoid, linked]
        return self.call("Where", chosen, "calibrated")

    def _linked(self, loss: FittedLoss, raw: str) -> str:
        """Add the link of a loss."""
        linked = []
        for facts, outputs in loss.blocks:
            values = raw
            if outputs is not None:
                columns = self.constant("columns", np.arange(*outputs))
                values = self.call("Gather", [raw, columns], "raw_of_loss", axis=1)
            link = facts.link
            options: dict[str, Any] = {"axis": 1} if link.joint else {}
            for operator, constants in link.onnx:
                operands = [self.constant(f"{link.name}_{c:g}", float(c)) for c in constants]
                values = self.call(operator, [values, *operands], "linked", **options)
            linked.append(values)
        return linked[0] if len(linked) == 1 else self.call("Concat", linked, "linked", axis=1)


def _node_columns(tree: Tree, places: Places) -> dict[str, list[Any]]:
    """Return the nodes of a tree, field by field; splits by categories take several nodes."""
    leaf = tree.left == 0
    fields = {
        "nodeids": np.arange(len(leaf)),
        "featureids": np.where(leaf, 0, places[np.where(leaf, 0, tree.feature)]),
        "modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
        "values": np.where(leaf, 0, tree.threshold),
        "truenodeids": np.where(leaf, 0, tree.left),
        "falsenodeids": np.where(leaf, 0, tree.left + 1),
        "missing_value_tracks_true": np.where(leaf, 0, tree.missing_left),
    }
    columns = {name: values.tolist() for name, values in fields.items()}
    for node, categories in enumerate(tree.categories):
        if categories is not None:
            _chain(columns, node, categories)
    return columns


def _chain(columns: dict[str, list[Any]], node: int, categories: NDArray[Any]) -> None:
    """Replace a split by categories by one comparison after the other.

    Values that equal none of the categories, such as NaN, go where missing values go::

        x ≠ 3 ─false─────────────┬─ child of the categories 3, 5
          └true── x = 5 ─true────┘
                    └false───────── child of all others

    The first comparison is another one than those that follow: onnxruntime makes one set of all
    neighbours that ask for equality, also of two splits by the same feature, one below the other.
    """
    missing_left = columns["missing_value_tracks_true"][node]
    left, right = columns["truenodeids"][node], columns["falsenodeids"][node]
    equal, other = (right, left) if missing_left else (left, right)
    # NaN equals nothing.
    values = categories.astype(np.float32).tolist() or [np.nan]
    first = len(columns["nodeids"])
    numbers = [node, *range(first, first + len(values) - 1)]
    feature = columns["featureids"][node]
    for column in columns.values():
        column += [None] * (len(values) - 1)
    for number, value, below in zip(numbers, values, [*numbers[1:], other], strict=True):
        fields: tuple[Any, ...] = number, feature, "BRANCH_EQ", value, equal, below, 0
        if number == node:
            fields = number, feature, "BRANCH_NEQ", value, below, equal, 0
        for column, each in zip(columns.values(), fields, strict=True):
            column[number] = each


def _check_tables(model: Any) -> None:
    """Refuse categories that single precision cannot tell apart."""
    for j, table in model._progress.categories.tables.items():
        if len(np.unique(table.astype(np.float32))) < len(table):
            what = "has categories that are equal in single precision, which ONNX uses for features"
            raise ValueError(f"Column {feature_label(model, j)} {what}; number them from 0.")


def column_values(model: Any) -> list[NDArray[Any]]:
    """Return the classes of each of several columns, which must have one type in ONNX."""
    columns = [class_values(values) for values in model.classes_]
    if len({values.dtype for values in columns}) > 1:
        problem = (
            "The columns have classes of different types, which one output of ONNX cannot hold"
        )
        raise ValueError(f"{problem}; fit on classes that are all text, or all whole numbers.")
    return columns


def class_values(classes: NDArray[Any]) -> NDArray[Any]:
    """Return classes as an array of a type that ONNX has."""
    values = np.asarray(classes)
    if values.dtype.kind in "iu":
        if int(values.max()) not in INT64:
            problem = f"The classes have the number {values.max()}, beyond the integers of ONNX"
            raise ValueError(f"{problem}; fit on numbers below 2**63, or on text.")
        return values.astype(np.int64)
    if values.dtype.kind == "b" or values.dtype in (np.float32, np.float64):
        return values
    if values.dtype == np.float16:  # for which skl2onnx has no type
        return values.astype(np.float32)
    if not all(isinstance(value, str) for value in values):
        problem = f"The classes have the type {type(values[0]).__name__}, which ONNX does not know"
        raise ValueError(f"{problem}; fit on classes of text or numbers.")
    return values.astype(object)
