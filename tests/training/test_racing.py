"""strategy="auto": contenders race on validation rows, and the winner is trained."""

from unittest import mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import make_friedman1_group, make_friedman1_ind
from manyboost.training.racing import (
    FIRST_HEAT,
    Contender,
    Race,
    Standing,
    contenders,
    round_costs,
)

SMALL = {"max_iter": 60, "max_leaf_nodes": 6, "random_state": 0, "n_jobs": 1}


def raced(make, **parameters):
    X, Y = make(200, random_state=0)
    return ManyBoostRegressor(strategy="auto", **SMALL, **parameters).fit(X, Y), X, Y


# The race -----------------------------------------------------------------------------------------


def entrants_of(**skills):
    """Contenders by the name of their projection, all of the same cost, and their skills."""
    skill = {Contender("relabel", name): value for name, value in skills.items()}
    return dict.fromkeys(skill, 1.0), skill


def test_the_better_half_goes_on_for_twice_as_long():
    costs, skill = entrants_of(a=1.0, b=3.0, c=2.0, d=5.0, e=4.0)
    heats = []

    def heat(contender, rounds, seconds):
        assert seconds is None
        heats.append((contender.projection, rounds))
        gain = skill[contender] + rounds / 1000
        return Standing(gain, -gain, rounds)

    race = Race(costs)
    assert race.run(heat, 1000, None) == Contender("relabel", "d")
    first, second, third = FIRST_HEAT, 2 * FIRST_HEAT, 4 * FIRST_HEAT
    assert heats == [
        *[(name, first) for name in "abcde"],
        *[(name, second) for name in "deb"],
        *[(name, third) for name in "de"],
    ]
    assert race.results["projection"].tolist() == ["d", "e", "b", "c", "a"]
    assert race.results["heats"].tolist() == [3, 3, 2, 1, 1]
    assert race.results["n_rounds"].tolist() == [third, third, second, first, first]
    assert race.results["verdict"].tolist() == ["won", *["worse"] * 4]


def test_heats_are_of_equal_cost():
    costs, _ = entrants_of(a=0, b=0, c=0)
    costs = dict(zip(costs, [1.0, 4.0, 10.0], strict=True))
    rounds_of = {}

    def heat(contender, rounds, seconds):
        rounds_of.setdefault(contender.projection, []).append(rounds)
        return Standing(-costs[contender], 0.0, rounds)

    Race(costs).run(heat, 150, None)
    assert rounds_of == {"a": [150, 150], "b": [50, 100], "c": [20]}


def test_of_equals_the_cheapest_wins():
    costs, _ = entrants_of(a=0, b=0, c=0, d=0)
    costs = dict(zip(costs, [5.0, 2.0, 1.0, 2.0], strict=True))
    gains = dict(zip(costs, [1.0, 0.995, 0.9, 0.991], strict=True))
    race = Race(costs)
    winner = race.run(lambda each, rounds, seconds: Standing(gains[each], 0.0, rounds), 100, None)
    assert winner.projection == "b"
    told = dict(zip(race.results["projection"], race.results["verdict"], strict=True))
    same = "as good, not cheaper"
    assert told == {"a": same, "b": "won", "c": "worse", "d": same}
    assert race.results["round_cost"].tolist() == [2.0, 5.0, 2.0, 1.0]


def test_if_nobody_gains_the_best_one_wins():
    costs, _ = entrants_of(a=0, b=0)
    gains = dict(zip(costs, [-2.0, -1.0], strict=True))
    race = Race(costs)
    run = race.run(lambda each, rounds, seconds: Standing(gains[each], 0.0, rounds), 100, None)
    assert run.projection == "b"


def test_a_round_of_separate_trees_costs_that_of_all():
    entrants = contenders(24, "gaussian", 1, weighted=False)
    costs = round_costs(entrants, 24, 1, 30)
    by_strategy = {each.strategy: cost for each, cost in costs.items()}
    assert by_strategy["project"] == by_strategy["relabel"] == 2.5 * 30 + 48
    assert by_strategy["independent"] == by_strategy["multioutput"] == 24 * 2.5 * 30 + 48
    fraction = round_costs([Contender("relabel")], 24, 0.5, 30)
    assert list(fraction.values()) == [12 * 2.5 * 30 + 48]


