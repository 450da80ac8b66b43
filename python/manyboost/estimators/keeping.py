"""Keeping models: model files, pickles and copies, and the formats of other runtimes."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from typing_extensions import Self

    from manyboost.persistence.info import ModelInfo


class Keeping(BaseEstimator):
    """The forms in which a fitted estimator is kept.

    It is pickled as its parameters and the bytes of its model file, which depend on no class of
    this package but the estimator's own. If its file would leave something out, such as a loss in
    Python, it is pickled as its attributes.
    """

    def save(self, path: str | os.PathLike[str] | BinaryIO, *, records: str = "auto") -> None:
        """Write the fitted model to a file, which :func:`manyboost.load` reads.

        The file holds what predictions and warm starts need, and no code. A model with another
        ``estimator``, or with a :class:`~manyboost.Loss` that has its own ``inverse_link``, is
        refused. A callable ``projection`` or ``scoring``, another :class:`~manyboost.Loss`,
        ``callbacks`` and a RandomState are left out: fit refuses the loaded model until they are
        set again, and :meth:`info` lists them. The same model gives the same bytes.

        Parameters
        ----------
        path : path or binary file
            Where to write. An existing file is replaced, unless there is an error. A file that is
            open, such as an ``io.BytesIO``, is written to.
        records : {"auto", "all"}
            ``"auto"``: a model of ``strategy="project"``, whose trees are small, leaves out
            importances and validation curves by output that would make its file larger than
            4 × (6 × nodes + trees × n_outputs) + 65,536 bytes. ``"all"``: nothing is left out.
        """
        from manyboost import persistence

        persistence.save(self, path, records)

    def info(self) -> ModelInfo:
        """Return strategy, shape, size, versions and parameters of the fitted model, as a dict."""
        from manyboost.persistence.info import model_info

        return model_info(self)

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """Return the model in the ONNX format, which onnxruntime and others run.

        The input ``X`` is a dense float32 array (n_rows, n_features), in which NaN is a missing
        value; float64 if a feature needs double precision, such as Unix seconds. A regressor has
        the output ``predictions``, as ``predict`` returns them. A classifier has the outputs
        ``labels`` and ``probabilities``, as ``predict`` and ``predict_proba`` return them;
        probabilities of several columns of classes are side by side. Rows end in the same leaves;
        sums and links are computed in single precision.

        A model fitted with an offset has a second input, ``offset``, of shape (n_rows, n_outputs).
        If the model was fitted on a frame with columns of labels, each of these columns is a
        separate input with its name (x0, x1, … by its number, if columns have no names), of shape
        (n_rows, 1), and ``X`` holds the other columns in their order. Unknown labels count as
        missing. Trees of ``strategy="project"`` stay compact. Models with
        ``calibration="isotonic"``, ``label_hierarchy`` or ``max_leaf_outputs`` are refused, and
        classifiers with a loss of your own.

        Parameters
        ----------
        path : str or Path, optional
            File to write the model to; an existing file is replaced.

        Returns
        -------
        onnx.ModelProto
            This needs the extra ``onnx``: ``pip install 'manyboost[onnx]'``.

        See Also
        --------
        manyboost.export.register_skl2onnx : Export pipelines with estimators of manyboost.
        """
        from manyboost.export.onnx import to_onnx

        check_is_fitted(self, "n_iter_")
        return to_onnx(self, path)

    def to_treelite(self, *, raw: bool = False) -> Any:
        """Return the model as a treelite model, for its compilers and for inference on GPUs.

        It predicts arrays (n_rows, n_outputs, 1), or (n_rows, 1, n_classes) for more than two
        classes, in single precision: predictions of a regressor, and probabilities of a classifier;
        of two classes, only the probability of the second. Pass dense features: treelite treats the
        implicit zeros of a sparse matrix as missing. Categories must be integers from 0; pass a
        column of labels as positions in the sorted labels, with −1 or NaN for missing ones. From
        other numbers treelite drops the fraction: it reads 2.5 as category 2, where ``predict``
        treats it as unknown; pass NaN. Leaves hold a value for each output; :meth:`to_onnx` keeps
        ``strategy="project"`` compact.

        Parameters
        ----------
        raw : bool
            Export raw predictions, without offset and link. Required where treelite has no link:
            lists of losses or quantiles, several columns of classes, squared error in
            classification, exponential loss with more than two classes, ``calibration``,
            ``label_hierarchy``, and models with an offset.

        Returns
        -------
        treelite.Model
            This needs the extra ``treelite``: ``pip install 'manyboost[treelite]'``.
        """
        from manyboost.export.treelite import to_treelite

        check_is_fitted(self, "n_iter_")
        return to_treelite(self, raw=raw)

    def __getstate__(self) -> dict[str, Any]:
        from manyboost import persistence

        state: dict[str, Any] = super().__getstate__()
        content = persistence.complete_file(self) if "_progress" in state else None
        if content is None:
            return state
        kept = {name: each for name, each in state.items() if name not in persistence.STORED}
        return kept | {"_model_file": content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from manyboost import persistence

        state = dict(state)
        if (content := state.pop("_model_file", None)) is not None:
            fitted = vars(persistence.from_bytes(content))
            state |= {name: fitted[name] for name in persistence.STORED & fitted.keys()}
        super().__setstate__(state)

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(vars(self))
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo[id(self)] = type(self).__new__(type(self))
        copied.__dict__.update(deepcopy(vars(self), memo))
        return copied
