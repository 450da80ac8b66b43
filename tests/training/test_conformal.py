"""Conformal quantiles and thresholds, each beside the same thing in the most obvious way."""

import math

import numpy as np
import pytest

from manyboost.training import conformal


def slow_quantile(scores, coverage, weights=None):
    """The smallest score such that those up to it, of n and a new one, weigh enough."""
    pairs = sorted(
        (score, 1.0 if weights is None else weight)
        for score, weight in zip(
            scores, np.ones(len(scores)) if weights is None else weights, strict=True
        )
        if not math.isnan(score)
    )
    if not pairs:
        return math.inf
    total = sum(weight for _, weight in pairs)
    needed = coverage * (total + total / len(pairs)) * (1 - 1e-12)
    for score, _ in pairs:
        if sum(weight for other, weight in pairs if other <= score) >= needed:
            return score
    return math.inf


@pytest.mark.parametrize("weighted", [False, "rows", "cells"])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_quantiles_are_those_of_a_sorted_list(coverage, weighted):
    rng = np.random.default_rng(0)
    for n in (1, 5, 9, 19, 60):
        scores = rng.normal(size=(n, 4)).round(1)  # with ties
        scores[rng.random((n, 4)) < 0.2] = np.nan
        scores[:, 3] = np.nan
        weights = None
        if weighted:
            weights = rng.uniform(0.1, 3, size=n if weighted == "rows" else (n, 4))
        by_column = np.ones((n, 4)) if weights is None else weights.reshape(n, -1) * np.ones((n, 4))
        expected = [slow_quantile(scores[:, j], coverage, by_column[:, j]) for j in range(4)]
        np.testing.assert_array_equal(conformal.quantiles(scores, coverage, weights), expected)


def test_the_rank_is_that_of_the_finite_sample_correction():
    scores = np.arange(1.0, 20.0)[:, None]  # 1, ..., 19
    assert conformal.quantiles(scores, 0.9)[0] == 18  # ⌈20 · 0.9⌉
    assert conformal.quantiles(scores, 0.95)[0] == 19
    assert conformal.quantiles(scores, 0.951)[0] == math.inf


@pytest.mark.parametrize("coverage", [0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 / 3])
def test_one_row_less_than_needed_is_too_few(coverage):
    n = conformal.rows_needed(coverage)
    assert np.isfinite(conformal.quantiles(np.zeros((n, 1)), coverage)).all()
    if n > 1:
        assert np.isinf(conformal.quantiles(np.zeros((n - 1, 1)), coverage)).all()


def test_weights_count_as_repetitions_up_to_the_new_row():
    rng = np.random.default_rng(1)
    scores, weights = rng.normal(size=(400, 1)), rng.integers(1, 4, 400)
    repeated = np.repeat(scores, weights, axis=0)
    found = conformal.quantiles(scores, 0.9, weights.astype(float))
    # The new row weighs two of the repeated ones: neighbours at most differ.
    ranks = np.searchsorted(np.sort(repeated[:, 0]), [found[0]])
    assert abs(ranks[0] - math.ceil(0.9 * (len(repeated) + 1))) <= 3
    np.testing.assert_array_equal(found, conformal.quantiles(scores, 0.9, weights * 1e-3))


def test_coverage_of_exchangeable_rows_is_exact_on_average():
    """With n = 19 rows, the new one is within the 18th with probability 18/20."""
    draws = np.random.default_rng(2).normal(size=(20, 20_000))
    held = draws[19] <= conformal.quantiles(draws[:19], 0.9)
    assert abs(held.mean() - 0.9) < 0.007


def slow_cv_plus(members, scores, member, weight, coverage):
    """All that the calibration rows say, sorted."""
    bounds = [
        slow_quantile(
            [members[k, i] + score for k, score in zip(member, scores, strict=True)],
            coverage,
            weight,
        )
        for i in range(members.shape[1])
    ]
    return np.array(bounds)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.97])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_cv_plus_is_the_quantile_of_what_all_rows_say(weighted, coverage, size):
    rng = np.random.default_rng(3)
    n, k = 50, 4
    members = size * (100 + rng.normal(size=(k, 30)))
    scores = size * rng.normal(size=n)
    member = rng.integers(0, k, n).astype(np.uint8)
    weight = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    found = conformal.cv_plus(members, scores, member, weight, coverage)
    expected = slow_cv_plus(members, scores, member, weight, coverage)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_cv_plus_leaves_out_missing_scores_and_knows_when_there_are_too_few():
    rng = np.random.default_rng(4)
    members, scores = rng.normal(size=(3, 5)), np.abs(rng.normal(size=40))
    member = np.arange(40, dtype=np.uint8) % 3
    scores[::2] = np.nan
    weight = conformal.cell_weights(scores[:, None], None)[:, 0]
    there = ~np.isnan(scores)
    found = conformal.cv_plus(members, scores, member, weight, 0.9)
    of_the_rest = conformal.cv_plus(members, scores[there], member[there], weight[there], 0.9)
    np.testing.assert_array_equal(found, of_the_rest)
    assert np.isinf(conformal.cv_plus(members, scores, member, weight, 0.99)).all()