def test_a_race_is_never_longer_than_training():
    rounds_of_heats = []

    def heat(contender, rounds, seconds):
        rounds_of_heats.append(rounds)
        return Standing(-len(contender.strategy), 0.0, rounds)

    entrants = contenders(5, "gaussian", 1, weighted=False)
    race = Race(dict.fromkeys(entrants, 1.0))
    race.run(heat, 30, None)
    assert set(rounds_of_heats) == {FIRST_HEAT, 30}


def test_equal_time_for_all_of_a_heat():
    costs, _ = entrants_of(a=0, b=0, c=0, d=0)
    given = []

    def heat(contender, rounds, seconds):
        assert rounds == 500
        given.append(seconds)
        return Standing(0.0, 0.0, 7)

    assert Race(costs).run(heat, 500, 12.0) == next(iter(costs))
    assert given == [1.5] * 4 + [3.0] * 2
    assert sum(given) == 12.0


@pytest.mark.parametrize(
    ("n_outputs", "projection", "n_components", "weighted", "expected"),
    [
        (1, "gaussian", 1, False, {"independent"}),
        (16, "gaussian", 1, False, {"relabel", "project", "multioutput", "independent"}),
        (16, "gaussian", 1, True, {"relabel", "project", "multioutput"}),
        (100, "gaussian", 1, False, {"relabel", "project", "multioutput"}),
        (1000, "gaussian", 1, False, {"relabel", "project"}),
        (16, "identity", 1, False, {"relabel", "multioutput", "independent"}),
        (16, "gaussian", 4, False, {"relabel"}),
        (16, "gaussian", 0.5, False, {"relabel"}),
    ],
)
def test_who_comes_into_question(n_outputs, projection, n_components, weighted, expected):
    entrants = contenders(n_outputs, projection, n_components, weighted=weighted)
    assert {each.strategy for each in entrants} == expected
    assert len(set(entrants)) == len(entrants)
    given = {each.projection for each in entrants} - {None}
    if projection != "gaussian":
        assert given == {projection}
    elif n_outputs > 1:
        assert given == {"gaussian", "sparse", "subsample"}


# Estimators ---------------------------------------------------------------------------


def test_outputs_that_share_nothing_are_told_from_those_that_share_all():
    alone, _, _ = raced(make_friedman1_ind)
    assert alone.strategy_ == "independent"
    together, _, _ = raced(make_friedman1_group)
    assert together.strategy_ != "independent"
    tried = together.search_results_
    assert tried["strategy"][0] == together.strategy_
    assert tried["projection"][0] in (together.projection_, None)
    assert set(tried["strategy"]) == {"independent", "multioutput", "project", "relabel"}


def test_the_winner_is_trained_as_if_it_had_been_chosen():
    model, X, Y = raced(make_friedman1_group)
    chosen = clone(model).set_params(strategy=model.strategy_, projection=model.projection_)
    chosen.fit(X, Y)
    assert np.array_equal(model.predict(X), chosen.predict(X))
    assert np.array_equal(model.train_score_, chosen.train_score_)
    assert model.strategy == "auto"
    assert not hasattr(chosen, "search_results_")
    assert (chosen.strategy_, chosen.projection_) == (model.strategy_, model.projection_)


def test_the_race_is_the_same_for_any_number_of_threads():
    X, Y = make_friedman1_group(200, random_state=0)
    models = [
        ManyBoostRegressor(strategy="auto", **(SMALL | {"n_jobs": n})).fit(X, Y) for n in (1, 3)
    ]
    for name, column in models[0].search_results_.items():
        assert column.tolist() == models[1].search_results_[name].tolist()
    assert np.array_equal(models[0].predict(X), models[1].predict(X))


def test_scores_are_those_of_the_validation_rows():
    X, Y = make_friedman1_group(300, random_state=0)
    given = {"X_val": X[200:], "Y_val": Y[200:]}
    model = ManyBoostRegressor(strategy="auto", **SMALL).fit(X[:200], Y[:200], **given)
    tried = model.search_results_
    row = tried["strategy"].tolist().index("relabel")
    settings = {**SMALL, "strategy": "relabel", "n_iter_no_change": 60, "learning_rate": 0.05}
    settings |= {"projection": tried["projection"][row]}
    # Its rounds are so cheap that it makes all of them in the first heat.
    again = ManyBoostRegressor(**settings).fit(X[:200], Y[:200], **given)
    assert again.validation_score_.max() == pytest.approx(tried["validation_score"][row], rel=1e-6)


