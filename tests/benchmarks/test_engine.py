"""Rounds and predictions are timed alone, and shown as ratios within one run."""

import numpy as np
import pytest
from benchmarks.contestants import CONTESTANTS, Settings, Stopwatch
from benchmarks.contestants.hessboost import HessBoost
from benchmarks.contestants.manyboost import VARIANTS, Relabel
from benchmarks.records import Run
from benchmarks.result_files import job
from benchmarks.run import specification
from benchmarks.suites import ONE_OUTPUT, RELABEL, Entry
from benchmarks.workloads import find
from scipy.sparse import csr_matrix

from benchmarks import engine, engine_tables, suites
from manyboost import memory


def spec(workload, *, n_rounds=12, contestant=RELABEL, **options):
    options = {"protocol": "rounds", "threads": 1, "limit": 0.0, **options}
    return specification(Entry(workload, contestant, n_rounds=n_rounds, **options), 0)


def record(workload, contestant, short, long, **facts):
    """Of twelve rounds beside two."""
    made = spec(workload, contestant=contestant, **facts)
    return {
        "spec": made,
        "machine": 0,
        "status": "ok",
        "when": "2026-01-02T03:04:05+00:00",
        "n_rows": 1000,
        "n_features": 20,
        "n_outputs": 5,
        "short_rounds": 2,
        "short_seconds": short,
        "long_seconds": long,
        "leaves_per_round": 31.0,
    }


def run_of(*records) -> Run:
    return Run({"machines": [{}], "skipped": {}, "records": list(records)})


def test_a_round_is_the_difference_of_the_fastest_fits():
    assert engine.slope(2, [1.5, 1.0], 12, [3.0, 9.0]) == pytest.approx(0.2)
    repeats = [record("yeast", RELABEL, [1.0, 2.0], [9.0]), record("yeast", RELABEL, [5.0], [3.0])]
    assert run_of(*repeats).summaries[0].fastest_round == pytest.approx(0.2)


def test_fits_are_repeated_while_there_is_time():
    assert engine.another([1.0], [1.0], limit=0.0)
    assert not engine.another([1.0] * 2, [1.0] * 2, limit=5.9)
    assert engine.another([1.0] * 2, [1.0] * 2, limit=6.1)


@pytest.mark.parametrize("variant", ["", *VARIANTS, "row-weights+components-4"])
def test_rounds_of_every_variant_are_timed(variant):
    made = engine.time_of_rounds(spec("multilabel-200x5x3", leaves=4, variant=variant))
    assert made["short_rounds"] == 2
    assert len(made["long_seconds"]) == engine.LEAST_PAIRS
    assert made["leaves_per_round"] == pytest.approx(4)
    assert made["n_outputs"] == 3


def test_a_variant_reaches_the_fit():
    made = engine.time_of_rounds(spec("multilabel-200x5x3", variant="class-weight+components-4"))
    assert made["parameters"]["class_weight"] == "balanced"
    assert made["parameters"]["n_components"] == 4


def test_memory_of_a_fit_is_set_beside_what_the_library_expects():
    made = engine.time_of_rounds(spec("regression-20000x5x20", n_rounds=2))
    # Bins, and targets in the library's own types: the least that a fit must take.
    least = 20_000 * (5 + 20 * (8 + 4))
    assert made["peak_bytes"] is None or made["peak_bytes"] > 0  # None: the system does not say
    assert least < made["expected_bytes"] < 3 * least + memory._MARGIN


@pytest.mark.parametrize("dense", [True, False])
def test_what_is_expected_counts_copies_of_the_data(dense):
    data = find("regression-2000x5x3").load()
    data.X = data.X if dense else csr_matrix(data.X)
    settings = Settings(n_rounds=1)
    data.Y = np.rint(data.Y).astype(np.float64)
    as_floats = Relabel().expected_bytes(data, settings)
    data.Y = data.Y.astype(np.int64)
    assert Relabel().expected_bytes(data, settings) - as_floats == data.Y.nbytes


def test_predictions_may_be_asked_in_single_precision():
    asked = Relabel()
    asked.fit(
        find("regression-200x5x3").load(), Settings(n_rounds=2, variant="float32"), Stopwatch()
    )
    assert asked.predict(np.zeros((4, 5), np.float32)).dtype == np.float32


def test_predictions_of_all_training_rows_are_timed():
    made = engine.time_of_prediction(spec("regression-1500x5x3", limit=60.0))
    assert made["n_rows"] == engine.TRAINING_ROWS
    assert made["n_test_rows"] == 1500
    assert made["predict_seconds"] == min(made["predict_seconds_measured"])


def test_the_label_nearest_to_half_of_the_rows_comes_first():
    data = find("multilabel-300x5x6").load()
    before = data.Y.mean(axis=0)
    after = engine.even_label_first(data).Y.mean(axis=0)
    assert after[0] == before.max()
    np.testing.assert_allclose(np.sort(after), np.sort(before))


def test_leaves_and_variants_are_jobs_of_their_own():
    assert job(spec("yeast", leaves=4)) != job(spec("yeast", leaves=31))
    assert job(spec("yeast", variant="row-weights")) != job(spec("yeast"))


