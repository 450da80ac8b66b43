"""The benchmark of intervals judges them rightly, and its page says what was measured."""

import numpy as np
import pytest

from benchmarks import intervals, one_build
from folded import folded_regressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = X[:, :2] + RNG.normal(size=(90, 2))


def test_intervals_are_judged_by_coverage_width_and_score():
    ends = np.array([[[0.0, 1.0], [0.0, 4.0]], [[2.0, 3.0], [0.0, 4.0]]])
    true = np.array([[0.5, 5.0], [2.0, 4.0]])
    found = intervals.judged(ends, true, np.array([1.0, 2.0]), 0.9)
    assert found["cells"] == 0.75
    assert found["rows"] == 0.5
    assert found["width"] == pytest.approx((1 + 1 + 2 + 2) / 4)
    assert found["score"] == pytest.approx((1 + 1 + (4 + 20) / 2 + 2) / 4)


def test_the_stand_in_answers_with_the_member_that_has_not_seen_the_fold():
    member = np.arange(20) % intervals.N_FOLDS
    said = np.arange(intervals.N_FOLDS + 1)[:, None] * 100.0 + np.arange(30)
    rows = np.arange(20)[:, None]
    for k in range(intervals.N_FOLDS):
        twin = intervals.StandIn(said, member).fit(rows[member != k], None)
        np.testing.assert_array_equal(twin.predict(np.array([[25]])), [100.0 * k + 25])
    everything = intervals.StandIn(said, member).fit(rows, None)
    np.testing.assert_array_equal(everything.predict(np.array([[3]])), [503.0])


def test_intervals_are_those_of_mapie_on_the_same_members():
    pytest.importorskip("mapie")
    model = folded_regressor(X[:60], Y[:60], max_iter=5)
    theirs = intervals.by_mapie(model, X[:60], Y[:60], X[60:])
    for k, coverage in enumerate(intervals.COVERAGES):
        for ours, name in (("split", "base"), ("cv+", "plus")):
            ends = model.predict_interval(X[60:], coverage, method=ours)
            np.testing.assert_allclose(ends, theirs[name][..., k], rtol=1e-9)


def test_the_page_shows_what_was_measured():
    record = {"cells": 0.91, "rows": 0.8, "width": 1.234, "score": 2.5}
    keys = [
        *(
            f"{m}{j} {c:g}"
            for m in intervals.METHODS
            for j in ("", " joint")
            for c in (0.8, 0.9, 0.95)
        ),
        *(f"mapie {m} {c:g}" for m in ("base", "plus") for c in intervals.COVERAGES),
        "quantiles 0.9",
        "plain quantiles 0.9",
    ]
    levels = [f"{form}{c:g}" for form in ("", "member ", "any ") for c in intervals.COVERAGES]
    labels, others = (
        {key: {"recall": recall, "precision": 0.5, "labels": 3.0} for key in ("plain", *levels)}
        for recall in (0.9, 0.902)
    )
    classes = {key: {"cells": 0.97, "size": 1.25} for key in ("plain", "0.8", "0.9", "0.95")}
    sets = {
        "enb": [dict.fromkeys(keys, record)] * 2,
        "emotions": [labels, others],
        "iris": [classes],
    }
    page = intervals.page({"sets": sets, "machine": {"libraries": ["MAPIE 1"]}})
    assert "| enb | **91.0** | 91.0 | **91.0** |" in page  # +11 and −4 points are out of bounds
    assert "1.234 (2.50)" in page
    assert "| emotions | 90.1 · 50.0 · 3.0 |" in page
    assert "| emotions | 0.9 | +0.10 ± 0.10 | 3.0 |" in page
    assert "| emotions | 0.95 | **-4.90 ± 0.10** | 3.0 |" in page
    assert "| iris | 97.0 | 97.0 · 1.25 |" in page


def test_results_are_read_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.setattr(intervals, "RESULTS", tmp_path / "intervals.json")
    results = {"sets": {"enb": [{"a": {"cells": 0.12345}}] * 2}, "machine": {"libraries": ["x"]}}
    intervals.write(results)
    results["sets"]["enb"] = [{"a": {"cells": 0.1235}}] * 2
    assert one_build.read(tmp_path / "intervals.json") == results
