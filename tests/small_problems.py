"""Sixty rows with numbers, labels and classes, and models of three rounds."""

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2]]) + 0.1 * RNG.normal(size=(60, 2))
LABELS = (Y > 0).astype(int)
CLASSES = np.array(["a", "b", "c"])[np.clip(np.round(Y[:, 0]) + 1, 0, 2).astype(int)]


def regressor(**parameters):
    """A regressor of three rounds."""
    return ManyBoostRegressor(**{"max_iter": 3, "random_state": 0, "n_jobs": 1, **parameters})


def classifier(**parameters):
    """A classifier of three rounds."""
    return ManyBoostClassifier(**{"max_iter": 3, "random_state": 0, "n_jobs": 1, **parameters})


def stepped_numbers(n=200, d=3, p=5, seed=0):
    """Rows whose outputs step and rise with a feature each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sign(X[:, :d]) + X[:, :d] + 0.3 * rng.normal(size=(n, d))


def stepped_labels(n=200, d=3, seed=0):
    """The same as labels."""
    X, Y = stepped_numbers(n, d, seed=seed)
    return X, (Y > 0).astype(int)


def replaced(array, place, value):
    """A copy with one value changed."""
    changed = array.astype(object if isinstance(value, str) else array.dtype)
    changed[place] = value
    return changed


def missing(array, *places):
    """A copy with NaN in some places."""
    array = array.astype(float)
    for place in places:
        array[place] = np.nan
    return array
