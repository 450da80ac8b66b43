"""Claims, tables and the README section come from the records alone."""

import pytest
from benchmarks.bars import Line, lines
from benchmarks.records import Run
from benchmarks.report import document, lead, readme_section, strategies
from benchmarks.tables import filled

D50 = "regression-20000x50x50"


def record(contestant, seconds, *, workload=D50, n_rounds=100, repeat=0, **facts):
    spec = {
        "workload": workload,
        "contestant": contestant,
        "n_rounds": n_rounds,
        "n_threads": 2,
        "repeat": repeat,
        "max_leaf_nodes": 31,
        "library": "abacus 1",
    }
    return {
        "spec": spec,
        "machine": 0,
        "status": "ok",
        "when": "2026-01-02T03:04:05+00:00",
        "n_rows": 20_000,
        "n_features": 50,
        "n_outputs": 50,
        "n_test_rows": 5000,
        "fit_seconds": seconds,
        "seconds_per_round": seconds / n_rounds,
        "predict_seconds": 0.01,
        "peak_bytes": 10**8,
        "model_bytes": 10**6,
        "extrapolated": None,
        "score_name": "macro r²",
        "score": 0.8,
        "curve": [[n, seconds * n / n_rounds, 0.8 * n / 100] for n in (25, 50, 100)],
        **facts,
    }


def run_of(*records) -> Run:
    facts = {"cpu": "abacus", "cores": 2, "memory_bytes": 2**34, "system": "", "python": "3"}
    machine = {**facts, "libraries": ["manyboost 1"], "notes": []}
    last = max((each["machine"] for each in records), default=0)
    machines = [machine, {**machine, "cpu": "another"}]
    return Run({"machines": machines[: last + 1], "skipped": {}, "records": list(records)})


def line(run: Run, claim: str) -> Line:
    return next(line for line in lines(run) if claim in line.claim)


def test_summary_is_the_median_of_the_repeats():
    run = run_of(*(record("catboost", s, repeat=i) for i, s in enumerate([3.0, 1.0, 8.0])))
    summary = run.find(D50, "catboost")
    assert summary.fit_seconds == 3.0
    assert summary.spread == pytest.approx(7 / 3)
    assert summary.seconds_to(0.4) == 1.5
    assert summary.seconds_to(0.9) is None


@pytest.mark.parametrize(("theirs", "verdict"), [(41.0, "reached"), (39.0, "not reached")])
def test_a_claim_is_reached_or_not(theirs, verdict):
    run = run_of(record("manyboost-relabel", 1.0), record("xgboost-multi-output-tree", theirs))
    found = line(run, "`relabel` against xgboost `multi_output_tree`")
    assert found.verdict == verdict
    assert f"{theirs:g} ×" in found.measured


def test_time_to_score_reads_the_longest_curve():
    long = record("manyboost-relabel", 10.0, n_rounds=1000)
    long["curve"] = [[500, 0.5, 0.7], [1000, 1.0, 0.81]]
    run = run_of(record("manyboost-relabel", 1.0), long, record("lightgbm-per-output", 30.0))
    found = line(run, "score of LightGBM per output")
    assert found.measured.startswith("30 ×")
    assert found.reached


def test_a_score_that_is_never_reached_is_said():
    run = run_of(record("manyboost-relabel", 1.0), record("lightgbm-per-output", 30.0, score=0.9))
    found = line(run, "score of LightGBM per output")
    assert found.verdict == "not reached"
    assert "0.8000 in 100 rounds" in found.measured


def test_a_peer_that_was_stopped_has_no_score_to_compare_with():
    stopped = record("lightgbm-per-output", 30.0, extrapolated="10 of 50 outputs")
    run = run_of(record("manyboost-relabel", 1.0), stopped)
    found = line(run, "score of LightGBM per output")
    assert found.verdict == "not measured"
    assert "10 of 50 outputs" in found.measured


def test_an_empty_run_measures_nothing_and_says_so():
    assert {line.verdict for line in lines(run_of())} == {"not measured"}


def test_page_marks_what_was_extrapolated_and_what_was_killed():
    stopped = record("lightgbm-per-output", 30.0, extrapolated="10 of 50 outputs", score=None)
    killed = {
        **{key: record("catboost", 1.0)[key] for key in ("spec", "when", "machine")},
        "status": "over budget",
        "budget": {"seconds": 300, "memory": 10**10},
    }
    page = document(run_of(record("manyboost-relabel", 1.0), stopped, killed), [], "x.json")
    assert "| lightgbm-per-output | ≈ 30 | 30 |" in page
    assert "from 10 of 50 outputs" in page
    assert "over budget: killed after 300 s" in page


def test_readme_keeps_all_but_what_is_between_the_marks():
    text = "before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n"
    sections = {"bench": readme_section(run_of(record("manyboost-relabel", 1.0)), [])}
    new = filled(text, sections)
    assert new.startswith("before\n")
    assert new.endswith("\nafter\n")
    assert "old" not in new
    assert "| **manyboost-relabel** | 1 |" in new
    assert filled(new, sections) == new


def test_the_readme_leads_with_the_time_to_the_same_score():
    long = record("manyboost-relabel", 10.0, n_rounds=1000)
    long["curve"] = [[500, 0.5, 0.7], [1000, 1.0, 0.81]]
    peers = record("lightgbm-per-output", 30.0), record("catboost", 90.0, score=0.9)
    run = run_of(record("manyboost-relabel", 1.0), long, *peers)
    assert lead(run, "#how") == "**It reaches LightGBM's test score 30 × faster** ([how](#how))."
    assert "CatBoost" not in lead(run, "#how")
    section = readme_section(run, [])
    assert "lightgbm-per-output | 0.8000 macro r² | 30 s | 1 s | **30 × faster** |" in section
    assert "catboost | 0.9000 macro r² | 90 s | not reached |  |" in section
    assert lead(run_of(record("manyboost-relabel", 1.0)), "#how") == ""


def test_the_pages_say_which_machine_measured_what():
    ours = record("manyboost-relabel", 1.0)
    assert "Machine: abacus, 2 cores" in document(run_of(ours), [], "x.json")
    elsewhere = record("manyboost-relabel", 1.0, workload="mediamill", machine=1)
    run = run_of(ours, elsewhere, record("catboost", 1.0, workload="scm20d", machine=1))
    page = document(run, [], "x.json")
    assert f"On abacus, 2 cores, 16 GiB, , Python 3: {D50}." in page
    assert "On another, 2 cores, 16 GiB, , Python 3: mediamill, scm20d." in page
    assert "Versions: abacus 1." in page
    assert "abacus, 2 cores and another, 2 cores. ≈" in readme_section(run, [])


def test_the_guide_compares_strategies_that_ended_well():
    ours = {"workload": "delicious", "score_name": "LRAP"}
    run = run_of(
        record("manyboost-project", 2.0, score=0.25, model_bytes=10**6, **ours),
        record("manyboost-relabel", 1.0, score=0.5, model_bytes=4 * 10**6, **ours),
        record("manyboost-multioutput", 9.0, status="over budget", **ours),
        record("catboost", 3.0, **ours),
    )
    *_, head, _, relabel, project = strategies(run).splitlines()
    assert head == "| strategy | fit, s | predict, rows/s | model, MB | test LRAP |"
    assert relabel == '| `"relabel"` | 1 | 500,000 | 4 | 0.5000 |'
    assert project == '| `"project"` | 2 | 500,000 | 1 | 0.2500 |'
    assert strategies(run_of(record("manyboost-relabel", 1.0))) == ""
