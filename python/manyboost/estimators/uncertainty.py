"""Intervals and sets that hold the truth as often as is asked for, from out-of-fold predictions."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
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

    _member_raw: Callable[[Any, Any], F64]  # raw predictions of each member for X and offset

    def _calibrated(self, method: str, name: str, share: Any) -> Calibration:
        """Return the calibration rows; ``share`` is the argument ``name`` of the method."""
        self._check_fitted()
        is_number = isinstance(share, float | np.floating)
        if not (is_number and 0 < share < 1):
            allowed = "it must be a number strictly between 0 and 1"
            raise ValueError(f"{name}={share!r} is not allowed; {allowed}.")
        if self._calibration is None:
            lacking = "which a model fitted without folds, or refitted, does not have"
            problem = f"{method} needs out-of-fold predictions, {lacking}"
            raise ValueError(f"{problem}; fit it with n_folds=5.")
        return self._calibration


def _refuse_few_rows(name: str, share: float, found: int, what: str, remedy: str = "") -> None:
    needed = conformal.rows_needed(share)
    problem = f"{name}={share:g} needs at least {needed} out-of-fold rows {what}"
    raise ValueError(f"{problem}, but there are {found}; ask for a smaller {name}{remedy}.")


@dataclass(frozen=True)
class Asked:
    """What intervals are asked for."""

    coverage: float
    joint: bool
    method: str
    places: tuple[int, ...] | None  # the outputs of y; None: all

    def of(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the columns of these outputs, of an array with all outputs of y."""
        return columns if self.places is None else columns[:, list(self.places)]


