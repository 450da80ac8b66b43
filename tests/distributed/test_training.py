"""Ranks that share a fit end with the model of one machine, byte for byte."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.distributed import Comm, CommError, Threads, fit_rank
from rank_problems import (
    CLASSES,
    COUNTS,
    LABELS,
    N_ROWS,
    PARTIAL,
    PARTITIONS,
    SPARSE_X,
    WEIGHT,
    X,
    Y,
    fingerprint,
)

STRATEGIES = ["relabel", "project", "multioutput", "independent"]
NAMED = pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(Y, columns=list("pqrs"))
COMMON = {"max_iter": 4, "max_leaf_nodes": 7, "random_state": 1, "n_jobs": 1}


def parts(ends, comm, *arrays):
    rows = slice(ends[comm.rank], ends[comm.rank + 1])
    return [None if each is None else each[rows] for each in arrays]


def assert_same(make, X, Y, weight=None, partition="uneven", **fit):
    """Fit on one machine and on ranks, and compare."""
    expected = fingerprint(make().fit(X, Y, weight, **fit))
    ends = PARTITIONS[partition]

    def work(comm):
        given = dict(fit)
        if fit:
            n = len(fit["X_val"])
            # The validation rows are divided otherwise than the training rows.
            some = slice(n * comm.rank // comm.size, n * (comm.rank + 1) // comm.size)
            given = {name: value[some] for name, value in fit.items()}
        return fingerprint(fit_rank(make(), comm, *parts(ends, comm, X, Y, weight), **given))

    assert Threads.run(len(ends) - 1, work) == [expected] * (len(ends) - 1)


def regressor(**parameters):
    return lambda: ManyBoostRegressor(**COMMON | parameters)


def classifier(**parameters):
    return lambda: ManyBoostClassifier(**COMMON | parameters)


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_partition_gives_the_same_bytes(strategy, partition):
    assert_same(regressor(strategy=strategy), X, Y, partition=partition)
    assert_same(classifier(strategy=strategy), X, LABELS, partition=partition)


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
)
def test_all_regression_losses(loss, strategy, step):
    target = COUNTS if loss in ("poisson", "tweedie") else COUNTS + 0.1 if loss == "gamma" else Y
    assert_same(regressor(loss=loss, strategy=strategy, step=step), X, target, WEIGHT)


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_labels_and_classes(strategy, step):
    parameters = {"strategy": strategy, "step": step}
    assert_same(classifier(**parameters), X, CLASSES, WEIGHT)
    assert_same(classifier(loss="exponential", **parameters), X, LABELS)
    assert_same(classifier(loss="squared_error", **parameters), X, LABELS, WEIGHT)


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_features": 0.5},
        {"subsample": 0.5},
        {"max_bins": 20},
        {"n_components": 3},
        {"early_stopping": True},
        {"early_stopping": "per_output", "n_iter_no_change": 1},
        {"monotonic_cst": [1, 0, 0, -1, 0, 0]},
        {"interaction_cst": [[0, 1], [2, 3, 4, 5]], "strategy": "project"},
        {"categorical_features": [3]},
        {"strategy": "auto", "max_iter": 8},
        {"loss": ["squared_error", "huber", "quantile", "absolute_error"]},
        {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
        {"min_samples_leaf": 30, "max_depth": 2},
        {"max_leaf_nodes": 2},
    ],
    ids=str,
)
def test_parameters(parameters):
    assert_same(regressor(**parameters), X, Y, WEIGHT)
    assert_same(regressor(**parameters), X, PARTIAL)


def test_class_weights_and_early_stopping():
    assert_same(classifier(class_weight="balanced"), X, LABELS, WEIGHT)
    assert_same(classifier(class_weight="balanced", early_stopping=True), X, CLASSES)


def test_validation_rows():
    assert_same(regressor(), X, Y, X_val=X[:50], Y_val=Y[:50], sample_weight_val=WEIGHT[:50])
    assert_same(classifier(), X, CLASSES, X_val=X[:3], Y_val=CLASSES[:3])


def test_validation_rows_of_ranks_without_training_rows_are_refused():
    def work(comm):
        rows = slice(0, None if comm.rank == 0 else 0)
        model = regressor(early_stopping=True)()
        fit_rank(model, comm, X[rows], Y[rows], X_val=X[:20], Y_val=Y[:20])

    words = "Rank 1 holds validation rows but no training rows; pass them on a rank that has"
    with pytest.raises(ValueError, match=words):
        Threads.run(2, work)


@pytest.mark.parametrize("max_features", [1.0, "sqrt"])
def test_sparse_features(max_features):
    assert_same(regressor(max_features=max_features), SPARSE_X, Y)
    assert_same(classifier(min_samples_leaf=1), SPARSE_X, LABELS, WEIGHT)


def test_weights_of_cells_and_rows_of_weight_zero():
    cells = np.random.default_rng(1).exponential(size=Y.shape)
    cells[:5] = 0
    assert_same(regressor(), X, Y, cells)
    rows = WEIGHT.copy()
    rows[:12] = 0  # all of two ranks
    assert_same(regressor(), X, Y, rows)
    assert_same(regressor(), X, Y, np.ones(N_ROWS))


def test_frames_whose_categories_differ_between_ranks():
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    frame["v"] = pd.Categorical(
        np.where(np.arange(N_ROWS) < 5, "rare", np.where(X[:, 1] > 0, "p", "q"))
    )
    ends = PARTITIONS["uneven"]
    expected = fingerprint(regressor()().fit(frame, Y))

    def work(comm):
        rows = slice(ends[comm.rank], ends[comm.rank + 1])
        part = frame.iloc[rows].copy()
        part["v"] = part["v"].cat.remove_unused_categories()
        return fingerprint(fit_rank(regressor()(), comm, part, Y[rows]))

    assert Threads.run(4, work) == [expected] * 4


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_what_many_categories_gain_by_chance(weight, n_components):
    many = X.copy()
    many[:, 3] = np.random.default_rng(0).integers(0, 40, N_ROWS)
    parameters = {"categorical_features": [3], "n_components": n_components, "subsample": 0.8}
    assert_same(regressor(**parameters), many, Y, weight)
    assert_same(regressor(**parameters), many, PARTIAL, weight)


def test_a_column_of_text_may_be_missing_on_a_rank():
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    ends = PARTITIONS["uneven"]
    text = np.where(X[:, 1] > 0, "p", "q").astype(object)
    text[: ends[1]] = None
    frame["v"] = text
    expected = fingerprint(regressor()().fit(frame, Y))

    def work(comm):
        rows = slice(ends[comm.rank], ends[comm.rank + 1])
        part = frame.iloc[rows].copy()
        part["v"] = part["v"].astype(object)
        return fingerprint(fit_rank(regressor()(), comm, part, Y[rows]))

    assert Threads.run(4, work) == [expected] * 4


def test_rows_in_any_order_under_their_numbers():
    order = np.random.default_rng(3).permutation(N_ROWS).astype(np.uint64)
    make = regressor(subsample=0.6, early_stopping=True)
    expected = fingerprint(make().fit(X, Y))

    def work(comm):
        rows = order[comm.rank :: comm.size]
        return fingerprint(fit_rank(make(), comm, X[rows], Y[rows], row_numbers=rows))

    assert Threads.run(3, work) == [expected] * 3


def test_a_warm_start_goes_on():
    whole = fingerprint(regressor(max_iter=6, warm_start=True)().fit(X, Y))

    def work(comm):
        rows = parts(PARTITIONS["two"], comm, X, Y)
        model = fit_rank(regressor(max_iter=2, warm_start=True)(), comm, *rows)
        return fingerprint(fit_rank(model.set_params(max_iter=6), comm, *rows))

    assert Threads.run(2, work) == [whole] * 2


def test_callbacks_are_called_on_the_first_rank_and_end_all():
    seen = []

    def watch(state):
        seen.append(state.round)
        return state.round == 2

    def work(comm):
        model = ManyBoostRegressor(**COMMON, callbacks=[watch])
        return fit_rank(model, comm, *parts(PARTITIONS["two"], comm, X, Y)).n_iter_

    assert Threads.run(2, work) == [2, 2]
    assert seen == [1, 2]


def test_a_seed_that_is_left_to_chance_is_the_same_on_all_ranks():
    def work(comm):
        model = ManyBoostRegressor(**COMMON | {"random_state": None})
        return fingerprint(fit_rank(model, comm, *parts(PARTITIONS["two"], comm, X, Y)))

    first, second = Threads.run(2, work)
    assert first == second


def test_what_is_exchanged_does_not_grow_with_the_outputs():
    def exchanged(n_outputs, rounds):
        Y = np.random.default_rng(0).normal(size=(N_ROWS, n_outputs))

        def work(comm):
            model = ManyBoostRegressor(**COMMON | {"max_iter": rounds})
            fit_rank(model, comm, *parts(PARTITIONS["two"], comm, X, Y))
            return comm.n_bytes, comm.n_exchanges

        return np.array(Threads.run(2, work)[0])

    leaves = COMMON["max_leaf_nodes"]
    (few, n_few), (many, n_many) = (exchanged(d, 5) - exchanged(d, 1) for d in (10, 400))
    # Besides the sums of the leaves, only the largest residual of each output.
    assert many - 4 * 8 * 400 * (leaves + 1) <= 1.2 * few
    assert n_many <= 1.2 * n_few


class Unwilling(Loss):
    def value(self, y, raw):
        return (y - raw) ** 2

    def gradient(self, y, raw):
        return raw - y


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"loss": Unwilling()}, "loss="),
        ({"scoring": "r2", "early_stopping": True}, "scoring='r2'"),
        ({"strategy": "auto", "max_time": 3.0}, "max_time=3.0"),
        ({"checkpoint": "model.part"}, "checkpoint='model.part'"),
    ],
)
def test_what_needs_all_rows_is_refused(parameters, part):
    def work(comm):
        model = ManyBoostRegressor(**COMMON | parameters)
        fit_rank(model, comm, *parts(PARTITIONS["two"], comm, X, Y))

    with pytest.raises(ValueError, match=f"{part}.* needs all rows on one machine"):
        Threads.run(2, work)


def test_an_error_of_one_rank_ends_the_others():
    bad = Y.copy()
    bad[300] = np.inf

    def work(comm):
        try:
            fit_rank(regressor()(), comm, *parts(PARTITIONS["two"], comm, X, bad))
        except CommError:
            ended.append(comm.rank)
            raise

    ended = []
    with pytest.raises(ValueError, match="infinite value"):
        Threads.run(2, work)
    assert ended == [0]


def test_ranks_must_hold_the_same_columns():
    def other_features(comm):
        fit_rank(regressor()(), comm, X[:, : 5 + comm.rank], Y)

    with pytest.raises(ValueError, match="Rank 0 holds rows of 5 features, but rank 1 of 6"):
        Threads.run(2, other_features)

    def no_rows(comm):
        fit_rank(regressor()(), comm, X[:0], Y[:0])

    with pytest.raises(ValueError, match="no rows on any rank"):
        Threads.run(2, no_rows)


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        (
            {"X": NAMED[0]},
            {"X": NAMED[0][list("badcfe")]},
            "feature 0 is 'a' on rank 0, but 'b' on",
        ),
        ({"Y": NAMED[1]}, {"Y": NAMED[1][list("pqsr")]}, "output 2 is 'r' on rank 0, but 's' on"),
        ({"X": NAMED[0]}, {"X": X}, "X is a frame on rank 0, but an array of 2 dim"),
        ({"X": sparse.csr_matrix(X)}, {"X": X}, "X is a sparse matrix on rank 0, but an array"),
        ({"Y": Y[:, :1]}, {"Y": Y[:, 0]}, "y is an array of 2 dim.* but an array of 1 dim"),
        ({}, {"sample_weight": WEIGHT}, "sample_weight is None on rank 0, but an array of 1"),
        ({"sample_weight": WEIGHT}, {"sample_weight": np.ones(Y.shape)}, "1 dim.* array of 2 dim"),
        ({"X_val": X, "Y_val": Y}, {}, "X_val is an array of 2 dim.* but None on rank 1"),
    ],
)
def test_ranks_must_hold_what_goes_together(first, second, what):
    def work(comm):
        given = {"X": X, "Y": Y} | (second if comm.rank else first)
        fit_rank(regressor()(), comm, **given)

    with pytest.raises(ValueError, match=what):
        Threads.run(2, work)


def test_rows_may_be_lists():
    def work(comm):
        X_part, Y_part = parts(PARTITIONS["two"], comm, X, Y)
        return fit_rank(regressor()(), comm, X_part.tolist(), Y_part.tolist())

    one = fingerprint(regressor()().fit(X, Y))
    assert [fingerprint(model) for model in Threads.run(2, work)] == [one, one]


@pytest.mark.parametrize("numbers", [np.arange(3), np.arange(N_ROWS) - 1, np.zeros(N_ROWS)])
def test_numbers_of_rows_are_checked(numbers):
    with pytest.raises(ValueError, match=r"row_numbers is an array of .*; pass a whole number"):
        Threads.run(2, lambda comm: fit_rank(regressor()(), comm, X, Y, row_numbers=numbers))


def test_a_fitted_model_knows_nothing_of_ranks():
    def work(comm):
        return fit_rank(regressor()(), comm, *parts(PARTITIONS["empty"], comm, X, Y))

    for model in Threads.run(3, work):
        assert not [name for name, value in vars(model).items() if isinstance(value, Comm)]
        assert model.predict(X[:3]).shape == (3, 4)


def test_callbacks_of_scikit_learn_are_refused_not_ignored():
    def work(comm):
        fit_rank(ManyBoostRegressor(**COMMON), comm, *parts(PARTITIONS["two"], comm, X, Y))

    # As if `set_callbacks` had been called; not every scikit-learn has it.
    wanted = mock.patch("manyboost.training.callbacks.FitTasks.wanted", return_value=True)
    refused = pytest.raises(ValueError, match="see one machine, but rows are spread over 2; use")
    with wanted, refused:
        Threads.run(2, work)
