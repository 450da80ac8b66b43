"""The cost of a round is counted, not timed; its constants are those of the file."""

import json
import math

import numpy as np
import pytest
from experiments.cost_measurement import summary
from experiments.costs import GROUPS, VARIATIONS, Shape

from experiments import costs

STUMP = {"loss": "squared_error", "max_features": 1.0, "max_leaf_nodes": 2}
SHAPE = Shape(1000, 20, np.full(10, 4))
ONES = {name: 1.0 for names in GROUPS.values() for name in names} | {"evaluations": 1.0}
NOTHING = dict.fromkeys(ONES, 0.0)


def test_the_constants_are_those_of_the_file():
    stored = json.loads(costs.FILE.read_text())["constants"]
    assert costs.constants() == stored == costs.varied("nominal")
    assert stored.keys() == ONES.keys()
    assert all(value > 0 for value in stored.values())


def test_a_variation_changes_one_group_of_constants():
    assert len(VARIATIONS) == 1 + 2 * len(GROUPS)
    stored = costs.constants()
    varied = costs.varied("statistic*2")
    changed = {name for name in stored if varied[name] != stored[name]}
    assert changed == {"move", "judge"}
    assert varied["move"] == 2 * stored["move"]


def test_evaluated_nodes_are_the_root_and_both_children_of_each_split():
    for leaves in range(2, 9):
        nodes = costs.evaluated_nodes(leaves)
        assert sum(count for count, _ in nodes) == 2 * leaves - 1
    assert sum(count * share for count, share in costs.evaluated_nodes(8)) == 1 + math.log2(8)


@pytest.mark.parametrize(
    ("constant", "n_columns", "expected"),
    [
        ("tree", 1, 1),
        ("scan", 1, 10 * 2 * 1000),  # root and children have the rows twice
        ("sort", 1, 10 * 2 * 1000 * 2),  # log2 of 4 values
        ("move", 7, 7 * 10 * 2 * 1000),
        ("judge", 7, 7 * 10 * (4 + 4 + 4)),
    ],
)
def test_a_stump_costs_what_the_formula_says(constant, n_columns, expected):
    c = {**NOTHING, constant: 1.0}
    assert costs.tree_cost(SHAPE, n_columns, STUMP, c) == pytest.approx(expected)


def test_drawn_features_and_values_in_small_nodes():
    assert [costs.n_drawn(k, 50) for k in ("sqrt", 0.1, 0.5, 1.0)] == [7, 5, 25, 50]
    assert costs.n_drawn(0.1, 3) == 1
    many = Shape(1000, 20, np.full(10, 800))
    c = {**NOTHING, "judge": 1.0}
    assert costs.tree_cost(many, 1, STUMP, c) == pytest.approx(10 * (800 + 2 * 500))


@pytest.mark.parametrize(
    ("strategy", "settings", "constant", "expected"),
    [
        ("independent", {}, "tree", 20),
        ("multioutput", {}, "move", 20 * 10 * 2000),
        ("relabel", {"n_components": 5}, "move", 5 * 10 * 2000),
        ("project", {}, "move", 10 * 2000),
        ("project", {}, "project", 20_000),
        ("project", {"projection": "subsample"}, "project", 1000),
        ("relabel", {"n_components": 5}, "project", 5 * 20_000),
        ("relabel", {}, "leaf values", 20_000),
        ("project", {}, "leaf values", 0),
        ("multioutput", {}, "update", 20_000),
        ("project", {}, "step squared_error", 20_000),
        ("project", {"loss": "absolute_error"}, "step absolute_error", 20_000 * math.log2(1000)),
        ("project", {"loss": "log_loss"}, "evaluation", 15 * 20),
        ("project", {"loss": "log_loss"}, "step log_loss", 15 * 20_000),
        ("project", {"loss": "log_loss", "step": "newton"}, "step log_loss", 0),
        ("relabel", {"loss": "log_loss", "step": "newton"}, "gradient log_loss", 2 * 20_000),
    ],
)
def test_a_round_costs_what_the_formula_says(strategy, settings, constant, expected):
    c = {**NOTHING, "evaluations": 15.0, constant: 1.0}
    found = costs.round_cost(SHAPE, strategy, {**STUMP, **settings}, c)
    assert found == pytest.approx(expected)


def test_100_units_buy_100_rounds_of_gbmort_with_stumps_whatever_the_constants():
    assert costs.rounds_bought(SHAPE, "multioutput", STUMP, 100) == dict.fromkeys(VARIATIONS, 100)
    single = costs.rounds_bought(SHAPE, "independent", STUMP, 100)
    projected = costs.rounds_bought(SHAPE, "project", STUMP, 100)
    assert single["nominal"] < 100 < projected["nominal"]
    assert projected["statistic*2"] > projected["nominal"] > projected["statistic*0.5"]
    assert costs.rounds_bought(SHAPE, "independent", STUMP, 0.001)["nominal"] == 1


def test_constants_are_medians_over_processes():
    error = {"typical error of the growing model": 0.1}
    runs = [{"sort": sort, "scan": 2.0, **error} for sort in (5.0, 4.00123, 1.0, 9.0, 3.0)]
    found = summary(runs)
    assert found["constants"] == {"sort": 4.0, "scan": 2.0}
    assert found["about"]["processes"] == 5
    assert found["about"]["largest spread over processes"] == "50%, of sort"


def test_the_file_says_how_far_processes_differed():
    about = json.loads(costs.FILE.read_text())["about"]
    assert about["processes"] == 5
    assert float(about["largest spread over processes"].partition("%")[0]) < 20


def test_the_digest_names_the_constants(monkeypatch):
    before = costs.digest()
    monkeypatch.setattr(costs, "constants", lambda: {**ONES})
    assert costs.digest() != before


def test_20_projections_are_as_much_cheaper_on_delicious_as_in_the_paper():
    """The paper reports a factor of 7 between gbmort and 20 Gaussian projections, log loss."""
    delicious = Shape(12_920, 983, np.full(500, 2))
    log_loss = {**STUMP, "loss": "log_loss"}
    every = costs.relative_costs(delicious, "multioutput", log_loss)["nominal"]
    few = costs.relative_costs(delicious, "relabel", {**log_loss, "n_components": 20})["nominal"]
    assert 5 < every / few < 8
