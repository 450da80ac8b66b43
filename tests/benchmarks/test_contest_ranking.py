"""Ranks, average ranks and tests of them, against values computed by hand."""

import math

import pytest
from benchmarks.contest.ranking import Ranking


def ranking(*rows):
    """Of sets whose scores are rows, by contestants a, b, c …"""
    return Ranking.of(
        {f"set {i}": dict(zip("abcd", row, strict=False)) for i, row in enumerate(rows)}
    )


def test_average_ranks_are_those_computed_by_hand():
    found = ranking((0.9, 0.8, 0.7), (0.9, 0.7, 0.8), (0.5, 0.6, 0.4), (0.3, 0.2, 0.1))
    # a: 1 1 2 1, b: 2 3 1 2, c: 3 2 3 3
    assert found.average_ranks() == {"a": 1.25, "b": 2.0, "c": 2.75}
    assert list(found.average_ranks()) == ["a", "b", "c"]


def test_scores_that_print_alike_share_their_rank():
    assert ranking((0.50001, 0.5, 0.4)).average_ranks() == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_whoever_has_no_score_ranks_last_beside_others_that_have_none():
    found = ranking((0.5, None, -9.0, None))
    assert found.average_ranks() == {"a": 1.0, "c": 2.0, "b": 3.5, "d": 3.5}
    assert found.n_without_score("b") == 1
    assert found.n_without_score("c") == 0


@pytest.mark.parametrize("worst", [0.1, None])
def test_friedmans_test_of_an_order_that_never_changes(worst):
    found = ranking(*[(0.9, 0.5, worst)] * 4)
    # chi² = 12 / (4·3·4) · (4² + 8² + 12²) − 3·4·4 = 8 with two degrees of freedom
    assert found.friedman() == pytest.approx(math.exp(-4))


def test_friedmans_test_says_nothing_where_all_are_alike_or_few():
    assert ranking(*[(0.5, 0.5, 0.5)] * 4).friedman() is None
    assert ranking((0.5, 0.4)).friedman() is None
    assert ranking((0.5, 0.4)).critical_difference() is None


def test_critical_difference_is_that_of_demsars_example():
    # Four methods on fourteen sets at 5 %: q = 2.569, CD = 2.569 · √(4·5 / (6·14)) = 1.25
    found = ranking(*[(0.4, 0.3, 0.2, 0.1)] * 14)
    assert found.critical_difference() == pytest.approx(1.25, abs=0.005)
    assert found.not_worse() == ["a", "b"]  # ranks 1, 2, 3, 4


def test_near_the_best_means_no_more_than_the_margin_below():
    found = ranking((0.8, 0.798, 0.7979), (0.5, None, 0.6), (0.7, 0.71, 0.6))
    assert [found.n_near_best(name) for name in "abc"] == [1, 2, 1]


def test_only_sets_on_which_all_ranked_contestants_were_tried_count():
    found = Ranking.of(
        {"one": {"a": 0.1, "b": 0.2}, "two": {"a": 0.4, "b": 0.3}, "three": {"a": 1}}
    )
    assert found.sets == ("one", "two")
    assert found.average_ranks() == {"a": 1.5, "b": 1.5}


def test_who_was_tried_on_less_than_half_of_the_sets_is_not_ranked():
    found = Ranking.of({"one": {"a": 0.1, "b": 0.2}, "two": {"a": 0.4}, "three": {"a": 1.0}})
    assert found.sets == ("one", "two", "three")
    assert found.average_ranks() == {"a": 1.0}


def test_a_ranking_of_nothing_is_empty():
    assert Ranking.of({}).average_ranks() == {}
    assert Ranking.of({"one": {}}).not_worse() == []
