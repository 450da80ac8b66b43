"""A store holds complete runs, and nothing else."""

import json

import pytest
from experiments.protocol import (
    Chosen,
    Curve,
    CurveResult,
    Model,
    ModelResult,
    Search,
    SearchResult,
    Trial,
    TrialResult,
)
from experiments.store import Store, this_build

SETTINGS = {
    "loss": "log_loss",
    "learning_rate": 0.1,
    "max_features": "sqrt",
    "max_leaf_nodes": 3,
}
TRIAL = Trial("scene", 0, 0, "gbmort", SETTINGS, 40)
SCORES = {"no refit": {"lrap": 0.5}, "refit": {"lrap": 0.6}}
ROWS = [
    (TRIAL, TrialResult(40, False, [(1, -12.345678), (40, 0.5)], 1.25)),
    (
        Search("scene", 0, 0, "gbmort", 3, "T:100", "abc"),
        SearchResult([Chosen(SETTINGS, 40, 0.5, SCORES)], {"nominal": 0, "sort*2": 0}, 3, 2.5),
    ),
    (
        Curve("scene", 0, 1, "gbmort", SETTINGS, "rounds:2"),
        CurveResult([1, 2], [0.1, 0.2], [0.5, 1.0], {"nominal": 1.5}),
    ),
    (Model("scene", 0, 1, "default"), ModelResult({"lrap": 0.5}, 10, 1.0)),
]


def test_results_come_back_as_they_were(tmp_path):
    store = Store(tmp_path / "rows")
    for run, result in ROWS:
        assert store.get(run) is None
        store.put(run, result)
    again = Store(tmp_path / "rows")
    for run, result in ROWS:
        assert again.get(run) == store.get(run) == result
    assert len(again) == len(ROWS)
    assert again.datasets() == {"scene"}
    build, made_with = this_build()
    assert again.builds == {build: made_with}
    assert made_with.keys() >= {"manyboost", "numpy", "python", "machine"}
    for line in (tmp_path / "rows" / "results.jsonl").read_text().splitlines():
        assert json.loads(line)["build"] == build
    for line in (tmp_path / "rows" / "trials.csv").read_text().splitlines()[1:]:
        assert line.endswith(build)


def test_the_first_result_stands_and_the_longest_trial(tmp_path):
    run, result = ROWS[-1]
    store = Store(tmp_path)
    store.put(run, result)
    store.put(run, ModelResult({"lrap": 0.7}, 10, 1.0))
    longer = TrialResult(60, False, [(1, 0.25), (60, 0.75)], 1.0)
    store.put(TRIAL, ROWS[0][1])
    store.put(TRIAL, longer)
    for each in (store, Store(tmp_path)):
        assert each.get(run) == result
        assert each.get(TRIAL) == longer


def test_a_trial_answers_for_shorter_ones_and_for_longer_ones_if_it_has_stalled():
    def trial(rounds):
        return Trial(*("scene", 0, 0, "gbmort", SETTINGS), rounds)

    store = Store(None)
    store.put(trial(40), TrialResult(39, False, [(1, 0.5)], 1.0))  # 39 is the last point up to 40
    assert store.get(trial(10)) is store.get(trial(40)) is not None
    assert store.get(trial(60)) is None
    store.put(trial(60), TrialResult(57, True, [(1, 0.5)], 1.0))
    assert store.get(trial(1000)) is not None


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    runs = [Model("scene", 0, split, "default") for split in range(3)]
    store = Store(tmp_path)
    for run in runs[:2]:
        store.put(run, ModelResult({"lrap": 0.5}, 10, 1.0))
    path = tmp_path / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    store = Store(tmp_path)
    assert len(store) == 1
    store.put(runs[2], ModelResult({"lrap": 0.5}, 10, 1.0))
    rows = list(map(json.loads, path.read_text().splitlines()))
    assert [row["run"]["split"] for row in rows] == [0, 2]


def test_an_archive_holds_what_the_rows_held(tmp_path):
    store = Store(tmp_path)
    assert store.archive() is None
    store.put(TRIAL, ROWS[0][1])
    assert store.archive().name == "trials-01.csv.gz"
    assert not (tmp_path / "trials.csv").exists()
    store = Store(tmp_path)
    assert store.get(TRIAL) == ROWS[0][1]
    other = Trial("birds", *("scene", 0, 0, "gbmort", SETTINGS, 40)[1:])
    store.put(other, ROWS[0][1])
    assert store.archive().name == "trials-02.csv.gz"
    assert len(Store(tmp_path)) == 2


def test_another_folder_is_not_a_store(tmp_path):
    (tmp_path / "results.jsonl").write_text("not a store at all\n" * 20)
    with pytest.raises(ValueError, match="is not a store of runs"):
        Store(tmp_path)


def test_keys_tell_all_runs_apart():
    base = ("scene", 0, 0, "gbmort", SETTINGS, 40)
    runs = [
        Trial(*base),
        Trial("birds", *base[1:]),
        Trial("scene", 1, *base[2:]),
        Trial("scene", 0, 1, *base[3:]),
        Trial(*base[:4], {**SETTINGS, "learning_rate": 0.2}, 40),
        Curve(*base[:5], "rounds:6"),
        Curve(*base[:5], "rounds:7"),
    ]
    assert len({run.key for run in runs}) == len(runs)
    reordered = dict(reversed(SETTINGS.items()))
    assert Trial(*base[:4], reordered, 7).key == runs[0].key
