"""Pipelines that end in an estimator of manyboost, through skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.export.graph import ML, Graph
from manyboost.export.onnx import output_variables, tensor
from manyboost.export.trees import feature_label
from manyboost.extras import import_extra

# The first version in which Squeeze and ReduceSum take axes as an input.
MIN_OPSET = 13
# Names that skl2onnx gives to the outputs of its own estimators.
_NAMES = {"labels": "label", "probabilities": "probabilities", "predictions": "variable"}


def register_skl2onnx() -> None:
    """Teach skl2onnx to convert the estimators of manyboost.

    After that ``skl2onnx.to_onnx`` and ``convert_sklearn`` export whole pipelines, with scalers,
    encoders and imputers. Outputs have the names that skl2onnx uses, ``variable`` or ``label`` and
    ``probabilities``, and are always arrays (``zipmap`` is off). Steps before the model also run in
    single precision, so that a value very close to a threshold may go the other way.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from manyboost import ManyBoostRegressor
    >>> from manyboost.export import register_skl2onnx
    >>> X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    >>> model = make_pipeline(StandardScaler(), ManyBoostRegressor(max_iter=5)).fit(X, X)
    >>> register_skl2onnx()
    >>> import skl2onnx
    >>> [output.name for output in skl2onnx.to_onnx(model, X[:1]).graph.output]
    ['variable']
    """
    skl2onnx = import_extra("skl2onnx", "register_skl2onnx", "onnx")
    for each, options in ((ManyBoostRegressor, None), (ManyBoostClassifier, {"zipmap": [False]})):
        steps = _set_shapes, _convert, True, _declare_outputs, options
        skl2onnx.update_registered_converter(each, each.__name__, *steps)


def _declare_outputs(scope: Any, model: Any, inputs: list[Any], **_: Any) -> list[Any]:
    operator = scope.declare_local_operator(type(model).__name__, model)
    operator.inputs = inputs
    for name, dtype, shape in output_variables(model):
        operator.outputs.append(scope.declare_local_variable(_NAMES[name], _type(dtype, shape)))
    return list(operator.outputs)


def _set_shapes(operator: Any) -> None:
    rows = operator.inputs[0].get_first_dimension()
    variables = output_variables(operator.raw_operator)
    for output, (_, dtype, shape) in zip(operator.outputs, variables, strict=True):
        output.set_type(_type(dtype, [rows, *shape[1:]]))


def _type(dtype: Any, shape: list[Any]) -> Any:
    types = import_extra("skl2onnx.common.data_types", "register_skl2onnx", "onnx")
    names = {"float32": "Float", "float64": "Double", "int64": "Int64", "bool": "Boolean"}
    return getattr(types, f"{names.get(np.dtype(dtype).name, 'String')}TensorType")(shape)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of a model to that of the pipeline."""
    onnx = import_extra("onnx", "register_skl2onnx", "onnx")
    model = operator.raw_operator
    _check(model, container, operator.inputs)
    inputs = [each.onnx_name for each in operator.inputs]
    outputs = [each.onnx_name for each in operator.outputs]
    graph = Graph(*inputs, *outputs)
    kind = onnx.TensorProto.DOUBLE if model._progress.categories.cuts else onnx.TensorProto.FLOAT
    numbers = [graph.call("Cast", [name], "numbers", to=kind) for name in inputs]
    parts, places = graph.in_single(model, _joined(graph, numbers), np.arange(model.n_features_in_))
    raw = graph.raw_predictions(model, _joined(graph, parts), None, places)
    graph.results(model, raw, outputs)
    # Names are unique in the graph; here they must be unique in the pipeline.
    inner = [*graph.constants, *(name for each in graph.operators for name in each.outputs)]
    renamed = {name: scope.get_unique_variable_name(name) for name in inner if name not in outputs}
    renamed |= {name: name for name in (*inputs, *outputs)}
    for name, values in graph.constants.items():
        kind = tensor(onnx, name, values).data_type
        container.add_initializer(renamed[name], kind, list(values.shape), values.ravel())
    for kind, *ends, domain, attributes in graph.operators:
        sources, results = ([renamed[name] for name in names] for names in ends)
        name = scope.get_unique_operator_name(f"manyboost_{kind}")
        # The attributes of trees are those of the first version.
        first = 2 if kind == "LabelEncoder" else 1
        version = {"op_domain": domain, "op_version": first if domain == ML else None}
        container.add_node(kind, sources, results, name=name, **version, **attributes)


def _joined(graph: Graph, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else graph.call("Concat", parts, "features", axis=1)


def _check(model: Any, container: Any, inputs: list[Any]) -> None:
    """Refuse models that a pipeline cannot hold."""
    model._built_in_trees("A pipeline")
    if model._with_offset:
        problem = "The model was fitted with an offset, for which a pipeline has no input"
        raise ValueError(f"{problem}; export it with its method to_onnx.")
    for j in model._category_labels.of_column:
        what = f"Column {feature_label(model, j)} held labels in fit, but a pipeline passes numbers"
        remedy = "put an OrdinalEncoder before the model, or export it with its method to_onnx."
        raise ValueError(f"{what}; {remedy}")
    for j in model._progress.categories.cuts:
        if any(type(each.type).__name__ == "FloatTensorType" for each in inputs):
            what = f"Column {feature_label(model, j)} has different values that are equal in single"
            remedy = "declare the inputs as doubles (DoubleTensorType)."
            raise ValueError(f"{what} precision; {remedy}")
    if container.target_opset_onnx < MIN_OPSET:
        problem = f"target_opset={container.target_opset_onnx} is too old for this model"
        raise ValueError(f"{problem}; it must be at least {MIN_OPSET}.")
