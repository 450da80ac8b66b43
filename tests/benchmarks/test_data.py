"""The figures about data: measured in place on tiny data, and shown as they are."""

import json

import numpy as np
import pytest
from scipy import sparse

from benchmarks import data
from manyboost import ManyBoostClassifier


def fit_record(**facts):
    record = {"status": "ok", "rows": 100, "features": 10, "outputs": 4, "rounds": 100}
    record |= {"seconds": 2.0, "cpu_seconds": 3.0, "peak_bytes": 5e6, "model_sha256": "a"}
    return record | facts


def page_of(records):
    machine = {"cpu": "a CPU", "cores": 2, "libraries": ["manyboost 0"]}
    return data.page({"machine": machine, "records": records})


def test_a_fit_is_measured(monkeypatch):
    monkeypatch.setattr(data, "SHORT_FITS", 0.0)
    rng = np.random.default_rng(0)
    X, Y = rng.random((60, 3)), sparse.csr_matrix((rng.random((60, 4)) < 0.3).astype(int))
    record = data.measured_fit(ManyBoostClassifier(max_iter=3, random_state=0), X, Y)
    assert (record["rows"], record["features"], record["outputs"]) == (60, 3, 4)
    assert (record["rounds"], record["fits"]) == (3, 1)
    assert record["seconds"] > 0
    assert record["model_bytes"] > 100
    json.dumps(record)


def test_one_hot_columns():
    X = np.array([[0.5, 1], [1.5, 0], [2.5, np.nan]])
    assert data.one_hot(X, {1: ("a", "b")}).tolist() == [[0.5, 0, 1], [1.5, 1, 0], [2.5, 0, 0]]


def test_the_page_compares_with_the_dense_copy_and_says_what_was_stopped():
    records = {
        "sparse-X": fit_record(),
        "sparse-X-dense-copy": fit_record(seconds=6.0, cpu_seconds=6.0),
        "sparse-X-xgboost-multi-output-tree": fit_record(rounds=7, limit=300.0, seconds=301.0),
        "sparse-X-xgboost-one-output-per-tree": {"status": "over memory", "after_seconds": 9},
    }
    page = page_of(records)
    assert "takes 3.0 times as long (2.0 times in CPU time) and gives the same model" in page
    assert "5 MB, below the limit of 400 MB" in page
    assert "| 7 | 301.0, stopped at the limit of 300 |" in page
    assert "over memory after 9 s" in page
    records["sparse-X-dense-copy"]["model_sha256"] = "b"
    assert "gives ANOTHER model" in page_of(records)


@pytest.mark.parametrize(("peak", "shown"), [(90e6, "| 100 |"), (110e6, "| 100 (NOT MET) |")])
def test_the_page_says_whether_a_limit_is_met(peak, shown):
    records = {"sparse-Y-generated-project": fit_record(peak_bytes=peak, bar_bytes=100e6)}
    assert shown in page_of(records)


def test_the_page_shows_scores_and_differences():
    scores = {"macro_recall": 0.25, "lrap": 0.5, "finite": True}
    records = {
        "imbalance": {"status": "ok", "None": scores, "balanced": scores | {"finite": False}},
        "categories-flags": {
            "status": "ok",
            "score": "macro r²",
            "categories": [0.5, 0.7],
            "one_hot": [0.4, 0.4],
        },
    }
    page = page_of(records)
    assert "| `None` | 0.250 | 0.500 | yes |" in page
    assert "| `balanced` | 0.250 | 0.500 | NO |" in page
    assert "| flags | macro r² | 0.6000 | 0.4000 | +0.2000 ± 0.1000 |" in page
