"""Models with folds, for tests of what is made of them."""

from manyboost import ManyBoostClassifier, ManyBoostRegressor


def fold(estimator, X, y, sample_weight=None, *, offset=None, groups=None, n_folds=5):
    """Fit ``estimator`` with folds."""
    estimator.set_params(n_folds=n_folds)
    return estimator.fit(X, y, sample_weight, offset=offset, groups=groups)


def folded_regressor(X, y, sample_weight=None, *, loss="squared_error", offset=None, **parameters):
    model = ManyBoostRegressor(loss, random_state=0, n_jobs=1, **parameters)
    return fold(model, X, y, sample_weight, offset=offset)


def folded_classifier(X, y, sample_weight=None, *, offset=None, **parameters):
    model = ManyBoostClassifier(random_state=0, n_jobs=1, **parameters)
    return fold(model, X, y, sample_weight, offset=offset)
