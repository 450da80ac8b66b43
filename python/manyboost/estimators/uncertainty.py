"""Intervals and sets that hold the truth as often as is asked for, from out-of-fold predictions."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64
from manyboost.data.cells import class_numbers, column_name
from manyboost.estimators.predicting import Predicting
from manyboost.estimators.spread import Spread
from manyboost.training import conformal
from manyboost.training.calibration import Calibration

METHODS = ("split", "cv+", "normalised")


class Uncertainty(Predicting):
    """What estimators know about their errors, if they were fitted with folds."""

    _calibration: Calibration | None = None  # set by fit
    _member_raw: Callable[[Any, Any], F64]  # raw predictions of each member for X and offset

    def _calibrated(self, method: str, name: str, share: Any) -> Calibration:
        """Return the calibration rows; ``share`` is the argument ``name`` of the method."""
        self._check_fitted()
        is_number = isinstance(share, float | np.floating)
        if not (is_number and 0 < share < 1):
            allowed = "it must be a number strictly between 0 and 1"
            raise ValueError(f"{name}={share!r} is not allowed; {allowed}.")
        if self._calibration is None:
            problem = "out-of-fold predictions, which a model fitted without folds does not have"
            raise ValueError(f"{method} needs {problem}; fit it with n_folds=5.")
        return self._calibration


def _refuse_few_rows(name: str, share: float, found: int, what: str, remedy: str = "") -> None:
    needed = conformal.rows_needed(share)
    problem = f"{name}={share:g} needs at least {needed} out-of-fold rows {what}"
    raise ValueError(f"{problem}, but there are {found}; ask for a smaller {name}{remedy}.")


class Intervals(Uncertainty):
    """The intervals of a regressor."""

    _quantiles: list[float] | None
    _known: dict[str, Any]  # what was computed from the calibration rows so far

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        joint: bool = False,
        method: str = "split",
        offset: Any = None,
        outputs: Any = None,
    ) -> F64:
        """Predict intervals that hold the truth with a given probability (conformal prediction).

        The model must have been fitted with ``n_folds``: how far its members were off on the rows
        they have not seen tells how far it will be off. The probability is one over new rows that
        are drawn as the training rows were; if these had weights, it is one over weighted rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        coverage : float
            Probability that an interval holds the truth, between 0 and 1.
        joint : bool
            Whether all outputs of a row are to be in their intervals at once with that probability
            (of rows with missing targets: those that are observed), not each for itself. The widths
            of the outputs are in proportion to those of their own intervals.
        method : {"split", "cv+", "normalised"}
            "split": prediction ± a quantile of the out-of-fold residuals of the output. "cv+": the
            same about the prediction of each member; wider, but with a proven bound: the true
            coverage is at least 2 · coverage − 1. "normalised": "split" in units of a spread that
            depends on the row, which small models predict from the raw predictions of all outputs.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.
        outputs : list of str or int, optional
            Names or numbers of the outputs to compute, in the order of the result; None: all.

        Returns
        -------
        ndarray of shape (n_rows, 2) or (n_rows, n_outputs, 2)
            Lower and upper ends; the former for a one-dimensional y. Of a list of quantiles, two
            levels as far from each other as the coverage, or nearest to that, are moved outwards or
            inwards until they have it.

        Examples
        --------
        >>> import numpy as np
        >>> from manyboost import ManyBoostRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 4))
        >>> Y = X[:, :3] + rng.normal(size=(1000, 3))
        >>> model = ManyBoostRegressor(n_folds=5, random_state=0).fit(X[:500], Y[:500])
        >>> ends = model.predict_interval(X[500:], coverage=0.9)
        >>> ends.shape
        (500, 3, 2)
        >>> inside = (ends[..., 0] <= Y[500:]) & (ends[..., 1] >= Y[500:])
        >>> bool(0.87 < inside.mean() < 0.95)
        True
        """
        if method not in METHODS:
            allowed = "it must be 'split', 'cv+' or 'normalised'"
            raise ValueError(f"method={method!r} is not allowed; {allowed}.")
        places, _ = self._check_request(outputs, np.float64)
        calibration = self._calibrated("predict_interval", "coverage", coverage)
        ends = self._moved_ends(calibration, X, offset, coverage, joint, method, places)
        ends = self._within_domain(ends, places)
        return ends[:, 0] if self._is_single() else ends

    def _moved_ends(
        self,
        calibration: Calibration,
        X: Any,
        offset: Any,
        coverage: float,
        joint: bool,
        method: str,
        places: list[int] | None,
    ) -> F64:
        """Return predictions, moved down and up (n_rows, n_outputs, 2) by a quantile of scores."""
        asked = coverage, joint, method, places
        if method == "cv+":
            scores, scales, weights = self._scores(calibration, *asked)
            given = scores * scales, weights, calibration.member
            return self._cv_plus(X, offset, places, coverage, *given)
        reach = self._once(calibration, str(asked), lambda: self._reach(calibration, *asked))
        if method == "normalised":
            spread = self._spread(calibration).predict(self._raw_predict(X, offset))
            reach = reach * (spread if places is None else spread[:, places])
        low, high = self._ends(self._values(X, offset, places), coverage, None)
        return np.stack([low - reach, high + reach], axis=-1)

    def _reach(
        self,
        calibration: Calibration,
        coverage: float,
        joint: bool,
        method: str,
        places: list[int] | None,
    ) -> F64:
        """Return how far predictions of each output are to be moved, in units of the spread."""
        scores, scales, weights = self._scores(calibration, coverage, joint, method, places)
        return np.asarray(conformal.quantiles(scores, coverage, weights) * scales)

    def _scores(
        self,
        calibration: Calibration,
        coverage: float,
        joint: bool,
        method: str,
        places: list[int] | None,
    ) -> tuple[F64, F64, NDArray[np.floating] | None]:
        """Return scores (n_rows, n_outputs or 1), units of outputs and weights; refuse too few."""
        Y, weights = self._known_targets(calibration, places)
        low, high = self._ends(self._shaped(calibration.raw), coverage, places)
        spread = np.ones((1, self.n_outputs_ // self._n_levels))
        if method == "normalised":
            spread = self._spread(calibration).known
        spread = spread if places is None else spread[:, places]
        scores, scales = conformal.excess(Y, low, high) / spread, np.ones(Y.shape[1])
        if joint:
            distances = np.abs(Y - (low + high) / 2) / spread
            scales = conformal.own_scales(distances, coverage, weights)
            # Of the other folds: a row does not choose the units that it is measured in.
            units = conformal.scales_of_others(distances, calibration.member, coverage, weights)
            scores, weights = conformal.joint_scores(scores, units, weights)
        counts = (~np.isnan(scores)).sum(axis=0)
        if counts.min() < conformal.rows_needed(coverage):
            j, what, remedy = int(np.argmin(counts)), "with a target", ""
            if not (joint or self._is_single()):
                output = column_name(j if places is None else places[j], self._known_names())
                what, remedy = f"{what} of output {output}", ", or for other outputs"
            _refuse_few_rows("coverage", coverage, counts[j], what, remedy)
        return scores, scales, weights

    def _known_targets(
        self, calibration: Calibration, places: list[int] | None
    ) -> tuple[F64, NDArray[np.floating] | None]:
        """Return targets and weights of the calibration rows, for all outputs of y or some."""
        chosen = slice(None) if places is None else places
        Y = calibration.Y[:, :: self._n_levels][:, chosen].astype(np.float64)
        weights = calibration.weights
        if weights is not None and weights.ndim == 2:
            weights = weights[:, :: self._n_levels][:, chosen]
        return Y, weights

    def _ends(self, predictions: F64, coverage: float, places: list[int] | None) -> tuple[F64, F64]:
        """Return lower and upper predictions (n_rows, n_outputs of y), of all outputs or some."""
        n_levels = self._n_levels
        if n_levels == 1:
            low = high = predictions.reshape(len(predictions), -1)
        else:
            assert self._quantiles is not None
            levels = np.array(self._quantiles)
            shares = (levels[::-1] - levels)[: (n_levels + 1) // 2]  # between a pair of levels
            k = int(np.argmin(np.abs(shares - coverage)))
            predictions = predictions.reshape(len(predictions), -1, n_levels)
            low, high = predictions[..., k], predictions[..., n_levels - 1 - k]
        return (low, high) if places is None else (low[:, places], high[:, places])

    def _cv_plus(
        self,
        X: Any,
        offset: Any,
        places: list[int] | None,
        coverage: float,
        scores: F64,
        weights: NDArray[np.floating] | None,
        member: NDArray[np.uint8],
    ) -> F64:
        """Return the bounds (n_rows, n_outputs, 2) of CV+ for scores of calibration rows."""
        of_members = [
            self._ends(self._shaped(raw), coverage, places) for raw in self._member_raw(X, offset)
        ]
        low, high = (np.stack(each) for each in zip(*of_members, strict=True))
        weight = conformal.cell_weights(scores, weights)
        ends = np.empty((*low.shape[1:], 2))
        for j in range(low.shape[2]):
            given = scores[:, j], member, weight[:, j], coverage
            ends[:, j, 0] = -conformal.cv_plus(-low[:, :, j], *given)
            ends[:, j, 1] = conformal.cv_plus(high[:, :, j], *given)
        return ends

    def _spread(self, calibration: Calibration) -> Spread:
        """Return how large residuals are likely to be."""

        def fitted() -> Spread:
            Y, weights = self._known_targets(calibration, None)
            low, high = self._ends(self._shaped(calibration.raw), 1.0, None)
            make = functools.partial(type(self), random_state=self._seed, n_jobs=self.n_jobs)
            return Spread(make, calibration, np.abs(Y - (low + high) / 2), weights)

        found: Spread = self._once(calibration, "spread", fitted)
        return found

    def _once(self, calibration: Calibration, name: str, compute: Callable[[], Any]) -> Any:
        """Return what ``compute`` returned when it was first asked for with these rows."""
        known = vars(self).get("_known", {})
        if known.get("calibration") is not calibration:
            known = self._known = {"calibration": calibration}
        if name not in known:
            known[name] = compute()
        return known[name]

    def _within_domain(self, ends: F64, places: list[int] | None) -> F64:
        """Return intervals that are not empty, within what the loss allows as targets."""
        middle = ends.mean(axis=-1)
        ends[..., 0], ends[..., 1] = (
            np.minimum(ends[..., 0], middle),
            np.maximum(ends[..., 1], middle),
        )
        bounds = np.empty((self.n_outputs_, 2))
        for facts, pair in self._fitted_loss.blocks:
            bounds[slice(None) if pair is None else slice(*pair)] = facts.domain.bounds
        bounds = bounds[:: self._n_levels]
        bounds = bounds if places is None else bounds[places]
        return np.clip(ends, bounds[:, :1], bounds[:, 1:])

    @abstractmethod
    def _shaped(self, raw: F64) -> F64:
        """Return predictions in the shape of y for raw ones."""

    @abstractmethod
    def _values(self, X: Any, offset: Any, places: list[int] | None = None) -> F64:
        """Return predictions as an array, of all outputs of y or some."""


class Sets(Uncertainty):
    """The sets of classes and labels of a classifier."""

    def predict_set(self, X: Any, coverage: float = 0.9, *, offset: Any = None) -> Any:
        """Predict sets of classes that hold the true one with a given probability.

        A set holds the classes whose probability is above a threshold, and always the most probable
        one. The threshold is such that of the out-of-fold rows (and a new one) the given share have
        their class in its set. The model must have been fitted with ``n_folds``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        coverage : float
            Probability that a set holds the true class, between 0 and 1.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.

        Returns
        -------
        ndarray of bool of shape (n_rows, n_classes), or a frame (see :meth:`set_output`)
            Which of ``classes_`` are in the set of a row.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from manyboost import ManyBoostClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = ManyBoostClassifier(n_folds=5, random_state=0).fit(X, y)
        >>> model.predict_set(X[:2], coverage=0.95)
        array([[ True, False, False],
               [ True, False, False]])
        """
        calibration = self._calibrated("predict_set", "coverage", coverage)
        if self._classes.kind == "multilabel":
            problem = "predict_set is for classes, but this model predicts labels"
            raise ValueError(f"{problem}; use predict_labels with recall=.")
        probability = self._probabilities(calibration.raw.astype(np.float64))
        true = probability[np.arange(len(probability)), class_numbers(calibration.Y)]
        least = -conformal.quantiles(-true[:, None], coverage, calibration.weights)[0]
        if not np.isfinite(least):
            _refuse_few_rows("coverage", coverage, len(true), "of all classes")

        def chosen(raw: F64) -> NDArray[Any]:
            return conformal.class_set(self._probabilities(raw), float(least))

        values = self._predicted(X, chosen, None, np.bool_, offset=offset)
        return self._framed(values, X, None, self._column_names())

    def _least_raw(self, recall: float) -> float:
        """Return the raw prediction from which on labels have a mean recall in new rows."""
        calibration = self._calibrated("predict_labels with recall=", "recall", recall)
        present = calibration.Y == 1
        least = conformal.recall_threshold(calibration.raw, present, recall, calibration.weights)
        if not np.isfinite(least):
            _refuse_few_rows("recall", recall, int(present.any(axis=1).sum()), "with labels")
        return least

    @abstractmethod
    def _probabilities(self, raw: F64) -> F64:
        """Return probabilities of classes or labels for raw predictions."""

    @abstractmethod
    def _column_names(self) -> Any:
        """Return the names of the columns of frames."""
