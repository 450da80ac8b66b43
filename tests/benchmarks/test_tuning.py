"""The benchmark of tuning chooses by validation rows, and its tables say what was held out."""

import itertools
import json

import pytest

from benchmarks import tuning


def fit(scores):
    """A stand-in for fitting: what parameters score on validation rows, and nothing else."""
    return lambda change: {"validation": scores(change), "held out": -scores(change)}


def test_the_value_that_validation_rows_prefer_is_chosen():
    by_size = fit(lambda change: -abs(change["max_leaf_nodes"] - 16))
    assert tuning.best_of(by_size, "max_leaf_nodes", {"learning_rate": 0.1}) == {
        "learning_rate": 0.1,
        "max_leaf_nodes": 15,
    }


def test_parameters_are_chosen_one_after_the_other():
    steps = tuning.in_order(fit(lambda change: len(tuning.key_of(change))))
    assert [list(step)[-1] for step in steps] == list(tuning.FIVE)
    for before, after in itertools.pairwise(steps):
        assert before.items() <= after.items()


def test_a_default_that_is_named_is_the_same_fit():
    assert tuning.key_of({"max_leaf_nodes": 31}) == tuning.key_of({}) == "{}"
    assert tuning.key_of({"max_leaf_nodes": 6}) == '{"max_leaf_nodes": 6}'


@pytest.fixture
def results():
    def score(key):
        change = json.loads(key.removeprefix("folds "))
        better = 0.1 * (change.get("max_leaf_nodes") == 6) + 0.1 * key.startswith("folds")
        return {"validation": better, "held out": 0.5 + better, "rounds": 100.0, "seconds": 1.0}

    alone = [{}, *({name: value} for name, tried in tuning.VALUES.items() for value in tried)]
    small = {"max_leaf_nodes": 6}
    ordered = [*alone, *({**small, **change} for change in alone)]
    keys = [tuning.key_of(change) for change in ordered]
    found = {key: score(key) for key in [*keys, *(f"folds {key}" for key in keys)]}
    found["as it is"] = score("{}") | {"held out": 0.4}
    found["optuna"] = score("{}") | {"held out": 0.45, "pruned": 15, "rounds": 321}
    runs = {str(seed): found for seed in (*tuning.ALONE, *tuning.ORDERED)}
    return {"sets": {"enb": runs, "yeast": runs}, "machine": {"libraries": ["manyboost 1"]}}


def test_the_tables_show_what_was_held_out(results):
    sections = tuning.sections(results)
    assert "| `max_leaf_nodes` | 31, 6, 15, 63 | +0.1000 ± 0.0000 | 2 : 0 |" in sections["alone"]
    assert "| `subsample` | 1.0, 0.8, 0.5 | +0.0000 ± 0.0000 | 0 : 0 |" in sections["alone"]
    assert "| enb | 0.4000 | 0.5000 | 0.6000 |" in sections["order"]
    assert "| 0.4500 | 0.6000 | 0.7000 |" in sections["order"]
    assert "**+0.1000** | **+0.2000**" in sections["order"]
    assert "50 % of these were pruned (321 rounds)" in sections["order"]


def test_the_page_has_a_place_for_each_table(results):
    page = tuning.PAGE.read_text()
    for name in tuning.sections(results):
        assert f"<!-- {name}:begin -->" in page
