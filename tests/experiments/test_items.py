"""What the items run."""

from pathlib import Path

import pytest
from experiments.items import ITEMS
from experiments.methods import METHODS, MODELS
from experiments.options import Options
from experiments.problems import MULTILABEL_SETS, REGRESSION_SETS, is_synthetic
from experiments.protocol import Curve, Search

from manyboost.datasets import CATALOGUE

ALL = (*MULTILABEL_SETS, *REGRESSION_SETS, *ITEMS["stand-ins"].full.datasets)


def scope(name, stored=ALL, **options):
    return ITEMS[name].scope(Options(**options), stored)


@pytest.mark.parametrize("name", ITEMS)
def test_items_name_what_there_is(name):
    item = ITEMS[name]
    assert set(item.full.methods) <= {*METHODS, *MODELS}
    assert all(is_synthetic(d) or d in CATALOGUE for d in item.full.datasets)
    assert item.summary
    assert item.of_paper
    runs = item.runs(scope(name))
    assert len({run.key for run in runs}) == len(runs) > 0


def test_searches_have_the_paper_s_budgets_and_enough_settings():
    runs = {
        name: ITEMS[name].runs(scope(name)) for name in ("multilabel", "regression", "friedman")
    }
    boosted = {name: [run for run in of if run.n_settings] for name, of in runs.items()}
    assert {run.budget for run in boosted["multilabel"]} == {"T:100"}
    assert {run.budget for run in boosted["regression"]} == {"T:500"}
    assert {run.budget for run in boosted["friedman"]} == {"rounds:10000"}
    for run in boosted["multilabel"] + boosted["regression"]:
        least = 40 if CATALOGUE[run.dataset].n_rows < 3000 else 20
        assert run.n_settings >= least
    assert {run.n_settings for run in boosted["friedman"]} == {42}


def test_there_are_five_splits_and_three_of_the_largest_sets():
    splits = {}
    for run in ITEMS["multilabel"].runs(scope("multilabel")):
        splits.setdefault(run.dataset, set()).add(run.split)
    assert splits.pop("delicious") == splits.pop("mediamill") == {0, 1, 2}
    assert set(map(frozenset, splits.values())) == {frozenset(range(5))}


def test_our_models_are_scored_on_the_splits_of_the_methods():
    tuned = ITEMS["multilabel"].runs(scope("multilabel"))
    ours = ITEMS["beyond"].runs(scope("beyond"))
    places = {(run.dataset, run.split) for run in tuned}
    assert places == {(run.dataset, run.split) for run in ours if run.dataset in MULTILABEL_SETS}


def test_small_sets_come_first():
    order = ITEMS["multilabel"].full.datasets
    assert order[0] == "emotions"
    assert order.index("scene") < order.index("delicious")


def test_the_lines_of_a_figure_are_runs_of_each_split():
    item, of = ITEMS["components"], scope("components")
    lines = item.lines(of, "delicious")
    assert len(lines) == 2 * (1 + 2 * 8)
    assert all(
        isinstance(run, Curve) and run.settings["loss"] == "log_loss" for run in lines["gbmort"]
    )
    few = lines["gbrt-relabel-rpo-gaussian, q = 20, newton"]
    assert [run.split for run in few] == [0, 1, 2]
    assert few[0].settings["n_components"] == 20
    assert few[0].settings["step"] == "newton"
    flat = [run.key for runs in lines.values() for run in runs]
    assert [run.key for run in item.runs(of)] == flat


def test_options_narrow_a_scope():
    narrow = scope("multilabel", datasets=["scene"], methods=["gbmort"], n_splits=2, n_settings=3)
    runs = ITEMS["multilabel"].runs(narrow)
    assert runs == [Search.declare("scene", 0, split, "gbmort", 3, "T:100") for split in (0, 1)]


def test_sets_without_data_or_results_are_absent(tmp_path, monkeypatch):
    monkeypatch.delenv("MANYBOOST_DATA", raising=False)
    found = scope("regression", stored={"edm"}, data_dir=Path(tmp_path))
    assert found.datasets == ["edm"]
    assert "scm1d" in found.absent


@pytest.mark.parametrize("name", ITEMS)
def test_a_quick_scope_is_small(name):
    quick = scope(name, quick=True)
    assert len(ITEMS[name].runs(quick)) < 60
