"""Methods, the settings that are tried for them, and how a problem is divided into rows."""

from collections import Counter

import numpy as np
import pytest
from experiments.methods import METHODS, MODELS, Boosting, fit_model, sample
from experiments.problems import Problem, load_problem, make_fold


def problem(task="regression", n_rows=60, n_outputs=3, structure=None):
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, 4)).astype(np.float32)
    signal = np.sin(6 * X[:, :n_outputs]) + 0.1 * rng.standard_normal((n_rows, n_outputs))
    Y = (signal > 0).astype(np.uint8) if task == "multilabel" else signal + X[:, 3:]
    return Problem("toy", task, X, Y, 0.5, structure, standardise=task == "regression")


@pytest.mark.parametrize("n_settings", [14, 28, 42])
@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_a_sample_is_even_over_losses_and_learning_rates(task, n_settings):
    drawn = sample("scene", task, 0, n_settings, 0)
    assert len({str(settings) for settings in drawn}) == n_settings
    pairs = Counter((s["loss"], s["learning_rate"]) for s in drawn)
    assert set(pairs.values()) == {n_settings // 14}
    assert len(pairs) == 14
    for name, n_values in (("max_features", 5), ("max_leaf_nodes", 7)):
        counts = Counter(s[name] for s in drawn).values()
        assert len(counts) == n_values
        # A setting that was drawn already gets another number of leaves.
        assert max(counts) - min(counts) <= 3


def test_samples_differ_by_split_and_data_set_and_a_longer_one_extends_a_shorter():
    few, more = (sample("scene", "multilabel", 0, n, 0) for n in (5, 8))
    assert more[:5] == few
    assert sample("scene", "multilabel", 1, 5, 0) != few
    assert sample("birds", "multilabel", 0, 5, 0) != few


@pytest.mark.parametrize("task", ["regression", "multilabel"])
@pytest.mark.parametrize("name", [m for m in METHODS if not m.startswith("artificial")])
def test_every_method_learns(name, task):
    fold = make_fold(problem(task, n_rows=200), 0, "testing", 0)
    method = METHODS[name]

    def predict():
        if not isinstance(method, Boosting):
            return method.predict(fold, 1)
        settings = {"loss": "squared_error", "max_leaf_nodes": 4}
        return method.follow(fold, settings, [30], 1, lambda raw: raw).scores[0]

    predictions = predict()
    assert predictions.shape == fold.Y_eval.shape
    constant = np.broadcast_to(fold.Y.mean(axis=0), fold.Y_eval.shape)
    better, worse = (fold.problem.score(fold.Y_eval, p) for p in (predictions, constant))
    assert better > worse + 0.05
    np.testing.assert_array_equal(predict(), predictions)


@pytest.mark.parametrize("task", ["regression", "multilabel"])
@pytest.mark.parametrize("name", MODELS)
def test_our_models_learn(name, task):
    fold = make_fold(problem(task, n_rows=200), 0, "training", 0)
    predictions, rounds = fit_model(name, fold, 1)
    constant = np.broadcast_to(fold.Y.mean(axis=0), fold.Y_eval.shape)
    better, worse = (fold.problem.score(fold.Y_eval, p) for p in (predictions, constant))
    assert better > worse + 0.05
    assert rounds > 1


def test_a_fit_is_followed_at_the_points_and_ends_when_it_is_over():
    fold = make_fold(problem(), 0, "testing", 0)
    settings = {"loss": "squared_error"}

    def follow(points, is_over=lambda track: False):
        return METHODS["gbmort"].follow(fold, settings, points, 1, np.copy, is_over)

    track = follow([1, 5, 9])
    assert track.rounds == [1, 5, 9]
    assert track.seconds == sorted(track.seconds)
    longer = follow([5, 20])
    np.testing.assert_array_equal(longer.scores[0], track.scores[1])
    short = follow([1, 5, 9, 1000], lambda track: track.rounds[-1] == 9)
    assert short.rounds == [1, 5, 9]


@pytest.mark.parametrize("structure", ["chain", "group", "ind"])
def test_the_oracle_uses_the_structure(structure):
    fold = make_fold(problem(structure=structure), 0, "testing", 0)
    track = METHODS["artificial-gbrt"].follow(fold, {}, [20], 0, np.copy)
    predictions = track.scores[0]
    assert predictions.shape == fold.Y_eval.shape
    repeated = np.ptp(predictions, axis=1).max() == 0
    assert repeated == (structure != "ind")


def test_an_oracle_may_average_the_chain():
    chain = problem(structure="chain")
    first, mean = (METHODS[f"artificial-gbrt{end}"] for end in ("", "-mean"))
    np.testing.assert_array_equal(first.targets(chain, chain.Y), chain.Y[:, :1])
    np.testing.assert_allclose(mean.targets(chain, chain.Y)[:, 0], chain.Y.mean(axis=1))


def test_the_oracle_needs_a_structure():
    fold = make_fold(problem(), 0, "testing", 0)
    with pytest.raises(ValueError, match="does not know the structure of 'toy'"):
        METHODS["artificial-gbrt"].follow(fold, {}, [5], 0, np.copy)


def test_folds_share_no_rows_and_have_the_paper_s_sizes():
    X = np.arange(100, dtype=np.float32)[:, None]
    whole = Problem("toy", "regression", X, X.astype(float), 0.5)
    tuning, testing, training = (
        make_fold(whole, 2, purpose, 0) for purpose in ("tuning", "testing", "training")
    )
    assert (len(tuning.X), len(tuning.X_eval), len(testing.X_eval)) == (40, 10, 50)
    assert whole.shape.n_rows == 40
    np.testing.assert_array_equal(tuning.X, testing.X)
    assert set(training.X.ravel()) == {*tuning.X.ravel(), *tuning.X_eval.ravel()}
    parts = (tuning.X, tuning.X_eval, testing.X_eval)
    assert len({x for part in parts for x in part.ravel()}) == 100
    other = make_fold(whole, 3, "testing", 0)
    assert set(other.X_eval.ravel()) != set(testing.X_eval.ravel())


def test_targets_are_standardised_by_the_rows_that_are_fitted_to():
    fold = make_fold(problem(), 0, "testing", 0)
    np.testing.assert_allclose(fold.Y.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(fold.Y.std(axis=0), 1)
    assert abs(fold.Y_eval.mean()) > 1e-6


def test_friedman_sets_are_those_of_the_paper():
    noisy = load_problem("friedman1-ind-noisy", None, 0)
    assert noisy.X.shape == (4300, 80)
    assert noisy.Y.shape == (4300, 32)
    fold = make_fold(noisy, 0, "training", 0)
    assert (len(fold.X), len(fold.X_eval)) == (300, 4000)
    scores = noisy.scores(fold.Y_eval, fold.Y_eval)
    assert scores == {"macro-r2": 1.0, "half-macro-r2": 1.0}
    assert 0 <= noisy.X.min() < noisy.X.max() <= 1
    normal = load_problem("friedman1-ind-normal", None, 0)
    assert normal.Y.shape == (4300, 16)
    assert normal.X.min() < -3
    assert normal.structure == "ind"
    five, ten = (load_problem(f"friedman1-group{end}", None, 0) for end in ("", "-ten"))
    assert np.array_equal(ten.X[:, :5], five.X)
    assert np.array_equal(ten.Y, five.Y)
    assert ten.X.shape == (4300, 10)
    assert ten.structure == "group"
