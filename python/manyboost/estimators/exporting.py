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
        a regressor, ``predictions`` as :meth:`predict` does; for a classifier ``labels`` as
        :meth:`predict` and ``probabilities`` as :meth:`predict_proba` do. Rows end in the same
        leaves; sums and links are computed in single precision. NaN is a missing value.

        If the model was fitted with an offset, there is a second input, ``offset``, of shape
        (n_rows, n_outputs). If it was fitted on a frame with columns of labels, each of these is an
        input of its own, under its name and of shape (n_rows, 1), and ``X`` holds the other columns
        in their order. What is no known label counts as missing.

        Trees of ``strategy="project"`` stay compact: a value for each leaf, then a product with
        the steps. Vector leaves of ``"multioutput"`` and ``"relabel"`` take about 10 bytes for
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
