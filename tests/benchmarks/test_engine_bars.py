"""Claims about the engine are judged by stored results alone."""

from dataclasses import replace

import pytest
from benchmarks.engine_bars import Measured, lines
from benchmarks.records import Run
from benchmarks.suites import ONE_OUTPUT, PREDICTORS, RELABEL

from benchmarks import suites

MACHINE = {"cpu": "abacus", "cores": 2, "memory_bytes": 2**34, "system": "", "python": "3"}
MACHINE |= {"libraries": ["manyboost 1"], "notes": []}
WHEN = "2026-01-02T03:04:05+00:00"


def record(entry, milliseconds=1.0, **facts):
    """A record in which a round takes so long."""
    spec = {
        "workload": entry.workload,
        "contestant": entry.contestant,
        "n_rounds": entry.n_rounds,
        "n_threads": entry.threads,
        "repeat": 0,
        "max_leaf_nodes": entry.leaves or 31,
        "protocol": entry.protocol,
        "variant": entry.variant,
        "library": "abacus 1",
    }
    return {
        "spec": spec,
        "machine": 0,
        "status": "ok",
        "when": WHEN,
        "n_rows": 1000,
        "n_features": 20,
        "n_outputs": 5,
        "n_test_rows": 1000,
        "short_rounds": 1,
        "short_seconds": [1.0],
        "long_seconds": [1.0 + milliseconds / 1000 * (entry.n_rounds - 1)],
        "predict_seconds": milliseconds / 1000,
        "leaves_per_round": 31.0,
        "peak_bytes": 5e8,
        "expected_bytes": 1e9,
        **facts,
    }


def run_of(records):
    return Run({"machines": [MACHINE], "skipped": {}, "records": list(records)})


def dask(ratio):
    figures = {"dask_seconds": ratio, "local_seconds": 1.0, "ratio": ratio}
    return {"records": {"overhead-1000000x20": {"figures": figures}}}


def judged(measured, claim):
    (found,) = [line for line in lines(measured) if claim in line.claim]
    return found


def test_nothing_is_measured_and_said_so():
    assert {line.verdict for line in lines(Measured(run_of([])))} == {"not measured"}


def test_the_suites_measure_all_that_claims_need():
    engine = run_of(record(entry) for entry in suites.engine())
    assert all(line.reached is not None for line in lines(Measured(engine, dask(1.0))))


def test_the_slowest_of_the_small_tables_decides_and_all_are_shown():
    entries = [entry for entry in suites.engine() if entry.workload in suites.SMALL_TABLES]
    times = {(name, ONE_OUTPUT): 3.0 for name in suites.SMALL_TABLES} | {("yeast", ONE_OUTPUT): 1.5}
    engine = run_of(record(e, times.get((e.workload, e.contestant), 1.0)) for e in entries)
    found = judged(Measured(engine), "31 leaves, 1 thread, against LightGBM")
    assert found.bar == "≥ 2 × (goal 2.5)"
    assert found.measured.startswith("1.5 × (emotions 3, ")
    assert found.verdict == "not reached"


def test_sparse_tables_are_judged_by_the_round_and_shown_by_the_leaf():
    ours, theirs = suites.rounds("bibtex", [RELABEL, ONE_OUTPUT], 60, threads=1)
    first = replace(theirs, variant=suites.AS_STORED)
    records = [record(first, 8.0), record(ours, 4.0), record(theirs, 2.0, leaves_per_round=6.2)]
    found = judged(Measured(run_of(records)), "bibtex")
    detail = "4 ms : 2 ms; for each leaf grown 0.4 ×; for the first label 0.5 ×"
    assert found.measured == f"2 × ({detail})"
    assert found.verdict == "not reached"


def test_a_million_rows_are_judged_for_a_row():
    entries = [suites.rounds(name, [RELABEL], 18)[0] for name in suites.CLIFF]
    engine = run_of([record(entries[0], 1.0, n_rows=1000), record(entries[1], 2.08, n_rows=2000)])
    found = judged(Measured(engine), "for a row")
    assert found.measured.startswith("1.04 ×")
    assert found.verdict == "reached"


def test_predictions_are_judged_against_the_fastest_peer():
    entries = suites.predicted(suites.PREDICTED[0], PREDICTORS, 10)
    engine = run_of(record(e, t) for e, t in zip(entries, (1.0, 4.0, 1.2, 3.0), strict=True))
    found = judged(Measured(engine), "1 output, 10 rounds")
    assert found.measured == "1.2 × (1,000,000 : 833,333 rows/s, lightgbm-per-output)"
    assert found.verdict == "not reached"


def test_memory_is_judged_by_what_the_library_expects():
    (ours,) = suites.rounds(suites.TALL, [RELABEL], 12)
    found = judged(Measured(run_of([record(ours)])), "memory above the data")
    assert found.measured == "0.5 × (500 of 1,000 MB)"


@pytest.mark.parametrize(("ratio", "verdict"), [(1.2, "reached"), (1.4, "not reached")])
def test_what_dask_costs_is_read_from_its_own_results(ratio, verdict):
    assert judged(Measured(run_of([]), dask(ratio)), "Dask").verdict == verdict


def test_a_round_that_noise_made_negative_was_not_measured():
    ours, theirs = suites.rounds("enron", [RELABEL, ONE_OUTPUT], 60)
    engine = run_of([record(ours, -1.0), record(theirs)])
    assert judged(Measured(engine), "enron").verdict == "not measured"
