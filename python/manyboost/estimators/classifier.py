"""The classifier: one class of several, or any of several labels."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from manyboost import _core, params
from manyboost.arrays import F64
from manyboost.data.cells import missing_cells
from manyboost.data.features import Table, to_single
from manyboost.data.labels import ClassColumns, Classes, read_labels, side_by_side
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
from manyboost.spelling import nearest
from manyboost.training.calibrators import fit_calibrator
from manyboost.training.callbacks import Callback
from manyboost.training.checkpoints import Checkpoint
from manyboost.training.custom import Loss, has_own_link
from manyboost.training.losses import CLASS_LOSSES, LABEL_LOSSES
from manyboost.training.projections import Projection
from manyboost.training.scoring import RunningClassifier
from manyboost.training.thresholds import tune_thresholds


@documented
class ManyBoostClassifier(ClassifierMixin, Folding, Ranking, Sets):
    """Gradient tree boosting for classes, or for one or many labels.

    A one-dimensional y holds one class per row. A two-dimensional one of 0 and 1 is an indicator
    with a column for every label; with any other value it holds several columns of classes. A list
    of sets names the labels of each row. Rank labels by :meth:`decision_function` or
    :meth:`predict_top_k`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray, or list of ndarray
        The sorted classes or labels; for an indicator, the names or numbers of its columns. For
        several columns of classes, a list with the sorted classes of each.
    thresholds_ : ndarray of shape (n_outputs_,)
        Probability above which a label is predicted, if ``thresholds`` was given.
    n_outputs_ : int
        Number of outputs: one for each label or class, but one for two classes; for several columns
        of classes, the sum over the columns.
    n_classes_ : int, or list of int
        Number of classes, or of labels; for several columns of classes, a list.
    output_names_ : ndarray of shape (n_outputs_,)
        Names of the outputs, if y had them: columns of a frame, or labels in sets.
    target_name_ : str
        Name of y, if it held one class per row and had a name: a series, or a frame of one column.
    target_names_ : ndarray of shape (n_columns,)
        Names of several columns of classes, if y was a frame.
    oof_decision_function_ : ndarray of the shape of :meth:`decision_function`
        With ``n_folds``, the raw predictions for each training row of the member that was trained
        without it; NaN for rows that were not trained on.
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
        calibration: str | None = None,
        label_hierarchy: Any = None,
        early_stopping: str | bool = "auto",
        validation_fraction: int | float | None = 0.1,
        validation_split: Any = "random",
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
        y : array-like or sparse matrix of shape (n_rows,) or (n_rows, n_columns), or list of sets
            One class per row; an indicator of 0 and 1 with a column for every label; several
            columns of classes, if an array or frame holds any other value; or the labels of each
            row: a set, or a list, tuple or array (read as labels if lengths differ or labels are
            text, else as a row of a table). NaN, None and pandas.NA are missing cells of a table.
        sample_weight : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Weights of the rows, or of single cells of a table; weight zero makes a cell missing.
            Where labels stay sparse (``max_leaf_outputs``), weights of cells are a sparse matrix;
            cells that it does not store have the weight 1.
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
            label_hierarchy=self.label_hierarchy,
            sparsity=label_sparsity(self, given),
        )

    def _learn_targets(self, reader: Reader) -> None:
        assert isinstance(reader, LabelReader)
        classes = reader.classes
        self._check_thresholds(classes)
        self._check_calibration(classes)
        if classes.kind != "multilabel" and self.max_leaf_outputs is not None:
            raise ValueError(
                f"max_leaf_outputs={self.max_leaf_outputs!r} is for labels, but y holds classes; "
                "leave it at None."
            )
        most = max(map(len, classes.values)) if classes.kind == "columns" else len(classes.values)
        one_way = classes.kind in ("binary", "multilabel") or most == 2
        if self.monotonic_cst is not None and not one_way:
            raise ValueError(
                f"monotonic_cst is not defined for {most} classes, whose "
                "probabilities cannot all move one way; use it with two classes or with labels."
            )
        self._classes, self.classes_, self._class_weights = classes, classes.values, reader.table
        for name in ("_hierarchy", "target_name_", "target_names_"):
            self.__dict__.pop(name, None)
        if reader.hierarchy is not None:
            self._hierarchy = reader.hierarchy
        if reader.target_name is not None:
            self.target_name_ = reader.target_name
        if isinstance(classes, ClassColumns) and classes.names is not None:
            self.target_names_ = np.array(classes.names, dtype=object)

    _running = RunningClassifier

    @property
    def n_classes_(self) -> Any:
        """Number of classes, or of labels; a list for several columns of classes."""
        check_is_fitted(self, "classes_")  # a model in training has them too
        if self._classes.kind == "columns":
            return list(map(len, self.classes_))
        return len(self.classes_)

    def _keep_unseen(self, unseen: Unseen) -> None:
        super()._keep_unseen(unseen)
        self.oof_decision_function_ = unseen.placed(self._decision(unseen.raw))
        if self.calibration is not None:
            weight = self._given_weight(unseen.rows)
            parts = unseen.raw, unseen.rows.Y, weight, BLOCK_CELLS
            self._calibrator = fit_calibrator(self.calibration, *parts)

    def _targets(self, Y: NDArray[Any]) -> NDArray[Any]:
        return self._classes.decode(Y)

    def _offset_of(self, offset: Any, X: Table, n_outputs: int) -> F64:
        softmax = self._fitted_loss.has_softmax or self._classes.kind == "columns"
        return check_offset(offset, X, n_outputs, self._classes.output_names, softmax=softmax)

    def _check_loss(self) -> None:
        if not isinstance(self.loss, Loss) and self.loss not in list(LABEL_LOSSES):
            remedy = nearest(str(self.loss), LABEL_LOSSES, other="a Loss object")
            problem = f"loss={self.loss!r} is not a classification loss for all outputs"
            raise ValueError(f"{problem}; {remedy}")
        if not isinstance(self.loss, Loss) or has_own_link(self.loss):
            return
        for name in ("thresholds", "calibration"):
            if getattr(self, name) is not None:
                problem = f"{type(self.loss).__name__} has no inverse_link"
                raise ValueError(
                    f"{name} needs probabilities, but {problem}; implement it, or leave {name} out."
                )

    def _check_thresholds(self, classes: Classes) -> None:
        """Refuse thresholds that do not go with the classes."""
        if self.thresholds is None:
            return
        if classes.kind in ("multiclass", "columns"):
            several = classes.kind == "columns"
            what = "of each column" if several else f"of the {len(classes.values)} classes"
            raise ValueError(
                f"thresholds={self.thresholds!r} was given, but {what} the most likely "
                f"{'class' if several else 'one'} is predicted; use thresholds=None."
            )
        shape = np.shape(self.thresholds)
        if shape not in ((), (classes.n_outputs,)):
            raise ValueError(
                f"thresholds holds {shape[0]} numbers, but there are {classes.n_outputs} labels; "
                "give one number for each label, or one for all."
            )

    def _check_calibration(self, classes: Classes) -> None:
        """Refuse a calibration that has nothing to go by."""
        what = f"calibration={self.calibration!r}"
        if self.calibration is not None and self.n_folds is None:
            problem = f"{what} needs out-of-fold predictions, which only folds give"
            raise ValueError(f"{problem}; set n_folds=5, or leave it out.")
        if self.calibration is not None and classes.kind in ("multiclass", "columns"):
            of = "columns of classes" if classes.kind == "columns" else "classes"
            problem = f"{what} is for labels and two classes, but y has {len(classes.values)} {of}"
            raise ValueError(f"{problem}; leave it out.")

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
        together = self._is_joint or self.estimator is not None
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

    @explained
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
        sparse_output : bool
            Return a sparse matrix (CSR) of the labels that the leaves of each row have values for;
            all others are at ``baseline_``. It needs a model that was fitted with
            ``max_leaf_outputs``.
        {dtype}
        """
        if sparse_output:
            return self._support(X, offset=offset, outputs=outputs, dtype=dtype)
        places, type_ = self._check_request(outputs, dtype)
        joint = self._hierarchy is not None
        values = self._predicted(X, self._decision, places, type_, offset=offset, joint=joint)
        return self._framed(values, X, places, self._column_names())

    @explained
    def predict_proba(
        self, X: Any, *, offset: Any = None, outputs: Any = None, dtype: DTypeLike = np.float64
    ) -> Any:
        """Probabilities: (n_rows, n_classes), or (n_rows, n_labels) of each label being present.

        For several columns of classes it is a list with an array (n_rows, n_classes) for each.

        Parameters
        ----------
        {request}
        {dtype}
        """
        places, type_ = self._check_request(outputs, dtype)
        if isinstance(self._classes, ClassColumns):
            self._refuse_outputs(outputs)
            values = self._predicted(X, self._shares, None, type_, offset=offset)
            parts = zip(self._by_column(values), self.classes_, strict=True)
            return [self._framed(part, X, None, names) for part, names in parts]
        joint = self._classes.kind == "multiclass" or self._is_joint
        proba = functools.partial(self._shares, outputs=None if joint else places)
        values = self._predicted(X, proba, places, type_, offset=offset, joint=joint)
        return self._framed(values, X, places, self._column_names())

    @explained
    def predict(self, X: Any, *, offset: Any = None, outputs: Any = None) -> Any:
        """Classes (n_rows,) or (n_rows, n_columns), or an indicator of labels (n_rows, n_labels).

        Parameters
        ----------
        {request}

        Returns
        -------
        ndarray, or a frame of the columns or of the indicator (see :meth:`set_output`)
        """
        places, _ = self._check_request(outputs, np.float64)
        if isinstance(self._classes, ClassColumns):
            self._refuse_outputs(outputs)
            dtype = side_by_side([values[:1] for values in self.classes_]).dtype
            values = self._predicted(X, self._labels, None, dtype, offset=offset)
            names = self._classes.names or [f"y{j}" for j in range(len(self.classes_))]
            return self._framed(values, X, None, names)
        if self._classes.kind != "multilabel":
            if outputs is not None:
                raise ValueError(
                    f"outputs={outputs!r} was given, but one of {len(self.classes_)} classes is "
                    "predicted, for which all are needed; leave outputs out."
                )
            return self._predicted(X, self._labels, None, self.classes_.dtype, offset=offset)
        by_probability = hasattr(self, "thresholds_") or self._calibrator is not None
        joint = (self._fitted_loss.is_joint and by_probability) or self._hierarchy is not None
        finish = functools.partial(self._indicator, outputs=None if joint else places)
        values = self._predicted(X, finish, places, np.int64, offset=offset, joint=joint)
        return self._framed(values, X, places, self._column_names())

    def predict_labels(
        self, X: Any, recall: float | None = None, *, offset: Any = None
    ) -> list[tuple[Any, ...]]:
        """Return the labels of each row as a tuple, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        recall : float, optional
            Share of the true labels of a row to find, on average over new rows that have any
            (conformal risk control). It needs a model that was fitted with ``n_folds``: the
            threshold comes from members on rows that they were not trained on. That it holds for
            the mean of members is measured, not proven. None: the labels of :meth:`predict`.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.

        Returns
        -------
        list of tuple
        """
        check_is_fitted(self, "n_iter_")
        self._refuse_columns("predict_labels", "predict")
        if self._classes.kind != "multilabel":
            predicted = f"one of {len(self.classes_)} classes"
            raise ValueError(
                f"predict_labels is for labels, but this model predicts {predicted}; use predict."
            )
        least = None if recall is None else self._least_raw(recall)
        sets: list[tuple[Any, ...]] = []

        def collect(raw: F64) -> NDArray[Any]:
            present = self._labels(raw) > 0 if least is None else self._decision(raw) >= least
            sets.extend(tuple(self.classes_[row].tolist()) for row in present)
            return np.empty(len(raw), np.uint8)

        self._predicted(X, collect, None, np.uint8, offset=offset)
        return sets

    def _refuse_outputs(self, outputs: Any) -> None:
        """Refuse some outputs of several columns of classes, which are predicted as a whole."""
        if outputs is not None:
            raise ValueError(
                f"outputs={outputs!r} was given, but the model predicts {len(self.classes_)} "
                "columns of classes; leave outputs out, and take what is wanted from the result."
            )

    def _column_names(self) -> Any:
        """Names of the columns of frames: labels or classes, None if labels have no names."""
        by_class = self._classes.kind in ("binary", "multiclass")
        return self.classes_ if by_class else self._known_names()

    def _known_names(self) -> list[str] | None:
        if isinstance(self._classes, ClassColumns):
            return self._classes.output_names
        if self._classes.kind != "multilabel":
            text = all(isinstance(each, str) for each in self.classes_)
            return [str(each) for each in self.classes_] if text else None
        return super()._known_names()

    def _target_names(self) -> Sequence[str] | None:
        if isinstance(self._classes, ClassColumns):
            return self._classes.names
        return self._classes.output_names or super()._target_names()

    def _explained_names(self, places: list[int] | None) -> list[str]:
        if self._classes.kind not in ("binary", "multiclass"):
            return super()._explained_names(places)
        # The one output of two classes speaks for the second.
        names = list(map(str, self.classes_[1:] if self._is_single() else self.classes_))
        return names if places is None else [names[j] for j in places]

    def _is_single(self) -> bool:
        return self._classes.kind == "binary"

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Return the accuracy; for several labels or columns, a row counts if all of it is right.

        Missing cells do not count.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        y : array-like or list of sets
            Classes or labels as in :meth:`fit`.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        offset : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
            Offsets of the raw predictions, if the model was fitted with offsets.
        """
        # (Importing it takes as long as everything else.)
        from sklearn.metrics import accuracy_score

        check_is_fitted(self, "n_iter_")
        predicted = np.asarray(self.predict(X, offset=offset))
        check_output_names(y, self._classes.names, "y")
        labels = read_labels(y, predicted, classes=self._classes)[1]
        weight = check_weight(sample_weight, predicted.shape[:1], "sample_weight")
        if self._classes.kind in ("binary", "multiclass"):
            return float(accuracy_score(labels, predicted, sample_weight=weight))
        if self._classes.kind == "columns":
            predicted = self._classes.encode(list(predicted.T), softmax=False)
        labels = self._classes.encode(labels, softmax=False)
        labels = labels if self._hierarchy is None else self._hierarchy.closed(labels)
        missing = missing_cells(labels)
        right = ((labels == predicted) | missing).all(axis=1)
        there = ~missing.all(axis=1)
        if not there.any() or (weight is not None and not weight[there].any()):
            raise ValueError("y has no observed label in rows of positive weight; pass some.")
        return float(np.average(right[there], weights=None if weight is None else weight[there]))

    def staged_decision_function(self, X: Any, *, offset: Any = None) -> Iterator[F64]:
        """Yield :meth:`decision_function` after each round."""
        return map(self._decision, self._staged_raw_predict(X, offset))

    def staged_predict_proba(self, X: Any, *, offset: Any = None) -> Iterator[Any]:
        """Yield :meth:`predict_proba` after each round."""
        return map(self._probabilities, self._staged_raw_predict(X, offset))

    def staged_predict(self, X: Any, *, offset: Any = None) -> Iterator[NDArray[Any]]:
        """Yield :meth:`predict` after each round."""
        return map(self._labels, self._staged_raw_predict(X, offset))

    @property
    def _is_joint(self) -> bool:
        """Whether the prediction of an output may depend on the raw predictions of others."""
        return self._fitted_loss.is_joint or self._hierarchy is not None

    def _decision(self, raw: F64) -> F64:
        if self._hierarchy is not None:
            return self._hierarchy.consistent(raw)
        return raw[:, 0] if self._classes.kind == "binary" else raw

    def _probabilities(self, raw: F64) -> Any:
        shares = self._shares(raw)
        return self._by_column(shares) if self._classes.kind == "columns" else shares

    def _by_column(self, shares: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the probabilities of the classes of each column."""
        return np.split(shares, np.cumsum(self.n_classes_)[:-1], axis=1)

    def _shares(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Probabilities of classes or labels, those of several columns side by side."""
        proba, classes = self._present(raw, outputs), self._classes
        if isinstance(classes, ClassColumns):
            parts = zip(classes.split(proba), classes.columns, strict=True)
            return np.hstack([self._shares_of(part, column.kind) for part, column in parts])
        return self._shares_of(proba, classes.kind)

    def _shares_of(self, proba: F64, kind: str) -> F64:
        if kind == "binary":
            return np.column_stack([1 - proba[:, 0], proba[:, 0]])
        if kind == "multiclass" and not self._fitted_loss.has_softmax:
            # One class against the rest, brought to a sum of one.
            proba = np.array(proba, np.float64, order="C")
            _core.share(proba)
        return proba

    def _labels(self, raw: F64) -> NDArray[Any]:
        if isinstance(self._classes, ClassColumns):
            parts = zip(self._classes.split(raw), self.classes_, strict=True)
            return side_by_side(
                [
                    values[part.argmax(axis=1) if len(values) > 2 else (part[:, 0] > 0).astype(int)]
                    for part, values in parts
                ]
            )
        kind, values = self._classes.kind, self._classes.values
        if kind == "multiclass":
            return np.asarray(values[raw.argmax(axis=1)])
        present = self._indicator(raw)
        return present if kind == "multilabel" else np.asarray(values[present[:, 0]])

    def _indicator(self, raw: F64, outputs: list[int] | None = None) -> NDArray[np.int64]:
        """1 where a label is likelier than its threshold; without one, likelier than not."""
        thresholds = getattr(self, "thresholds_", None)
        if thresholds is None and self._calibrator is None:
            above = raw
        else:
            least = np.full(self.n_outputs_, 0.5) if thresholds is None else thresholds
            least = least if outputs is None else least[outputs]
            above = self._present(raw, outputs) - least
        if self._hierarchy is not None:
            above = self._hierarchy.consistent(above)
        return (above > 0).astype(np.int64)

    def _present(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Return the probability of each class or label on its own."""
        custom = self._fitted_loss.custom
        name = type(custom).__name__
        if custom is not None and not has_own_link(custom):
            problem = f"{name} has no inverse_link from raw predictions to probabilities"
            raise ValueError(f"{problem}; implement it, or use decision_function and predict.")
        proba = self._fitted_loss.predict(raw, outputs)
        if custom is not None and not ((proba >= 0) & (proba <= 1)).all():
            raise ValueError(
                f"{name}.inverse_link returned numbers from {proba.min():g} to {proba.max():g}; it "
                "must return probabilities from 0 to 1."
            )
        if self._calibrator is not None:
            proba = self._calibrator.probabilities(raw, proba, outputs)
        return proba if self._hierarchy is None else self._hierarchy.consistent(proba)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
