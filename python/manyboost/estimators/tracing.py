"""Predictions as weighted sums of the training targets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from manyboost import _core, memory, params
from manyboost.arrays import F64
from manyboost.data.cells import missing_cells
from manyboost.data.features import for_kernels
from manyboost.data.rows import Rows, make_rows
from manyboost.data.targets import check_targets
from manyboost.estimators.structure import Structure
from manyboost.inspection import LinearRounds
from manyboost.threads import resolve_threads
from manyboost.training.plan import default_rate
from manyboost.training.splits import drawn_or_last
from manyboost.training.strategies import STRATEGIES


class Tracing(Structure):
    """The training rows behind a prediction, for squared error."""

    def training_weights(
        self, X: Any, X_train: Any, y_train: Any, sample_weight: Any = None
    ) -> F64:
        """Return the weights w of the training rows in predictions f(x) = Σ wᵢ(x) yᵢ.

        With squared error and given trees, a prediction is a weighted sum of the training targets
        of its output, and the weights of a row add up to 1. Outputs that share trees have the same
        weights. Models with other losses, ``n_folds``, monotonic constraints, offsets or other weak
        learners are refused: their predictions are not weighted sums of y alone.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows whose predictions are to be explained.
        X_train, y_train, sample_weight : array-like
            The training data, which the model does not keep. Data that do not reproduce the
            predictions are refused.

        Returns
        -------
        ndarray of shape (n_rows, n_train) or (n_rows, n_train, n_outputs)
            The latter if weights differ between outputs: with ``strategy="independent"``, missing
            targets, weights of cells, or stopping per output. Missing targets and rows outside the
            training data have weight 0.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_regression
        >>> from manyboost import ManyBoostRegressor
        >>> X, Y = make_regression(n_samples=200, n_targets=8, random_state=0)
        >>> model = ManyBoostRegressor(random_state=0).fit(X, Y)
        >>> weights = model.training_weights(X[:5], X, Y)
        >>> bool(np.allclose(weights @ Y, model.predict(X[:5]), rtol=1e-4))
        True
        """
        X = self._checked_X(X)
        params.validate(self)  # what was set after fit
        model = self._check_traceable()
        given = self._checked_X(X_train)
        Y = np.atleast_2d(check_targets(y_train, given, "y_train").T).T
        n_given, n_outputs = Y.shape
        if n_outputs != self.n_outputs_:
            problem = f"y_train has {n_outputs} outputs but the model has {self.n_outputs_}"
            raise ValueError(f"{problem}; pass its training data.")
        rows = self._trained_rows(make_rows(given, Y, sample_weight, "sample_weight"))
        pool = _core.Pool(resolve_threads(self.n_jobs))
        leaves, known = (model.leaves(pool, for_kernels(each)) for each in (X, rows.X))
        l2 = 0.0 if self.l2_regularization == "auto" else float(self.l2_regularization)
        groups, columns = self._linear_groups(rows), np.nan_to_num(Y)
        predicted = self._raw_predictor(None)(X)
        shape = X.shape[0], n_given, len(groups)
        what = f"Tracing {shape[0]:,} rows to {n_given:,} training rows"
        # The result, and the weights of one group, by training row and by row.
        memory.check(8 * shape[0] * n_given * (len(groups) + 2), what, "pass fewer rows at a time")
        result = np.zeros(shape)
        rates = self._known_rates(one_column=n_outputs == 1)
        for rate, share in itertools.product(rates, self._known_shares()):
            rounds = LinearRounds(model, leaves, known, rate, l2)
            for k, (trees, weight) in enumerate(groups):
                within = self._bags(rows, k, weight, share)
                result[:, rows.numbers, k] = rounds.weights(trees, weight, within)
            if len(groups) == 1:
                found = result[..., 0] @ columns
            else:
                found = np.einsum("ijk,jk->ik", result, columns)
            if self._is_traced(found, predicted, rows):
                return result[..., 0] if len(groups) == 1 else result
        raise ValueError(
            "X_train, y_train and sample_weight do not reproduce the predictions of the model; "
            "pass its training data, and keep its parameters."
        )

    def _known_rates(self, *, one_column: bool) -> list[float]:
        """Return the learning rates that the model may have been trained with."""
        if self.learning_rate != "auto":
            return [float(self.learning_rate)]
        rates = [default_rate(self.strategy_, one_column=one_column)]
        if not isinstance(self.max_iter, str):
            # What "auto" was in earlier model files.
            rates.append(min(0.1, max(0.05, 20 / self.max_iter)))
        return list(dict.fromkeys(rates))

    def _known_shares(self) -> list[float]:
        """Return the shares of the rows that each tree may have been fitted to."""
        # A refit fits to all rows.
        return list(dict.fromkeys([float(self.subsample), 1.0]))

    def _check_traceable(self) -> _core.Ensemble:
        """Refuse models whose predictions are not weighted sums of y."""
        model = self._built_in_trees("training_weights")
        found = None
        blocks = self._fitted_loss.blocks
        if not all(facts.quadratic and facts.centred for facts, _ in blocks):
            found = f"loss={self.loss!r}"
        elif self._progress.constraints.monotonic is not None:
            found = "monotonic_cst"
        elif self._with_offset:
            found = "an offset"
        elif model.n_members > 1:
            found = "n_folds"
        if found is not None:
            raise ValueError(
                "training_weights needs predictions that are weighted sums of y, but the model was "
                f"fitted with {found}; fit it with squared error and without that."
            )
        return model

    def _trained_rows(self, rows: Rows) -> Rows:
        """Return the rows that rounds were fitted to: those that reproduce the baseline."""
        candidates = [rows]
        if hasattr(self, "validation_score_") and isinstance(self.validation_split, str):
            # Validation rows were passed to fit, or split from these.
            split = drawn_or_last(self, rows, self.validation_fraction, self._seed)
            candidates.append(split[0])
        for candidate in candidates:
            weight = candidate.weights.matrix(candidate.Y).astype(np.float64)
            total = weight.sum(axis=0)
            Y = np.nan_to_num(candidate.Y)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = (weight * Y).sum(axis=0) / total
            if np.allclose(mean, self.baseline_, rtol=1e-6, atol=1e-6 * np.abs(Y).max()):
                return candidate
        problem = "y_train and sample_weight do not give the baseline of the model"
        raise ValueError(f"{problem}; pass its training data.")

    def _linear_groups(self, rows: Rows) -> list[tuple[range, F64]]:
        """Return trees and weights of each output, or one entry if all outputs share them."""
        d, n_iter = self.n_outputs_, self.n_iter_
        by_output = not STRATEGIES[self.strategy_].shares_trees and d > 1
        stops = getattr(self, "best_iter_per_output_", None)
        alike = not (by_output or rows.weights.by_cell or stops is not None)
        stops = np.full(d, n_iter) if stops is None else stops
        matrix = rows.weights.matrix(rows.Y).astype(np.float64)
        groups = []
        for j in range(1 if alike else d):
            trees = range(j, stops[j] * d, d) if by_output else range(stops[j])
            groups.append((trees, matrix[:, j]))
        return groups

    def _bags(self, rows: Rows, output: int, weight: F64, share: float) -> Callable[[int], F64]:
        """Return the weights of an output in the rows that training drew for a round."""
        if share == 1.0:
            return lambda m: weight
        alone = not STRATEGIES[self.strategy_].shares_trees
        candidates = np.arange(len(rows))
        if alone:
            candidates = np.flatnonzero(~missing_cells(rows.Y[:, output]))
        numbers, pool = rows.numbers[candidates], _core.Pool(1)
        count = max(1, int(share * len(numbers)))

        def bag(m: int) -> F64:
            drawn = _core.sample_rows(pool, numbers, count, self._seed, m, output if alone else 0)
            inside = np.zeros_like(weight)
            inside[candidates[drawn]] = weight[candidates[drawn]]
            return inside

        return bag

    def _is_traced(self, found: F64, predicted: F64, rows: Rows) -> bool:
        """Tell whether weights reproduce the predictions of the model."""
        scale = np.abs(np.nan_to_num(rows.Y - self.baseline_)).max(axis=0)
        allowed = 1e-4 * scale + 1e-6 * np.abs(self.baseline_)
        return bool((np.abs(found - predicted) <= allowed).all())
