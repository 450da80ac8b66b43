"""Tests over splits and sets, against values that are known."""

import csv
from pathlib import Path

import numpy as np
import pytest

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
    average = statistics.average_ranks(paper_lrap, digits=4)
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


def test_nemenyi_agrees_with_the_critical_distance(paper_lrap):
    p = statistics.nemenyi(paper_lrap)
    average = statistics.average_ranks(paper_lrap, digits=6)
    distance = statistics.critical_distance(8, 21)
    for a in METHODS:
        for b in METHODS:
            apart = abs(average[a] - average[b]) > distance
            assert (p[a][b] < 0.05) == apart
