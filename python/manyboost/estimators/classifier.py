"""The classifier: one class of several, or any of several labels."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from manyboost import params
from manyboost.arrays import F64
from manyboost.data.cells import missing_cells
from manyboost.data.features import Table, to_single
from manyboost.data.labels import Classes, read_labels
from manyboost.data.rows import LabelReader, Reader, Rows
from manyboost.data.targets import check_offset, check_output_names
from manyboost.data.weights import check_weight, without_class_weights
from manyboost.estimators.documentation import documented
from manyboost.estimators.elsewhere import explained
from manyboost.estimators.fits import Given, Unseen, validation_targets
from manyboost.estimators.folding import Folding
from manyboost.estimators.predicting import BLOCK_CELLS
from manyboost.estimators.ranking import Ranking
from manyboost.estimators.sparsity import label_sparsity
from manyboost.estimators.uncertainty import Sets
from manyboost.training.callbacks import Callback
from manyboost.training.checkpoints import Checkpoint
from manyboost.training.custom import Loss
from manyboost.training.losses import CLASS_LOSSES, LABEL_LOSSES
from manyboost.training.projections import Projection
from manyboost.training.scoring import RunningClassifier
from manyboost.training.thresholds import tune_thresholds


@documented
class ManyBoostClassifier(ClassifierMixin, Folding, Ranking, Sets):
    """Gradient tree boosting for classes, or for one or many labels.

    A one-dimensional y holds one class per row; a two-dimensional one is an indicator of 0 and 1
    with a column for every label; a list of sets names the labels of each row. Rank labels by
    :meth:`decision_function` or :meth:`predict_top_k`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray
        The sorted classes or labels; of an indicator the names of its columns, or their numbers.
    thresholds_ : ndarray of shape (n_outputs_,)
        Probability above which a label is predicted, if ``thresholds`` was given.
    n_outputs_ : int
        Number of outputs: labels, classes, or 1 for two classes.
    n_classes_ : int
        Number of classes, or of labels: the length of ``classes_``.
    output_names_ : ndarray of shape (n_outputs_,)
        Names of the outputs, if y had them: columns of a frame, or labels in sets.
    target_name_ : str
        Name of y, if it held one class per row and had a name: a series, or a frame of one column.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from manyboost import ManyBoostClassifier
    >>> X, Y = make_multilabel_classification(n_samples=500, n_classes=8, random_state=0)
    >>> model = ManyBoostClassifier(random_state=0).fit(X, Y)
    >>> model.predict_proba(X[:2]).shape
    (2, 8)
    """

    @explained
    def __init__(
        self,
        loss: str | Loss = "log_loss",
        *,
        strategy: str = "relabel",
        projection: str | Projection = "gaussian",
        n_components: int | float = 1,
        step: str = "auto",
        learning_rate: str | float = "auto",
        max_iter: str | int = "auto",
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: str | int = "auto",
        min_split_gain: float = 0.0,
        l2_regularization: str | float = "auto",
        max_features: int | float | str = 1.0,
        max_leaf_outputs: int | None = None,
        subsample: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        output_weight: Any = None,
        class_weight: Any = None,
        estimator: Any = None,
        thresholds: Any = None,
        early_stopping: str | bool = "auto",
        validation_fraction: int | float | None = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-7,
        scoring: Any = "loss",
        n_folds: int | None = None,
        refit_all: bool = False,
        max_time: float | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        callbacks: list[Callback] | None = None,
        verbose: int | bool = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        params.assign(self, locals())

    @explained
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        Y_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        offset: Any = None,
        offset_val: Any = None,
        groups: Any = None,
    ) -> ManyBoostClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features; NaN is a missing value.
        y : array-like or sparse matrix of shape (n_rows,) or (n_rows, n_labels), or list of sets
            One class per row, an indicator of 0 and 1 with a column for every label, or the labels
            of each row: a set, or a list or tuple (read as labels if lengths differ or labels are
            text, else as a row of an indicator). NaN, None and pandas.NA are missing labels.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_labels), optional
            Weights of the rows, or of single labels; weight zero makes a label missing.
        {fit}
        """
        validation = X_val, validation_targets(Y_val, y_val), sample_weight_val
        self._fit(Given(X, y, sample_weight, *validation, offset, offset_val, groups))
        return self

    def _reader(self, given: Given, *, continued: bool) -> LabelReader:
        self._check_loss()
        return LabelReader(
            given.comm,
            softmax=isinstance(self.loss, str) and self.loss in CLASS_LOSSES,
            class_weight=self.class_weight,
            classes=self._classes if continued else None,
            sparsity=label_sparsity(self, given),
        )

    def _learn_targets(self, reader: Reader) -> None:
        assert isinstance(reader, LabelReader)
        classes = reader.classes
        self._check_thresholds(classes)
        if classes.kind != "multilabel" and self.max_leaf_outputs is not None:
            raise ValueError(
                f"max_leaf_outputs={self.max_leaf_outputs!r} is for labels, but y has one class "
                "per row; leave it at None."
            )
        if classes.kind == "multiclass" and self.monotonic_cst is not None:
            raise ValueError(
                f"monotonic_cst is not defined for {len(classes.values)} classes, whose "
                "probabilities cannot all move one way; use it with two classes or with labels."
            )
        self._classes, self.classes_, self._class_weights = classes, classes.values, reader.table
        self.__dict__.pop("target_name_", None)
        if reader.target_name is not None:
            self.target_name_ = reader.target_name

    _running = RunningClassifier

    @property
    def n_classes_(self) -> int:
        """Number of classes, or of labels."""
        check_is_fitted(self, "n_iter_")
        return len(self.classes_)

    def _keep_unseen(self, unseen: Unseen) -> None:
        super()._keep_unseen(unseen)
        self.oof_decision_function_ = unseen.placed(self._decision(unseen.raw))

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        return self._classes.decode(Y)

    def _offset_of(self, offset: Any, X: Table, n_outputs: int) -> F64:
        return check_offset(offset, X, n_outputs, softmax=self._fitted_loss.facts.is_joint)

    def _check_loss(self) -> None:
        if not isinstance(self.loss, Loss) and self.loss not in list(LABEL_LOSSES):
            raise ValueError(
                f"loss={self.loss!r} is not a classification loss for all outputs; use one of "
                f"{', '.join(map(repr, LABEL_LOSSES))}, or a Loss object."
            )

    def _check_thresholds(self, classes: Classes) -> None:
        """Refuse thresholds that do not go with the classes."""
        if self.thresholds is None:
            return
        if classes.kind == "multiclass":
            raise ValueError(
                f"thresholds={self.thresholds!r} was given, but of the {len(classes.values)} "
                "classes the most likely one is predicted; use thresholds=None."
            )
        shape = np.shape(self.thresholds)
        if shape not in ((), (classes.n_outputs,)):
            raise ValueError(
                f"thresholds holds {shape[0]} numbers, but there are {classes.n_outputs} labels; "
                "give one number for each label, or one for all."
            )

    def _given_thresholds(self, n_outputs: int) -> F64 | None:
        if self.thresholds is None or isinstance(self.thresholds, str):
            return None
        return np.broadcast_to(np.asarray(self.thresholds, np.float64), n_outputs).copy()

    def _tune_thresholds(self, validation: Rows | Unseen | None) -> None:
        if not isinstance(self.thresholds, str):
            return
        assert validation is not None
        if isinstance(validation, Unseen):
            rows, known = validation.rows, validation.raw
        else:
            rows, known = validation, None
        X = rows.X
        if self.estimator is None:
            X = to_single(X)
        Y, offset, d = rows.Y, rows.offset, self.n_outputs_
        weight = self._given_weight(rows)
        together = self._fitted_loss.is_joint or self.estimator is not None
        # Some labels at a time: probabilities of all never exist in double precision.
        size = d if together else max(1, BLOCK_CELLS // len(Y))
        thresholds = []
        for start in range(0, d, size):
            block = slice(start, start + size)
            outputs = None if size >= d else list(range(d))[block]
            if known is not None:
                raw = known[:, block]
            else:
                raw = self._raw_predictor(outputs)(X)
                raw = raw if offset is None else raw + offset[:, block]
            proba = self._present(raw, outputs)
            of_block = weight if weight is None or weight.ndim == 1 else weight[:, block]
            thresholds.append(tune_thresholds(proba, Y[:, block], of_block))
        self.thresholds_ = np.concatenate(thresholds)

    def _given_weight(self, rows: Rows) -> NDArray[Any] | None:
        # How much a mistake costs in training is no matter of how often labels are found.
        return without_class_weights(rows.weights, rows.Y, self._class_weights)

    def decision_function(
        self,
        X: Any,
        *,
        offset: Any = None,
        outputs: Any = None,
        dtype: DTypeLike = np.float64,
        sparse_output: bool = False,
    ) -> Any:
        """Raw predictions: (n_rows,) for two classes, else (n_rows, n_outputs).

        Parameters
        ----------
        {request}
        {dtype}
        sparse_output : bool
            Return a sparse matrix (CSR) of the labels that the leaves of each row have values for;
            all others are at ``baseline_``. It needs a model that was fitted with
            ``max_leaf_outputs``.
        """
        if sparse_output:
            return self._support(X, offset=offset, outputs=outputs, dtype=dtype)
        places, type_ = self._check_request(outputs, dtype)
        values = self._predicted(X, self._decision, places, type_, offset=offset)
        return self._framed(values, X, places, self._column_names())

    @explained
    def predict_proba(
        self, X: Any, *, offset: Any = None, outputs: Any = None, dtype: DTypeLike = np.float64
    ) -> Any:
        """Probabilities: (n_rows, n_classes), or (n_rows, n_labels) of each label being present.

        Parameters
        ----------
        {request}
        {dtype}
        """
        places, type_ = self._check_request(outputs, dtype)
        joint = self._classes.kind == "multiclass" or self._fitted_loss.is_joint
        proba = self._probabilities
        values = self._predicted(X, proba, places, type_, offset=offset, joint=joint)
        return self._framed(values, X, places, self._column_names())

    @explained
    def predict(self, X: Any, *, offset: Any = None, outputs: Any = None) -> Any:
        """Classes (n_rows,), or an indicator of the labels (n_rows, n_labels).

        Parameters
        ----------
        {request}

        Returns
        -------
        ndarray, or a frame of the indicator (see :meth:`set_output`)
        """
        places, _ = self._check_request(outputs, np.float64)
        if self._classes.kind != "multilabel":
            if outputs is not None:
                raise ValueError(
                    f"outputs={outputs!r} was given, but one of {len(self.classes_)} classes is "
                    "predicted, for which all are needed; leave outputs out."
                )
            return self._predicted(X, self._labels, None, self.classes_.dtype, offset=offset)
        thresholds = getattr(self, "thresholds_", None)
        joint = self._fitted_loss.is_joint and thresholds is not None
        if thresholds is not None and places is not None and not joint:
            thresholds = thresholds[places]
        finish = functools.partial(self._indicator, thresholds=thresholds)
        values = self._predicted(X, finish, places, np.int64, offset=offset, joint=joint)
        return self._framed(values, X, places, self._column_names())

    def predict_labels(
        self, X: Any, recall: float | None = None, *, offset: Any = None
    ) -> list[tuple[Any, ...]]:
        """Return the labels of each row, in the form of the sets that fit takes, in their order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        recall : float, optional
            Share of its true labels that the answer for a row is to hold, in the mean over new rows
            that have any (conformal risk control). It needs a model that was fitted with
            ``n_folds``, whose members are judged on rows they have not seen; that it holds for
            their mean is measured, not proven. None: the labels of :meth:`predict`.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.

        Returns
        -------
        list of tuple
        """
        check_is_fitted(self, "n_iter_")
        if self._classes.kind != "multilabel":
            predicted = f"one of {len(self.classes_)} classes"
            raise ValueError(
                f"predict_labels is for labels, but this model predicts {predicted}; use predict."
            )
        least = None if recall is None else self._least_raw(recall)
        sets: list[tuple[Any, ...]] = []

        def collect(raw: F64) -> NDArray[Any]:
            present = self._labels(raw) > 0 if least is None else raw >= least
            sets.extend(tuple(self.classes_[row].tolist()) for row in present)
            return np.empty(len(raw), np.uint8)

        self._predicted(X, collect, None, np.uint8, offset=offset)
        return sets

    def _column_names(self) -> Any:
        """Names of the columns of frames: labels or classes, None if labels have no names."""
        return self._known_names() if self._classes.kind == "multilabel" else self.classes_

    def _known_names(self) -> list[str] | None:
        if self._classes.kind != "multilabel":
            text = all(isinstance(each, str) for each in self.classes_)
            return [str(each) for each in self.classes_] if text else None
        return super()._known_names()

    def _is_single(self) -> bool:
        return self._classes.kind == "binary"

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Return the accuracy, for labels that of whole rows, by the labels that are observed.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        y : array-like or list of sets
            Classes or labels as in :meth:`fit`.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with such.
        """
        # (Importing it takes as long as everything else.)
        from sklearn.metrics import accuracy_score

        check_is_fitted(self, "n_iter_")
        predicted = np.asarray(self.predict(X, offset=offset))
        if self._classes.kind != "multilabel":
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        labels = read_labels(y, predicted, classes=self._classes)[1]
        labels = self._classes.encode(labels, softmax=False)
        check_output_names(y, self._classes.names, "y")
        missing = missing_cells(labels)
        right = ((labels == predicted) | missing).all(axis=1)
        there = ~missing.all(axis=1)
        weight = check_weight(sample_weight, right.shape, "sample_weight")
        if not there.any() or (weight is not None and not weight[there].any()):
            raise ValueError("y has no observed label in rows of positive weight; pass some.")
        return float(np.average(right[there], weights=None if weight is None else weight[there]))

    def staged_decision_function(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield :meth:`decision_function` after each round."""
        return map(self._decision, self._staged_raw_predict(X, offset))

    def staged_predict_proba(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield :meth:`predict_proba` after each round."""
        return map(self._probabilities, self._staged_raw_predict(X, offset))

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[NDArray[Any]]:
        """Yield :meth:`predict` after each round."""
        return map(self._labels, self._staged_raw_predict(X, offset))

    def _decision(self, raw: F64) -> F64:
        return raw[:, 0] if self._classes.kind == "binary" else raw

    def _probabilities(self, raw: F64) -> F64:
        proba = self._present(raw)
        if self._classes.kind == "binary":
            return np.column_stack([1 - proba[:, 0], proba[:, 0]])
        if self._classes.kind == "multiclass" and not self._fitted_loss.facts.is_joint:
            # One class against the rest, brought to a sum of one.
            total = proba.sum(axis=1, keepdims=True)
            even = np.full_like(proba, 1 / proba.shape[1])
            return np.asarray(np.divide(proba, total, out=even, where=total > 0))
        return proba

    def _labels(self, raw: F64) -> NDArray[Any]:
        kind, values = self._classes.kind, self._classes.values
        if kind == "multiclass":
            return np.asarray(values[raw.argmax(axis=1)])
        present = self._indicator(raw, getattr(self, "thresholds_", None))
        return present if kind == "multilabel" else np.asarray(values[present[:, 0]])

    def _indicator(self, raw: F64, thresholds: F64 | None) -> NDArray[np.int64]:
        """1 where a label is likelier than its threshold; without one, likelier than not."""
        if thresholds is None:
            return (raw > 0).astype(np.int64)
        return (self._present(raw) > thresholds).astype(np.int64)

    def _present(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Return the probability of each class or label on its own."""
        custom = self._fitted_loss.custom
        name = type(custom).__name__
        if custom is not None and type(custom).inverse_link is Loss.inverse_link:
            problem = f"{name} has no inverse_link from raw predictions to probabilities"
            raise ValueError(f"{problem}; implement it, or use decision_function and predict.")
        proba = self._fitted_loss.predict(raw, outputs)
        if custom is not None and not ((proba >= 0) & (proba <= 1)).all():
            raise ValueError(
                f"{name}.inverse_link returned numbers from {proba.min():g} to {proba.max():g}; it "
                "must return probabilities from 0 to 1."
            )
        return proba

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
