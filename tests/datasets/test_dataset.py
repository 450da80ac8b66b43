"""A data set fits together, divides by its split, and joins from two files."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from scipy import sparse

from manyboost.datasets import Dataset, join_train_test


def toy(n_rows=4, **changes):
    rng = np.random.default_rng(n_rows)
    fields = {
        "name": "toy",
        "X": np.float32([rng.random(n_rows), rng.integers(0, 2, n_rows)]).T,
        "Y": rng.integers(0, 2, (n_rows, 3), dtype=np.uint8),
        "feature_names": ("u", "v"),
        "target_names": ("a", "b", "c"),
        "task": "multilabel",
        "categorical": (1,),
        "categories": {1: ("low", "high")},
    }
    return Dataset(**{**fields, **changes})


def test_a_data_set_knows_its_shape():
    data = toy()
    assert (data.n_rows, data.n_features, data.n_outputs) == (4, 2, 3)


def test_a_data_set_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        toy().name = "other"


def test_train_and_test_are_the_rows_of_the_split():
    data = toy(split=np.array([1, 0, 0, 1], dtype=np.uint8))
    for part, rows in ((data.train(), [1, 2]), (data.test(), [0, 3])):
        np.testing.assert_array_equal(part[0], data.X[rows])
        np.testing.assert_array_equal(part[1], data.Y[rows])


def test_sparse_parts_stay_sparse():
    data = toy()
    data = replace(
        data, X=sparse.csr_matrix(data.X), Y=sparse.csr_matrix(data.Y), split=np.array([0, 1, 0, 1])
    )
    X, Y = data.test()
    assert X.format == Y.format == "csr"
    np.testing.assert_array_equal(Y.toarray(), data.Y.toarray()[[1, 3]])


def test_without_a_split_there_are_no_parts():
    with pytest.raises(ValueError, match=r"'toy' has no split; divide X and Y with sklearn"):
        toy().train()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "ranking"}, r"task='ranking' is not a task; pass 'multilabel' or"),
        ({"Y": np.zeros((3, 3))}, r"has 3 rows in Y but 4 rows in X"),
        ({"Y": np.zeros(4)}, r"has 3 output names but 0 outputs in Y"),
        ({"feature_names": ("u",)}, r"has 1 feature names but 2 features in X"),
        ({"target_names": ("a", "b")}, r"has 2 output names but 3 outputs in Y"),
        ({"target_names": ("a", "b", "a")}, r"has two outputs called 'a'; rename one"),
        ({"split": np.zeros(3)}, r"has 3 entries in split but 4 rows in X"),
        ({"split": np.array([0, 1, 2, 0])}, r"The split of data set 'toy' holds values other"),
        ({"split": np.zeros((4, 1))}, r"The split of data set 'toy' has the shape \(4, 1\); pass"),
        (
            {"X": np.full((4, 2), 2.0)},
            r"Feature 'v' of .* the code 2, but .* codes 0 to 1; correct",
        ),
        ({"X": np.full((4, 2), -1.0)}, r"holds the code -1, but its categories have the codes"),
        ({"X": sparse.csr_matrix(np.full((4, 2), 0.5))}, r"Feature 'v' .* holds the code 0.5, but"),
        ({"categories": {}}, r"has the nominal features \[1\] but categories for \[\]"),
        ({"categorical": (2,), "categories": {2: ("x",)}}, r"nominal features \[2\].* 2 features"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        toy(**changes)


def test_codes_may_be_missing():
    assert np.isnan(toy(X=np.array([[0, 0], [0, 1], [0, np.nan], [0, 0]])).X[2, 1])


@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_matrix])
def test_joined_sets_keep_their_rows_in_order(as_type):
    train, test = (replace(part, X=as_type(part.X), Y=as_type(part.Y)) for part in (toy(4), toy(2)))
    joined = join_train_test(train, test, name="both")
    assert joined.name == "both"
    assert joined.categories == train.categories
    for part, expected in ((joined.train(), train), (joined.test(), test)):
        assert part[0].dtype == np.float32
        assert part[1].dtype == np.uint8
        assert np.abs(part[0] - expected.X).max() == 0
        assert (part[1] != expected.Y).sum() == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "regression"}, r"the same task \('multilabel' and 'regression'\)"),
        ({"feature_names": ("u", "w")}, r"the same feature_names \('v' and 'w'\)"),
        (
            {"target_names": ("a", "b"), "Y": np.zeros((4, 2))},
            r"the same target_names \(3 and 2\)",
        ),
        ({"categories": {1: ("high", "low")}}, r"the same categories \(of feature 1\)"),
        ({"split": np.zeros(4)}, r"'toy' is split already"),
    ],
)
def test_sets_that_differ_do_not_join(changes, message):
    with pytest.raises(ValueError, match=message):
        join_train_test(toy(), toy(**changes))
