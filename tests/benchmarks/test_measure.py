"""What was measured of a part is extrapolated to the whole."""

import numpy as np
import pytest
from benchmarks.contestants.base import Contestant, PerOutput, Settings, Stopwatch, pickled_bytes
from benchmarks.contestants.sklearn import HistGradientBoosting
from benchmarks.measure import Whole, curve_rounds, timed_fit
from benchmarks.workloads import find


def whole(**changed) -> Whole:
    facts = {
        "n_rounds": 100,
        "rounds_done": 100,
        "n_outputs": 50,
        "outputs_done": 50,
        "setup_seconds": 0.0,
        "round_seconds": 1.0 + 0.1 * np.arange(1, 101),
        "fit_seconds": 11.5,
    }
    return Whole(**{**facts, **changed})


def test_a_complete_fit_is_not_extrapolated():
    assert whole().extrapolated is None
    assert whole().seconds(11.5) == pytest.approx(11.5)
    assert whole().seconds_per_round(11.5) == pytest.approx(0.1)
    assert whole().seconds_at(10) == pytest.approx(2.0)


def test_missing_rounds_cost_what_the_last_ones_did():
    part = whole(rounds_done=20, round_seconds=1.0 + 0.1 * np.arange(1, 21))
    assert part.extrapolated == "20 of 100 rounds"
    assert part.seconds(3.0) == pytest.approx(3.0 + 80 * 0.1)


def test_missing_outputs_cost_what_the_others_did_but_the_setup_is_paid_once():
    part = whole(outputs_done=10, setup_seconds=1.0)
    assert part.extrapolated == "10 of 50 outputs"
    assert part.seconds(11.0) == pytest.approx(1.0 + 5 * 10.0)
    assert part.seconds_at(10) == pytest.approx(1.0 + 5 * 1.0)


def test_rounds_that_were_not_timed_are_taken_as_equally_long():
    assert whole(round_seconds=None, fit_seconds=10.0).seconds_at(25) == pytest.approx(2.5)


@pytest.mark.parametrize("n_rounds", [1, 2, 7, 100, 1000])
def test_curve_starts_at_the_first_round_and_ends_at_the_last(n_rounds):
    rounds = curve_rounds(n_rounds, 1.25)
    assert rounds[0] == 1
    assert rounds[-1] == n_rounds
    assert rounds == sorted(set(rounds))


class Means(PerOutput):
    """Predicts each output's mean; its stopwatch runs out after the given number of outputs."""

    name = "means-per-output"

    def fit_one(self, data, j, settings, lap):
        for _ in range(settings.n_rounds):
            lap()
        return float(data.Y[:, j].mean())

    def predict_one(self, model, X):
        return np.full(len(X), model)


def test_one_model_per_output_stops_when_the_time_is_over_and_says_which_outputs_it_has():
    data = find("regression-50x5x8").load()
    contestant = Means()
    contestant.fit(data, Settings(n_rounds=3), Stopwatch(limit=0.0))
    assert len(contestant.outputs_done) == 1
    mean = data.Y[:, contestant.outputs_done].mean(axis=0)
    np.testing.assert_allclose(contestant.predict(data.X_test)[0], mean, rtol=1e-6)
    assert Whole.of(contestant, 3, data, 1.0).extrapolated == "1 of 8 outputs"


class Memory(Contestant):
    name = "memory"

    def fit(self, data, settings, watch):
        np.ones(50_000_000, np.uint8)


def test_peak_memory_counts_what_the_fit_has_freed_again():
    *_, peak = timed_fit(Memory, find("regression-50x5x1").load(), Settings(), 1.0)
    if peak is None:
        pytest.skip("this system does not let a process reset its peak")
    assert 45e6 < peak < 80e6


def test_pickled_bytes_counts_the_pickle():
    assert 8000 < pickled_bytes(np.zeros(1000)) < 8500


def test_a_label_that_no_training_row_has_ranks_below_all_others():
    data = find("multilabel-200x5x3").load()
    data.Y[:, 1] = 0
    contestant = HistGradientBoosting()
    contestant.fit(data, Settings(n_rounds=5), Stopwatch())
    raw = contestant.predict(data.X_test)
    assert (raw[:, 1] < raw[:, [0, 2]].min(axis=1)).all()
