"""Models with folds: members that have each not seen a fold, and what they say about it."""

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.estimators.fitting import Given
from manyboost.training.calibration import Calibration


def fold(estimator, X, y, sample_weight=None, *, offset=None, groups=None, n_folds=5):
    """Make ``estimator`` the mean of members that are fitted to all folds but one."""
    X, y = np.asarray(X), np.asarray(y)
    estimator.fit(X, y, sample_weight, offset=offset)
    rows = estimator._read(Given(X, y, sample_weight, offset=offset)).rows
    member = np.random.default_rng(0).permutation(len(X)).astype(np.uint8) % n_folds
    if groups is not None:
        of_group = np.random.default_rng(0).permutation(int(np.max(groups)) + 1) % n_folds
        member = of_group[groups].astype(np.uint8)
    members = []
    for k in range(n_folds):
        part = [None if each is None else each[member != k] for each in (sample_weight, offset)]
        twin = type(estimator)(**estimator.get_params())
        members.append(twin.fit(X[member != k], y[member != k], part[0], offset=part[1]))
    raw = np.empty((len(X), estimator.n_outputs_))
    for k, twin in enumerate(members):
        of_fold = None if offset is None else offset[member == k]
        raw[member == k] = twin._raw_predict(X[member == k], of_fold)
    kept = rows.numbers.astype(int)
    weight = estimator._given_weight(rows)
    estimator._calibration = Calibration.of(rows, raw[kept], member[kept], 0, weight)
    estimator._member_raw = lambda X, offset=None: np.stack(
        [twin._raw_predict(X, offset) for twin in members]
    )
    estimator._raw_predictor = lambda outputs: (
        lambda X: np.mean([twin._raw_predictor(outputs)(X) for twin in members], axis=0)
    )
    return estimator


def folded_regressor(X, y, sample_weight=None, *, loss="squared_error", offset=None, **parameters):
    model = ManyBoostRegressor(loss, random_state=0, n_jobs=1, **parameters)
    return fold(model, X, y, sample_weight, offset=offset)


def folded_classifier(X, y, sample_weight=None, *, offset=None, **parameters):
    model = ManyBoostClassifier(random_state=0, n_jobs=1, **parameters)
    return fold(model, X, y, sample_weight, offset=offset)
