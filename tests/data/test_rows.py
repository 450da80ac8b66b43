"""Rows: read alike for training and validation, put together, and set apart."""

from itertools import chain

import numpy as np
import pandas as pd
import pytest

from manyboost.comm import Threads
from manyboost.data.cells import TargetKind
from manyboost.data.rows import LabelReader, RealReader, make_rows, split_validation
from refusals import refusal
from small_problems import CLASSES, LABELS, X, Y


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


def counts_by_class(sizes, fraction, seed=0):
    """How many rows of each class train, and how many validate."""
    y = np.repeat(np.arange(len(sizes)), sizes).astype(np.uint32)
    rows = make_rows(np.zeros((len(y), 1)), y, None, "", kind=TargetKind.CLASSES)
    parts = split_validation(rows, fraction, seed)
    return [np.bincount(part.Y, minlength=len(sizes)) for part in parts]


@pytest.mark.parametrize("fraction", [0.1, 0.3, 40])
@pytest.mark.parametrize(
    "sizes",
    [[4] * 100, [5] * 100, [6] * 100, [300 // k for k in range(1, 101)]],
    ids=["4", "5", "6", "falling"],
)
def test_as_many_rows_as_asked_for_are_set_apart_where_classes_are_small(sizes, fraction):
    train, val = counts_by_class(sizes, fraction)
    n = sum(sizes)
    count = fraction if fraction > 1 else round(fraction * n)
    assert (train.sum(), val.sum()) == (n - count, count)
    assert train.min() > 0
    assert (np.abs(val - count * np.array(sizes) / n) < 1).all()


@pytest.mark.parametrize(("count", "found"), [(25, 25), (29, 29), (45, 29)])
def test_each_class_keeps_a_row_to_train_on(count, found):
    train, val = counts_by_class([30] + [1] * 20, count)
    assert val.tolist() == [found] + [0] * 20
    assert train.min() == 1


def test_one_row_is_set_apart_if_each_is_a_class():
    train, val = counts_by_class([1] * 20, 0.5)
    assert (train.sum(), val.sum()) == (19, 1)


def test_which_classes_of_a_size_give_a_row_is_drawn():
    first, second = (counts_by_class([4] * 100, 0.1, seed)[1] for seed in (0, 1))
    assert first.max() == second.max() == 1
    assert (first != second).any()
    assert 10 < first[:50].sum() < 30


def test_classes_give_their_rounded_shares_where_these_add_up():
    rng = np.random.default_rng(0)
    n_rounded = 0
    for _ in range(300):
        sizes = rng.integers(2, 41, size=rng.integers(2, 6))
        n = int(sizes.sum())
        count = int(rng.integers(1, n))
        rounded = [min(round(count * size / n), size - 1) for size in sizes.tolist()]
        if sum(rounded) == count:
            n_rounded += 1
            assert counts_by_class(sizes, count)[1].tolist() == rounded
    assert n_rounded > 100


def test_ranks_set_the_same_rows_of_rare_classes_apart():
    X, _ = numbers(400)
    y = (np.arange(400) % 100).astype(np.uint32)

    def chosen(comm):
        mine = np.flatnonzero(np.arange(400) % 7 % comm.size == comm.rank).astype(np.uint64)
        parts = {"kind": TargetKind.CLASSES, "comm": comm, "numbers": mine}
        rows = make_rows(X[mine], y[mine], None, "", **parts)
        return split_validation(rows, 0.1, 0)[1].numbers.tolist()

    (alone,) = Threads.run(1, chosen)
    assert sorted(chain.from_iterable(Threads.run(3, chosen))) == alone


def test_numbers_keep_their_names_and_shape():
    reader = RealReader()
    rows = reader.training(X, pd.DataFrame(Y, columns=["u", "v"]))
    assert (rows.kind, reader.n_outputs, reader.names) == (TargetKind.REAL, 2, ["u", "v"])
    assert not reader.one_dimensional
    assert np.array_equal(reader.validation(X[:5], Y[:5]).Y, rows.Y[:5])
    assert RealReader().training(X, Y[:, 0]).Y.shape == (60, 1)
    assert refusal(lambda: reader.validation(X, Y[:, 0])) == (
        "Y_val has 1 outputs but y has 2; they must agree."
    )
    renamed = pd.DataFrame(Y, columns=["v", "u"])
    assert refusal(lambda: reader.validation(X, renamed)).startswith("Y_val has the outputs of fit")


def test_levels_repeat_targets_weights_and_offsets():
    reader = RealReader(n_levels=3)
    weight = np.arange(1.0, 121).reshape(60, 2)
    rows = reader.training(X, Y, weight, Y)
    assert reader.n_outputs == 6
    for array, given in [(rows.Y, Y), (rows.offset, Y), (rows.weights.cells, weight)]:
        assert np.array_equal(array, np.repeat(given, 3, axis=1))


@pytest.mark.parametrize(
    ("y", "softmax", "kind", "shape"),
    [
        (LABELS, True, TargetKind.LABELS, (60, 2)),
        (LABELS[:, 0], True, TargetKind.ONE_VS_REST, (60, 1)),
        (CLASSES, True, TargetKind.CLASSES, (60,)),
        (CLASSES, False, TargetKind.ONE_VS_REST, (60, 3)),
    ],
    ids=["labels", "two classes", "softmax", "one against the rest"],
)
def test_the_kind_says_how_labels_are_encoded(y, softmax, kind, shape):
    reader = LabelReader(softmax=softmax)
    rows = reader.training(X, y)
    assert (rows.kind, rows.Y.shape) == (kind, shape)
    assert np.array_equal(reader.validation(X[:9], y[:9]).Y, rows.Y[:9])


def test_class_weights_are_learned_from_the_training_rows():
    reader = LabelReader(softmax=True, class_weight="balanced")
    rows = reader.training(X, CLASSES)
    values, numbers = np.unique(CLASSES, return_inverse=True)
    expected = 60 / (3 * np.bincount(numbers))
    assert np.allclose(reader.table, expected)
    assert np.allclose(rows.weights.rows, expected[numbers])
    validation = reader.validation(X[:10], CLASSES[:10])
    assert np.allclose(validation.weights.rows, expected[numbers[:10]])
    assert reader.classes.values.tolist() == values.tolist()


def test_refusals_name_the_arguments_of_the_user():
    reader = RealReader()
    reader.training(X, Y)
    calls = {
        "X_val has 60 rows and Y_val has 59": lambda: reader.validation(X, Y[1:]),
        "sample_weight_val is negative": lambda: reader.validation(X, Y, np.full(60, -1.0)),
        "offset_val has shape (3,)": lambda: reader.validation(X, Y, None, np.ones(3)),
    }
    for words, call in calls.items():
        assert words in refusal(call)
