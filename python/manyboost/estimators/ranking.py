"""The best labels of each row, and the raw predictions that leaves have values for."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from manyboost import _core
from manyboost.arrays import F64
from manyboost.data.features import for_kernels
from manyboost.data.hierarchy import Hierarchy
from manyboost.data.labels import Classes
from manyboost.estimators.elsewhere import explained
from manyboost.estimators.structure import Structure
from manyboost.threads import resolve_threads
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.strategies import SPARSE_TREES


class Ranking(Structure):
    """What a classifier says of very many labels."""

    classes_: Any
    n_classes_: Any
    _classes: Classes
    _hierarchy: Hierarchy | None

    @explained
    def predict_top_k(self, X: Any, k: int, *, offset: Any = None) -> tuple[NDArray[Any], F64]:
        """Return the k best labels or classes of each row, best first, and their scores.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        k : int
            How many, at most the number of labels or classes.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.

        Returns
        -------
        labels, scores : ndarray of shape (n_rows, k)
            Entries of ``classes_``, and their :meth:`decision_function`; the first of two classes
            has the negative of it. Equal scores are in the order of ``classes_``. With
            ``label_hierarchy`` a label comes after those above it.
        """
        check_is_fitted(self, "n_iter_")
        self._refuse_columns("predict_top_k", "predict_proba")
        whole, most = isinstance(k, int | np.integer) and not isinstance(k, bool), self.n_classes_
        if not whole or not 1 <= k <= most:
            allowed = f"an integer from 1 to {most}, the number of labels or classes"
            raise ValueError(f"k={k!r} is not allowed; it must be {allowed}.")
        model = self._progress.model
        is_plain = self._classes.kind != "binary" and self._hierarchy is None
        is_plain = is_plain and not self._with_offset and offset is None
        if is_plain and isinstance(model, TreeEnsemble):
            table = for_kernels(self._checked_X(X))
            pool = _core.Pool(resolve_threads(self.n_jobs))
            best, scores = model.trees.top_k(pool, table, self.n_iter_, self.baseline_, int(k))
            return self.classes_[best], scores

        def ranked(raw: F64) -> NDArray[Any]:
            return np.stack(self._ranked(raw, k), axis=1)

        pairs = self._predicted(X, ranked, offset=offset, in_blocks=True)
        return self.classes_[pairs[:, 0].astype(np.intp)], pairs[:, 1]

    def _ranked(self, raw: F64, k: int) -> tuple[NDArray[np.intp], F64]:
        """Return the places of the k best labels or classes of each row, and their scores.

        Of equals the first is better; labels come after those above them.
        """
        is_binary, hierarchy = self._classes.kind == "binary", self._hierarchy
        scores = np.hstack([-raw, raw]) if is_binary else self._decision(raw)
        columns = np.arange(scores.shape[1]) if hierarchy is None else hierarchy.order
        order = columns[np.argsort(-scores[:, columns], axis=1, kind="stable")[:, :k]]
        return order, np.take_along_axis(scores, order, axis=1)

    def _refuse_columns(self, method: str, remedy: str) -> None:
        if self._classes.kind == "columns":
            what = f"several columns of classes, of which this model predicts {len(self.classes_)}"
            raise ValueError(f"{method} is not for {what}; use {remedy}.")

    @abstractmethod
    def _decision(self, raw: F64) -> F64:
        """Return the values of the decision function for raw predictions."""

    def _support(self, X: Any, *, offset: Any, outputs: Any, dtype: DTypeLike) -> Any:
        """Raw predictions of the outputs that leaves have values for, as a CSR matrix."""
        self._check_fitted()
        if offset is not None or outputs is not None:
            given = "offset" if outputs is None else "outputs"
            raise ValueError(f"sparse_output=True does not go with {given}; leave it out.")
        trees = self._built_in_trees("sparse_output", any_leaves=True)
        if trees.kind != SPARSE_TREES:
            raise ValueError(
                "sparse_output=True needs leaves of a few outputs, but those of this model have "
                "values for all; fit with max_leaf_outputs, or use sparse_output=False."
            )
        _, type_ = self._check_request(None, dtype)
        X = self._checked_X(X)
        pool = _core.Pool(resolve_threads(self.n_jobs))
        starts, places, raw = trees.support(pool, for_kernels(X), self.n_iter_, self.baseline_)
        shape = X.shape[0], self.n_outputs_
        return sparse.csr_array((raw.astype(type_, copy=False), places, starts), shape=shape)
