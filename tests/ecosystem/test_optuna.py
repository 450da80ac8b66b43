"""Optuna prunes trials from a callback."""

import numpy as np
import pytest

from manyboost import ManyBoostRegressor

optuna = pytest.importorskip("optuna", reason="make test-ecosystem installs it")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, :2] + 0.1 * RNG.normal(size=(300, 2))


def test_a_trial_that_falls_behind_ends_in_its_round():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rounds = {}

    def objective(trial):
        def prune(state):
            rounds[trial.number] = state.round
            trial.report(state.validation_score, state.round)
            if trial.should_prune():
                raise optuna.TrialPruned

        rate = trial.suggest_categorical("learning_rate", [0.2, 1e-4])
        model = ManyBoostRegressor(
            learning_rate=rate, max_iter=40, callbacks=[prune], random_state=0
        ).fit(X[:200], Y[:200], X_val=X[200:], Y_val=Y[200:])
        return model.validation_score_[-1]

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"learning_rate": [0.2, 1e-4]}, seed=1),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=1, n_warmup_steps=5),
    )
    study.enqueue_trial({"learning_rate": 0.2})
    study.enqueue_trial({"learning_rate": 1e-4})
    study.optimize(objective, n_trials=2)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED"]
    assert rounds[0] > 10
    assert rounds[1] < 10
    assert study.best_params == {"learning_rate": 0.2}


def test_a_pruned_fit_leaves_the_model_as_it_was():
    model = ManyBoostRegressor(max_iter=3, random_state=0).fit(X, Y)
    before = model.predict(X)

    def prune(state):
        raise optuna.TrialPruned

    with pytest.raises(optuna.TrialPruned):
        model.set_params(callbacks=[prune]).fit(X, -Y)
    np.testing.assert_array_equal(model.predict(X), before)
