"""Methods, their grids, and how a problem is divided into rows."""

from dataclasses import replace

import numpy as np
import pytest
from experiments.budgets import Budget, Limit
from experiments.methods import METHODS, parse_search, sample
from experiments.problems import Problem, load_problem, make_fold
from experiments.protocol import Tuned


def problem(task="regression", n_rows=60, n_outputs=3, structure=None):
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, 4)).astype(np.float32)
    signal = np.sin(6 * X[:, :n_outputs]) + 0.1 * rng.standard_normal((n_rows, n_outputs))
    Y = (signal > 0).astype(np.uint8) if task == "multilabel" else signal + X[:, 3:]
    return Problem("toy", task, X, Y, 0.5, structure, standardise=task == "regression")


def test_the_grid_is_the_paper_s():
    grid = METHODS["gbmort"].grid("regression")
    assert len(grid) == 7 * 5 * 7 * 2
    assert {s["loss"] for s in grid} == {"squared_error", "absolute_error"}
    labels = METHODS["gbmort"].grid("multilabel")
    assert {s["loss"] for s in labels} == {"squared_error", "log_loss"}
    assert METHODS["mo-rf"].grid("regression") == []


def test_a_longer_search_builds_on_a_shorter_one():
    method = METHODS["gbmort"]
    few, more = (sample(method, "regression", f"random:{n}", 3) for n in (5, 8))
    assert more[:5] == few
    assert len({str(s) for s in more}) == 8
    assert sample(method, "regression", "grid", 3) == method.grid("regression")


@pytest.mark.parametrize("search", ["random", "random:0", "random:x", "best", "grid:3"])
def test_a_search_that_is_none_is_refused(search):
    with pytest.raises(ValueError, match="is not a search; write grid, or random:N"):
        parse_search(search)


@pytest.mark.parametrize("budget", ["rounds", "rounds:0", "rounds:1.5", "hours:3", "T:-1", "T:inf"])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(ValueError, match="is not a budget; write rounds:N, seconds:S or T:M"):
        Budget.parse(budget)


def test_budgets_become_limits():
    assert Budget.parse("rounds:7").limit(None, None) == Limit(7, None)
    assert Budget.parse("rounds:7").limit(None, 5.0) == Limit(7, 5.0)
    assert Budget.parse("seconds:7").limit(None, 5.0) == Limit(None, 5.0)
    assert Budget.parse("T:100").limit(0.01, 5.0) == Limit(None, pytest.approx(1.0))


@pytest.mark.parametrize("task", ["regression", "multilabel"])
@pytest.mark.parametrize("method", [m for m in METHODS if m != "artificial-gbrt"])
def test_every_method_learns(method, task):
    fold = make_fold(problem(task, n_rows=200), 0, "testing", 0)
    settings = {"loss": "squared_error", "max_leaf_nodes": 4} if "gb" in method else {}
    fit = METHODS[method].fit(fold, settings, Limit(30, None), 1)
    predictions = fit.predict()
    assert predictions.shape == fold.Y_eval.shape
    constant = np.broadcast_to(fold.Y.mean(axis=0), fold.Y_eval.shape)
    better, worse = (fold.problem.score(fold.Y_eval, p) for p in (predictions, constant))
    assert better > worse + 0.05
    *_, last = fit.staged()
    np.testing.assert_allclose(last, predictions, atol=1e-6)
    again = METHODS[method].fit(fold, settings, Limit(30, None), 1)
    np.testing.assert_array_equal(again.predict(), predictions)


@pytest.mark.parametrize("structure", ["chain", "group", "ind"])
def test_the_oracle_uses_the_structure(structure):
    fold = make_fold(problem(structure=structure), 0, "testing", 0)
    predictions = METHODS["artificial-gbrt"].fit(fold, {}, Limit(20), 0).predict()
    assert predictions.shape == fold.Y_eval.shape
    repeated = np.ptp(predictions, axis=1).max() == 0
    assert repeated == (structure != "ind")


def test_the_oracle_needs_a_structure():
    fold = make_fold(problem(), 0, "testing", 0)
    with pytest.raises(ValueError, match="does not know the structure of 'toy'"):
        METHODS["artificial-gbrt"].fit(fold, {}, Limit(5), 0)


def test_a_forest_ends_in_time_with_one_tree_at_least():
    fold = make_fold(problem(), 0, "testing", 0)
    assert METHODS["st-rf"].fit(fold, {}, Limit(None, 1e-9), 0).rounds == 1
    assert METHODS["mo-rf"].fit(fold, {}, Limit(), 0).rounds == 100


def test_folds_share_no_rows_and_have_the_paper_s_sizes():
    X = np.arange(100, dtype=np.float32)[:, None]
    whole = Problem("toy", "regression", X, X.astype(float), 0.5)
    tuning, testing, training = (
        make_fold(whole, 2, purpose, 0) for purpose in ("tuning", "testing", "training")
    )
    assert (len(tuning.X), len(tuning.X_eval), len(testing.X_eval)) == (40, 10, 50)
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


def test_refitting_adds_the_validation_rows_and_uses_the_same_trials():
    plain = Tuned("friedman1-group", 0, 0, "gbmort", "random:1", "rounds:5", None)
    again = replace(plain, refit=True)
    assert plain.key != again.key
    assert plain.needs() == again.needs()
    trial = plain.needs()[0].execute([], None)
    rows = {each.refit: len(each.fold(0, each.purpose, None).Y) for each in (plain, again)}
    assert rows == {False: 240, True: 300}
    results = [each.execute([trial], None) for each in (plain, again)]
    assert results[0].scores != results[1].scores
    assert results[0].rounds == results[1].rounds == trial.rounds
