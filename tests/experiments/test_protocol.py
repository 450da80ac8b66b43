"""Trials, searches and curves: what they fit, what they choose, what they report."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from experiments.items import ITEMS
from experiments.methods import METHODS
from experiments.options import Options
from experiments.problems import is_stand_in
from experiments.protocol import (
    Budget,
    Curve,
    Model,
    Search,
    Trial,
    TrialResult,
    has_stalled,
    heat_rounds,
    points_up_to,
)
from experiments.store import Store

from experiments import protocol

SET = "friedman1-group"
SETTINGS = {
    "loss": "squared_error",
    "learning_rate": 0.2,
    "max_features": 1.0,
    "max_leaf_nodes": 3,
}


@pytest.mark.parametrize("budget", ["rounds", "rounds:0", "rounds:1.5", "seconds:3", "T:-1"])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(ValueError, match="is not a budget; write rounds:N or T:M"):
        Budget.parse(budget)


def test_points_of_a_short_fit_are_points_of_a_long_one():
    long = points_up_to(10_000)
    assert long[:20] == list(range(1, 21))
    assert all(a < b <= max(a + 1, 1.1 * a + 1) for a, b in pairwise(long))
    assert 9000 < long[-1] <= 10_000
    for limit in (1, 7, 20, 21, 100, 777):
        assert points_up_to(limit) == [point for point in long if point <= limit]


def test_a_trial_stalls_when_the_last_half_of_its_rounds_gained_nothing():
    best = [(1, 0.1), (50, 0.5), (120, 0.6)]
    assert not has_stalled(best, 150)  # too early
    assert not has_stalled(best, 230)  # 115 rounds had 0.5
    assert has_stalled(best, 240)
    assert has_stalled([*best, (230, 0.6009)], 240)
    assert not has_stalled([*best, (230, 0.6011)], 240)


def test_a_longer_trial_contains_the_shorter_one():
    short, long = (Trial(SET, 0, 0, "gbmort", SETTINGS, n).execute((), None) for n in (20, 60))
    assert [point for point in long.points if point[0] <= 20] == short.points
    assert short.rounds == 20
    assert long.best(20) == short.best(20) == short.points[-1]


def test_a_search_takes_the_best_of_its_trials_and_reports_both_variants():
    search = Search.declare(SET, 0, 0, "gbrt-rpo-subsampled", 2, "rounds:40")
    trials = search.needs(None)
    results = [trial.execute((), None) for trial in trials]
    found = search.execute([*results, *results], None)
    model = found.model()
    best = max(results, key=lambda result: result.points[-1][1])
    assert (model.rounds, model.validation) == best.points[-1]
    assert model.settings == trials[results.index(best)].settings
    assert found.budgets == {"nominal": 0}
    assert found.model("sort*2") is model  # a budget in rounds does not vary
    scores = model.scores
    assert scores.keys() == {"no refit", "refit"}
    assert scores["no refit"] != scores["refit"]
    # The model without refitting is that of the trial: on the validation rows it scores the same.
    fold = search.fold("tuning", None)
    track = METHODS[search.method].follow(
        fold,
        model.settings,
        [model.rounds],
        search.fit_seed(search.method, model.settings),
        lambda raw: round(fold.problem.score(fold.Y_eval, raw), 6),
    )
    assert track.scores == [model.validation]


def test_one_set_of_trials_serves_all_budgets(monkeypatch):
    trials = [
        TrialResult(40, False, [(1, 0.3), (10, 0.5), (30, 0.8)], 1.0),
        TrialResult(40, False, [(1, 0.4), (20, 0.6), (40, 0.7)], 1.0),
    ]
    limits = {"nominal": 25, "sort*2": 5, "sort*0.5": 40}
    monkeypatch.setattr(Budget, "limits", lambda *_: limits)
    search = Search.declare(SET, 0, 0, "gbmort", 2, "rounds:40")
    assert [trial.rounds for trial in search.needs(None)] == [25, 25]
    assert [trial.rounds for trial in search.needs_then(trials, None)] == [25, 25]
    found = search.execute([*trials, *trials], None)
    chosen = {name: (found.model(name).rounds, found.model(name).validation) for name in limits}
    assert chosen == {"nominal": (20, 0.6), "sort*2": (1, 0.4), "sort*0.5": (30, 0.8)}
    assert len(found.models) == 3


def test_large_sets_and_stand_ins_have_the_nominal_budget_alone(monkeypatch):
    monkeypatch.setattr(Budget, "limits", lambda *_: {"nominal": 25, "sort*2": 5, "sort*0.5": 40})
    search = Search.declare(SET, 0, 0, "gbmort", 2, "rounds:40")
    n_rows = search.problem(None).X.shape[0]
    trials = [TrialResult(25, False, [(1, 0.3), (10, 0.5)], 1.0)] * 2
    monkeypatch.setattr(protocol, "VARIED_ROWS", n_rows)
    assert len(search.execute([*trials, *trials], None).budgets) == 3
    monkeypatch.setattr(protocol, "VARIED_ROWS", n_rows - 1)
    found = search.execute([*trials, *trials], None)
    assert found.budgets == {"nominal": 0}
    assert found.model("sort*2") == found.model()
    assert is_stand_in("reutersk500")
    assert not is_stand_in("delicious")


def test_a_heat_is_an_eighth_of_the_rounds_but_not_too_short():
    assert [heat_rounds(n) for n in (7, 100, 101, 800, 810, 10_000)] == [
        7,
        100,
        100,
        100,
        101,
        1250,
    ]


def test_the_best_third_of_the_trials_goes_on_to_the_nominal_budget():
    """What other trials would find after the heat is not used, even if it is stored."""
    search = Search.declare(SET, 0, 0, "gbmort", 12, "rounds:1600")
    heat = search.needs(None)
    assert {trial.rounds for trial in heat} == {200}
    early = [0.1, 0.8, 0.3, 0.7, 0.5, 0.6, 0.2, 0.4, 0.35, 0.25, 0.15, 0.05]
    results = [TrialResult(1600, True, [(1, s / 2), (200, s), (900, 0.9)], 1.0) for s in early]
    longer = search.needs_then(results, None)
    assert [trial.settings for trial in longer] == [heat[i].settings for i in (1, 3, 4, 5)]
    assert {trial.rounds for trial in longer} == {1600}
    found = search.execute([*results, *(results[i] for i in (1, 3, 4, 5))], None)
    assert (found.model().rounds, found.model().settings) == (900, heat[1].settings)
    results[0] = TrialResult(1600, True, [(1, 0.0), (200, 0.1), (800, 1.0)], 1.0)
    again = search.execute([*results, *(results[i] for i in (1, 3, 4, 5))], None)
    assert again.model() == found.model()


def test_only_the_best_three_trials_go_beyond_the_nominal_budget(monkeypatch):
    """What other trials would find beyond it is not used, even if it is stored."""
    trials = [
        TrialResult(20, False, [(1, 0.1 * rank), (15, 0.15 * rank), (38, 0.9)], 1.0)
        for rank in (1, 2, 3, 4)
    ]
    monkeypatch.setattr(Budget, "limits", lambda *_: {"nominal": 20, "sort*2": 40})
    longer = []

    def execute(trial, needed, data_dir):
        longer.append(trial)
        return TrialResult(39, False, [(1, 0.1), (33, 0.7)], 1.0)

    monkeypatch.setattr(Trial, "execute", execute)
    search = Search.declare(SET, 0, 0, "gbmort", 4, "rounds:40")
    kept = [trials[i] for i in (1, 2, 3)]
    found = search.execute([*trials, *kept], None)
    tried = [trial.settings for trial in search.needs(None)]
    assert [trial.settings for trial in longer] == [tried[3], tried[2], tried[1]]
    assert {trial.rounds for trial in longer} == {40}
    assert (found.model("sort*2").rounds, found.model("sort*2").validation) == (33, 0.7)


def test_forests_have_all_training_rows_a_hundred_trees_and_no_budget():
    search = Search.declare("friedman1-chain", 0, 0, "mo-rf", 42, "T:500")
    assert search == Search.declare("friedman1-chain", 0, 0, "mo-rf", 3, "rounds:9")
    assert search.needs(None) == []
    found = search.execute((), None)
    assert found.model().rounds == 100
    assert found.model("sort*2").scores["refit"] == found.model().scores["no refit"]


def test_a_curve_tells_scores_seconds_and_costs():
    settings = {**SETTINGS, "max_leaf_nodes": 2}
    found = Curve(SET, 0, 0, "gbmort", settings, "rounds:25").execute((), None)
    assert found.rounds == points_up_to(25)
    assert len(found.scores) == len(found.seconds) == len(found.rounds)
    assert found.scores[-1] > found.scores[0]
    assert found.cost["nominal"] == pytest.approx(1.0)  # T is this method with these settings
    newton = Curve(SET, 0, 0, "gbmort", {**settings, "step": "newton"}, "rounds:25")
    assert newton.execute((), None).rounds == found.rounds


def test_a_model_is_fitted_on_all_training_rows():
    found = Model(SET, 0, 0, "default").execute((), None)
    assert found.scores["macro-r2"] > 0.5
    assert found.rounds > 1


def test_short_trials_lead_to_the_same_models_as_whole_ones():
    """On edm, of which the committed trials were all run to their whole budget."""
    folder = Path(os.environ.get("MANYBOOST_DATA", ""))
    if not (folder / "edm.npz").is_file():
        pytest.skip("edm.npz is not in the data folder (set MANYBOOST_DATA)")
    store = Store(Path(__file__).parents[2] / "experiments" / "rows")
    item = ITEMS["regression"]
    scope = item.scope(Options(datasets=["edm"], data_dir=folder))
    lost = []
    for search in item.runs(scope):
        whole = [store.get(trial) for trial in search.needs(folder)]
        if whole:
            kept = [store.get(trial) for trial in search.needs_then(whole, folder)]
            lost.append(best_score(whole) - best_score(kept))
    assert len(lost) == 30
    assert sum(loss > 0 for loss in lost) <= 1
    assert max(lost) < 0.001


def best_score(results):
    return max(result.points[-1][1] for result in results)
