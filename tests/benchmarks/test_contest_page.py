"""One validation part for all, caps that are told, and a page that comes from the records alone."""

import importlib.util
import time

import numpy as np
import pytest
from benchmarks.contestants import Settings, Stopwatch
from benchmarks.defaults import CONTESTANTS, SETS, Split
from benchmarks.defaults_page import (
    FOLDED,
    OURS,
    PEERS,
    REFITTED,
    Comparison,
    comparisons,
    document,
)
from benchmarks.records import Run
from benchmarks.run import Budget, Results, run_process, serves
from benchmarks.workloads import Data
from scipy.sparse import csr_matrix, issparse

from benchmarks import defaults


def toy(task="multilabel", *, sparse=False) -> Data:
    """90 training and 40 test rows, four outputs of which the last never changes in training."""
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(130, 6)).astype(np.float32)
    signal = X[:, :4] + rng.standard_normal((130, 4))
    Y = (signal > 2).astype(np.uint8) if task == "multilabel" else signal.astype(np.float32)
    Y[:90, 3] = 0
    X = csr_matrix(X) if sparse else X
    return Data(X[:90], Y[:90], X[90:], Y[90:], task)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A data folder where emotions is a toy without an official split."""
    data = toy()
    X, Y = np.concatenate([data.X, data.X_test]), np.concatenate([data.Y, data.Y_test])
    np.savez(tmp_path / "emotions.npz", X=X, Y=Y)
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    return tmp_path


def options(tmp_path, *arguments):
    files = ("--results", str(tmp_path / "defaults.json"), "--page", str(tmp_path / "page.md"))
    return defaults.parse([*arguments, *files])


# ------------------------------------------------------------------ the data


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_tenth_of_the_training_rows_validates_and_the_test_rows_are_left_alone(sparse):
    data = toy(sparse=sparse)
    split, again, other = (Split.of(data, seed) for seed in (0, 0, 1))
    assert (split.X.shape[0], split.X_val.shape[0]) == (81, 9)
    X, Y = split.with_validation()
    dense = X.toarray() if issparse(X) else X
    whole = data.X.toarray() if sparse else data.X
    rows, expected = (np.hstack(pair) for pair in ((dense, Y), (whole, data.Y)))
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(expected, axis=0))
    assert split.X_test is data.X_test
    np.testing.assert_array_equal(split.Y_val, again.Y_val)
    assert (split.Y != other.Y).any()


def test_plan_walks_set_by_set_and_repeats_are_interleaved(tmp_path):
    asked = options(tmp_path, "--datasets", "scm20d", "emotions", "--contestants", OURS, "lightgbm")
    jobs = [(e.workload, e.contestant, repeat) for e, repeat in defaults.plan(asked)]
    assert jobs[:3] == [("emotions", OURS, 0), ("emotions", "lightgbm", 0), ("emotions", OURS, 1)]
    assert len(jobs) == 2 * (SETS["emotions"].repeats + SETS["scm20d"].repeats)
    assert {job[0] for job in jobs[-6:]} == {"scm20d"}


# ------------------------------------------------------------------ the contestants


def available(name):
    contestant = CONTESTANTS[name]()
    if importlib.util.find_spec(contestant.library.split(".")[0]) is None:
        pytest.skip(f"{contestant.library} is not installed")
    return contestant


@pytest.mark.filterwarnings("default")  # theirs are not our business
@pytest.mark.parametrize("name", CONTESTANTS)
@pytest.mark.parametrize(
    ("task", "sparse"), [("multilabel", False), ("multilabel", True), ("regression", False)]
)
def test_every_contestant_keeps_its_best_round_and_predicts_all_outputs(name, task, sparse):
    contestant = available(name)
    data = Split.of(toy(task, sparse=sparse), 0)
    contestant.fit(data, Settings(n_rounds=15, n_threads=1), Stopwatch())
    raw = contestant.predict(data.X_test)
    assert raw.shape == data.Y_test.shape
    assert np.isfinite(raw).all()
    assert 1 <= contestant.rounds_done <= (defaults.FOREST if name == "random-forest" else 15)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", CONTESTANTS)
def test_a_contestant_that_is_stopped_at_once_is_scored_with_what_it_has(name):
    contestant = available(name)
    data = Split.of(toy(), 0)
    contestant.fit(data, Settings(n_rounds=50, n_threads=1), Stopwatch(limit=1e-9))
    if name == "lightgbm":
        assert len(contestant.outputs_done) == 1
    else:
        assert contestant.rounds_done in (1, defaults.TREES_AT_A_TIME)
        assert contestant.predict(data.X_test).shape == data.Y_test.shape


def test_a_paused_stopwatch_does_not_run():
    watch = Stopwatch()
    with watch.paused():
        time.sleep(0.1)
    assert watch.elapsed < 0.1


def test_one_model_per_output_is_given_up_when_a_fifth_of_the_time_shows_that_it_must_be():
    watch = Stopwatch(limit=100.0)
    watch.began -= 30  # 30 seconds have passed
    assert defaults.hopeless(10, 100, 0.0, watch)  # it would take 300
    assert not defaults.hopeless(9, 100, 0.0, watch)  # too few outputs to tell
    assert not defaults.hopeless(20, 100, 0.0, watch)  # 150: it may go on to the cap
    assert not defaults.hopeless(10, 100, 25.0, watch)  # the set-up is paid once: 75


# ------------------------------------------------------------------ records


def test_a_fit_is_measured_in_a_process_of_its_own_and_not_made_again(folder):
    asked = options(folder, "--datasets", "emotions", "--contestants", "random-forest")
    [(entry, repeat), *_] = defaults.plan(asked)
    made = run_process(defaults.specification(entry, repeat), Budget(120, 4e9))
    assert made["status"] == "ok", made.get("log")
    assert made["score_name"] == "LRAP"
    assert 0 < made["score"] <= 1
    assert made["rounds"] == defaults.FOREST
    assert not made["capped"]
    results = Results(asked.results)
    results.add(made)
    assert defaults.run_one(entry, repeat, Results(asked.results), 4).startswith("known")


def test_a_larger_cap_asks_again_only_for_what_the_cap_stopped():
    spec = record(OURS, 0.5)["spec"]
    longer = {**spec, "limit": 1000.0}
    assert serves(record(OURS, 0.5), longer)
    assert not serves(record(OURS, 0.5, capped=True), longer)


# ------------------------------------------------------------------ the page


def record(contestant, score, *, workload="emotions", repeat=0, **facts):
    spec = {
        "workload": workload,
        "contestant": contestant,
        "n_rounds": 1000,
        "n_threads": 2,
        "limit": 600.0,
        "repeat": repeat,
    }
    shape = ("n_rows", "n_validation_rows", "n_test_rows", "n_features", "n_outputs")
    return {
        "spec": spec,
        "status": "ok",
        "when": "2026-01-02T03:04:05+00:00",
        "fit_seconds": 2.0,
        "score_name": "LRAP",
        "score": score,
        "rounds": 50,
        "patience": 10,
        "capped": False,
        **dict.fromkeys(shape, 7),
        **facts,
    }


def run_of(*records) -> Run:
    facts = {"cpu": "abacus", "cores": 2, "memory_bytes": 2**34, "system": "", "python": "3"}
    machine = {**facts, "libraries": ["manyboost 1"], "notes": []}
    return Run({"machine": machine, "skipped": {}, "records": list(records)})


def compared(run: Run, name="emotions") -> Comparison:
    return next(c for c in comparisons(run) if c.name == name)


@pytest.mark.parametrize(
    ("ours", "within"), [(0.9, True), (0.8, True), (0.7981, True), (0.7979, False)]
)
def test_within_means_no_more_than_the_margin_below_the_best_peer(ours, within):
    scores = dict(zip(PEERS, (0.8, 0.7, 0.6, 0.5, 0.4), strict=True))
    run = run_of(record(OURS, ours), *(record(peer, scores[peer]) for peer in PEERS))
    found = compared(run)
    assert found.best_peer == PEERS[0]
    assert found.within is within
    text = document(run, "defaults.json")
    assert f"on {int(within)} of 12 sets, and ahead of all of them on {int(ours > 0.8)};" in text


def test_folds_are_ours_and_have_a_verdict_of_their_own():
    peers = [record(peer, 0.5) for peer in PEERS]
    folds = record(FOLDED, 0.6), record(REFITTED, 0.45)
    run = run_of(record(OURS, 0.4), *folds, *peers)
    assert compared(run).difference == pytest.approx(-0.1)
    assert compared(run).ahead_by(FOLDED) == pytest.approx(0.1)
    text = document(run, "defaults.json")
    assert "**With `n_folds=5` it is ahead on 1 of 1.**" in text
    assert "**With `n_folds=5, refit_all=True` it is ahead on 0 of 1.**" in text
    assert "| -0.1000 | no | +0.1000 | -0.0500 | 1 × |" in text
    assert "- emotions: not examined." in text


def test_seconds_of_another_machine_are_marked_and_not_compared():
    elsewhere = [record(peer, 0.5, place={"cpu": "another"}) for peer in PEERS]
    text = document(run_of(record(OURS, 0.6), *elsewhere), "defaults.json")
    assert "0.5000 · 2 s †" in text
    assert "**0.6000** · 2 s |" in text
    assert "| +0.1000 | yes | – | – |" in text


def test_scores_are_means_of_the_repeats():
    peers = [record(peer, 0.5, repeat=i) for peer in PEERS for i in range(2)]
    run = run_of(record(OURS, 0.4), record(OURS, 0.6, repeat=1), *peers)
    assert compared(run).score(OURS) == pytest.approx(0.5)
    assert compared(run).difference == pytest.approx(0.0)


def test_a_set_counts_only_when_all_were_tried_as_often_or_took_long():
    peers = [record(peer, 0.5) for peer in PEERS]
    assert compared(run_of(record(OURS, 0.6), *peers[1:])).within is None
    once_more = record(OURS, 0.6, repeat=1)
    assert compared(run_of(record(OURS, 0.6), once_more, *peers)).within is None
    long = [record(peer, 0.5, fit_seconds=90.0) for peer in PEERS]
    assert compared(run_of(record(OURS, 0.6), once_more, *long)).within is True
    assert compared(run_of(record(OURS, 0.6), *peers)).within is True


def test_page_marks_what_was_capped_over_budget_or_killed():
    peers = [record(peer, 0.5) for peer in PEERS[3:]]
    capped = record(PEERS[0], 0.7, capped=True)
    over = record(PEERS[1], None, fit_seconds=5000.0, extrapolated="10 of 159 outputs")
    killed = {**record(PEERS[2], None), "status": "over memory", "fit_seconds": None}
    run = run_of(record(OURS, 0.6), capped, over, killed, *peers)
    page = document(run, "defaults.json")
    assert "**0.7000** · 2 s ◦" in page
    assert "over budget, ≈ 5,000 s" in page
    assert "| over memory |" in page
    assert "from 10 of 159 outputs" in page
    assert compared(run).best_peer == PEERS[0]
    assert "| -0.1000 | no |" in page


def test_page_of_an_empty_run_measures_nothing_and_says_so():
    page = document(run_of(), "defaults.json")
    assert "on 0 of 12 sets" in page
    assert f"Not measured, or not with all contestants: {', '.join(SETS)}" in page
