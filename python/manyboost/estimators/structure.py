"""The trees themselves: leaves of rows, leaf values, and a table of all nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manyboost import _core
from manyboost.arrays import F64, Mask
from manyboost.data.features import for_kernels
from manyboost.estimators.explaining import Explaining
from manyboost.threads import resolve_threads
from manyboost.training.ensembles import FEATURE_BITS
from manyboost.training.strategies import SPARSE_TREES


class Structure(Explaining):
    """What the trees of an estimator are made of.

    Trees are in the order in which they were grown. A round has one tree; that of
    ``strategy="independent"`` has one for each output, and that of ``n_folds`` those of one member
    after the other.
    """

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf that each row ends in, tree by tree.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_rows, n_trees), of int32
            The number of the leaf in its tree. A round has one tree; with
            ``strategy="independent"`` one for each output, in their order, and with ``n_folds``
            those of all members.

        Examples
        --------
        The raw predictions are the baseline and the values of these leaves:

        >>> import numpy as np
        >>> from manyboost import ManyBoostRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> model = ManyBoostRegressor(max_iter=4, random_state=0).fit(X, X[:, :2] ** 2)
        >>> leaves = model.apply(X)
        >>> leaves.shape
        (100, 4)
        >>> raw = model.baseline_ + sum(model.leaf_values(t)[leaves[:, t]] for t in range(4))
        >>> bool(np.allclose(raw, model.predict(X)))
        True
        """
        self._check_fitted()
        trees = self._built_in_trees("apply", any_leaves=True)
        pool = _core.Pool(resolve_threads(self.n_jobs))
        X = self._checked_X(X)
        return trees.leaves(pool, for_kernels(X)).astype(np.int32).reshape(X.shape[0], -1)

    def leaf_values(self, tree: int) -> F64:
        """Return what the leaves of a tree add to the raw predictions.

        Parameters
        ----------
        tree : int
            The number of the tree, as in :meth:`apply`.

        Returns
        -------
        ndarray of shape (n_leaves, n_outputs_)
            With ``strategy="independent"``, zero except for the output of the tree.
        """
        check_is_fitted(self, "n_iter_")
        trees = self._built_in_trees("leaf_values", any_leaves=True)
        n_trees = len(trees.tree_sizes())
        if not 0 <= tree < n_trees:
            raise ValueError(f"There is no tree {tree}; the model has {n_trees}, counted from 0.")
        if trees.kind == SPARSE_TREES:
            starts, outputs, few = trees.sparse_leaf_values(tree)
            all_values = np.zeros((len(starts) - 1, self.n_outputs_))
            all_values[np.repeat(np.arange(len(starts) - 1), np.diff(starts)), outputs] = few
            return all_values
        values = trees.leaf_values(tree)
        if trees.kind == "scaled":
            values = values * trees.steps()[tree]
        if trees.kind != "per_output":
            return values.astype(np.float64)
        alone = np.zeros((len(values), self.n_outputs_))
        alone[:, tree % self.n_outputs_] = values[:, 0]
        return alone

    @property
    def split_counts_(self) -> NDArray[np.intp]:
        """Number of splits by each feature in all trees, (n_features,)."""
        check_is_fitted(self, "n_iter_")
        trees = self._built_in_trees("split_counts_", AttributeError, any_leaves=True)
        features = trees.arrays()["split_feature"] & FEATURE_BITS
        return np.bincount(features, minlength=self.n_features_in_)

    def trees_to_dataframe(self) -> Any:
        """Return a table of the trees, a row for each node.

        Returns
        -------
        pandas.DataFrame
            ``tree`` and ``round``; ``member``, if the model is a mean (``n_folds``); ``output``,
            if each output has its own trees (``strategy="independent"``); ``node`` and ``depth``;
            ``left`` and ``right``, the children; ``feature`` of the split; ``threshold``, up to
            which values go left (infinite: all that are not missing), or ``categories``, those that
            go left; ``missing_left``, whether missing values do; ``gain`` of the split; ``cover``,
            the weight of the training rows; ``leaf``, the number that :meth:`apply` returns; and
            ``value`` of the leaf, if it has one output (:meth:`leaf_values` has those of all).

        Examples
        --------
        >>> import numpy as np
        >>> from manyboost import ManyBoostRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> model = ManyBoostRegressor(max_iter=4, random_state=0).fit(X, X[:, 0] > 0)
        >>> table = model.trees_to_dataframe()
        >>> table["feature"].dropna().unique().tolist()
        ['x0']
        """
        check_is_fitted(self, "n_iter_")
        trees = self._built_in_trees("trees_to_dataframe", any_leaves=True)
        try:
            import pandas
        except ImportError:
            problem = "trees_to_dataframe needs the package pandas"
            raise ImportError(f"{problem}; install it: pip install pandas.") from None
        parts = [self._nodes(trees, t) for t in range(len(trees.tree_sizes()))]
        if not parts:
            raise ValueError("The model has no trees to make a table of; fit it with more rounds.")
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return pandas.DataFrame(columns).astype(dict.fromkeys(["left", "right", "leaf"], "Int64"))

    def _nodes(self, trees: _core.Ensemble, tree: int) -> dict[str, NDArray[Any]]:
        """Return the columns of the table for one tree; None or NaN where a node has nothing."""
        feature, threshold, left, missing_left, cover, gain, codes = trees.tree(tree)
        n, is_split = len(left), left > 0
        alone = trees.kind == "per_output"
        trees_of_member = self.n_outputs_ if alone else 1
        columns = {"tree": np.full(n, tree)}
        columns["round"] = np.full(n, tree // (trees_of_member * trees.n_members))
        if trees.n_members > 1:
            columns["member"] = np.full(n, tree // trees_of_member % trees.n_members)
        if alone and self.n_outputs_ > 1:
            name = self._explained_names(None)[tree % self.n_outputs_]
            columns["output"] = np.full(n, name, dtype=object)
        depth = np.zeros(n, np.intp)
        for node in np.flatnonzero(is_split).tolist():
            depth[left[node] : left[node] + 2] = depth[node] + 1
        columns |= {"node": np.arange(n), "depth": depth}
        columns["left"] = _where(is_split, left)
        columns["right"] = _where(is_split, left + 1)
        numbered = [f"x{j}" for j in range(self.n_features_in_)]
        names = np.array(getattr(self, "feature_names_in_", numbered), dtype=object)
        columns["feature"] = _where(is_split, names[np.where(is_split, feature, 0)])
        values = self._progress.categories.thresholds(feature, threshold, is_split)
        columns["threshold"] = np.where(is_split, values, np.nan)
        columns["categories"] = np.empty(n, object)
        for k, left_codes in enumerate(codes):
            if left_codes is not None:
                columns["categories"][k] = self._category_names(int(feature[k]), left_codes)
        columns["missing_left"] = _where(is_split, missing_left)
        columns["gain"] = np.where(is_split, gain, np.nan)
        columns["cover"] = cover.astype(np.float64)
        columns["leaf"] = _where(~is_split, feature)
        if alone or self.n_outputs_ == 1:
            leaves = self.leaf_values(tree)[:, tree % trees_of_member]
            columns["value"] = np.where(is_split, np.nan, leaves[np.where(is_split, 0, feature)])
        return columns

    def _category_names(self, feature: int, codes: NDArray[Any]) -> tuple[Any, ...]:
        """Return categories by their codes: labels of a frame, or numbers; those that fit saw."""
        values = self._progress.categories.values_of(feature, codes)
        labels = self._category_labels.of_column.get(feature)
        known = (each for some in values for each in some)
        return tuple(each if labels is None else labels[int(each)] for each in known)


def _where(there: Mask, values: NDArray[Any]) -> NDArray[Any]:
    """Return values as objects, None where they do not count."""
    result = np.full(len(values), None, dtype=object)
    result[there] = values[there]
    return result