def test_the_score_of_a_row_is_that_of_its_worst_observed_output():
    scores = np.array([[1.0, 20.0], [np.nan, 5.0], [3.0, -10.0], [np.nan, np.nan]])
    weights = np.array([[1.0, 3.0], [9.0, 4.0], [2.0, 2.0], [1.0, 1.0]])
    largest, of_rows = conformal.joint_scores(scores, np.array([1.0, 10.0]), weights)
    np.testing.assert_array_equal(largest[:, 0], [2.0, 0.5, 3.0, np.nan])
    np.testing.assert_array_equal(of_rows, [2.0, 4.0, 2.0, 0.0])


def test_scales_are_quantiles_and_positive():
    distances = np.column_stack([np.arange(20.0), np.zeros(20), np.zeros(20), np.arange(20.0)])
    distances[0, 2] = 5.0
    distances[3:, 3] = np.nan  # too few for a quantile
    scales = conformal.own_scales(distances, 0.9, None)
    np.testing.assert_array_equal(scales, [18.0, 1.0, 0.25, 1.0])


def test_scales_of_others_leave_out_the_fold():
    rng = np.random.default_rng(7)
    distances, member = rng.random((30, 2)), rng.integers(0, 3, 30).astype(np.uint8)
    weights = rng.uniform(0.5, 2, size=(30, 2))
    found = conformal.scales_of_others(member, distances, 0.8, weights)
    for i in range(30):
        others = member != member[i]
        for j in range(2):
            expected = slow_quantile(distances[others, j], 0.8, weights[others, j])
            assert found[i, j] == expected


def slow_recall_threshold(raw, present, recall, weights=None):
    """The largest raw prediction of a present label that leaves the risk within its bound."""
    weight = (
        np.ones(raw.shape)
        if weights is None
        else weights.reshape(len(raw), -1) * np.ones(raw.shape)
    )
    rows = [i for i in range(len(raw)) if present[i].any()]
    of_row = [weight[i, present[i]].mean() for i in rows]
    total, new = sum(of_row), np.mean(of_row)
    for threshold in sorted(raw[present], reverse=True):
        risk = 0.0
        for i, w in zip(rows, of_row, strict=True):
            found = weight[i, present[i] & (raw[i] >= threshold)].sum() / present[i].sum()
            risk += w - found
        if (risk + new) / (total + new) <= (1 - recall) * (1 + 1e-9) + 1e-11:
            return threshold
    return -math.inf


@pytest.mark.parametrize("weighted", [False, "rows", "cells"])
@pytest.mark.parametrize("recall", [0.5, 0.8, 0.9])
def test_the_threshold_for_a_recall_is_the_largest_that_keeps_the_risk(recall, weighted):
    rng = np.random.default_rng(5)
    for n in (3, 12, 40):
        raw = rng.normal(size=(n, 6)).round(1)
        present = rng.random((n, 6)) < 0.3
        weights = None
        if weighted:
            weights = rng.uniform(0.5, 2, size=n if weighted == "rows" else (n, 6))
        found = conformal.recall_threshold(raw, present, recall, weights)
        assert found == slow_recall_threshold(raw, present, recall, weights)


def test_mean_recall_of_new_rows_is_at_least_what_was_asked_for():
    rng = np.random.default_rng(6)
    recalls = []
    for _ in range(300):
        present = rng.random((60, 8)) < 0.3
        raw = rng.normal(size=present.shape) + present
        threshold = conformal.recall_threshold(raw[:30], present[:30], 0.8)
        there = present[30:].any(axis=1)
        found = ((raw[30:] >= threshold) & present[30:])[there].sum(axis=1)
        recalls.append((found / present[30:][there].sum(axis=1)).mean())
    assert 0.8 - 0.01 < np.mean(recalls) < 0.87


def test_without_labels_there_is_no_threshold():
    assert conformal.recall_threshold(np.zeros((5, 2)), np.zeros((5, 2), bool), 0.5) == -math.inf


def test_a_set_of_classes_is_never_empty():
    probability = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25]])
    chosen = conformal.class_set(probability, 0.45)
    assert chosen.tolist() == [[True, False, False], [True, False, False]]
    assert conformal.class_set(probability, 0.3).sum(axis=1).tolist() == [2, 2]


def test_excess_is_negative_inside_and_missing_where_the_target_is():
    found = conformal.excess(np.array([0.0, 1.5, 4.0, np.nan]), np.ones(4), np.full(4, 3.0))
    np.testing.assert_array_equal(found, [1.0, -0.5, 1.0, np.nan])
