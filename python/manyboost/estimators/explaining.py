"""Explaining predictions: Shapley values, and the similarity of outputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyboost import _core, memory
from manyboost.arrays import F64
from manyboost.data.features import for_kernels
from manyboost.data.named import densified
from manyboost.estimators.predicting import Predicting
from manyboost.inspection import cosines, output_products
from manyboost.threads import resolve_threads
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.strategies import SPARSE_TREES, STRATEGIES

_EXPLAIN_LESS = "ask for fewer rows at a time, or for some outputs"


class Explaining(Predicting):
    """The methods of an estimator that explain its predictions."""

    def shap_values(self, X: Any, outputs: Any = None) -> F64:
        """Return Shapley values: the contribution of each feature to the raw predictions of a row.

        They are exact (path-dependent TreeSHAP): if a feature is unknown, a split on it follows
        both branches, weighted by their training rows. The sum over the features plus
        ``expected_value_`` is the raw prediction without the offset (for quantiles, before
        sorting): that of ``predict`` for squared error, of ``decision_function`` for classifiers.
        Explaining all outputs at once costs far less than one after the other.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        outputs : list of str or int, optional
            Names or numbers of the outputs to explain, in the order of the result; None: all.

        Returns
        -------
        ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_outputs)
            The former for models with one output. A list of quantiles adds an axis at the end.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_regression
        >>> from manyboost import ManyBoostRegressor
        >>> X, Y = make_regression(n_samples=500, n_targets=8, random_state=0)
        >>> model = ManyBoostRegressor(random_state=0).fit(X, Y)
        >>> values = model.shap_values(X[:5])
        >>> values.shape
        (5, 100, 8)
        >>> total = values.sum(axis=1) + model.expected_value_
        >>> bool(np.allclose(total, model.predict(X[:5]), rtol=1e-4))
        True
        """
        places, _ = self._check_request(outputs, np.float64)
        part, n_outputs = self._explained_part("shap_values", places)
        X = self._checked_X(X)
        n_rows, p = X.shape
        shape = n_rows, p, n_outputs
        what = f"Explaining {n_rows:,} rows by {p:,} features for {n_outputs:,} outputs"
        memory.check(8 * math.prod(shape), what, _EXPLAIN_LESS)
        with memory.explaining(what, _EXPLAIN_LESS):
            values = np.zeros(shape)
            pool = _core.Pool(resolve_threads(self.n_jobs))
            part.add_shap_values(pool, for_kernels(X), values.reshape(n_rows, -1))
        return self._by_output(values)

    def shap_interaction_values(self, X: Any, outputs: Any = None) -> F64:
        """Return Shapley interaction values: contributions of pairs of features, and of each alone.

        They are exact, with unknown features as in :meth:`shap_values`. The value of two different
        features is half of their joint effect, beyond that of each alone, so the matrix of a row is
        symmetric. The diagonal is the rest of the contribution of a feature. The sum over either
        axis of features gives :meth:`shap_values`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features; a few rows at a time, since there is a number for each pair of features.
        outputs : list of str or int, optional
            Names or numbers of the outputs to explain, in the order of the result; None: all.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_features[, n_outputs])
            Without the last axis for models with one output. A list of quantiles adds an axis at
            the end.

        Examples
        --------
        >>> import numpy as np
        >>> from manyboost import ManyBoostRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 2]])
        >>> model = ManyBoostRegressor(random_state=0).fit(X, Y)
        >>> pairs = model.shap_interaction_values(X[:50])
        >>> pairs.shape
        (50, 3, 3, 2)
        >>> np.allclose(pairs.sum(axis=2), model.shap_values(X[:50]))
        True
        >>> together = np.abs(pairs).mean(axis=0)
        >>> bool(together[0, 1, 0] > 5 * together[0, 2, 0])
        True
        """
        places, _ = self._check_request(outputs, np.float64)
        part, n_outputs = self._explained_part("shap_interaction_values", places)
        X = self._checked_X(X)
        n_rows, p = X.shape
        shape = n_rows, p, p, n_outputs
        what = f"Explaining {n_rows:,} rows by pairs of {p:,} features for {n_outputs:,} outputs"
        memory.check(8 * math.prod(shape), what, _EXPLAIN_LESS)
        with memory.explaining(what, _EXPLAIN_LESS):
            values, table = np.zeros(shape), for_kernels(X)
            pool = _core.Pool(resolve_threads(self.n_jobs))
            part.add_shap_interactions(pool, table, values.reshape(n_rows, -1))
            alone = np.zeros((n_rows, p, n_outputs))
            part.add_shap_values(pool, table, alone.reshape(n_rows, -1))
            for j in range(p):
                values[:, j + 1 :, j] = values[:, j, j + 1 :]
            diagonal = np.arange(p)
            values[:, diagonal, diagonal] = alone - values.sum(axis=2)
        return self._by_output(values)

    @property
    def expected_value_(self) -> Any:
        """Raw predictions if no feature is known: each tree's mean over the training rows."""
        check_is_fitted(self, "n_iter_")
        model = self._built_in_trees("expected_value_", AttributeError, any_leaves=True)
        value = self._by_output(self.baseline_ + model.expected())
        return float(value) if value.ndim == 0 else value

    def shap_explanation(self, X: Any, outputs: Any = None) -> Any:
        """Return Shapley values as an object for the plots of the ``shap`` package.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        outputs : list of str or int, optional
            Names or numbers of the outputs to explain; None: all.

        Returns
        -------
        shap.Explanation
            The values of :meth:`shap_values`, with one axis for the outputs; ``[..., j]`` explains
            output j. Categories are shown as their codes.
        """
        try:
            import shap
        except ImportError:
            raise ImportError(
                "shap_explanation needs the package shap; install it with "
                "`pip install 'manyboost[shap]'`, or use shap_values."
            ) from None
        places, _ = self._check_request(outputs, np.float64)
        values = self.shap_values(X, outputs)
        expected = np.asarray(self.expected_value_)
        expected = expected if places is None else expected[places]
        several = expected.ndim > 0
        if several:
            values, expected = values.reshape(*values.shape[:2], -1), expected.ravel()
        names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        return shap.Explanation(
            values,
            base_values=np.broadcast_to(expected, values[:, 0].shape).copy(),
            data=densified(self._checked_X(X)).astype(np.float64),
            feature_names=[str(name) for name in names],
            output_names=self._explained_names(places) if several else None,
        )

    def output_similarity(self) -> F64:
        """Return how similarly the trees change the outputs.

        What the trees add to an output is a vector with an entry for every leaf of every tree. The
        similarity of two outputs is the cosine of their vectors, where the entries of each tree are
        centred and weighted by the training rows in the leaf: 1 if trees change two outputs in
        proportion, −1 if they change them in opposite directions, 0 if the changes are unrelated.
        With ``strategy="independent"`` outputs share no trees, and the result is the identity.

        Returns
        -------
        ndarray of shape (n_outputs_, n_outputs_)
            Symmetric, with 1 on the diagonal; 0 elsewhere for an output that no tree changes.

        Examples
        --------
        >>> from manyboost import ManyBoostRegressor
        >>> from manyboost.datasets import make_friedman1_group
        >>> X, Y = make_friedman1_group(n_rows=300, n_outputs=3, random_state=0)
        >>> model = ManyBoostRegressor(random_state=0).fit(X, Y)
        >>> bool(model.output_similarity().min() > 0.8)
        True
        """
        check_is_fitted(self, "n_iter_")
        model = self._built_in_trees("output_similarity")
        if not STRATEGIES[self.strategy_].shares_trees:
            return np.eye(self.n_outputs_)
        return cosines(output_products(model, self.n_outputs_))

    def _explained_names(self, places: list[int] | None) -> list[str]:
        """Return the names of the outputs of the model, for all or some outputs of y."""
        names = self._known_names()
        if names is None:
            names = [f"y{j}" for j in range(self.n_outputs_ // self._n_levels)]
        names = names if places is None else [names[j] for j in places]
        if self._quantiles is None:
            return names
        return [f"{name}, {level!r}-quantile" for name in names for level in self._quantiles]

    def _explained_part(self, what: str, places: list[int] | None) -> tuple[_core.Ensemble, int]:
        """Return the trees for all or some outputs of y, and the number of outputs they have."""
        model, columns = self._built_in_trees(what), self._columns_of(places)
        if columns is None:
            return model, self.n_outputs_
        return model.of_outputs(columns), len(columns)

    def _columns_of(self, places: list[int] | None) -> list[int] | None:
        """Return the outputs of the model for outputs of y: all levels of a list of quantiles."""
        n = self._n_levels
        return None if places is None else [j * n + level for j in places for level in range(n)]

    def _by_output(self, values: F64) -> F64:
        """Reshape the last axis, the outputs of the model, as predictions are shaped."""
        if self._quantiles is None:
            return values[..., 0] if self._is_single() else values
        values = values.reshape(*values.shape[:-1], -1, self._n_levels)
        return values[..., 0, :] if self._is_single() else values

    def _built_in_trees(
        self, what: str, error: type[Exception] = ValueError, *, any_leaves: bool = False
    ) -> _core.Ensemble:
        """Return the trees; refuse models of others, and of leaves with values for a few outputs.

        With ``any_leaves`` the latter are welcome.
        """
        model = self._progress.model
        if isinstance(model, TreeEnsemble):
            if model.trees.kind == SPARSE_TREES and not any_leaves:
                needs = f"{what} needs leaves with values for all outputs"
                raise error(f"{needs}; fit with max_leaf_outputs=None.")
            return model.trees
        raise error(
            f"{what} needs built-in trees; fit with estimator=None, not {self.estimator!r}."
        )
