"""Rows set apart for validation: drawn, the last ones, or those that a splitter chooses."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
)

import manyboost
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.comm import Threads
from manyboost.distributed import fit_rank
from manyboost.training.splits import read_splits
from refusals import refusal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2]]) + 0.3 * RNG.normal(size=(300, 2))
GROUPS = np.arange(300) // 30
PARTS = PredefinedSplit(np.where(GROUPS == 4, 0, -1))


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 40, "random_state": 0, **parameters})


def given(train, test, **parameters):
    """The model that is given its training and validation rows."""
    return regressor(**parameters).fit(X[train], Y[train], X_val=X[test], Y_val=Y[test])


def assert_same(one, other):
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_array_equal(one.validation_score_, other.validation_score_)


# The last rows -------------------------------------------------------------------------------


@pytest.mark.parametrize(("fraction", "count"), [(0.1, 30), (0.25, 75), (20, 20)])
def test_the_last_rows_are_set_apart(fraction, count):
    model = regressor(validation_split="last", validation_fraction=fraction).fit(X, Y)
    assert_same(model, given(np.arange(300 - count), np.arange(300 - count, 300)))


def test_rows_without_weight_are_not_among_the_last():
    weight = np.ones(300)
    weight[-40:] = 0
    model = regressor(validation_split="last").fit(X, Y, sample_weight=weight)
    fewer = regressor(validation_split="last").fit(X[:260], Y[:260])
    assert_same(model, fewer)


def test_the_last_rows_of_all_ranks_are_set_apart():
    def fit(comm):
        mine = np.arange(300) % 3 == comm.rank
        numbers = np.flatnonzero(mine).astype(np.uint64)
        model = regressor(validation_split="last")
        return fit_rank(model, comm, X[mine], Y[mine], row_numbers=numbers)

    for model in Threads.run(3, fit):
        assert_same(model, regressor(validation_split="last").fit(X, Y))


def test_the_last_rows_of_files_are_set_apart(tmp_path):
    from manyboost.distributed import fit_files

    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    model = fit_files(regressor(validation_split="last"), tmp_path / "X.npy", tmp_path / "Y.npy")
    assert_same(model, regressor(validation_split="last").fit(X, Y))
    sentence = refusal(
        lambda: fit_files(
            regressor(validation_split=KFold(3)), tmp_path / "X.npy", tmp_path / "Y.npy"
        )
    )
    assert "takes rows in memory" in sentence


def test_nothing_is_drawn_if_the_last_rows_are_set_apart():
    y = Y[:, 0]
    one, two = (ManyBoostRegressor(validation_split="last").fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


# Splitters -----------------------------------------------------------------------------------


def test_the_last_split_of_a_splitter_is_taken():
    splitter = TimeSeriesSplit(4, gap=5)
    train, test = list(splitter.split(X))[-1]
    assert len(train) + len(test) == 295
    assert_same(regressor(validation_split=splitter).fit(X, Y), given(train, test))


def test_a_splitter_gets_groups_and_what_was_passed_to_fit():
    seen = []

    class Splitter:
        def split(self, X, y, groups):
            seen.append((X, y, groups))
            yield np.flatnonzero(groups < 8), np.flatnonzero(groups >= 8)

    model = regressor(validation_split=Splitter()).fit(X, Y, groups=GROUPS)
    ((passed_X, passed_y, passed_groups),) = seen
    assert passed_X is X
    assert passed_y is Y
    assert passed_groups is GROUPS
    assert_same(model, given(GROUPS < 8, GROUPS >= 8))


def test_a_splitter_keeps_groups_together():
    splitter = GroupShuffleSplit(1, test_size=0.2, random_state=0)
    train, test = next(splitter.split(X, Y, GROUPS))
    assert not set(GROUPS[train]) & set(GROUPS[test])
    assert_same(regressor(validation_split=splitter).fit(X, Y, groups=GROUPS), given(train, test))


def test_weights_and_offsets_go_with_their_rows():
    weight = RNG.uniform(size=300)
    weight[:20] = 0
    offset = RNG.normal(size=300)
    model = regressor(validation_split=PARTS).fit(X, Y, weight, offset=offset)
    train, test = GROUPS != 4, GROUPS == 4
    same = regressor().fit(
        *(each[train] for each in (X, Y, weight)),
        X_val=X[test],
        Y_val=Y[test],
        sample_weight_val=weight[test],
        offset=offset[train],
        offset_val=offset[test],
    )
    np.testing.assert_array_equal(model.predict(X, offset=offset), same.predict(X, offset=offset))


def test_a_fit_to_all_rows_has_as_many_more_rounds_as_there_are_more_rows():
    splitter = ShuffleSplit(1, train_size=0.25, test_size=0.25, random_state=0)
    first = regressor(validation_split=splitter).fit(X, Y)
    model = regressor(validation_split=splitter, refit_all=True).fit(X, Y)
    assert model.n_iter_ == 4 * first.n_iter_


def test_thresholds_are_tuned_on_the_rows_of_a_splitter():
    labels = (Y > 0).astype(int)
    fixed = {"thresholds": "tuned", "max_iter": 10, "random_state": 0, "early_stopping": False}
    model = ManyBoostClassifier(validation_split=PARTS, **fixed).fit(X, labels)
    train, test = GROUPS != 4, GROUPS == 4
    same = ManyBoostClassifier(**fixed)
    same.fit(X[train], labels[train], X_val=X[test], Y_val=labels[test])
    np.testing.assert_array_equal(model.thresholds_, same.thresholds_)


def test_strategies_race_on_the_rows_of_a_splitter():
    model = regressor(validation_split=PARTS, strategy="auto", max_iter=10).fit(X, Y)
    same = given(GROUPS != 4, GROUPS == 4, strategy="auto", max_iter=10)
    assert model.strategy_ == same.strategy_
    np.testing.assert_array_equal(
        model.search_results_["validation_score"], same.search_results_["validation_score"]
    )


# Folds ---------------------------------------------------------------------------------------


def test_the_splits_of_a_splitter_can_be_folds():
    model = regressor(n_folds=5, validation_split=KFold(5)).fit(X, Y)
    np.testing.assert_array_equal(model._calibration.member, np.arange(300) // 60)
    drawn = regressor(n_folds=5).fit(X, Y)
    assert not np.array_equal(drawn._calibration.member, model._calibration.member)


def test_folds_of_a_splitter_keep_groups_together():
    model = regressor(n_folds=3, validation_split=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    member = model._calibration.member
    assert all(len(set(member[group == GROUPS])) == 1 for group in range(10))


@pytest.mark.parametrize(
    ("splitter", "problem"),
    [
        (TimeSeriesSplit(3), "row 0 is in the validation rows of 0 splits"),
        (ShuffleSplit(3, random_state=0), "makes no folds"),
        (KFold(4), "makes more splits, but n_folds=3"),
        (KFold(2), "makes 2 splits, but n_folds=3"),
    ],
)
def test_splits_that_are_no_folds_are_refused(splitter, problem):
    assert problem in refusal(lambda: regressor(n_folds=3, validation_split=splitter).fit(X, Y))


def test_folds_that_leave_rows_unused_are_refused():
    pairs = [(np.arange(5, 10), np.arange(5)), (np.arange(4), np.arange(5, 10))]

    class Splitter:
        def split(self, X, y, groups):
            return iter(pairs)

        def __repr__(self):
            return "Splitter()"

    with pytest.raises(ValueError, match="row 4 is in neither part of split 1"):
        read_splits(Splitter(), X, Y, None, 10, 2)


def test_a_fold_without_targets_is_refused():
    weight = np.where(np.arange(300) < 60, 0.0, 1.0)
    model = regressor(n_folds=5, validation_split=KFold(5))
    assert "leaves out no row" in refusal(lambda: model.fit(X, Y, weight))


# Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "arguments", "problem"),
    [
        ({"validation_split": "first"}, {}, "'random' or 'last', or a splitter"),
        ({"validation_split": KFold}, {}, "is not allowed"),
        ({"validation_split": "last"}, {"X_val": X, "Y_val": Y}, "but X_val was given"),
        ({"validation_split": "last", "early_stopping": False}, {}, "early_stopping=False"),
        ({"validation_split": "last", "validation_fraction": None}, {}, "set a fraction"),
        ({"validation_split": "last", "validation_fraction": 300}, {}, "leaves none of the 300"),
        ({"validation_split": "last", "n_folds": 3}, {}, "use validation_split=KFold(3)"),
        ({"validation_split": "last"}, {"groups": GROUPS}, "groups was given, but only n_folds"),
        ({"validation_split": KFold(3), "validation_fraction": 0.3}, {}, "leave one of them out"),
        ({"validation_split": GroupKFold(3)}, {}, "'groups' parameter should not be None"),
    ],
)
def test_what_does_not_go_together_is_refused(parameters, arguments, problem):
    assert problem in refusal(lambda: regressor(**parameters).fit(X, Y, **arguments))


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        (([0, 1], [1, 2]), "puts row 1 among training rows and validation rows"),
        (([0, 1], [300]), "must name rows by numbers from 0 to 299"),
        (([0, 1], [0.5]), "must name rows by numbers from 0 to 299"),
        (([0, 1], []), "leaves no validation rows"),
        (([], [1]), "leaves no training rows"),
    ],
)
def test_impossible_splits_are_refused(pair, problem):
    class Splitter:
        def split(self, X, y, groups):
            yield pair

    assert problem in refusal(lambda: regressor(validation_split=Splitter()).fit(X, Y))


def test_a_splitter_without_splits_is_refused():
    class Nothing:
        def split(self, X, y, groups):
            return iter(())

    assert "makes no split" in refusal(lambda: regressor(validation_split=Nothing()).fit(X, Y))


def test_an_output_that_is_observed_in_the_last_rows_alone_is_refused():
    late = Y.copy()
    late[:290, 1] = np.nan
    sentence = refusal(lambda: regressor(validation_split="last").fit(X, late))
    assert "Output 1 is observed only in rows set apart by validation_split='last'" in sentence


def test_splitters_are_refused_on_ranks():
    def fit(comm):
        return fit_rank(regressor(validation_split=KFold(3)), comm, X, Y)

    assert "needs all rows on one machine" in refusal(lambda: Threads.run(2, fit))


# Around it -----------------------------------------------------------------------------------


def test_clones_and_files_keep_the_way_rows_are_set_apart(tmp_path):
    model = regressor(validation_split="last").fit(X, Y)
    assert clone(model).validation_split == "last"
    model.save(tmp_path / "model.mb")
    assert manyboost.load(tmp_path / "model.mb").validation_split == "last"


def test_files_leave_splitters_out(tmp_path):
    model = regressor(validation_split=KFold(3)).fit(X, Y)
    assert clone(model).validation_split is not model.validation_split
    model.save(tmp_path / "model.mb")
    loaded = manyboost.load(tmp_path / "model.mb")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"validation_split=<not in the model file:"):
        loaded.fit(X, Y)
    assert_same(loaded.set_params(validation_split=KFold(3)).fit(X, Y), model)


def test_a_checkpoint_knows_the_rows_that_are_set_apart(tmp_path):
    path = tmp_path / "state"
    regressor(validation_split=KFold(3), checkpoint=path).fit(X, Y)
    again = regressor(validation_split=KFold(3), checkpoint=path).fit(X, Y)
    assert_same(again, regressor(validation_split=KFold(3)).fit(X, Y))
    with pytest.raises(ValueError, match="validation_split"):
        regressor(validation_split=KFold(4), checkpoint=path).fit(X, Y)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_a_warm_start_refuses_a_splitter_that_draws_other_rows_each_time(random_state):
    splitter = ShuffleSplit(1, random_state=random_state)
    model = regressor(max_iter=5, warm_start=True, validation_split=splitter).fit(X, Y)
    before = model.predict(X)
    sentence = refusal(lambda: model.set_params(max_iter=10).fit(X, Y))
    assert "validation_split draws other rows each time, and the model has seen some" in sentence
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_warm_start_goes_on_with_the_rows_of_a_splitter():
    split = {"validation_split": ShuffleSplit(1, random_state=0)}
    model = regressor(max_iter=5, warm_start=True, **split).fit(X, Y)
    model.set_params(max_iter=10).fit(X, Y)
    assert_same(model, regressor(max_iter=10, **split).fit(X, Y))


def test_leaves_can_be_refitted_after_a_splitter():
    model = regressor(validation_split=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    n_rounds = model.n_iter_
    assert model.refit(X[:200], Y[:200]).n_iter_ == n_rounds


def test_the_training_rows_of_the_last_split_are_traced():
    model = regressor(validation_split="last", max_iter=5).fit(X, Y)
    weights = model.training_weights(X[:3], X, Y)
    np.testing.assert_allclose(weights @ Y, model.predict(X[:3]), rtol=1e-4, atol=1e-4)
    assert not weights[:, -30:].any()