@pytest.mark.parametrize("suite", [suites.engine, suites.builds])
def test_no_job_is_done_twice(suite):
    jobs = [job(specification(entry, 0)) for entry in suite()]
    assert len(set(jobs)) == len(jobs)


def test_only_manyboost_has_variants_but_for_the_order_of_labels_and_all_are_known():
    for entry in suites.engine():
        variants = set(filter(None, entry.variant.split("+"))) - {suites.AS_STORED}
        assert variants <= set(VARIANTS)
        assert not variants or CONTESTANTS[entry.contestant].library == "manyboost"


def test_labels_may_stay_in_the_order_of_the_file():
    stored = find("multilabel-300x5x6").load().Y
    orders = [
        engine.prepared(spec("multilabel-300x5x6", variant=v))[1].Y for v in ("", "as-stored")
    ]
    assert not np.array_equal(orders[0], stored)
    assert np.array_equal(orders[1], stored)


def test_a_library_that_is_not_there_is_a_reason_not_an_error(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert HessBoost().unavailable() == "hessboost is not installed"


def test_tables_show_ratios_and_leave_out_what_was_not_measured():
    ours = record("yeast", RELABEL, [1.0], [2.0], leaves=31)
    theirs = record("yeast", ONE_OUTPUT, [1.0], [5.0], leaves=31)
    plain = record("regression-200000x20x5", RELABEL, [1.0], [2.0])
    weighted = record("regression-200000x20x5", RELABEL, [1.0], [4.0], variant="row-weights")
    page = "\n".join(engine_tables.sections(run_of(ours, theirs, plain, weighted)))
    assert "| yeast | 1,000 × 20 × 5 | 31 | 1 | 100 | 400 | 0.25 | 31 : 31 |" in page
    assert "| regression-200000x20x5 | row weights | 1 | 1 | 300 | 3 | 3 |" in page
    assert "### Threads" not in page


def test_sparse_tables_are_compared_for_each_leaf_besides():
    ours = record("genbase", RELABEL, [1.0], [2.0], leaves=31)
    theirs = {**record("genbase", ONE_OUTPUT, [1.0], [1.5], leaves=31), "leaves_per_round": 6.2}
    _, rows, _ = engine_tables.sparse(run_of(ours, theirs))
    assert [row[-5:] for row in rows] == [["50", "2", "31 : 6.2", "3,226 : 8,065", "0.4"]]
    first = record("genbase", ONE_OUTPUT, [1.0], [3.0], leaves=31, variant=suites.AS_STORED)
    _, rows, _ = engine_tables.sparse(run_of(ours, first, theirs))
    labels = [(row[2], row[5]) for row in rows]
    assert labels == [("nearest to half", "2"), ("first", "0.5")]


def test_memory_of_tall_tables_is_shown():
    ours = record(suites.TALL, RELABEL, [1.0], [2.0])
    ours |= {"peak_bytes": 9e8, "expected_bytes": 1e9}
    _, rows, _ = engine_tables.large(run_of(ours))
    assert rows == [["1,000 × 20 × 5", "1", "100", "–", "–", "900", "1,000"]]


def test_rows_of_both_sides_of_the_cliff_are_compared_for_a_row():
    below, above = (record(name, RELABEL, [1.0], [2.0 + i]) for i, name in enumerate(suites.CLIFF))
    above["n_rows"] = 4000
    _, rows, _ = engine_tables.cliff(run_of(below, above))
    assert [row[-1] for row in rows] == ["1", "0.5"]


def prediction(contestant, seconds, *, workload=suites.PREDICTED[0], n_rounds=10, variant=""):
    how = {"protocol": "prediction", "n_rounds": n_rounds, "variant": variant}
    made = record(workload, contestant, [], [], **how)
    return {**made, "n_test_rows": 1000, "predict_seconds": seconds}


def test_predictions_are_compared_with_the_fastest_other():
    seconds = {RELABEL: 0.1, "xgboost-multi-output-tree": 0.5, "lightgbm-per-output": 0.2}
    records = [prediction(contestant, each) for contestant, each in seconds.items()]
    _, rows, _ = engine_tables.prediction(run_of(*records))
    assert rows == [["5", "10", "float64", "10,000", "2,000", "5,000", "–", "2"]]


def test_predictions_of_other_rounds_and_in_single_precision_have_lines_of_their_own():
    many = suites.MANY_PREDICTED
    peer = prediction("xgboost-multi-output-tree", 0.1, workload=many)
    ours = [
        prediction(RELABEL, 0.2, workload=many),
        prediction(RELABEL, 0.05, workload=many, variant=suites.SINGLE),
        prediction(RELABEL, 1.0, workload=many, n_rounds=100),
    ]
    _, rows, _ = engine_tables.prediction(run_of(peer, *ours))
    shown = [(row[1], row[2], row[-1]) for row in rows]
    assert shown == [("10", "float64", "0.5"), ("10", "float32", "2"), ("100", "float64", "–")]
