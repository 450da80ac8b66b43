"""The losses that were tried have the gradients of their values; tables are made of records."""

import numpy as np
import pytest
from benchmarks.focal import WAYS, Asymmetric, Focal, section
from numpy.testing import assert_allclose

LOSSES = [Focal(0.0), Focal(1.0), Focal(2.0), Asymmetric(2.0, 0.0), Asymmetric(4.0, 0.05)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{type(loss).__name__}{vars(loss)}")
def test_gradients_are_those_of_the_values(loss):
    raw = np.linspace(-4, 4, 40)[:, None] + 0.01
    for y in (np.zeros_like(raw), np.ones_like(raw)):
        change = loss.value(y, raw + 1e-6) - loss.value(y, raw - 1e-6)
        assert_allclose(loss.gradient(y, raw), change / 2e-6, rtol=1e-4, atol=1e-8)
        assert (loss.hessian(y, raw) > 0).all()


def test_without_focus_it_is_the_log_loss():
    raw, y = np.linspace(-3, 3, 7)[:, None], np.array([[0, 1, 0, 1, 1, 0, 1]]).T
    log_loss = np.where(y == 1, np.logaddexp(0, -raw), np.logaddexp(0, raw))
    assert_allclose(Focal(0.0).value(y, raw), log_loss)


def test_the_table_has_gains_and_counts_of_sets():
    def run(gain):
        scores = {"LRAP": 0.5, "macro AP": 0.4, "macro F1": 0.3}
        others = {name: value + gain for name, value in scores.items()}
        return {way: scores if way == "log loss" else others for way in WAYS}

    sets = {"emotions": {"0": run(0.1)}, "scene": {"0": run(-0.02)}}
    results = {"sets": sets, "machine": {"libraries": ["manyboost 1"]}}
    assert "| focal, γ = 2 | +0.0400 ± 0.0600 (1) |" in section(results)
