"""Tests over splits and sets, against values that are known."""

import csv
from pathlib import Path

import numpy as np
import pytest
import scikit_posthocs

from experiments import statistics

PAPER = Path(statistics.__file__).with_name("paper_results.csv")
METHODS = (
    "br-gbrt",
    "br-rf",
    "gbmort",
    "gbrt-relabel-rpo-gaussian",
    "gbrt-relabel-rpo-subsampled",
    "gbrt-rpo-gaussian",
    "gbrt-rpo-subsampled",
    "mo-rf",
)


@pytest.fixture
def paper_lrap():
    """LRAP of the paper by method, over its 21 multi-label sets."""
    text = PAPER.read_text()
    rows = [row for row in csv.DictReader(text.splitlines()) if row["metric"] == "lrap"]
    scores = {method: [] for method in METHODS}
    for row in rows:
        scores[row["method"]].append(float(row["score"]))
    return scores


def test_ranks_of_the_paper_are_found_again(paper_lrap):
    average = statistics.average_ranks(paper_lrap)
    text = PAPER.read_text()
    printed = {method: [] for method in METHODS}
    for row in csv.DictReader(text.splitlines()):
        if row["metric"] == "lrap":
            printed[row["method"]].append(float(row["rank"]))
    for method in METHODS:
        assert average[method] == pytest.approx(np.mean(printed[method]), abs=0.03)
    assert min(average, key=average.get) == "gbrt-relabel-rpo-gaussian"


def test_friedman_test_of_the_paper_is_found_again(paper_lrap):
    # 1.36e-10 in the paper, from scores that were not yet rounded.
    assert 1e-11 < statistics.friedman(paper_lrap) < 1e-9


def test_critical_distance_is_that_of_the_paper():
    assert statistics.critical_distance(8, 21) == pytest.approx(2.29, abs=0.005)


def test_wilcoxon_of_the_paper_is_found_again(paper_lrap):
    best, worst = paper_lrap["gbrt-relabel-rpo-gaussian"], paper_lrap["br-gbrt"]
    assert statistics.wilcoxon(best, worst) < 6e-5 * 2
    rival = paper_lrap["gbrt-rpo-subsampled"]
    assert statistics.wilcoxon(rival, paper_lrap["br-rf"]) == pytest.approx(0.07, abs=0.03)


def test_paired_t_against_a_worked_example():
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3) = 3.4641 with two degrees of freedom.
    assert statistics.paired_t([2, 4, 6], [1, 2, 3]) == pytest.approx(0.0742, abs=1e-4)


def test_too_few_pairs_decide_nothing():
    assert statistics.paired_t([1.0], [2.0]) is None
    assert statistics.wilcoxon([1.0], [2.0]) is None
    assert statistics.friedman({"a": [1.0, 2.0], "b": [1.0, 2.0]}) is None


def test_equal_scores_are_no_difference():
    assert statistics.paired_t([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert statistics.wilcoxon([1.0, 2.0], [1.0, 2.0]) == 1.0


def test_spread_is_that_of_a_sample():
    assert statistics.mean_std([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert statistics.mean_std([1.0]) == (1.0, None)
    assert statistics.mean_std([]) == (None, None)


def test_critical_distance_is_that_of_nemenyis_test(paper_lrap):
    average = statistics.average_ranks(paper_lrap)
    distance = statistics.critical_distance(8, 21)
    p = scikit_posthocs.posthoc_nemenyi_friedman(np.array(list(paper_lrap.values())).T).to_numpy()
    for i, a in enumerate(paper_lrap):
        for j, b in enumerate(paper_lrap):
            assert (p[i, j] < 0.05) == (abs(average[a] - average[b]) > distance)


def test_spearman_of_equal_reversed_and_flat_orders():
    first = {"a": 1.0, "b": 2.0, "c": 5.0}
    assert statistics.spearman(first, {"a": 0.1, "b": 0.2, "c": 0.3}) == 1
    assert statistics.spearman(first, {"a": 0.3, "b": 0.2, "c": 0.1}) == -1
    assert statistics.spearman(first, dict.fromkeys("abc", 1.0)) is None


def test_interval_of_spearmans_correlation_holds_it(paper_lrap):
    rng = np.random.default_rng(0)
    noisy = {m: [s + rng.normal(0, 0.02) for s in scores] for m, scores in paper_lrap.items()}
    found, low, high = statistics.spearman_of_ranks(paper_lrap, noisy)
    assert -1 <= low <= found <= high <= 1
    assert low < high
    two_sets = {m: scores[:2] for m, scores in noisy.items()}
    assert statistics.spearman_of_ranks(two_sets, two_sets) is None


def test_float_noise_breaks_no_ties():
    """Differences of printed scores that are equal share a rank, as those of whole numbers do."""
    first, second = [803, 610, 510, 765, 300, 450], [801, 612, 507, 762, 299, 452]
    printed = [[value / 1000 for value in scores] for scores in (first, second)]
    assert statistics.wilcoxon(*printed) == statistics.wilcoxon(first, second)
    assert statistics.direction(*printed) == statistics.direction(first, second) == 1


def test_direction_is_that_of_the_signed_ranks():
    assert statistics.direction([1.0, 1.0, 1.0], [0.9, 0.9, 1.05]) == 1
    assert statistics.direction([0.0, 0.0], [0.1, -0.05]) == -1
    assert statistics.direction([0.5], [0.5]) == 0
