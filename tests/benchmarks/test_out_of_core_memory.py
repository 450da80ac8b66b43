"""The benchmark of training from files measures a real fit and shows what it measured."""

import sys

import pytest

from benchmarks import out_of_core as benchmark


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_small_run_is_measured_and_shown():
    run = benchmark.measure(12_000, 2)
    assert run["file_bytes"] > 12_000 * benchmark.N_FEATURES * 8
    assert 0 < run["peak_anonymous_bytes"] < run["peak_bytes"] < run["bound_bytes"]
    assert run["validation_loss_left"] < 1
    shown = benchmark.table(
        run, {"cpu": "some processor", "cores": 2, "libraries": ["manyboost 1"]}
    )
    assert f"| peak memory, mapped bins included | {run['peak_bytes'] / 1e9:.2f} GB |" in shown
