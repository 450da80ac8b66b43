"""A fitted estimator as an ONNX model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from manyboost import _core
from manyboost.export.graph import INT64, ML, OPSETS, Graph, Places, class_values, column_values
from manyboost.export.trees import feature_label
from manyboost.extras import import_extra
from manyboost.persistence.files import FilePath, replacing

# The version of the file format, as old as those of the operators.
IR_VERSION = 8

# Name, type and shape of an input or output; None stands for any number of rows.
Variable = tuple[str, Any, list[int | None]]


def to_onnx(model: Any, path: FilePath | None = None) -> Any:
    """Return the model (onnx.ModelProto), and write it to a file if a path is given."""
    onnx = import_extra("onnx", "to_onnx", "onnx")
    model._built_in_trees("to_onnx")
    outputs = output_variables(model)
    result_names = [name for name, _, _ in outputs]
    graph = Graph("X", "offset", *result_names)
    inputs, features, places = _read_features(graph, model)
    offset = "offset" if model._with_offset else None
    if offset is not None:
        inputs.append((offset, np.float32, [None, model.n_outputs_ // model._n_levels]))
    raw = graph.raw_predictions(model, features, offset, places)
    graph.results(model, raw, result_names)
    proto = _assembled(onnx, graph, inputs, outputs)
    names = {"feature_names": "feature_names_in_", "output_names": "output_names_"}
    names["target_names"] = "target_names_"
    known = {key: getattr(model, name) for key, name in names.items() if hasattr(model, name)}
    onnx.helper.set_model_props(
        proto, {key: json.dumps(each.tolist()) for key, each in known.items()}
    )
    if path is not None:
        with replacing(path) as file:
            file.write(proto.SerializeToString())
    return proto


def output_variables(model: Any) -> list[Variable]:
    """Return the outputs of the exported model: those of the estimator, in single precision."""
    d = model.n_outputs_
    if is_classifier(model):
        kind = model._classes.kind
        labels: Variable = ("labels", np.int64, [None, d])
        if kind == "columns":
            labels = ("labels", column_values(model)[0].dtype, [None, len(model.classes_)])
            return [labels, ("probabilities", np.float32, [None, sum(model.n_classes_)])]
        if kind != "multilabel":
            labels = ("labels", class_values(model.classes_).dtype, [None])
        return [labels, ("probabilities", np.float32, [None, 2 if kind == "binary" else d])]
    shape: list[int | None] = [None] if model._one_dimensional else [None, d // model._n_levels]
    if model._quantiles is not None:
        shape.append(model._n_levels)
    return [("predictions", np.float32, shape)]


def _read_features(graph: Graph, model: Any) -> tuple[list[Variable], str, Places]:
    """Return the inputs, one array of all features, and the column of each feature in it.

    Columns that held labels in fit are separate inputs: by their names, or x0, x1, … by their
    numbers. The others are one input, in double precision if the model needs it.
    """
    p = model.n_features_in_
    labels_of = model._category_labels.of_column
    numbers = [j for j in range(p) if j not in labels_of]
    places = np.full(p, -1, np.intp)
    places[numbers] = np.arange(len(numbers))
    names = getattr(model, "feature_names_in_", None)
    inputs: list[Variable] = []
    parts: list[str] = []
    if numbers:
        dtype = np.float64 if model._progress.categories.cuts else np.float32
        inputs = [("X", dtype, [None, len(numbers)])]
        parts, places = graph.in_single(model, "X", places)
    n_columns = len(numbers) + len(parts[1:])  # those of parts beside the first have one column
    for number, (j, labels) in enumerate(labels_of.items()):
        name = graph.unique(f"x{j}" if names is None else str(names[j]))
        encoding, dtype = _encoding(model, j, labels)
        inputs.append((name, dtype, [None, 1]))
        codes = model._progress.categories.grouped.get(j, range(len(labels)))
        values = list(map(float, codes)) or [np.nan]
        encoding |= {"values_floats": values, "default_float": np.nan}
        parts.append(graph.call("LabelEncoder", [name], "codes", domain=ML, **encoding))
        places[j] = n_columns + number
    features = parts[0] if len(parts) == 1 else graph.call("Concat", parts, "features", axis=1)
    return inputs, features, places


def _encoding(model: Any, j: int, labels: tuple[Any, ...]) -> tuple[dict[str, Any], Any]:
    """Return the keys of the encoder of a column of labels, and the type of the column."""
    if all(isinstance(label, str) for label in labels):
        # (An encoder has one key at least, of a column that was all missing too.)
        return {"keys_strings": list(labels) or [""]}, np.dtype(object)
    if all(isinstance(label, int | np.integer) and int(label) in INT64 for label in labels):
        return {"keys_int64s": [int(label) for label in labels]}, np.int64
    what = "has categories that are neither text nor 64-bit integers, which ONNX cannot look up"
    raise ValueError(f"Column {feature_label(model, j)} {what}; fit on text.")


def tensor(onnx: Any, name: str, values: NDArray[Any]) -> Any:
    """Return a constant (onnx.TensorProto)."""
    return onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)


def _assembled(onnx: Any, graph: Graph, inputs: list[Variable], outputs: list[Variable]) -> Any:
    helper = onnx.helper

    def declared(variable: Variable) -> Any:
        name, dtype, shape = variable
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        sizes = ["rows" if n is None else n for n in shape]
        return helper.make_tensor_value_info(name, kind, sizes)

    nodes = [
        helper.make_node(*call, domain=domain, **attributes)
        for *call, domain, attributes in graph.operators
    ]
    constants = [tensor(onnx, name, values) for name, values in graph.constants.items()]
    variables = list(map(declared, inputs)), list(map(declared, outputs))
    body = helper.make_graph(nodes, "manyboost", *variables, constants)
    return helper.make_model(
        body,
        opset_imports=[helper.make_opsetid(domain, n) for domain, n in OPSETS.items()],
        ir_version=IR_VERSION,
        producer_name="manyboost",
        producer_version=_core.__version__,
    )
