"""Exporting: the model for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from manyboost.estimators.base import Model


class Exporting(Model):
    """The formats that a fitted estimator can be turned into."""

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """Return the model in the ONNX format, which onnxruntime and others run.

        It takes the dense features ``X`` as one float32 array (n_rows, n_features) and gives, for
        a regressor, ``predictions`` as ``predict`` does; for a classifier ``labels`` as
        ``predict`` and ``probabilities`` as ``predict_proba`` do. Rows end in the same
        leaves; sums and links are computed in single precision. NaN is a missing value.

        If the model was fitted with an offset, there is a second input, ``offset``, of shape
        (n_rows, n_outputs). If it was fitted on a frame with columns of labels, each of these is an
        input of its own, under its name and of shape (n_rows, 1), and ``X`` holds the other columns
        in their order. What is no known label counts as missing.

        Trees of ``strategy="project"`` stay compact: a value for each leaf, then a product with
        the steps. Vector leaves of ``"multioutput"`` and ``"relabel"`` take about 12 bytes for
        each leaf and output.

        Parameters
        ----------
        path : str or Path, optional
            File to write the model to.

        Returns
        -------
        onnx.ModelProto
            It needs the extra ``onnx``: ``pip install 'manyboost[onnx]'``.

        See Also
        --------
        manyboost.export.register_skl2onnx : Export pipelines that hold estimators of manyboost.
        """
        from manyboost.export.onnx import to_onnx

        check_is_fitted(self, "n_iter_")
        return to_onnx(self, path)

    def to_treelite(self, *, raw: bool = False) -> Any:
        """Return the model as a treelite model, for its compilers and for GPU inference.

        It predicts arrays (n_rows, n_outputs, 1), or (n_rows, 1, n_classes) for more than two
        classes, in single precision: what :meth:`predict` gives for a regressor, probabilities for
        a classifier, of the second class where there are two. Pass dense features: treelite takes
        what a sparse matrix does not store for missing. Categories must be whole numbers from 0;
        columns of labels are the places of the labels in sorted order, −1 or NaN where missing.

        Leaves are vectors of all outputs, also for ``strategy="project"``, which is compact in
        ONNX (:meth:`to_onnx`).

        Parameters
        ----------
        raw : bool
            Raw predictions, without offset and link. It is the only way for what treelite has no
            link for: a list of losses, a list of quantiles, squared error in classification,
            exponential loss with more than two classes, and models with an offset.

        Returns
        -------
        treelite.Model
            It needs the extra ``treelite``: ``pip install 'manyboost[treelite]'``.
        """
        from manyboost.export.treelite import to_treelite

        check_is_fitted(self, "n_iter_")
        return to_treelite(self, raw=raw)
