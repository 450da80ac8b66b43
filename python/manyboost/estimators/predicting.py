"""Predicting: raw predictions of all outputs or some, in blocks, in stages, as frames."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from manyboost import _core, memory
from manyboost.arrays import F64
from manyboost.data.features import Table, check_X, is_ready, to_single
from manyboost.data.frames import make_frame
from manyboost.data.targets import resolve_outputs
from manyboost.estimators.base import Model
from manyboost.persistence.parts import IMPORTANCES
from manyboost.threads import resolve_threads

if TYPE_CHECKING:
    from typing_extensions import Self

#: Raw predictions that exist in double precision at a time where not all are wanted.
BLOCK_CELLS = 1 << 20


class Predicting(Model):
    """The half of an estimator that answers."""

    def _checked_X(self, X: Any) -> Table:
        self._check_fitted()
        X = check_X(self, X, reset=False)
        if not self._progress.model.has_trees:
            return X
        names = getattr(self, "feature_names_in_", None)
        return to_single(self._progress.categories.encode(X, names))

    def _check_fitted(self) -> None:
        # scikit-learn's check takes longer than the prediction of a row.
        if "n_iter_" not in vars(self):
            check_is_fitted(self, "n_iter_")

    def _takes_as_is(self, X: Any) -> bool:
        """Whether trees take X as it is."""
        progress = self._progress
        return progress.model.has_trees and not progress.categories.encodes and is_ready(self, X)

    def _checked_offset(self, offset: Any, X: Table) -> F64 | None:
        """What to add to raw predictions: an offset, if and only if the model was fitted to one."""
        if offset is None and self._with_offset:
            problem = "The model was fitted with an offset, but offset=None was passed"
            raise ValueError(f"{problem}; pass the offsets of these rows (zeros for none).")
        if offset is not None and not self._with_offset:
            raise ValueError(
                "An offset was passed, but the model was fitted without one; leave it out."
            )
        if offset is None:
            return None
        return self._offset_of(offset, X, self.n_outputs_)

    def _raw_predict(self, X: Any, offset: Any = None) -> F64:
        """Raw predictions (n_rows, n_outputs)."""
        return np.asarray(self._predicted(X, lambda raw: raw, offset=offset))

    @memory.explaining_predictions()
    def _predicted(
        self,
        X: Any,
        finish: Callable[[F64], NDArray[Any]],
        outputs: list[int] | None = None,
        dtype: DTypeLike = np.float64,
        *,
        offset: Any = None,
        joint: bool = False,
        in_blocks: bool = False,
    ) -> NDArray[Any]:
        """``finish`` applied to raw predictions (n_rows, n_outputs), of all outputs or some.

        If the link is ``joint``, some outputs need the raw predictions of the others too. Results
        of another type than float64 are put together from blocks of rows, so that double precision
        never exists for all of them.
        """
        self._check_fitted()
        X = X if self._takes_as_is(X) else self._checked_X(X)
        offsets = self._checked_offset(offset, X)
        # Outputs whose raw predictions are needed, and outputs to choose from what is finished.
        needed, chosen = (None, outputs) if joint else (outputs, None)
        if offsets is not None and needed is not None:
            offsets = offsets[:, needed]
        n_rows, width = X.shape[0], self.n_outputs_ if needed is None else len(needed)
        raw_of = self._raw_predictor(needed)
        size, itemsize = n_rows, np.dtype(dtype).itemsize
        if in_blocks or chosen is not None or dtype != np.float64:
            # A class of long text is larger than raw predictions.
            size = max(1, BLOCK_CELLS // max(self.n_outputs_, itemsize // 8))
        else:
            memory.check_predictions(n_rows, width)

        def finished(start: int) -> NDArray[Any]:
            raw = raw_of(X if size >= n_rows else X[start : start + size])
            result = finish(raw if offsets is None else raw + offsets[start : start + size])
            return result if chosen is None else result[:, chosen]

        first = finished(0)
        if size >= n_rows:
            return first.astype(dtype, copy=False)
        memory.check_results(n_rows, first[0].size * itemsize)
        result = np.empty((n_rows, *first.shape[1:]), dtype)
        result[:size] = first
        for start in range(size, n_rows, size):
            result[start : start + size] = finished(start)
        return result

    def _raw_predictor(self, outputs: list[int] | None) -> Callable[[Table], F64]:
        """Return the function from checked features to baseline and trees (n_rows, n_outputs)."""
        pool = _core.Pool(resolve_threads(self.n_jobs))
        return self._progress.model.predictor(pool, self.n_iter_, self.baseline_, outputs)

    def _check_request(
        self, outputs: Any, dtype: DTypeLike
    ) -> tuple[list[int] | None, np.dtype[Any]]:
        """Return the places of the outputs asked for (None: all) and the type of the result."""
        self._check_fitted()
        try:
            type_ = np.dtype(dtype)
        except TypeError:
            type_ = None
        if type_ not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is not allowed; it must be float32 or float64.")
        if outputs is None:
            return None, type_
        if self._is_single():
            raise ValueError(
                f"outputs={outputs!r} was given, but the model has one output; leave outputs out."
            )
        n_outputs = self.n_outputs_ // self._n_levels
        return resolve_outputs(outputs, self._known_names(), n_outputs), type_

    def set_output(self, *, predict: str | None = None, transform: str | None = None) -> Any:
        """Choose whether predictions of several outputs are arrays or frames.

        It changes ``predict``, ``decision_function`` and ``predict_proba`` where they have two
        dimensions: the columns are the names of the outputs (``y0``, ``y1``, … if they have none)
        or the classes, the index is that of X if X is a pandas frame. :func:`sklearn.set_config`
        is for transformers and changes nothing here.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"}, optional
            Arrays, or frames of a library; None leaves it as it was.
        transform : {"default", "pandas", "polars"}, optional
            The same, under the name that scikit-learn's transformers have for it.

        Returns
        -------
        self
        """
        for name, value in [("predict", predict), ("transform", transform)]:
            if value not in (None, "default", "pandas", "polars"):
                allowed = "it must be 'default', 'pandas' or 'polars'."
                raise ValueError(f"{name}={value!r} is not allowed; {allowed}")
        if None not in (predict, transform) and predict != transform:
            raise ValueError(
                f"predict={predict!r} and transform={transform!r} contradict each other; give one."
            )
        if (chosen := predict or transform) is not None:
            # scikit-learn's clone copies this attribute.
            config = getattr(self, "_sklearn_output_config", {})
            self._sklearn_output_config = {**config, "predict": chosen}
        return self

    def _wants_frames(self) -> bool:
        config = getattr(self, "_sklearn_output_config", {})
        return bool(config.get("predict", "default") != "default")

    def _framed(self, values: NDArray[Any], X: Any, outputs: list[int] | None, names: Any) -> Any:
        """Return predictions as :meth:`set_output` says; ``names`` are those of all columns."""
        if not self._wants_frames() or values.ndim == 1:
            return values
        if names is None:
            names = [f"y{j}" for j in range(self.n_outputs_)]
        chosen = names if outputs is None else [names[j] for j in outputs]
        library = self._sklearn_output_config["predict"]
        return make_frame(library, values, [str(each) for each in chosen], X)

    def first_rounds(self, n_rounds: int) -> Self:
        """Return a copy of the fitted model that has its first rounds only.

        It predicts what :meth:`staged_predict` yields after that many rounds. Models with
        ``n_folds`` are refused: their members have different numbers of rounds. It has
        ``split_counts_``, but no importances.

        Parameters
        ----------
        n_rounds : int
            How many, at most ``n_iter_``.

        Returns
        -------
        ManyBoostRegressor or ManyBoostClassifier
        """
        self._check_fitted()
        whole = isinstance(n_rounds, int | np.integer) and not isinstance(n_rounds, bool)
        if not whole or not 0 <= n_rounds <= self.n_iter_:
            allowed = f"it must be an integer from 0 to {self.n_iter_}, the rounds of the model."
            raise ValueError(f"n_rounds={n_rounds!r} is not allowed; {allowed}")
        if hasattr(self, "best_iter_per_fold_"):
            raise ValueError(
                "A mean of models (n_folds) has members of different rounds, of which none come "
                "first; use staged_predict, or fit with a smaller max_iter."
            )
        shorter = copy.deepcopy(self)
        shorter._progress.truncate(int(n_rounds))
        if shorter._progress.importances is not None:
            # They were summed over all rounds.
            shorter._progress.importances = None
            shorter._progress.mean_importances = np.full(self.n_features_in_, np.nan)
            shorter._left_out = sorted({*self._left_out, IMPORTANCES})
        shorter.n_iter_ = shorter.best_iter_ = int(n_rounds)
        for name in ("train_score_", "validation_score_", "validation_score_per_output_"):
            if hasattr(self, name):
                setattr(shorter, name, getattr(self, name)[: n_rounds + 1])
        if hasattr(self, "validation_scores_"):
            curves = self.validation_scores_.items()
            shorter.validation_scores_ = {name: curve[: n_rounds + 1] for name, curve in curves}
        if hasattr(self, "best_iter_per_output_"):
            best = np.minimum(self.best_iter_per_output_, n_rounds)
            shorter.best_iter_per_output_ = best
        return shorter

    def _staged_raw_predict(self, X: Any, offset: Any = None) -> Iterator[F64]:
        """Yield raw predictions after each round."""
        X = self._checked_X(X)
        offsets = self._checked_offset(offset, X)
        raw = np.zeros((X.shape[0], self.n_outputs_), np.float32)
        pool = _core.Pool(resolve_threads(self.n_jobs))
        for m in range(self.n_iter_):
            self._progress.model.add_to(pool, X, m, m + 1, raw)
            stage = self.baseline_ + raw
            yield stage if offsets is None else stage + offsets
