"""Rows: put together, and set apart for validation."""

import numpy as np
import pytest

from manyboost.data.cells import TargetKind
from manyboost.data.rows import make_rows, split_validation


def numbers(n=200, d=3, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sign(X[:, :d]) + X[:, :d] + 0.3 * rng.normal(size=(n, d))


@pytest.mark.parametrize(("fraction", "expected"), [(0.25, 50), (37, 37), (0.001, 1)])
def test_validation_rows_are_set_apart_by_fraction_or_number(fraction, expected):
    X, Y = numbers()
    weight = np.arange(1.0, 201)
    train, val = split_validation(make_rows(X, Y, weight, "sample_weight"), fraction, seed=0)
    assert len(val.X) == expected
    assert sorted([*train.numbers, *val.numbers]) == list(range(200))
    for rows in (train, val):
        assert np.array_equal(rows.X, X[rows.numbers])
        assert np.array_equal(rows.Y, Y[rows.numbers])
        assert np.array_equal(rows.weights.rows, weight[rows.numbers])


def test_validation_rows_are_another_choice_with_another_seed():
    rows = make_rows(*numbers(), None, "sample_weight")

    def chosen(seed):
        return split_validation(rows, 0.3, seed)[1].numbers.tolist()

    assert chosen(0) == chosen(0) != chosen(1)


def test_validation_rows_are_shared_out_over_the_classes():
    X, _ = numbers()
    y = np.r_[np.zeros(150), np.ones(40), np.full(9, 2), 3].astype(int)
    train, val = split_validation(make_rows(X, y, None, "", kind=TargetKind.CLASSES), 0.2, 0)
    assert np.bincount(val.Y, minlength=4).tolist() == [30, 8, 2, 0]
    assert set(train.Y) == {0, 1, 2, 3}
