"""The study of sampled rows: what it draws, and that the page shows what was measured."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import sampling
from manyboost import ManyBoostRegressor
from manyboost.training import boosting


def fit_of_seed(seed):
    return SimpleNamespace(plan=SimpleNamespace(seed=seed))


@pytest.mark.parametrize("choose", [sampling.draw_by_size, sampling.take_largest])
def test_weighted_sums_of_chosen_rows_are_unbiased(choose):
    z = np.random.default_rng(0).standard_t(3, (200, 2)).astype(np.float32)
    sums = []
    for seed in range(2000):
        rows, weight = choose(fit_of_seed(seed), 0, z, 60)
        assert len(rows) == 60
        sums.append((weight[rows, None] * z[rows]).sum(axis=0))
    error = np.std(sums, axis=0) / np.sqrt(len(sums))
    assert (np.abs(np.mean(sums, axis=0) - z.sum(axis=0)) < 4 * error).all()


def test_a_tree_on_all_rows_is_that_of_a_plain_round():
    rng = np.random.default_rng(0)
    X, Y = rng.random((300, 4)), rng.random((300, 3))
    plain = ManyBoostRegressor(max_iter=5, random_state=0).fit(X, Y)
    before = boosting.ROUNDS["relabel"]
    with sampling.rounds_of("grow on a share", 1.0):
        ours = ManyBoostRegressor(max_iter=5, random_state=0).fit(X, Y)
    assert np.array_equal(ours.predict(X), plain.predict(X))
    assert boosting.ROUNDS["relabel"] is before


def test_the_page_shows_the_stored_results():
    text = sampling.PAGE.read_text()
    report = sampling.Report()
    for table in (report.main_table(), report.converged_table()):
        assert "\n".join(table) in text
