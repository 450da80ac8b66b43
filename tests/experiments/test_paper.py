"""The paper's results as they were typed: consistent with themselves and with its text."""

from pathlib import Path

import pytest
from experiments.paper import (
    PAPER_FRIEDMAN,
    paper_claims,
    paper_ranks,
    paper_score,
    paper_sets,
    paper_table,
    paper_tests,
)
from experiments.report.claims import MEASURES

from experiments import statistics

METRIC = {"multilabel": "lrap", "regression": "macro-r2"}
#: The label sets of which a file was found.
THIRTEEN = ("CAL500", "bibtex", "birds", "corel5k", "delicious", "diatoms", "emotions", "enron")
THIRTEEN += ("genbase", "mediamill", "medical", "scene", "yeast")


@pytest.mark.parametrize("task", METRIC)
def test_printed_ranks_are_those_of_the_printed_scores(task):
    for dataset in paper_sets(task):
        ranks = paper_ranks(task, [dataset])
        printed = {m: paper_score(dataset, m, METRIC[task]).rank for m in ranks}
        assert printed == ranks, dataset


def test_numbers_of_the_text_follow_from_the_printed_scores():
    assert [len(paper_sets(task)) for task in METRIC] == [21, 8]
    assert statistics.critical_distance(8, 21) == pytest.approx(2.29, abs=0.005)
    # The text's p-values come from scores that are not rounded.
    assert 0.1 < statistics.friedman(paper_table("multilabel")) / PAPER_FRIEDMAN["multilabel"] < 10
    assert statistics.friedman(paper_table("regression")) == pytest.approx(
        PAPER_FRIEDMAN["regression"], abs=0.1
    )


def test_fewer_sets_have_less_power():
    assert statistics.friedman(paper_table("multilabel", THIRTEEN)) == pytest.approx(6e-5, rel=0.01)


@pytest.mark.parametrize(("number", "task"), [(8, "multilabel"), (9, "regression")])
def test_typed_p_values_have_the_signs_of_the_printed_scores(number, task):
    table, tests = paper_table(task), paper_tests(number, task)
    assert len(tests) == 28
    for test in tests:
        first, second = table[test.first], table[test.second]
        p = statistics.wilcoxon(first, second)
        assert (p < statistics.ALPHA) == (test.p < statistics.ALPHA) == (test.sign != 0), test
        assert p == pytest.approx(test.p, abs=0.35)
        if test.sign:
            assert statistics.direction(first, second) == test.sign


@pytest.mark.parametrize(("number", "ending", "n_pairs"), [(5, "", 10), (7, "-noisy", 6)])
def test_typed_t_tests_have_the_signs_of_the_printed_scores(number, ending, n_pairs):
    for name in ("chain", "group", "ind"):
        dataset = f"friedman1-{name}{ending}"
        tests = paper_tests(number, dataset)
        assert len(tests) == n_pairs
        for test in tests:
            assert (test.p < statistics.ALPHA) == (test.sign != 0)
            a, b = (paper_score(dataset, m, "macro-r2").score for m in (test.first, test.second))
            assert test.sign in (0, 1 if a > b else -1), test


def test_every_claim_is_measured_and_every_measure_is_claimed():
    assert {claim.measure for claim in paper_claims()} == MEASURES.keys()
    assert {"abstract", "introduction", "conclusions"} <= {claim.where for claim in paper_claims()}


def test_the_guide_to_strategies_quotes_the_paper():
    page = (Path(__file__).parents[2] / "docs" / "guide" / "strategy.md").read_text(
        encoding="utf-8"
    )
    sets = {
        "(group)": "friedman1-group",
        "a chain |": "friedman1-chain",
        "a chain, half": "friedman1-chain-noisy",
        "one signal, half": "friedman1-group-noisy",
        "(ind)": "friedman1-ind",
    }
    methods = ["st-gbrt", "gbmort", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"]
    for start, dataset in sets.items():
        (line,) = [line for line in page.splitlines() if line.startswith("|") and start in line]
        cells = [cell.strip(" *") for cell in line.split("|")[2:-1]]
        found = [paper_score(dataset, method, "macro-r2") for method in methods]
        assert cells == [f"{score.score:.3f}" for score in found]
    ranks = paper_ranks("multilabel")
    best = [ranks["gbrt-relabel-rpo-gaussian"], ranks["gbrt-rpo-gaussian"]]
    assert best == sorted(ranks.values())[:2]
    assert f"({best[0]:.2f} and {best[1]:.2f} of {len(ranks)} methods)" in page
