"""Exporting models to other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from manyboost.estimators.base import Model


class Exporting(Model):
    """The formats that a fitted estimator can be exported to."""

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """Return the model in the ONNX format, which onnxruntime and others run.

        The input ``X`` is a dense float32 array (n_rows, n_features), in which NaN is a missing
        value. A regressor has the output ``predictions``, as ``predict`` returns them. A classifier
        has the outputs ``labels`` and ``probabilities``, as ``predict`` and ``predict_proba``
        return them. Rows end in the same leaves; sums and links are computed in single precision.

        A model fitted with an offset has a second input, ``offset``, of shape (n_rows, n_outputs).
        If the model was fitted on a frame with columns of labels, each of these columns is a
        separate input with its name, of shape (n_rows, 1), and ``X`` holds the other columns in
        their order. Unknown labels count as missing.

        Trees of ``strategy="project"`` stay compact: one value for each leaf, multiplied by the
        steps. Vector leaves of ``"multioutput"`` and ``"relabel"`` take about 12 bytes for each
        leaf and output.

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
        """Return the model as a treelite model, for its compilers and for GPU inference.

        It predicts arrays (n_rows, n_outputs, 1), or (n_rows, 1, n_classes) for more than two
        classes, in single precision: predictions of a regressor, and probabilities of a classifier;
        of two classes, only the probability of the second. Pass dense features: treelite treats the
        implicit zeros of a sparse matrix as missing. Categories must be integers from 0; pass a
        column of labels as positions in the sorted labels, with −1 or NaN for missing ones.

        Leaves hold a value for each output, also with ``strategy="project"``; :meth:`to_onnx` keeps
        the compact form.

        Parameters
        ----------
        raw : bool
            Export raw predictions, without offset and link. Required for models that treelite has
            no link for: a list of losses, a list of quantiles, squared error in classification,
            exponential loss with more than two classes, and models with an offset.

        Returns
        -------
        treelite.Model
            This needs the extra ``treelite``: ``pip install 'manyboost[treelite]'``.
        """
        from manyboost.export.treelite import to_treelite

        check_is_fitted(self, "n_iter_")
        return to_treelite(self, raw=raw)