class Intervals(Uncertainty):
    """The intervals of a regressor."""

    _known: dict[Any, Any]  # what was computed from the calibration rows so far

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
        """Predict intervals that contain the truth with a given probability (conformal prediction).

        The model must have been fitted with ``n_folds``: the errors of its members on rows that
        they were not trained on show how far off it will be. The probability refers to new rows
        from the distribution of the training rows; if these had weights, to weighted rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        coverage : float
            Probability that an interval contains the truth, between 0 and 1.
        joint : bool
            Whether the probability is that of all outputs of a row being in their intervals at once
            (in rows with missing targets, all that are observed), instead of each on its own. The
            widths are in proportion to those of the separate intervals.
        method : {"split", "cv+", "normalised"}
            "split": prediction ± a quantile of the out-of-fold residuals of the output. "cv+": the
            same around the prediction of each member; wider, but, without ``refit_all``, with a
            proven bound: the true coverage is at least 2 · coverage − 1. "normalised": "split"
            scaled by a spread that depends on the row, which small models predict from the raw
            predictions of all outputs.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.
        outputs : list of str or int, optional
            Names or numbers of the outputs to compute, in the order of the result; None: all.

        Returns
        -------
        ndarray of shape (n_rows, 2) or (n_rows, n_outputs, 2)
            Lower and upper ends; (n_rows, 2) for a one-dimensional y. With a list of quantiles, two
            levels are moved outwards or inwards until they reach the coverage: of the pairs that
            are equally far from both ends of the list, the one whose difference is nearest to it.

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
        asked = Asked(coverage, joint, method, None if places is None else tuple(places))
        ends = self._within_domain(self._moved_ends(calibration, asked, X, offset), asked)
        return ends[:, 0] if self._is_single() else ends

    def _moved_ends(self, calibration: Calibration, asked: Asked, X: Any, offset: Any) -> F64:
        """Return predictions, moved down and up (n_rows, n_outputs, 2) by a quantile of scores."""
        if asked.method == "cv+":
            return self._cv_plus(calibration, asked, X, offset)
        reach = self._once(calibration, asked, lambda: self._reach(calibration, asked))
        if asked.method == "normalised":
            spread = self._spread(calibration).predict(self._raw_predict(X, offset))
            reach = reach * asked.of(spread)
        places = None if asked.places is None else list(asked.places)
        low, high = self._ends(self._values(X, offset, places), asked.coverage)
        return np.stack([low - reach, high + reach], axis=-1)

    def _reach(self, calibration: Calibration, asked: Asked) -> F64:
        """Return how far predictions of each output are to be moved, in units of the spread."""
        scores, scales, weights = self._scores(calibration, asked)
        return np.asarray(conformal.quantiles(scores, asked.coverage, weights) * scales)

    def _scores(
        self, calibration: Calibration, asked: Asked
    ) -> tuple[F64, F64, NDArray[np.floating]]:
        """Return scores (n_rows, n_outputs or 1), units of outputs and weights; refuse too few."""
        Y, low, high, weights = map(asked.of, self._known_targets(calibration, asked.coverage))
        spread = asked.of(self._spread(calibration).known) if asked.method == "normalised" else 1.0
        scores, scales = conformal.excess(Y, low, high) / spread, np.ones(Y.shape[1])
        if asked.joint:
            given = np.abs(Y - (low + high) / 2) / spread, asked.coverage, weights
            scales = conformal.own_scales(*given)
            # Of the other folds: a row does not choose the units that it is measured in.
            units = conformal.scales_of_others(calibration.member, *given)
            scores, weights = conformal.joint_scores(scores, units, weights)
        self._refuse_few_targets((~np.isnan(scores)).sum(axis=0), asked)
        return scores, scales, weights

    def _refuse_few_targets(self, counts: NDArray[np.intp], asked: Asked) -> None:
        """Refuse a coverage that needs more rows than there are, with a target of each output."""
        j, what, remedy = int(np.argmin(counts)), "with a target", ""
        if counts[j] >= conformal.rows_needed(asked.coverage):
            return
        if not (asked.joint or self._is_single()):
            place = j if asked.places is None else asked.places[j]
            what += f" of output {column_name(place, self._known_names())}"
            remedy = ", or for other outputs"
        _refuse_few_rows("coverage", asked.coverage, counts[j], what, remedy)

    def _known_targets(self, calibration: Calibration, coverage: float) -> tuple[F64, ...]:
        """Return targets, both ends of predictions and weights of all calibration cells of y."""
        Y = calibration.Y[:, :: self._n_levels].astype(np.float64)
        weights = np.ones(1) if calibration.weights is None else calibration.weights
        weights = weights[:, None] if weights.ndim == 1 else weights[:, :: self._n_levels]
        ends = self._ends(self._shaped(calibration.raw), coverage)
        return Y, *ends, np.broadcast_to(weights, Y.shape)

    def _ends(self, predictions: F64, coverage: float) -> tuple[F64, F64]:
        """Return lower and upper predictions (n_rows, n_outputs of y)."""
        n_levels = self._n_levels
        if n_levels == 1:
            columns = predictions.reshape(len(predictions), -1)
            return columns, columns
        assert self._quantiles is not None
        levels = np.array(self._quantiles)
        shares = (levels[::-1] - levels)[: (n_levels + 1) // 2]  # between a pair of levels
        k = int(np.argmin(np.abs(shares - coverage)))
        predictions = predictions.reshape(len(predictions), -1, n_levels)
        return predictions[..., k], predictions[..., n_levels - 1 - k]

    def _cv_plus(self, calibration: Calibration, asked: Asked, X: Any, offset: Any) -> F64:
        """Return the bounds of CV+ (n_rows, n_outputs, 2)."""
        scores, scales, weights = self._scores(calibration, asked)
        scores = scores * scales
        weight = conformal.cell_weights(scores, weights)
        shaped = map(self._shaped, self._member_raw(X, offset))
        of_members = [map(asked.of, self._ends(each, asked.coverage)) for each in shaped]
        low, high = (np.stack(each) for each in zip(*of_members, strict=True))
        ends = np.empty((*low.shape[1:], 2))
        for j in range(low.shape[2]):
            given = scores[:, j], calibration.member, weight[:, j], asked.coverage
            ends[:, j, 0] = -conformal.cv_plus(-low[:, :, j], *given)
            ends[:, j, 1] = conformal.cv_plus(high[:, :, j], *given)
        return ends

    def _spread(self, calibration: Calibration) -> Spread:
        """Return how large residuals are likely to be."""

        def fitted() -> Spread:
            Y, low, high, weights = self._known_targets(calibration, 1.0)
            make = functools.partial(type(self), random_state=self._seed, n_jobs=self.n_jobs)
            return Spread(make, calibration, np.abs(Y - (low + high) / 2), weights)

        found: Spread = self._once(calibration, "spread", fitted)
        return found

    def _once(self, calibration: Calibration, what: Any, compute: Callable[[], Any]) -> Any:
        """Return what ``compute`` returned when it was first asked for with these rows."""
        known = vars(self).get("_known", {})
        if known.get("calibration") is not calibration:
            known = self._known = {"calibration": calibration}
        if what not in known:
            known[what] = compute()
        return known[what]

    def _within_domain(self, ends: F64, asked: Asked) -> F64:
        """Return intervals that are not empty, within what the loss allows as targets."""
        middle = ends.mean(axis=-1)
        np.minimum(ends[..., 0], middle, out=ends[..., 0])
        np.maximum(ends[..., 1], middle, out=ends[..., 1])
        bounds = np.empty((self.n_outputs_, 2))
        for facts, pair in self._fitted_loss.blocks:
            bounds[slice(None) if pair is None else slice(*pair)] = facts.domain.bounds
        low, high = asked.of(bounds[:: self._n_levels].T)
        return np.clip(ends, low[:, None], high[:, None])

    @abstractmethod
    def _shaped(self, raw: F64) -> F64:
        """Return predictions in the shape of y for raw ones."""

    @abstractmethod
    def _values(self, X: Any, offset: Any, places: list[int] | None = None) -> F64:
        """Return predictions as an array, of all outputs of y or some."""


class Sets(Uncertainty):
    """The sets of classes and labels of a classifier."""

    def predict_set(self, X: Any, coverage: float = 0.9, *, offset: Any = None) -> Any:
        """Predict sets of classes that contain the true one with a given probability.

        A set contains the classes whose probability is above a threshold, and always the most
        probable one. With this threshold, the given share of the out-of-fold rows (and a new one)
        have their class in their set. The model must have been fitted with ``n_folds``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        coverage : float
            Probability that a set contains the true class, between 0 and 1.
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
        self._refuse_columns("predict_set", "predict_proba")
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
        raw = self._decision(calibration.raw.astype(np.float64))
        least = conformal.recall_threshold(raw, present, recall, calibration.weights)
        if not np.isfinite(least):
            _refuse_few_rows("recall", recall, int(present.any(axis=1).sum()), "with labels")
        return least

    @abstractmethod
    def _refuse_columns(self, method: str, remedy: str) -> None:
        """Refuse a method to models of several columns of classes."""

    @abstractmethod
    def _decision(self, raw: F64) -> F64:
        """Return the values of the decision function for raw predictions."""

    @abstractmethod
    def _probabilities(self, raw: F64) -> Any:
        """Return probabilities of classes or labels for raw predictions."""

    @abstractmethod
    def _column_names(self) -> Any:
        """Return the names of the columns of frames."""
