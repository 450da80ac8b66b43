"""Scorers for targets with missing values, under scikit-learn's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manyboost.data.labels import indicator, read_label_sets
from manyboost.data.targets import check_output_names, check_targets
from manyboost.spelling import nearest
from manyboost.training.scoring import observed_mean


def get_scorer(name: str) -> ObservedScorer:
    """Return a scorer that counts each output, or label, where it is observed.

    scikit-learn's own scorers refuse targets with NaN. These are the mean of the same metric over
    the outputs, each on the rows that have a value for it. Where nothing is missing they agree with
    scikit-learn. ROC AUC is the mean over the labels that have both values in the rows.

    Parameters
    ----------
    name : str
        One of :func:`get_scorer_names`, such as ``"r2"``, ``"neg_mean_absolute_error"``,
        ``"f1_macro"`` or ``"roc_auc"``.

    Returns
    -------
    callable
        It takes (estimator, X, y, sample_weight=None), for ``scoring=`` of ``GridSearchCV``,
        ``cross_validate`` and similar. The estimators' own ``scoring=`` takes the names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from manyboost import ManyBoostRegressor
    >>> from manyboost.metrics import get_scorer
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> Y = X[:, :2].copy()
    >>> Y[::3, 0] = np.nan
    >>> model = ManyBoostRegressor(max_iter=50, random_state=0)
    >>> bool(cross_val_score(model, X, Y, scoring=get_scorer("r2"), cv=3).min() > 0.5)
    True
    """
    names = get_scorer_names()
    if name not in names:
        what = f"scorer {name!r} is no mean over outputs or labels, or does not exist"
        raise ValueError(f"The {what}; {nearest(str(name), names)}")
    return ObservedScorer(name)


def get_scorer_names() -> list[str]:
    """Return the names that :func:`get_scorer` takes."""
    from sklearn.metrics import get_scorer, get_scorer_names

    return [name for name in get_scorer_names() if observed_mean(get_scorer(name)) is not None]


@dataclass(frozen=True)
class ObservedScorer:
    """A scorer of scikit-learn, output by output where targets are missing."""

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted model on rows; ``sample_weight`` may be one of cells."""
        from sklearn.metrics import get_scorer

        scorer = get_scorer(self.name)
        classes = getattr(estimator, "classes_", None)
        if isinstance(classes, list):
            what = f"is not for several columns of classes, of which the model has {len(classes)}"
            raise ValueError(f"The scorer {self.name!r} {what}; score each column by itself.")
        check_output_names(y, getattr(estimator, "output_names_", None), "y")
        if classes is not None:
            if (sets := read_label_sets(y)) is not None:
                y = indicator(sets, np.asarray(classes))
            y = y.toarray() if sparse.issparse(y) else y
        if classes is None or np.ndim(y) == 2:
            Y = check_targets(y, np.empty((len(y), 0)))
            weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
            mean = observed_mean(scorer)
            assert mean is not None
            return mean(estimator, X, Y, weight=weight)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(estimator, X, y, **weights))

    @property
    def __name__(self) -> str:
        """What records of scores call it."""
        return self.name
