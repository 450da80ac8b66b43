"""Items: their plans, their sections, and that a command can be stopped and goes on."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.items import ITEMS
from experiments.options import Options
from experiments.paper import paper_score
from experiments.protocol import Unit
from experiments.report.content import CriticalDifference, Lines, Table
from experiments.reproduction import run, summarise
from experiments.runner import run_missing
from experiments.store import Store

from experiments import methods, problems, protocol
from manyboost.datasets import Dataset

TINY = Options(quick=True, budget="rounds:12", search="random:2", n_splits=2)


def scores(report):
    """All that a report says, but for times."""
    said = []
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                said += [{k: v for k, v in row.items() if k != "seconds"} for row in block.rows]
        said += [(f.claim, f.measured, f.holds) for f in section.findings]
    return said


def runs_of(item, options):
    return ITEMS[item].runs(ITEMS[item].scope(options))


def block(section, name):
    return next(b for b in section.blocks if b.name == name)


@pytest.fixture
def stored_sets(monkeypatch):
    """Small made-up sets under the names of real ones."""

    def load(name, data_dir=None):
        if name not in ("scene", "birds", "emotions", "delicious", "edm", "atp1d"):
            raise FileNotFoundError(name)
        rng = np.random.default_rng(len(name))
        X = rng.random((60, 5)).astype(np.float32)
        Y = X[:, :3] + 0.2 * rng.standard_normal((60, 3)) + X[:, 4:]
        task = "regression" if name in ("edm", "atp1d") else "multilabel"
        if task == "multilabel":
            Y = (Y > 1).astype(np.uint8)
        return Dataset(name, X, Y, tuple("abcde"), tuple("xyz"), task)

    monkeypatch.setattr(problems, "load_dataset", load)
    for module in (methods, protocol):
        monkeypatch.setattr(module, "FOREST_TREES", 5)
    problems.is_available.cache_clear()
    problems.load_problem.cache_clear()
    yield
    problems.is_available.cache_clear()
    problems.load_problem.cache_clear()


@pytest.fixture
def no_sets(monkeypatch):
    def load(name, data_dir=None):
        raise FileNotFoundError(name)

    monkeypatch.setattr(problems, "load_dataset", load)
    problems.is_available.cache_clear()
    yield
    problems.is_available.cache_clear()


def test_the_full_friedman_item_is_that_of_the_paper():
    runs = runs_of("friedman", Options())
    assert len(runs) == 3 * 5 * 5
    assert all(len(r.needs()) == 40 for r in runs)
    assert {r.budget for r in runs} == {"rounds:2000"}


def test_methods_of_a_set_are_compared_on_the_same_rows_with_the_same_settings():
    runs = [r for r in runs_of("friedman", TINY) if r.dataset == "friedman1-ind" and r.split == 1]
    folds = [r.fold(r.split, "testing", None) for r in runs]
    for fold in folds[1:]:
        np.testing.assert_array_equal(fold.X_eval, folds[0].X_eval)
    tried = [[trial.settings for trial in r.needs()] for r in runs]
    assert all(settings == tried[0] for settings in tried)


def test_friedman_tables_hold_our_scores_beside_the_paper_s():
    options = replace(TINY, datasets=["friedman1-group"], methods=["gbmort", "gbrt-rpo-subsampled"])
    (section,) = run(["friedman"], options, None, stream=None).sections
    rows = block(section, "friedman").rows
    assert [row["method"] for row in rows] == ["gbmort", "gbrt-rpo-subsampled"]
    score = rows[0]["friedman1-group"]
    assert score.n_repeats == 2
    assert 0.2 < score.mean < 1
    assert (score.paper, score.paper_std, score.paper_rank) == (0.874, 0.012, 4)
    assert {row["friedman1-group"].rank for row in rows} == {1, 2}
    claim = section.findings[0]
    assert claim.holds is (
        abs(score.difference) <= 0.03 and abs(rows[1]["friedman1-group"].difference) <= 0.03
    )
    assert section.specification["budget of a fit"] == "rounds:12"


def test_the_model_that_is_tested_is_the_one_that_was_chosen():
    options = replace(TINY, datasets=["friedman1-chain"], methods=["gbmort"], search="random:3")
    tuned = runs_of("friedman", options)[0]
    trials = tuned.needs()
    results = [trial.execute([], None) for trial in trials]
    final = tuned.execute(results, None)
    best = int(np.argmax([r.scores["macro-r2"] for r in results]))
    assert {k: final.chosen[k] for k in trials[best].settings} == trials[best].settings
    assert final.rounds == results[best].rounds
    assert final.chosen["validation score"] == max(r.scores["macro-r2"] for r in results)


def test_noisy_sets_are_scored_on_all_outputs_and_on_the_real_ones():
    options = replace(TINY, datasets=["friedman1-group-noisy"])
    (section,) = run(["friedman-noisy"], options, None, stream=None).sections
    for row in block(section, "friedman-noisy-friedman1-group-noisy").rows:
        assert row["half-macro-r2"].mean > row["macro-r2"].mean
        assert row["macro-r2"].paper is not None
    assert [f.holds is None for f in section.findings] == [True, False]


def test_curves_have_a_figure_and_claims():
    options = replace(TINY, datasets=["friedman1-ind"], budget="rounds:30")
    convergence, projections = run(
        ["convergence", "projections"], options, None, stream=None
    ).sections
    figure = block(convergence, "convergence-friedman1-ind")
    assert isinstance(figure, Lines)
    assert [s.label for s in figure.series] == ["st-gbrt", "gbmort", "gbrt-rpo-subsampled"]
    for series in figure.series:
        assert list(series.x) == sorted(series.x)
        assert len(series.x) == len(series.y) == len(series.low) == len(series.high)
    assert all(f.holds is not None for f in convergence.findings)
    assert len(block(projections, "projections-friedman1-ind").series) == 4
    assert projections.findings[0].holds is not None


def test_sets_that_are_not_found_are_left_out_and_listed(no_sets):
    sections = run(["multilabel", "components"], TINY, None, stream=None).sections
    for section in sections:
        assert any(text.startswith("Data sets not found: ") for text in section.text)
        assert section.specification["data sets"] == "none"
        assert all(f.holds is None for f in section.findings)


def test_real_sets_are_ranked_and_tested(stored_sets):
    options = replace(TINY, budget="T:20", max_seconds=0.5)
    multilabel, regression = run(["multilabel", "regression"], options, None, stream=None).sections
    assert any("CAL500" in text for text in multilabel.text)
    assert multilabel.specification["T in seconds"].startswith("birds ")
    table = block(multilabel, "multilabel")
    assert [row["dataset"] for row in table.rows] == ["birds", "emotions", "scene"]
    assert table.rows[2]["gbmort"].paper == paper_score("appendix", "scene", "gbmort", "lrap").score
    ranks = block(multilabel, "multilabel-ranks")
    assert isinstance(ranks, CriticalDifference)
    assert sum(ranks.ranks.values()) == pytest.approx(8 * 9 / 2)
    assert {b.name for b in multilabel.blocks} >= {"multilabel-wilcoxon", "multilabel-nemenyi"}
    reached, first, differ = multilabel.findings
    assert "of 3 data sets" in reached.measured
    assert first.holds is not None
    assert differ.holds is not None
    assert [row["dataset"] for row in block(regression, "regression").rows] == ["atp1d", "edm"]


def test_components_are_compared_with_all_outputs(stored_sets):
    (section,) = run(["components"], TINY, None, stream=None).sections
    names = [row["line"] for row in block(section, "components-delicious-ends").rows]
    assert names == ["gbmort", *(f"gbrt-relabel-rpo-gaussian, q = {q}" for q in (1, 20))]
    assert [s.label for s in block(section, "components-delicious-lrap").series] == [
        "gbmort",
        "gbrt-relabel-rpo-gaussian",
    ]
    assert all(f.holds is not None for f in section.findings)


def test_t_is_measured_once_for_a_set(stored_sets):
    options = replace(TINY, datasets=["scene"], methods=["gbmort", "mo-rf"], budget="T:5")
    store = Store(None)
    run_missing(runs_of("multilabel", options), store)
    assert len(store) == 2 + 2 * 2 + 2 + 1  # two tuned of each, trials of gbmort, T
    assert store.get(Unit("scene", 0)).seconds > 0


def test_a_cap_of_seconds_is_recorded():
    options = replace(
        TINY,
        datasets=["friedman1-chain"],
        methods=["gbmort"],
        budget="rounds:100000",
        n_splits=1,
        max_seconds=0.05,
    )
    (section,) = run(["friedman"], options, None, stream=None).sections
    (row,) = block(section, "friedman-chosen").rows
    assert row["capped"] == 2
    assert section.specification["cap of seconds per fit"] == "0.05"
    assert "The cap of seconds ended 2 fits before their budget." in section.text


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="item 'friedmann' is unknown; use some of convergence"):
        run(["friedmann"], TINY, None, stream=None)
    with pytest.raises(ValueError, match="data set 'scene' belongs to none of the items friedman"):
        run(["friedman"], replace(TINY, datasets=["scene"]), None, stream=None)
    with pytest.raises(ValueError, match="method 'xgboost' is unknown"):
        Options(methods=["xgboost"])
    with pytest.raises(ValueError, match="n_jobs=0 is too small"):
        Options(n_jobs=0)


def test_a_partial_store_says_what_is_missing(tmp_path):
    options = replace(TINY, datasets=["friedman1-chain"], methods=["gbmort", "gbrt-rpo-subsampled"])
    run(["friedman"], replace(options, methods=["gbmort"]), tmp_path / "runs", stream=None)
    (section,) = summarise(["friedman"], options, tmp_path / "runs").sections
    assert "2 of 4 runs are missing." in section.text
    done, missing = (row["friedman1-chain"] for row in block(section, "friedman").rows)
    assert done.n_repeats == 2
    assert (missing.mean, missing.n_repeats) == (None, 0)
    assert section.findings[0].holds is None


def test_results_do_not_depend_on_the_number_of_processes(tmp_path):
    options = replace(TINY, datasets=["friedman1-chain"])
    one, two = (
        run(["friedman"], replace(options, n_jobs=n), tmp_path / f"{n}.jsonl", stream=None)
        for n in (1, 2)
    )
    assert scores(one) == scores(two)


ROOT = Path(__file__).parents[2]
COMMAND = (
    "-m experiments friedman --quick --datasets friedman1-chain --methods gbmort,st-gbrt"
    " --budget rounds:100 --search random:6 --repeats 2"
)


@pytest.mark.parametrize(
    ("n_jobs", "kind"), [(1, signal.SIGKILL), (2, signal.SIGKILL), (2, signal.SIGINT)]
)
def test_a_stopped_command_goes_on_to_the_same_tables(tmp_path, n_jobs, kind):
    path = tmp_path / "runs.jsonl"
    where = ["--store", path, "--output", tmp_path / "report", "--n-jobs", str(n_jobs)]
    command = subprocess.Popen(
        [sys.executable, *COMMAND.split(), *where], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while _n_runs(path) < 3:
        assert time.monotonic() < deadline
        assert command.poll() is None
        time.sleep(0.02)
    command.send_signal(kind)
    _, said = command.communicate(timeout=60)
    assert command.returncode != 0
    n_before = _n_runs(path)
    assert n_before >= 3
    if kind == signal.SIGINT:
        assert command.returncode == 130
        assert "Traceback" not in said
        assert f"Interrupted; complete runs are kept in {path}." in said
    options = Options(
        quick=True,
        datasets=["friedman1-chain"],
        methods=["gbmort", "st-gbrt"],
        budget="rounds:100",
        search="random:6",
        n_splits=2,
    )
    stopped = run(["friedman"], options, path, stream=None)
    assert _n_runs(path) == 2 * 2 * 7
    assert scores(stopped) == scores(run(["friedman"], options, None, stream=None))


def _n_runs(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0