def test_few_rows_are_rated_on_folds():
    X, Y = make_friedman1_group(200, random_state=0)
    model = ManyBoostRegressor(strategy="auto", **SMALL).fit(X, Y)
    tried = model.search_results_
    row = tried["strategy"].tolist().index("relabel")
    settings = {**SMALL, "n_iter_no_change": 60, "learning_rate": 0.05, "early_stopping": True}
    settings |= {"projection": tried["projection"][row], "strategy": "relabel"}
    with mock.patch("manyboost.training.folds.member_seed", lambda seed, k: seed):
        folded = ManyBoostRegressor(n_folds=3, **settings)
        with mock.patch("manyboost.estimators.folding.member_seed", lambda seed, k: seed):
            folded.fit(X, Y)
    # Rounds differ: in folds they are those of the other members.
    assert tried["validation_score"][row] == pytest.approx(folded.validation_score_.max(), rel=0.05)


def test_scorers_of_the_race_see_the_thresholds():
    X, Y = make_friedman1_group(200, random_state=0)
    shares = []

    def score(model, X, y):
        shares.append(model.predict(X).mean())
        return 0.0

    settings = {**SMALL, "max_iter": 3, "scoring": score, "early_stopping": True}
    ManyBoostClassifier(strategy="auto", thresholds=1e-6, **settings).fit(X, Y.mean() < Y)
    assert set(shares) == {1.0}


def test_few_rows_are_raced_on_as_many_folds_as_they_allow():
    X, Y = make_friedman1_group(200, random_state=0)
    groups = np.arange(200) % 2
    model = ManyBoostRegressor(strategy="auto", n_folds=2, **SMALL).fit(X, Y, groups=groups)
    assert len(model.best_iter_per_fold_) == 2
    Y[2:, 0] = np.nan  # observed in two rows only: some folds would lose this output
    for seed in range(4):
        settings = SMALL | {"random_state": seed, "max_iter": 3}
        model = ManyBoostRegressor(strategy="auto", **settings).fit(X, Y)
        assert model.strategy_ in set(model.search_results_["strategy"])


def test_a_warm_start_goes_on_with_the_winner():
    X, Y = make_friedman1_group(200, random_state=0)
    model = ManyBoostRegressor(strategy="auto", **(SMALL | {"learning_rate": 0.1})).fit(X, Y)
    tried = model.search_results_
    model.set_params(warm_start=True, max_iter=80).fit(X, Y)
    assert model.n_iter_ == 80
    assert model.search_results_ is tried
    straight = clone(model).set_params(
        strategy=model.strategy_, projection=model.projection_, warm_start=False
    )
    assert np.array_equal(straight.fit(X, Y).predict(X), model.predict(X))


def test_labels_classes_and_one_output_are_raced_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    labels = (X[:, :3] + rng.normal(size=(150, 3)) > 0).astype(int)
    model = ManyBoostClassifier(strategy="auto", thresholds="tuned", **SMALL).fit(X, labels)
    assert model.strategy_ in set(model.search_results_["strategy"])
    assert model.thresholds_.shape == (3,)
    classes = np.array(["a", "b", "c"])[labels.sum(axis=1) % 3]
    model = ManyBoostClassifier(strategy="auto", **SMALL).fit(X, classes)
    assert model.predict(X).shape == (150,)
    model = ManyBoostRegressor(strategy="auto", **SMALL).fit(X, X[:, 0])
    assert model.strategy_ == "independent"
    assert len(model.search_results_["strategy"]) == 0


def test_time_is_shared_with_the_winner():
    X, Y = make_friedman1_group(100, random_state=0)
    model = ManyBoostRegressor(strategy="auto", **(SMALL | {"max_iter": 10**6}), max_time=0.5)
    model.fit(X, Y)
    assert 0 < model.n_iter_ < 10**6
    assert (model.search_results_["n_rounds"] < 10**6).all()


def test_callbacks_see_only_the_winner():
    X, Y = make_friedman1_group(100, random_state=0)
    seen = []
    settings = SMALL | {"max_iter": 30, "callbacks": [lambda state: seen.append(state.round)]}
    ManyBoostRegressor(strategy="auto", **settings).fit(X, Y)
    assert seen == list(range(1, 31))


def test_foreign_learners_are_not_raced():
    X, Y = make_friedman1_group(50, random_state=0)
    with pytest.raises(ValueError, match="works with built-in trees only") as caught:
        ManyBoostRegressor(strategy="auto", estimator=Ridge(), **SMALL).fit(X, Y)
    assert str(caught.value) == (
        "strategy='auto' works with built-in trees only; leave it out, or use estimator=None."
    )
