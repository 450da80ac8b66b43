"""The comparison of Shapley values compares the same things."""

import pytest

from benchmarks import shap as benchmark


def test_the_page_is_made_of_the_measurements(monkeypatch):
    pytest.importorskip("shap", reason="the package shap is not installed")
    monkeypatch.setattr(benchmark, "REPEATS", 1)
    monkeypatch.setattr(benchmark, "TRAINING_ROWS", 200)
    case = benchmark.measure("project", outputs=3, rounds=4)
    assert case.difference < 1e-6
    assert case.seconds > 0
    assert case.ratio == case.shap_seconds / case.seconds
    text = benchmark.page([case], {"cpu": "a processor", "libraries": ["one 1", "two 2"]})
    assert "a processor; one 1, two 2." in text
    last = text.splitlines()[-1]
    assert last.startswith("| `project` | 100 | 200 |")
    assert f"{1e3 * case.shap_seconds:.2f} ms | {case.ratio:.0f} |" in last
